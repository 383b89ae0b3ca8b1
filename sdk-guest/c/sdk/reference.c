/* References: percent-encoding, queries, and a check for UTF-8. */
#include "belljar.h"

#include <string.h>

bool belljar_is_utf8(const void *bytes, size_t length) {
    const unsigned char *at = bytes, *end = at + length;
    while (at < end) {
        unsigned char first = *at++;
        if (first < 0x80) continue;
        size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        if (first < 0xc2 || first > 0xf4 || (size_t)(end - at) < more) return false;
        /* The second byte shows overlong forms, surrogates and code points beyond U+10FFFF. */
        unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (*at < low || *at > high) return false;
        for (at++; more > 1; more--, at++)
            if ((*at & 0xc0) != 0x80) return false;
    }
    return true;
}

/* The characters that a segment may contain unencoded (RFC 3986 section 3.3), except `:`, which the first segment of a
 * relative reference must not contain. */
static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~!$&'()*+,;=@", c) != NULL);
}

const char *belljar_encode(const char *segment) {
    static const char digits[] = "0123456789ABCDEF";
    char *encoded = belljar_alloc(strlen(segment) * 3 + 1), *to = encoded;
    for (const char *from = segment; *from != '\0'; from++) {
        unsigned char byte = (unsigned char)*from;
        if (is_plain(*from)) {
            *to++ = *from;
        } else {
            *to++ = '%';
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        }
    }
    *to = '\0';
    return encoded;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static const char *decode_part(const char *from, size_t length) {
    char *decoded = belljar_alloc(length + 1);
    size_t to = 0;
    bool nul = false;
    for (size_t at = 0; at < length; at++) {
        char c = from[at];
        if (c == '%' && length - at > 2 && digit(from[at + 1]) >= 0 && digit(from[at + 2]) >= 0) {
            c = (char)(digit(from[at + 1]) * 16 + digit(from[at + 2]));
            at += 2;
        }
        nul = nul || c == '\0';
        decoded[to++] = c;
    }
    decoded[to] = '\0';
    if (!nul && belljar_is_utf8(decoded, to)) return decoded;
    belljar_fail(BELLJAR_INVALID, "\"%.*s\" is %s once decoded", (int)length, from, nul ? "cut by a NUL" : "not UTF-8");
    return NULL;
}

const char *belljar_decode(const char *segment) { return decode_part(segment, strlen(segment)); }

const char *belljar_after(const char *reference, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(reference, prefix, length) == 0 ? reference + length : NULL;
}

const char *belljar_query(const char *reference, const char *name) {
    const char *pair = strchr(reference, '?');
    while (pair != NULL) {
        pair++;
        size_t length = strcspn(pair, "&"), key = strcspn(pair, "=&");
        const char *decoded = decode_part(pair, key);
        if (decoded != NULL && length > 0 && strcmp(decoded, name) == 0) {
            size_t value = key < length ? key + 1 : key;
            return decode_part(pair + value, length - value);
        }
        pair = pair[length] == '&' ? pair + length : NULL;
    }
    return NULL;
}
