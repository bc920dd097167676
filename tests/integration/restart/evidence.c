/* Implementation of evidence.h. */
#include "tests/integration/restart/evidence.h"

#include "common/cleanup.h"
#include "common/durable.h"
#include "common/json.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 16 << 20, MAX_ACTIONS = 100 };

/* The accepted actions of a run: case ids by sequence, from 1. */
struct actions {
    char cases[MAX_ACTIONS + 1][128];
    int count;
};

static cJSON *parse(const char *text, size_t length, const char *where)
{
    const struct hf_json_limits limits = {.max_bytes = FILE_MAX, .max_depth = 64};
    struct hf_error err = {0};
    cJSON *document = hf_json_parse(text, length, &limits, &err);
    ck_assert_msg(document != NULL, "%s: %s: %.*s", where, err.message, (int)length, text);
    return document;
}

/* Owned; NULL when it is absent. */
static char *read_file(const struct evidence *evidence, const char *run_id, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", evidence->runs, run_id, name);
    return hf_document_read(AT_FDCWD, path, FILE_MAX, NULL, NULL);
}

static cJSON *read_document(const struct evidence *evidence, const char *run_id, const char *name)
{
    cleanup_free char *text = read_file(evidence, run_id, name);
    ck_assert_msg(text != NULL, "%s has no %s (I6)", run_id, name);
    return parse(text, strlen(text), name);
}

bool evidence_has_run(const struct evidence *evidence, const char *run_id)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/metadata.json", evidence->runs, run_id);
    return access(path, F_OK) == 0;
}

const char *evidence_category(const struct evidence *evidence, const char *run_id)
{
    static char category[64];
    cleanup_json cJSON *summary = read_document(evidence, run_id, "public-summary.json");
    snprintf(category, sizeof category, "%s", hf_json_get_string(summary, "category"));
    return category;
}

/* Calls `line` for each line of a journal; every one must be whole. */
static void each_line(const char *text, const char *where, void (*line)(void *context, const cJSON *document),
                      void *context)
{
    while (text && *text) {
        const char *end = strchr(text, '\n');
        ck_assert_msg(end != NULL, "%s ends in the middle of a line: %s", where, text);
        cleanup_json cJSON *document = parse(text, (size_t)(end - text), where);
        line(context, document);
        text = end + 1;
    }
}

static void take_action(void *context, const cJSON *line)
{
    struct actions *actions = context;
    ck_assert_int_lt(actions->count, MAX_ACTIONS);
    actions->count++;
    ck_assert_int_eq(hf_json_get_int_or(line, "sequence", 0), actions->count);
    snprintf(actions->cases[actions->count], sizeof actions->cases[0], "%s", hf_json_get_string(line, "case_id"));
}

static void expect_accepted(void *context, const cJSON *line)
{
    const struct actions *actions = context;
    int64_t sequence = hf_json_get_int_or(line, "sequence", 0);
    ck_assert_msg(sequence >= 1 && sequence <= actions->count, "action %d has no line in actions.jsonl (I1)",
                  (int)sequence);
    ck_assert_str_eq(actions->cases[sequence], hf_json_get_string(line, "case_id"));
}

static void read_actions(const struct evidence *evidence, const char *run_id, struct actions *actions)
{
    cleanup_free char *text = read_file(evidence, run_id, "actions.jsonl");
    actions->count = 0;
    each_line(text, run_id, take_action, actions);
}

/* What the journal says about a run. */
struct journal {
    bool session;        /* was started */
    bool session_closed; /* in order */
    char end[32];        /* the last state of the campaign */
};

static void take_transition(void *context, const cJSON *line)
{
    struct journal *journal = context;
    const char *machine = hf_json_get_string(line, "machine"), *to = hf_json_get_string(line, "to");
    if (!to)
        return; /* a rejected event */
    bool campaign = strcmp(machine, "campaign") == 0;
    journal->session |= strcmp(machine, "executor_session") == 0 || (campaign && strcmp(to, "initializing") == 0);
    journal->session_closed |= strcmp(machine, "executor_session") == 0 && strcmp(to, "closed") == 0;
    if (campaign)
        snprintf(journal->end, sizeof journal->end, "%s", to);
}

static void expect_same_summaries(const char *run_id, const cJSON *summary, const cJSON *public_summary)
{
    static const char *const keys[] = {"schema_version", "run_id",    "status",  "category",    "campaign",
                                       "backend",        "host_type", "actions", "failed_case", "minimized_actions"};
    ck_assert_int_eq(cJSON_GetArraySize(public_summary), 10);
    for (size_t i = 0; i < 10; i++) {
        const cJSON *one = hf_json_get(summary, keys[i]), *other = hf_json_get(public_summary, keys[i]);
        ck_assert_msg(one && other && cJSON_Compare(one, other, 1), "%s: the summaries differ in %s", run_id, keys[i]);
    }
    ck_assert_str_eq(hf_json_get_string(summary, "run_id"), run_id);
}

