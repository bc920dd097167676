/* The HTTP listener; see http_server.h. */
#include "server/http/http_server.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "server/core/loop_meter.h"
#include "server/http/framing.h"
#include "server/http/problem.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { SWEEP_INTERVAL_MS = 1000, HOST_SIZE = 64 };

/* One accepted connection; lives from MHD's STARTED to its CLOSED notice. */
struct connection {
    struct connection *next, *previous;
    int fd;
    uint64_t deadline_mono_ms; /* the present request must be complete by then */
    bool owed;                 /* the request is complete and a handler owes the answer: no deadline */
};

struct hf_http_server {
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer; /* MHD's own timeouts and the sweep of late requests */
    const struct hf_http_route *routes;
    size_t route_count;
    void *context;
    unsigned local_port;
    struct connection *connections;
    uint64_t next_sweep_mono_ms;
    unsigned open_handles;
};

struct hf_http_request {
    struct hf_http_server *server;
    struct MHD_Connection *mhd;
    struct connection *connection;
    const struct hf_http_route *route;
    struct MHD_Response *response; /* answer, once it is known */
    unsigned status;
    char path_value[HF_HTTP_PATH_VALUE_SIZE];
    char *body;
    size_t body_length;
    bool body_too_large;
    bool suspended;
};

/* ------------------------------------------------------------------ answers */

static void on_timer(uv_timer_t *timer);

static void set_response(struct hf_http_request *request, unsigned status, const char *content_type, char *bytes,
                         size_t length)
{
    request->response = MHD_create_response_from_buffer(length, bytes, MHD_RESPMEM_MUST_FREE);
    request->status = status;
    if (!request->response) {
        free(bytes);
        return;
    }
    MHD_add_response_header(request->response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    MHD_add_response_header(request->response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(request->response, "X-Content-Type-Options", "nosniff");
}

static void deliver(struct hf_http_request *request)
{
    if (!request->suspended)
        return; /* the caller of the handler queues it */
    request->suspended = false;
    MHD_resume_connection(request->mhd);
    uv_timer_start(&request->server->timer, on_timer, 0, 0); /* MHD resumes inside MHD_run() only */
}

void hf_http_reply_bytes(struct hf_http_request *request, unsigned status, const char *content_type, char *bytes,
                         size_t length)
{
    set_response(request, status, content_type, bytes, length);
    deliver(request);
}

void hf_http_reply_json(struct hf_http_request *request, unsigned status, const cJSON *document, const char *location)
{
    size_t length;
    char *bytes = hf_json_canonical(document, &length);
    set_response(request, status, "application/json", bytes, length);
    if (request->response && location)
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_LOCATION, location);
    deliver(request);
}

void hf_http_reply_problem(struct hf_http_request *request, const struct hf_error *err)
{
    size_t length;
    char *bytes = hf_problem_document(err, &length);
    set_response(request, hf_problem_status(err->code), HF_PROBLEM_CONTENT_TYPE, bytes, length);
    deliver(request);
}

static enum MHD_Result queue_response(struct hf_http_request *request)
{
    if (!request->response)
        return MHD_NO; /* out of memory: close the connection */
    return MHD_queue_response(request->mhd, request->status, request->response);
}

/* ------------------------------------------------------------------ routing */

static bool is_path_value(const char *text, size_t length)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return length > 0 && length < HF_HTTP_PATH_VALUE_SIZE && strspn(text, allowed) >= length;
}

/* True when `url` is `pattern`; copies the {id} segment into value. */
static bool match_path(const char *pattern, const char *url, char value[HF_HTTP_PATH_VALUE_SIZE])
{
    static const char hole[] = "{id}";
    const char *start = strstr(pattern, hole);
    value[0] = '\0';
    if (!start)
        return strcmp(pattern, url) == 0;
    size_t prefix = (size_t)(start - pattern);
    if (strncmp(pattern, url, prefix) != 0)
        return false;
    size_t length = strcspn(url + prefix, "/");
    if (!is_path_value(url + prefix, length) || strcmp(start + sizeof hole - 1, url + prefix + length) != 0)
        return false;
    memcpy(value, url + prefix, length);
    value[length] = '\0';
    return true;
}

