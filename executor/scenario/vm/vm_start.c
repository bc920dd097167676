/* Starting a VM: sockets, command line, contained child, monitor, pid; see vm.h. */
#include "executor/scenario/vm/vm.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STDERR_LINE_MAX  1024
#define CONSOLE_LINE_MAX 512
/* Bytes that may queue between the VMM and the network peer; one flood must fit so that nobody waits for nobody. */
#define NETWORK_QUEUE_BYTES (4 << 20)

void hf_vm_init(struct hf_vm *vm)
{
    *vm = (struct hf_vm){.process_fd = -1,
                         .qmp_fd = -1,
                         .serial_fd = -1,
                         .control_fd = -1,
                         .network_fd = -1,
                         .stderr_fd = -1,
                         .last_kvm_exit = -1};
    hf_child_init(&vm->child);
    hf_capture_init(&vm->serial_log);
    hf_capture_init(&vm->qmp_log);
    hf_capture_init(&vm->control_log);
    hf_capture_init(&vm->stderr_log);
}

/* The VMM's ends of the socket pairs, closed again once it has them. */
struct vmm_ends {
    int fds[HF_CHILD_MAX_EXTRA_FDS];
    unsigned count;
};

static void close_ends(const struct vmm_ends *ends)
{
    for (unsigned i = 0; i < ends->count; i++)
        close(ends->fds[i]);
}

static int add_pair(struct vmm_ends *ends, int type, int *host_end, struct hf_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) != 0)
        return hf_error_set(err, "vm-start-failed", errno, "", "cannot create a socket pair for the VM");
    *host_end = pair[0];
    ends->fds[ends->count++] = pair[1];
    return fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0
               ? 0
               : hf_error_set(err, "vm-start-failed", errno, "", "cannot make a socket of the VM non-blocking");
}

