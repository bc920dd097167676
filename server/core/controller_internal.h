/* The controller's own state, for server/core/ and its tests only. */
#ifndef HF_SERVER_CORE_CONTROLLER_INTERNAL_H
#define HF_SERVER_CORE_CONTROLLER_INTERNAL_H

#include "server/controller.h"
#include "server/core/identity.h"
#include "server/core/index.h"
#include "server/core/loop_child.h"
#include "server/core/loop_meter.h"

struct hf_run;

/* Every time that a run measures, in milliseconds. The values are those of common/protocol/protocol.h; tests shorten
 * them. */
struct hf_controller_times {
    uint64_t queue_ms; /* accepted to begun */
    uint64_t preflight_ms;
    uint64_t initialize_overhead_ms;
    uint64_t grace_ms; /* protocol grace */
    uint64_t spawn_ms;
    uint64_t shutdown_ms;
    uint64_t exit_ms;
    uint64_t term_ms;
    uint64_t kill_ms;
    uint64_t quarantine_timeout_ms; /* told to the executor; a whole number of seconds, at least 1 */
    uint64_t storage_ms;
    uint64_t storage_retry_ms;
    uint64_t strategist_limit_ms; /* one call */
    uint64_t strategist_stop_ms;
};
extern const struct hf_controller_times hf_controller_default_times;

/* A target that was registered but whose durable write has not succeeded. */
struct hf_quarantine_entry {
    struct hf_quarantine_entry *next;
    struct hf_quarantine_record record;
};

struct hf_controller {
    uv_loop_t *loop;
    struct hf_controller_config config; /* strings and executors owned */
    struct hf_controller_times times;
    /* Added to the monotonic clock where budgets are measured; tests move it to spend a budget at once. */
    uint64_t clock_offset_ms;
    struct hf_loop_meter *meter;
    struct hf_index *index;
    struct hf_identity_cache identities;
    struct hf_read_scratch scratch;
    struct hf_run *runs[HF_CONTROLLER_MAX_CAMPAIGNS]; /* live ones; order has no meaning */
    size_t run_count;
    struct hf_quarantine_entry *quarantined; /* I3 also while the register cannot be written */
    hf_progress_listener listener;
    void *listener_context;
    bool stopping;
    void (*stopped)(void *context);
    void *stopped_context;
};

uint64_t hf_controller_now_ms(const struct hf_controller *controller);

/* A run is over, with everything of it closed and freed by the caller afterwards. */
void hf_controller_remove(struct hf_controller *controller, struct hf_run *run);

/* quarantine.c: in memory at once, then durably in the run directory and in the index. `done` on the loop. */
typedef void (*hf_quarantine_done)(void *context, const struct hf_error *err);
void hf_quarantine_register(struct hf_run *run, const char *reason, hf_quarantine_done done, void *context);
/* target-quarantine.json, owned. */
char *hf_quarantine_document(const struct hf_quarantine_record *record, size_t *length);
/* True when the identity is registered, or when the register cannot be read (fail closed); *err says which. */
bool hf_quarantine_refuses(struct hf_controller *controller, const char *identity, struct hf_error *err);
/* "<target>:<artifact root>", or the run id while no root is known. */
void hf_quarantine_identity(const char *target, const char *artifact_root, const char *run_id,
                            char out[HF_QUARANTINE_IDENTITY_SIZE]);

/* recovery.c: blocking, before the loop runs. */
int hf_recover_all(struct hf_controller *controller, struct hf_error *err);

#endif
