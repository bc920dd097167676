/* See client.h. */
#include "tests/integration/http/client.h"

#include "common/clock.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_TIMEOUT_MS = 20000, REPLY_TIMEOUT_MS = 20000, REPLY_MAX = 1 << 20 };

void server_prepare(struct server_under_test *server)
{
    *server = (struct server_under_test){.pid = -1};
    snprintf(server->directory, sizeof server->directory, "/tmp/hf-http-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(server->directory));
}

void server_add_fake_executor(struct server_under_test *server, const char *behaviours)
{
    char path[128];
    snprintf(path, sizeof path, "%s/wrapper", server->directory);
    FILE *script = fopen(path, "w");
    ck_assert_ptr_nonnull(script);
    fprintf(script, "#!/bin/sh\nexec %s/fake-executor '%s' %s\n", getenv("HF_BIN_DIR"), behaviours, server->directory);
    ck_assert_int_eq(fchmod(fileno(script), 0700), 0);
    ck_assert_int_eq(fclose(script), 0);
    snprintf(server->executor, sizeof server->executor, "fake=%s", path);
}

static void exec_server(const struct server_under_test *server, int output)
{
    char program[4096], runs[128], state[128];
    const char *argv[16] = {program, "--listen", "127.0.0.1:0", "--runs-dir", runs, "--state-dir", state};
    int count = 7;
    snprintf(program, sizeof program, "%s/holdfastd", getenv("HF_BIN_DIR"));
    snprintf(runs, sizeof runs, "%s/runs", server->directory);
    snprintf(state, sizeof state, "%s/state", server->directory);
    if (server->executor[0]) {
        argv[count++] = "--executor";
        argv[count++] = server->executor;
    }
    if (server->profiles[0]) {
        argv[count++] = "--profiles-dir";
        argv[count++] = server->profiles;
    }
    argv[count] = NULL;
    dup2(output, STDOUT_FILENO);
    if (server->log_fd > 0)
        dup2(server->log_fd, STDERR_FILENO);
    execv(program, (char **)argv);
    _exit(127);
}

/* Returns the reading end of its stdout. */
static int spawn(struct server_under_test *server)
{
    int pipe_fds[2];
    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    server->pid = fork();
    ck_assert_int_ge(server->pid, 0);
    if (server->pid == 0)
        exec_server(server, pipe_fds[1]);
    close(pipe_fds[1]);
    return pipe_fds[0];
}

void server_spawn(struct server_under_test *server)
{
    close(spawn(server));
}

void server_start(struct server_under_test *server)
{
    int output = spawn(server);
    char line[256] = "";
    size_t used = 0;
    struct pollfd ready = {.fd = output, .events = POLLIN};
    while (!strchr(line, '\n') && used < sizeof line - 1) {
        ck_assert_msg(poll(&ready, 1, START_TIMEOUT_MS) == 1, "holdfastd did not say that it listens");
        ssize_t count = read(output, line + used, sizeof line - 1 - used);
        ck_assert_msg(count > 0, "holdfastd ended before it listened");
        used += (size_t)count;
        line[used] = '\0';
    }
    close(output);
    ck_assert_msg(sscanf(line, "holdfastd listens on port %u", &server->port) == 1, "unexpected: %s", line);
}

int server_end(struct server_under_test *server, int signal_number)
{
    int status;
    ck_assert_int_eq(kill(server->pid, signal_number), 0);
    ck_assert_int_eq(waitpid(server->pid, &status, 0), server->pid);
    server->pid = -1;
    return status;
}

void server_remove(struct server_under_test *server)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", server->directory);
    ck_assert_int_eq(system(command), 0);
}

void reply_clear(struct reply *reply)
{
    free(reply->headers);
    free(reply->body);
    *reply = (struct reply){0};
}

int client_connect(const struct server_under_test *server)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)server->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_msg(connect(fd, (struct sockaddr *)&name, sizeof name) == 0, "connect: %s", strerror(errno));
    return fd;
}

void client_send(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t count = send(fd, bytes, length, MSG_NOSIGNAL);
        if (count <= 0)
            return; /* the server may close on a bad request: the reply tells */
        bytes += count;
        length -= (size_t)count;
    }
}

/* Appends what is readable; false at end of stream or timeout. */
static bool read_some(int fd, uint64_t deadline_mono_ms, char *buffer, size_t *used)
{
    uint64_t now = hf_clock_mono_ms();
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (now >= deadline_mono_ms || poll(&ready, 1, (int)(deadline_mono_ms - now)) != 1)
        return false;
    ssize_t count = recv(fd, buffer + *used, REPLY_MAX - *used, 0);
    if (count <= 0)
        return false;
    *used += (size_t)count;
    buffer[*used] = '\0';
    return true;
}

static size_t content_length(const char *headers)
{
    const char *field = strcasestr(headers, "\r\nContent-Length:");
    return field ? strtoul(field + 17, NULL, 10) : 0;
}

bool client_read(int fd, int timeout_ms, struct reply *reply)
{
    *reply = (struct reply){0};
    char *buffer = calloc(1, REPLY_MAX + 1);
    size_t used = 0;
    uint64_t deadline = hf_clock_mono_ms() + (uint64_t)timeout_ms;
    char *end = NULL;
    while (!(end = strstr(buffer, "\r\n\r\n")) && read_some(fd, deadline, buffer, &used))
        ;
    if (!end || sscanf(buffer, "HTTP/1.%*d %d", &reply->status) != 1) {
        free(buffer);
        return false;
    }
    size_t header_length = (size_t)(end - buffer) + 4;
    size_t wanted = header_length + content_length(buffer);
    while (used < wanted && read_some(fd, deadline, buffer, &used))
        ;
    reply->headers = strndup(buffer, header_length);
    reply->body_length = used - header_length;
    reply->body = strndup(buffer + header_length, reply->body_length);
    free(buffer);
    return used >= wanted;
}

static int begin(const struct server_under_test *server, const char *request, size_t length)
{
    int fd = client_connect(server);
    client_send(fd, request, length);
    return fd;
}

static struct reply finish(int fd)
{
    struct reply reply;
    client_read(fd, REPLY_TIMEOUT_MS, &reply);
    close(fd);
    return reply;
}

struct reply client_get(const struct server_under_test *server, const char *path)
{
    char request[4096];
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n",
                          path, server->port);
    return finish(begin(server, request, (size_t)length));
}

int client_post_begin(const struct server_under_test *server, const char *path, const char *body)
{
    size_t body_length = body ? strlen(body) : 0;
    char *request = malloc(body_length + 1024);
    int length = snprintf(request, body_length + 1024,
                          "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                          path, server->port, body_length, body ? body : "");
    int fd = begin(server, request, (size_t)length);
    free(request);
    return fd;
}

struct reply client_post(const struct server_under_test *server, const char *path, const char *body)
{
    return finish(client_post_begin(server, path, body));
}
