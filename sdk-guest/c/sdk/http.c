/* Requests over HTTP: URLs, redirects, and bodies in memory. For the interface http. */
#include "http.h"

#ifdef BELLJAR_HTTP

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

/* The redirects that a request follows. */
#define REDIRECTS 5

/* The headers that a redirect takes to another origin. Any other may hold a credential. */
static const char *const TRAVELS[] = {"accept", "accept-language", "user-agent"};

/* ---- URLs, as RFC 3986 has them --------------------------------------------------------------------------------- */

static bool is_kept(unsigned char byte) {
    return isalnum(byte) || (byte != '\0' && strchr("!#$%&'()*+,-./:;=?@_~[]", byte) != NULL);
}

/* Encodes what a URL cannot hold. Leaves what is encoded already. */
static char *encode(const char *text, size_t length) {
    char *encoded = belljar_alloc(length * 3 + 1);
    char *at = encoded;
    for (size_t index = 0; index < length; index++) {
        unsigned char byte = (unsigned char)text[index];
        if (is_kept(byte)) {
            *at++ = (char)byte;
            continue;
        }
        *at++ = '%';
        *at++ = "0123456789ABCDEF"[byte >> 4];
        *at++ = "0123456789ABCDEF"[byte & 15];
    }
    *at = '\0';
    return encoded;
}

/* The dots of a segment that is "." or "..", in any spelling; 0 for others. */
static int dots_of(const char *segment, size_t length) {
    int dots = 0;
    for (size_t at = 0; at < length; dots++) {
        if (segment[at] == '.')
            at += 1;
        else if (length - at >= 3 && strncasecmp(segment + at, "%2e", 3) == 0)
            at += 3;
        else
            return 0;
    }
    return dots <= 2 ? dots : 0;
}

/* Removes the segments "." and ".." of a path, in place. */
static void remove_dots(char *path) {
    char *out = path;
    const char *in = path;
    while (*in == '/') {
        const char *segment = in + 1;
        size_t length = strcspn(segment, "/");
        int dots = dots_of(segment, length);
        bool is_last = segment[length] == '\0';
        if (dots == 2)
            while (out > path && *--out != '/') {
            }
        if (dots == 0) {
            memmove(out, in, length + 1);
            out += length + 1;
        } else if (is_last) {
            *out++ = '/';
        }
        in = segment + length;
    }
    *out = '\0';
}

static belljar_status unfit(const char *text, const char *why) {
    return belljar_fail(BELLJAR_FAILED, "\"%s\" cannot be requested: %s", text, why);
}

static belljar_status parse_url(const char *text, belljar_url *url) {
    *url = (belljar_url){0};
    const char *rest;
    if (strncasecmp(text, "http://", 7) == 0)
        rest = text + 7;
    else if (strncasecmp(text, "https://", 8) == 0) {
        rest = text + 8;
        url->is_secure = true;
    } else
        return unfit(text, "it does not begin with http:// or https://");
    size_t end = strcspn(rest, "/?#");
    if (end == 0) return unfit(text, "it has no host");
    char *authority = belljar_copy(rest, end);
    if (strchr(authority, '@') != NULL)
        return unfit(text, "it has a user name; credentials come from the grant, or from a header");
    for (char *at = authority; *at != '\0'; at++) *at = (char)tolower((unsigned char)*at);
    const char *path = rest + end;
    size_t path_length = strcspn(path, "?#");
    char *encoded = path_length > 0 ? encode(path, path_length) : belljar_copy("/", 1);
    remove_dots(encoded);
    if (path[path_length] == '?') {
        const char *query = path + path_length + 1;
        url->query = encode(query, strcspn(query, "#"));
    }
    url->authority = authority;
    url->path = encoded;
    url->shown = belljar_format("\"%s://%s%s\"", url->is_secure ? "https" : "http", authority, encoded);
    return BELLJAR_OK;
}

static const char *url_text(const belljar_url *url) {
    return belljar_format("%s://%s%s%s%s", url->is_secure ? "https" : "http", url->authority, url->path,
                          url->query != NULL ? "?" : "", url->query != NULL ? url->query : "");
}

/* Parses a reference, such as that of a redirect, relative to `base`. */
static belljar_status join_url(const belljar_url *base, const char *reference, belljar_url *url) {
    size_t before = strcspn(reference, ":/?#");
    const char *scheme = base->is_secure ? "https" : "http";
    if (reference[before] == ':') return parse_url(reference, url);
    if (strncmp(reference, "//", 2) == 0) return parse_url(belljar_format("%s:%s", scheme, reference), url);
    if (*reference == '/') return parse_url(belljar_format("%s://%s%s", scheme, base->authority, reference), url);
    if (*reference == '\0') return parse_url(url_text(base), url);
    int kept = (int)(*reference == '?' ? strlen(base->path) : (size_t)(strrchr(base->path, '/') - base->path) + 1);
    return parse_url(belljar_format("%s://%s%.*s%s", scheme, base->authority, kept, base->path, reference), url);
}

static size_t origin_length(const belljar_url *url) {
    const char *port = url->is_secure ? ":443" : ":80";
    size_t length = strlen(url->authority), end = strlen(port);
    return length > end && strcmp(url->authority + length - end, port) == 0 ? length - end : length;
}

static bool same_origin(const belljar_url *one, const belljar_url *other) {
    size_t length = origin_length(one);
    return one->is_secure == other->is_secure && length == origin_length(other) &&
           memcmp(one->authority, other->authority, length) == 0;
}

/* ---- Sending ------------------------------------------------------------------------------------------------------ */

