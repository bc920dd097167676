/*
 * What the controller's integration tests share: a private directory with runs, state and scripts; a controller on its
 * own loop; one campaign run to its end; readers for what it left behind.
 */
#ifndef HF_TESTS_INTEGRATION_SERVER_BENCH_H
#define HF_TESTS_INTEGRATION_SERVER_BENCH_H

#include "server/controller.h"
#include "server/core/controller_internal.h"

#include <cjson/cJSON.h>

struct bench {
    char root[256]; /* private temporary directory */
    char runs[300], state[300], wrapper[300], strategist[300];
    uv_loop_t loop;
    struct hf_controller *controller;
    struct hf_campaign_request request; /* wrapper as executor command, short timeouts */
    /* Of the last campaign: */
    char run_id[HF_RUN_ID_SIZE];
    bool refused; /* the start was refused with `error` */
    bool finished;
    struct hf_campaign_view view;
    struct hf_error error;
    int states, actions, observations; /* progress seen */
    int cancel_state;                  /* for a test's own use */
    /* Called for each progress event; may be NULL. */
    void (*on_progress)(struct bench *bench, const struct hf_progress *progress);
};

/* Makes the directory and writes the wrapper script; no controller yet. */
void bench_open(struct bench *bench, const char *behaviours);
void bench_set_behaviours(struct bench *bench, const char *behaviours);
/* A /bin/sh strategist: `body` after the shebang line. */
void bench_set_strategist(struct bench *bench, const char *body);
/* Opens a controller with times short enough for tests; returns false and bench->error when it refuses to start. */
bool bench_start_controller(struct bench *bench);
void bench_stop_controller(struct bench *bench);
/* Runs bench->request to its end. */
void bench_run(struct bench *bench);
void bench_close(struct bench *bench); /* removes everything */

/* Files of the last run; the test fails when they are absent. Owned. */
char *bench_read(struct bench *bench, const char *name);
cJSON *bench_json(struct bench *bench, const char *name);
bool bench_has(struct bench *bench, const char *name);
int bench_lines(struct bench *bench, const char *name); /* 0 when absent */
/* Requests of this kind that the fake executor saw ("execute", "finalize", ...). */
int bench_seen(struct bench *bench, const char *operation);
char *bench_seen_log(struct bench *bench); /* owned */
int bench_count(const char *text, const char *needle);

/* Both summaries, their keys and agreement, index row, I1; then status and category. */
void bench_expect(struct bench *bench, const char *status, const char *category);

#endif
