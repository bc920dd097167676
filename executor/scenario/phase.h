/*
 * A scenario as data: a list of phases, each one VM with its devices, its script and the end it must come to. Phases
 * run two at a time on threads of their own (a VM belongs to its thread); their checks are merged in list order, so the
 * report does not depend on timing.
 *
 * Called by main.c; the scenarios (boot.c, lifecycle.c, ...) fill in the tables. Nothing here prints: results are in
 * struct hf_run, which report.c turns into outcome.json.
 */
#ifndef HF_SCENARIO_PHASE_H
#define HF_SCENARIO_PHASE_H

#include "common/json.h"
#include "executor/scenario/vm/vm.h"

#define HF_RUN_MAX_PHASES 12

struct hf_phase;

/* One VM of a scenario. Scripts return -1 with the error when the phase cannot go on; what they looked at and found
 * wrong they record as a check that did not hold, and go on where that makes sense. */
struct hf_phase_plan {
    const char *name; /* identifier */
    enum hf_vm_end expected_end;
    unsigned processors;
    struct hf_vm_devices devices;
    const char *append;  /* kernel command line after the common part; NULL for none */
    uint64_t timeout_ms; /* shorter bound than the phase timeout; 0: the phase timeout */
    int exit_code;       /* expected with HF_VM_END_DEBUG_EXIT; -1: see the script */
    int (*prepare)(struct hf_phase *phase, struct hf_error *err); /* before the start: sinks, peers. May be NULL */
    int (*script)(struct hf_phase *phase, struct hf_error *err);  /* from the resumed VM to the request that ends it */
    int (*after)(struct hf_phase *phase, struct hf_error *err); /* the VM has ended, streams are drained. May be NULL */
    const void *argument;                                       /* for the scripts of one table that share a function */
};

struct hf_run_options {
    enum hf_vm_backend backend;
    const char *scenario;
    char kernel[4096];
    char initramfs[4096];
    unsigned memory_mib;
    uint64_t timeout_ms; /* of one phase */
    uint64_t seed;
};

struct hf_run {
    struct hf_run_options options;
    struct hf_vm_host host;
    uint64_t started_mono_ms;
    cJSON *checks;       /* array, in list order */
    cJSON *vms;          /* array */
    cJSON *measurements; /* object: what a scenario measured, by phase */
    unsigned held, broken;
    struct hf_vm_teardown teardown; /* of all VMs together: true only where each is */
    unsigned vm_count;
    struct hf_error error; /* first failure that stopped a phase; code NULL when none */
};

struct hf_phase {
    const struct hf_phase_plan *plan;
    const struct hf_run *run; /* options and host only: other threads write the rest */
    unsigned index;           /* 1..: N of the log files */
    struct hf_vm vm;
    struct hf_vm_spec spec; /* `prepare` may set sinks and bounds */
    struct hf_vm_network_peer peer;
    void *state;         /* the script's own; free()d after the phase */
    cJSON *checks;       /* results, merged into the run's */
    cJSON *measurements; /* object */
    enum hf_vm_end end;  /* set before `after` */
    struct hf_vm_teardown teardown;
    cJSON *vm_report;
    struct hf_error error;
};

/* Takes copies of both; a run without phases has a complete teardown, because nothing was there to tear down. */
void hf_run_init(struct hf_run *run, const struct hf_run_options *options, const struct hf_vm_host *host);
void hf_run_clear(struct hf_run *run);

/* Runs the phases and merges their results into the run. Returns 0 when every phase ran to its end and every check
 * held. After an interruption no further phase is started. */
int hf_run_phases(struct hf_run *run, const struct hf_phase_plan *plans, size_t count);

/* Records one thing that was looked at. `expected` and the formatted `seen` are ours, never guest bytes. */
void hf_phase_check(struct hf_phase *phase, const char *name, bool held, const char *expected, const char *seen_format,
                    ...) __attribute__((format(printf, 5, 6)));
/* The same for the whole run, after its phases. */
void hf_run_check(struct hf_run *run, const char *name, bool held, const char *expected, const char *seen_format, ...)
    __attribute__((format(printf, 5, 6)));

/* Steps that most scripts share. */
int hf_phase_boot(struct hf_phase *phase, struct hf_error *err); /* ready marker and control ping, both checked */
int hf_phase_request_end(struct hf_phase *phase, const char *operation,
                         struct hf_error *err);                                  /* poweroff, panic, ... */
int hf_phase_exit(struct hf_phase *phase, unsigned value, struct hf_error *err); /* debug-exit port */
/* Runs a probe from beginning to end. `args` is taken. *result is the owned response. The guest's own checks become
 * checks of the phase; a probe that did not run, or whose verdict is not "held", is a broken check. */
int hf_phase_probe(struct hf_phase *phase, const char *probe, uint64_t timeout_ms, cJSON *args, cJSON **response,
                   struct hf_error *err);
/* The last part of hf_phase_probe(), for scripts that talk with the probe in between. */
void hf_phase_take_verdict(struct hf_phase *phase, const char *probe, const cJSON *response);

#endif
