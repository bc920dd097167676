/*
 * One observation: what an executor answered to one action, normalized. It is a line of observations.jsonl, the
 * material of prompts, and what the built-in strategists learn durations from.
 *
 * Owned by a run (server/core/run.h). Guest output stays base64 text here and everywhere else (I7).
 */
#ifndef HF_SERVER_CORE_OBSERVATION_H
#define HF_SERVER_CORE_OBSERVATION_H

#include "common/protocol/protocol.h"

struct hf_observation {
    int sequence;
    size_t case_index; /* into the campaign's cases */
    enum hf_category category;
    bool has_returncode;
    int32_t returncode;
    bool timed_out;
    int64_t duration_ms;
    bool host_canary_intact;
    int64_t network_canary_connections;
    bool teardown_complete;
    bool stdout_truncated, stderr_truncated;
    char *stdout_b64; /* owned; NULL once it can no longer appear in a prompt */
    char *stderr_b64; /* owned; the same */
};

/* Takes the guest output out of the response (its pointers become NULL). */
void hf_observation_take(struct hf_observation *observation, struct hf_execute_response *response, size_t case_index);
void hf_observation_clear(struct hf_observation *observation);

/* One line of observations.jsonl, canonical, owned. `response` still holds paths and error text. */
char *hf_observation_line(const struct hf_observation *observation, const struct hf_case *of_case,
                          const struct hf_execute_response *response, uint64_t received_wall_ms, size_t *length);

/* The part of an observation that a strategist may see; added to prompts. Returns a new object. */
cJSON *hf_observation_for_prompt(const struct hf_observation *observation, const struct hf_case *of_case);

#endif