static const char *method_of(const belljar_http_request *request) {
    return request->method != NULL ? request->method : request->body_length > 0 ? "POST" : "GET";
}

static belljar_status exchange(const belljar_http_request *request, const belljar_url *url,
                               belljar_http_response *response) {
    belljar_http_upload *upload;
    belljar_status status = belljar_http_host_begin(request, url, method_of(request), request->body_length, &upload);
    if (status != BELLJAR_OK) return status;
    if (request->body_length > 0) belljar_http_write(upload, request->body, request->body_length);
    return belljar_http_end(upload, response);
}

/* The headers that may go to another origin. */
static void keep_harmless(belljar_http_request *request) {
    belljar_http_header *kept = belljar_alloc((request->headers_length + 1) * sizeof *kept);
    size_t length = 0;
    for (size_t at = 0; at < request->headers_length; at++)
        for (size_t name = 0; name < sizeof TRAVELS / sizeof *TRAVELS; name++)
            if (strcasecmp(request->headers[at].name, TRAVELS[name]) == 0) kept[length++] = request->headers[at];
    request->headers = kept;
    request->headers_length = length;
}

static bool is_redirect(unsigned status) {
    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

belljar_status belljar_http_send(const belljar_http_request *given, belljar_http_response *response) {
    belljar_http_request request = *given;
    belljar_url url, next;
    belljar_status status = parse_url(request.url, &url);
    if (status != BELLJAR_OK) return status;
    const char *method = method_of(&request), *came_from = NULL;
    bool follows = !request.keeps_redirects && (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0);
    for (int redirects = 0;; redirects++) {
        status = exchange(&request, &url, response);
        if (status == BELLJAR_DENIED && came_from != NULL)
            return belljar_fail(BELLJAR_DENIED, "%s redirects to %s, and no request to there was granted", came_from,
                                url.shown);
        if (status != BELLJAR_OK) return status;
        const char *location = is_redirect(response->status) ? belljar_http_header_of(response, "location") : NULL;
        if (!follows || location == NULL) return BELLJAR_OK;
        belljar_http_close(response);
        if (redirects == REDIRECTS)
            return belljar_fail(BELLJAR_FAILED, "%s redirects once more after %d redirects", url.shown, REDIRECTS);
        status = join_url(&url, location, &next);
        if (status != BELLJAR_OK)
            return belljar_fail(BELLJAR_FAILED, "%s redirects: %s", url.shown, belljar_copy_string(belljar_reason()));
        if (!same_origin(&url, &next)) keep_harmless(&request);
        came_from = url.shown;
        url = next;
    }
}

belljar_status belljar_http_get(const char *url, belljar_http_response *response) {
    return belljar_http_send(&(belljar_http_request){.url = url}, response);
}

belljar_status belljar_http_begin(const belljar_http_request *request, belljar_http_upload **upload) {
    belljar_url url;
    belljar_status status = parse_url(request->url, &url);
    if (status != BELLJAR_OK) return status;
    const char *method = request->method != NULL ? request->method : "POST";
    status = belljar_http_host_begin(request, &url, method, BELLJAR_HTTP_PIECES, upload);
    if (status == BELLJAR_OK && request->body_length > 0)
        belljar_http_write(*upload, request->body, request->body_length);
    return status;
}

/* ---- Answers ------------------------------------------------------------------------------------------------------ */

const char *belljar_http_header_of(const belljar_http_response *response, const char *name) {
    for (size_t at = 0; at < response->headers_length; at++)
        if (strcasecmp(response->headers[at].name, name) == 0) return response->headers[at].value;
    return NULL;
}

belljar_status belljar_http_read_all(belljar_http_response *response, size_t most, char **bytes, size_t *length) {
    size_t capacity = 0;
    char *all = NULL;
    *length = 0;
    for (size_t piece = 1; piece > 0 && *length < most; *length += piece) {
        if (capacity - *length < 4096) {
            capacity = capacity > 0 ? capacity * 2 : 16 * 1024;
            char *larger = belljar_alloc(capacity + 1);
            if (*length > 0) memcpy(larger, all, *length);
            all = larger;
        }
        size_t room = capacity - *length < most - *length ? capacity - *length : most - *length;
        belljar_status status = belljar_http_read(response, all + *length, room, &piece);
        if (status != BELLJAR_OK) return status;
    }
    if (all == NULL) all = belljar_alloc(1);
    all[*length] = '\0';
    *bytes = all;
    return BELLJAR_OK;
}

/* ---- Without a host ------------------------------------------------------------------------------------------------ */

#ifndef __wasm__

/* Outside of a sandbox, as in unit tests, nothing is granted. */
belljar_status belljar_http_host_begin(const belljar_http_request *request, const belljar_url *url, const char *method,
                                       size_t length, belljar_http_upload **upload) {
    (void)request, (void)method, (void)length;
    *upload = NULL;
    return belljar_fail(BELLJAR_DENIED, "no request to %s was granted", url->shown);
}

void belljar_http_write(belljar_http_upload *upload, const void *bytes, size_t length) {
    (void)upload, (void)bytes, (void)length;
}

belljar_status belljar_http_end(belljar_http_upload *upload, belljar_http_response *response) {
    (void)upload, (void)response;
    return BELLJAR_DENIED;
}

belljar_status belljar_http_read(belljar_http_response *response, void *bytes, size_t size, size_t *length) {
    (void)response, (void)bytes, (void)size;
    *length = 0;
    return BELLJAR_OK;
}

void belljar_http_close(belljar_http_response *response) { (void)response; }

#endif

#else

/* ISO C has no empty source file. */
typedef int belljar_without_http;

#endif
