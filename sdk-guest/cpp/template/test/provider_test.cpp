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
    CHECK(reads("files/", "text/markdown", "# Notes\n", true));
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

/* belljar:if tools */
static bool counts(const char *arguments, const std::string &text, const std::string &structured) {
    MyProvider provider("data");
    auto outcome = call_tool(provider, "month_days", arguments);
    const ToolResult *result = outcome ? std::get_if<ToolResult>(&*outcome) : nullptr;
    return result && result->content.size() == 1 && std::get<std::string>(result->content[0].body) == text &&
           result->structured == structured;
}

static void counts_the_days_of_a_month() {
    CHECK(counts(R"({"month":2,"year":2024})", "February 2024 has 29 days.", R"({"month":"February","days":29})"));
    CHECK(counts(R"({"month":2,"year":1900})", "February 1900 has 28 days.", R"({"month":"February","days":28})"));
    CHECK(counts(R"({"month":2})", "February has 28 days.", R"({"month":"February","days":28})"));
    CHECK(counts(R"({"month":12,"year":2024})", "December 2024 has 31 days.", R"({"month":"December","days":31})"));
    MyProvider provider("data");
    auto thirteenth = call_tool(provider, "month_days", R"({"month":13})");
    CHECK(!thirteenth && thirteenth.error().kind == Kind::invalid);
    auto absent = call_tool(provider, "absent", "{}");
    CHECK(!absent && absent.error().kind == Kind::not_found);
}

static void describes_its_tools() {
    auto tools = MyProvider("data").tools();
    CHECK(tools.size() == 1 && tools[0].effect == Effect::reads && tools[0].idempotent && tools[0].closed_world);
    CHECK(tools[0].input == R"({"type":"object","properties":{"month":{"type":"integer","description":"The number of the month",)"
                            R"("minimum":1,"maximum":12},)"
                            R"("year":{"type":"integer","description":"The year; without it, February has 28 days"}},)"
                            R"("required":["month"]})");
}

/* belljar:end */
/* belljar:if prompts */
static bool plans(const std::vector<Argument> &arguments, const std::string &text) {
    MyProvider provider("data");
    auto outcome = get_prompt(provider, "plan_month", arguments);
    const Messages *plan = outcome ? std::get_if<Messages>(&*outcome) : nullptr;
    return plan && plan->description == "A plan for February" && plan->messages.size() == 1 &&
           plan->messages[0].role == Role::user && std::get<std::string>(plan->messages[0].block.body) == text;
}

static void plans_a_month() {
    CHECK(plans({{"month", "February"}, {"goal", "rest"}}, "Make a plan for February, which has 28 days. My goal: rest."));
    CHECK(plans({{"month", "February"}}, "Make a plan for February, which has 28 days."));
    MyProvider provider("data");
    auto wrong = get_prompt(provider, "plan_month", {{"month", "X"}});
    CHECK(!wrong && wrong.error() == Error(Kind::invalid, "a month is one of January to December, not \"X\""));
}

static void suggests_months() {
    MyProvider provider("data");
    auto found = complete_prompt(provider, "plan_month", {"month", "Ma"});
    CHECK(found && found->values == std::vector<std::string>({"March", "May"}));
    auto none = complete_prompt(provider, "plan_month", {"goal", "Ma"});
    CHECK(none && none->values.empty());
}

/* belljar:end */
int main() {
    lists_in_pages();
    reads_what_it_lists();
    failures_have_reasons();
    /* belljar:if tools */
    counts_the_days_of_a_month();
    describes_its_tools();
    /* belljar:end */
    /* belljar:if prompts */
    plans_a_month();
    suggests_months();
    /* belljar:end */
    std::puts(failures == 0 ? "all is well" : "something is wrong");
    return failures != 0;
}
