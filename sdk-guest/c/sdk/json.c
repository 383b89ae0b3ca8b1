/* Reads JSON, as RFC 8259 defines it, and quotes texts. */
#include "internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Deeper values are refused: each level is one call of `value`. */
enum { MAX_DEPTH = 64 };

typedef struct reader {
    const char *start, *at;
    const char *why; /* the reason of the first mistake, or NULL */
} reader;

static bool wrong(reader *r, const char *why) {
    if (r->why == NULL) r->why = why;
    return false;
}

static void skip_space(reader *r) { r->at += strspn(r->at, " \t\n\r"); }

static bool takes(reader *r, const char *word) {
    size_t length = strlen(word);
    if (strncmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

/* Four hexadecimal digits. */
static bool unit(reader *r, unsigned *code) {
    *code = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        char c = *r->at;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return wrong(r, "four hexadecimal digits were expected");
        *code = *code * 16 + (unsigned)digit;
    }
    return true;
}

/* The character of `\uXXXX`, as UTF-8. */
static bool escaped_unicode(reader *r, char **to) {
    unsigned code, low;
    if (!unit(r, &code)) return false;
    if (code == 0) return wrong(r, "a text must not contain a NUL");
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || !takes(r, "\\u") || !unit(r, &low) || low < 0xdc00 || low >= 0xe000)
            return wrong(r, "a surrogate has no partner");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    char *out = *to;
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xf0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    *to = out;
    return true;
}

/* A string, after its first quote. No escape is shorter than its character, so the text fits its source. */
static bool string(reader *r, const char **into) {
    size_t length = 0;
    while (r->at[length] != '"') {
        if ((unsigned char)r->at[length] < 0x20) return wrong(r, "a text has no end, or contains a control character");
        length += r->at[length] == '\\' && r->at[length + 1] != '\0' ? 2 : 1;
    }
    char *text = belljar_alloc(length + 1), *to = text;
    while (*r->at != '"') {
        if (*r->at != '\\') {
            *to++ = *r->at++;
            continue;
        }
        static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
        const char *name = strchr(names, r->at[1]);
        r->at += 2;
        if (name != NULL) {
            *to++ = meanings[name - names];
        } else if (r->at[-1] != 'u' || !escaped_unicode(r, &to)) {
            return wrong(r, "there is no such escape");
        }
    }
    r->at++;
    *to = '\0';
    *into = text;
    return true;
}

static size_t digits(const char *at) { return strspn(at, "0123456789"); }

static bool number(reader *r, belljar_json *into) {
    const char *end = r->at + (*r->at == '-');
    size_t whole = digits(end);
    if (whole == 0 || (*end == '0' && whole > 1)) return wrong(r, "a value was expected");
    end += whole;
    bool plain = true;
    if (*end == '.') {
        plain = false;
        if (digits(end + 1) == 0) return wrong(r, "a digit was expected after the point");
        end += 1 + digits(end + 1);
    }
    if (*end == 'e' || *end == 'E') {
        plain = false;
        end += end[1] == '+' || end[1] == '-' ? 2 : 1;
        if (digits(end) == 0) return wrong(r, "a digit was expected in the exponent");
        end += digits(end);
    }
    errno = 0;
    into->integer = plain ? strtoll(r->at, NULL, 10) : 0;
    into->is_integer = plain && errno == 0;
    into->number = strtod(r->at, NULL);
    if (!isfinite(into->number)) return wrong(r, "the number is too large");
    /* 2.0 and 2e3 are whole, too. Beyond 2^53, a double does not tell. */
    if (!plain && into->number >= -9007199254740992.0 && into->number <= 9007199254740992.0) {
        into->integer = (int64_t)into->number;
        into->is_integer = (double)into->integer == into->number;
    }
    into->kind = BELLJAR_NUMBER;
    r->at = end;
    return true;
}

static bool value(reader *r, belljar_json *into, int depth);

