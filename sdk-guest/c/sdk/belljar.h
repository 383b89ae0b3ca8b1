/* Write belljar resource providers in C.
 *
 * A provider is the functions under "What you write". Each call runs in a fresh sandbox: statics start anew, and what a
 * call allocates is gone with it. So two rules are enough for memory: what you pass in is copied, and what this header
 * hands out lives until the call is over. Do not free it.
 *
 * `wit/provider.wit` describes every field in full. Strings are UTF-8; NULL is "none" wherever that is allowed. */
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

/* How a call ended. The kind decides what the caller is told, and whether to try again makes sense. */
typedef enum belljar_status {
    BELLJAR_OK = 0,
    BELLJAR_NOT_FOUND,   /* no such resource, or none that this caller may know of */
    BELLJAR_INVALID,     /* the reference, cursor or argument is malformed; the reason says how */
    BELLJAR_DENIED,      /* refused, or something was not granted; the reason says what */
    BELLJAR_UNAVAILABLE, /* something that it depends on is down or busy; the same call may succeed later */
    BELLJAR_FAILED       /* anything else */
} belljar_status;

/* Notes the reason and returns `status`: `return belljar_fail(BELLJAR_INVALID, "no such zone: %s", zone);` People
 * read it as the provider's words. */
belljar_status belljar_fail(belljar_status status, const char *format, ...) BELLJAR_PRINTF(2, 3);

/* Makes a failure of the current `errno`: ENOENT is BELLJAR_NOT_FOUND, EACCES is BELLJAR_DENIED, and so on. `what`
 * begins the reason. */
belljar_status belljar_fail_errno(const char *what);

/* The reason of the last failure, or "". For tests. */
const char *belljar_reason(void);

/* ---- What a provider gives ------------------------------------------------------------------------------------ */

/* A number that may be absent. `{0}`, or left out, is none. */
typedef struct belljar_size {
    bool some;
    uint64_t value;
} belljar_size;
typedef struct belljar_priority {
    bool some;
    double value;
} belljar_priority;

/* A number that is there: `.size = BELLJAR_SOME(1024)`. */
#define BELLJAR_SOME(number) { true, (number) }

/* What a provider says of itself. */
typedef struct belljar_info {
    const char *title, *version, *description;
} belljar_info;

/* Hints about how a client may use a resource. */
typedef struct belljar_annotations {
    bool for_user, for_assistant;
    belljar_priority priority; /* from 0.0 (optional) to 1.0 (as good as required) */
    const char *last_modified; /* RFC 3339: 2026-07-28T09:30:00Z */
} belljar_annotations;

/* A picture: a `data:` or `https:` URI. `sizes` are words such as "48x48 96x96", or NULL. */
typedef struct belljar_icon {
    const char *src, *mime_type, *sizes;
} belljar_icon;

/* Further data: `json` is the JSON text of one value. */
typedef struct belljar_meta {
    const char *key, *json;
} belljar_meta;

/* One entry of the list. Only `reference` has to be there; without a name the reference is the name. */
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

/* A family of resources. Only `pattern` has to be there: an RFC 6570 template such as `cities/{name}`. */
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
    size_t capacity, skip, limit, seen; /* of belljar_page_start and belljar_page_add */
    bool more;
} belljar_page;
typedef struct belljar_templates {
    belljar_template *templates;
    size_t length, capacity;
} belljar_templates;
typedef struct belljar_reading {
    belljar_contents *contents;
    size_t length, capacity;
    uint32_t fresh_for_ms; /* how long the host may serve it again without asking; 0: not at all */
} belljar_reading;
typedef struct belljar_suggestions {
    const char **values;
    size_t length, capacity;
    belljar_size total; /* how many there are in all, when `values` does not hold all of them */
} belljar_suggestions;

/* A variable of a template and its value, which is not percent-encoded and possibly only begun. */
typedef struct belljar_argument {
    const char *name, *value;
} belljar_argument;

/* ---- What you write ------------------------------------------------------------------------------------------- */

