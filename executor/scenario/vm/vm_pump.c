/* The heart of a VM: one poll over all its peers; see vm.h. */
#include "executor/scenario/vm/vm.h"

#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_CHUNK      65536
#define FRAMES_PER_TURN 64

static bool starts_with(const char *line, size_t length, const char *prefix)
{
    size_t wanted = strlen(prefix);
    return length >= wanted && memcmp(line, prefix, wanted) == 0;
}

/* --- streams --- */

static int take_console_line(void *context, const char *line, size_t length, struct hf_error *err)
{
    struct hf_vm *vm = context;
    (void)err;
    if (!vm->ready && vm->spec.ready_marker && starts_with(line, length, vm->spec.ready_marker)) {
        vm->ready = true;
        vm->ready_mono_ms = hf_clock_mono_ms();
    }
    return 0;
}

static int take_diagnostic_line(void *context, const char *line, size_t length, struct hf_error *err)
{
    struct hf_vm *vm = context;
    char text[256];
    (void)err;
    snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1), line);
    if (strcmp(text, "Triple fault") == 0)
        vm->triple_fault = true;
    static const char before_reason[] = ", reason ";
    const char *reason = strstr(text, "kvm_run_exit cpu_index ") ? strstr(text, before_reason) : NULL;
    if (reason)
        vm->last_kvm_exit = strtol(reason + sizeof before_reason - 1, NULL, 10);
    else if (!vm->resumed && !vm->first_diagnostic[0] && starts_with(text, strlen(text), "qemu") &&
             !strstr(text, ": warning: "))
        snprintf(vm->first_diagnostic, sizeof vm->first_diagnostic, "%s", text);
    return 0;
}

static int take_console(struct hf_vm *vm, const char *bytes, size_t count, struct hf_error *err)
{
    if (hf_capture_write(&vm->serial_log, bytes, count, err))
        return -1;
    if (vm->spec.console_sink && vm->spec.console_sink(vm->spec.console_context, (const uint8_t *)bytes, count, err))
        return -1;
    return hf_lines_feed(&vm->serial_lines, bytes, count, take_console_line, vm, err);
}

static int take_monitor(struct hf_vm *vm, const char *bytes, size_t count, struct hf_error *err)
{
    return hf_capture_write(&vm->qmp_log, bytes, count, err) ? -1 : hf_qmp_receive(&vm->qmp, bytes, count, err);
}

static int take_control(struct hf_vm *vm, const char *bytes, size_t count, struct hf_error *err)
{
    return hf_capture_write(&vm->control_log, bytes, count, err) ? -1
                                                                 : hf_control_receive(&vm->control, bytes, count, err);
}

static int take_diagnostics(struct hf_vm *vm, const char *bytes, size_t count, struct hf_error *err)
{
    return hf_capture_write(&vm->stderr_log, bytes, count, err)
               ? -1
               : hf_lines_feed(&vm->stderr_lines, bytes, count, take_diagnostic_line, vm, err);
}

/* Reads one chunk; end of file or a broken socket closes the host's end. */
static int read_stream(struct hf_vm *vm, int *fd, int (*take)(struct hf_vm *, const char *, size_t, struct hf_error *),
                       struct hf_error *err)
{
    char bytes[READ_CHUNK];
    ssize_t count = read(*fd, bytes, sizeof bytes);
    if (count > 0)
        return take(vm, bytes, (size_t)count, err);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    close(*fd);
    *fd = -1;
    vm->qmp.fd = vm->qmp_fd;
    vm->control.fd = vm->control_fd;
    return 0;
}

/* --- network --- */

static int receive_frames(struct hf_vm *vm, struct hf_error *err)
{
    uint8_t frame[HF_VM_FRAME_MAX];
    for (int i = 0; i < FRAMES_PER_TURN; i++) {
        ssize_t length = recv(vm->network_fd, frame, sizeof frame, MSG_DONTWAIT);
        if (length < 0)
            return errno == EAGAIN || errno == EINTR || errno == ECONNRESET
                       ? 0
                       : hf_error_set(err, "network-peer-failed", errno, "", "cannot receive frames from the VMM");
        if (vm->peer.receive && vm->peer.receive(vm->peer.context, frame, (size_t)length, err))
            return -1;
    }
    return 0;
}

static bool has_frame(struct hf_vm *vm)
{
    if (vm->network_fd >= 0 && vm->frame_length == 0 && vm->peer.transmit)
        vm->frame_length = vm->peer.transmit(vm->peer.context, vm->frame, HF_VM_FRAME_MAX);
    return vm->frame_length > 0;
}

