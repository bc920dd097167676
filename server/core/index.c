/*
 * Implementation of index.h: schema, connections and the statements. The job queue is index_jobs.c.
 */
#include "server/core/index.h"

#include "common/cleanup.h"
#include "common/digest.h"
#include "server/core/index_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define INDEX_SCHEMA_VERSION 1

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS runs ("
    " number INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL UNIQUE, campaign TEXT NOT NULL, profile TEXT NOT "
    "NULL,"
    " backend TEXT NOT NULL, host_type TEXT NOT NULL, state TEXT NOT NULL, status TEXT NOT NULL, category TEXT NOT "
    "NULL,"
    " failed_case TEXT NOT NULL, seed INTEGER NOT NULL, actions INTEGER NOT NULL, budget_actions INTEGER NOT NULL,"
    " budget_seconds INTEGER NOT NULL, created_wall_ms INTEGER NOT NULL, finished_wall_ms INTEGER NOT NULL) STRICT;"
    "CREATE TABLE IF NOT EXISTS quarantine ("
    " number INTEGER PRIMARY KEY AUTOINCREMENT, target_id TEXT NOT NULL UNIQUE, identity TEXT NOT NULL UNIQUE,"
    " run_id TEXT NOT NULL, reason TEXT NOT NULL, registered_wall_ms INTEGER NOT NULL) STRICT;"
    "PRAGMA user_version = 1;";

#define RUN_COLUMNS                                                                                                    \
    "run_id, campaign, profile, backend, host_type, state, status, category, failed_case, seed, actions, "             \
    "budget_actions, budget_seconds, created_wall_ms, finished_wall_ms"
#define QUARANTINE_COLUMNS "target_id, identity, run_id, reason, registered_wall_ms"

const char *const hf_index_sql[HF_INDEX_STATEMENT_COUNT] = {
    [HF_INDEX_PUT_RUN] =
        "INSERT INTO runs (" RUN_COLUMNS ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)"
        " ON CONFLICT (run_id) DO UPDATE SET state = excluded.state, status = excluded.status,"
        " category = excluded.category, failed_case = excluded.failed_case, actions = excluded.actions,"
        " finished_wall_ms = excluded.finished_wall_ms",
    [HF_INDEX_PUT_QUARANTINE] = "INSERT INTO quarantine (" QUARANTINE_COLUMNS ") VALUES (?1,?2,?3,?4,?5)"
                                " ON CONFLICT DO NOTHING",
    [HF_INDEX_GET_RUN] = "SELECT " RUN_COLUMNS " FROM runs WHERE run_id = ?1",
    [HF_INDEX_LIST_RUNS] = "SELECT " RUN_COLUMNS " FROM runs WHERE number < coalesce((SELECT number FROM runs WHERE"
                           " run_id = ?1), iif(?1 = '', 9223372036854775807, 0)) ORDER BY number DESC LIMIT ?2",
    [HF_INDEX_COUNT_RUNS] = "SELECT count(*) FROM runs",
    [HF_INDEX_FIND_QUARANTINE] = "SELECT " QUARANTINE_COLUMNS " FROM quarantine WHERE identity = ?1",
    [HF_INDEX_LIST_QUARANTINE] = "SELECT " QUARANTINE_COLUMNS " FROM quarantine ORDER BY number DESC LIMIT ?1",
};

int hf_index_fail(sqlite3 *database, const char *what, struct hf_error *err)
{
    return hf_error_set(err, "storage-failed", sqlite3_system_errno(database), NULL,
                        "index.sqlite: %s failed: %s; check the disk that holds the state directory", what,
                        sqlite3_errmsg(database));
}

static int open_connection(const char *path, int flags, sqlite3 **database, struct hf_error *err)
{
    if (sqlite3_open_v2(path, database, flags | SQLITE_OPEN_NOFOLLOW, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(*database, 5000);
        return 0;
    }
    return hf_error_set(err, "index-open-failed", errno, NULL, "cannot open the index %s: %s", path,
                        *database ? sqlite3_errmsg(*database) : "out of memory");
}

static int check_schema_version(sqlite3 *database, const char *path, struct hf_error *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, "PRAGMA user_version", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        sqlite3_finalize(statement);
        return hf_error_set(err, "index-open-failed", 0, NULL,
                            "%s is not an index of holdfast (%s); move it away, it is rebuilt from the run directories",
                            path, sqlite3_errmsg(database));
    }
    int version = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    if (version == 0 || version == INDEX_SCHEMA_VERSION)
        return 0;
    return hf_error_set(
        err, "index-schema", 0, NULL,
        "%s has schema version %d, this program knows %d; move it away, it is rebuilt from the run directories", path,
        version, INDEX_SCHEMA_VERSION);
}

