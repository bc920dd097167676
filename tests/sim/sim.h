/*
 * The deterministic simulator: one campaign, its executor_session and its strategist_call, composed as
 * statemachines/README.md says, in a world that is nothing but a seed. The world plays executor, wrapper, strategist,
 * operator, disk and clock, injects faults, and kills the controller between any two instants; the shell performs
 * effects as server/ does; the checks look at every instant. Equal seeds give equal runs.
 *
 *     sim --seed N --trace        one run, told step by step
 *     sim --seeds COUNT           seeds 0 .. COUNT-1; a failing one is printed as a `sim --seed` line
 *     sim --mutants COUNT         breaks the tables row by row and sees whether COUNT seeds notice
 *
 * Files: sim_world.c (random numbers, clock, disk), sim_executor.c (target and wrapper), sim_strategist.c (strategist
 * and its machine), sim_session.c (shell of executor_session), sim_shell.c (shell of the campaign), sim_recovery.c
 * (restart), sim_checks.c (invariants), sim_main.c.
 */
#ifndef HF_TESTS_SIM_SIM_H
#define HF_TESTS_SIM_SIM_H

#include "statemachines/campaign.h"
#include "statemachines/executor_session.h"
#include "statemachines/strategist_call.h"

enum { SIM_MAX_OCCURRENCES = 64, SIM_MAX_LINES = 512, SIM_MAX_PENDING = 32, SIM_ACTIONS_LIMIT = 100 };

/* What a seed may do wrong. */
enum sim_fault {
    SIM_FAULT_EXECUTOR = 1 << 0,
    SIM_FAULT_STRATEGIST = 1 << 1,
    SIM_FAULT_DISK = 1 << 2,
    SIM_FAULT_CRASH = 1 << 3,
    SIM_FAULT_CANCEL = 1 << 4,
    SIM_FAULT_CLOCK = 1 << 5, /* timers expire early */
};

/* Something that will happen at a virtual time. */
enum sim_occurrence_kind {
    SIM_CAMPAIGN_TIMER,
    SIM_SESSION_DEADLINE,
    SIM_STRATEGIST_TIMER,
    SIM_LINE_WRITTEN, /* the oldest line of the journal's queue */
    SIM_ACTION_WRITTEN,
    SIM_OBSERVATION_WRITTEN,
    SIM_DOCUMENT_WRITTEN,
    SIM_SUMMARY_WRITTEN,
    SIM_REGISTER_WRITTEN,          /* by the session */
    SIM_RECOVERY_REGISTER_WRITTEN, /* by the campaign */
    SIM_SPAWN,
    SIM_SPEECH, /* value: enum sim_speech; serial: the request that it answers */
    SIM_TRANSPORT_CLOSES,
    SIM_PROCESS_ENDS, /* value: enum hf_executor_session_exit */
    SIM_STRATEGIST_RETURNS,
    SIM_STRATEGIST_ENDS,
    SIM_MINIMIZATION_ENDS,
    SIM_CANCEL,
    SIM_START,
};

struct sim_occurrence {
    enum sim_occurrence_kind kind;
    uint64_t at_ms;
    uint32_t generation; /* of a timer: an older one is void */
    uint32_t serial;
    int value;
};

enum sim_speech {
    SIM_SPEECH_OK,
    SIM_SPEECH_FAILED, /* well-formed, but the action or the phase failed */
    SIM_SPEECH_ERROR,
    SIM_SPEECH_VIOLATION,
    SIM_SPEECH_GARBAGE,
    SIM_SPEECH_GARBAGE_WITH_EVIDENCE,
    SIM_SPEECH_SELF_QUARANTINED,
};

enum sim_request {
    SIM_REQUEST_NONE,
    SIM_REQUEST_INITIALIZE,
    SIM_REQUEST_EXECUTE,
    SIM_REQUEST_FINALIZE,
    SIM_REQUEST_QUARANTINE,
    SIM_REQUEST_SHUTDOWN,
};

/* A line of transitions.jsonl. */
enum sim_machine { SIM_CAMPAIGN, SIM_SESSION, SIM_STRATEGIST };
struct sim_line {
    enum sim_machine machine;
    uint8_t event, guard, to;
    enum hf_campaign_category category;
};

