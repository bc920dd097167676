/*
 * The documents of a run directory (docs/run-directory.md): built from plain data, written atomically. Pure but for
 * hf_run_documents_write(). Live runs and recovery use the same builders, so a recovered run looks like any other.
 */
#ifndef HF_SERVER_CORE_RUN_DOCUMENTS_H
#define HF_SERVER_CORE_RUN_DOCUMENTS_H

#include "server/controller.h"
#include "server/core/identity.h"

/* What is known about a run from its start: metadata.json in memory. */
struct hf_run_record {
    char run_id[HF_RUN_ID_SIZE];
    uint64_t created_wall_ms;
    struct hf_campaign_request request;
    char catalog_sha256[HF_SHA256_HEX_SIZE];
    bool local;        /* executor topology */
    char target[4200]; /* first part of target identities: "local:<host>" or "external:<wrapper>" */
    bool identity_known;
    struct hf_identity identity; /* of the controller's own tree and the VMM that it expects */
};

/* `initialize` is NULL before the target has answered. Owned text. */
char *hf_run_metadata_build(const struct hf_run_record *record, const struct hf_initialize_response *initialize,
                            size_t *length);
/* Reads back what recovery needs. artifact_root may be "" in the document. Code "metadata-invalid". */
int hf_run_metadata_parse(const char *text, size_t length, struct hf_run_record *record,
                          char artifact_root[HF_PROTOCOL_MAX_PATH], struct hf_error *err);

struct hf_run_actions_file {
    int actions;
    char sha256[HF_SHA256_HEX_SIZE];
    uint64_t size_bytes;
};
char *hf_run_manifest_build(const struct hf_run_record *record, const struct hf_run_actions_file *file, size_t *length);

/* How a run ended. All borrowed. */
struct hf_run_outcome {
    const char *run_id;
    const char *campaign;
    const char *backend;
    const char *host_type;
    bool passed;
    const char *category;
    int actions;
    const char *failed_case;            /* NULL when none */
    const char *const *completed_cases; /* ids in the order of observation */
    size_t completed_count;
    int64_t credits_charged;
    const char *finalization; /* JSON text of the target's finalize answer, NULL when there is none */
    const char *error;        /* one sentence, NULL when passed */
};
char *hf_run_public_summary_build(const struct hf_run_outcome *outcome, size_t *length); /* exactly ten keys */
char *hf_run_summary_build(const struct hf_run_outcome *outcome, size_t *length);

/* One action line of actions.jsonl. */
char *hf_run_action_line(const struct hf_run_record *record, int sequence, const char *case_id, int timeout_seconds,
                         uint64_t accepted_wall_ms, size_t *length);

const char *hf_strategist_type_name(enum hf_strategist_type type); /* "greedy", "random", "command" */

/* The last documents of a run, written together. */
struct hf_run_documents {
    int dirfd;
    char *manifest, *summary, *public_summary; /* owned */
    size_t manifest_length, summary_length, public_summary_length;
};
/* Blocking. Tries each of the three whatever happened to the others; on failure gives the preallocated reserve back to
 * the disk and tries once more. Returns the first error that stayed. */
int hf_run_documents_write(const struct hf_run_documents *documents, struct hf_error *err);
void hf_run_documents_free(struct hf_run_documents *documents);

/* Space that a full disk cannot take away from the summaries; made at the start of a run, removed at its end. */
#define HF_RUN_RESERVE_NAME  "reserve.bin"
#define HF_RUN_RESERVE_BYTES (128 * 1024)
int hf_run_reserve_make(int dirfd, struct hf_error *err);
void hf_run_reserve_release(int dirfd);

#endif
