/*
 * Filesystem canaries: small files that nobody has a reason to touch, planted beside what a VM may see. The watchdog
 * owns them; nothing else writes them.
 *
 * Evidence is sticky. A change is seen in four independent ways, so that restoring the bytes hides nothing: the
 * content's digest, the file's identity, size and times (ctime cannot be set back), inotify on the file (modified,
 * opened for writing, attributes, moved, deleted), and inotify on its directory (replaced, renamed).
 */
#ifndef HF_EXECUTOR_WATCHDOG_HOST_CANARY_H
#define HF_EXECUTOR_WATCHDOG_HOST_CANARY_H

#include "common/digest.h"
#include "common/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define HOST_CANARY_BYTES 4096
#define HOST_CANARY_MAX   2 /* the session's own, and one beside the present repetition */

struct host_canary {
    bool planted;
    int dirfd;
    int file_watch, directory_watch;
    struct stat identity; /* as it was when planted */
    char label[512];      /* where it is, for the access log */
};

struct host_canaries {
    int inotify_fd;
    uint8_t bytes[HOST_CANARY_BYTES];
    char sha256[HF_SHA256_HEX_SIZE];          /* of `bytes` */
    char observed_sha256[HF_SHA256_HEX_SIZE]; /* of the first canary at the last check; "" when it could not be read */
    struct host_canary list[HOST_CANARY_MAX];
    bool intact;
    char evidence[640]; /* what was seen first, "" while intact */
};

/* Derives the bytes from run id and seed: SHA-256 over "holdfast-host-canary", both, and a counter. */
void host_canary_bytes(const char *run_id, int64_t seed, uint8_t out[HOST_CANARY_BYTES]);

int host_canaries_init(struct host_canaries *canaries, const char *run_id, int64_t seed, struct hf_error *err);
/* Creates the file in the directory (dirfd stays the caller's) and begins to watch it. `index` < HOST_CANARY_MAX. */
int host_canary_plant(struct host_canaries *canaries, unsigned index, int dirfd, const char *label,
                      struct hf_error *err);
/* A last look, then no longer watched; the file stays as evidence. */
void host_canary_retire(struct host_canaries *canaries, unsigned index);
/* Reads pending inotify events, then looks at every canary itself. Changes `intact` only from true to false. */
void host_canaries_check(struct host_canaries *canaries);
void host_canaries_clear(struct host_canaries *canaries);

#endif