/* Describes the provider. Has to work without any grant. */
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

/* Optional: worlds `provider-with-revisions` and `full-provider`. A revision is any short text that differs when the
 * list, or what reading the resource gives, differs. */
belljar_status provider_catalog_revision(const char **revision);
belljar_status provider_resource_revision(const char *reference, const char **revision);

/* ---- Answering ------------------------------------------------------------------------------------------------ */

/* Begins a page of at most `size` entries. Then offer the whole list to belljar_page_add, always in the same order, and
 * return belljar_page_end. The cursor is the number of entries before the page. */
belljar_status belljar_page_start(belljar_page *page, const char *cursor, size_t size);

/* Offers an entry, which is kept if it belongs to this page. False once the page is full and known not to be the last:
 * further entries need not be offered. On a page that was not started, every entry is kept. */
bool belljar_page_add(belljar_page *page, const belljar_resource *entry);

/* Whether the next entry is before the page, so that any one will do, such as `{ .reference = "" }`. */
bool belljar_page_skips(const belljar_page *page);

/* Ends a page: sets the next cursor, or fails with BELLJAR_INVALID for a cursor beyond the end. */
belljar_status belljar_page_end(belljar_page *page);

/* Adds a template. */
void belljar_template_add(belljar_templates *templates, const belljar_template *entry);

/* Adds a content: text, text of a length, bytes, or whichever of them the bytes are (text when they are UTF-8). */
void belljar_add_text(belljar_reading *reading, const char *reference, const char *mime_type, const char *text);
void belljar_add_string(belljar_reading *reading, const char *reference, const char *mime_type, const char *text,
                        size_t length);
void belljar_add_blob(belljar_reading *reading, const char *reference, const char *mime_type, const void *bytes,
                      size_t length);
void belljar_add_bytes(belljar_reading *reading, const char *reference, const char *mime_type, const void *bytes,
                       size_t length);

/* Adds bytes of belljar_read_file without copying them, as text when they are UTF-8. They are the reading's then. */
void belljar_add_file(belljar_reading *reading, const char *reference, const char *mime_type, char *bytes,
                      size_t length);

/* Adds a suggestion. */
void belljar_suggest(belljar_suggestions *suggestions, const char *value);

/* ---- Strings, references, files ------------------------------------------------------------------------------- */

/* sprintf into a string that lives until the call is over. */
const char *belljar_format(const char *format, ...) BELLJAR_PRINTF(1, 2);

/* Memory that lives until the call is over. Never NULL: without memory, the call ends in a trap. */
void *belljar_alloc(size_t bytes);

/* Percent-encodes one segment of a path; a `/` becomes `%2F`. */
const char *belljar_encode(const char *segment);

/* Percent-decodes once. NULL, with BELLJAR_INVALID as belljar_reason, when that is no UTF-8 or holds a NUL. */
const char *belljar_decode(const char *segment);

/* The rest of `reference` when it begins with `prefix`, or NULL. */
const char *belljar_after(const char *reference, const char *prefix);

/* The decoded value of `name` in the query of a reference (`search?q=bell`), or NULL. */
const char *belljar_query(const char *reference, const char *name);

/* Whether these bytes are UTF-8. */
bool belljar_is_utf8(const void *bytes, size_t length);

/* Whether a directory was granted (or is below one that was). */
bool belljar_is_directory(const char *path);

/* A regular file of a directory. */
typedef struct belljar_file {
    const char *name;
    uint64_t size;
} belljar_file;

/* The regular files of a directory, by the bytes of their names. */
belljar_status belljar_list_files(const char *directory, belljar_file **files, size_t *length);

/* Reads a regular file whole. BELLJAR_NOT_FOUND for what is absent, or is a directory. */
belljar_status belljar_read_file(const char *path, char **bytes, size_t *length);

/* Frees all that was handed out so far, answers included. For tests that look for leaks; a provider does not call it. */
void belljar_release(void);

#ifdef __cplusplus
}
#endif

#endif
