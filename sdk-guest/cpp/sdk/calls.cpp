/* Tools, prompts and skills: implements that part of belljar.hpp, and of belljar.h, with the C SDK. */
#include "internal.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace belljar {

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

Result<Json> Json::read(const std::string &text) {
    if (text.contains('\0')) return invalid("the JSON text contains a NUL");
    const belljar_json *value = belljar_json_read(text.c_str());
    if (value == nullptr) return last(BELLJAR_INVALID);
    return Json(value);
}

Json Json::operator[](const char *key) const { return Json(belljar_member(value, key)); }

Json Json::operator[](std::size_t index) const { return Json(belljar_item(value, index)); }

std::size_t Json::size() const { return value != nullptr ? value->length : 0; }

bool Json::is_null() const { return value != nullptr && value->kind == BELLJAR_NULL; }

std::optional<std::int64_t> Json::integer() const {
    if (value == nullptr || value->kind != BELLJAR_NUMBER || !value->is_integer) return std::nullopt;
    return value->integer;
}

std::optional<double> Json::number() const {
    if (value == nullptr || value->kind != BELLJAR_NUMBER) return std::nullopt;
    return value->number;
}

std::optional<bool> Json::boolean() const {
    if (value == nullptr || value->kind != BELLJAR_BOOL) return std::nullopt;
    return value->boolean;
}

Text Json::string() const {
    if (value == nullptr || value->kind != BELLJAR_STRING) return std::nullopt;
    return value->string;
}

namespace json {

std::string quote(const std::string &text) { return belljar_quote(text.c_str()); }

Value::Value(double number) {
    if (!std::isfinite(number)) {
        text = "null";
        return;
    }
    /* The shortest text that reads as the same number. std::to_chars would double the component. */
    char digits[32];
    for (int precision = 1; precision <= 17; precision++) {
        std::snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (std::strtod(digits, nullptr) == number) break;
    }
    text = digits;
}

Value Value::raw(std::string text) {
    Value value;
    value.text = std::move(text);
    return value;
}

std::string object(std::initializer_list<std::pair<const char *, Value>> members) {
    std::string text;
    for (const auto &[key, value] : members) text += (text.empty() ? "" : ",") + quote(key) + ":" + value.text;
    return "{" + text + "}";
}

std::string array(const std::vector<Value> &items) {
    std::string text;
    for (const Value &item : items) text += (text.empty() ? "" : ",") + item.text;
    return "[" + text + "]";
}

} // namespace json

namespace schema {

Property Property::optional() const {
    Property changed = *this;
    changed.is_required = false;
    return changed;
}

Property Property::with(const char *rule, const json::Value &value) const {
    Property changed = *this;
    changed.rules += (rules.empty() ? "" : ",") + json::quote(rule) + ":" + value.text;
    return changed;
}

Property string(const std::string &name) { return {name, "\"type\":\"string\""}; }
Property integer(const std::string &name) { return {name, "\"type\":\"integer\""}; }
Property number(const std::string &name) { return {name, "\"type\":\"number\""}; }
Property boolean(const std::string &name) { return {name, "\"type\":\"boolean\""}; }

Property nested(const std::string &name, const std::string &schema) {
    std::size_t first = schema.find('{'), end = schema.rfind('}');
    bool is_object = first != schema.npos && end != schema.npos && first < end;
    return {name, is_object ? schema.substr(first + 1, end - first - 1) : ""};
}

Property list(const std::string &name, const std::string &schema_of_item) {
    return Property(name, "\"type\":\"array\"").with("items", json::Value::raw(schema_of_item));
}

std::string object(const std::vector<Property> &properties) {
    std::string members, required;
    for (const Property &property : properties) {
        members += (members.empty() ? "" : ",") + json::quote(property.name) + ":{" + property.rules + "}";
        if (property.is_required) required += (required.empty() ? "" : ",") + json::quote(property.name);
    }
    return "{\"type\":\"object\",\"properties\":{" + members + "}" + (required.empty() ? "" : ",\"required\":[" + required + "]") + "}";
}

} // namespace schema

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

const Answer *Call::answer(std::string_view key) const {
    for (const Answer &answer : answers)
        if (answer.key == key) return &answer;
    return nullptr;
}

void report(double done, double total, const Text &note) { belljar_report(done, total, or_null(note)); }

ToolResult ToolResult::text(std::string text, Text structured) {
    return {.content = {Block{std::move(text)}}, .structured = std::move(structured)};
}

Messages Messages::user(std::string text, Text description) {
    return {.description = std::move(description), .messages = {{Role::user, {std::move(text)}}}};
}

