/* Implementation of evidence.h. */
#include "tests/integration/restart/evidence.h"

#include "common/cleanup.h"
#include "common/durable.h"
#include "common/json.h"
#include "tests/integration/restart/must.h"

#include <dirent.h>
#include <errno.h>
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
    must(document != NULL, "%s: %s: %.*s", where, err.message, (int)length, text);
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
    must(text != NULL, "%s has no %s (I6)", run_id, name);
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
        must(end != NULL, "%s ends in the middle of a line: %s", where, text);
        cleanup_json cJSON *document = parse(text, (size_t)(end - text), where);
        line(context, document);
        text = end + 1;
    }
}

static void take_action(void *context, const cJSON *line)
{
    struct actions *actions = context;
    must(actions->count < MAX_ACTIONS, "more than %d actions", MAX_ACTIONS);
    actions->count++;
    must(hf_json_get_int_or(line, "sequence", 0) == actions->count, "line %d of actions.jsonl has another sequence",
         actions->count);
    snprintf(actions->cases[actions->count], sizeof actions->cases[0], "%s", hf_json_get_string(line, "case_id"));
}

static void expect_accepted(void *context, const cJSON *line)
{
    const struct actions *actions = context;
    int64_t sequence = hf_json_get_int_or(line, "sequence", 0);
    must(sequence >= 1 && sequence <= actions->count, "action %d has no line in actions.jsonl (I1)", (int)sequence);
    must_equal("case of an action", hf_json_get_string(line, "case_id"), actions->cases[sequence]);
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
    must(cJSON_GetArraySize(public_summary) == 10, "%s: the public summary has other than ten keys", run_id);
    for (size_t i = 0; i < 10; i++) {
        const cJSON *one = hf_json_get(summary, keys[i]), *other = hf_json_get(public_summary, keys[i]);
        must(one && other && cJSON_Compare(one, other, 1), "%s: the summaries differ in %s", run_id, keys[i]);
    }
    must_equal("run_id", hf_json_get_string(summary, "run_id"), run_id);
}

static sqlite3_stmt *query(sqlite3 *index, const char *sql, const char *run_id)
{
    sqlite3_stmt *statement = NULL;
    must(sqlite3_prepare_v2(index, sql, -1, &statement, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(index));
    sqlite3_bind_text(statement, 1, run_id, -1, SQLITE_STATIC);
    return statement;
}

static void expect_indexed(sqlite3 *index, const char *run_id, const char *status, const char *category)
{
    sqlite3_stmt *statement = query(index, "SELECT status, category FROM runs WHERE run_id = ?1", run_id);
    must(sqlite3_step(statement) == SQLITE_ROW, "%s is not in the index", run_id);
    must_equal(run_id, (const char *)sqlite3_column_text(statement, 0), status);
    must_equal(run_id, (const char *)sqlite3_column_text(statement, 1), category);
    sqlite3_finalize(statement);
}

static bool is_quarantined(sqlite3 *index, const char *run_id)
{
    sqlite3_stmt *statement = query(index, "SELECT count(*) FROM quarantine WHERE run_id = ?1", run_id);
    must(sqlite3_step(statement) == SQLITE_ROW, "%s", sqlite3_errmsg(index));
    int count = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    must(count <= 1, "%s is in the register %d times", run_id, count);
    return count == 1;
}

static void expect_absent(const struct evidence *evidence, const char *run_id, const char *name)
{
    cleanup_free char *text = read_file(evidence, run_id, name);
    must(text == NULL, "%s still has %s", run_id, name);
}

static void check_verdict(struct evidence *evidence, sqlite3 *index, const char *run_id, const struct journal *journal,
                          const cJSON *summary)
{
    const char *status = hf_json_get_string(summary, "status"), *category = hf_json_get_string(summary, "category");
    bool passed = strcmp(status, "passed") == 0;
    must(strcmp(category, passed ? "coverage-converged" : "controller-restarted") == 0, "%s ended as %s, %s", run_id,
         status, category);
    must(strcmp(journal->end, status) == 0, "%s: the last transition leads to %s, the summary says %s", run_id,
         journal->end, status);
    expect_indexed(index, run_id, status, category);
    bool quarantined = is_quarantined(index, run_id);
    must(quarantined == (!passed && journal->session && !journal->session_closed),
         "%s (%s, session %s) is %sin the register (I3)", run_id, status,
         !journal->session         ? "never started"
         : journal->session_closed ? "closed"
                                   : "interrupted",
         quarantined ? "" : "not ");
    evidence->passed += passed;
    evidence->interrupted += !passed;
    evidence->quarantined += quarantined;
}

static void check_actions(const struct evidence *evidence, const char *run_id)
{
    static struct actions actions;
    cleanup_free char *observations = read_file(evidence, run_id, "observations.jsonl");
    read_actions(evidence, run_id, &actions);
    each_line(observations, run_id, expect_accepted, &actions);
}

static void check_run(struct evidence *evidence, sqlite3 *index, const char *run_id)
{
    static struct actions actions;
    struct journal journal = {0};
    cleanup_json cJSON *summary = read_document(evidence, run_id, "summary.json");
    cleanup_json cJSON *public_summary = read_document(evidence, run_id, "public-summary.json");
    cleanup_free char *transitions = read_file(evidence, run_id, "transitions.jsonl");
    expect_same_summaries(run_id, summary, public_summary);
    read_actions(evidence, run_id, &actions);
    must(hf_json_get_int_or(summary, "actions", -1) == actions.count, "%s: the summary counts other actions", run_id);
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

static void each_run(const struct evidence *evidence, void (*one)(void *context, const char *run_id), void *context)
{
    cleanup_dir DIR *runs = opendir(evidence->runs);
    must(runs != NULL, "cannot read a directory: %s", strerror(errno));
    for (const struct dirent *entry = readdir(runs); entry; entry = readdir(runs))
        if (strncmp(entry->d_name, "run-", 4) == 0)
            one(context, entry->d_name);
}

static void check_one_actions(void *context, const char *run_id)
{
    check_actions(context, run_id);
}

void evidence_expect_actions(const struct evidence *evidence)
{
    struct evidence copy = *evidence;
    each_run(evidence, check_one_actions, &copy);
    cleanup_free char *seen = hf_document_read(AT_FDCWD, evidence->seen_log, FILE_MAX, NULL, NULL);
    each_line(seen, "seen.log", check_request, &copy);
}

void evidence_expect_summaries(const struct evidence *evidence, const char *run_id, const char *status,
                               const char *category)
{
    cleanup_json cJSON *summary = read_document(evidence, run_id, "summary.json");
    cleanup_json cJSON *public_summary = read_document(evidence, run_id, "public-summary.json");
    expect_same_summaries(run_id, summary, public_summary);
    must_equal(run_id, hf_json_get_string(summary, "status"), status);
    must_equal(run_id, hf_json_get_string(summary, "category"), category);
}

struct check {
    struct evidence *evidence;
    sqlite3 *index;
};

static void check_one(void *context, const char *run_id)
{
    const struct check *check = context;
    check_run(check->evidence, check->index, run_id);
}

void evidence_check(struct evidence *evidence)
{
    struct check check = {.evidence = evidence};
    must(sqlite3_open_v2(evidence->index, &check.index, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK, "cannot open %s",
         evidence->index);
    sqlite3_busy_timeout(check.index, 5000);
    evidence->ended = evidence->passed = evidence->interrupted = evidence->quarantined = 0;
    each_run(evidence, check_one, &check);
    sqlite3_close(check.index);
    evidence_expect_actions(evidence);
}
