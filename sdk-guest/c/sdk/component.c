/* Makes a component of a provider: connects the functions of `wit-bindgen c` with those of belljar.h. The only file with
 * generated names.
 *
 * Answers are handed over without a copy: their strings come from malloc, and the generated post-return functions free
 * them. A string that is not UTF-8 would end the call in a trap, so it is detected first and becomes a failure. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "provider.h"

typedef belljar_provider_types_provider_error_t generated_error;

/* The name of a value that is not UTF-8, or NULL. */
static const char *broken;

static provider_string_t of_length(const char *string, size_t length, const char *what) {
    if (!belljar_is_utf8(string, length)) broken = what;
    return (provider_string_t){(uint8_t *)(uintptr_t)string, length};
}

static provider_string_t string(const char *string, const char *what) {
    return string != NULL ? of_length(string, strlen(string), what) : (provider_string_t){NULL, 0};
}

static provider_option_string_t optional(const char *text, const char *what) {
    return (provider_option_string_t){text != NULL, string(text, what)};
}

static const char *copied(const char *text) { return text != NULL ? belljar_format("%s", text) : NULL; }

/* Memory that a post-return function frees. Unlike memory of belljar_alloc, the SDK does not track it. */
static void *array(size_t length, size_t element) {
    void *made = calloc(length > 0 ? length : 1, element);
    if (made == NULL) abort();
    return made;
}

/* An argument as a C string; NULL if it contains a NUL. */
static const char *received(const provider_string_t *from) {
    if (memchr(from->ptr, '\0', from->len) != NULL) return NULL;
    return belljar_format("%.*s", (int)from->len, from->len > 0 ? (const char *)from->ptr : "");
}

/* True for success, as the generated code expects; otherwise fills in the error. */
static bool ended(belljar_status status, generated_error *error) {
    if (status == BELLJAR_OK && broken != NULL) status = belljar_fail(BELLJAR_FAILED, "%s is not UTF-8", broken);
    if (status == BELLJAR_OK) return true;
    const char *raw = belljar_reason();
    provider_string_t reason = string(copied(belljar_is_utf8(raw, strlen(raw)) ? raw : "(not UTF-8)"), "the reason");
    switch (status) {
    case BELLJAR_NOT_FOUND:
        error->tag = BELLJAR_PROVIDER_TYPES_PROVIDER_ERROR_NOT_FOUND;
        break;
    case BELLJAR_INVALID:
        error->tag = BELLJAR_PROVIDER_TYPES_PROVIDER_ERROR_INVALID;
        error->val.invalid = reason;
        break;
    case BELLJAR_DENIED:
        error->tag = BELLJAR_PROVIDER_TYPES_PROVIDER_ERROR_DENIED;
        error->val.denied = reason;
        break;
    case BELLJAR_UNAVAILABLE:
        error->tag = BELLJAR_PROVIDER_TYPES_PROVIDER_ERROR_UNAVAILABLE;
        error->val.unavailable = reason;
        break;
    default:
        error->tag = BELLJAR_PROVIDER_TYPES_PROVIDER_ERROR_FAILED;
        error->val.failed = reason;
        break;
    }
    return false;
}

static belljar_provider_types_option_annotations_t annotations(const belljar_annotations *from) {
    belljar_provider_types_option_annotations_t to = {0};
    if (from == NULL) return to;
    to.is_some = true;
    to.val.audience.ptr = array(2, sizeof *to.val.audience.ptr);
    if (from->for_user) to.val.audience.ptr[to.val.audience.len++] = BELLJAR_PROVIDER_TYPES_ROLE_USER;
    if (from->for_assistant) to.val.audience.ptr[to.val.audience.len++] = BELLJAR_PROVIDER_TYPES_ROLE_ASSISTANT;
    to.val.priority = (provider_option_f64_t){from->priority.some, from->priority.value};
    to.val.last_modified = optional(from->last_modified, "a time");
    return to;
}

