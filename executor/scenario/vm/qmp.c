/* QMP client; see qmp.h. */
#include "executor/scenario/vm/qmp.h"

#include "common/cleanup.h"
#include "executor/scenario/vm/args.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Id of the question that the client asks by itself after a STOP event. */
#define STATUS_QUERY_ID INT64_C(1000000)

void hf_qmp_init(struct hf_qmp *qmp, int fd)
{
    *qmp = (struct hf_qmp){.fd = fd};
    hf_lines_init(&qmp->lines, HF_QMP_LINE_MAX, HF_LINES_STRICT);
}

void hf_qmp_clear(struct hf_qmp *qmp)
{
    hf_lines_clear(&qmp->lines);
    cJSON_Delete(qmp->reply);
    *qmp = (struct hf_qmp){.fd = -1};
}

static int invalid(struct hf_error *err, const char *expected)
{
    return hf_error_set(err, "qmp-invalid", 0, "", "expected %s on the VMM's monitor, got something else", expected);
}

static int send_line(struct hf_qmp *qmp, int64_t id, const char *command, cJSON *arguments, struct hf_error *err)
{
    cleanup_json cJSON *request = hf_json_new_object();
    hf_json_add_string(request, "execute", command);
    hf_json_add_int(request, "id", id);
    if (arguments)
        hf_json_add(request, "arguments", arguments);
    size_t length = 0;
    cleanup_free char *text = hf_json_canonical(request, &length);
    text[length++] = '\n'; /* in the place of the NUL */
    ssize_t sent = send(qmp->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent != (ssize_t)length)
        return hf_error_set(err, "qmp-closed", sent < 0 ? errno : EAGAIN, command,
                            "cannot send '%s' to the VMM's monitor: it is gone or does not read", command);
    return 0;
}

int hf_qmp_send(struct hf_qmp *qmp, const char *command, cJSON *arguments, struct hf_error *err)
{
    cJSON_Delete(STEAL_PTR(qmp->reply));
    int64_t id = ++qmp->last_id;
    if (send_line(qmp, id, command, arguments, err))
        return -1;
    qmp->pending_id = id;
    return 0;
}

static void take_shutdown(struct hf_qmp *qmp, const cJSON *data)
{
    enum hf_vm_shutdown seen = hf_vm_shutdown_from_qmp(hf_json_get_string(data, "reason"));
    if (qmp->shutdown != HF_VM_SHUTDOWN_NONE && qmp->shutdown != seen)
        seen = HF_VM_SHUTDOWN_OTHER;
    qmp->shutdown = seen;
    qmp->shutdown_by_guest = hf_json_get_bool_or(data, "guest", false);
}

static int take_event(struct hf_qmp *qmp, const char *name, const cJSON *data, struct hf_error *err)
{
    if (++qmp->event_count > HF_QMP_EVENTS_MAX)
        return hf_error_set(err, "qmp-invalid", 0, "", "expected at most %d monitor events, the VMM sent more",
                            HF_QMP_EVENTS_MAX);
    if (strcmp(name, "SHUTDOWN") == 0)
        take_shutdown(qmp, data);
    else if (strcmp(name, "GUEST_PANICKED") == 0)
        qmp->guest_panicked = true;
    else if (strcmp(name, "VSERPORT_CHANGE") == 0) {
        const char *port = hf_json_get_string(data, "id");
        if (port && strcmp(port, HF_VM_CONTROL_PORT_ID) == 0)
            qmp->control_port_open = hf_json_get_bool_or(data, "open", false);
    } else if (strcmp(name, "STOP") == 0) {
        struct hf_error ignored; /* a VM on its way out closes the monitor: its end is told by other means */
        send_line(qmp, STATUS_QUERY_ID, "query-status", NULL, &ignored);
    }
    return 0;
}

static int take_reply(struct hf_qmp *qmp, cJSON **message, struct hf_error *err)
{
    int64_t id = hf_json_get_int_or(*message, "id", 0);
    const cJSON *returned = hf_json_get(*message, "return");
    if (id == STATUS_QUERY_ID) {
        const char *status = hf_json_get_string(returned, "status");
        qmp->internal_error = status && strcmp(status, "internal-error") == 0;
        return 0;
    }
    if (id == 0 || id != qmp->pending_id || (!returned && !hf_json_get(*message, "error")))
        return invalid(err, "the answer to the command in flight");
    qmp->pending_id = 0;
    qmp->reply = STEAL_PTR(*message);
    return 0;
}

static int take_line(void *context, const char *line, size_t length, struct hf_error *err)
{
    static const struct hf_json_limits limits = {.max_bytes = HF_QMP_LINE_MAX, .max_depth = 16};
    struct hf_qmp *qmp = context;
    if (length && line[length - 1] == '\r')
        length--;
    cleanup_json cJSON *message = hf_json_parse(line, length, &limits, err);
    if (!message)
        return hf_error_prefix(err, "the VMM's monitor");
    if (!cJSON_IsObject(message))
        return invalid(err, "an object");
    if (!qmp->greeted) {
        qmp->greeted = hf_json_get(message, "QMP") != NULL;
        return qmp->greeted ? 0 : invalid(err, "the greeting");
    }
    const char *event = hf_json_get_string(message, "event");
    return event ? take_event(qmp, event, hf_json_get(message, "data"), err) : take_reply(qmp, &message, err);
}

int hf_qmp_receive(struct hf_qmp *qmp, const char *bytes, size_t count, struct hf_error *err)
{
    return hf_lines_feed(&qmp->lines, bytes, count, take_line, qmp, err);
}
