/* Requests over HTTP in a component: the functions of wasi:http. For the interface http. */
#include "http.h"

#if defined(BELLJAR_HTTP) && defined(__wasm__)

#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "provider.h"

/* A request that was sent. A stream is a child of its body, so it is dropped first. */
struct belljar_http_upload {
    bool has_body;
    wasi_http_types_own_outgoing_body_t body;
    wasi_io_streams_own_output_stream_t stream;
    wasi_http_types_own_future_incoming_response_t future;
    belljar_url url;
};

/* The body of an answer. Each resource is a child of the one before. */
struct belljar_http_body {
    bool is_open, has_ended;
    wasi_http_types_own_incoming_response_t response;
    wasi_http_types_own_incoming_body_t body;
    wasi_io_streams_own_input_stream_t stream;
    const char *shown;
};

static provider_string_t string_of(const char *text) {
    return (provider_string_t){(uint8_t *)(uintptr_t)text, strlen(text)};
}

static belljar_status malformed(const belljar_url *url, const char *part) {
    return belljar_fail(BELLJAR_FAILED,
                        "the request to %s cannot be sent: %s is malformed, or belljar does not let a provider set it",
                        url->shown, part);
}

/* The failure for an error code of the host. */
static belljar_status failure(const char *shown, wasi_http_types_error_code_t *code) {
    belljar_status status = BELLJAR_UNAVAILABLE;
    const char *why;
    switch (code->tag) {
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_DENIED:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_IP_PROHIBITED:
        return belljar_fail(BELLJAR_DENIED, "no request to %s was granted", shown);
    case WASI_HTTP_TYPES_ERROR_CODE_DNS_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_DNS_ERROR:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_NOT_FOUND:
        why = "its name cannot be resolved";
        break;
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_UNAVAILABLE:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_IP_UNROUTABLE:
        why = "it cannot be reached";
        break;
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_REFUSED:
        why = "it refused the connection";
        break;
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_TERMINATED:
        why = "the connection was closed";
        break;
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_LIMIT_REACHED:
        why = "too many connections are open";
        break;
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_READ_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_CONNECTION_WRITE_TIMEOUT:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_TIMEOUT:
        why = "it took too long";
        break;
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_INCOMPLETE:
        why = "its answer ended too early";
        break;
    default:
        status = BELLJAR_FAILED;
        switch (code->tag) {
        case WASI_HTTP_TYPES_ERROR_CODE_TLS_PROTOCOL_ERROR:
            why = "TLS failed";
            break;
        case WASI_HTTP_TYPES_ERROR_CODE_TLS_CERTIFICATE_ERROR:
            why = "its certificate is not trusted";
            break;
        case WASI_HTTP_TYPES_ERROR_CODE_TLS_ALERT_RECEIVED:
            why = "it refused TLS";
            break;
        case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_BODY_SIZE:
            why = "the body of the request is larger than the host allows";
            break;
        case WASI_HTTP_TYPES_ERROR_CODE_HTTP_RESPONSE_BODY_SIZE:
            why = "its answer is larger than the host allows";
            break;
        case WASI_HTTP_TYPES_ERROR_CODE_HTTP_PROTOCOL_ERROR:
            why = "it does not speak HTTP as it should";
            break;
        default:
            why = belljar_format("the host reports the code %d of wasi:http", code->tag);
        }
    }
    return belljar_fail(status, "no answer from %s: %s", shown, why);
}

