/*
 * One campaign that is under way: the campaign machine, its session and strategist, its run directory. Everything that
 * a run does is an effect of the machine, performed here, whose result comes back as an event; no file of server/core/
 * decides where a campaign goes next.
 *
 * run.c           life cycle, event queue, journal before effects
 * run_effects.c   effect -> what is done
 * run_prepare.c   what happens on the thread pool before a campaign counts as started
 * run_documents.c the documents of the run directory, pure
 * run_owner.c     what session and strategist need from their run
 *
 * Owned by the controller (controller.c); recovery.c shares the documents. All on the loop's thread but where it says
 * otherwise.
 */
#ifndef HF_SERVER_CORE_RUN_H
#define HF_SERVER_CORE_RUN_H

#include "common/digest.h"
#include "common/loop/durable_queue.h"
#include "server/controller.h"
#include "server/core/budget.h"
#include "server/core/controller_internal.h"
#include "server/core/executor_command.h"
#include "server/core/identity.h"
#include "server/core/observation.h"
#include "server/core/run_documents.h"
#include "server/core/session.h"
#include "server/core/strategist.h"
#include "statemachines/campaign.h"

#define HF_RUN_PENDING_EVENTS   32
#define HF_RUN_MAX_OBSERVATIONS HF_MAX_ACTIONS

/* The action that was accepted last. */
struct hf_action {
    int sequence; /* 1..; 0 before the first */
    size_t case_index;
    int timeout_seconds;
};

struct hf_run {
    struct hf_controller *controller;
    struct hf_campaign_view view; /* the public picture, kept current */
    struct hf_run_record record;  /* what metadata.json holds; the request is in it */
    struct hf_budget budget;

    /* Set by preparation. */
    struct hf_profile profile;
    struct hf_campaign campaign;
    struct hf_executor_command executor;
    struct hf_error identity_error; /* code set: preflight fails with it (I10) */
    char *strategist_program;       /* owned, absolute; NULL for built-in strategists */
    int dirfd;                      /* holds the lock that tells other controllers that this run is alive */
    int copilot_dirfd;              /* -1 without a command strategist */
    uint64_t started_mono_ms;

    /* The machine. */
    struct hf_sm_instance machine;
    struct hf_campaign_facts facts;
    struct hf_campaign_times times;
    enum hf_campaign_category answer_category;       /* copied into the facts before a step, never during one */
    enum hf_campaign_category finalization_category; /* the same */
    uint8_t pending[HF_RUN_PENDING_EVENTS];
    unsigned pending_count;
    bool stepping;       /* effects are being performed */
    bool journaling;     /* the line of pending[0] is on its way to the disk */
    bool journal_failed; /* nothing is appended to transitions.jsonl any more */
    uv_timer_t timer;

    struct hf_durable_queue *queue;
    struct hf_durable_queue *copilot_queue; /* NULL without a command strategist */
    struct hf_session *session;
    struct hf_strategist *strategist;
    bool preflight_running;

    /* What happened so far. */
    bool completed[HF_CATALOG_MAX_CASES];
    size_t completed_order[HF_CATALOG_MAX_CASES];
    size_t completed_count;
    struct hf_observation observations[HF_RUN_MAX_OBSERVATIONS];
    size_t observation_count;
    struct hf_action action;
    struct hf_sha256 actions_hash;
    uint64_t actions_size_bytes;
    const char *failed_case; /* id inside the catalog; NULL when none */
    char *finalization;      /* owned canonical text of the finalize answer; NULL when there is none */
    struct hf_error error;   /* why the run failed: the first reason */

    hf_started accepted; /* told once, when the start is durable or refused */
    void *accepted_context;
    bool terminal;          /* both summaries are on disk, or were given up */
    unsigned registrations; /* quarantine writes under way */
    unsigned parts;         /* session, strategist, queues, handles that still exist */
    bool closing;
    bool cancel_wanted; /* asked for before the machine existed */
    uv_work_t work;     /* preparation, later the summaries */
    bool work_busy;
    struct hf_error work_error;
    struct hf_run_documents *documents; /* of the summary job, the worker's while it runs */
};

/* Validated request in, run out; begins preparation. */
struct hf_run *hf_run_new(struct hf_controller *controller, const struct hf_campaign_request *request,
                          hf_started accepted, void *context);
void hf_run_cancel(struct hf_run *run);

/* Internal to run*.c from here on. */
void hf_run_post(struct hf_run *run, enum hf_campaign_event event);
void hf_run_post_front(struct hf_run *run, enum hf_campaign_event event);
void hf_run_fail(struct hf_run *run, const struct hf_error *err); /* keeps the first reason only */
void hf_run_perform(struct hf_run *run, enum hf_campaign_effect effect);
void hf_run_refresh_facts(struct hf_run *run);
uint64_t hf_run_elapsed_ms(const struct hf_run *run);
void hf_run_journal_step(struct hf_run *run, const char *machine, const struct hf_sm_definition *definition,
                         const struct hf_sm_result *result);
void hf_run_storage_failed(struct hf_run *run, const struct hf_error *err);
void hf_run_progress(struct hf_run *run, enum hf_progress_kind kind, const char *case_id, int sequence,
                     const char *category, int64_t duration_ms);
/* Lets go of everything; the run's memory goes when all its parts are closed. */
void hf_run_close(struct hf_run *run);
void hf_run_part_closed(struct hf_run *run);

/* run_prepare.c, on the thread pool: 0, or -1 with run->work_error: nothing was started and nothing is left behind. */
int hf_run_prepare(struct hf_run *run, struct hf_error *err);

/* run_owner.c */
extern const struct hf_session_owner hf_run_session_owner;
extern const struct hf_strategist_owner hf_run_strategist_owner;

#endif
