/* Write belljar resource providers in C++23.
 *
 * A provider is a class that overrides belljar::Provider, and belljar::open, which makes one. Each call runs in a fresh
 * sandbox: open creates the provider, one method is called, and everything is dropped. Grants are available
 * through the standard library: files below their guest path, settings with getenv.
 *
 * There are no exceptions in the component: methods return a Result, and failures are returned as
 * `return belljar::invalid("...");`. */
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

struct belljar_json;

namespace belljar {

/* The kind of a failure. It decides how the host reports the failure, and whether a retry makes sense. */
enum class Kind {
    not_found = 1, /* the resource does not exist, or this caller must not know of it */
    invalid,       /* the reference, cursor or argument is malformed */
    denied,        /* the provider refuses, or a grant is missing */
    unavailable,   /* a backend is down or busy; the same call may succeed later */
    failed         /* any other failure */
};

/* A failure. People read the reason as the provider's words. */
struct Error {
    Kind kind = Kind::failed;
    std::string reason;

    bool operator==(const Error &) const = default;
};

template <class T> using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Kind kind, std::string reason) { return std::unexpected(Error{kind, std::move(reason)}); }
inline std::unexpected<Error> not_found() { return fail(Kind::not_found, ""); }
inline std::unexpected<Error> invalid(std::string reason) { return fail(Kind::invalid, std::move(reason)); }
inline std::unexpected<Error> denied(std::string reason) { return fail(Kind::denied, std::move(reason)); }
inline std::unexpected<Error> unavailable(std::string reason) { return fail(Kind::unavailable, std::move(reason)); }
inline std::unexpected<Error> failed(std::string reason) { return fail(Kind::failed, std::move(reason)); }

using Text = std::optional<std::string>;

/* The description of a provider, for people. */
struct Info {
    Text title = {}, version = {}, description = {};
};

/* Hints about how a client may use a resource. */
struct Annotations {
    bool for_user = false, for_assistant = false;
    std::optional<double> priority = {}; /* from 0.0 (optional) to 1.0 (effectively required) */
    Text last_modified = {};             /* RFC 3339: 2026-07-28T09:30:00Z */
};

/* A picture: a `data:` or `https:` URI. */
struct Icon {
    std::string src;
    Text mime_type = {};
    std::vector<std::string> sizes = {}; /* "48x48" or "any" */
};

/* Further data: `json` is the JSON text of one value. */
struct Meta {
    std::string key, json;
};

/* One entry of the list. Only `reference` is required; it is also the default name. */
struct Resource {
    std::string reference; /* relative to the mount, percent-encoded: see encode */
    Text name = {}, title = {}, description = {}, mime_type = {};
    std::optional<std::uint64_t> size = {}; /* in bytes */
    std::optional<Annotations> annotations = {};
    std::vector<Icon> icons = {};
    std::vector<Meta> meta = {};
};

/* A family of resources. Only `pattern` is required: an RFC 6570 template such as `cities/{name}`. */
struct Template {
    std::string pattern;
    Text name = {}, title = {}, description = {}, mime_type = {};
    std::optional<Annotations> annotations = {};
    std::vector<Icon> icons = {};
    std::vector<Meta> meta = {};
};

/* The number of entries before a page. Fails for a cursor that is not from Page::of. */
Result<std::size_t> offset_of(const Text &cursor);

/* The failure for a cursor that is not from Page::of. */
std::unexpected<Error> not_ours(const std::string &cursor);

/* One page of the list. */
struct Page {
    std::vector<Resource> resources = {};
    Text next_cursor = {};

