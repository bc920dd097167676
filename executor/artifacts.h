/*
 * The files that a session's VMs are made of: hashed and checked against their provenance once, at initialize, before
 * any VM starts, and looked at again around every dispatch, so that a file swapped afterwards is not run unnoticed.
 */
#ifndef HF_EXECUTOR_ARTIFACTS_H
#define HF_EXECUTOR_ARTIFACTS_H

#include "common/catalog/profile.h"
#include "common/digest.h"
#include "common/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define ARTIFACT_MAX_BYTES   ((uint64_t)2 << 30)
#define PROVENANCE_MAX_BYTES (1 << 20)

struct artifact {
    char path[4096];
    char sha256[HF_SHA256_HEX_SIZE];
    uint64_t size_bytes;
    struct stat identity; /* when it was hashed */
};

struct artifact_set {
    struct artifact list[HF_PROFILE_MAX_ARTIFACTS]; /* in the profile's order */
    size_t count;
};

/* Where a provenance check looks, and what is known about the target. */
struct provenance_context {
    const struct hf_profile *profile;
    const char *source_root; /* inputs of built artifacts are named relative to it */
    const char *vmm_package; /* the VMM's package and version when the profile identifies it so, else NULL */
    const char *vmm_version;
};

/* Hashes every artifact of the profile. Codes: "artifact-unreadable", "artifact-empty". */
int artifacts_measure(const struct hf_profile *profile, const struct hf_placeholders *places, struct artifact_set *set,
                      struct hf_error *err);

/* Checks every provenance document against its artifact, and the inputs of built ones against the source tree. Codes:
 * "provenance-invalid" (unreadable or not of the form of guest/README.md), "provenance-foreign" (describes another file
 * or another package version), "provenance-stale" (a source file changed since the build). */
int artifacts_check_provenance(const struct artifact_set *set, const struct provenance_context *context,
                               struct hf_error *err);

/* Microseconds: compares identity, size and times; rehashes only what looks different. Code "artifact-changed". */
int artifacts_check_unchanged(struct artifact_set *set, const struct hf_profile *profile, struct hf_error *err);

#endif