static int set_up(struct hf_index *index, const char *path, struct hf_error *err)
{
    if (open_connection(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &index->writer, err) != 0 ||
        check_schema_version(index->writer, path, err) != 0)
        return -1;
    if (sqlite3_exec(index->writer, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", NULL, NULL, NULL) !=
            SQLITE_OK ||
        sqlite3_exec(index->writer, schema, NULL, NULL, NULL) != SQLITE_OK)
        return hf_index_fail(index->writer, "creating the tables", err);
    if (open_connection(path, SQLITE_OPEN_READONLY, &index->reader, err) != 0)
        return -1;
    for (int i = 0; i < HF_INDEX_STATEMENT_COUNT; i++) {
        sqlite3 *database = i < HF_INDEX_FIRST_READ ? index->writer : index->reader;
        if (sqlite3_prepare_v3(database, hf_index_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &index->statements[i], NULL) !=
            SQLITE_OK)
            return hf_index_fail(database, "preparing a statement", err);
    }
    return 0;
}

struct hf_index *hf_index_open(uv_loop_t *loop, const char *state_dir, struct hf_error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/index.sqlite", state_dir) >= (int)sizeof path) {
        hf_error_set(err, "index-open-failed", ENAMETOOLONG, NULL, "the state directory's path is too long");
        return NULL;
    }
    struct hf_index *index = hf_index_new(loop);
    mode_t mask = umask(077);
    int failed = set_up(index, path, err);
    umask(mask);
    if (failed) {
        hf_index_close(index);
        return NULL;
    }
    return index;
}

static void bind_text(sqlite3_stmt *statement, int position, const char *text)
{
    sqlite3_bind_text(statement, position, text, -1, SQLITE_STATIC);
}