    /* The page of at most `size` entries at `cursor`, which is the number of entries before it. `entries` is any range
     * of Resource, a lazy one as well, in the same order in each call; it is consumed only as far as needed. */
    template <class Range> static Result<Page> of(Range &&entries, const Text &cursor, std::size_t size) {
        auto skip = offset_of(cursor);
        if (!skip) return std::unexpected(skip.error());
        Page page;
        std::size_t seen = 0;
        for (auto &&entry : entries) {
            if (seen >= *skip) {
                if (page.resources.size() >= (size > 0 ? size : 1)) {
                    page.next_cursor = std::to_string(seen);
                    return page;
                }
                page.resources.push_back(std::forward<decltype(entry)>(entry));
            }
            seen++;
        }
        if (seen < *skip) return not_ours(*cursor);
        return page;
    }
};

/* One content of a reading: text, or bytes that are not text. */
struct Contents {
    std::string reference;
    Text mime_type = {};
    std::string body;
    bool is_text = true;

    static Contents text(std::string reference, std::string mime_type, std::string body);
    static Contents blob(std::string reference, std::string mime_type, std::string body);
    /* Text when the bytes are UTF-8, a blob otherwise. */
    static Contents bytes(std::string reference, std::string mime_type, std::string body);
};

/* The result of reading a resource: at least one content. One content is a reading: `return Contents::text(...);` */
struct Reading {
    std::vector<Contents> contents = {};
    std::uint32_t fresh_for_ms = 0; /* how long the host may serve this reading from its cache */

    Reading() = default;
    Reading(Contents one) { contents.push_back(std::move(one)); }
};

/* A variable of a template and its value, not percent-encoded and possibly incomplete. */
struct Argument {
    std::string name, value;
};

/* Suggested values of a variable, best first. `total` is the total number, if `values` does not contain all of them. */
struct Suggestions {
    std::vector<std::string> values = {};
    std::optional<std::uint32_t> total = {};

    /* Adds a value if it starts with `text`, whatever the case of its ASCII letters. */
    void add_if(const std::string &text, std::string value);
};

/* ---- Parts ----------------------------------------------------------------------------------------------------- */

/* What a range counts: bytes, or lines of text; for a table, lines are rows. */
enum class Unit { bytes, lines };

/* The part that the caller asks for. Positions are counted from 0. */
struct Range {
    Unit unit = Unit::bytes;
    std::uint64_t start = 0;
    std::optional<std::uint64_t> end = {};  /* the position after the last one; absent: the end of the resource */
    std::optional<std::uint64_t> last = {}; /* so many positions counted back from the end, in place of start and end */

    /* The requested positions in a resource of `total`, as start and end. Both are at most `total`. */
    std::pair<std::uint64_t, std::uint64_t> within(std::uint64_t total) const;
};

/* The part that was read. */
struct Extent {
    Unit unit = Unit::bytes;
    std::uint64_t start = 0, end = 0;        /* `end` is the position after the last one, where the next part starts */
    std::optional<std::uint64_t> total = {}; /* the number of positions, if it is known without reading everything */
    bool more = false;                       /* positions follow after `end` */

    /* The positions from `start` to `end` of a resource of `total`. */
    static Extent of(Unit unit, std::uint64_t start, std::uint64_t end, std::uint64_t total);

    bool operator==(const Extent &) const = default;
};

/* The result of reading a part: one content and its extent. Without an extent, a reading of the whole resource. */
struct PartialReading : Reading {
    std::optional<Extent> extent = {};

    PartialReading() = default;
    PartialReading(Reading whole) : Reading(std::move(whole)) {}
    PartialReading(Contents one) : Reading(std::move(one)) {}
    PartialReading(Contents part, const Extent &extent) : Reading(std::move(part)), extent(extent) {}

    /* The requested part of a reading that is in memory. For a provider that cannot read a part cheaper than the whole. */
    static Result<PartialReading> cut(Reading reading, const std::optional<Range> &range, std::uint64_t most);
};

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

/* A JSON value, or an absent one. It lives until the call is over. */
class Json {
  public:
    Json() = default;
    explicit Json(const belljar_json *value) : value(value) {}

    /* Reads a JSON text, at most 64 values deep. */
    static Result<Json> read(const std::string &text);

