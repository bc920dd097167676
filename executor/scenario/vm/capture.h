/*
 * A bounded log file in the output directory: the first `limit` bytes of a stream are kept exactly, everything is
 * counted. One per stream of a VM (serial-N.log, qmp-N.log, control-N.log, qemu-N.stderr.log).
 */
#ifndef HF_SCENARIO_VM_CAPTURE_H
#define HF_SCENARIO_VM_CAPTURE_H

#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

#define HF_CAPTURE_LIMIT_BYTES (16u << 20)

struct hf_capture {
    int fd; /* -1 when not open */
    uint64_t limit_bytes;
    uint64_t stored_bytes; /* in the file */
    uint64_t total_bytes;  /* seen, stored or not */
    char name[64];
};

void hf_capture_init(struct hf_capture *capture);
/* Creates `name`, which must not exist yet. Code "storage-failed". */
int hf_capture_open(struct hf_capture *capture, int dirfd, const char *name, uint64_t limit_bytes,
                    struct hf_error *err);
int hf_capture_write(struct hf_capture *capture, const void *bytes, size_t count, struct hf_error *err);
void hf_capture_close(struct hf_capture *capture);

#endif
