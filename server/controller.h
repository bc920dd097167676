/*
 * The controller: campaigns on one libuv loop. `holdfastd` runs many behind HTTP, `holdfast run` runs one in its own
 * process; both use exactly this interface, and nothing outside server/core/ touches a campaign's insides.
 *
 * Threading: every function is called on the loop's thread and returns at once. Blocking work (fsync, hashing, copying)
 * runs on the uv thread pool inside.
 */
#ifndef HF_SERVER_CONTROLLER_H
#define HF_SERVER_CONTROLLER_H

#include "common/error.h"
#include "common/protocol/protocol.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define HF_CONTROLLER_MAX_CAMPAIGNS 1000 /* live at once; further starts are refused with "controller-busy" */
#define HF_MAX_ACTIONS              100

struct hf_controller;

/* An administrator-configured executor. Clients name it; they never give a path. */
struct hf_executor_config {
    char name[HF_IDENTIFIER_SIZE]; /* "local" is built in: holdfast-executor beside the program, never CI-worthy */
    char *command;                 /* absolute path of a wrapper that takes no arguments; NULL: the local executor */
};

struct hf_controller_config {
    const char *source_root;                    /* tree with catalog/; absolute */
    const char *profiles_dir;                   /* NULL: <source_root>/catalog/profiles */
    const char *bin_dir;                        /* holdfast-executor, holdfast-supervise */
    const char *guest_dir;                      /* handed to the local executor */
    const char *runs_dir;                       /* run directories are created below it, 0700 */
    const char *state_dir;                      /* index.sqlite (index, quarantine register); 0700 */
    const struct hf_executor_config *executors; /* borrowed during hf_controller_new() */
    size_t executor_count;
};

enum hf_strategist_type { HF_STRATEGIST_GREEDY, HF_STRATEGIST_RANDOM, HF_STRATEGIST_COMMAND };

/* What a client asks for, already within bounds (hf_campaign_request_defaults() then overrides). Bounds:
 * api/openapi.yaml; budget_seconds is an integer number of seconds 1..86400, budget_actions 1..100. */
struct hf_campaign_request {
    char campaign[HF_IDENTIFIER_SIZE];
    char profile[HF_IDENTIFIER_SIZE];   /* default "qemu" */
    char backend[8];                    /* default "tcg" */
    char host_type[16];                 /* default "unspecified" */
    int64_t seed;                       /* 0..INT64_MAX */
    int64_t budget_seconds;             /* default 900 */
    int64_t budget_actions;             /* default 8 */
    int64_t budget_ai_credits;          /* default 300; recorded, charged only by AI strategists */
    int64_t memory_mib;                 /* default 256 */
    int64_t phase_timeout_seconds;      /* default 60 */
    int64_t action_timeout_seconds;     /* default 600 */
    enum hf_strategist_type strategist; /* default greedy */
    char strategist_command[4096]; /* command:PATH only from the command line or the administrator, never over HTTP */
    char executor[HF_IDENTIFIER_SIZE]; /* name of a configured executor, default "local" */
    char executor_command[4096];       /* `holdfast run --executor-command` only; "" otherwise */
    bool minimize;                     /* default true */
    int64_t minimize_attempts;         /* default 3 */
};
void hf_campaign_request_defaults(struct hf_campaign_request *request);

/* Checks every bound and every combination that can be checked without starting anything, naming the field:
 * "request-invalid". Also refuses budgets too small to hold initialize and finalize and says how much is needed. */
int hf_campaign_request_check(const struct hf_campaign_request *request, struct hf_error *err);

/* Public view of a campaign: holds no guest byte, path or token. */
struct hf_campaign_view {
    char run_id[HF_RUN_ID_SIZE];
    char campaign[HF_IDENTIFIER_SIZE];
    char profile[HF_IDENTIFIER_SIZE];
    char backend[8];
    char host_type[16];
    char state[32];                       /* name of the campaign machine's state */
    char status[16];                      /* "running", "passed", "failed" */
    char category[48];                    /* "" while running */
    char failed_case[HF_IDENTIFIER_SIZE]; /* "" when none */
    int64_t seed;
    int actions;
    int budget_actions;
    int64_t budget_seconds;
    uint64_t created_wall_ms;
    uint64_t finished_wall_ms; /* 0 while running */
};

