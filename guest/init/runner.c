/* Implementation of runner.h. */
#include "guest/init/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REAP_DEADLINE_MS = 5000 };

/* Collected by the linker from HF_PROBE(); weak, because an image may have no probe at all. */
extern const struct hf_probe_entry *const __start_hf_probes[] __attribute__((weak));
extern const struct hf_probe_entry *const __stop_hf_probes[] __attribute__((weak));

/* By address, because the two symbols are no array to the compiler. */
static size_t probe_count(void)
{
    return ((uintptr_t)__stop_hf_probes - (uintptr_t)__start_hf_probes) / sizeof __start_hf_probes[0];
}

const struct hf_probe_entry *hf_probe_find(const char *name)
{
    for (size_t i = 0; i < probe_count(); i++)
        if (strcmp(__start_hf_probes[i]->name, name) == 0)
            return __start_hf_probes[i];
    return NULL;
}

void hf_probe_emit_names(struct hf_emit *emit, const char *key)
{
    hf_emit_array_begin(emit, key);
    for (size_t i = 0; i < probe_count(); i++)
        hf_emit_string(emit, NULL, __start_hf_probes[i]->name);
    hf_emit_end(emit);
}

uint64_t hf_agent_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void fail(struct hf_runner *runner, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void fail(struct hf_runner *runner, const char *code, const char *format, ...)
{
    if (runner->error_code)
        return;
    runner->error_code = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(runner->error_message, sizeof runner->error_message, format, arguments);
    va_end(arguments);
}

int hf_runner_start(struct hf_runner *runner, const struct hf_probe_entry *entry, const struct hf_request *request,
                    int64_t run_id, uint64_t timeout_ms, char *why, size_t why_size)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        snprintf(why, why_size, "no socket pair for the probe: %s", strerror(errno));
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0)
        hf_probe_process(entry, request, run_id, pair[1]);
    int saved = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        snprintf(why, why_size, "no process for the probe: %s", strerror(saved));
        return -1;
    }
    memset(runner, 0, offsetof(struct hf_runner, checks));
    runner->active = true;
    runner->entry = entry;
    runner->run_id = run_id;
    runner->pid = pid;
    runner->fd = pair[0];
    runner->started_ms = hf_agent_now_ms();
    runner->deadline_ms = runner->started_ms + timeout_ms;
    return 0;
}

int hf_runner_continue(struct hf_runner *runner, const char *line, size_t length)
{
    char type = HF_PACKET_CONTINUE;
    struct iovec parts[2] = {{&type, 1}, {(void *)(uintptr_t)line, length}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(runner->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length + 1 ? 0 : -1;
}

void hf_runner_cancel(struct hf_runner *runner)
{
    fail(runner, HF_GUEST_ERROR_PROBE_CANCELED, "the host cancelled the probe");
}

/* Reaps whatever has died, also orphans that came to process 1. Returns false when no child is left at all. */
static bool reap(struct hf_runner *runner, unsigned *others)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != runner->pid) {
            ++*others;
            continue;
        }
        runner->main_reaped = true;
        runner->wait_status = status;
    }
    return pid == 0;
}

/* One kill(-1) is enough against forks: the kernel walks the processes under the lock that a fork needs, and a fork
 * with a pending signal fails. Waiting is bounded: a process stuck in the kernel must not take the agent with it. */
static void end_everything(struct hf_runner *runner)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    unsigned died_before = 0;
    reap(runner, &died_before);
    kill(-1, SIGKILL);
    bool left = true;
    for (unsigned waited_ms = 0; waited_ms < REAP_DEADLINE_MS; waited_ms++) {
        left = reap(runner, &runner->processes_killed);
        if (!left)
            break;
        nanosleep(&pause, NULL);
    }
    runner->processes_left = left;
    runner->ended = true;
}

static void take_event(struct hf_runner *runner, struct hf_control *control, const char *line, size_t length)
{
    if (++runner->event_count > HF_GUEST_EVENTS_MAX)
        fail(runner, HF_GUEST_ERROR_PROBE_OUTPUT, "more than %d events", HF_GUEST_EVENTS_MAX);
    else if (length > HF_GUEST_LINE_MAX - 1 || !hf_scan_is_json(line, length))
        fail(runner, HF_GUEST_ERROR_PROBE_OUTPUT, "an event is not one line of JSON within bounds");
    else
        hf_control_queue(control, line, length);
}

static void take_document(struct hf_runner *runner, const char *json, size_t length, char opener, char *out,
                          size_t capacity, size_t *out_length)
{
    if (length == 0 || length > capacity || json[0] != opener || !hf_scan_is_json(json, length)) {
        fail(runner, HF_GUEST_ERROR_PROBE_OUTPUT, "checks or result are not JSON within bounds");
        return;
    }
    memcpy(out, json, length);
    *out_length = length;
}