static wasi_http_types_method_t method_of(const char *name) {
    static const char *const NAMES[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    wasi_http_types_method_t method = {.tag = WASI_HTTP_TYPES_METHOD_OTHER, .val.other = string_of(name)};
    for (uint8_t at = 0; at < sizeof NAMES / sizeof *NAMES; at++)
        if (strcmp(name, NAMES[at]) == 0) method.tag = at;
    return method;
}

static bool append(wasi_http_types_own_fields_t fields, const char *name, const char *value) {
    wasi_http_types_header_error_t error;
    provider_string_t key = string_of(name);
    wasi_http_types_field_value_t bytes = {(uint8_t *)(uintptr_t)value, strlen(value)};
    return wasi_http_types_method_fields_append(wasi_http_types_borrow_fields(fields), &key, &bytes, &error);
}

static wasi_http_types_own_request_options_t options_of(uint32_t timeout_ms) {
    wasi_http_types_own_request_options_t options = wasi_http_types_constructor_request_options();
    wasi_http_types_borrow_request_options_t borrowed = wasi_http_types_borrow_request_options(options);
    wasi_http_types_duration_t nanoseconds = (uint64_t)timeout_ms * 1000000;
    wasi_http_types_method_request_options_set_connect_timeout(borrowed, &nanoseconds);
    wasi_http_types_method_request_options_set_first_byte_timeout(borrowed, &nanoseconds);
    wasi_http_types_method_request_options_set_between_bytes_timeout(borrowed, &nanoseconds);
    return options;
}

belljar_status belljar_http_host_begin(const belljar_http_request *request, const belljar_url *url, const char *method,
                                       size_t length, belljar_http_upload **result) {
    wasi_http_types_own_fields_t fields = wasi_http_types_constructor_fields();
    for (size_t at = 0; at < request->headers_length; at++)
        if (!append(fields, request->headers[at].name, request->headers[at].value))
            return malformed(url, belljar_format("the header \"%s\"", request->headers[at].name));
    if (length > 0 && length != BELLJAR_HTTP_PIECES) append(fields, "content-length", belljar_format("%zu", length));
    wasi_http_types_own_outgoing_request_t outgoing = wasi_http_types_constructor_outgoing_request(fields);
    wasi_http_types_borrow_outgoing_request_t borrowed = wasi_http_types_borrow_outgoing_request(outgoing);
    wasi_http_types_method_t how = method_of(method);
    wasi_http_types_scheme_t scheme = {.tag = url->is_secure ? WASI_HTTP_TYPES_SCHEME_HTTPS : WASI_HTTP_TYPES_SCHEME_HTTP};
    provider_string_t authority = string_of(url->authority);
    provider_string_t target = string_of(url->query != NULL ? belljar_format("%s?%s", url->path, url->query) : url->path);
    if (!wasi_http_types_method_outgoing_request_set_method(borrowed, &how)) return malformed(url, "the method");
    if (!wasi_http_types_method_outgoing_request_set_scheme(borrowed, &scheme)) return malformed(url, "the scheme");
    if (!wasi_http_types_method_outgoing_request_set_authority(borrowed, &authority)) return malformed(url, "the host");
    if (!wasi_http_types_method_outgoing_request_set_path_with_query(borrowed, &target)) return malformed(url, "the path");
    belljar_http_upload *upload = belljar_alloc(sizeof *upload);
    *upload = (belljar_http_upload){.has_body = length > 0, .url = *url};
    if (upload->has_body) {
        if (!wasi_http_types_method_outgoing_request_body(borrowed, &upload->body) ||
            !wasi_http_types_method_outgoing_body_write(wasi_http_types_borrow_outgoing_body(upload->body), &upload->stream))
            return malformed(url, "the body");
    }
    wasi_http_types_own_request_options_t options;
    if (request->timeout_ms > 0) options = options_of(request->timeout_ms);
    wasi_http_types_error_code_t code;
    if (!wasi_http_outgoing_handler_handle(outgoing, request->timeout_ms > 0 ? &options : NULL, &upload->future, &code))
        return failure(url->shown, &code);
    *result = upload;
    return BELLJAR_OK;
}

/* Ends the body. If the host does not take it, its answer says why. */
static void end_body(belljar_http_upload *upload, bool is_whole) {
    wasi_io_streams_stream_error_t error;
    wasi_http_types_error_code_t code;
    if (!upload->has_body) return;
    upload->has_body = false;
    if (is_whole)
        wasi_io_streams_method_output_stream_blocking_flush(wasi_io_streams_borrow_output_stream(upload->stream), &error);
    wasi_io_streams_output_stream_drop_own(upload->stream);
    if (is_whole)
        wasi_http_types_static_outgoing_body_finish(upload->body, NULL, &code);
    else
        wasi_http_types_outgoing_body_drop_own(upload->body);
}

static void block(wasi_io_poll_own_pollable_t pollable) {
    wasi_io_poll_method_pollable_block(wasi_io_poll_borrow_pollable(pollable));
    wasi_io_poll_pollable_drop_own(pollable);
}

void belljar_http_write(belljar_http_upload *upload, const void *bytes, size_t length) {
    wasi_io_streams_stream_error_t error;
    const uint8_t *at = bytes;
    while (upload->has_body && length > 0) {
        wasi_io_streams_borrow_output_stream_t stream = wasi_io_streams_borrow_output_stream(upload->stream);
        uint64_t room;
        if (!wasi_io_streams_method_output_stream_check_write(stream, &room, &error)) {
            end_body(upload, false);
        } else if (room == 0) {
            block(wasi_io_streams_method_output_stream_subscribe(stream));
        } else {
            provider_list_u8_t now = {(uint8_t *)(uintptr_t)at, room < length ? (size_t)room : length};
            if (!wasi_io_streams_method_output_stream_write(stream, &now, &error)) end_body(upload, false);
            at += now.len;
            length -= now.len;
        }
    }
}

/* Copies the headers into memory of the call. */
static void copy_headers(wasi_http_types_borrow_incoming_response_t from, belljar_http_response *response) {
    wasi_http_types_own_fields_t fields = wasi_http_types_method_incoming_response_headers(from);
    wasi_http_types_list_tuple2_field_name_field_value_t entries;
    wasi_http_types_method_fields_entries(wasi_http_types_borrow_fields(fields), &entries);
    response->headers_length = entries.len;
    response->headers = belljar_alloc((entries.len + 1) * sizeof *response->headers);
    for (size_t at = 0; at < entries.len; at++) {
        response->headers[at].name = belljar_copy(entries.ptr[at].f0.ptr, entries.ptr[at].f0.len);
        response->headers[at].value = belljar_copy(entries.ptr[at].f1.ptr, entries.ptr[at].f1.len);
    }
    wasi_http_types_list_tuple2_field_name_field_value_free(&entries);
    wasi_http_types_fields_drop_own(fields);
}

belljar_status belljar_http_end(belljar_http_upload *upload, belljar_http_response *response) {
    end_body(upload, true);
    wasi_http_types_borrow_future_incoming_response_t future =
        wasi_http_types_borrow_future_incoming_response(upload->future);
    block(wasi_http_types_method_future_incoming_response_subscribe(future));
    wasi_http_types_result_result_own_incoming_response_error_code_void_t result;
    bool is_there = wasi_http_types_method_future_incoming_response_get(future, &result);
    wasi_http_types_future_incoming_response_drop_own(upload->future);
    if (!is_there || result.is_err) return belljar_fail(BELLJAR_FAILED, "internal error: the answer was taken twice");
    if (result.val.ok.is_err) return failure(upload->url.shown, &result.val.ok.val.err);
    struct belljar_http_body *body = belljar_alloc(sizeof *body);
    *body = (struct belljar_http_body){.response = result.val.ok.val.ok, .shown = upload->url.shown};
    wasi_http_types_borrow_incoming_response_t incoming = wasi_http_types_borrow_incoming_response(body->response);
    const belljar_url *url = &upload->url;
    *response = (belljar_http_response){
        .status = wasi_http_types_method_incoming_response_status(incoming),
        .url = belljar_format("%s://%s%s%s%s", url->is_secure ? "https" : "http", url->authority, url->path,
                              url->query != NULL ? "?" : "", url->query != NULL ? url->query : ""),
        .body = body,
    };
    copy_headers(incoming, response);
    if (!wasi_http_types_method_incoming_response_consume(incoming, &body->body) ||
        !wasi_http_types_method_incoming_body_stream(wasi_http_types_borrow_incoming_body(body->body), &body->stream))
        return belljar_fail(BELLJAR_FAILED, "internal error: the body was taken twice");
    body->is_open = true;
    return BELLJAR_OK;
}

belljar_status belljar_http_read(belljar_http_response *response, void *bytes, size_t size, size_t *length) {
    struct belljar_http_body *body = response->body;
    *length = 0;
    if (body == NULL || !body->is_open || body->has_ended || size == 0) return BELLJAR_OK;
    provider_list_u8_t piece;
    wasi_io_streams_stream_error_t error;
    wasi_io_streams_borrow_input_stream_t stream = wasi_io_streams_borrow_input_stream(body->stream);
    if (wasi_io_streams_method_input_stream_blocking_read(stream, size, &piece, &error)) {
        memcpy(bytes, piece.ptr, piece.len);
        *length = piece.len;
        provider_list_u8_free(&piece);
        return BELLJAR_OK;
    }
    body->has_ended = true;
    if (error.tag == WASI_IO_STREAMS_STREAM_ERROR_CLOSED) return BELLJAR_OK;
    wasi_io_error_own_error_t cause = error.val.last_operation_failed;
    wasi_http_types_error_code_t code;
    bool is_known = wasi_http_types_http_error_code(wasi_io_error_borrow_error(cause), &code);
    wasi_io_error_error_drop_own(cause);
    if (is_known) return failure(body->shown, &code);
    return belljar_fail(BELLJAR_UNAVAILABLE, "no whole answer from %s: it ended too early", body->shown);
}

void belljar_http_close(belljar_http_response *response) {
    struct belljar_http_body *body = response->body;
    if (body == NULL || !body->is_open) return;
    body->is_open = false;
    wasi_io_streams_input_stream_drop_own(body->stream);
    wasi_http_types_incoming_body_drop_own(body->body);
    wasi_http_types_incoming_response_drop_own(body->response);
}

#else

/* ISO C has no empty source file. */
typedef int belljar_without_http_host;

#endif