static int refuse_method(struct hf_http_request *request, const char *allowed)
{
    struct hf_error err;
    hf_error_set(&err, "method-not-allowed", 0, "", "this resource allows only %s", allowed);
    hf_http_reply_problem(request, &err);
    if (request->response)
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_ALLOW, allowed);
    return -1;
}

static int find_route(struct hf_http_request *request, const char *url, const char *method)
{
    const struct hf_http_server *server = request->server;
    const char *wanted = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 ? MHD_HTTP_METHOD_GET : method;
    char allowed[64] = "";
    for (size_t i = 0; i < server->route_count; i++) {
        const struct hf_http_route *route = &server->routes[i];
        if (!match_path(route->path, url, request->path_value))
            continue;
        if (strcmp(route->method, wanted) == 0) {
            request->route = route;
            return 0;
        }
        size_t used = strlen(allowed);
        snprintf(allowed + used, sizeof allowed - used, "%s%s", used ? ", " : "",
                 strcmp(route->method, MHD_HTTP_METHOD_GET) == 0 ? "GET, HEAD" : route->method);
    }
    if (allowed[0])
        return refuse_method(request, allowed);
    struct hf_error err;
    hf_error_set(&err, "not-found", 0, "", "no resource has this path; api/openapi.yaml lists them");
    hf_http_reply_problem(request, &err);
    return -1;
}

/* ------------------------------------------------------------------ checks before the body */

/* After a request of doubtful extent nothing that follows on the connection can be trusted to be the next one. */
static int check_framing(struct hf_http_request *request, const char *version)
{
    struct hf_error err;
    if (hf_http_framing_check(request->mhd, version, &err) == 0)
        return 0;
    hf_http_reply_problem(request, &err);
    if (request->response)
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_CONNECTION, "close");
    return -1;
}

static bool host_is_ours(const struct hf_http_server *server, const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    char expected[HOST_SIZE];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(expected, sizeof expected, "%s:%u", names[i], server->local_port);
        if (strcmp(host, expected) == 0 || (server->local_port == 80 && strcmp(host, names[i]) == 0))
            return true;
    }
    return false;
}

static int check_caller(struct hf_http_request *request)
{
    const struct hf_http_server *server = request->server;
    struct hf_error err;
    const char *host = hf_http_header(request, MHD_HTTP_HEADER_HOST);
    if (server->local_port && (!host || !host_is_ours(server, host))) {
        hf_error_set(&err, "host-refused", 0, "Host", "expected Host to be localhost:%u, 127.0.0.1:%u or [::1]:%u",
                     server->local_port, server->local_port, server->local_port);
        hf_http_reply_problem(request, &err);
        return -1;
    }
    if (hf_http_header(request, MHD_HTTP_HEADER_ORIGIN)) {
        hf_error_set(&err, "origin-refused", 0, "Origin",
                     "requests with an Origin header are refused; use a client "
                     "that is not a web page");
        hf_http_reply_problem(request, &err);
        return -1;
    }
    return 0;
}

static bool is_json_type(const char *content_type)
{
    static const char json[] = "application/json";
    if (!content_type || strncasecmp(content_type, json, sizeof json - 1) != 0)
        return false;
    char next = content_type[sizeof json - 1];
    return next == '\0' || next == ';' || next == ' ';
}

static int check_post_headers(struct hf_http_request *request)
{
    struct hf_error err;
    if (strcmp(request->route->method, MHD_HTTP_METHOD_POST) != 0)
        return 0;
    const char *length = hf_http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (length && (strlen(length) > 9 || strtoull(length, NULL, 10) > HF_HTTP_MAX_BODY)) {
        hf_error_set(&err, "body-too-large", 0, "", "the body may have at most %d bytes", HF_HTTP_MAX_BODY);
    } else if (hf_http_header(request, "Idempotency-Key")) {
        hf_error_set(&err, "idempotency-unsupported", 0, "Idempotency-Key",
                     "this release does not remember idempotency keys; send the request without the header and look "
                     "at GET /v1/campaigns before repeating it");
    } else if (request->route->takes_body && !is_json_type(hf_http_header(request, MHD_HTTP_HEADER_CONTENT_TYPE))) {
        hf_error_set(&err, "content-type-unsupported", 0, "Content-Type", "expected Content-Type: application/json");
    } else {
        return 0;
    }
    hf_http_reply_problem(request, &err);
    return -1;
}

