/* The provider's class, for its tests. */
#pragma once

#include <string>
#include <utility>

#include "belljar.hpp"

class MyProvider : public belljar::Provider {
  public:
    /* `directory` is the granted directory. */
    explicit MyProvider(std::string directory) : directory(std::move(directory)) {}

    belljar::Info describe() override;
    belljar::Result<belljar::Page> list(const belljar::Text &cursor) override;
    belljar::Result<std::vector<belljar::Template>> templates() override;
    belljar::Result<belljar::Reading> read(const std::string &reference) override;
    /* belljar:if tools */
    std::vector<belljar::Tool> tools() override;
    /* belljar:end */
    /* belljar:if prompts */
    std::vector<belljar::Prompt> prompts() override;
    /* belljar:end */

  private:
    belljar::Result<void> need_directory(); /* fails if the directory was not granted */
    belljar::Result<belljar::Reading> read_all_files();
    belljar::Result<belljar::Reading> read_file(const std::string &reference, const std::string &segment);

    std::string directory;
};