/* The items of an array or the members of an object, after its bracket. */
static bool list(reader *r, belljar_json *into, int depth) {
    bool named = into->kind == BELLJAR_OBJECT;
    const char *close = named ? "}" : "]";
    belljar_json **next = &into->first;
    skip_space(r);
    if (takes(r, close)) return true;
    do {
        belljar_json *item = belljar_alloc(sizeof *item);
        *item = (belljar_json){0};
        skip_space(r);
        const char *key = NULL;
        if (named) {
            if (!takes(r, "\"")) return wrong(r, "the name of a member was expected");
            if (!string(r, &key)) return false;
            skip_space(r);
            if (!takes(r, ":")) return wrong(r, "a colon was expected");
        }
        if (!value(r, item, depth + 1)) return false;
        item->key = key;
        *next = item;
        next = &item->next;
        into->length++;
        skip_space(r);
    } while (takes(r, ","));
    return takes(r, close) || wrong(r, "a comma or a closing bracket was expected");
}

static bool value(reader *r, belljar_json *into, int depth) {
    if (depth >= MAX_DEPTH) return wrong(r, "it is more than 64 values deep");
    skip_space(r);
    if (takes(r, "{") || takes(r, "[")) {
        into->kind = r->at[-1] == '{' ? BELLJAR_OBJECT : BELLJAR_ARRAY;
        return list(r, into, depth);
    }
    if (takes(r, "\"")) {
        into->kind = BELLJAR_STRING;
        return string(r, &into->string);
    }
    if (takes(r, "true") || takes(r, "false")) {
        into->kind = BELLJAR_BOOL;
        into->boolean = r->at[-2] == 'u';
        return true;
    }
    return takes(r, "null") || number(r, into);
}

const belljar_json *belljar_json_read(const char *text) {
    if (!belljar_is_utf8(text, strlen(text))) {
        belljar_fail(BELLJAR_INVALID, "the JSON text is not UTF-8");
        return NULL;
    }
    reader r = {text, text, NULL};
    belljar_json *whole = belljar_alloc(sizeof *whole);
    *whole = (belljar_json){0};
    if (value(&r, whole, 0)) {
        skip_space(&r);
        if (*r.at == '\0') return whole;
        wrong(&r, "more follows the value");
    }
    belljar_fail(BELLJAR_INVALID, "the JSON text is malformed at byte %zu: %s", (size_t)(r.at - r.start), r.why);
    return NULL;
}

const belljar_json *belljar_member(const belljar_json *from, const char *key) {
    const belljar_json *found = NULL;
    if (from == NULL || from->kind != BELLJAR_OBJECT) return NULL;
    /* The last of two members with one name counts, as elsewhere. */
    for (const belljar_json *at = from->first; at != NULL; at = at->next)
        if (strcmp(at->key, key) == 0) found = at;
    return found;
}

const belljar_json *belljar_item(const belljar_json *from, size_t index) {
    if (from == NULL || from->kind != BELLJAR_ARRAY) return NULL;
    const belljar_json *at = from->first;
    while (at != NULL && index-- > 0) at = at->next;
    return at;
}

int64_t belljar_int(const belljar_json *from, const char *key, int64_t otherwise) {
    const belljar_json *found = belljar_member(from, key);
    return found != NULL && found->kind == BELLJAR_NUMBER && found->is_integer ? found->integer : otherwise;
}

double belljar_number(const belljar_json *from, const char *key, double otherwise) {
    const belljar_json *found = belljar_member(from, key);
    return found != NULL && found->kind == BELLJAR_NUMBER ? found->number : otherwise;
}

bool belljar_bool(const belljar_json *from, const char *key, bool otherwise) {
    const belljar_json *found = belljar_member(from, key);
    return found != NULL && found->kind == BELLJAR_BOOL ? found->boolean : otherwise;
}

const char *belljar_string(const belljar_json *from, const char *key, const char *otherwise) {
    const belljar_json *found = belljar_member(from, key);
    return found != NULL && found->kind == BELLJAR_STRING ? found->string : otherwise;
}

const char *belljar_quote(const char *text) {
    if (text == NULL) return "null";
    size_t length = strlen(text);
    if (length > (SIZE_MAX - 3) / 6) abort();
    char *quoted = belljar_alloc(length * 6 + 3), *to = quoted;
    *to++ = '"';
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = *text;
        } else if (c < 0x20) {
            static const char hex[] = "0123456789abcdef";
            memcpy(to, "\\u00", 4);
            to[4] = hex[c >> 4];
            to[5] = hex[c & 15];
            to += 6;
        } else {
            *to++ = *text;
        }
    }
    *to++ = '"';
    *to = '\0';
    return quoted;
}