static provider_list_string_t words(const char *text) {
    provider_list_string_t list = {0};
    if (text == NULL) return list;
    list.ptr = array(strlen(text) / 2 + 1, sizeof *list.ptr);
    while (*(text += strspn(text, " ")) != '\0') {
        size_t length = strcspn(text, " ");
        list.ptr[list.len++] = string(belljar_format("%.*s", (int)length, text), "the size of an icon");
        text += length;
    }
    return list;
}

static belljar_provider_types_list_icon_t icons(const belljar_icon *from, size_t length) {
    belljar_provider_types_list_icon_t list = {array(length, sizeof *list.ptr), length};
    for (size_t i = 0; i < length; i++)
        list.ptr[i] = (belljar_provider_types_icon_t){string(from[i].src, "the source of an icon"),
                                                      optional(from[i].mime_type, "a media type"), words(from[i].sizes)};
    return list;
}

static belljar_provider_types_list_tuple2_string_json_t metadata(const belljar_meta *from, size_t length) {
    belljar_provider_types_list_tuple2_string_json_t list = {array(length, sizeof *list.ptr), length};
    for (size_t i = 0; i < length; i++)
        list.ptr[i] = (belljar_provider_types_tuple2_string_json_t){string(from[i].key, "a key"),
                                                                    string(from[i].json, "the JSON of a key")};
    return list;
}

#if defined(BELLJAR_COMPLETION) || defined(BELLJAR_PROMPTS) || defined(BELLJAR_SKILLS)

static provider_list_string_t strings(const char *const *from, size_t length, const char *what) {
    provider_list_string_t list = {array(length, sizeof *list.ptr), length};
    for (size_t i = 0; i < length; i++) list.ptr[i] = string(from[i], what);
    return list;
}

#endif

void exports_belljar_provider_resource_provider_describe(
    exports_belljar_provider_resource_provider_provider_info_t *ret) {
    belljar_info info = provider_describe();
    ret->title = optional(copied(info.title), "the title");
    ret->version = optional(copied(info.version), "the version");
    ret->description = optional(copied(info.description), "the description");
    /* This export cannot fail, and a malformed description must not trap: it is left out. */
    if (broken != NULL) memset(ret, 0, sizeof *ret);
}

/* The entries of a page. */
static belljar_provider_types_resource_info_t *resources(const belljar_page *page) {
    belljar_provider_types_resource_info_t *list = array(page->length, sizeof *list);
    for (size_t i = 0; i < page->length; i++) {
        const belljar_resource *entry = &page->resources[i];
        list[i] = (belljar_provider_types_resource_info_t){
            string(entry->reference, "a reference"),
            string(entry->name, "a name"),
            optional(entry->title, "a title"),
            optional(entry->description, "a description"),
            optional(entry->mime_type, "a media type"),
            {entry->size.some, entry->size.value},
            annotations(entry->annotations),
            icons(entry->icons, entry->icons_length),
            metadata(entry->meta, entry->meta_length),
        };
    }
    return list;
}

/* The contents of a reading. */
static belljar_provider_types_contents_t *contents(const belljar_reading *reading) {
    belljar_provider_types_contents_t *list = array(reading->length, sizeof *list);
    for (size_t i = 0; i < reading->length; i++) {
        const belljar_contents *from = &reading->contents[i];
        list[i].reference = string(from->reference, "a reference");
        list[i].mime_type = optional(from->mime_type, "a media type");
        list[i].meta = metadata(NULL, 0);
        if (from->is_text) {
            list[i].body.tag = BELLJAR_PROVIDER_TYPES_BODY_TEXT;
            list[i].body.val.text = of_length(from->data, from->length, "the text");
        } else {
            list[i].body.tag = BELLJAR_PROVIDER_TYPES_BODY_BLOB;
            list[i].body.val.blob = (provider_list_u8_t){(uint8_t *)from->data, from->length};
        }
    }
    return list;
}

