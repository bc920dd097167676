/*
 * The index: one SQLite file (WAL, synchronous=FULL) over all runs, and the quarantine register. The run directories
 * are the source of truth; the index can be deleted and is rebuilt from them (recovery.c).
 *
 * Writes are jobs on the uv thread pool over the one writing connection, performed in the order of submission; jobs
 * that wait together share a transaction. Reads use a second, read-only connection on the loop's thread: under WAL they
 * never wait for a writer. Blocking variants (_now) exist for start-up and for recovery, before the loop runs.
 *
 * Called by controller.c, run effects and recovery.c only.
 */
#ifndef HF_SERVER_CORE_INDEX_H
#define HF_SERVER_CORE_INDEX_H

#include "server/controller.h"

struct hf_index;

/* Opens or creates <state_dir>/index.sqlite. A file that is not a database, or one of another schema version, is an
 * error that says what to do. Codes: "index-open-failed", "index-schema". */
struct hf_index *hf_index_open(uv_loop_t *loop, const char *state_dir, struct hf_error *err);
/* Waits for what is in flight. */
void hf_index_close(struct hf_index *index);

typedef void (*hf_index_done)(void *context, const struct hf_error *err);

/* Inserts the run or replaces its changeable columns (status, category, state, failed_case, actions, finished). The end
 * of a run that cannot be written is kept in memory, where hf_index_get_run() finds it, and written with the next batch
 * that succeeds. */
void hf_index_put_run(struct hf_index *index, const struct hf_campaign_view *view, hf_index_done done, void *context);
int hf_index_put_run_now(struct hf_index *index, const struct hf_campaign_view *view, struct hf_error *err);

bool hf_index_get_run(struct hf_index *index, const char *run_id, struct hf_campaign_view *view);
size_t hf_index_list_runs(struct hf_index *index, const char *before_run_id, size_t limit,
                          struct hf_campaign_view *views);
/* Number of runs; -1 when the index cannot be read. */
int64_t hf_index_count_runs(struct hf_index *index);

/* Fills target_id from identity. */
void hf_quarantine_record_name(struct hf_quarantine_record *record);

/* Registering the same target again keeps the first record. */
void hf_index_quarantine(struct hf_index *index, const struct hf_quarantine_record *record, hf_index_done done,
                         void *context);
int hf_index_quarantine_now(struct hf_index *index, const struct hf_quarantine_record *record, struct hf_error *err);

/* 1 with *record filled in when the identity is in the register, 0 when not, -1 when the register cannot be read (which
 * the caller treats as quarantined). */
int hf_index_find_quarantine(struct hf_index *index, const char *identity, struct hf_quarantine_record *record,
                             struct hf_error *err);
/* Newest first, up to limit. */
size_t hf_index_list_quarantine(struct hf_index *index, size_t limit, struct hf_quarantine_record *records);

#endif
