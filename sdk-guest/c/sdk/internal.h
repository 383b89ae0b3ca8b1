/* Functions that the files of the SDK share. Providers do not need them. */
#ifndef BELLJAR_INTERNAL_H
#define BELLJAR_INTERNAL_H

#include "belljar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes room for one more element. The array starts as `{0}`. */
void *belljar_room(void *array, size_t length, size_t *capacity, size_t element);

/* Copies live until the call is over; the copy of bytes is followed by a NUL. The copy of NULL is NULL. */
char *belljar_copy(const void *bytes, size_t length);
const char *belljar_copy_string(const char *string);
const belljar_annotations *belljar_copy_annotations(const belljar_annotations *from);
const belljar_icon *belljar_copy_icons(const belljar_icon *from, size_t length);
const belljar_meta *belljar_copy_meta(const belljar_meta *from, size_t length);

/* Finds the requested part of `length` bytes: where it begins and ends, and its extent. */
belljar_status belljar_find_part(const char *data, size_t length, bool is_text, const belljar_range *range,
                                 uint64_t most, size_t *begin, size_t *end, belljar_extent *extent);

/* The failure for a range of a resource with several contents. */
belljar_status belljar_no_part(size_t contents);

/* Sends a report to the caller. Only components with the interface progress have it. */
void belljar_send_report(double done, double total, const char *note);

#ifdef __cplusplus
}
#endif

#endif