void Suggestions::add_if(const std::string &text, std::string value) {
    belljar_suggestions found = {};
    belljar_suggest_if(&found, text.c_str(), value.c_str());
    if (found.length > 0) values.push_back(std::move(value));
}

std::vector<Tool> Provider::tools() { return {}; }

std::vector<Prompt> Provider::prompts() { return {}; }

Result<SkillPage> Provider::list_skills(const Text &) { return SkillPage{}; }

Result<Skill> Provider::get_skill(const std::string &) { return not_found(); }

Result<ToolOutcome> call_tool(Provider &provider, const std::string &name, const std::string &arguments, Call call) {
    for (const Tool &tool : provider.tools()) {
        if (tool.name != name) continue;
        auto read = Json::read(arguments);
        if (!read) return std::unexpected(read.error());
        call.arguments = *read;
        return tool.call(call);
    }
    return not_found();
}

Result<PromptOutcome> get_prompt(Provider &provider, const std::string &name, const std::vector<Argument> &arguments,
                                 Call call) {
    for (const Prompt &prompt : provider.prompts()) {
        if (prompt.name != name) continue;
        std::string object;
        for (const auto &[key, value] : arguments)
            object += (object.empty() ? "" : ",") + json::quote(key) + ":" + json::quote(value);
        auto read = Json::read("{" + object + "}");
        if (!read) return std::unexpected(read.error());
        call.arguments = *read;
        for (const PromptArgument &argument : prompt.arguments)
            if (argument.required && !call.arguments[argument.name])
                return invalid("the prompt \"" + name + "\" needs the argument \"" + argument.name + "\"");
        return prompt.get(call);
    }
    return not_found();
}

Result<Suggestions> complete_prompt(Provider &provider, const std::string &name, const Argument &argument,
                                    const std::vector<Argument> &resolved) {
    for (const Prompt &prompt : provider.prompts())
        if (prompt.name == name) return prompt.complete ? prompt.complete(argument, resolved) : Suggestions{};
    return not_found();
}

namespace {

/* A call, with the answers that fit: the host has checked them, so others are as if they were not given. */
Call call_of(const belljar_call *from) {
    Call to = {.can_ask = from->can_ask, .state = text_of(from->state)};
    for (std::size_t i = 0; i < from->answers_length; i++) {
        const belljar_answer &answer = from->answers[i];
        Json content = Json(answer.content != nullptr ? belljar_json_read(answer.content) : nullptr);
        to.answers.push_back({answer.key, static_cast<Action>(answer.action), content});
    }
    return to;
}

std::vector<Argument> arguments_of(const belljar_argument *from, std::size_t length) {
    std::vector<Argument> to;
    for (std::size_t i = 0; i < length; i++) to.push_back({from[i].name, from[i].value});
    return to;
}

void ask(const Ask &from, belljar_questions &to) {
    for (const Question &question : from.questions)
        belljar_ask(&to, question.key.c_str(), question.message.c_str(), question.form.c_str());
    if (from.state) to.state = kept(*from.state);
}

/* The C struct of a block. It points into the block. */
struct Shape {
    belljar_block &to;

    void operator()(const std::string &text) const { to.text = text.c_str(); }
    void operator()(const Image &image) const { media(BELLJAR_IMAGE, image.mime_type, image.data); }
    void operator()(const Audio &audio) const { media(BELLJAR_AUDIO, audio.mime_type, audio.data); }
    void operator()(const Link &link) const {
        to.kind = BELLJAR_LINK;
        to.reference = link.reference.c_str();
        to.name = or_null(link.name);
        to.title = or_null(link.title);
        to.description = or_null(link.description);
        to.mime_type = or_null(link.mime_type);
        if (link.size) to.size = BELLJAR_SOME(*link.size);
    }
    void operator()(const Contents &contents) const {
        to.kind = contents.is_text ? BELLJAR_EMBEDDED_TEXT : BELLJAR_EMBEDDED_BLOB;
        to.reference = contents.reference.c_str();
        to.mime_type = or_null(contents.mime_type);
        to.text = contents.is_text ? contents.body.c_str() : nullptr;
        to.data = contents.is_text ? nullptr : contents.body.data();
        to.length = contents.body.size();
    }

  private:
    void media(belljar_block_kind kind, const std::string &mime_type, const std::string &data) const {
        to.kind = kind;
        to.mime_type = mime_type.c_str();
        to.data = data.data();
        to.length = data.size();
    }
};

belljar_block shape_of(const Block &block, const Hints &hints) {
    belljar_block shape = {};
    std::visit(Shape{shape}, block.body);
    shape.annotations = hints.get();
    return shape;
}

void add(const Skill &from, belljar_skills *to) {
    belljar_skill_add(to, from.root.c_str());
    for (const std::string &file : from.files) belljar_skill_file(to, file.c_str());
}

} // namespace
} // namespace belljar

