/*
 * The network canary: a listener on loopback that nobody has a reason to reach. It serves nothing; every connection it
 * accepts is a violation, also one that its peer closed at once and one still in the queue when the listener shuts
 * down. Owned by the watchdog's main loop.
 */
#ifndef HF_EXECUTOR_WATCHDOG_NETWORK_CANARY_H
#define HF_EXECUTOR_WATCHDOG_NETWORK_CANARY_H

#include "common/error.h"

#include <stdint.h>

#define NETWORK_CANARY_PEER_SIZE 64

struct network_canary {
    int fds[2]; /* 127.0.0.1 and ::1 on the same port; the second is -1 where the host has no IPv6 loopback */
    int port;
    uint64_t connections; /* at most WATCHDOG_MAX_CONNECTIONS */
    char error[256];      /* why the listener no longer counts reliably; "" while it does */
};

void network_canary_init(struct network_canary *canary);
int network_canary_open(struct network_canary *canary, struct hf_error *err);

/* Called once for each connection that is counted. */
typedef void (*network_canary_seen)(void *context, const char peer[NETWORK_CANARY_PEER_SIZE]);

/* Accepts and closes what is queued, at most `limit` connections on each address. */
void network_canary_drain(struct network_canary *canary, unsigned limit, network_canary_seen seen, void *context);

/* Closes without losing anyone: turns new connections away first, then empties the queue, then closes. */
void network_canary_close(struct network_canary *canary, network_canary_seen seen, void *context);

#endif
