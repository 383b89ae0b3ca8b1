/* Tests of the SDK itself, in place of those of the template: schemas, JSON, questions, parts. */
#include "belljar.hpp"

#include "belljar.h"

#include <cstdio>
#include <limits>

using namespace belljar;

static int failures;

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            failures++;                                                                    \
        }                                                                                  \
    } while (0)

static void schemas_are_json() {
    CHECK(schema::object({}) == R"({"type":"object","properties":{}})");
    std::string inner = schema::object({schema::boolean("yes").optional()});
    std::string text = schema::object({
        schema::string("size").one_of({"S", "L \"\n"}).title("Size").description("Which"),
        schema::number("share").minimum(0.1).maximum(1e21),
        schema::string("day").format("date").optional(),
        schema::nested("inner", inner),
        schema::list("tags", R"({"type":"string"})").with("maxItems", 3),
    });
    auto read = Json::read(text);
    CHECK(read);
    if (!read) return;
    Json properties = (*read)["properties"];
    CHECK(properties.size() == 5 && properties["size"]["enum"][1].string() == "L \"\n");
    CHECK(properties["size"]["title"].string() == "Size" && properties["size"]["description"].string() == "Which");
    CHECK(properties["share"]["minimum"].number() == 0.1 && properties["share"]["maximum"].number() == 1e21);
    CHECK(properties["day"]["format"].string() == "date" && properties["inner"]["properties"]["yes"]);
    CHECK(properties["tags"]["items"]["type"].string() == "string" && properties["tags"]["maxItems"].integer() == 3);
    CHECK((*read)["required"].size() == 4 && (*read)["required"][2].string() == "inner");
}

static void values_have_their_types() {
    auto read = Json::read(json::object({{"text", "a"}, {"yes", true}, {"int", -3}, {"half", 0.5}, {"view", std::string_view("v")},
                                         {"list", json::Value::raw(json::array({1, "2"}))},
                                         {"infinite", std::numeric_limits<double>::infinity()}}));
    CHECK(read && (*read)["text"].string() == "a" && (*read)["yes"].boolean() == true && (*read)["int"].integer() == -3);
    CHECK(read && (*read)["half"].number() == 0.5 && !(*read)["half"].integer() && (*read)["view"].string() == "v");
    CHECK(read && (*read)["list"][1].string() == "2" && (*read)["infinite"].is_null());
    CHECK(read && !(*read)["absent"] && !(*read)["absent"]["deeper"][3].string() && !(*read)["text"].integer());
    auto wrong = Json::read("{");
    CHECK(!wrong && wrong.error().kind == Kind::invalid);
    CHECK(!Json::read(std::string("1\0", 2)));
}

struct Shop : Provider {
    Info describe() override { return {}; }
    Result<Page> list(const Text &) override { return Page{}; }
    Result<Reading> read(const std::string &) override { return not_found(); }
    std::vector<Tool> tools() override {
        return {{.name = "order", .description = "", .call = [](const Call &call) -> Result<ToolOutcome> {
            const Answer *answer = call.answer("size");
            if (!answer) return Ask{{{"size", "Which size?", schema::object({schema::string("size")})}}, "1"};
            if (answer->action != Action::accept) return invalid("no size");
            return ToolResult::text(answer->content["size"].string().value_or("") + call.state.value_or(""));
        }}};
    }
};

static void a_tool_asks_and_is_answered() {
    Shop shop;
    auto asked = call_tool(shop, "order", "{}");
    const Ask *ask = asked ? std::get_if<Ask>(&*asked) : nullptr;
    CHECK(ask && ask->questions.size() == 1 && ask->questions[0].key == "size" && ask->state == "1");
    auto size = Json::read(R"({"size":"L"})").value_or(Json());
    auto done = call_tool(shop, "order", "{}", {.answers = {{"size", Action::accept, size}}, .state = "1"});
    CHECK(done && std::get<std::string>(std::get<ToolResult>(*done).content[0].body) == "L1");
    auto declined = call_tool(shop, "order", "{}", {.answers = {{"size", Action::decline}}});
    CHECK(!declined && declined.error().reason == "no size");
    auto malformed = call_tool(shop, "order", "{");
    CHECK(!malformed && malformed.error().kind == Kind::invalid);
}

static Result<PartialReading> cut(const std::string &text, const std::optional<Range> &range, std::uint64_t most) {
    return PartialReading::cut(Contents::text("a", "text/plain", text), range, most);
}

static void parts_are_cut_out() {
    std::string text = "1\n2\n3\n4";
    auto whole = cut(text, std::nullopt, 7), first = cut(text, std::nullopt, 5);
    CHECK(whole && whole->contents[0].body == text && !whole->extent);
    CHECK(first && first->contents[0].body == "1\n2\n" && first->extent == Extent::of(Unit::bytes, 0, 4, 7));
    auto middle = cut(text, Range{Unit::lines, 1, 3}, 100), last = cut(text, Range{.unit = Unit::lines, .last = 2}, 100);
    CHECK(middle && middle->contents[0].body == "2\n3\n" && middle->extent == Extent::of(Unit::lines, 1, 3, 4));
    CHECK(last && last->contents[0].body == "3\n4" && last->extent == Extent::of(Unit::lines, 2, 4, 4));
    auto inside = cut("a\xc3\xa9", Range{Unit::bytes, 2, 3}, 100);
    CHECK(inside && inside->contents[0].body == "\xc3\xa9" && inside->extent == Extent::of(Unit::bytes, 1, 3, 3));
    auto bytes = PartialReading::cut(Contents::blob("a", "", std::string("\0\x9f\xff", 3)), Range{Unit::bytes, 1, 2}, 9);
    CHECK(bytes && bytes->contents[0].body == "\x9f");
    auto lines = PartialReading::cut(Contents::blob("a", "", "\x9f"), Range{Unit::lines, 0}, 9);
    CHECK(!lines && lines.error().kind == Kind::invalid && lines.error().reason.contains("?bytes="));
    CHECK((Range{.last = 9}.within(4) == std::pair<std::uint64_t, std::uint64_t>(0, 4)));
}

/* Through the functions that the component calls, which open the provider of the template. */
static void a_provider_reads_parts_of_what_it_reads() {
    belljar_range five = {BELLJAR_BYTES, 0, BELLJAR_SOME(5), {}};
    belljar_reading reading = {}, all = {};
    belljar_extent extent = {}, whole = {};
    CHECK(provider_read_part("hello.txt", &five, 100, &reading, &extent) == BELLJAR_OK && reading.length == 1);
    CHECK(std::string(reading.contents[0].data) == "Hello" && extent.some && extent.end == 5 && extent.more);
    CHECK(extent.unit == BELLJAR_BYTES && extent.total.some && extent.total.value > 5);
    CHECK(provider_read_part("hello.txt", nullptr, 100, &all, &whole) == BELLJAR_OK && !whole.some);
    CHECK(all.contents[0].length == extent.total.value);
    CHECK(provider_read_part("none", nullptr, 100, &all, &whole) == BELLJAR_NOT_FOUND);
    belljar_page page = {};
    CHECK(provider_list_below("none/", nullptr, &page) == BELLJAR_NOT_FOUND);
}

int main() {
    parts_are_cut_out();
    a_provider_reads_parts_of_what_it_reads();
    schemas_are_json();
    values_have_their_types();
    a_tool_asks_and_is_answered();
    std::puts(failures == 0 ? "all is well" : "something is wrong");
    return failures != 0;
}
