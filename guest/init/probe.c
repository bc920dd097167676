/* A probe's side of probe.h: the process it runs in, and the functions of guest/probes/probes.h. */
#include "guest/init/probe.h"

#include "guest/init/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AGENT_FD = 3, DETAIL_MAX = 256 };

struct hf_probe {
    int64_t run_id;
    struct hf_request request; /* its args are what hf_probe_arg_*() see */
    bool broken;
    unsigned check_count;
    char reason[HF_PROBE_REASON_MAX]; /* why it cannot run, "" while it can */
    struct hf_emit checks, result, event;
    char checks_bytes[HF_PROBE_CHECKS_MAX], result_bytes[HF_PROBE_RESULT_MAX];
    char event_bytes[HF_GUEST_LINE_MAX - 1]; /* a line without its newline */
    char line[HF_GUEST_LINE_MAX];            /* backs the args after a "continue" */
};

static int send_packet(enum hf_probe_packet kind, const char *bytes, size_t length)
{
    char type = (char)kind;
    struct iovec parts[2] = {{&type, 1}, {(void *)(uintptr_t)bytes, length}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent;
    do
        sent = sendmsg(AGENT_FD, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)length + 1 ? 0 : -1;
}

static void prepare_process(int fd)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (fd != AGENT_FD)
        dup2(fd, AGENT_FD);
    close_range(AGENT_FD + 1, ~0U, 0);
    int null = open("/dev/null", O_RDWR);
    if (null > STDIN_FILENO) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
    hf_file_write("/proc/self/oom_score_adj", "1000"); /* the probe is killed before the agent */
}

static void report(struct hf_probe *probe, int status)
{
    if (status != 0 || probe->reason[0]) {
        const char *reason = probe->reason[0] ? probe->reason : "the probe gave no reason";
        send_packet(HF_PACKET_CANNOT_RUN, reason, strlen(reason));
        return;
    }
    hf_emit_end(&probe->checks);
    hf_emit_end(&probe->result);
    if (!hf_emit_done(&probe->checks) || !hf_emit_done(&probe->result)) {
        send_packet(HF_PACKET_TOO_LONG, "", 0);
        return;
    }
    const bool held = !probe->broken && probe->check_count > 0;
    send_packet(held ? HF_PACKET_HELD : HF_PACKET_BROKEN, probe->checks.bytes, probe->checks.length);
    send_packet(HF_PACKET_RESULT, probe->result.bytes, probe->result.length);
}

_Noreturn void hf_probe_process(const struct hf_probe_entry *entry, const struct hf_request *request, int64_t run_id,
                                int fd)
{
    static struct hf_probe probe;
    prepare_process(fd);
    probe.run_id = run_id;
    probe.request = *request;
    hf_emit_init(&probe.checks, probe.checks_bytes, sizeof probe.checks_bytes);
    hf_emit_init(&probe.result, probe.result_bytes, sizeof probe.result_bytes);
    hf_emit_array_begin(&probe.checks, NULL);
    hf_emit_object_begin(&probe.result, NULL);
    report(&probe, entry->run(&probe));
    _exit(0);
}

int hf_probe_cannot_run(struct hf_probe *probe, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(probe->reason, sizeof probe->reason, format, arguments);
    va_end(arguments);
    return -1;
}

static const struct hf_field *argument(struct hf_probe *probe, const char *name, enum hf_field_type type, bool optional)
{
    static const char *const types[] = {
        [HF_FIELD_STRING] = "a string", [HF_FIELD_INT] = "an integer", [HF_FIELD_BOOL] = "a boolean"};
    const struct hf_field *field = hf_fields_find(&probe->request.args, name);
    if (field && field->type == type)
        return field;
    if (field || !optional)
        hf_probe_cannot_run(probe, "argument %s has to be %s, it is %s", name, types[type],
                            field ? types[field->type] : "absent");
    return NULL;
}

static int integer_argument(struct hf_probe *probe, const struct hf_field *field, int64_t min, int64_t max,
                            int64_t *value)
{
    if (field->integer < min || field->integer > max)
        return hf_probe_cannot_run(probe, "argument %s has to be within %lld and %lld, it is %lld", field->name,
                                   (long long)min, (long long)max, (long long)field->integer);
    *value = field->integer;
    return 0;
}

int hf_probe_arg_int(struct hf_probe *probe, const char *name, int64_t min, int64_t max, int64_t *value)
{
    const struct hf_field *field = argument(probe, name, HF_FIELD_INT, false);
    return field ? integer_argument(probe, field, min, max, value) : -1;
}

int hf_probe_arg_int_or(struct hf_probe *probe, const char *name, int64_t min, int64_t max, int64_t fallback,
                        int64_t *value)
{
    const struct hf_field *field = argument(probe, name, HF_FIELD_INT, true);
    if (field)
        return integer_argument(probe, field, min, max, value);
    *value = fallback;
    return probe->reason[0] ? -1 : 0;
}

int hf_probe_arg_string(struct hf_probe *probe, const char *name, const char **value)
{
    const struct hf_field *field = argument(probe, name, HF_FIELD_STRING, false);
    if (!field)
        return -1;
    *value = field->text;
    return 0;
}

int hf_probe_arg_bool_or(struct hf_probe *probe, const char *name, bool fallback, bool *value)
{
    const struct hf_field *field = argument(probe, name, HF_FIELD_BOOL, true);
    *value = field ? field->boolean : fallback;
    return probe->reason[0] ? -1 : 0;
}

void hf_probe_check(struct hf_probe *probe, const char *name, bool held, const char *detail_format, ...)
{
    char detail[DETAIL_MAX];
    va_list arguments;
    va_start(arguments, detail_format);
    vsnprintf(detail, sizeof detail, detail_format, arguments);
    va_end(arguments);
    hf_emit_object_begin(&probe->checks, NULL);
    hf_emit_string(&probe->checks, "name", name);
    hf_emit_bool(&probe->checks, "held", held);
    hf_emit_string(&probe->checks, "detail", detail);
    hf_emit_end(&probe->checks);
    probe->broken |= !held;
    probe->check_count++;
}

struct hf_emit *hf_probe_result(struct hf_probe *probe)
{
    return &probe->result;
}

struct hf_emit *hf_probe_event_begin(struct hf_probe *probe, const char *event_name)
{
    hf_emit_init(&probe->event, probe->event_bytes, sizeof probe->event_bytes);
    hf_emit_object_begin(&probe->event, NULL);
    hf_emit_int(&probe->event, "id", probe->run_id);
    hf_emit_string(&probe->event, "event", event_name);
    hf_emit_object_begin(&probe->event, "data");
    return &probe->event;
}

int hf_probe_event_send(struct hf_probe *probe)
{
    hf_emit_end(&probe->event);
    hf_emit_end(&probe->event);
    if (!hf_emit_done(&probe->event))
        return -1;
    return send_packet(HF_PACKET_EVENT, probe->event.bytes, probe->event.length);
}

int hf_probe_wait_continue(struct hf_probe *probe, uint32_t timeout_ms)
{
    struct pollfd agent = {.fd = AGENT_FD, .events = POLLIN};
    int ready;
    do
        ready = poll(&agent, 1, timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return ready == 0 ? 1 : -1;
    char type;
    struct iovec parts[2] = {{&type, 1}, {probe->line, sizeof probe->line - 1}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t got = recvmsg(AGENT_FD, &message, 0);
    if (got < 2 || type != HF_PACKET_CONTINUE)
        return -1;
    return hf_scan_request(probe->line, (size_t)got - 1, &probe->request) ? -1 : 0;
}