/* ------------------------------------------------------------------ MHD callbacks */

static struct hf_http_request *request_new(struct hf_http_server *server, struct MHD_Connection *mhd)
{
    struct hf_http_request *request = calloc(1, sizeof *request);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (!request || !info) {
        free(request);
        return NULL;
    }
    request->server = server;
    request->mhd = mhd;
    request->connection = info->socket_context;
    return request;
}

static bool has_body(const struct hf_http_request *request)
{
    const char *length = hf_http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length && strcmp(length, "0") != 0) || hf_http_header(request, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static enum MHD_Result begin_request(struct hf_http_server *server, struct MHD_Connection *mhd, const char *url,
                                     const char *method, const char *version, void **request_context)
{
    struct hf_http_request *request = request_new(server, mhd);
    *request_context = request;
    if (!request)
        return MHD_NO;
    bool refused = check_framing(request, version) < 0 || check_caller(request) < 0 ||
                   find_route(request, url, method) < 0 || check_post_headers(request) < 0;
    /* Answering before a body has come makes MHD close the connection, which spares us reading it; without a body the
     * answer waits for the next call, and the connection lives on. */
    return refused && has_body(request) ? queue_response(request) : MHD_YES;
}

static enum MHD_Result take_body(struct hf_http_request *request, const char *bytes, size_t *size)
{
    if (request->body_length + *size > HF_HTTP_MAX_BODY)
        request->body_too_large = true;
    if (!request->body_too_large) {
        char *grown = realloc(request->body, request->body_length + *size + 1);
        if (!grown)
            return MHD_NO;
        request->body = grown;
        memcpy(request->body + request->body_length, bytes, *size);
        request->body_length += *size;
        request->body[request->body_length] = '\0';
    }
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result call_handler(struct hf_http_request *request)
{
    request->connection->owed = true;
    if (request->body_too_large) {
        struct hf_error err;
        hf_error_set(&err, "body-too-large", 0, "", "the body may have at most %d bytes", HF_HTTP_MAX_BODY);
        hf_http_reply_problem(request, &err);
        return queue_response(request);
    }
    request->route->handler(request);
    if (request->response)
        return queue_response(request);
    request->suspended = true;
    MHD_suspend_connection(request->mhd);
    return MHD_YES;
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
                                 const char *version, const char *upload_data, size_t *upload_data_size,
                                 void **request_context)
{
    struct hf_http_request *request = *request_context;
    if (!request)
        return begin_request(context, mhd, url, method, version, request_context);
    if (*upload_data_size > 0)
        return take_body(request, upload_data, upload_data_size);
    if (request->response)
        return queue_response(request); /* resumed after hf_http_reply_*() */
    return call_handler(request);
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **request_context,
                         enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)mhd;
    (void)code;
    struct hf_http_request *request = *request_context;
    if (!request)
        return;
    request->connection->owed = false;
    request->connection->deadline_mono_ms = hf_clock_mono_ms() + HF_HTTP_REQUEST_DEADLINE_MS;
    if (request->response)
        MHD_destroy_response(request->response);
    free(request->body);
    free(request);
    *request_context = NULL;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct hf_http_server *server = context;
    struct connection *connection = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        connection = calloc(1, sizeof *connection);
        if (!connection)
            return; /* request_new() refuses requests without a context */
        connection->fd = info ? info->connect_fd : -1;
        connection->deadline_mono_ms = hf_clock_mono_ms() + HF_HTTP_REQUEST_DEADLINE_MS;
        connection->next = server->connections;
        if (connection->next)
            connection->next->previous = connection;
        server->connections = connection;
        *socket_context = connection;
    } else if (connection) {
        if (connection->previous)
            connection->previous->next = connection->next;
        else
            server->connections = connection->next;
        if (connection->next)
            connection->next->previous = connection->previous;
        free(connection);
        *socket_context = NULL;
    }
}

