/* Host's end of the control channel; see control.h. */
#include "executor/scenario/vm/control.h"

#include "common/cleanup.h"
#include "guest/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void hf_control_init(struct hf_control *control, int fd)
{
    *control = (struct hf_control){.fd = fd, .events = hf_json_new_array()};
    hf_lines_init(&control->lines, HF_GUEST_LINE_MAX, HF_LINES_STRICT);
}

void hf_control_clear(struct hf_control *control)
{
    hf_lines_clear(&control->lines);
    cJSON_Delete(control->response);
    cJSON_Delete(control->events);
    *control = (struct hf_control){.fd = -1};
}

static int violation(struct hf_error *err, const char *expected)
{
    return hf_error_set(err, "control-invalid", 0, "",
                        "the guest broke the control protocol: expected %s, got something else", expected);
}

static int take_event(struct hf_control *control, cJSON **message, struct hf_error *err)
{
    if (control->pending_id == 0 || strcmp(control->pending_operation, HF_GUEST_OP_RUN) != 0)
        return violation(err, "no event while no probe runs");
    if (++control->event_count > HF_GUEST_EVENTS_MAX ||
        cJSON_GetArraySize(control->events) >= HF_CONTROL_QUEUED_EVENTS_MAX)
        return violation(err, "a bounded number of events");
    if (!cJSON_IsObject(hf_json_get(*message, "data")) || cJSON_GetArraySize(*message) != 3)
        return violation(err, "an event with exactly id, event and data");
    hf_json_append(control->events, STEAL_PTR(*message));
    return 0;
}

static int take_response(struct hf_control *control, cJSON **message, struct hf_error *err)
{
    const char *operation = hf_json_get_string(*message, "op");
    const char *status = hf_json_get_string(*message, "status");
    if (!operation || strcmp(operation, control->pending_operation) != 0)
        return violation(err, "an answer that repeats the operation");
    bool ok = status && strcmp(status, "ok") == 0;
    if (!ok && !(status && strcmp(status, "error") == 0 && hf_json_get_string(*message, "code") &&
                 hf_json_get_string(*message, "message")))
        return violation(err, "status ok, or error with code and message");
    control->pending_id = 0;
    control->response = STEAL_PTR(*message);
    return 0;
}

static int take_line(void *context, const char *line, size_t length, struct hf_error *err)
{
    static const struct hf_json_limits limits = {.max_bytes = HF_GUEST_LINE_MAX, .max_depth = 24};
    struct hf_control *control = context;
    if (length == 0)
        return 0; /* starts a connection */
    cleanup_json cJSON *message = hf_json_parse(line, length, &limits, err);
    if (!message)
        return hf_error_prefix(err, "the control channel");
    if (!cJSON_IsObject(message))
        return violation(err, "an object");
    int64_t id = hf_json_get_int_or(message, "id", -1);
    if (control->pending_id == 0 || id != control->pending_id)
        return violation(err, "the id of the request in flight");
    return hf_json_get_string(message, "event") ? take_event(control, &message, err)
                                                : take_response(control, &message, err);
}

int hf_control_receive(struct hf_control *control, const char *bytes, size_t count, struct hf_error *err)
{
    return hf_lines_feed(&control->lines, bytes, count, take_line, control, err);
}

static int send_line(struct hf_control *control, const cJSON *request, struct hf_error *err)
{
    size_t length = 0;
    cleanup_free char *text = hf_json_canonical(request, &length);
    cleanup_free char *line = NULL;
    int total = asprintf(&line, "%s%s\n", control->opened ? "" : "\n", text);
    if (total < 0 || total > HF_GUEST_LINE_MAX)
        return hf_error_set(err, "control-request-too-long", 0, "", "a request of %zu bytes exceeds the bound of %d",
                            length, HF_GUEST_LINE_MAX);
    ssize_t sent = send(control->fd, line, (size_t)total, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent != total)
        return hf_error_set(err, "control-closed", sent < 0 ? errno : EAGAIN, "",
                            "cannot send to the guest: the control channel is closed or the guest does not read");
    control->opened = true;
    return 0;
}

/* Adds the members of `more` to `request` and frees what is left of it. */
static void merge(cJSON *request, cJSON *more)
{
    while (more && more->child) {
        cJSON *member = cJSON_DetachItemViaPointer(more, more->child);
        cleanup_free char *key = strdup(member->string);
        hf_json_add(request, key, member);
    }
    cJSON_Delete(more);
}

int hf_control_send(struct hf_control *control, const char *operation, cJSON *more, struct hf_error *err)
{
    cleanup_json cJSON *request = hf_json_new_object();
    int64_t id = control->last_id + 1;
    hf_json_add_int(request, "id", id);
    hf_json_add_string(request, "op", operation);
    merge(request, more);
    cJSON_Delete(STEAL_PTR(control->response));
    if (send_line(control, request, err))
        return -1;
    cJSON_Delete(control->events);
    control->events = hf_json_new_array();
    control->event_count = 0;
    control->last_id = control->pending_id = id;
    snprintf(control->pending_operation, sizeof control->pending_operation, "%s", operation);
    return 0;
}

int hf_control_nudge(struct hf_control *control, const char *operation, cJSON *args, struct hf_error *err)
{
    cleanup_json cJSON *request = hf_json_new_object();
    hf_json_add_int(request, "id", control->pending_id);
    hf_json_add_string(request, "op", operation);
    if (args)
        hf_json_add(request, "args", args);
    return send_line(control, request, err);
}

cJSON *hf_control_take_event(struct hf_control *control, const char *name)
{
    cJSON *event = NULL;
    cJSON_ArrayForEach(event, control->events)
    {
        const char *seen = hf_json_get_string(event, "event");
        if (seen && strcmp(seen, name) == 0)
            return cJSON_DetachItemViaPointer(control->events, event);
    }
    return NULL;
}