static int open_peers(struct hf_vm *vm, struct vmm_ends *ends, struct hf_error *err)
{
    const struct hf_vm_devices *devices = &vm->spec.machine.devices;
    if (devices->network && !devices->control)
        return hf_error_set(err, "vm-spec-invalid", 0, "network", "a network needs a control channel to drive it");
    if (add_pair(ends, SOCK_STREAM, &vm->qmp_fd, err) || add_pair(ends, SOCK_STREAM, &vm->serial_fd, err) ||
        (devices->control && add_pair(ends, SOCK_STREAM, &vm->control_fd, err)) ||
        (devices->network && add_pair(ends, SOCK_DGRAM, &vm->network_fd, err)))
        return -1;
    if (devices->network) {
        int size = NETWORK_QUEUE_BYTES;
        if (setsockopt(ends->fds[ends->count - 1], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0 ||
            setsockopt(vm->network_fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0)
            size = 0; /* without CAP_NET_ADMIN the default queue throttles the sender instead: slower, nothing lost */
        vm->frame = malloc(HF_VM_FRAME_MAX);
        if (!vm->frame)
            abort();
    }
    return 0;
}

static int open_logs(struct hf_vm *vm, struct hf_error *err)
{
    const struct hf_vm_spec *spec = &vm->spec;
    uint64_t console_bound = spec->console_bound_bytes ? spec->console_bound_bytes : HF_CAPTURE_LIMIT_BYTES;
    const struct {
        struct hf_capture *capture;
        const char *pattern;
        uint64_t limit;
        bool wanted;
    } logs[] = {
        {&vm->serial_log, "serial-%u.log", console_bound, true},
        {&vm->qmp_log, "qmp-%u.log", HF_CAPTURE_LIMIT_BYTES, true},
        {&vm->control_log, "control-%u.log", HF_CAPTURE_LIMIT_BYTES, spec->machine.devices.control},
        {&vm->stderr_log, "qemu-%u.stderr.log", HF_CAPTURE_LIMIT_BYTES, true},
    };
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        char name[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* patterns of the table above */
        snprintf(name, sizeof name, logs[i].pattern, spec->index);
#pragma GCC diagnostic pop
        if (logs[i].wanted && hf_capture_open(logs[i].capture, vm->host->output_dirfd, name, logs[i].limit, err))
            return -1;
    }
    return 0;
}

static int make_token(struct hf_vm *vm, struct hf_error *err)
{
    uint8_t random[8];
    char hex[2 * sizeof random + 1];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return hf_error_set(err, "vm-start-failed", errno, "", "cannot draw the VM's name");
    hf_hex(random, sizeof random, hex);
    snprintf(vm->token, sizeof vm->token, "holdfast-vm-%u-%s", vm->spec.index, hex);
    return 0;
}

static int spawn(struct hf_vm *vm, struct hf_error *err)
{
    static const char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    struct vmm_ends ends = {.count = 0};
    struct hf_vm_args args;
    int result = -1;
    if (hf_vm_args_build(&args, vm->host->qemu_path, vm->token, &vm->spec.machine, err) == 0 &&
        open_peers(vm, &ends, err) == 0) {
        struct hf_child_spec child = {.argv = (const char *const *)args.items,
                                      .envp = environment,
                                      .cwd = "/",
                                      .stdin_fd = HF_CHILD_NULL,
                                      .stdout_fd = HF_CHILD_NULL,
                                      .stderr_fd = HF_CHILD_PIPE,
                                      .extra_fds = {-1, -1, -1, -1},
                                      .extra_fd_count = ends.count};
        memcpy(child.extra_fds, ends.fds, ends.count * sizeof ends.fds[0]);
        result = hf_child_start(&child, &vm->child, err);
    }
    close_ends(&ends);
    hf_vm_args_clear(&args);
    return result;
}

static bool monitor_greeted(struct hf_vm *vm, void *context)
{
    (void)context;
    return vm->qmp.greeted;
}

/* Replaces "the VM ended" by what QEMU said: nothing of the guest has run, so its words are QEMU's own. */
static int explain_refusal(struct hf_vm *vm, struct hf_error *err)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    if (!vm->reported)
        return -1;
    if (!vm->report.started)
        return hf_error_set(err, "vm-never-ran", vm->report.start_errno, "",
                            "cannot start '%s': install qemu-system-x86", vm->host->qemu_path);
    return hf_error_set(err, "vm-never-ran", 0, "",
                        "QEMU refused the VM before any guest code ran (backend %s, %s %d): %s",
                        hf_vm_backend_name(vm->spec.machine.backend), vm->report.exited ? "exit status" : "signal",
                        vm->report.exited ? vm->report.exit_code : vm->report.term_signal,
                        hf_error_quote(vm->first_diagnostic, strlen(vm->first_diagnostic), quoted));
}

static int record_process(struct hf_vm *vm, struct hf_error *err)
{
    if (hf_process_find(vm->child.supervisor_pid, vm->token, &vm->process, err))
        return -1;
    vm->process_fd = (int)syscall(SYS_pidfd_open, vm->process.pid, 0);
    if (vm->process_fd < 0 || !hf_process_alive(&vm->process))
        return hf_error_set(err, "vm-process-missing", errno, "", "the VMM ended while its pid was being recorded");
    return hf_pid_journal_record(vm->host->pids, vm->process.pid, err);
}

int hf_vm_start(struct hf_vm *vm, const struct hf_vm_host *host, const struct hf_vm_spec *spec, struct hf_error *err)
{
    hf_vm_init(vm);
    vm->spec = *spec;
    vm->host = host;
    vm->started_mono_ms = hf_clock_mono_ms();
    vm->deadline_mono_ms = vm->started_mono_ms + spec->timeout_ms;
    if (make_token(vm, err) || open_logs(vm, err) || spawn(vm, err))
        return -1;
    vm->started = true;
    vm->stderr_fd = STEAL_FD(vm->child.stderr_fd);
    hf_qmp_init(&vm->qmp, vm->qmp_fd);
    hf_control_init(&vm->control, vm->control_fd);
    hf_lines_init(&vm->serial_lines, CONSOLE_LINE_MAX, HF_LINES_CUT);
    hf_lines_init(&vm->stderr_lines, STDERR_LINE_MAX, HF_LINES_CUT);
    if (hf_vm_wait(vm, spec->timeout_ms, monitor_greeted, NULL, "the VMM's monitor", err) ||
        hf_vm_command(vm, "qmp_capabilities", NULL, NULL, err))
        return explain_refusal(vm, err);
    return record_process(vm, err);
}

int hf_vm_trace_exits(struct hf_vm *vm, struct hf_error *err)
{
    if (vm->spec.machine.backend != HF_VM_KVM)
        return 0; /* TCG tells a triple fault in words */
    cJSON *arguments = hf_json_new_object();
    hf_json_add_string(arguments, "name", "kvm_run_exit");
    hf_json_add_bool(arguments, "enable", true);
    return hf_vm_command(vm, "trace-event-set-state", arguments, NULL, err);
}

int hf_vm_resume(struct hf_vm *vm, struct hf_error *err)
{
    vm->resumed = true; /* from here on guest code may run, whatever the answer */
    return hf_vm_command(vm, "cont", NULL, NULL, err);
}
