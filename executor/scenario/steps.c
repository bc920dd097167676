/* Steps that most scripts share; see phase.h. */
#include "executor/scenario/phase.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json_shape.h"
#include "guest/protocol.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_TIMEOUT_MS 10000 /* an idle agent answers within milliseconds; a loaded host gets its time */
#define GUEST_CHECKS_MAX  64    /* checks of one probe that are carried into the report */

int hf_phase_boot(struct hf_phase *phase, struct hf_error *err)
{
    cleanup_json cJSON *answer = NULL;
    if (hf_vm_wait_ready(&phase->vm, err))
        return -1;
    uint64_t boot_ms = phase->vm.ready_mono_ms - phase->vm.started_mono_ms;
    hf_phase_check(phase, "ready-marker", true, "the ready marker on the console within the phase timeout",
                   "after %llu ms", (unsigned long long)boot_ms);
    hf_json_add_int(phase->measurements, "boot_ms", (int64_t)boot_ms);
    uint64_t asked_ms = hf_clock_mono_ms();
    if (hf_vm_request(&phase->vm, ANSWER_TIMEOUT_MS, HF_GUEST_OP_PING, NULL, &answer, err))
        return -1;
    const char *boot_id = hf_json_get_string(answer, "boot_id");
    bool shaped = boot_id && boot_id[0] && hf_json_get_int_or(answer, "uptime_ms", -1) >= 0;
    hf_phase_check(phase, "control-ping", shaped, "an answer with uptime and boot id", "%s after %llu ms",
                   shaped ? "answered" : "an answer without them", (unsigned long long)(hf_clock_mono_ms() - asked_ms));
    return 0;
}

/* The agent answers before it acts, but the act may overtake the answer: either is enough to go on waiting for the
 * VMM's own end. */
static bool answered_or_ending(struct hf_vm *vm, void *context)
{
    (void)context;
    return vm->control.pending_id == 0 || vm->reported || vm->qmp.shutdown != HF_VM_SHUTDOWN_NONE;
}

static int request_end(struct hf_phase *phase, const char *operation, cJSON *more, struct hf_error *err)
{
    struct hf_vm *vm = &phase->vm;
    if (hf_control_send(&vm->control, operation, more, err) ||
        hf_vm_wait(vm, ANSWER_TIMEOUT_MS, answered_or_ending, NULL, "the guest's answer or its end", err))
        return -1;
    const char *status = hf_json_get_string(vm->control.response, "status");
    if (vm->control.response && strcmp(status, "ok") != 0)
        return hf_error_set(err, "guest-refused", 0, "",
                            "expected the guest to end by '%s', it answered with an error; its words are in "
                            "control-%u.log",
                            operation, phase->index);
    return 0;
}

int hf_phase_request_end(struct hf_phase *phase, const char *operation, struct hf_error *err)
{
    return request_end(phase, operation, NULL, err);
}

int hf_phase_exit(struct hf_phase *phase, unsigned value, struct hf_error *err)
{
    cJSON *more = hf_json_new_object();
    hf_json_add_int(more, "value", value);
    return request_end(phase, HF_GUEST_OP_EXIT, more, err);
}

/* One claim of the guest. Its name is carried on only when it is an identifier; its details stay in control-N.log. */
static void take_guest_check(struct hf_phase *phase, const cJSON *claim)
{
    char name[96];
    const char *claimed = hf_json_get_string(claim, "name");
    bool held = hf_json_get_bool_or(claim, "held", false);
    snprintf(name, sizeof name, "guest-%s",
             claimed && hf_text_is(HF_TEXT_IDENTIFIER, claimed) ? claimed : "check-without-a-proper-name");
    hf_phase_check(phase, name, held, "the guest finds it so", "%s",
                   held ? "it did" : "it did not: its words are in this VM's control log");
}

void hf_phase_take_verdict(struct hf_phase *phase, const char *probe, const cJSON *response)
{
    const cJSON *claims = hf_json_get(response, "checks");
    const char *verdict = hf_json_get_string(response, "verdict");
    int count = cJSON_IsArray(claims) ? cJSON_GetArraySize(claims) : 0;
    int killed = (int)hf_json_get_int_or(response, "processes_killed", -1);
    char name[96];
    const cJSON *claim = NULL;
    bool held = verdict && strcmp(verdict, "held") == 0 && count >= 1 && count <= GUEST_CHECKS_MAX;
    snprintf(name, sizeof name, "probe-%s", probe);
    hf_phase_check(phase, name, held, "verdict held over at least one check", "%s over %d checks",
                   held ? "held" : "not held", count);
    if (count <= GUEST_CHECKS_MAX)
        cJSON_ArrayForEach(claim, claims) take_guest_check(phase, claim);
    hf_phase_check(phase, "probe-left-no-process", killed == 0, "0 processes left behind in the guest", "%d", killed);
}

int hf_phase_probe(struct hf_phase *phase, const char *probe, uint64_t timeout_ms, cJSON *args, cJSON **response,
                   struct hf_error *err)
{
    if (hf_vm_run_begin(&phase->vm, timeout_ms, probe, args, err) ||
        hf_vm_run_end(&phase->vm, timeout_ms, response, err))
        return -1;
    hf_phase_take_verdict(phase, probe, *response);
    return 0;
}
