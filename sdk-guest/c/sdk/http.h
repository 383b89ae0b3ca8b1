/* The two halves of requests over HTTP: http.c knows URLs and redirects, http_host.c the functions of the host. */
#ifndef BELLJAR_HTTP_H
#define BELLJAR_HTTP_H

#include "belljar.h"

/* A URL that can be requested. */
typedef struct belljar_url {
    bool is_secure;
    const char *authority, *path, *query; /* `query` is NULL, or what follows the `?` */
    const char *shown;                    /* for messages: in quotes, without the query */
} belljar_url;

/* The length of a body that is written in pieces. */
#define BELLJAR_HTTP_PIECES SIZE_MAX

/* Begins a request. `length` is that of the body. */
belljar_status belljar_http_host_begin(const belljar_http_request *request, const belljar_url *url, const char *method,
                                       size_t length, belljar_http_upload **upload);

#endif