/* ------------------------------------------------------------------ the loop */

/* MHD's own timeout starts anew with every byte; this one does not. A shut-down socket reads as closed, which MHD
 * cleans up in its usual way. */
static void sweep_late(struct hf_http_server *server)
{
    uint64_t now = hf_clock_mono_ms();
    if (now < server->next_sweep_mono_ms)
        return;
    server->next_sweep_mono_ms = now + SWEEP_INTERVAL_MS;
    for (struct connection *connection = server->connections; connection; connection = connection->next)
        if (!connection->owed && now > connection->deadline_mono_ms)
            shutdown(connection->fd, SHUT_RDWR);
}

static void run_daemon(struct hf_http_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = SWEEP_INTERVAL_MS;
    sweep_late(server);
    MHD_run(server->daemon);
    if (MHD_get_timeout(server->daemon, &timeout_ms) != MHD_YES || timeout_ms > SWEEP_INTERVAL_MS)
        timeout_ms = SWEEP_INTERVAL_MS;
    uv_timer_start(&server->timer, on_timer, timeout_ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    HF_LOOP_CALLBACK(timer->loop);
    run_daemon(timer->data);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    HF_LOOP_CALLBACK(poll->loop);
    (void)status;
    (void)events;
    run_daemon(poll->data);
}

static void on_closed(uv_handle_t *handle)
{
    struct hf_http_server *server = handle->data;
    if (--server->open_handles == 0)
        free(server);
}

/* No path or parameter of ours needs an escape, so none is taken for what it stands for: "%2f" is no slash and "%00"
 * ends nothing. */
static size_t keep_escapes(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    return strlen(text);
}

static int start_daemon(struct hf_http_server *server, int listen_fd, struct hf_error *err)
{
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_access, server, MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HF_HTTP_MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HF_HTTP_CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(HF_HTTP_REQUEST_DEADLINE_MS / 1000),
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!server->daemon)
        return hf_error_set(err, "listen-failed", errno, "listen", "the HTTP listener could not be started: %s",
                            strerror(errno));
    return 0;
}

struct hf_http_server *hf_http_server_new(uv_loop_t *loop, int listen_fd, unsigned local_port,
                                          const struct hf_http_route *routes, size_t route_count, void *context,
                                          struct hf_error *err)
{
    struct hf_http_server *server = calloc(1, sizeof *server);
    if (!server) {
        hf_error_set(err, "listen-failed", ENOMEM, "", "out of memory");
        return NULL;
    }
    server->routes = routes;
    server->route_count = route_count;
    server->context = context;
    server->local_port = local_port;
    if (start_daemon(server, listen_fd, err) < 0) {
        free(server);
        return NULL;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    uv_poll_init(loop, &server->poll, info->epoll_fd);
    uv_timer_init(loop, &server->timer);
    server->poll.data = server;
    server->timer.data = server;
    server->open_handles = 2;
    uv_poll_start(&server->poll, UV_READABLE, on_ready);
    run_daemon(server);
    return server;
}

void hf_http_server_free(struct hf_http_server *server)
{
    uv_poll_stop(&server->poll);
    uv_timer_stop(&server->timer);
    MHD_stop_daemon(server->daemon);
    uv_close((uv_handle_t *)&server->poll, on_closed);
    uv_close((uv_handle_t *)&server->timer, on_closed);
}

/* ------------------------------------------------------------------ accessors */

void *hf_http_context(const struct hf_http_request *request)
{
    return request->server->context;
}

const char *hf_http_path_value(const struct hf_http_request *request)
{
    return request->path_value;
}

const char *hf_http_query(const struct hf_http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->mhd, MHD_GET_ARGUMENT_KIND, name);
}

const char *hf_http_header(const struct hf_http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, name);
}

const char *hf_http_body(const struct hf_http_request *request, size_t *length)
{
    *length = request->body_length;
    return request->body ? request->body : "";
}