/* Progress of a campaign, for terminals and event streams. */
enum hf_progress_kind {
    HF_PROGRESS_STATE,       /* the campaign machine changed state */
    HF_PROGRESS_ACTION,      /* an action was accepted: case_id, sequence */
    HF_PROGRESS_OBSERVATION, /* an observation is durable: case_id, sequence, category, duration_ms */
    HF_PROGRESS_FINISHED,    /* both summaries are on disk */
};
struct hf_progress {
    enum hf_progress_kind kind;
    const struct hf_campaign_view *view;
    const char *case_id; /* NULL when not about a case */
    int sequence;
    const char *category;
    int64_t duration_ms;
    uint64_t elapsed_ms; /* since the campaign started */
    int64_t budget_left_ms;
    int budget_left_actions;
    const struct hf_error
        *error; /* on FINISHED of a failed campaign: why, in a sentence fit for the operator; may be NULL */
};
typedef void (*hf_progress_listener)(void *context, const struct hf_progress *progress);

/* Opens state and index, recovers every run that was not terminal (category controller-restarted, target quarantined,
 * both summaries written) and sweeps what a crash left. Blocking; called once before the loop runs. */
struct hf_controller *hf_controller_new(uv_loop_t *loop, const struct hf_controller_config *config,
                                        struct hf_error *err);
void hf_controller_listen(struct hf_controller *controller, hf_progress_listener listener, void *context);

/* Validates and begins; 0, or -1 when it is refused at once. The campaign counts as started (I6) from the moment that
 * its run directory with metadata is durable. `accepted` is called once, then or with the error that refused the start.
 */
typedef void (*hf_started)(void *context, const char *run_id, const struct hf_error *err);
int hf_controller_start(struct hf_controller *controller, const struct hf_campaign_request *request,
                        hf_started accepted, void *context, struct hf_error *err);

/* 0, or -1 with "campaign-unknown" / "campaign-finished". The executor is finalized; the outcome comes as progress. */
int hf_controller_cancel(struct hf_controller *controller, const char *run_id, struct hf_error *err);

/* Live or finished; false when unknown. */
bool hf_controller_view(struct hf_controller *controller, const char *run_id, struct hf_campaign_view *view);

/* Newest first: up to `limit` views created before `before_run_id` (NULL: from the newest). Returns the count. */
size_t hf_controller_list(struct hf_controller *controller, const char *before_run_id, size_t limit,
                          struct hf_campaign_view *views);

/* Bytes of public-summary.json (or another document) of a finished campaign; owned; NULL when it is not there yet.
 * Blocking but small (<= 64 KiB, page cache). */
char *hf_controller_document(struct hf_controller *controller, const char *run_id, const char *name, size_t *length);

/* The quarantine register: targets that must never be used again (I3, docs/quarantine.md). */
#define HF_QUARANTINE_ID_SIZE       24   /* "target-" and 16 hexadecimal digits */
#define HF_QUARANTINE_IDENTITY_SIZE 4352 /* "local:<host>:<root>" or "external:<wrapper>:<root>" */
struct hf_quarantine_record {
    char target_id[HF_QUARANTINE_ID_SIZE];
    char identity[HF_QUARANTINE_IDENTITY_SIZE];
    char run_id[HF_RUN_ID_SIZE];
    char reason[48]; /* the run's category when the target was registered */
    uint64_t registered_wall_ms;
};
/* Newest first, up to `limit`. Returns the count. */
size_t hf_controller_quarantine(struct hf_controller *controller, size_t limit, struct hf_quarantine_record *records);

size_t hf_controller_live_count(const struct hf_controller *controller);

/* The loop's thread since the start (server/core/loop_meter.h): how long it was busy in one iteration, which is the
 * delay that any other event suffered; and how long single callbacks took, about which the promise of 10 ms is. */
struct hf_loop_load {
    uint64_t iterations;
    uint64_t p50_us, p99_us, max_us;
    uint64_t callbacks;
    uint64_t callback_p50_us, callback_p99_us, callback_max_us;
};
struct hf_loop_load hf_controller_loop_load(const struct hf_controller *controller);

/* Graceful stop: refuses new campaigns, cancels the running ones, calls `stopped` when all have both summaries. */
void hf_controller_stop(struct hf_controller *controller, void (*stopped)(void *context), void *context);
void hf_controller_free(struct hf_controller *controller); /* after stopped, or when none is live */

#endif
