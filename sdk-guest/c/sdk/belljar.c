/* Implements belljar.h without generated code. It builds for any system, so that a provider can be tested
 * there. component.c turns it into a component. */
#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory: a list of all allocated blocks, to free them together -------------------------------------- */

#define CHUNK_LENGTH 1022

typedef struct chunk {
    struct chunk *before;
    size_t length;
    void *blocks[CHUNK_LENGTH];
} chunk;

static chunk *pool;

static void *or_trap(void *block) {
    if (block == NULL) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return block;
}

void *belljar_alloc(size_t bytes) {
    void *block = or_trap(malloc(bytes > 0 ? bytes : 1));
    if (pool == NULL || pool->length == CHUNK_LENGTH) {
        chunk *next = or_trap(malloc(sizeof *next));
        next->before = pool;
        next->length = 0;
        pool = next;
    }
    pool->blocks[pool->length++] = block;
    return block;
}

/* Grows a block with realloc: a copy would keep the old block until the end of the call. */
static void *regrow(void *block, size_t bytes) {
    for (chunk *at = pool; block != NULL && at != NULL; at = at->before)
        for (size_t i = at->length; i-- > 0;)
            if (at->blocks[i] == block) return at->blocks[i] = or_trap(realloc(block, bytes));
    return belljar_alloc(bytes);
}

/* Makes room for one more element. The array starts as `{0}`. */
void *belljar_room(void *array, size_t length, size_t *capacity, size_t element) {
    if (length < *capacity) return array;
    if (*capacity > SIZE_MAX / 2 / element) or_trap(NULL);
    *capacity = *capacity > 0 ? *capacity * 2 : 8;
    return regrow(array, *capacity * element);
}

void belljar_release(void) {
    while (pool != NULL) {
        chunk *before = pool->before;
        for (size_t i = 0; i < pool->length; i++) free(pool->blocks[i]);
        free(pool);
        pool = before;
    }
}

char *belljar_copy(const void *bytes, size_t length) {
    char *copy = belljar_alloc(length + 1);
    if (length > 0) memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

const char *belljar_copy_string(const char *string) {
    return string == NULL ? NULL : belljar_copy(string, strlen(string));
}

static const char *format_list(const char *format, va_list list) {
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) return "";
    char *text = belljar_alloc((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, list);
    return text;
}

const char *belljar_format(const char *format, ...) {
    va_list list;
    va_start(list, format);
    const char *text = format_list(format, list);
    va_end(list);
    return text;
}

/* ---- Failing -------------------------------------------------------------------------------------------------- */

/* Not in the pool: a test may free the pool and then read the reason. */
static char reason[1100];

const char *belljar_reason(void) { return reason; }

belljar_status belljar_fail(belljar_status status, const char *format, ...) {
    /* Formatted into a separate buffer first: an argument may be the previous reason. */
    char next[sizeof reason];
    va_list list;
    va_start(list, format);
    vsnprintf(next, sizeof next, format, list);
    va_end(list);
    /* Cuts between characters, because a cut character is not UTF-8. */
    size_t length = strlen(next);
    while (length > 0 && !belljar_is_utf8(next, length) && length + 4 > sizeof next - 1) length--;
    memcpy(reason, next, length);
    reason[length] = '\0';
    return status;
}

belljar_status belljar_fail_errno(const char *what) {
    int number = errno;
    belljar_status status = BELLJAR_FAILED;
    switch (number) {
    case ENOENT: case ENOTDIR: status = BELLJAR_NOT_FOUND; break;
    case EACCES: case EPERM:
#ifdef ENOTCAPABLE
    case ENOTCAPABLE:
#endif
        status = BELLJAR_DENIED;
        break;
    case EAGAIN: case EBUSY: case EINTR: case ETIMEDOUT: status = BELLJAR_UNAVAILABLE; break;
    default: break;
    }
    return belljar_fail(status, "%s: %s", what, strerror(number));
}

/* ---- Answers -------------------------------------------------------------------------------------------------- */

const belljar_annotations *belljar_copy_annotations(const belljar_annotations *from) {
    if (from == NULL) return NULL;
    belljar_annotations *to = belljar_alloc(sizeof *to);
    *to = *from;
    to->last_modified = belljar_copy_string(from->last_modified);
    return to;
}

const belljar_icon *belljar_copy_icons(const belljar_icon *from, size_t length) {
    if (length == 0) return NULL;
    belljar_icon *to = belljar_alloc(length * sizeof *to);
    for (size_t i = 0; i < length; i++)
        to[i] = (belljar_icon){belljar_copy_string(from[i].src), belljar_copy_string(from[i].mime_type), belljar_copy_string(from[i].sizes)};
    return to;
}

const belljar_meta *belljar_copy_meta(const belljar_meta *from, size_t length) {
    if (length == 0) return NULL;
    belljar_meta *to = belljar_alloc(length * sizeof *to);
    for (size_t i = 0; i < length; i++) to[i] = (belljar_meta){belljar_copy_string(from[i].key), belljar_copy_string(from[i].json)};
    return to;
}

/* The cursor is "20", never "020" or "+20": any spelling that this SDK does not write is invalid. */
static bool parse_offset(const char *text, size_t *offset) {
    size_t length = strlen(text), value = 0;
    if (length == 0 || length > 9 || (text[0] == '0' && length > 1)) return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + (size_t)(text[i] - '0');
    }
    *offset = value;
    return true;
}

