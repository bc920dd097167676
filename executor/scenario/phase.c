/* Running phases; see phase.h. */
#include "executor/scenario/phase.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "executor/scenario/report.h"
#include "guest/protocol.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Two VMs at a time: the target has at least two processors, and more would only make each phase slower. */
#define PARALLEL_PHASES 2

static void add_check(cJSON *checks, const char *phase, const char *name, bool held, const char *expected,
                      const char *seen)
{
    cJSON *check = hf_json_append(checks, hf_json_new_object());
    hf_json_add_string(check, "phase", phase);
    hf_json_add_string(check, "name", name);
    hf_json_add_bool(check, "held", held);
    hf_json_add_string(check, "expected", expected);
    hf_json_add_string(check, "seen", seen);
}

void hf_phase_check(struct hf_phase *phase, const char *name, bool held, const char *expected, const char *seen_format,
                    ...)
{
    char seen[512];
    va_list list;
    va_start(list, seen_format);
    vsnprintf(seen, sizeof seen, seen_format, list);
    va_end(list);
    add_check(phase->checks, phase->plan->name, name, held, expected, seen);
}

static void count_check(struct hf_run *run, bool held)
{
    if (held)
        run->held++;
    else
        run->broken++;
}

void hf_run_check(struct hf_run *run, const char *name, bool held, const char *expected, const char *seen_format, ...)
{
    char seen[512];
    va_list list;
    va_start(list, seen_format);
    vsnprintf(seen, sizeof seen, seen_format, list);
    va_end(list);
    add_check(run->checks, NULL, name, held, expected, seen);
    count_check(run, held);
}

/* --- one phase --- */

static int prepare(struct hf_phase *phase, char *append, size_t append_size, struct hf_error *err)
{
    const struct hf_phase_plan *plan = phase->plan;
    const struct hf_run_options *options = &phase->run->options;
    snprintf(append, append_size, HF_GUEST_COMMAND_LINE "%s%s", plan->append ? " " : "",
             plan->append ? plan->append : "");
    phase->spec = (struct hf_vm_spec){
        .machine = {.backend = options->backend,
                    .memory_mib = options->memory_mib,
                    .processors = plan->processors,
                    .kernel = options->kernel,
                    .initramfs = options->initramfs,
                    .append = append,
                    .devices = plan->devices},
        .index = phase->index,
        .timeout_ms = options->timeout_ms,
        .ready_marker = HF_GUEST_READY_MARKER,
    };
    if (plan->timeout_ms && plan->timeout_ms < options->timeout_ms)
        phase->spec.timeout_ms = plan->timeout_ms;
    return plan->prepare ? plan->prepare(phase, err) : 0;
}

static int drive(struct hf_phase *phase, struct hf_error *err)
{
    if (hf_vm_start(&phase->vm, &phase->run->host, &phase->spec, err))
        return -1;
    phase->vm.peer = phase->peer;
    if (hf_vm_resume(&phase->vm, err) || phase->plan->script(phase, err))
        return -1;
    return hf_vm_await_end(&phase->vm, err);
}

static void check_end(struct hf_phase *phase)
{
    const struct hf_phase_plan *plan = phase->plan;
    phase->end = hf_vm_end(&phase->vm);
    hf_phase_check(phase, "exit-classification", phase->end == plan->expected_end, hf_vm_end_name(plan->expected_end),
                   "%s", hf_vm_end_name(phase->end));
    if (plan->expected_end == HF_VM_END_DEBUG_EXIT && plan->exit_code >= 0) {
        char expected[32];
        snprintf(expected, sizeof expected, "%d", plan->exit_code);
        hf_phase_check(phase, "exit-status", phase->vm.report.exited && phase->vm.report.exit_code == plan->exit_code,
                       expected, "%d", phase->vm.report.exit_code);
    }
}

static void check_teardown(struct hf_phase *phase)
{
    phase->teardown = hf_vm_check_teardown(&phase->vm);
    bool complete = hf_vm_teardown_complete(&phase->teardown);
    hf_phase_check(phase, "teardown", complete, "no process, no socket, every stream at its end",
                   complete ? "nothing left" : "something is left: see this VM's teardown");
}

