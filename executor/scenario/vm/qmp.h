/*
 * The QMP client of one VM: one command in flight, events folded into what classification needs. The VMM may be in the
 * guest's hands, so every line passes the strict reader under a bound, and a line that is not QMP is an error that ends
 * the VM. Owned by struct hf_vm; does not wait by itself. Source: QEMU docs/interop/qmp-spec.txt.
 */
#ifndef HF_SCENARIO_VM_QMP_H
#define HF_SCENARIO_VM_QMP_H

#include "common/json.h"
#include "executor/scenario/vm/classify.h"
#include "executor/scenario/vm/lines.h"

#include <stdint.h>

#define HF_QMP_LINE_MAX   65536
#define HF_QMP_EVENTS_MAX 4096 /* more events than any scenario can cause: the VMM is misbehaving */

struct hf_qmp {
    int fd; /* borrowed; -1 once closed */
    struct hf_lines lines;
    bool greeted;
    int64_t last_id;
    int64_t pending_id; /* 0: nothing in flight */
    cJSON *reply;       /* owned: the whole answer to the last command, until taken */
    unsigned event_count;
    enum hf_vm_shutdown shutdown; /* of the first SHUTDOWN event; OTHER when a second one differs */
    bool shutdown_by_guest;
    bool guest_panicked;
    bool control_port_open; /* the guest has the control port open now */
    bool internal_error;    /* run state after an unrequested stop */
};

void hf_qmp_init(struct hf_qmp *qmp, int fd);
void hf_qmp_clear(struct hf_qmp *qmp);

/* Bytes that arrived. Codes: "qmp-invalid", "json-invalid", "line-too-long". */
int hf_qmp_receive(struct hf_qmp *qmp, const char *bytes, size_t count, struct hf_error *err);

/* Sends a command; takes `arguments` (may be NULL). The answer is in `reply` once pending_id is 0 again. */
int hf_qmp_send(struct hf_qmp *qmp, const char *command, cJSON *arguments, struct hf_error *err);

#endif