    /* False if the value is absent. */
    explicit operator bool() const { return value != nullptr; }
    /* The member of an object, or the item of an array. Absent if there is none, or if this is something else. */
    Json operator[](const char *key) const;
    Json operator[](const std::string &key) const { return (*this)[key.c_str()]; }
    Json operator[](std::size_t index) const;
    /* The number of items or members. */
    std::size_t size() const;
    bool is_null() const;

    /* The value, if it is present and of this type. */
    std::optional<std::int64_t> integer() const;
    std::optional<double> number() const;
    std::optional<bool> boolean() const;
    Text string() const;

  private:
    const belljar_json *value = nullptr;
};

namespace json {

/* A text as a JSON string, with its quotes. */
std::string quote(const std::string &text);

/* The JSON text of a value. */
struct Value {
    std::string text;

    Value(const std::string &string) : text(quote(string)) {}
    Value(std::string_view string) : text(quote(std::string(string))) {}
    Value(const char *string) : text(quote(string)) {}
    Value(std::same_as<bool> auto truth) : text(truth ? "true" : "false") {}
    Value(double number);
    template <std::integral T> requires(!std::same_as<T, bool>) Value(T number) : text(std::to_string(number)) {}
    /* A value that is JSON already. */
    static Value raw(std::string text);

  private:
    Value() = default;
};

/* A JSON object: `json::object({{"month", "May"}, {"days", 31}})`; and an array. */
std::string object(std::initializer_list<std::pair<const char *, Value>> members);
std::string array(const std::vector<Value> &items);

} // namespace json

/* Makes JSON Schemas: `schema::object({schema::integer("month").minimum(1), schema::string("note").optional()})`. */
namespace schema {

class Property {
  public:
    Property(std::string name, std::string rules) : name(std::move(name)), rules(std::move(rules)) {}

    Property minimum(double number) const { return with("minimum", number); }
    Property maximum(double number) const { return with("maximum", number); }
    Property title(const std::string &text) const { return with("title", text); }
    Property description(const std::string &text) const { return with("description", text); }
    /* Such as `email`, `uri`, `date` or `date-time`. */
    Property format(const std::string &text) const { return with("format", text); }
    /* The values that are allowed. */
    Property one_of(const std::vector<json::Value> &values) const { return with("enum", json::Value::raw(json::array(values))); }
    /* It may be left out. Others are required. */
    Property optional() const;
    /* Any further rule of JSON Schema. */
    Property with(const char *rule, const json::Value &value) const;

    std::string name, rules; /* `rules` are the members of the schema, without its braces */
    bool is_required = true;
};

Property string(const std::string &name);
Property integer(const std::string &name);
Property number(const std::string &name);
Property boolean(const std::string &name);
/* An object, or a list, whose schema (of an item) is a JSON text. */
Property nested(const std::string &name, const std::string &schema);
Property list(const std::string &name, const std::string &schema_of_item);

std::string object(const std::vector<Property> &properties);

} // namespace schema

/* ---- What tools and prompts share ------------------------------------------------------------------------------ */

/* A picture or a sound: its bytes, not encoded. */
struct Image {
    std::string mime_type, data;
};
struct Audio {
    std::string mime_type, data;
};

/* A resource of this mount. */
struct Link {
    std::string reference;
    Text name = {}, title = {}, description = {}, mime_type = {};
    std::optional<std::uint64_t> size = {};
};

/* One piece of content: text, a picture, a sound, a link, or a resource of this mount with its contents. */
struct Block {
    std::variant<std::string, Image, Audio, Link, Contents> body;
    std::optional<Annotations> annotations = {};
};

/* A question for the person in front of the client. It must not ask for secrets. */
struct Question {
    std::string key;     /* letters, digits, `_` and `-` */
    std::string message; /* for people */
    std::string form;    /* a JSON Schema: a flat object */
};

/* Questions, instead of a result: one to eight. The answers come to a new instance, with the same arguments. Do nothing
 * before that cannot be done twice, and look at `can_ask`. */