static sqlite3_stmt *query(sqlite3 *index, const char *sql, const char *run_id)
{
    sqlite3_stmt *statement = NULL;
    ck_assert_msg(sqlite3_prepare_v2(index, sql, -1, &statement, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(index));
    sqlite3_bind_text(statement, 1, run_id, -1, SQLITE_STATIC);
    return statement;
}

static void expect_indexed(sqlite3 *index, const char *run_id, const char *status, const char *category)
{
    sqlite3_stmt *statement = query(index, "SELECT status, category FROM runs WHERE run_id = ?1", run_id);
    ck_assert_msg(sqlite3_step(statement) == SQLITE_ROW, "%s is not in the index", run_id);
    ck_assert_str_eq((const char *)sqlite3_column_text(statement, 0), status);
    ck_assert_str_eq((const char *)sqlite3_column_text(statement, 1), category);
    sqlite3_finalize(statement);
}

static bool is_quarantined(sqlite3 *index, const char *run_id)
{
    sqlite3_stmt *statement = query(index, "SELECT count(*) FROM quarantine WHERE run_id = ?1", run_id);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int count = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    ck_assert_int_le(count, 1);
    return count == 1;
}

static void expect_absent(const struct evidence *evidence, const char *run_id, const char *name)
{
    cleanup_free char *text = read_file(evidence, run_id, name);
    ck_assert_msg(text == NULL, "%s still has %s", run_id, name);
}

static void check_verdict(struct evidence *evidence, sqlite3 *index, const char *run_id, const struct journal *journal,
                          const cJSON *summary)
{
    const char *status = hf_json_get_string(summary, "status"), *category = hf_json_get_string(summary, "category");
    bool passed = strcmp(status, "passed") == 0;
    ck_assert_msg(strcmp(category, passed ? "coverage-converged" : "controller-restarted") == 0, "%s ended as %s, %s",
                  run_id, status, category);
    ck_assert_msg(strcmp(journal->end, status) == 0, "%s: the last transition leads to %s, the summary says %s", run_id,
                  journal->end, status);
    expect_indexed(index, run_id, status, category);
    bool quarantined = is_quarantined(index, run_id);
    ck_assert_msg(quarantined == (!passed && journal->session && !journal->session_closed),
                  "%s (%s, session %s) is %sin the register (I3)", run_id, status,
                  !journal->session         ? "never started"
                  : journal->session_closed ? "closed"
                                            : "interrupted",
                  quarantined ? "" : "not ");
    evidence->passed += passed;
    evidence->interrupted += !passed;
    evidence->quarantined += quarantined;
}

static void check_run(struct evidence *evidence, sqlite3 *index, const char *run_id)
{
    static struct actions actions;
    struct journal journal = {0};
    cleanup_json cJSON *summary = read_document(evidence, run_id, "summary.json");
    cleanup_json cJSON *public_summary = read_document(evidence, run_id, "public-summary.json");
    cleanup_free char *observations = read_file(evidence, run_id, "observations.jsonl");
    cleanup_free char *transitions = read_file(evidence, run_id, "transitions.jsonl");
    expect_same_summaries(run_id, summary, public_summary);
    read_actions(evidence, run_id, &actions);
    ck_assert_int_eq(hf_json_get_int_or(summary, "actions", -1), actions.count);
    each_line(observations, run_id, expect_accepted, &actions);
    each_line(transitions, run_id, take_transition, &journal);
    check_verdict(evidence, index, run_id, &journal, summary);
    expect_absent(evidence, run_id, "reserve.bin");
    evidence->ended++;
}

/* I1 as the executors saw it. */
static void check_request(void *context, const cJSON *line)
{
    static struct actions actions;
    static char run_id[128];
    const struct evidence *evidence = context;
    if (strcmp(hf_json_get_string(line, "operation"), "execute") != 0)
        return;
    snprintf(run_id, sizeof run_id, "%s", hf_json_get_string(line, "run_id"));
    read_actions(evidence, run_id, &actions);
    expect_accepted(&actions, line);
}

void evidence_check(struct evidence *evidence)
{
    sqlite3 *index = NULL;
    ck_assert_int_eq(sqlite3_open_v2(evidence->index, &index, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_busy_timeout(index, 5000);
    evidence->ended = evidence->passed = evidence->interrupted = evidence->quarantined = 0;
    cleanup_dir DIR *runs = opendir(evidence->runs);
    ck_assert_ptr_nonnull(runs);
    for (const struct dirent *entry = readdir(runs); entry; entry = readdir(runs))
        if (strncmp(entry->d_name, "run-", 4) == 0)
            check_run(evidence, index, entry->d_name);
    sqlite3_close(index);
    cleanup_free char *seen = hf_document_read(AT_FDCWD, evidence->seen_log, FILE_MAX, NULL, NULL);
    each_line(seen, "seen.log", check_request, evidence);
}