bool exports_belljar_provider_resource_provider_list_resources(
    provider_string_t *cursor, exports_belljar_provider_resource_provider_resource_page_t *ret, generated_error *err) {
    const char *from = cursor != NULL ? received(cursor) : NULL;
    if (cursor != NULL && from == NULL)
        return ended(belljar_fail(BELLJAR_INVALID, "the cursor holds a NUL and is not one of this provider's"), err);

    belljar_page page = {0};
    belljar_status status = provider_list(from, &page);
    if (status != BELLJAR_OK) return ended(status, err);

    ret->resources.ptr = resources(&page);
    ret->resources.len = page.length;
    ret->next_cursor = optional(copied(page.next_cursor), "the cursor");
    return ended(BELLJAR_OK, err);
}

bool exports_belljar_provider_resource_provider_list_templates(
    exports_belljar_provider_resource_provider_list_template_info_t *ret, generated_error *err) {
    belljar_templates templates = {0};
    belljar_status status = provider_templates(&templates);
    if (status != BELLJAR_OK) return ended(status, err);

    ret->ptr = array(templates.length, sizeof *ret->ptr);
    ret->len = templates.length;
    for (size_t i = 0; i < templates.length; i++) {
        const belljar_template *entry = &templates.templates[i];
        ret->ptr[i] = (belljar_provider_types_template_info_t){
            string(entry->pattern, "a template"),
            string(entry->name, "a name"),
            optional(entry->title, "a title"),
            optional(entry->description, "a description"),
            optional(entry->mime_type, "a media type"),
            annotations(entry->annotations),
            icons(entry->icons, entry->icons_length),
            metadata(entry->meta, entry->meta_length),
        };
    }
    return ended(BELLJAR_OK, err);
}

bool exports_belljar_provider_resource_provider_read(provider_string_t *reference,
                                                     exports_belljar_provider_resource_provider_reading_t *ret,
                                                     generated_error *err) {
    const char *asked = received(reference);
    if (asked == NULL) return ended(BELLJAR_NOT_FOUND, err);

    belljar_reading reading = {0};
    belljar_status status = provider_read(asked, &reading);
    if (status != BELLJAR_OK) return ended(status, err);

    ret->contents.ptr = contents(&reading);
    ret->contents.len = reading.length;
    ret->fresh_for = (provider_option_u32_t){reading.fresh_for_ms > 0, reading.fresh_for_ms};
    return ended(BELLJAR_OK, err);
}

#ifdef BELLJAR_COMPLETION

bool exports_belljar_provider_completion_complete(provider_string_t *pattern,
                                                  exports_belljar_provider_completion_argument_t *argument,
                                                  exports_belljar_provider_completion_list_argument_t *resolved,
                                                  exports_belljar_provider_completion_suggestions_t *ret,
                                                  generated_error *err) {
    belljar_argument asked = {received(&argument->name), received(&argument->value)};
    belljar_argument *others = belljar_alloc(resolved->len * sizeof *others);
    bool whole = asked.name != NULL && asked.value != NULL;
    for (size_t i = 0; i < resolved->len; i++) {
        others[i] = (belljar_argument){received(&resolved->ptr[i].name), received(&resolved->ptr[i].value)};
        whole = whole && others[i].name != NULL && others[i].value != NULL;
    }
    if (!whole) return ended(belljar_fail(BELLJAR_INVALID, "an argument holds a NUL"), err);

    belljar_suggestions suggestions = {0};
    belljar_status status = provider_complete(received(pattern), &asked, others, resolved->len, &suggestions);
    if (status != BELLJAR_OK) return ended(status, err);

    ret->values = strings(suggestions.values, suggestions.length, "a value");
    ret->total = (provider_option_u32_t){suggestions.total.some, (uint32_t)suggestions.total.value};
    return ended(BELLJAR_OK, err);
}

#endif

#ifdef BELLJAR_REVISIONS

bool exports_belljar_provider_revisions_catalog_revision(provider_string_t *ret, generated_error *err) {
    const char *revision = "";
    belljar_status status = provider_catalog_revision(&revision);
    if (status != BELLJAR_OK) return ended(status, err);
    *ret = string(copied(revision), "the revision");
    return ended(BELLJAR_OK, err);
}

