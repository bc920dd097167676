/*
 * What the controller expects of a target: the commit of its own source tree (dirty or not) and the identity of the
 * VMM. Read with `git` and `dpkg-query` as contained children; blocking, so only on the thread pool. Answers are cached
 * for a few seconds, so that two hundred campaigns that start together do not start four hundred processes.
 */
#ifndef HF_SERVER_CORE_IDENTITY_H
#define HF_SERVER_CORE_IDENTITY_H

#include "common/catalog/profile.h"

#include <pthread.h>
#include <stdint.h>

#define HF_IDENTITY_CACHE_MS 5000

struct hf_identity {
    char commit[65];
    bool dirty;
    char vmm_commit[65];
};

struct hf_identity_cache {
    pthread_mutex_t mutex;
    char profile[HF_PROFILE_NAME_SIZE]; /* of the cached answer; "" when there is none */
    uint64_t read_mono_ms;
    struct hf_identity identity;
};

void hf_identity_cache_init(struct hf_identity_cache *cache);
void hf_identity_cache_clear(struct hf_identity_cache *cache);

/* Code "identity-unknown": not a git tree, git or the package missing; the message says which and what to do. */
int hf_identity_read(struct hf_identity_cache *cache, const struct hf_profile *profile, const char *source_root,
                     struct hf_identity *identity, struct hf_error *err);

#endif
