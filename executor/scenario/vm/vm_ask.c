/* Questions to the guest (control channel) and to the VMM (monitor); see vm.h. */
#include "executor/scenario/vm/vm.h"

#include "common/cleanup.h"
#include "common/json_shape.h"
#include "guest/protocol.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The agent ends a probe at the run's timeout; this much later the host gives up on the agent too. */
#define RUN_ANSWER_MARGIN_MS 2000

static bool is_ready(struct hf_vm *vm, void *context)
{
    (void)context;
    return vm->ready && (!vm->spec.machine.devices.control || vm->qmp.control_port_open);
}

int hf_vm_wait_ready(struct hf_vm *vm, struct hf_error *err)
{
    return hf_vm_wait(vm, vm->spec.timeout_ms, is_ready, NULL, "the guest's ready marker on the console", err);
}

static bool control_answered(struct hf_vm *vm, void *context)
{
    (void)context;
    return vm->control.pending_id == 0;
}

static int wait_answer(struct hf_vm *vm, uint64_t timeout_ms, const char *what, cJSON **response, struct hf_error *err)
{
    if (hf_vm_wait(vm, timeout_ms, control_answered, NULL, what, err))
        return -1;
    cleanup_json cJSON *answer = STEAL_PTR(vm->control.response);
    if (strcmp(hf_json_get_string(answer, "status"), "ok") != 0) {
        const char *code = hf_json_get_string(answer, "code");
        bool printable = code && hf_text_is(HF_TEXT_IDENTIFIER, code);
        return hf_error_set(err, "guest-refused", 0, printable ? code : "",
                            "expected %s, the guest answered with an error (%s); its words are in control-%u.log", what,
                            printable ? code : "of unknown code", vm->spec.index);
    }
    *response = STEAL_PTR(answer);
    return 0;
}

int hf_vm_request(struct hf_vm *vm, uint64_t timeout_ms, const char *operation, cJSON *more, cJSON **response,
                  struct hf_error *err)
{
    return hf_control_send(&vm->control, operation, more, err)
               ? -1
               : wait_answer(vm, timeout_ms, "the guest's answer to a control request", response, err);
}

int hf_vm_run_begin(struct hf_vm *vm, uint64_t timeout_ms, const char *probe, cJSON *args, struct hf_error *err)
{
    cJSON *more = hf_json_new_object();
    hf_json_add_string(more, "probe", probe);
    hf_json_add_int(more, "timeout_ms", (int64_t)timeout_ms);
    hf_json_add(more, "args", args ? args : hf_json_new_object());
    return hf_control_send(&vm->control, HF_GUEST_OP_RUN, more, err);
}

struct event_wait {
    const char *name;
    cJSON *event;
};

static bool event_arrived(struct hf_vm *vm, void *context)
{
    struct event_wait *wait = context;
    wait->event = hf_control_take_event(&vm->control, wait->name);
    return wait->event || vm->control.pending_id == 0; /* an answer instead of the event ends the waiting */
}

int hf_vm_run_event(struct hf_vm *vm, uint64_t timeout_ms, const char *event, cJSON **data, struct hf_error *err)
{
    struct event_wait wait = {.name = event};
    if (hf_vm_wait(vm, timeout_ms, event_arrived, &wait, "an announcement of the probe", err))
        return -1;
    if (!wait.event) { /* the answer says why: prefer its error to "no event" */
        cleanup_json cJSON *answer = NULL;
        return wait_answer(vm, 0, "an announcement of the probe", &answer, err)
                   ? -1
                   : hf_error_set(err, "guest-refused", 0, "", "expected the probe to announce '%s', it ended instead",
                                  event);
    }
    if (data)
        *data = cJSON_DetachItemFromObjectCaseSensitive(wait.event, "data");
    cJSON_Delete(wait.event);
    return 0;
}

int hf_vm_run_continue(struct hf_vm *vm, cJSON *args, struct hf_error *err)
{
    return hf_control_nudge(&vm->control, HF_GUEST_OP_CONTINUE, args ? args : hf_json_new_object(), err);
}

int hf_vm_run_end(struct hf_vm *vm, uint64_t timeout_ms, cJSON **response, struct hf_error *err)
{
    return wait_answer(vm, timeout_ms + RUN_ANSWER_MARGIN_MS, "the probe's result", response, err);
}

static bool command_answered(struct hf_vm *vm, void *context)
{
    (void)context;
    return vm->qmp.pending_id == 0;
}

int hf_vm_command(struct hf_vm *vm, const char *command, cJSON *arguments, cJSON **reply, struct hf_error *err)
{
    if (hf_qmp_send(&vm->qmp, command, arguments, err) ||
        hf_vm_wait(vm, vm->spec.timeout_ms, command_answered, NULL, "the VMM's answer to a monitor command", err))
        return -1;
    cleanup_json cJSON *answer = STEAL_PTR(vm->qmp.reply);
    if (hf_json_get(answer, "error"))
        return hf_error_set(err, "qmp-refused", 0, command,
                            "the VMM refused the monitor command '%s'; its words are in qmp-%u.log", command,
                            vm->spec.index);
    if (reply)
        *reply = cJSON_DetachItemFromObjectCaseSensitive(answer, "return");
    return 0;
}

int hf_vm_kill(struct hf_vm *vm, struct hf_error *err)
{
    if (vm->process_fd < 0 || syscall(SYS_pidfd_send_signal, vm->process_fd, SIGKILL, NULL, 0) != 0)
        return hf_error_set(err, "vm-kill-failed", errno, "", "cannot kill the VMM: it is not there");
    return 0;
}