void exports_belljar_provider_revisions_resource_revisions(
    exports_belljar_provider_revisions_list_reference_t *references,
    exports_belljar_provider_revisions_list_result_string_provider_error_t *ret) {
    ret->ptr = array(references->len, sizeof *ret->ptr);
    ret->len = references->len;
    for (size_t i = 0; i < references->len; i++) {
        const char *reference = received(&references->ptr[i]), *revision = "";
        belljar_status status =
            reference != NULL ? provider_resource_revision(reference, &revision) : BELLJAR_NOT_FOUND;
        broken = NULL;
        if (status == BELLJAR_OK) ret->ptr[i].val.ok = string(copied(revision), "the revision");
        ret->ptr[i].is_err = !ended(status, &ret->ptr[i].val.err);
    }
}

#endif

#ifdef BELLJAR_PARTS

bool exports_belljar_provider_parts_read_part(provider_string_t *reference,
                                              exports_belljar_provider_parts_range_t *range, uint64_t most,
                                              exports_belljar_provider_parts_partial_reading_t *ret,
                                              generated_error *err) {
    const char *asked = received(reference);
    if (asked == NULL) return ended(BELLJAR_NOT_FOUND, err);
    belljar_range given = {0};
    if (range != NULL) {
        given.unit = range->unit == EXPORTS_BELLJAR_PROVIDER_PARTS_UNIT_LINES ? BELLJAR_LINES : BELLJAR_BYTES;
        if (range->positions.tag == EXPORTS_BELLJAR_PROVIDER_PARTS_POSITIONS_LAST) {
            given.last = (belljar_size)BELLJAR_SOME(range->positions.val.last);
        } else {
            given.start = range->positions.val.span.start;
            given.end = (belljar_size){range->positions.val.span.end.is_some, range->positions.val.span.end.val};
        }
    }

    belljar_reading reading = {0};
    belljar_extent extent = {0};
    belljar_status status = provider_read_part(asked, range != NULL ? &given : NULL, most, &reading, &extent);
    if (status != BELLJAR_OK) return ended(status, err);

    ret->contents.ptr = contents(&reading);
    ret->contents.len = reading.length;
    ret->fresh_for = (provider_option_u32_t){reading.fresh_for_ms > 0, reading.fresh_for_ms};
    ret->extent.is_some = extent.some;
    ret->extent.val = (exports_belljar_provider_parts_extent_t){
        extent.unit == BELLJAR_LINES ? EXPORTS_BELLJAR_PROVIDER_PARTS_UNIT_LINES
                                     : EXPORTS_BELLJAR_PROVIDER_PARTS_UNIT_BYTES,
        extent.start,
        extent.end,
        {extent.total.some, extent.total.value},
        extent.more,
    };
    return ended(BELLJAR_OK, err);
}

bool exports_belljar_provider_parts_list_below(provider_string_t *reference, provider_string_t *cursor,
                                               exports_belljar_provider_parts_below_page_t *ret,
                                               generated_error *err) {
    const char *asked = received(reference), *from = cursor != NULL ? received(cursor) : NULL;
    if (asked == NULL) return ended(BELLJAR_NOT_FOUND, err);
    if (cursor != NULL && from == NULL)
        return ended(belljar_fail(BELLJAR_INVALID, "the cursor holds a NUL and is not one of this provider's"), err);

    belljar_page page = {0};
    belljar_status status = provider_list_below(asked, from, &page);
    if (status != BELLJAR_OK) return ended(status, err);
    ret->resources.ptr = resources(&page);
    ret->resources.len = page.length;
    ret->next_cursor = optional(copied(page.next_cursor), "the cursor");
    return ended(BELLJAR_OK, err);
}

#endif

#if defined(BELLJAR_TOOLS) || defined(BELLJAR_PROMPTS)

/* False if a text contains a NUL. */
static bool receive(const belljar_provider_call_types_context_t *from, belljar_call *to) {
    belljar_answer *answers = belljar_alloc(from->answers.len * sizeof *answers);
    *to = (belljar_call){.can_ask = from->can_ask, .answers = answers, .answers_length = from->answers.len};
    bool whole = true;
    for (size_t i = 0; i < from->answers.len; i++) {
        const belljar_provider_call_types_answer_t *answer = &from->answers.ptr[i];
        answers[i] = (belljar_answer){.key = received(&answer->key), .action = (belljar_action)answer->action};
        if (answer->content.is_some) answers[i].content = received(&answer->content.val);
        whole = whole && answers[i].key != NULL && (!answer->content.is_some || answers[i].content != NULL);
    }
    if (from->state.is_some) to->state = received(&from->state.val);
    return whole && (!from->state.is_some || to->state != NULL);
}