static int transmit_frames(struct hf_vm *vm, struct hf_error *err)
{
    for (int i = 0; i < FRAMES_PER_TURN && has_frame(vm); i++) {
        ssize_t sent = send(vm->network_fd, vm->frame, vm->frame_length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
            return 0;
        if (sent < 0 && (errno == ECONNREFUSED || errno == ECONNRESET || errno == EPIPE || errno == ENOTCONN)) {
            vm->peer.transmit = NULL; /* the VMM has closed its end: it is ending, and says how by other means */
            vm->frame_length = 0;
            return 0;
        }
        if (sent < 0)
            return hf_error_set(err, "network-peer-failed", errno, "", "cannot send a frame of %zu bytes to the VMM",
                                vm->frame_length);
        vm->frame_length = 0;
    }
    return 0;
}

/* --- the loop --- */

/* In the order in which they are served: what explains an end comes before the end itself. */
enum source { DIAGNOSTICS, QMP, SERIAL, CONTROL, NETWORK, CHILD, INTERRUPT, SOURCE_COUNT };

static void choose_sources(struct hf_vm *vm, struct pollfd polled[SOURCE_COUNT])
{
    const int fds[SOURCE_COUNT] = {
        [QMP] = vm->qmp_fd,
        [SERIAL] = vm->hold_console ? -1 : vm->serial_fd,
        [CONTROL] = vm->control_fd,
        [DIAGNOSTICS] = vm->stderr_fd,
        [NETWORK] = vm->network_fd,
        [CHILD] = vm->reported ? -1 : vm->child.control_fd,
        [INTERRUPT] = vm->stop == HF_VM_STOP_NONE ? vm->host->interrupt_fd : -1,
    };
    for (int i = 0; i < SOURCE_COUNT; i++)
        polled[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    if (has_frame(vm))
        polled[NETWORK].events |= POLLOUT;
}

static int read_report(struct hf_vm *vm, struct hf_error *err)
{
    int result = hf_child_read_report(&vm->child, &vm->report, err);
    if (result > 0) {
        vm->reported = true;
        vm->ended_mono_ms = hf_clock_mono_ms();
        if (vm->network_fd >= 0) {
            int received = receive_frames(vm, err); /* a datagram socket has no end of file: what is queued is all */
            close(vm->network_fd);
            vm->network_fd = -1;
            return received;
        }
    }
    return result < 0 ? -1 : 0;
}

static int serve(struct hf_vm *vm, int source, short events, struct hf_error *err)
{
    switch (source) {
    case DIAGNOSTICS:
        return read_stream(vm, &vm->stderr_fd, take_diagnostics, err);
    case QMP:
        return read_stream(vm, &vm->qmp_fd, take_monitor, err);
    case SERIAL:
        return read_stream(vm, &vm->serial_fd, take_console, err);
    case CONTROL:
        return read_stream(vm, &vm->control_fd, take_control, err);
    case NETWORK:
        return ((events & POLLIN) && receive_frames(vm, err)) || ((events & POLLOUT) && transmit_frames(vm, err)) ? -1
                                                                                                                  : 0;
    default:
        return read_report(vm, err);
    }
}

/* Every source gets its turn even when an earlier one failed, so that a VM that is being stopped is always drained. The
 * first failure is the one that is reported. */
static int dispatch(struct hf_vm *vm, const struct pollfd polled[SOURCE_COUNT], struct hf_error *err)
{
    struct hf_error *const first = err, later;
    int result = 0;
    if (polled[INTERRUPT].revents)
        return hf_error_set(err, "interrupted", 0, "", "the runner was told to stop");
    for (int source = 0; source < SOURCE_COUNT; source++) {
        if (polled[source].revents && serve(vm, source, polled[source].revents, result ? &later : first))
            result = -1;
    }
    return result;
}

int hf_vm_pump(struct hf_vm *vm, uint64_t until_mono_ms, struct hf_error *err)
{
    struct pollfd polled[SOURCE_COUNT];
    choose_sources(vm, polled);
    uint64_t now = hf_clock_mono_ms();
    int timeout = until_mono_ms <= now ? 0 : until_mono_ms - now > 60000 ? 60000 : (int)(until_mono_ms - now);
    if (poll(polled, SOURCE_COUNT, timeout) < 0)
        return errno == EINTR ? 0 : hf_error_set(err, "vm-poll-failed", errno, "", "cannot wait for the VM");
    return dispatch(vm, polled, err);
}

bool hf_vm_drained(const struct hf_vm *vm)
{
    return vm->reported && vm->qmp_fd < 0 && vm->control_fd < 0 && vm->stderr_fd < 0 &&
           (vm->serial_fd < 0 || vm->hold_console);
}

int hf_vm_wait(struct hf_vm *vm, uint64_t timeout_ms, bool (*done)(struct hf_vm *vm, void *context), void *context,
               const char *what, struct hf_error *err)
{
    uint64_t start = hf_clock_mono_ms();
    uint64_t until = start + timeout_ms < vm->deadline_mono_ms ? start + timeout_ms : vm->deadline_mono_ms;
    while (!done(vm, context)) {
        if (hf_vm_drained(vm))
            return hf_error_set(err, "vm-ended", 0, "", "expected %s, but the VM ended first: %s", what,
                                hf_vm_end_sentence(hf_vm_end(vm)));
        if (hf_clock_mono_ms() >= until)
            return hf_error_set(
                err, "vm-timeout", 0, "",
                "expected %s within %llu ms (backend %s), nothing came: raise --timeout if this machine "
                "is merely slow",
                what, (unsigned long long)(until - start), hf_vm_backend_name(vm->spec.machine.backend));
        if (hf_vm_pump(vm, until, err))
            return -1;
    }
    return 0;
}
