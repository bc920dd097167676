/* The loopback listener; see network_canary.h. */
#include "executor/watchdog/network_canary.h"

#include "executor/watchdog/message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    PORT_ATTEMPTS = 16,
    HANDSHAKE_SETTLE_MS = 20, /* a loopback handshake that has begun is over in microseconds */
};

void network_canary_init(struct network_canary *canary)
{
    memset(canary, 0, sizeof *canary);
    canary->fds[0] = canary->fds[1] = -1;
}

static int listen_on(int family, uint16_t port)
{
    union {
        struct sockaddr base;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    memset(&address, 0, sizeof address);
    socklen_t length = family == AF_INET ? sizeof address.v4 : sizeof address.v6;
    if (family == AF_INET)
        address.v4 =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    else
        address.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = in6addr_loopback};
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (fd >= 0 && family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (fd >= 0 && bind(fd, &address.base, length) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return -1;
}

/* True when the failure says that this host has no IPv6 loopback at all, so that nothing could connect there either. */
static bool no_ipv6(int error)
{
    return error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == EPROTONOSUPPORT;
}

int network_canary_open(struct network_canary *canary, struct hf_error *err)
{
    for (int attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
        struct sockaddr_in bound = {0};
        socklen_t length = sizeof bound;
        canary->fds[0] = listen_on(AF_INET, 0);
        if (canary->fds[0] < 0 || getsockname(canary->fds[0], (struct sockaddr *)&bound, &length) != 0)
            break;
        canary->port = ntohs(bound.sin_port);
        canary->fds[1] = listen_on(AF_INET6, bound.sin_port);
        if (canary->fds[1] >= 0 || no_ipv6(errno))
            return 0;
        if (errno != EADDRINUSE)
            break;
        close(canary->fds[0]);
        canary->fds[0] = -1;
    }
    return hf_error_set(err, "watchdog-network-canary", errno, "",
                        "cannot listen on loopback for the network canary: %s", strerror(errno));
}

static void peer_text(const struct sockaddr_storage *peer, socklen_t length, char out[NETWORK_CANARY_PEER_SIZE])
{
    char host[INET6_ADDRSTRLEN] = "unknown";
    unsigned port = 0;
    if (length >= sizeof(struct sockaddr_in) && peer->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)peer;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        port = ntohs(v4->sin_port);
    } else if (length >= sizeof(struct sockaddr_in6) && peer->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)peer;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        port = ntohs(v6->sin6_port);
    }
    snprintf(out, NETWORK_CANARY_PEER_SIZE, "[%s]:%u", host, port);
}

static void count(struct network_canary *canary, const char *peer, network_canary_seen seen, void *context)
{
    if (canary->connections >= WATCHDOG_MAX_CONNECTIONS)
        return;
    canary->connections++;
    seen(context, peer);
}

/* One connection: 1 counted, 0 queue empty, -1 the listener failed. */
static int accept_one(struct network_canary *canary, int listener, network_canary_seen seen, void *context)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    char text[NETWORK_CANARY_PEER_SIZE] = "[unknown]:0";
    int fd = -1;
    do
        fd = accept4(listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        /* accept(2): errors of the connection itself. Somebody did connect. */
        if (errno != ECONNABORTED && errno != EPROTO && errno != ENETDOWN && errno != EHOSTUNREACH) {
            snprintf(canary->error, sizeof canary->error, "the network canary can no longer accept: %s",
                     strerror(errno));
            return -1;
        }
    } else {
        peer_text(&peer, length, text);
        /* A reset instead of TIME_WAIT: a flood must not leave thousands of sockets behind. */
        struct linger hard = {.l_onoff = 1, .l_linger = 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
    }
    count(canary, text, seen, context);
    return 1;
}

void network_canary_drain(struct network_canary *canary, unsigned limit, network_canary_seen seen, void *context)
{
    for (unsigned i = 0; i < 2; i++) {
        int result = canary->fds[i] >= 0 ? 1 : 0;
        for (unsigned taken = 0; result == 1 && taken < limit; taken++)
            result = accept_one(canary, canary->fds[i], seen, context);
    }
}

/*
 * close(2) on a listener resets whatever sits in its queue, unseen. So new handshakes are turned away first: a socket
 * filter (socket(7), SO_ATTACH_FILTER; it sees the segment from the TCP header on) drops segments with SYN and without
 * ACK, while the last ACK of a handshake that has already begun still gets through.
 */
static int turn_new_peers_away(int listener)
{
    struct sock_filter drop_syn[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13), /* TCP flags */
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
    };
    struct sock_fprog program = {.len = sizeof drop_syn / sizeof drop_syn[0], .filter = drop_syn};
    return setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void network_canary_close(struct network_canary *canary, network_canary_seen seen, void *context)
{
    for (unsigned i = 0; i < 2; i++)
        if (canary->fds[i] >= 0 && turn_new_peers_away(canary->fds[i]) != 0 && canary->error[0] == '\0')
            snprintf(canary->error, sizeof canary->error, "the network canary could not be closed in order: %s",
                     strerror(errno));
    if (canary->fds[0] >= 0)
        poll(NULL, 0, HANDSHAKE_SETTLE_MS);
    network_canary_drain(canary, WATCHDOG_MAX_CONNECTIONS, seen, context);
    for (unsigned i = 0; i < 2; i++) {
        if (canary->fds[i] >= 0)
            close(canary->fds[i]);
        canary->fds[i] = -1;
    }
}