static belljar_provider_call_types_ask_t ask(const belljar_questions *from) {
    belljar_provider_call_types_ask_t to = {0};
    to.questions.ptr = array(from->length, sizeof *to.questions.ptr);
    to.questions.len = from->length;
    for (size_t i = 0; i < from->length; i++)
        to.questions.ptr[i] = (belljar_provider_call_types_question_t){
            string(from->questions[i].key, "the name of a question"), string(from->questions[i].message, "a question"),
            string(from->questions[i].form, "a form")};
    to.state = optional(copied(from->state), "the state");
    return to;
}

static belljar_provider_call_types_media_t media(const belljar_block *from) {
    return (belljar_provider_call_types_media_t){string(from->mime_type, "a media type"),
                                                 {(uint8_t *)(uintptr_t)from->data, from->length}};
}

static belljar_provider_types_contents_t embedded(const belljar_block *from) {
    belljar_provider_types_contents_t to = {0};
    to.reference = string(from->reference, "a reference");
    to.mime_type = optional(from->mime_type, "a media type");
    to.meta = metadata(NULL, 0);
    if (from->kind == BELLJAR_EMBEDDED_TEXT) {
        to.body.tag = BELLJAR_PROVIDER_TYPES_BODY_TEXT;
        to.body.val.text = string(from->text, "a text");
    } else {
        to.body.tag = BELLJAR_PROVIDER_TYPES_BODY_BLOB;
        to.body.val.blob = (provider_list_u8_t){(uint8_t *)(uintptr_t)from->data, from->length};
    }
    return to;
}

static belljar_provider_call_types_block_t block(const belljar_block *from) {
    belljar_provider_call_types_block_t to = {0};
    belljar_provider_call_types_option_annotations_t hints = {false, {0}};
    belljar_provider_types_option_annotations_t given = annotations(from->annotations);
    hints.is_some = given.is_some;
    hints.val = given.val;
    to.annotations = hints;
    switch (from->kind) {
    case BELLJAR_IMAGE:
        to.body.tag = BELLJAR_PROVIDER_CALL_TYPES_BLOCK_BODY_IMAGE;
        to.body.val.image = media(from);
        break;
    case BELLJAR_AUDIO:
        to.body.tag = BELLJAR_PROVIDER_CALL_TYPES_BLOCK_BODY_AUDIO;
        to.body.val.audio = media(from);
        break;
    case BELLJAR_LINK:
        to.body.tag = BELLJAR_PROVIDER_CALL_TYPES_BLOCK_BODY_LINK;
        to.body.val.link = (belljar_provider_call_types_link_t){
            string(from->reference, "a reference"),
            string(from->name, "a name"),
            optional(from->title, "a title"),
            optional(from->description, "a description"),
            optional(from->mime_type, "a media type"),
            {from->size.some, from->size.value},
        };
        break;
    case BELLJAR_EMBEDDED_TEXT:
    case BELLJAR_EMBEDDED_BLOB:
        to.body.tag = BELLJAR_PROVIDER_CALL_TYPES_BLOCK_BODY_EMBEDDED;
        to.body.val.embedded = embedded(from);
        break;
    default:
        to.body.tag = BELLJAR_PROVIDER_CALL_TYPES_BLOCK_BODY_TEXT;
        to.body.val.text = string(from->text, "a text");
        break;
    }
    return to;
}

#endif

#ifdef BELLJAR_TOOLS

