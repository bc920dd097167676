/*
 * The HTTP listener: libmicrohttpd in external epoll mode on the controller's libuv loop. Owns connections, limits and
 * framing; what a path means is in the routes that the program hands over. Knows nothing of campaigns.
 *
 * Hostile clients: at most HF_HTTP_MAX_CONNECTIONS connections of HF_HTTP_CONNECTION_BYTES each, bodies up to
 * HF_HTTP_MAX_BODY, and a deadline for every request from its first byte (or the connection) to its last, however
 * slowly it drips. Requests from web pages are refused: a Host header other than the listener's (DNS rebinding) and any
 * Origin header.
 */
#ifndef HF_SERVER_HTTP_HTTP_SERVER_H
#define HF_SERVER_HTTP_HTTP_SERVER_H

#include "common/error.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define HF_HTTP_MAX_BODY            65536
#define HF_HTTP_MAX_CONNECTIONS     1024
#define HF_HTTP_CONNECTION_BYTES    16384
#define HF_HTTP_REQUEST_DEADLINE_MS 15000
#define HF_HTTP_PATH_VALUE_SIZE     97

struct hf_http_server;
struct hf_http_request;

/* A handler answers with one hf_http_reply_*() call, now or later on the loop's thread; the request stays valid until
 * it has. */
typedef void (*hf_http_handler)(struct hf_http_request *request);

/* One row: `path` may contain one "{id}" segment, [a-z0-9-] of 1..96 bytes. GET rows answer HEAD too. */
struct hf_http_route {
    const char *method; /* "GET" or "POST" */
    const char *path;
    hf_http_handler handler;
    bool takes_body; /* the body must be declared application/json; other routes ignore theirs */
};

/* Takes over listen_fd, a bound and listening stream socket. local_port is what Host must name (0: a unix socket, where
 * Host is not looked at). Routes are borrowed for the server's life; context is for hf_http_context(). */
struct hf_http_server *hf_http_server_new(uv_loop_t *loop, int listen_fd, unsigned local_port,
                                          const struct hf_http_route *routes, size_t route_count, void *context,
                                          struct hf_error *err);
/* Closes every connection. No handler may still owe an answer. */
void hf_http_server_free(struct hf_http_server *server);

void *hf_http_context(const struct hf_http_request *request);
const char *hf_http_path_value(const struct hf_http_request *request); /* the {id} segment, "" without one */
const char *hf_http_query(const struct hf_http_request *request, const char *name);  /* NULL when absent */
const char *hf_http_header(const struct hf_http_request *request, const char *name); /* NULL when absent */
const char *hf_http_body(const struct hf_http_request *request, size_t *length);

/* `location` may be NULL. The document is not taken over. */
void hf_http_reply_json(struct hf_http_request *request, unsigned status, const cJSON *document, const char *location);
/* Takes `bytes` (malloc'ed). */
void hf_http_reply_bytes(struct hf_http_request *request, unsigned status, const char *content_type, char *bytes,
                         size_t length);
void hf_http_reply_problem(struct hf_http_request *request, const struct hf_error *err);

#endif
