/* The end of a VM: waiting for it, causing it, classifying it, and looking whether anything is left; see vm.h. */
#include "executor/scenario/vm/vm.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The supervisor's own deadline for reaping, and a moment for its report. */
#define REPORT_DEADLINE_MS (HF_CHILD_REAP_DEADLINE_MS + 2000)
#define SUPERVISOR_EXIT_MS 1000
#define OWN_END_MS         100

int hf_vm_await_end(struct hf_vm *vm, struct hf_error *err)
{
    while (!hf_vm_drained(vm)) {
        if (!vm->reported && (hf_clock_mono_ms() >= vm->deadline_mono_ms || vm->qmp.internal_error)) {
            hf_vm_stop(vm, HF_VM_STOP_TIMEOUT);
            return 0;
        }
        uint64_t until = vm->reported ? hf_clock_mono_ms() + REPORT_DEADLINE_MS : vm->deadline_mono_ms;
        if (hf_vm_pump(vm, until, err))
            return -1;
    }
    return 0;
}

/* True when the VMM is already on its way out: then its end is its own, and must not be taken for ours. What fails
 * first when a VMM dies is a write to one of its sockets, which are closed a moment before the process is gone. */
static bool ends_by_itself(const struct hf_vm *vm)
{
    struct pollfd process = {.fd = vm->process_fd, .events = POLLIN};
    return vm->process_fd >= 0 && poll(&process, 1, OWN_END_MS) > 0;
}

void hf_vm_stop(struct hf_vm *vm, enum hf_vm_stop reason)
{
    if (!vm->started)
        return;
    if (!vm->reported && !(reason == HF_VM_STOP_WANTED && ends_by_itself(vm))) {
        vm->stop = reason;
        hf_child_stop(&vm->child, 0);
    }
    vm->hold_console = false;
    uint64_t give_up = hf_clock_mono_ms() + REPORT_DEADLINE_MS;
    while (!hf_vm_drained(vm) && hf_clock_mono_ms() < give_up) {
        struct hf_error ignored; /* the first failure is the caller's; what arrives now only has to be drained */
        hf_vm_pump(vm, give_up, &ignored);
    }
}

struct hf_vm_evidence hf_vm_evidence(const struct hf_vm *vm)
{
    enum { KVM_EXIT_SHUTDOWN = 8 }; /* linux/kvm.h; what KVM reports for a triple fault */
    return (struct hf_vm_evidence){
        .resumed = vm->resumed,
        .stop = vm->stop,
        .shutdown = vm->qmp.shutdown,
        .guest_panicked = vm->qmp.guest_panicked,
        .triple_fault = vm->triple_fault ||
                        (vm->last_kvm_exit == KVM_EXIT_SHUTDOWN && vm->qmp.shutdown == HF_VM_SHUTDOWN_GUEST_RESET),
        .internal_error = vm->qmp.internal_error,
        .exited = vm->reported && vm->report.exited,
        .exit_code = vm->report.exit_code,
        .term_signal = vm->report.term_signal,
    };
}

enum hf_vm_end hf_vm_end(const struct hf_vm *vm)
{
    struct hf_vm_evidence evidence = hf_vm_evidence(vm);
    return vm->reported ? hf_vm_classify(&evidence) : HF_VM_END_UNKNOWN;
}

/* True when the directory was read to its end and holds no socket file. */
static bool no_socket_files(int dirfd)
{
    int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    if (!directory)
        return false;
    for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        struct stat status;
        if (fstatat(dirfd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISSOCK(status.st_mode))
            return false;
    }
    return true;
}

/* The supervisor, whose command line holds the VMM's, has reported but may need a moment to exit. */
static bool name_unclaimed(const char *token)
{
    uint64_t give_up = hf_clock_mono_ms() + SUPERVISOR_EXIT_MS;
    int count = hf_process_count_by_token(token);
    while (count > 0 && hf_clock_mono_ms() < give_up) {
        usleep(1000);
        count = hf_process_count_by_token(token);
    }
    return count == 0;
}

struct hf_vm_teardown hf_vm_check_teardown(const struct hf_vm *vm)
{
    return (struct hf_vm_teardown){
        .process_gone = !hf_process_alive(&vm->process),
        .no_descendants = !vm->started || (vm->reported && vm->report.teardown_complete && vm->report.survivors == 0),
        .name_unclaimed = name_unclaimed(vm->token),
        .monitor_closed = vm->qmp_fd < 0,
        .console_closed = vm->serial_fd < 0,
        .control_closed = vm->control_fd < 0,
        .sockets_removed = no_socket_files(vm->host->output_dirfd),
    };
}

bool hf_vm_teardown_complete(const struct hf_vm_teardown *teardown)
{
    return teardown->process_gone && teardown->no_descendants && teardown->name_unclaimed && teardown->monitor_closed &&
           teardown->console_closed && teardown->control_closed && teardown->sockets_removed;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void hf_vm_clear(struct hf_vm *vm)
{
    hf_vm_stop(vm, HF_VM_STOP_WANTED);
    hf_child_clear(&vm->child);
    close_fd(&vm->process_fd);
    close_fd(&vm->qmp_fd);
    close_fd(&vm->serial_fd);
    close_fd(&vm->control_fd);
    close_fd(&vm->network_fd);
    close_fd(&vm->stderr_fd);
    hf_capture_close(&vm->serial_log);
    hf_capture_close(&vm->qmp_log);
    hf_capture_close(&vm->control_log);
    hf_capture_close(&vm->stderr_log);
    hf_qmp_clear(&vm->qmp);
    hf_control_clear(&vm->control);
    hf_lines_clear(&vm->serial_lines);
    hf_lines_clear(&vm->stderr_lines);
    free(vm->frame);
    vm->frame = NULL;
    vm->started = false;
}
