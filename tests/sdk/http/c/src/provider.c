/* Reads from the server that the setting UPSTREAM names. The tests of belljar mount it in all languages. */
#include "belljar.h"

#include <stdlib.h>
#include <string.h>

static const belljar_http_header OWN = {"x-own", "mine"};

static belljar_status send_pieces(belljar_http_request *request, belljar_http_response *response) {
    belljar_http_upload *upload;
    belljar_status status = belljar_http_begin(request, &upload);
    if (status != BELLJAR_OK) return status;
    static const char *const PIECES[] = {"one ", "two ", "three"};
    for (size_t at = 0; at < 3; at++) belljar_http_write(upload, PIECES[at], strlen(PIECES[at]));
    return belljar_http_end(upload, response);
}

belljar_status provider_read(const char *reference, belljar_reading *reading) {
    const char *path = strchr(reference, '/');
    if (path == NULL) return BELLJAR_NOT_FOUND;
    belljar_http_request request = {.url = belljar_format("%s%s", getenv("UPSTREAM"), path)};
    request.headers = &OWN;
    request.headers_length = 1;
    if (belljar_after(reference, "soon/")) request.timeout_ms = 100;
    if (belljar_after(reference, "post/")) {
        request.body = "one two three";
        request.body_length = strlen(request.body);
    }
    belljar_http_response response;
    belljar_status status = belljar_after(reference, "send/") ? send_pieces(&request, &response)
                                                              : belljar_http_send(&request, &response);
    if (status != BELLJAR_OK) return status;
    char piece[16384], *text = "";
    size_t length = 0, total = 0;
    if (!belljar_after(reference, "count/")) {
        status = belljar_http_read_all(&response, 1 << 20, &text, &length);
    } else {
        do {
            status = belljar_http_read(&response, piece, sizeof piece, &length);
            total += length;
        } while (status == BELLJAR_OK && length > 0);
        text = (char *)belljar_format("%zu", total);
    }
    if (status == BELLJAR_OK)
        belljar_add_text(reading, reference, "text/plain", belljar_format("%u %s", response.status, text));
    return status;
}

belljar_info provider_describe(void) { return (belljar_info){.title = "Relay"}; }

belljar_status provider_list(const char *cursor, belljar_page *page) { return (void)cursor, (void)page, BELLJAR_OK; }

belljar_status provider_templates(belljar_templates *templates) { return (void)templates, BELLJAR_OK; }