struct Ask {
    std::vector<Question> questions = {};
    Text state = {}; /* what the next call must know; no client can read or change it */
};

/* The answer to a question. */
enum class Action { accept, decline, cancel };
struct Answer {
    std::string key;
    Action action = Action::accept;
    Json content = {}; /* the filled form, if the action is accept */
};

/* A call of a tool or a prompt. `{}` is a client that cannot ask. */
struct Call {
    Json arguments = {};   /* an object; those of a prompt are texts */
    bool can_ask = false;  /* the client can ask a person */
    std::vector<Answer> answers = {}; /* to questions of an earlier call */
    Text state = {};       /* the state of that call */

    /* The answer to a question, or nullptr if it was not asked yet. */
    const Answer *answer(std::string_view key) const;
};

/* Tells the caller that `done` of `total` is done, in any unit. `done` must grow; `total` 0 is unknown. Does nothing without
 * the interface progress, or if the caller does not want to know. */
void report(double done, double total = 0, const Text &note = std::nullopt);

/* ---- Tools ----------------------------------------------------------------------------------------------------- */

/* What a tool does to the world. A claim: the host compares it with the grants of the mount. */
enum class Effect {
    destroys, /* it may change or delete something */
    adds,     /* it adds something, and changes or deletes nothing */
    reads     /* it changes nothing */
};

/* The result of a tool. */
struct ToolResult {
    std::vector<Block> content = {}; /* for the model */
    Text structured = {};            /* for programs: a JSON object that fits `output` */
    bool is_error = false;           /* the call failed in a way that the model can correct, as a failure does, too */
    std::vector<Meta> meta = {};

    static ToolResult text(std::string text, Text structured = std::nullopt);
};
using ToolOutcome = std::variant<ToolResult, Ask>;

/* A page that shows the results of a tool. */
struct View {
    std::string page;      /* the reference of the page */
    bool app_only = false; /* only the page may call the tool */
};

/* A tool: a function that a model calls. */
struct Tool {
    std::string name; /* letters, digits, `_` and `-` */
    Text title = {};
    std::string description;                /* for models */
    std::string input = schema::object({}); /* the JSON Schema of the arguments, which the host checks */
    Text output = {};                       /* the JSON Schema of `structured` */
    Effect effect = Effect::destroys;
    bool idempotent = false;   /* a second call with the same arguments changes nothing more */
    bool closed_world = false; /* it reaches nothing beyond the mount's own data */
    std::optional<View> view = {};
    std::vector<Icon> icons = {};
    std::vector<Meta> meta = {};
    std::function<Result<ToolOutcome>(const Call &)> call;
};

/* ---- Prompts --------------------------------------------------------------------------------------------------- */

enum class Role { user, assistant };

struct Message {
    Role role = Role::user;
    Block block;
};

/* The messages of a prompt, at least one. */
struct Messages {
    Text description = {}; /* what these messages are for */
    std::vector<Message> messages = {};

    /* One text of the person in front of the client. */
    static Messages user(std::string text, Text description = std::nullopt);
};
using PromptOutcome = std::variant<Messages, Ask>;

/* An argument of a prompt. Its values are texts. */
struct PromptArgument {
    std::string name;
    Text title = {}, description = {};
    bool required = false;
};

/* A prompt: messages that a person chooses, to begin a conversation. */
struct Prompt {
    std::string name; /* letters, digits, `_` and `-` */
    Text title = {};
    std::string description; /* for people */
    std::vector<PromptArgument> arguments = {};
    std::vector<Icon> icons = {};
    std::vector<Meta> meta = {};
    std::function<Result<PromptOutcome>(const Call &)> get;
    /* Suggests values for an argument; the second parameter are those that already have one. Optional. */
    std::function<Result<Suggestions>(const Argument &, const std::vector<Argument> &)> complete = {};
};

/* ---- Skills ---------------------------------------------------------------------------------------------------- */