static belljar_status not_mine(const char *cursor) {
    return belljar_fail(BELLJAR_INVALID, "the cursor \"%s\" is not one of this provider's", cursor);
}

belljar_status belljar_page_start(belljar_page *page, const char *cursor, size_t size) {
    *page = (belljar_page){.limit = size > 0 ? size : 1};
    return cursor == NULL || parse_offset(cursor, &page->skip) ? BELLJAR_OK : not_mine(cursor);
}

bool belljar_page_skips(const belljar_page *page) { return page->seen < page->skip; }

bool belljar_page_add(belljar_page *page, const belljar_resource *entry) {
    if (page->seen++ < page->skip) return true;
    if (page->limit > 0 && page->length == page->limit) {
        page->more = true;
        return false;
    }
    page->resources = belljar_room(page->resources, page->length, &page->capacity, sizeof *page->resources);
    page->resources[page->length++] = (belljar_resource){
        .reference = belljar_copy_string(entry->reference),
        .name = belljar_copy_string(entry->name != NULL ? entry->name : entry->reference),
        .title = belljar_copy_string(entry->title),
        .description = belljar_copy_string(entry->description),
        .mime_type = belljar_copy_string(entry->mime_type),
        .size = entry->size,
        .annotations = belljar_copy_annotations(entry->annotations),
        .icons = belljar_copy_icons(entry->icons, entry->icons_length),
        .icons_length = entry->icons_length,
        .meta = belljar_copy_meta(entry->meta, entry->meta_length),
        .meta_length = entry->meta_length,
    };
    return true;
}

belljar_status belljar_page_end(belljar_page *page) {
    if (page->more) {
        page->next_cursor = belljar_format("%zu", page->skip + page->length);
    } else if (page->seen < page->skip) {
        return not_mine(belljar_format("%zu", page->skip));
    }
    return BELLJAR_OK;
}

void belljar_template_add(belljar_templates *list, const belljar_template *entry) {
    list->templates = belljar_room(list->templates, list->length, &list->capacity, sizeof *list->templates);
    list->templates[list->length++] = (belljar_template){
        .pattern = belljar_copy_string(entry->pattern),
        .name = belljar_copy_string(entry->name != NULL ? entry->name : entry->pattern),
        .title = belljar_copy_string(entry->title),
        .description = belljar_copy_string(entry->description),
        .mime_type = belljar_copy_string(entry->mime_type),
        .annotations = belljar_copy_annotations(entry->annotations),
        .icons = belljar_copy_icons(entry->icons, entry->icons_length),
        .icons_length = entry->icons_length,
        .meta = belljar_copy_meta(entry->meta, entry->meta_length),
        .meta_length = entry->meta_length,
    };
}

static void add_contents(belljar_reading *reading, const char *reference, const char *mime_type, bool is_text,
                         char *data, size_t length) {
    reading->contents = belljar_room(reading->contents, reading->length, &reading->capacity, sizeof *reading->contents);
    reading->contents[reading->length++] =
        (belljar_contents){belljar_copy_string(reference), belljar_copy_string(mime_type), is_text, data, length};
}

void belljar_add_text(belljar_reading *reading, const char *reference, const char *mime_type, const char *text) {
    belljar_add_string(reading, reference, mime_type, text, strlen(text));
}

void belljar_add_string(belljar_reading *reading, const char *reference, const char *mime_type, const char *text,
                        size_t length) {
    add_contents(reading, reference, mime_type, true, belljar_copy(text, length), length);
}

void belljar_add_blob(belljar_reading *reading, const char *reference, const char *mime_type, const void *bytes,
                      size_t length) {
    add_contents(reading, reference, mime_type, false, belljar_copy(bytes, length), length);
}

void belljar_add_bytes(belljar_reading *reading, const char *reference, const char *mime_type, const void *bytes,
                       size_t length) {
    belljar_add_file(reading, reference, mime_type, belljar_copy(bytes, length), length);
}

void belljar_add_file(belljar_reading *reading, const char *reference, const char *mime_type, char *bytes,
                      size_t length) {
    add_contents(reading, reference, mime_type, belljar_is_utf8(bytes, length), bytes, length);
}

void belljar_suggest(belljar_suggestions *list, const char *value) {
    list->values = belljar_room(list->values, list->length, &list->capacity, sizeof *list->values);
    list->values[list->length++] = belljar_copy_string(value);
}
