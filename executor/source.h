/*
 * Who is being tested: commit and cleanliness of the staged source tree, and identity of the VMM. Asks git and dpkg in
 * contained children with an environment that no configuration of the host can change. Called once, at initialize.
 */
#ifndef HF_EXECUTOR_SOURCE_H
#define HF_EXECUTOR_SOURCE_H

#include "common/catalog/profile.h"
#include "common/error.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

#define SOURCE_MAX_STATUS_LINES  200 /* one more line says how many were left out */
#define SOURCE_MAX_STATUS_LENGTH 256 /* bytes of one line */

struct source_identity {
    char commit[65];
    bool dirty;
    cJSON *status_lines; /* owned array of strings */
};

/* `root` is a git work tree of its own, not a directory inside another one. Codes: "source-unreadable", "interrupted".
 */
int source_identify_git(const char *root, int interrupt_fd, struct source_identity *identity, struct hf_error *err);

/* Version of an installed Debian package; dirty when an installed file of it differs from what the package brought
 * (dpkg --verify). Codes: "vmm-unknown", "interrupted". */
int source_identify_package(const char *package, int interrupt_fd, struct source_identity *identity,
                            struct hf_error *err);

void source_identity_clear(struct source_identity *identity);

/* Splits a tool's output into bounded lines. `truncated`: the output itself was cut. Visible for its unit test. */
cJSON *source_status_lines(const char *text, size_t length, bool truncated);

#endif
