/* Write belljar resource providers in C.
 *
 * A provider consists of the functions under "The provider". Each call runs in a fresh sandbox: statics start anew,
 * and the memory of a call is freed with it. Two rules suffice for memory: values that you pass in are copied, and
 * values that this header returns live until the call is over. Do not free them.
 *
 * `wit/provider.wit` describes every field in full. Strings are UTF-8; NULL means "none" where that is allowed. */
#ifndef BELLJAR_H
#define BELLJAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BELLJAR_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define BELLJAR_PRINTF(at, first)
#endif

/* ---- Failing -------------------------------------------------------------------------------------------------- */

/* The result of a call. The kind decides how the host reports a failure, and whether a retry makes sense. */
typedef enum belljar_status {
    BELLJAR_OK = 0,
    BELLJAR_NOT_FOUND,   /* the resource does not exist, or this caller must not know of it */
    BELLJAR_INVALID,     /* the reference, cursor or argument is malformed; the reason says how */
    BELLJAR_DENIED,      /* the provider refuses, or a grant is missing; the reason says which */
    BELLJAR_UNAVAILABLE, /* a backend is down or busy; the same call may succeed later */
    BELLJAR_FAILED       /* any other failure */
} belljar_status;

/* Stores the reason and returns `status`: `return belljar_fail(BELLJAR_INVALID, "no such zone: %s", zone);` People
 * read the reason as the provider's words. */
belljar_status belljar_fail(belljar_status status, const char *format, ...) BELLJAR_PRINTF(2, 3);

/* Returns a failure for the current `errno`: ENOENT is BELLJAR_NOT_FOUND, EACCES is BELLJAR_DENIED, and so on. `what`
 * begins the reason. */
belljar_status belljar_fail_errno(const char *what);

/* The reason of the last failure, or "". For tests. */
const char *belljar_reason(void);

/* ---- What a provider returns ------------------------------------------------------------------------------------ */

/* An optional number. `{0}`, or left out, means absent. */
typedef struct belljar_size {
    bool some;
    uint64_t value;
} belljar_size;
typedef struct belljar_priority {
    bool some;
    double value;
} belljar_priority;

/* A present number: `.size = BELLJAR_SOME(1024)`. */
#define BELLJAR_SOME(number) { true, (number) }

/* The description of a provider, for people. */
typedef struct belljar_info {
    const char *title, *version, *description;
} belljar_info;

/* Hints about how a client may use a resource. */
typedef struct belljar_annotations {
    bool for_user, for_assistant;
    belljar_priority priority; /* from 0.0 (optional) to 1.0 (effectively required) */
    const char *last_modified; /* RFC 3339: 2026-07-28T09:30:00Z */
} belljar_annotations;

/* A picture: a `data:` or `https:` URI. `sizes` are words such as "48x48 96x96", or NULL. */
typedef struct belljar_icon {
    const char *src, *mime_type, *sizes;
} belljar_icon;

/* One entry of MCP's _meta. `json` is its value, as JSON text. */
typedef struct belljar_meta {
    const char *key, *json;
} belljar_meta;

/* One entry of the list. Only `reference` is required. Without a name, the reference is the name. */
typedef struct belljar_resource {
    const char *reference; /* relative to the mount, percent-encoded: see belljar_encode */
    const char *name, *title, *description, *mime_type;
    belljar_size size; /* in bytes */
    const belljar_annotations *annotations;
    const belljar_icon *icons;
    size_t icons_length;
    const belljar_meta *meta;
    size_t meta_length;
} belljar_resource;

/* A family of resources. Only `pattern` is required: an RFC 6570 template such as `cities/{name}`. */
typedef struct belljar_template {
    const char *pattern;
    const char *name, *title, *description, *mime_type;
    const belljar_annotations *annotations;
    const belljar_icon *icons;
    size_t icons_length;
    const belljar_meta *meta;
    size_t meta_length;
} belljar_template;

/* One content of a reading. */
typedef struct belljar_contents {
    const char *reference, *mime_type;
    bool is_text;
    char *data; /* followed by a NUL that `length` does not count */
    size_t length;
} belljar_contents;

/* A page of the list, the templates, a reading, suggestions. `{0}` is an empty one; the functions below fill them. */
typedef struct belljar_page {
    belljar_resource *resources;
    size_t length;
    const char *next_cursor;
    size_t capacity, skip, limit, seen; /* used by belljar_page_start and belljar_page_add only */
    bool more;
} belljar_page;
typedef struct belljar_templates {
    belljar_template *templates;
    size_t length, capacity;
} belljar_templates;
typedef struct belljar_reading {
    belljar_contents *contents;
    size_t length, capacity;
    uint32_t fresh_for_ms; /* how long the host may serve this reading from its cache; 0: not at all */
} belljar_reading;
typedef struct belljar_suggestions {
    const char **values;
    size_t length, capacity;
    belljar_size total; /* the total number, if `values` does not contain all of them */
} belljar_suggestions;

