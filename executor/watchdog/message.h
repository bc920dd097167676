/*
 * What executor and watchdog say to each other over one SOCK_SEQPACKET socket pair: fixed structs, one a packet, both
 * programs from the same build. Owned by the watchdog; executor/oracles.c is the only other user.
 *
 * The watchdog speaks unasked (`sequence` 0) after each sample, so that silence is noticed, and once for each request
 * with the request's sequence. It never reads anything else: no file, environment variable or peer decides what it
 * says.
 */
#ifndef HF_EXECUTOR_WATCHDOG_MESSAGE_H
#define HF_EXECUTOR_WATCHDOG_MESSAGE_H

#include "common/digest.h"

#include <stdint.h>

#define WATCHDOG_MESSAGE_VERSION    1
#define WATCHDOG_SAMPLE_INTERVAL_MS 250
#define WATCHDOG_DIRECTORY_SIZE     512
#define WATCHDOG_ERROR_SIZE         512
#define WATCHDOG_CANARY_NAME        "host-canary.bin"
#define WATCHDOG_MAX_CONNECTIONS    1000000 /* the count stops here; the protocol knows no larger one */

enum watchdog_request_kind {
    WATCHDOG_SAMPLE = 1, /* sample now, append it durably, answer */
    WATCHDOG_PLANT = 2,  /* plant a second canary in `directory`, then as SAMPLE */
    WATCHDOG_RETIRE = 3, /* look at that canary a last time, stop watching it, then as SAMPLE */
    WATCHDOG_CLOSE = 4,  /* empty the listener's queue, sample a last time, answer with `closed`, exit 0 */
};

struct watchdog_request {
    uint32_t version;
    uint32_t kind;
    uint32_t sequence;                       /* > 0 */
    char directory[WATCHDOG_DIRECTORY_SIZE]; /* PLANT: below the run directory, no "." or ".." component */
};

struct watchdog_state {
    uint32_t version;
    uint32_t sequence; /* of the request that this answers; 0: unasked */
    uint8_t ready;     /* canaries are planted and listening; set from the first message on */
    uint8_t closed;
    uint8_t host_canary_intact; /* sticky: once 0, for ever 0 */
    uint8_t reserved;
    int32_t network_canary_port;
    uint64_t network_canary_connections; /* sticky, at most WATCHDOG_MAX_CONNECTIONS */
    uint64_t samples;                    /* appended durably so far */
    char host_canary_sha256[HF_SHA256_HEX_SIZE];
    char watchdog_error[WATCHDOG_ERROR_SIZE];       /* "" while the watchdog itself is well */
    char network_canary_error[WATCHDOG_ERROR_SIZE]; /* "" while the listener is well */
};

#endif
