/*
 * What a scenario left behind: every `*outcome*.json` and `*report*.json` below its output directory, hashed and
 * judged. The tree is hostile input: no link is followed, every size and number is bounded, and each file is read once,
 * so that what was hashed is what was judged.
 */
#ifndef HF_EXECUTOR_INVENTORY_H
#define HF_EXECUTOR_INVENTORY_H

#include "common/catalog/profile.h"
#include "common/error.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

#define INVENTORY_MAX_REPORT_BYTES (1 << 20)
#define INVENTORY_MAX_REPORTS      256
#define INVENTORY_MAX_ENTRIES      20000 /* files and directories of any name */
#define INVENTORY_MAX_DEPTH        16

struct inventory {
    cJSON *reports;              /* array of {path, sha256, size, teardowns, teardown_complete}; owned */
    bool teardown_complete;      /* no `teardown` in any report has a field that is not true */
    bool acceptable;             /* every bound kept, every report well-formed, every required name present */
    struct hf_error first_fault; /* why not acceptable, or which teardown field is false */
};

/* Always fills *inventory; what is wrong is in it. Codes of first_fault: "report-link", "report-unreadable",
 * "report-too-large", "report-invalid", "report-missing", "report-teardown", "report-too-many". */
void inventory_take(int output_dirfd, const char *const *required, size_t required_count, struct inventory *inventory);
void inventory_clear(struct inventory *inventory);

/* True for the names that are inventoried. */
bool inventory_is_report_name(const char *name);

#endif