struct sim_document {
    bool exists, passed;
    enum hf_campaign_category category;
};

/* What survives a crash. */
struct sim_disk {
    struct sim_line lines[SIM_MAX_LINES];
    unsigned line_count;
    unsigned actions, observations;
    struct sim_document summary, public_summary;
    bool target_registered;
    bool finalization, minimization_skipped, quarantine_answer; /* documents that were begun */
    uint64_t full_from_ms, full_until_ms;                       /* run directory */
    uint64_t register_from_ms, register_until_ms;
};

/* The target with its wrapper; dies with the controller. */
struct sim_executor {
    bool exists, process_alive, signalled, hangs, ignores_term, ignores_kill, leaving;
    enum hf_executor_session_exit exit; /* when not alive any more */
    uint64_t busy_until_ms;
    uint32_t serial; /* of the last request */
    enum sim_request request;
    bool unanswered; /* on the wire, not answered, not given up */
};

/* What is known to the world and not to the machines. */
struct sim_truth {
    bool evidence_seen; /* the session was shown evidence while the verdict was open */
    bool bad_answer;    /* an action or the finalization failed */
    bool session_ended_badly;
    bool cancelled; /* a cancel was accepted while the verdict was open */
    bool write_failed;
    bool reported_passed, reported_failed;
    bool register_failed, journal_failed; /* while the verdict was open */
    bool quarantine_answered, minimized;
    bool register_pending;    /* I3: nothing else may happen to the target now */
    bool target_used_up;      /* I3: evidence, fault or loss: only isolation from here on */
    unsigned sent;            /* executes sent */
    unsigned crashes, starts; /* starts: of the controller after the first */
    uint32_t charged;         /* I4: an account of its own */
};

/* The tables that are played; the mutants put broken copies here. */
struct sim_tables {
    const struct hf_sm_definition *campaign, *session, *strategist;
};

/* How often each row was taken, by its place in the table. */
enum { SIM_MAX_ROWS = 400 };
struct sim_coverage {
    uint64_t campaign[SIM_MAX_ROWS], session[SIM_MAX_ROWS], strategist[SIM_MAX_ROWS];
};

struct sim {
    struct sim_tables tables;
    struct sim_coverage *coverage; /* NULL: nobody asks */
    uint64_t seed, random;
    unsigned faults;
    uint64_t budget_ms;
    uint32_t write_ms; /* longest time of an undisturbed write */
    bool trace, crashed;
    uint32_t instants_to_crash; /* 0: no crash in this life */
    uint64_t now_ms, started_ms;
    unsigned steps;
    struct sim_occurrence occurrences[SIM_MAX_OCCURRENCES];
    unsigned occurrence_count;

    struct hf_sm_instance campaign;
    struct hf_campaign_facts facts;
    struct hf_campaign_times times;
    uint32_t campaign_timer;
    uint8_t campaign_timer_state; /* the state that the timer was armed for */
    uint8_t pending[SIM_MAX_PENDING];
    unsigned pending_count;
    bool stepping, journaling, journal_failed, preflight_running, minimizing;
    struct sim_line queue[SIM_MAX_PENDING];
    bool queue_is_campaigns[SIM_MAX_PENDING];
    unsigned queue_count;
    struct sim_document writing;
    bool action_writing, observation_writing, summary_writing, register_writing;
    enum hf_campaign_category answer_category, finalization_category; /* copied into the facts before a step */
    bool failed_case_known;

    bool session_exists, session_stepping;
    uint8_t session_pending[SIM_MAX_PENDING];
    unsigned session_pending_count;
    struct hf_sm_instance session;
    struct hf_executor_session_facts session_facts;
    struct hf_executor_session_times session_times;
    uint32_t session_timer;
    uint8_t session_timer_state;
    struct sim_executor executor;

    bool strategist_exists, strategist_process, strategist_stopped, strategist_stepping;
    uint8_t strategist_pending[SIM_MAX_PENDING];
    unsigned strategist_pending_count;
    struct hf_sm_instance strategist;
    struct hf_strategist_call_facts strategist_facts;
    struct hf_strategist_call_times strategist_times;
    uint32_t strategist_timer;
    uint8_t strategist_timer_state;

    unsigned candidates, cases_left;
    struct sim_disk disk;
    struct sim_truth truth;
    uint32_t rejected;
    char failure[256]; /* the first broken check; "" while all hold */
};

