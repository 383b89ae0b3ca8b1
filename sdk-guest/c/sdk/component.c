/* Makes a component of a provider: connects the functions of `wit-bindgen c` with those of belljar.h. The only file with
 * generated names.
 *
 * Answers are handed over without a copy: their strings come from malloc, and the generated post-return functions free
 * them. A string that is not UTF-8 would end the call in a trap, so it is detected first and becomes a failure. */
#include "belljar.h"

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

void exports_belljar_provider_resource_provider_describe(
    exports_belljar_provider_resource_provider_provider_info_t *ret) {
    belljar_info info = provider_describe();
    ret->title = optional(copied(info.title), "the title");
    ret->version = optional(copied(info.version), "the version");
    ret->description = optional(copied(info.description), "the description");
    /* This export cannot fail, and a malformed description must not trap: it is left out. */
    if (broken != NULL) memset(ret, 0, sizeof *ret);
}

bool exports_belljar_provider_resource_provider_list_resources(
    provider_string_t *cursor, exports_belljar_provider_resource_provider_resource_page_t *ret, generated_error *err) {
    const char *from = cursor != NULL ? received(cursor) : NULL;
    if (cursor != NULL && from == NULL)
        return ended(belljar_fail(BELLJAR_INVALID, "the cursor holds a NUL and is not one of this provider's"), err);

    belljar_page page = {0};
    belljar_status status = provider_list(from, &page);
    if (status != BELLJAR_OK) return ended(status, err);

    exports_belljar_provider_resource_provider_list_resource_info_t list = {
        array(page.length, sizeof *list.ptr), page.length};
    for (size_t i = 0; i < page.length; i++) {
        const belljar_resource *entry = &page.resources[i];
        list.ptr[i] = (belljar_provider_types_resource_info_t){
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
    ret->resources = list;
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

    ret->contents.ptr = array(reading.length, sizeof *ret->contents.ptr);
    ret->contents.len = reading.length;
    for (size_t i = 0; i < reading.length; i++) {
        const belljar_contents *from = &reading.contents[i];
        belljar_provider_types_contents_t *to = &ret->contents.ptr[i];
        to->reference = string(from->reference, "a reference");
        to->mime_type = optional(from->mime_type, "a media type");
        to->meta = metadata(NULL, 0);
        if (from->is_text) {
            to->body.tag = BELLJAR_PROVIDER_TYPES_BODY_TEXT;
            to->body.val.text = of_length(from->data, from->length, "the text");
        } else {
            to->body.tag = BELLJAR_PROVIDER_TYPES_BODY_BLOB;
            to->body.val.blob = (provider_list_u8_t){(uint8_t *)from->data, from->length};
        }
    }
    ret->fresh_for = (provider_option_u32_t){reading.fresh_for_ms > 0, reading.fresh_for_ms};
    return ended(BELLJAR_OK, err);
}

#if defined(WORLD_provider_with_completion) || defined(WORLD_full_provider)

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

    ret->values.ptr = array(suggestions.length, sizeof *ret->values.ptr);
    ret->values.len = suggestions.length;
    for (size_t i = 0; i < suggestions.length; i++) ret->values.ptr[i] = string(suggestions.values[i], "a value");
    ret->total = (provider_option_u32_t){suggestions.total.some, (uint32_t)suggestions.total.value};
    return ended(BELLJAR_OK, err);
}

#endif

#if defined(WORLD_provider_with_revisions) || defined(WORLD_full_provider)

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