bool exports_belljar_provider_tool_provider_list_tools(exports_belljar_provider_tool_provider_list_tool_info_t *ret,
                                                       generated_error *err) {
    static const uint8_t effects[] = {
        [BELLJAR_DESTROYS] = EXPORTS_BELLJAR_PROVIDER_TOOL_PROVIDER_EFFECT_DESTROYS,
        [BELLJAR_ADDS] = EXPORTS_BELLJAR_PROVIDER_TOOL_PROVIDER_EFFECT_ADDS,
        [BELLJAR_READS] = EXPORTS_BELLJAR_PROVIDER_TOOL_PROVIDER_EFFECT_READS,
    };
    belljar_tools tools = {0};
    belljar_status status = provider_tools(&tools);
    if (status != BELLJAR_OK) return ended(status, err);

    ret->ptr = array(tools.length, sizeof *ret->ptr);
    ret->len = tools.length;
    for (size_t i = 0; i < tools.length; i++) {
        const belljar_tool *from = &tools.tools[i];
        exports_belljar_provider_tool_provider_tool_info_t *to = &ret->ptr[i];
        belljar_provider_types_list_icon_t pictures = icons(from->icons, from->icons_length);
        belljar_provider_types_list_tuple2_string_json_t meta = metadata(from->meta, from->meta_length);
        provider_option_string_t output = optional(from->output, "the output schema of a tool");
        to->name = string(from->name, "the name of a tool");
        to->title = optional(from->title, "a title");
        to->description = string(from->description, "the description of a tool");
        to->input = string(from->input, "the input schema of a tool");
        to->output.is_some = output.is_some;
        to->output.val = output.val;
        to->effect = from->effect <= BELLJAR_READS ? effects[from->effect] : effects[BELLJAR_DESTROYS];
        to->idempotent = from->idempotent;
        to->open_world = !from->closed_world;
        to->view.is_some = from->page != NULL;
        to->view.val.page = string(from->page, "the page of a tool");
        to->view.val.app_only = from->app_only;
        to->icons.ptr = pictures.ptr;
        to->icons.len = pictures.len;
        to->meta.ptr = (exports_belljar_provider_tool_provider_tuple2_string_json_t *)meta.ptr;
        to->meta.len = meta.len;
    }
    return ended(BELLJAR_OK, err);
}

bool exports_belljar_provider_tool_provider_call(provider_string_t *name,
                                                 exports_belljar_provider_tool_provider_json_t *arguments,
                                                 exports_belljar_provider_tool_provider_context_t *context,
                                                 exports_belljar_provider_tool_provider_outcome_t *ret,
                                                 generated_error *err) {
    const char *asked = received(name), *given = received(arguments);
    if (asked == NULL) return ended(BELLJAR_NOT_FOUND, err);
    belljar_call call;
    if (!receive(context, &call) || given == NULL)
        return ended(belljar_fail(BELLJAR_INVALID, "an argument or an answer holds a NUL"), err);

    belljar_result result = {0};
    belljar_status status = belljar_call_tool(asked, given, &call, &result);
    if (status != BELLJAR_OK) return ended(status, err);

    if (result.ask.length > 0) {
        ret->tag = EXPORTS_BELLJAR_PROVIDER_TOOL_PROVIDER_OUTCOME_ASK;
        ret->val.ask = ask(&result.ask);
        return ended(BELLJAR_OK, err);
    }
    exports_belljar_provider_tool_provider_tool_result_t *done = &ret->val.done;
    ret->tag = EXPORTS_BELLJAR_PROVIDER_TOOL_PROVIDER_OUTCOME_DONE;
    done->content.ptr = array(result.length, sizeof *done->content.ptr);
    done->content.len = result.length;
    for (size_t i = 0; i < result.length; i++) done->content.ptr[i] = block(&result.content[i]);
    provider_option_string_t structured = optional(copied(result.structured), "the structured result");
    done->structured.is_some = structured.is_some;
    done->structured.val = structured.val;
    done->is_error = result.is_error;
    const belljar_meta *own = belljar_copy_meta(result.meta, result.meta_length);
    belljar_provider_types_list_tuple2_string_json_t meta = metadata(own, result.meta_length);
    done->meta.ptr = (exports_belljar_provider_tool_provider_tuple2_string_json_t *)meta.ptr;
    done->meta.len = meta.len;
    return ended(BELLJAR_OK, err);
}

