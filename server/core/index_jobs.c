/*
 * The write queue of the index: jobs in order of submission, one batch on the thread pool at a time, one transaction
 * (and so one fsync) for a batch. A batch that fails is rolled back as a whole and every job in it hears the same
 * error.
 */
#include "common/cleanup.h"
#include "server/core/index_internal.h"
#include "server/core/loop_meter.h"

#include <stdlib.h>
#include <string.h>

/* The callbacks of a batch run in one callback of the loop, so that it must not grow without bound. */
#define MAX_BATCH 16

/* Ends of runs that wait for a disk that takes them; beyond that the oldest are told by their run directories only. */
#define MAX_KEPT HF_CONTROLLER_MAX_CAMPAIGNS

struct hf_index *hf_index_new(uv_loop_t *loop)
{
    struct hf_index *index = calloc(1, sizeof *index);
    if (!index)
        abort();
    index->loop = loop;
    index->waiting_tail = &index->waiting;
    index->work.data = index;
    return index;
}

static int exec(struct hf_index *index, const char *sql, const char *what, struct hf_error *err)
{
    return sqlite3_exec(index->writer, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                           : hf_index_fail(index->writer, what, err);
}

static int perform_jobs(struct hf_index *index, struct hf_error *err)
{
    for (const struct hf_index_job *job = index->in_flight; job; job = job->next) {
        int failed = job->is_quarantine ? hf_index_quarantine_now(index, &job->record, err)
                                        : hf_index_put_run_now(index, &job->view, err);
        if (failed)
            return -1;
    }
    return exec(index, "COMMIT", "a commit", err);
}

static void perform_batch(uv_work_t *work)
{
    struct hf_index *index = work->data;
    index->batch_error = (struct hf_error){0};
    if (exec(index, "BEGIN IMMEDIATE", "beginning a transaction", &index->batch_error) != 0)
        return;
    if (perform_jobs(index, &index->batch_error) != 0)
        sqlite3_exec(index->writer, "ROLLBACK", NULL, NULL, NULL); /* the first error is the one that counts */
}

static void free_jobs(struct hf_index_job *job)
{
    while (job) {
        struct hf_index_job *next = job->next;
        free(job);
        job = next;
    }
}

static void keep(struct hf_index *index, struct hf_index_job *job)
{
    job->done = NULL; /* it was told of the failure */
    job->next = index->kept;
    index->kept = job;
    if (++index->kept_count <= MAX_KEPT)
        return;
    struct hf_index_job *last = index->kept;
    for (unsigned i = 1; i < MAX_KEPT; i++)
        last = last->next;
    free_jobs(STEAL_PTR(last->next));
    index->kept_count = MAX_KEPT;
}

/* Puts what is kept before the batch in flight. */
static void retry_kept(struct hf_index *index)
{
    struct hf_index_job **end = &index->kept;
    while (*end)
        end = &(*end)->next;
    *end = index->in_flight;
    index->in_flight = STEAL_PTR(index->kept);
    index->kept_count = 0;
}

const struct hf_campaign_view *hf_index_kept_run(const struct hf_index *index, const char *run_id)
{
    const struct hf_index_job *const lists[] = {index->kept, index->in_flight};
    for (size_t i = 0; i < 2; i++)
        for (const struct hf_index_job *job = lists[i]; job; job = job->next)
            if (!job->is_quarantine && job->view.finished_wall_ms && strcmp(job->view.run_id, run_id) == 0)
                return &job->view;
    return NULL;
}

static void start_batch(struct hf_index *index);

static void on_batch_done(uv_work_t *work, int status)
{
    HF_LOOP_CALLBACK(work->loop);
    struct hf_index *index = work->data;
    struct hf_index_job *job = index->in_flight;
    struct hf_error batch_error = index->batch_error;
    (void)status; /* never cancelled */
    index->in_flight = NULL;
    start_batch(index);
    while (job) {
        struct hf_index_job *next = job->next;
        if (job->done)
            job->done(job->context, batch_error.code ? &batch_error : NULL);
        if (batch_error.code && !job->is_quarantine && job->view.finished_wall_ms)
            keep(index, job);
        else
            free(job);
        job = next;
    }
}

static void start_batch(struct hf_index *index)
{
    if (index->in_flight || !index->waiting)
        return;
    struct hf_index_job **cut = &index->waiting;
    for (int i = 0; i < MAX_BATCH && *cut; i++)
        cut = &(*cut)->next;
    index->in_flight = index->waiting;
    index->waiting = *cut;
    *cut = NULL;
    if (!index->waiting)
        index->waiting_tail = &index->waiting;
    retry_kept(index);
    if (uv_queue_work(index->loop, &index->work, perform_batch, on_batch_done) != 0)
        abort(); /* only for invalid arguments */
}

static struct hf_index_job *add_job(struct hf_index *index, hf_index_done done, void *context)
{
    struct hf_index_job *job = calloc(1, sizeof *job);
    if (!job)
        abort();
    job->done = done;
    job->context = context;
    *index->waiting_tail = job;
    index->waiting_tail = &job->next;
    return job;
}

void hf_index_put_run(struct hf_index *index, const struct hf_campaign_view *view, hf_index_done done, void *context)
{
    struct hf_index_job *job = add_job(index, done, context);
    job->view = *view;
    start_batch(index);
}

void hf_index_quarantine(struct hf_index *index, const struct hf_quarantine_record *record, hf_index_done done,
                         void *context)
{
    struct hf_index_job *job = add_job(index, done, context);
    job->is_quarantine = true;
    job->record = *record;
    start_batch(index);
}

void hf_index_close(struct hf_index *index)
{
    if (!index)
        return;
    while (index->in_flight)
        uv_run(index->loop, UV_RUN_ONCE);
    for (int i = 0; i < HF_INDEX_STATEMENT_COUNT; i++)
        sqlite3_finalize(index->statements[i]);
    sqlite3_close(index->reader);
    sqlite3_close(index->writer);
    free_jobs(index->kept);
    free(index);
}