/* A variable of a template and its value, which is not percent-encoded and possibly incomplete. */
typedef struct belljar_argument {
    const char *name, *value;
} belljar_argument;

/* ---- The provider: functions that you write -------------------------------------------------------------------- */

/* Describes the provider. Must work without any grant. */
belljar_info provider_describe(void);

/* Lists the resources that are worth listing, a page at a time; `cursor` is NULL for the first. */
belljar_status provider_list(const char *cursor, belljar_page *page);

/* Lists the templates, all at once. */
belljar_status provider_templates(belljar_templates *templates);

/* Reads a resource: adds at least one content. `reference` is valid and percent-encoded; "" is the mount itself. */
belljar_status provider_read(const char *reference, belljar_reading *reading);

/* Optional: worlds `provider-with-completion` and `full-provider`. Suggests values for `argument`. */
belljar_status provider_complete(const char *pattern, const belljar_argument *argument,
                                 const belljar_argument *resolved, size_t resolved_length,
                                 belljar_suggestions *suggestions);

/* Optional: worlds `provider-with-revisions` and `full-provider`. A revision is any short text. It differs
 * from an earlier one if the list, or the contents of the resource, differ. */
belljar_status provider_catalog_revision(const char **revision);
belljar_status provider_resource_revision(const char *reference, const char **revision);

/* ---- Answering ------------------------------------------------------------------------------------------------ */

/* Begins a page of at most `size` entries. Then offer the whole list to belljar_page_add, always in the same order, and
 * return belljar_page_end. The cursor is the number of entries before the page. */
belljar_status belljar_page_start(belljar_page *page, const char *cursor, size_t size);

/* Offers an entry. The page keeps the entry if the entry belongs to this page. Returns false if the page is full and a
 * next page exists: no further entries are needed. A page that was not started keeps every entry. */
bool belljar_page_add(belljar_page *page, const belljar_resource *entry);

/* True if the next entry is before the page. Then a placeholder such as `{ .reference = "" }` can be offered. */
bool belljar_page_skips(const belljar_page *page);

/* Ends a page: sets the next cursor, or fails with BELLJAR_INVALID for a cursor beyond the end. */
belljar_status belljar_page_end(belljar_page *page);

/* Adds a template. */
void belljar_template_add(belljar_templates *templates, const belljar_template *entry);

/* Adds a content: NUL-terminated text, text of `length` bytes, binary data, or either (text if the bytes are UTF-8). */
void belljar_add_text(belljar_reading *reading, const char *reference, const char *mime_type, const char *text);
void belljar_add_string(belljar_reading *reading, const char *reference, const char *mime_type, const char *text,
                        size_t length);
void belljar_add_blob(belljar_reading *reading, const char *reference, const char *mime_type, const void *bytes,
                      size_t length);
void belljar_add_bytes(belljar_reading *reading, const char *reference, const char *mime_type, const void *bytes,
                       size_t length);

/* Adds bytes of belljar_read_file without copying them, as text when they are UTF-8. The reading then owns them. */
void belljar_add_file(belljar_reading *reading, const char *reference, const char *mime_type, char *bytes,
                      size_t length);

/* Adds a suggestion. */
void belljar_suggest(belljar_suggestions *suggestions, const char *value);

/* ---- Strings, references, files ------------------------------------------------------------------------------- */

/* sprintf into a string that lives until the call is over. */
const char *belljar_format(const char *format, ...) BELLJAR_PRINTF(1, 2);

/* Memory that lives until the call is over. Never NULL: without free memory, the call ends in a trap. */
void *belljar_alloc(size_t bytes);

/* Percent-encodes one segment of a path; a `/` becomes `%2F`. */
const char *belljar_encode(const char *segment);

/* Percent-decodes once. NULL, with BELLJAR_INVALID as belljar_reason, if the result is not UTF-8 or contains a NUL. */
const char *belljar_decode(const char *segment);

/* The rest of `reference` when it begins with `prefix`, or NULL. */
const char *belljar_after(const char *reference, const char *prefix);

/* The decoded value of `name` in the query of a reference (`search?q=bell`), or NULL. */
const char *belljar_query(const char *reference, const char *name);

/* True if these bytes are UTF-8. */
bool belljar_is_utf8(const void *bytes, size_t length);

/* True if a directory is granted, or lies in a granted one. */
bool belljar_is_directory(const char *path);

/* A regular file of a directory. */
typedef struct belljar_file {
    const char *name;
    uint64_t size;
} belljar_file;

/* The regular files of a directory, sorted by the bytes of their names. */
belljar_status belljar_list_files(const char *directory, belljar_file **files, size_t *length);

/* Reads a regular file whole. BELLJAR_NOT_FOUND if the path is absent or a directory. */
belljar_status belljar_read_file(const char *path, char **bytes, size_t *length);

/* Frees everything that was returned so far, answers included. For tests that look for leaks, not for providers. */
void belljar_release(void);

#ifdef __cplusplus
}
#endif

#endif
