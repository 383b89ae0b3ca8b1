/* Reads from the server that the setting UPSTREAM names. The tests of belljar mount it in all languages. */
#include <cstdlib>
#include <memory>

#include "http.hpp"

using namespace belljar;

namespace {

Result<http::Response> exchange(const std::string &order, http::Request request) {
    if (order == "soon") request.timeout_ms = 100;
    if (order == "post") request.body = "one two three";
    if (order != "send") return http::send(request);
    request.method = "POST";
    auto upload = http::begin(request);
    if (!upload) return std::unexpected(upload.error());
    for (const char *piece : {"one ", "two ", "three"}) upload->write(piece);
    return upload->finish();
}

class Relay : public Provider {
    Info describe() override { return {.title = "Relay"}; }
    Result<Page> list(const Text &) override { return Page{}; }

    Result<Reading> read(const std::string &reference) override {
        std::string order = reference.substr(0, reference.find('/'));
        std::string url = std::getenv("UPSTREAM") + reference.substr(order.size());
        auto response = exchange(order, {.url = url, .headers = {{"x-own", "mine"}}});
        if (!response) return std::unexpected(response.error());
        std::size_t length = 0;
        auto text = order == "count" ? response->read() : response->read_all();
        if (order == "count")
            for (; text && !text->empty(); text = response->read()) length += text->size();
        if (!text) return std::unexpected(text.error());
        if (order == "count") text = std::to_string(length);
        return Reading{{Contents::text(reference, "text/plain", std::to_string(response->status) + " " + *text)}};
    }
};

} // namespace

std::unique_ptr<Provider> belljar::open() { return std::make_unique<Relay>(); }
