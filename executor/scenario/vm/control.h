/*
 * The host's end of the control channel (guest/protocol.h): strict, bounded, one request at a time. The guest is
 * hostile: an answer that was not asked for, a wrong id, a malformed or endless line are violations that end the VM,
 * never something to skip. Owned by struct hf_vm; does not wait by itself.
 */
#ifndef HF_SCENARIO_VM_CONTROL_H
#define HF_SCENARIO_VM_CONTROL_H

#include "common/json.h"
#include "executor/scenario/vm/lines.h"

#include <stdint.h>

#define HF_CONTROL_QUEUED_EVENTS_MAX 256 /* events that the host has not looked at yet */

struct hf_control {
    int fd; /* borrowed; -1 when there is no channel or it is closed */
    struct hf_lines lines;
    bool opened; /* the empty line that starts a connection was sent */
    int64_t last_id;
    int64_t pending_id; /* 0: nothing in flight */
    char pending_operation[64];
    cJSON *response; /* owned: answer to the last request, until taken */
    cJSON *events;   /* owned array: events of the run in flight, oldest first */
    unsigned event_count;
};

void hf_control_init(struct hf_control *control, int fd);
void hf_control_clear(struct hf_control *control);

/* Bytes that arrived. Codes: "control-invalid", "json-invalid", "line-too-long". */
int hf_control_receive(struct hf_control *control, const char *bytes, size_t count, struct hf_error *err);

/* Sends {"id":N,"op":operation,...members of `more`}; takes `more` (may be NULL). */
int hf_control_send(struct hf_control *control, const char *operation, cJSON *more, struct hf_error *err);
/* Sends a "continue" or "cancel" for the run in flight; takes `args` (may be NULL). */
int hf_control_nudge(struct hf_control *control, const char *operation, cJSON *args, struct hf_error *err);

/* Takes the oldest queued event of that name; NULL when there is none. Owned by the caller. */
cJSON *hf_control_take_event(struct hf_control *control, const char *name);

#endif
