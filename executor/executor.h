/*
 * What one executor process knows: where it is, its profile, and the one session it serves. Created by main.c, used by
 * every step of the session; there is no global state.
 */
#ifndef HF_EXECUTOR_EXECUTOR_H
#define HF_EXECUTOR_EXECUTOR_H

#include "common/catalog/catalog.h"
#include "common/catalog/profile.h"
#include "common/options/paths.h"
#include "common/protocol/protocol.h"
#include "executor/artifacts.h"
#include "executor/channel.h"
#include "executor/oracles.h"

struct executor {
    struct hf_paths paths;
    char state_dir[HF_PATH_SIZE];
    struct hf_profile profile;
    struct channel channel;

    /* The session, from initialize on. */
    struct hf_request settings; /* the initialize request */
    struct hf_campaign campaign;
    char run_dir[HF_PATH_SIZE]; /* <state_dir>/<run_id> */
    int run_dirfd;              /* -1 before */
    struct oracles oracles;
    struct artifact_set artifacts;
    char **child_envp; /* allow-listed, without the pid journal's variable */
    int last_sequence; /* of the last execute request that was worked on; 0 before */
};

/* Fills `values` for command templates; the strings live in `storage`. */
struct executor_placeholders {
    struct hf_placeholders values;
    char memory_mib[16], phase_timeout[16], seed[24];
};
void executor_placeholders_fill(const struct executor *executor, struct executor_placeholders *placeholders);

/* The three steps of a session. 0: *response is to be sent. -1: *err, answered as an `error` response unless its code
 * is "interrupted". */
int executor_initialize(struct executor *executor, const struct hf_request *request, struct hf_response *response,
                        struct hf_error *err);
int executor_execute(struct executor *executor, const struct hf_request *request, struct hf_response *response,
                     struct hf_error *err);
int executor_finalize(struct executor *executor, const struct hf_request *request, struct hf_response *response,
                      struct hf_error *err);

/* `directory`/`below` into out. Code "path-too-long". */
int executor_path_join(char out[HF_PATH_SIZE], const char *directory, const char *below, struct hf_error *err);

/* Ends the oracles. Called on every way out of a session. */
void executor_close_session(struct executor *executor);

#endif
