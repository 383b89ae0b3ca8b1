/* Parts: the positions of a range, and cutting a part out of contents in memory. */
#include "internal.h"

#include <string.h>

static uint64_t least(uint64_t one, uint64_t other) { return one < other ? one : other; }

void belljar_within(const belljar_range *range, uint64_t total, uint64_t *start, uint64_t *end) {
    if (range->last.some) {
        *start = total - least(range->last.value, total);
        *end = total;
        return;
    }
    *start = least(range->start, total);
    *end = range->end.some ? least(range->end.value, total) : total;
    if (*end < *start) *end = *start;
}

belljar_extent belljar_extent_of(belljar_unit unit, uint64_t start, uint64_t end, uint64_t total) {
    return (belljar_extent){true, unit, start, end, BELLJAR_SOME(total), end < total};
}

/* True if a character starts at this place, or if the text ends there. */
static bool is_start(const char *text, size_t length, size_t at) {
    return at >= length || ((unsigned char)text[at] & 0xC0) != 0x80;
}

/* Finds bytes. In text, the part ends between characters, and with `at_line` after the last whole line, if there is one. */
static void find_bytes(const char *data, size_t length, bool is_text, const belljar_range *range, uint64_t most,
                       bool at_line, size_t *begin, size_t *end, belljar_extent *extent) {
    uint64_t from, to;
    belljar_within(range, length, &from, &to);
    to = from + least(to - from, most);
    *begin = (size_t)from;
    *end = (size_t)to;
    if (is_text) {
        size_t wanted = *end;
        while (*begin > 0 && !is_start(data, length, *begin)) --*begin;
        while (*end > 0 && !is_start(data, length, *end)) --*end;
        /* A range inside one character gives this character. */
        if (*end <= *begin && wanted > *begin)
            for (*end = wanted; !is_start(data, length, *end); ++*end) {}
        if (at_line && *end < length) {
            size_t line = *end;
            while (line > *begin && data[line - 1] != '\n') line--;
            if (line > *begin) *end = line;
        }
        if (*end < *begin) *end = *begin;
    }
    *extent = belljar_extent_of(BELLJAR_BYTES, *begin, *end, length);
}

/* The place after the line that starts at `at`. */
static size_t after_line(const char *text, size_t length, size_t at) {
    const char *end = at < length ? memchr(text + at, '\n', length - at) : NULL;
    return end != NULL ? (size_t)(end - text) + 1 : length;
}

/* Finds whole lines, as many as fit. */
static belljar_status find_lines(const char *text, size_t length, const belljar_range *range, uint64_t most,
                                 size_t *begin, size_t *end, belljar_extent *extent) {
    uint64_t total = 0, from, to, line = 0;
    for (size_t at = 0; at < length; at = after_line(text, length, at)) total++;
    belljar_within(range, total, &from, &to);
    *begin = 0;
    for (; line < from; line++) *begin = after_line(text, length, *begin);
    for (*end = *begin; line < to; line++) {
        size_t next = after_line(text, length, *end);
        if (next - *begin > most) {
            if (line == from)
                return belljar_fail(BELLJAR_INVALID,
                                    "line %llu has %zu bytes; the limit of a read is %llu; read it with "
                                    "\"?bytes=0-65535\"",
                                    (unsigned long long)line + 1, next - *begin, (unsigned long long)most);
            break;
        }
        *end = next;
    }
    *extent = belljar_extent_of(BELLJAR_LINES, from, line, total);
    return BELLJAR_OK;
}

belljar_status belljar_find_part(const char *data, size_t length, bool is_text, const belljar_range *range,
                                 uint64_t most, size_t *begin, size_t *end, belljar_extent *extent) {
    *begin = 0;
    *end = length;
    *extent = (belljar_extent){0};
    if (range == NULL) {
        if (length > most) find_bytes(data, length, is_text, &(belljar_range){0}, most, true, begin, end, extent);
        return BELLJAR_OK;
    }
    if (range->unit == BELLJAR_LINES) {
        if (is_text) return find_lines(data, length, range, most, begin, end, extent);
        return belljar_fail(BELLJAR_INVALID,
                            "the resource is not text and has no lines; read it with \"?bytes=0-65535\"");
    }
    find_bytes(data, length, is_text, range, most, false, begin, end, extent);
    return BELLJAR_OK;
}

belljar_status belljar_no_part(size_t contents) {
    return belljar_fail(BELLJAR_INVALID, "the resource has %zu contents and no parts; read it without a range",
                        contents);
}

belljar_status belljar_cut(belljar_reading *reading, const belljar_range *range, uint64_t most,
                           belljar_extent *extent) {
    *extent = (belljar_extent){0};
    if (reading->length != 1) return range == NULL ? BELLJAR_OK : belljar_no_part(reading->length);
    belljar_contents *one = &reading->contents[0];
    size_t begin, end;
    belljar_status status = belljar_find_part(one->data, one->length, one->is_text, range, most, &begin, &end, extent);
    if (status != BELLJAR_OK) return status;
    if (begin > 0) memmove(one->data, one->data + begin, end - begin);
    one->length = end - begin;
    one->data[one->length] = '\0';
    return BELLJAR_OK;
}
