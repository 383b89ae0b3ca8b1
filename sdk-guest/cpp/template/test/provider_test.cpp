/* Unit tests. They call the provider as belljar does, but are built for this machine, without WebAssembly and belljar. */
#include "../src/provider.hpp"

#include <cstdio>

using namespace belljar;

static int failures;

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                                    \
        }                                                                                  \
    } while (0)

static bool reads(const char *reference, const char *mime_type, const std::string &begin, bool is_text) {
    auto reading = MyProvider("data").read(reference);
    if (!reading || reading->contents.size() != 1) return false;
    const Contents &contents = reading->contents.front();
    return contents.mime_type == mime_type && contents.body.starts_with(begin) && contents.is_text == is_text;
}

static bool fails(const char *directory, const char *reference, const Error &error) {
    auto reading = MyProvider(directory).read(reference);
    return !reading && reading.error() == error;
}

static void lists_in_pages() {
    MyProvider provider("data");
    auto first = provider.list(std::nullopt);
    CHECK(first && first->resources.size() == 10 && first->resources.front().reference == "hello.txt");
    CHECK(first && first->next_cursor == "10");

    auto second = provider.list("10");
    CHECK(second && second->resources.size() == 5 && !second->next_cursor);
    CHECK(second && second->resources.back().reference == "files/notes.md" && second->resources.back().size);

    for (std::string cursor : {"x", "", "-1", "010", "999"}) {
        auto wrong = provider.list(cursor);
        CHECK(!wrong && wrong.error() == Error(Kind::invalid, "the cursor \"" + cursor + "\" is not one of this provider's"));
    }
}

static void reads_what_it_lists() {
    CHECK(reads("hello.txt", "text/plain", "Hello from my-provider.\n", true));
    CHECK(reads("dot.png", "image/png", "\x89PNG", false));
    CHECK(reads("months/2", "application/json", "{\"month\":2,\"name\":\"February\",\"days\":28}", true));
    CHECK(reads("files/notes.md", "text/markdown", "# Notes\n", true));
}

static void failures_have_reasons() {
    Error absent = {Kind::not_found, ""};
    CHECK(fails("data", "months/13", absent));
    CHECK(fails("data", "months/x", {Kind::invalid, "a month is a number from 1 to 12, not \"x\""}));
    CHECK(fails("data", "files/absent.md", absent));
    CHECK(fails("data", "files/a%2Fb", absent));
    CHECK(fails("data", "", absent));
    CHECK(fails("/not-granted", "files/notes.md",
                {Kind::denied, "this needs the directory \"/not-granted\", which was not granted"}));
}

int main() {
    lists_in_pages();
    reads_what_it_lists();
    failures_have_reasons();
    std::puts(failures == 0 ? "all is well" : "something is wrong");
    return failures != 0;
}