#endif

#ifdef BELLJAR_PROMPTS

bool exports_belljar_provider_prompt_provider_list_prompts(
    exports_belljar_provider_prompt_provider_list_prompt_info_t *ret, generated_error *err) {
    belljar_prompts prompts = {0};
    belljar_status status = provider_prompts(&prompts);
    if (status != BELLJAR_OK) return ended(status, err);

    ret->ptr = array(prompts.length, sizeof *ret->ptr);
    ret->len = prompts.length;
    for (size_t i = 0; i < prompts.length; i++) {
        const belljar_prompt *from = &prompts.prompts[i];
        exports_belljar_provider_prompt_provider_prompt_info_t *to = &ret->ptr[i];
        belljar_provider_types_list_icon_t pictures = icons(from->icons, from->icons_length);
        belljar_provider_types_list_tuple2_string_json_t meta = metadata(from->meta, from->meta_length);
        to->name = string(from->name, "the name of a prompt");
        to->title = optional(from->title, "a title");
        to->description = string(from->description, "the description of a prompt");
        to->arguments.ptr = array(from->arguments_length, sizeof *to->arguments.ptr);
        to->arguments.len = from->arguments_length;
        for (size_t k = 0; k < from->arguments_length; k++)
            to->arguments.ptr[k] = (exports_belljar_provider_prompt_provider_prompt_argument_t){
                string(from->arguments[k].name, "the name of an argument"),
                optional(from->arguments[k].title, "a title"),
                optional(from->arguments[k].description, "a description"),
                from->arguments[k].required,
            };
        to->icons.ptr = pictures.ptr;
        to->icons.len = pictures.len;
        to->meta.ptr = (exports_belljar_provider_prompt_provider_tuple2_string_json_t *)meta.ptr;
        to->meta.len = meta.len;
    }
    return ended(BELLJAR_OK, err);
}

/* The arguments of a prompt, or NULL if one contains a NUL. */
static belljar_argument *arguments_of(const exports_belljar_provider_prompt_provider_list_argument_t *from) {
    belljar_argument *to = belljar_alloc(from->len * sizeof *to);
    for (size_t i = 0; i < from->len; i++) {
        to[i] = (belljar_argument){received(&from->ptr[i].name), received(&from->ptr[i].value)};
        if (to[i].name == NULL || to[i].value == NULL) return NULL;
    }
    return to;
}

bool exports_belljar_provider_prompt_provider_get(provider_string_t *name,
                                                  exports_belljar_provider_prompt_provider_list_argument_t *arguments,
                                                  exports_belljar_provider_prompt_provider_context_t *context,
                                                  exports_belljar_provider_prompt_provider_outcome_t *ret,
                                                  generated_error *err) {
    const char *asked = received(name);
    if (asked == NULL) return ended(BELLJAR_NOT_FOUND, err);
    belljar_argument *given = arguments_of(arguments);
    belljar_call call;
    if (!receive(context, &call) || given == NULL)
        return ended(belljar_fail(BELLJAR_INVALID, "an argument or an answer holds a NUL"), err);

    belljar_messages messages = {0};
    belljar_status status = belljar_get_prompt(asked, given, arguments->len, &call, &messages);
    if (status != BELLJAR_OK) return ended(status, err);

    if (messages.ask.length > 0) {
        ret->tag = EXPORTS_BELLJAR_PROVIDER_PROMPT_PROVIDER_OUTCOME_ASK;
        ret->val.ask = ask(&messages.ask);
        return ended(BELLJAR_OK, err);
    }
    exports_belljar_provider_prompt_provider_prompt_result_t *done = &ret->val.done;
    ret->tag = EXPORTS_BELLJAR_PROVIDER_PROMPT_PROVIDER_OUTCOME_DONE;
    done->description = optional(copied(messages.description), "the description");
    done->messages.ptr = array(messages.length, sizeof *done->messages.ptr);
    done->messages.len = messages.length;
    for (size_t i = 0; i < messages.length; i++) {
        done->messages.ptr[i].role = messages.messages[i].role == BELLJAR_ASSISTANT
                                         ? BELLJAR_PROVIDER_TYPES_ROLE_ASSISTANT
                                         : BELLJAR_PROVIDER_TYPES_ROLE_USER;
        done->messages.ptr[i].block = block(&messages.messages[i].block);
    }
    return ended(BELLJAR_OK, err);
}

