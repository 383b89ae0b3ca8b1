/* The list of the provider, and the contents of each reference. Replace it with your own. */
#include "belljar.hpp"

using namespace belljar;

class MyProvider : public Provider {
  public:
    Info describe() override { return {.title = "my-provider", .version = "0.1.0", .description = "A greeting."}; }

    Result<Page> list(const Text &cursor) override {
        std::vector<Resource> all = {{.reference = "hello.txt", .mime_type = "text/plain"}};
        return Page::of(all, cursor, 100);
    }

    Result<Reading> read(const std::string &reference) override {
        if (reference != "hello.txt") return not_found();
        return Contents::text(reference, "text/plain", "Hello from my-provider.\n");
    }
};

std::unique_ptr<Provider> belljar::open() { return std::make_unique<MyProvider>(); }
