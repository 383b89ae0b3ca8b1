/* The list of the provider, and the contents of each reference. Replace it with your own. */
#include "provider.hpp"

#include <array>
#include <charconv>
#include <string_view>

using namespace belljar;

namespace {

constexpr std::size_t page_size = 10;

struct Month {
    std::string_view name;
    int days;
};

constexpr std::array<Month, 12> months = {{{"January", 31}, {"February", 28}, {"March", 31}, {"April", 30},
                                           {"May", 31}, {"June", 30}, {"July", 31}, {"August", 31},
                                           {"September", 30}, {"October", 31}, {"November", 30}, {"December", 31}}};

/* A picture of one pixel. */
constexpr unsigned char dot[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4, 0x89, 0x00, 0x00, 0x00, 0x0d, 0x49,
    0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x64, 0xf8, 0xcf, 0x50, 0x0f, 0x00, 0x03, 0x86, 0x01, 0x80, 0x5a, 0x34, 0x7d,
    0x6b, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

/* The media type for the extension of a name. */
Text type_of(std::string_view name) {
    if (name.ends_with(".md")) return "text/markdown";
    if (name.ends_with(".txt")) return "text/plain";
    return std::nullopt;
}

Result<Reading> read_month(const std::string &reference, std::string_view text) {
    std::size_t number = 0;
    auto [end, error] = std::from_chars(text.begin(), text.end(), number);
    if (error == std::errc::invalid_argument || end != text.end())
        return invalid("a month is a number from 1 to 12, not \"" + std::string(text) + "\"");
    if (error != std::errc() || number < 1 || number > months.size()) return not_found();
    const Month &month = months[number - 1];
    return Contents::text(reference, "application/json",
                          "{\"month\":" + std::to_string(number) + ",\"name\":\"" + std::string(month.name) +
                              "\",\"days\":" + std::to_string(month.days) + "}");
}

/* belljar:if tools */
bool is_leap(std::int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

Result<ToolOutcome> month_days(const Call &call) {
    auto number = call.arguments["month"].integer().value_or(0);
    if (number < 1 || number > std::int64_t(months.size()))
        return invalid("a month is a number from 1 to 12, not \"" + std::to_string(number) + "\"");
    const Month &month = months[number - 1];
    std::string text(month.name);
    int days = month.days;
    if (auto year = call.arguments["year"].integer()) {
        text += " " + std::to_string(*year);
        if (number == 2 && is_leap(*year)) days = 29;
    }
    return ToolResult::text(text + " has " + std::to_string(days) + " days.",
                            json::object({{"month", month.name}, {"days", days}}));
}

/* belljar:end */
/* belljar:if prompts */
Result<PromptOutcome> plan_month(const Call &call) {
    auto name = call.arguments["month"].string().value_or(""), goal = call.arguments["goal"].string().value_or("");
    for (const Month &month : months) {
        if (month.name != name) continue;
        std::string text = "Make a plan for " + name + ", which has " + std::to_string(month.days) + " days.";
        if (!goal.empty()) text += " My goal: " + goal + ".";
        return Messages::user(text, "A plan for " + name);
    }
    return invalid("a month is one of January to December, not \"" + name + "\"");
}

Result<Suggestions> complete_month(const Argument &argument, const std::vector<Argument> &) {
    Suggestions suggestions;
    if (argument.name == "month")
        for (const Month &month : months) suggestions.add_if(argument.value, std::string(month.name));
    return suggestions;
}

/* belljar:end */
} // namespace

std::unique_ptr<Provider> belljar::open() { return std::make_unique<MyProvider>("/data"); }

Info MyProvider::describe() {
    return {.title = "my-provider",
            .version = "0.1.0",
            .description = "A greeting, a picture, the months of the year, and the files of a directory."};
}

Result<Page> MyProvider::list(const Text &cursor) {
    std::vector<Resource> list = {
        {.reference = "hello.txt", .mime_type = "text/plain"},
        {.reference = "dot.png", .mime_type = "image/png"},
    };
    for (std::size_t i = 0; i < months.size(); i++)
        list.push_back({.reference = "months/" + std::to_string(i + 1),
                        .name = std::string(months[i].name),
                        .mime_type = "application/json"});

    if (is_directory(directory)) {
        auto files = list_files(directory);
        if (!files) return std::unexpected(files.error());
        for (const File &file : *files)
            list.push_back({.reference = "files/" + encode(file.name),
                            .name = file.name,
                            .mime_type = type_of(file.name),
                            .size = file.size});
    }
    return Page::of(list, cursor, page_size);
}

Result<std::vector<Template>> MyProvider::templates() {
    return std::vector<Template>{
        {.pattern = "months/{month}",
         .name = "month",
         .description = "A month by its number, from 1 to 12: its name and how many days it has",
         .mime_type = "application/json"},
        {.pattern = "files/{name}", .name = "file", .description = "A file of the granted directory, by its name; without a name, all files"},
    };
}

Result<Reading> MyProvider::read(const std::string &reference) {
    if (reference == "hello.txt") return Contents::text(reference, "text/plain", "Hello from my-provider.\n");
    if (reference == "dot.png") return Contents::blob(reference, "image/png", std::string(std::begin(dot), std::end(dot)));
    if (reference.starts_with("months/")) return read_month(reference, std::string_view(reference).substr(7));
    if (reference == "files/") return read_all_files();
    if (reference.starts_with("files/")) return read_file(reference, reference.substr(6));
    return not_found();
}

Result<void> MyProvider::need_directory() {
    if (is_directory(directory)) return {};
    return denied("this needs the directory \"" + directory + "\", which was not granted");
}

/* All files of the directory, one content each. */
Result<Reading> MyProvider::read_all_files() {
    if (auto need = need_directory(); !need) return std::unexpected(need.error());
    auto files = list_files(directory);
    if (!files) return std::unexpected(files.error());
    Reading all;
    for (const File &file : *files) {
        std::string segment = encode(file.name);
        auto one = read_file("files/" + segment, segment);
        if (!one) return one;
        all.contents.push_back(std::move(one->contents.front()));
    }
    if (all.contents.empty()) return not_found();
    return all;
}

Result<Reading> MyProvider::read_file(const std::string &reference, const std::string &segment) {
    auto name = decode(segment);
    if (!name) return std::unexpected(name.error());
    if (auto need = need_directory(); !need) return std::unexpected(need.error());
    if (name->contains('/')) return not_found();

    auto bytes = belljar::read_file(directory + "/" + *name);
    if (!bytes) return std::unexpected(bytes.error());
    std::string type = is_utf8(*bytes) ? type_of(*name).value_or("text/plain") : "application/octet-stream";
    return Contents::bytes(reference, type, std::move(*bytes));
}
/* belljar:if tools */

std::vector<Tool> MyProvider::tools() {
    return {{.name = "month_days",
             .description = "How many days a month has.",
             .input = schema::object({schema::integer("month").description("The number of the month").minimum(1).maximum(12),
                                      schema::integer("year").description("The year; without it, February has 28 days").optional()}),
             .output = schema::object({schema::string("month"), schema::integer("days")}),
             .effect = Effect::reads,
             .idempotent = true,
             .closed_world = true,
             .call = month_days}};
}
/* belljar:end */
/* belljar:if prompts */

std::vector<Prompt> MyProvider::prompts() {
    return {{.name = "plan_month",
             .description = "A plan for a month.",
             .arguments = {{.name = "month", .description = "The name of the month", .required = true}, {.name = "goal"}},
             .get = plan_month,
             .complete = complete_month}};
}
/* belljar:end */