static void take_packet(struct hf_runner *runner, struct hf_control *control, const char *packet, size_t length)
{
    const char *body = packet + 1;
    const size_t body_length = length - 1;
    switch (packet[0]) {
    case HF_PACKET_EVENT:
        take_event(runner, control, body, body_length);
        break;
    case HF_PACKET_HELD:
    case HF_PACKET_BROKEN:
        runner->verdict = packet[0];
        take_document(runner, body, body_length, '[', runner->checks, sizeof runner->checks, &runner->checks_length);
        break;
    case HF_PACKET_RESULT:
        runner->has_result = true;
        take_document(runner, body, body_length, '{', runner->result, sizeof runner->result, &runner->result_length);
        break;
    case HF_PACKET_CANNOT_RUN:
        fail(runner, HF_GUEST_ERROR_CANNOT_RUN, "%.*s", (int)(body_length > 500 ? 500 : body_length), body);
        break;
    default:
        fail(runner, HF_GUEST_ERROR_PROBE_OUTPUT, "checks, result or an event are longer than allowed");
        break;
    }
}

/* Returns true when no packet is waiting; false when the control port has to be read first. */
static bool take_packets(struct hf_runner *runner, struct hf_control *control)
{
    char packet[HF_PROBE_PACKET_MAX + 1];
    while (hf_control_has_room(control)) {
        ssize_t got = recv(runner->fd, packet, sizeof packet, MSG_DONTWAIT | MSG_TRUNC);
        runner->hung_up |= got == 0;
        if (got <= 0)
            return true;
        if ((size_t)got > sizeof packet)
            fail(runner, HF_GUEST_ERROR_PROBE_OUTPUT, "a packet longer than allowed");
        else
            take_packet(runner, control, packet, (size_t)got);
    }
    return false;
}

static void judge_end(struct hf_runner *runner)
{
    if (runner->processes_left)
        fail(runner, HF_GUEST_ERROR_FAILED, "a process of the probe cannot be killed");
    if (runner->verdict && runner->has_result)
        return;
    if (runner->main_reaped && WIFSIGNALED(runner->wait_status))
        fail(runner, HF_GUEST_ERROR_PROBE_CRASHED, "the probe ended by signal %d", WTERMSIG(runner->wait_status));
    fail(runner, HF_GUEST_ERROR_PROBE_CRASHED, "the probe exited with %d and gave no result",
         runner->main_reaped ? WEXITSTATUS(runner->wait_status) : -1);
}

static void respond(struct hf_runner *runner, struct hf_control *control)
{
    char line[HF_GUEST_LINE_MAX - 1];
    struct hf_emit emit;
    hf_emit_init(&emit, line, sizeof line);
    hf_emit_object_begin(&emit, NULL);
    hf_emit_int(&emit, "id", runner->run_id);
    hf_emit_string(&emit, "op", HF_GUEST_OP_RUN);
    hf_emit_string(&emit, "status", runner->error_code ? "error" : "ok");
    hf_emit_string(&emit, "probe", runner->entry->name);
    hf_emit_uint(&emit, "duration_ms", hf_agent_now_ms() - runner->started_ms);
    hf_emit_uint(&emit, "processes_killed", runner->processes_killed);
    if (runner->error_code) {
        hf_emit_string(&emit, "code", runner->error_code);
        hf_emit_string(&emit, "message", runner->error_message);
    } else {
        hf_emit_string(&emit, "verdict", runner->verdict == HF_PACKET_HELD ? "held" : "broken");
        hf_emit_raw(&emit, "checks", runner->checks, runner->checks_length);
        hf_emit_raw(&emit, "result", runner->result, runner->result_length);
    }
    hf_emit_end(&emit);
    hf_control_queue(control, emit.bytes, emit.length);
}

void hf_runner_advance(struct hf_runner *runner, struct hf_control *control)
{
    unsigned orphans = 0;
    reap(runner, &orphans);
    if (!runner->active)
        return;
    bool drained = take_packets(runner, control);
    if (!runner->ended) {
        if (!runner->main_reaped && hf_agent_now_ms() >= runner->deadline_ms)
            fail(runner, HF_GUEST_ERROR_PROBE_TIMEOUT, "the probe did not end in time");
        if (!runner->main_reaped && !runner->error_code)
            return;
        end_everything(runner);
        drained = take_packets(runner, control);
    }
    if (!drained || !hf_control_has_room(control))
        return;
    judge_end(runner);
    respond(runner, control);
    close(runner->fd);
    runner->active = false;
}

int hf_runner_poll_fd(const struct hf_runner *runner, const struct hf_control *control)
{
    return runner->active && !runner->hung_up && hf_control_has_room(control) ? runner->fd : -1;
}

int hf_runner_timeout_ms(const struct hf_runner *runner)
{
    if (!runner->active || runner->ended)
        return -1;
    uint64_t now = hf_agent_now_ms();
    return now >= runner->deadline_ms ? 0 : (int)(runner->deadline_ms - now);
}
