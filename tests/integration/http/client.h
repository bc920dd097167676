/*
 * A deliberately naive HTTP client and a holdfastd under test. The client sends exactly the bytes it is given, so that
 * tests can be as wrong as an attacker; it reads until the peer closes or a whole response is there.
 */
#ifndef HF_TESTS_HTTP_CLIENT_H
#define HF_TESTS_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct server_under_test {
    pid_t pid;
    unsigned port;
    char directory[64];  /* private: runs/, state/ */
    char executor[4200]; /* NAME=PATH for --executor, "" for none */
    char profiles[4200]; /* --profiles-dir, "" for the default */
    int log_fd;          /* its stderr; 0: the test's own */
};

/* Starts holdfastd of $HF_BIN_DIR on a free loopback port with directories below server->directory (made by
 * server_prepare) and waits until it says that it listens. Aborts the test on failure. */
void server_prepare(struct server_under_test *server);
/* Configures an executor named "fake" that behaves as the scripted executor's list says; before server_start(). */
void server_add_fake_executor(struct server_under_test *server, const char *behaviours);
void server_start(struct server_under_test *server);
/* Starts it and returns without waiting for anything. */
void server_spawn(struct server_under_test *server);
/* Sends a signal, waits, and returns the wait status. */
int server_end(struct server_under_test *server, int signal_number);
void server_remove(struct server_under_test *server); /* deletes the directory */

struct reply {
    int status;    /* 0: the connection closed without a response */
    char *headers; /* owned, NUL-terminated, as received */
    char *body;    /* owned, NUL-terminated */
    size_t body_length;
};
void reply_clear(struct reply *reply);

int client_connect(const struct server_under_test *server);
void client_send(int fd, const char *bytes, size_t length);
/* Reads one response; false when the peer closed first or `timeout_ms` passed. */
bool client_read(int fd, int timeout_ms, struct reply *reply);

/* Sends one request on a connection of its own and returns that connection: client_read() gets the answer. */
int client_post_begin(const struct server_under_test *server, const char *path, const char *body);
/* One request on a connection of its own. `body` may be NULL. */
struct reply client_get(const struct server_under_test *server, const char *path);
struct reply client_post(const struct server_under_test *server, const char *path, const char *body);

#endif
