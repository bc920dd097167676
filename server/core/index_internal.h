/* What index.c and index_jobs.c share; nobody else includes it. */
#ifndef HF_SERVER_CORE_INDEX_INTERNAL_H
#define HF_SERVER_CORE_INDEX_INTERNAL_H

#include "server/core/index.h"

#include <sqlite3.h>

enum hf_index_statement {
    HF_INDEX_PUT_RUN,
    HF_INDEX_PUT_QUARANTINE,
    HF_INDEX_FIRST_READ, /* from here on: on the reading connection */
    HF_INDEX_GET_RUN = HF_INDEX_FIRST_READ,
    HF_INDEX_LIST_RUNS,
    HF_INDEX_COUNT_RUNS,
    HF_INDEX_FIND_QUARANTINE,
    HF_INDEX_LIST_QUARANTINE,
    HF_INDEX_STATEMENT_COUNT,
};

struct hf_index_job {
    struct hf_index_job *next;
    bool is_quarantine;
    union {
        struct hf_campaign_view view;
        struct hf_quarantine_record record;
    };
    hf_index_done done;
    void *context;
};

struct hf_index {
    uv_loop_t *loop;
    sqlite3 *writer; /* thread pool (one job at a time), or the loop's thread while no job is in flight */
    sqlite3 *reader; /* loop's thread */
    sqlite3_stmt *statements[HF_INDEX_STATEMENT_COUNT];
    struct hf_index_job *waiting, **waiting_tail;
    struct hf_index_job *in_flight; /* the batch that the worker has */
    struct hf_error batch_error;    /* code NULL: the batch is committed */
    struct hf_index_job *kept;      /* ends of runs that could not be written; they go first in the next batch */
    unsigned kept_count;
    uv_work_t work;
};

struct hf_index *hf_index_new(uv_loop_t *loop);
/* The end of a run that is not in the file yet; NULL when there is none. */
const struct hf_campaign_view *hf_index_kept_run(const struct hf_index *index, const char *run_id);
int hf_index_fail(sqlite3 *database, const char *what, struct hf_error *err);

#endif