/* A directory with a SKILL.md that tells a model how to do something. `read` serves its files. */
struct Skill {
    std::string root;                    /* without a slash at its end; its last segment is the name in SKILL.md */
    std::vector<std::string> files = {}; /* the references of all files below it, SKILL.md included */
};
struct SkillPage {
    std::vector<Skill> skills = {};
    Text next_cursor = {};
};

/* ---- The provider ---------------------------------------------------------------------------------------------- */

/* The base class of your provider. */
class Provider {
  public:
    virtual ~Provider() = default;

    /* Describes the provider. Must work without any grant. */
    virtual Info describe() = 0;
    /* Lists the resources that are worth listing, a page at a time; no cursor is the first page. */
    virtual Result<Page> list(const Text &cursor) = 0;
    /* Lists the templates, all at once. */
    virtual Result<std::vector<Template>> templates() { return std::vector<Template>{}; }
    /* Reads a resource. `reference` is valid and percent-encoded; "" is the mount itself. */
    virtual Result<Reading> read(const std::string &reference) = 0;

    /* For the interface completion: suggests values for a variable. */
    virtual Result<Suggestions> complete(const std::string &pattern, const Argument &argument,
                                         const std::vector<Argument> &resolved);
    /* For the interface revisions: any short text. It differs from an earlier one if the list, or the contents of the
     * resource, differ. */
    virtual Result<std::string> catalog_revision();
    virtual Result<std::string> resource_revision(const std::string &reference);

    /* For the interface parts. The host calls `read_part` in place of `read`: without a range, both must give the same. It
     * reads the whole resource if it has at most `most` bytes, else its first part. A part has at most `most` bytes and ends
     * at the end of a line or of a character. By default, cuts what `read` gives. */
    virtual Result<PartialReading> read_part(const std::string &reference, const std::optional<Range> &range,
                                             std::uint64_t most);
    /* Lists the resources directly below a reference, a page at a time; "" is the mount itself. A directory has the media
     * type "inode/directory", and its reference ends with a slash. By default, there are no directories. */
    virtual Result<Page> list_below(const std::string &reference, const Text &cursor);

    /* For the interface tools: all tools. Must work without any grant. */
    virtual std::vector<Tool> tools();
    /* For the interface prompts: all prompts. Must work without any grant. */
    virtual std::vector<Prompt> prompts();
    /* For the interface skills: a page of the list, and the skill in the directory `root`, listed or not. */
    virtual Result<SkillPage> list_skills(const Text &cursor);
    virtual Result<Skill> get_skill(const std::string &root);
};

/* Makes the provider. You write this function. */
std::unique_ptr<Provider> open();

/* Call a tool, make the messages of a prompt, and complete its argument, as belljar does. For tests. */
Result<ToolOutcome> call_tool(Provider &provider, const std::string &name, const std::string &arguments, Call call = {});
Result<PromptOutcome> get_prompt(Provider &provider, const std::string &name, const std::vector<Argument> &arguments,
                                 Call call = {});
Result<Suggestions> complete_prompt(Provider &provider, const std::string &name, const Argument &argument,
                                    const std::vector<Argument> &resolved = {});

/* Percent-encodes one segment of a path; a `/` becomes `%2F`. */
std::string encode(const std::string &segment);

/* Percent-decodes once. Invalid if the result is not UTF-8. */
Result<std::string> decode(const std::string &segment);

/* The decoded value of `name` in the query of a reference such as `search?q=bell`. */
Text query(const std::string &reference, const std::string &name);

/* True if these bytes are UTF-8. */
bool is_utf8(std::string_view bytes);

/* True if a directory is granted, or is below a granted one. */
bool is_directory(const std::string &path);

/* A regular file of a directory. */
struct File {
    std::string name;
    std::uint64_t size = 0;
};

/* The regular files of a directory, by the bytes of their names. */
Result<std::vector<File>> list_files(const std::string &directory);

/* Reads a regular file whole. Not found if the path is absent or a directory. */
Result<std::string> read_file(const std::string &path);

} // namespace belljar