static void execute(struct hf_phase *phase)
{
    char append[512];
    struct hf_error *err = &phase->error;
    hf_vm_init(&phase->vm);
    phase->vm.host = &phase->run->host;
    bool completed = prepare(phase, append, sizeof append, err) == 0 && drive(phase, err) == 0;
    if (!completed)
        hf_vm_stop(&phase->vm, err->code && strcmp(err->code, "interrupted") == 0  ? HF_VM_STOP_INTERRUPT
                               : err->code && strcmp(err->code, "vm-timeout") == 0 ? HF_VM_STOP_TIMEOUT
                                                                                   : HF_VM_STOP_WANTED);
    check_end(phase);
    if (completed && phase->plan->after)
        completed = phase->plan->after(phase, err) == 0;
    hf_phase_check(phase, "completed", completed, "the phase runs to its end", "%s",
                   completed ? "it did" : err->message);
    check_teardown(phase);
    phase->vm_report = hf_report_vm(phase);
    hf_vm_clear(&phase->vm);
    free(phase->state); /* sinks and peers may point into it until here */
    phase->state = NULL;
}

/* --- all phases --- */

void hf_run_init(struct hf_run *run, const struct hf_run_options *options, const struct hf_vm_host *host)
{
    *run = (struct hf_run){.options = *options,
                           .host = *host,
                           .started_mono_ms = hf_clock_mono_ms(),
                           .checks = hf_json_new_array(),
                           .vms = hf_json_new_array(),
                           .measurements = hf_json_new_object(),
                           .teardown = {true, true, true, true, true, true, true}};
}

void hf_run_clear(struct hf_run *run)
{
    cJSON_Delete(run->checks);
    cJSON_Delete(run->vms);
    cJSON_Delete(run->measurements);
    *run = (struct hf_run){0};
}

struct crew {
    pthread_mutex_t lock;
    struct hf_phase *phases;
    size_t count, next;
    bool interrupted;
};

static struct hf_phase *take_phase(struct crew *crew)
{
    struct hf_phase *phase = NULL;
    pthread_mutex_lock(&crew->lock);
    if (!crew->interrupted && crew->next < crew->count)
        phase = &crew->phases[crew->next++];
    pthread_mutex_unlock(&crew->lock);
    return phase;
}

static void *work(void *context)
{
    struct crew *crew = context;
    for (struct hf_phase *phase = take_phase(crew); phase; phase = take_phase(crew)) {
        execute(phase);
        if (phase->end == HF_VM_END_INTERRUPTED) {
            pthread_mutex_lock(&crew->lock);
            crew->interrupted = true;
            pthread_mutex_unlock(&crew->lock);
        }
    }
    return NULL;
}

static void merge_teardown(struct hf_vm_teardown *all, const struct hf_vm_teardown *one)
{
    all->process_gone &= one->process_gone;
    all->no_descendants &= one->no_descendants;
    all->name_unclaimed &= one->name_unclaimed;
    all->monitor_closed &= one->monitor_closed;
    all->console_closed &= one->console_closed;
    all->control_closed &= one->control_closed;
    all->sockets_removed &= one->sockets_removed;
}

static void merge_phase(struct hf_run *run, struct hf_phase *phase)
{
    cJSON *check = NULL;
    if (!phase->vm_report)
        hf_phase_check(phase, "completed", false, "the phase runs to its end", "it was never started");
    cJSON_ArrayForEach(check, phase->checks) count_check(run, hf_json_get_bool_or(check, "held", false));
    while (phase->checks->child)
        hf_json_append(run->checks, cJSON_DetachItemViaPointer(phase->checks, phase->checks->child));
    cJSON_Delete(phase->checks);
    if (phase->measurements->child)
        hf_json_add(run->measurements, phase->plan->name, phase->measurements);
    else
        cJSON_Delete(phase->measurements);
    if (phase->vm_report) {
        hf_json_append(run->vms, phase->vm_report);
        merge_teardown(&run->teardown, &phase->teardown);
    }
    if (!run->error.code && phase->error.code)
        run->error = phase->error;
    run->vm_count++;
}

int hf_run_phases(struct hf_run *run, const struct hf_phase_plan *plans, size_t count)
{
    struct hf_phase phases[HF_RUN_MAX_PHASES] = {0};
    struct crew crew = {.phases = phases, .count = count};
    pthread_t threads[PARALLEL_PHASES];
    unsigned started = 0;
    for (size_t i = 0; i < count; i++)
        phases[i] = (struct hf_phase){.plan = &plans[i],
                                      .run = run,
                                      .index = run->vm_count + (unsigned)i + 1,
                                      .checks = hf_json_new_array(),
                                      .measurements = hf_json_new_object()};
    pthread_mutex_init(&crew.lock, NULL);
    while (started + 1 < PARALLEL_PHASES && started + 1 < count &&
           pthread_create(&threads[started], NULL, work, &crew) == 0)
        started++;
    work(&crew); /* this thread takes its share; alone when no other could be had */
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&crew.lock);
    for (size_t i = 0; i < count; i++)
        merge_phase(run, &phases[i]);
    return run->broken || run->error.code ? -1 : 0;
}