bool exports_belljar_provider_prompt_provider_complete(
    provider_string_t *name, exports_belljar_provider_prompt_provider_argument_t *argument,
    exports_belljar_provider_prompt_provider_list_argument_t *resolved,
    exports_belljar_provider_prompt_provider_suggestions_t *ret, generated_error *err) {
    const char *asked = received(name);
    if (asked == NULL) return ended(BELLJAR_NOT_FOUND, err);
    belljar_argument given = {received(&argument->name), received(&argument->value)};
    belljar_argument *others = arguments_of(resolved);
    if (given.name == NULL || given.value == NULL || others == NULL)
        return ended(belljar_fail(BELLJAR_INVALID, "an argument holds a NUL"), err);

    belljar_suggestions suggestions = {0};
    belljar_status status = belljar_complete_prompt(asked, &given, others, resolved->len, &suggestions);
    if (status != BELLJAR_OK) return ended(status, err);
    ret->values = strings(suggestions.values, suggestions.length, "a value");
    ret->total = (provider_option_u32_t){suggestions.total.some, (uint32_t)suggestions.total.value};
    return ended(BELLJAR_OK, err);
}

#endif

#ifdef BELLJAR_SKILLS

static exports_belljar_provider_skill_provider_skill_info_t skill(const belljar_skill *from) {
    provider_list_string_t files = strings(from->files, from->length, "a reference");
    exports_belljar_provider_skill_provider_skill_info_t to = {string(from->root, "the directory of a skill"), {0}};
    to.files.ptr = files.ptr;
    to.files.len = files.len;
    return to;
}

bool exports_belljar_provider_skill_provider_list_skills(provider_string_t *cursor,
                                                         exports_belljar_provider_skill_provider_skill_page_t *ret,
                                                         generated_error *err) {
    const char *from = cursor != NULL ? received(cursor) : NULL;
    if (cursor != NULL && from == NULL)
        return ended(belljar_fail(BELLJAR_INVALID, "the cursor holds a NUL and is not one of this provider's"), err);

    belljar_skills skills = {0};
    belljar_status status = provider_list_skills(from, &skills);
    if (status != BELLJAR_OK) return ended(status, err);
    ret->skills.ptr = array(skills.length, sizeof *ret->skills.ptr);
    ret->skills.len = skills.length;
    for (size_t i = 0; i < skills.length; i++) ret->skills.ptr[i] = skill(&skills.skills[i]);
    ret->next_cursor = optional(copied(skills.next_cursor), "the cursor");
    return ended(BELLJAR_OK, err);
}

bool exports_belljar_provider_skill_provider_get_skill(exports_belljar_provider_skill_provider_reference_t *root,
                                                       exports_belljar_provider_skill_provider_skill_info_t *ret,
                                                       generated_error *err) {
    const char *asked = received(root);
    if (asked == NULL) return ended(BELLJAR_NOT_FOUND, err);

    belljar_skills skills = {0};
    belljar_status status = provider_get_skill(asked, &skills);
    if (status == BELLJAR_OK && skills.length != 1)
        status = belljar_fail(BELLJAR_FAILED, "provider_get_skill added %zu skills, not one", skills.length);
    if (status != BELLJAR_OK) return ended(status, err);
    *ret = skill(&skills.skills[0]);
    return ended(BELLJAR_OK, err);
}

#endif

#ifdef BELLJAR_PROGRESS

void belljar_send_report(double done, double total, const char *note) {
    provider_string_t text = {(uint8_t *)(uintptr_t)note, note != NULL ? strlen(note) : 0};
    /* A report must not end the call: a note that is not UTF-8 is left out. */
    bool told = note != NULL && belljar_is_utf8(note, text.len);
    belljar_provider_progress_report(done, total > 0 ? &total : NULL, told ? &text : NULL);
}

#endif