static int run_write(struct hf_index *index, enum hf_index_statement which, struct hf_error *err)
{
    sqlite3_stmt *statement = index->statements[which];
    int result = sqlite3_step(statement);
    int failed = result == SQLITE_DONE ? 0 : hf_index_fail(index->writer, "a write", err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return failed;
}

int hf_index_put_run_now(struct hf_index *index, const struct hf_campaign_view *view, struct hf_error *err)
{
    sqlite3_stmt *statement = index->statements[HF_INDEX_PUT_RUN];
    const char *const texts[] = {view->run_id, view->campaign, view->profile,  view->backend,    view->host_type,
                                 view->state,  view->status,   view->category, view->failed_case};
    const int64_t numbers[] = {view->seed,
                               view->actions,
                               view->budget_actions,
                               view->budget_seconds,
                               (int64_t)view->created_wall_ms,
                               (int64_t)view->finished_wall_ms};
    for (int i = 0; i < 9; i++)
        bind_text(statement, i + 1, texts[i]);
    for (int i = 0; i < 6; i++)
        sqlite3_bind_int64(statement, 10 + i, numbers[i]);
    return run_write(index, HF_INDEX_PUT_RUN, err);
}

int hf_index_quarantine_now(struct hf_index *index, const struct hf_quarantine_record *record, struct hf_error *err)
{
    sqlite3_stmt *statement = index->statements[HF_INDEX_PUT_QUARANTINE];
    bind_text(statement, 1, record->target_id);
    bind_text(statement, 2, record->identity);
    bind_text(statement, 3, record->run_id);
    bind_text(statement, 4, record->reason);
    sqlite3_bind_int64(statement, 5, (int64_t)record->registered_wall_ms);
    return run_write(index, HF_INDEX_PUT_QUARANTINE, err);
}

static void copy_column(sqlite3_stmt *statement, int column, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    snprintf(out, size, "%s", text ? text : "");
}

static void read_view(sqlite3_stmt *statement, struct hf_campaign_view *view)
{
    *view = (struct hf_campaign_view){0};
    struct {
        char *out;
        size_t size;
    } texts[] = {
        {view->run_id, sizeof view->run_id},           {view->campaign, sizeof view->campaign},
        {view->profile, sizeof view->profile},         {view->backend, sizeof view->backend},
        {view->host_type, sizeof view->host_type},     {view->state, sizeof view->state},
        {view->status, sizeof view->status},           {view->category, sizeof view->category},
        {view->failed_case, sizeof view->failed_case},
    };
    for (int i = 0; i < 9; i++)
        copy_column(statement, i, texts[i].out, texts[i].size);
    view->seed = sqlite3_column_int64(statement, 9);
    view->actions = sqlite3_column_int(statement, 10);
    view->budget_actions = sqlite3_column_int(statement, 11);
    view->budget_seconds = sqlite3_column_int64(statement, 12);
    view->created_wall_ms = (uint64_t)sqlite3_column_int64(statement, 13);
    view->finished_wall_ms = (uint64_t)sqlite3_column_int64(statement, 14);
}

static void read_record(sqlite3_stmt *statement, struct hf_quarantine_record *record)
{
    *record = (struct hf_quarantine_record){0};
    copy_column(statement, 0, record->target_id, sizeof record->target_id);
    copy_column(statement, 1, record->identity, sizeof record->identity);
    copy_column(statement, 2, record->run_id, sizeof record->run_id);
    copy_column(statement, 3, record->reason, sizeof record->reason);
    record->registered_wall_ms = (uint64_t)sqlite3_column_int64(statement, 4);
}

static void end_read(sqlite3_stmt *statement)
{
    sqlite3_reset(statement); /* also ends the read transaction, so that the WAL can be checkpointed */
    sqlite3_clear_bindings(statement);
}

bool hf_index_get_run(struct hf_index *index, const char *run_id, struct hf_campaign_view *view)
{
    const struct hf_campaign_view *kept = hf_index_kept_run(index, run_id);
    if (kept) {
        *view = *kept;
        return true;
    }
    sqlite3_stmt *statement = index->statements[HF_INDEX_GET_RUN];
    bind_text(statement, 1, run_id);
    bool found = sqlite3_step(statement) == SQLITE_ROW;
    if (found)
        read_view(statement, view);
    end_read(statement);
    return found;
}

size_t hf_index_list_runs(struct hf_index *index, const char *before_run_id, size_t limit,
                          struct hf_campaign_view *views)
{
    sqlite3_stmt *statement = index->statements[HF_INDEX_LIST_RUNS];
    bind_text(statement, 1, before_run_id ? before_run_id : "");
    sqlite3_bind_int64(statement, 2, (int64_t)limit);
    size_t count = 0;
    while (count < limit && sqlite3_step(statement) == SQLITE_ROW)
        read_view(statement, &views[count++]);
    end_read(statement);
    return count;
}

int64_t hf_index_count_runs(struct hf_index *index)
{
    sqlite3_stmt *statement = index->statements[HF_INDEX_COUNT_RUNS];
    int64_t count = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    end_read(statement);
    return count;
}

void hf_quarantine_record_name(struct hf_quarantine_record *record)
{
    char digest[HF_SHA256_HEX_SIZE];
    hf_sha256_hex(record->identity, strlen(record->identity), digest);
    snprintf(record->target_id, sizeof record->target_id, "target-%.16s", digest);
}

int hf_index_find_quarantine(struct hf_index *index, const char *identity, struct hf_quarantine_record *record,
                             struct hf_error *err)
{
    sqlite3_stmt *statement = index->statements[HF_INDEX_FIND_QUARANTINE];
    bind_text(statement, 1, identity);
    int step = sqlite3_step(statement);
    int found = step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : hf_index_fail(index->reader, "a read", err);
    if (found == 1)
        read_record(statement, record);
    end_read(statement);
    return found;
}

size_t hf_index_list_quarantine(struct hf_index *index, size_t limit, struct hf_quarantine_record *records)
{
    sqlite3_stmt *statement = index->statements[HF_INDEX_LIST_QUARANTINE];
    sqlite3_bind_int64(statement, 1, (int64_t)limit);
    size_t count = 0;
    while (count < limit && sqlite3_step(statement) == SQLITE_ROW)
        read_record(statement, &records[count++]);
    end_read(statement);
    return count;
}