/* ---- The functions that belljar.h and component.c require ------------------------------------------------------- */

using namespace belljar;

extern "C" {

belljar_status provider_tools(belljar_tools *tools) {
    auto provider = belljar::open();
    for (const Tool &from : provider->tools()) {
        belljar_tool to = {};
        Pictures pictures(from, to);
        to.name = from.name.c_str();
        to.title = or_null(from.title);
        to.description = from.description.c_str();
        to.input = from.input.c_str();
        to.output = or_null(from.output);
        to.effect = static_cast<belljar_effect>(from.effect);
        to.idempotent = from.idempotent;
        to.closed_world = from.closed_world;
        if (from.view) {
            to.page = from.view->page.c_str();
            to.app_only = from.view->app_only;
        }
        belljar_tool_add(tools, &to);
    }
    return BELLJAR_OK;
}

belljar_status belljar_call_tool(const char *name, const char *arguments, const belljar_call *call, belljar_result *result) {
    auto provider = belljar::open();
    auto outcome = call_tool(*provider, name, arguments, call_of(call));
    if (!outcome) return status_of(outcome.error());
    if (const Ask *questions = std::get_if<Ask>(&*outcome)) {
        ask(*questions, result->ask);
        return BELLJAR_OK;
    }
    const ToolResult &done = std::get<ToolResult>(*outcome);
    for (const Block &from : done.content) {
        Hints hints(from.annotations);
        belljar_block to = shape_of(from, hints);
        belljar_block_add(result, &to);
    }
    if (done.structured) result->structured = kept(*done.structured);
    result->is_error = done.is_error;
    result->meta = belljar_copy_meta(meta_of(done.meta).data(), done.meta.size());
    result->meta_length = done.meta.size();
    return BELLJAR_OK;
}

belljar_status provider_prompts(belljar_prompts *prompts) {
    auto provider = belljar::open();
    for (const Prompt &from : provider->prompts()) {
        belljar_prompt to = {};
        Pictures pictures(from, to);
        std::vector<belljar_prompt_argument> arguments;
        for (const PromptArgument &given : from.arguments)
            arguments.push_back({given.name.c_str(), or_null(given.title), or_null(given.description), given.required});
        to.name = from.name.c_str();
        to.title = or_null(from.title);
        to.description = from.description.c_str();
        to.arguments = arguments.data();
        to.arguments_length = arguments.size();
        belljar_prompt_add(prompts, &to);
    }
    return BELLJAR_OK;
}

belljar_status belljar_get_prompt(const char *name, const belljar_argument *arguments, size_t length,
                                  const belljar_call *call, belljar_messages *messages) {
    auto provider = belljar::open();
    auto outcome = get_prompt(*provider, name, arguments_of(arguments, length), call_of(call));
    if (!outcome) return status_of(outcome.error());
    if (const Ask *questions = std::get_if<Ask>(&*outcome)) {
        ask(*questions, messages->ask);
        return BELLJAR_OK;
    }
    const Messages &done = std::get<Messages>(*outcome);
    if (done.description) messages->description = kept(*done.description);
    for (const Message &from : done.messages) {
        Hints hints(from.block.annotations);
        belljar_block to = shape_of(from.block, hints);
        belljar_message_add(messages, static_cast<belljar_role>(from.role), &to);
    }
    return BELLJAR_OK;
}

belljar_status belljar_complete_prompt(const char *name, const belljar_argument *argument,
                                       const belljar_argument *resolved, size_t resolved_length,
                                       belljar_suggestions *suggestions) {
    auto provider = belljar::open();
    auto found = complete_prompt(*provider, name, {argument->name, argument->value}, arguments_of(resolved, resolved_length));
    if (!found) return status_of(found.error());
    for (const std::string &value : found->values) belljar_suggest(suggestions, value.c_str());
    if (found->total) suggestions->total = BELLJAR_SOME(*found->total);
    return BELLJAR_OK;
}

belljar_status provider_list_skills(const char *cursor, belljar_skills *skills) {
    auto page = belljar::open()->list_skills(text_of(cursor));
    if (!page) return status_of(page.error());
    for (const Skill &skill : page->skills) add(skill, skills);
    if (page->next_cursor) skills->next_cursor = kept(*page->next_cursor);
    return BELLJAR_OK;
}

belljar_status provider_get_skill(const char *root, belljar_skills *skills) {
    auto skill = belljar::open()->get_skill(root);
    if (!skill) return status_of(skill.error());
    add(*skill, skills);
    return BELLJAR_OK;
}
}
