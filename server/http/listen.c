/* Listening sockets; see listen.h. */
#include "server/http/listen.h"

#include "common/cleanup.h"
#include "common/options/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG = 512 };

static int refuse_address(const char *address, struct hf_error *err)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    return hf_error_set(
        err, "listen-address", 0, "listen",
        "--listen expects 127.0.0.1:PORT, [::1]:PORT or unix:/absolute/path, got '%s'; listening beyond "
        "this host needs TLS and tokens, which this release does not have",
        hf_error_quote(address, strlen(address), quoted));
}

static int fail(const char *what, const char *address, struct hf_error *err)
{
    int saved = errno;
    return hf_error_set(err, "listen-failed", saved, "listen", "cannot %s %.256s: %s", what, address, strerror(saved));
}

/* A socket file that nobody answers is left from a crash; one that answers belongs to a living server. */
static int remove_dead_socket(const struct sockaddr_un *name, const char *address, struct hf_error *err)
{
    struct stat status;
    if (lstat(name->sun_path, &status) < 0)
        return errno == ENOENT ? 0 : fail("look at", address, err);
    if (!S_ISSOCK(status.st_mode))
        return hf_error_set(err, "listen-failed", EEXIST, "listen",
                            "%.256s exists and is not a socket; choose another path or remove it", address);
    cleanup_close int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return fail("open a socket for", address, err);
    if (connect(probe, (const struct sockaddr *)name, sizeof *name) == 0)
        return hf_error_set(err, "listen-failed", EADDRINUSE, "listen",
                            "another server answers on %.256s; stop it or choose another path", address);
    if (errno != ECONNREFUSED)
        return fail("look at", address, err);
    return unlink(name->sun_path) == 0 ? 0 : fail("remove the dead socket", address, err);
}

static int listen_unix(const char *address, const char *path, struct hf_error *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (path[0] != '/' || strlen(path) >= sizeof name.sun_path)
        return refuse_address(address, err);
    memcpy(name.sun_path, path, strlen(path) + 1);
    if (remove_dead_socket(&name, address, err) < 0)
        return -1;
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail("open a socket for", address, err);
    mode_t mask = umask(0117);
    int bound = bind(fd, (struct sockaddr *)&name, sizeof name);
    umask(mask);
    if (bound < 0 || listen(fd, BACKLOG) < 0)
        return fail("listen on", address, err);
    return STEAL_FD(fd);
}

static int bind_loopback(int family, uint16_t port, const char *address, struct hf_error *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    cleanup_close int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail("open a socket for", address, err);
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int bound =
        family == AF_INET ? bind(fd, (struct sockaddr *)&v4, sizeof v4) : bind(fd, (struct sockaddr *)&v6, sizeof v6);
    if (bound < 0 || listen(fd, BACKLOG) < 0)
        return fail("listen on", address, err);
    return STEAL_FD(fd);
}

static int bound_port(int fd, unsigned *port)
{
    union {
        struct sockaddr base;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } name;
    memset(&name, 0, sizeof name);
    socklen_t length = sizeof name;
    if (getsockname(fd, &name.base, &length) < 0)
        return -1;
    *port = ntohs(name.base.sa_family == AF_INET ? name.v4.sin_port : name.v6.sin6_port);
    return 0;
}

int hf_listen(const char *address, unsigned *port, struct hf_error *err)
{
    static const struct {
        const char *prefix;
        int family;
    } loopback[] = {{"127.0.0.1:", AF_INET}, {"[::1]:", AF_INET6}};
    static const char unix_prefix[] = "unix:";
    *port = 0;
    if (strncmp(address, unix_prefix, sizeof unix_prefix - 1) == 0)
        return listen_unix(address, address + sizeof unix_prefix - 1, err);
    for (size_t i = 0; i < sizeof loopback / sizeof loopback[0]; i++) {
        size_t length = strlen(loopback[i].prefix);
        int64_t number;
        if (strncmp(address, loopback[i].prefix, length) != 0 || !hf_parse_int64(address + length, 0, 65535, &number))
            continue;
        int fd = bind_loopback(loopback[i].family, (uint16_t)number, address, err);
        if (fd >= 0 && bound_port(fd, port) < 0) {
            fail("read the port of", address, err);
            close(fd);
            return -1;
        }
        return fd;
    }
    return refuse_address(address, err);
}