/* sim_world.c */
void sim_world_init(struct sim *sim, uint64_t seed);
uint32_t sim_below(struct sim *sim, uint32_t bound);
bool sim_fails(struct sim *sim, enum sim_fault fault, uint32_t per_mille);
void sim_schedule(struct sim *sim, enum sim_occurrence_kind kind, uint64_t delay_ms, int value);
void sim_schedule_timer(struct sim *sim, enum sim_occurrence_kind kind, uint64_t delay_ms, uint32_t generation);
void sim_schedule_speech(struct sim *sim, uint64_t delay_ms, enum sim_speech speech, uint32_t serial);
bool sim_next(struct sim *sim, struct sim_occurrence *occurrence);
/* A write of the run directory, or of the register: schedules `kind` with value 1 when it will succeed. Only a line of
 * the journal always comes back. */
void sim_write(struct sim *sim, enum sim_occurrence_kind kind, bool of_register);
/* An instant between two of the controller's acts. True when the controller dies here. */
bool sim_instant(struct sim *sim);
void __attribute__((format(printf, 2, 3))) sim_tell(const struct sim *sim, const char *format, ...);

/* sim_executor.c */
void sim_executor_start(struct sim *sim);
void sim_executor_hear(struct sim *sim, enum sim_request request);
void sim_executor_stdin_closed(struct sim *sim);
void sim_executor_signal(struct sim *sim, bool kill);
void sim_executor_occurs(struct sim *sim, const struct sim_occurrence *occurrence);

/* sim_session.c */
void sim_session_start(struct sim *sim);
void sim_session_event(struct sim *sim, enum hf_executor_session_event event);
/* For what may come after the end: commands of the campaign, and the last signs of the process. */
void sim_session_unless_ended(struct sim *sim, enum hf_executor_session_event event);

/* sim_strategist.c */
void sim_strategist_start(struct sim *sim);
void sim_strategist_event(struct sim *sim, enum hf_strategist_call_event event);
void sim_strategist_returns(struct sim *sim, bool good);

/* sim_shell.c */
/* hf_sm_step(), and a stroke in the coverage. */
struct hf_sm_result sim_step(struct sim *sim, struct hf_sm_instance *instance, uint64_t *strokes, uint8_t event,
                             void *facts);
void sim_post(struct sim *sim, enum hf_campaign_event event);
void sim_post_front(struct sim *sim, enum hf_campaign_event event);
void sim_pump(struct sim *sim);
void sim_journal(struct sim *sim, enum sim_machine machine, const struct hf_sm_result *result, bool campaign_waits);
void sim_occurs(struct sim *sim, const struct sim_occurrence *occurrence);

/* sim_recovery.c */
void sim_recover(struct sim *sim);

/* sim_checks.c */
void __attribute__((format(printf, 2, 3))) sim_broken(struct sim *sim, const char *format, ...);
void sim_check_session_effect(struct sim *sim, enum hf_executor_session_effect effect);
void sim_check_strategist_effect(struct sim *sim, enum hf_strategist_call_effect effect);
void sim_check_campaign_effect(struct sim *sim, enum hf_campaign_effect effect);
void sim_check_rejected(struct sim *sim, enum sim_machine machine, uint8_t state, uint8_t event);
/* After the effects of a session's step; `serial` is the executor's from before it. */
void sim_check_request(struct sim *sim, const struct hf_sm_result *result, uint32_t serial);
void sim_check_timers(struct sim *sim);
/* A timer that is only a backstop has expired. */
void sim_check_backstop(struct sim *sim, const char *machine, const char *state);
void sim_check_instant(struct sim *sim);
void sim_check_end(struct sim *sim);

/* sim_run.c: one whole run, crashes and restarts included. True when every check held; sim->failure says what did not.
 */
bool sim_run(struct sim *sim, const struct sim_tables *tables, uint64_t seed, bool trace,
             struct sim_coverage *coverage);
extern const struct sim_tables sim_real_tables;

/* sim_mutants.c: breaks every row of the three tables in turn, plays up to `seeds` seeds with each mutant and prints
 * the mutants that no check caught. Returns the share that was caught, in percent. */
unsigned sim_mutants(uint64_t seeds);

#endif
