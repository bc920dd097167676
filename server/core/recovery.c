/*
 * What happens at start, before any campaign: every run directory is looked at, and each ends with a summary (I6), its
 * targets in the quarantine register first (I3), its row in the index. A directory that another live process has locked
 * is left alone. Blocking; called once by hf_controller_new(). It fails closed: a run that cannot be recovered (a disk
 * that cannot be written) keeps the controller from accepting work.
 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable.h"
#include "common/json_shape.h"
#include "server/core/recovery_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#define SUMMARY_MAX_BYTES  (256 * 1024)
#define DOCUMENT_MAX_BYTES 65536

static bool has_file(int dirfd, const char *name)
{
    return faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static cJSON *read_document(int dirfd, const char *name)
{
    struct hf_json_limits limits = {SUMMARY_MAX_BYTES, HF_JSON_MAX_DEPTH};
    size_t length;
    cleanup_free char *text = hf_document_read(dirfd, name, SUMMARY_MAX_BYTES, &length, NULL);
    return text ? hf_json_parse(text, length, &limits, NULL) : NULL;
}

/* ---- the quarantine register ---- */

static int put_target(struct hf_controller *controller, struct hf_recovered *run, const char *reason,
                      struct hf_error *err)
{
    struct hf_quarantine_record record = {.registered_wall_ms = hf_clock_wall_ms()};
    hf_quarantine_identity(run->record.target, run->artifact_root, run->record.run_id, record.identity);
    memcpy(record.run_id, run->record.run_id, sizeof record.run_id);
    snprintf(record.reason, sizeof record.reason, "%s", reason);
    hf_quarantine_record_name(&record);
    if (hf_index_quarantine_now(controller->index, &record, err) != 0)
        return -1;
    if (has_file(run->dirfd, "target-quarantine.json"))
        return 0;
    size_t length;
    cleanup_free char *document = hf_quarantine_document(&record, &length);
    return hf_document_write(run->dirfd, "target-quarantine.json", document, length, err);
}

/* Brings what the run directory knows into a register that was lost, or could not be written at that time. */
static int restore_target(struct hf_controller *controller, int dirfd, struct hf_error *err)
{
    struct hf_quarantine_record record = {0};
    cleanup_json cJSON *document = read_document(dirfd, "target-quarantine.json");
    const char *identity = hf_json_get_string(document, "identity"), *run_id = hf_json_get_string(document, "run_id"),
               *reason = hf_json_get_string(document, "reason");
    if (!identity || !run_id || !reason)
        return hf_error_set(err, "quarantine-invalid", 0, NULL,
                            "target-quarantine.json is damaged; restore it or remove the run directory by hand");
    snprintf(record.identity, sizeof record.identity, "%s", identity);
    snprintf(record.run_id, sizeof record.run_id, "%s", run_id);
    snprintf(record.reason, sizeof record.reason, "%s", reason);
    record.registered_wall_ms = (uint64_t)hf_json_get_int_or(document, "registered_wall_ms", 0);
    hf_quarantine_record_name(&record);
    return hf_index_quarantine_now(controller->index, &record, err);
}

/* ---- finishing a run ---- */

static int journal_step(struct hf_recovered *run, const struct hf_sm_result *result, struct hf_error *err)
{
    if (run->damage.code)
        return 0; /* nothing is appended to a journal that could not be read */
    char at[25];
    hf_clock_format_utc(hf_clock_wall_ms(), at);
    const struct hf_sm_definition *definition = &hf_campaign_machine;
    cleanup_json cJSON *line = hf_json_new_object();
    hf_json_add_int(line, "schema_version", 1);
    hf_json_add_string(line, "at", at);
    hf_json_add_string(line, "machine", definition->name);
    hf_json_add_string(line, "instance", "campaign");
    hf_json_add_string(line, "from", definition->state_names[result->from]);
    hf_json_add_string(line, "event", definition->event_names[result->event]);
    hf_json_add_string(line, "guard", definition->guard_names[result->guard]);
    hf_json_add_string(line, "to", definition->state_names[result->to]);
    hf_json_add_string(line, "category", hf_campaign_category_name(run->facts.category));
    size_t length;
    cleanup_free char *text = hf_json_canonical(line, &length);
    struct hf_journal journal;
    hf_journal_init(&journal);
    int failed = hf_journal_open(&journal, run->dirfd, "transitions.jsonl", err) ||
                 hf_journal_append(&journal, text, length, err);
    hf_journal_close(&journal);
    return failed ? -1 : 0;
}

static int step(struct hf_recovered *run, enum hf_campaign_event event, struct hf_error *err)
{
    struct hf_sm_result result = hf_sm_step(&run->campaign, (uint8_t)event, &run->facts);
    return result.accepted ? journal_step(run, &result, err) : 0;
}

static int write_documents(struct hf_recovered *run, bool passed, const char *category, const char *sentence,
                           struct hf_error *err)
{
    const char *completed[HF_RECOVERY_MAX_CASES];
    for (size_t i = 0; i < run->completed_count; i++)
        completed[i] = run->completed[i];
    cleanup_json cJSON *finalization = read_document(run->dirfd, "target-finalize.json");
    cleanup_free char *finalization_text = finalization ? hf_json_canonical(finalization, NULL) : NULL;
    struct hf_run_outcome outcome = {
        .run_id = run->record.run_id,
        .campaign = run->record.request.campaign,
        .backend = run->record.request.backend,
        .host_type = run->record.request.host_type,
        .passed = passed,
        .category = category,
        .actions = run->actions.actions,
        .failed_case = run->failed_case[0] ? run->failed_case : NULL,
        .completed_cases = completed,
        .completed_count = run->completed_count,
        .finalization = finalization_text,
        .error = sentence,
    };
    struct hf_run_documents documents = {.dirfd = run->dirfd};
    documents.manifest = hf_run_manifest_build(&run->record, &run->actions, &documents.manifest_length);
    documents.summary = hf_run_summary_build(&outcome, &documents.summary_length);
    documents.public_summary = hf_run_public_summary_build(&outcome, &documents.public_summary_length);
    int failed = hf_run_documents_write(&documents, err);
    free(documents.manifest);
    free(documents.summary);
    free(documents.public_summary);
    return failed;
}

/* The verdict was sealed before the crash: summary.json is there, public-summary.json is completed from it. */
static int complete_public_summary(struct hf_recovered *run, const cJSON *summary, struct hf_error *err)
{
    static const char *const keys[] = {"schema_version", "run_id",    "status",  "category",    "campaign",
                                       "backend",        "host_type", "actions", "failed_case", "minimized_actions"};
    cleanup_json cJSON *document = hf_json_new_object();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const cJSON *value = hf_json_get(summary, keys[i]);
        int64_t number;
        if (hf_json_get_int64(value, &number))
            hf_json_add_int(document, keys[i], number);
        else
            hf_json_add_string(document, keys[i], hf_json_get_string(summary, keys[i]));
    }
    size_t length;
    cleanup_free char *text = hf_json_canonical(document, &length);
    if (hf_document_write(run->dirfd, "public-summary.json", text, length, err) != 0)
        return -1;
    hf_run_reserve_release(run->dirfd);
    return step(run, HF_CAMPAIGN_EVENT_SUMMARY_DURABLE, err);
}

static bool agree(const cJSON *summary, const cJSON *public_summary)
{
    static const char *const keys[] = {"run_id", "status", "category"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *one = hf_json_get_string(summary, keys[i]), *other = hf_json_get_string(public_summary, keys[i]);
        if (!one || !other || strcmp(one, other) != 0)
            return false;
    }
    return true;
}

/* A journal that could not be written any more ends anywhere; two summaries that agree are the verdict all the same. */
static bool is_sealed(const struct hf_recovered *run, const cJSON *summary)
{
    const char *run_id = hf_json_get_string(summary, "run_id");
    if (!hf_json_get_string(summary, "category") || !hf_json_get_string(summary, "status") || !run_id ||
        strcmp(run_id, run->record.run_id) != 0)
        return false;
    cleanup_json cJSON *public_summary = read_document(run->dirfd, "public-summary.json");
    return run->campaign.state == HF_CAMPAIGN_STATE_SUMMARIZING || agree(summary, public_summary);
}

/* Its session may have run until the end of the controller, as far as the journal tells. */
static int put_open_target(struct hf_controller *controller, struct hf_recovered *run, const char *reason,
                           struct hf_error *err)
{
    bool started = run->session_started || run->damage.code;
    if (!started || run->session.state == HF_EXECUTOR_SESSION_STATE_CLOSED)
        return 0;
    return put_target(controller, run, reason, err);
}

static int end_sealed(struct hf_controller *controller, struct hf_recovered *run, const cJSON *summary,
                      struct hf_error *err)
{
    bool journal_is_whole = run->campaign.state == HF_CAMPAIGN_STATE_SUMMARIZING;
    if (!journal_is_whole && put_open_target(controller, run, hf_json_get_string(summary, "category"), err) != 0)
        return -1;
    return complete_public_summary(run, summary, err);
}

/* Neither journal nor summary could be written, but the index tells how the run ended, as clients were told. */
static bool is_told(struct hf_controller *controller, const struct hf_recovered *run, struct hf_campaign_view *view)
{
    return hf_index_get_run(controller->index, run->record.run_id, view) && view->finished_wall_ms != 0 &&
           strcmp(view->status, "failed") == 0 && hf_campaign_category_by_name(view->category) > 0;
}

static int end_as_told(struct hf_controller *controller, struct hf_recovered *run, const struct hf_campaign_view *view,
                       struct hf_error *err)
{
    char sentence[256];
    snprintf(sentence, sizeof sentence,
             "the disk took neither the journal nor the summaries when the campaign ended as %s; they were completed "
             "at the next start",
             view->category);
    if (put_open_target(controller, run, view->category, err) != 0)
        return -1;
    return write_documents(run, false, view->category, sentence, err);
}

/* The controller ended in the middle of this run. */
static int end_interrupted(struct hf_controller *controller, struct hf_recovered *run, struct hf_error *err)
{
    char sentence[1400];
    snprintf(sentence, sizeof sentence, "the controller was restarted while the campaign was in state %s%s%s",
             hf_sm_state_name(&run->campaign), run->damage.code ? "; " : "",
             run->damage.code ? run->damage.message : "");
    if (step(run, HF_CAMPAIGN_EVENT_CONTROLLER_RESTARTED, err) != 0)
        return -1;
    if (put_open_target(controller, run, "controller-restarted", err) != 0)
        return -1;
    if (step(run, HF_CAMPAIGN_EVENT_QUARANTINE_DURABLE, err) != 0 ||
        write_documents(run, false, hf_campaign_category_name(run->facts.category), sentence, err) != 0)
        return -1;
    return step(run, HF_CAMPAIGN_EVENT_SUMMARY_DURABLE, err);
}

/* A terminal line outranks summaries that were written by a write that had been given up. */
static int end_terminal(struct hf_controller *controller, struct hf_recovered *run, struct hf_error *err)
{
    bool passed = run->campaign.state == HF_CAMPAIGN_STATE_PASSED;
    const char *category = hf_campaign_category_name(run->facts.category);
    bool ended_badly = run->session.state == HF_EXECUTOR_SESSION_STATE_QUARANTINED ||
                       run->session.state == HF_EXECUTOR_SESSION_STATE_LOST;
    if (ended_badly && put_target(controller, run, "target-lost", err) != 0)
        return -1;
    cleanup_json cJSON *summary = read_document(run->dirfd, "public-summary.json");
    cleanup_json cJSON *whole = read_document(run->dirfd, "summary.json");
    const char *told = hf_json_get_string(summary, "category"), *status = hf_json_get_string(summary, "status");
    if (whole && told && status && strcmp(told, category) == 0 && strcmp(status, passed ? "passed" : "failed") == 0)
        return 0;
    return write_documents(run, passed, category,
                           passed ? NULL : "the summaries could not be written when the campaign ended", err);
}

static int put_index_row(struct hf_controller *controller, const struct hf_recovered *run, struct hf_error *err)
{
    const struct hf_campaign_request *request = &run->record.request;
    cleanup_json cJSON *summary = read_document(run->dirfd, "public-summary.json");
    const char *status = hf_json_get_string(summary, "status"), *category = hf_json_get_string(summary, "category"),
               *failed_case = hf_json_get_string(summary, "failed_case");
    struct hf_campaign_view view = {
        .seed = request->seed,
        .actions = run->actions.actions,
        .budget_actions = (int)request->budget_actions,
        .budget_seconds = request->budget_seconds,
        .created_wall_ms = run->record.created_wall_ms,
        .finished_wall_ms = hf_clock_wall_ms(),
    };
    memcpy(view.run_id, run->record.run_id, sizeof view.run_id);
    memcpy(view.campaign, request->campaign, sizeof view.campaign);
    memcpy(view.profile, request->profile, sizeof view.profile);
    memcpy(view.backend, request->backend, sizeof view.backend);
    memcpy(view.host_type, request->host_type, sizeof view.host_type);
    snprintf(view.state, sizeof view.state, "%s", status ? status : "failed");
    snprintf(view.status, sizeof view.status, "%s", status ? status : "failed");
    snprintf(view.category, sizeof view.category, "%s", category ? category : "");
    snprintf(view.failed_case, sizeof view.failed_case, "%s", failed_case ? failed_case : "");
    return hf_index_put_run_now(controller->index, &view, err);
}

static int recover_run(struct hf_controller *controller, int dirfd, const char *run_id, struct hf_error *err)
{
    struct hf_recovered *run = calloc(1, sizeof *run);
    if (!run)
        abort();
    run->dirfd = dirfd;
    hf_recover_read(run, run_id);
    cleanup_json cJSON *summary = read_document(dirfd, "summary.json");
    struct hf_campaign_view told;
    int failed;
    if (hf_sm_is_terminal(&run->campaign))
        failed = end_terminal(controller, run, err);
    else if (is_sealed(run, summary))
        failed = end_sealed(controller, run, summary, err);
    else if (is_told(controller, run, &told))
        failed = end_as_told(controller, run, &told, err);
    else
        failed = end_interrupted(controller, run, err);
    failed = failed || put_index_row(controller, run, err);
    free(run);
    return failed ? hf_error_prefix(err, "recovering %s", run_id) : 0;
}

/* True when the index already tells the end of this run as its public summary does. */
static bool is_settled(struct hf_controller *controller, int dirfd, const char *run_id)
{
    struct hf_campaign_view view;
    if (!hf_index_get_run(controller->index, run_id, &view) || view.finished_wall_ms == 0 ||
        !has_file(dirfd, "summary.json"))
        return false;
    cleanup_json cJSON *summary = read_document(dirfd, "public-summary.json");
    const char *status = hf_json_get_string(summary, "status"), *category = hf_json_get_string(summary, "category");
    return status && category && strcmp(status, view.status) == 0 && strcmp(category, view.category) == 0;
}

/* A crash before metadata.json was durable: the campaign never counted as started, nothing was ever told about it. */
static int sweep_unstarted(int runs_fd, int dirfd, const char *run_id, struct hf_error *err)
{
    unlinkat(dirfd, "copilot", AT_REMOVEDIR);
    hf_run_reserve_release(dirfd);
    if (unlinkat(runs_fd, run_id, AT_REMOVEDIR) == 0)
        return 0;
    return hf_error_set(err, "storage-failed", errno, NULL,
                        "the run directory %s has no metadata.json but holds other files; look at it and move it away",
                        run_id);
}

/* Opens and locks the directory of a run whose controller is dead. 0 with *dirfd -1: there is none, the run is alive in
 * another process or its start was refused there meanwhile. A new run is made and locked under a shared lock on the
 * parent (run_prepare.c), so none is seen in between. */
static int claim_dead_run(int runs_fd, const char *run_id, int *dirfd, struct hf_error *err)
{
    if (flock(runs_fd, LOCK_EX) != 0)
        return hf_error_set(err, "storage-failed", errno, NULL, "cannot lock the directory of the runs");
    struct hf_error open_error = {0};
    *dirfd = hf_dir_open(runs_fd, run_id, false, &open_error);
    bool alive = *dirfd >= 0 && flock(*dirfd, LOCK_EX | LOCK_NB) != 0;
    flock(runs_fd, LOCK_UN);
    if (alive) {
        close(*dirfd);
        *dirfd = -1;
    }
    if (*dirfd >= 0 || alive || strcmp(open_error.code, "storage-missing") == 0)
        return 0;
    *err = open_error;
    return -1;
}

/* Temporaries of interrupted document writes: in the run directory, copilot/ and copilot/NNN-LABEL/. */
static int sweep_temporaries(int dirfd, int levels_below, struct hf_error *err)
{
    if (hf_document_sweep(dirfd, err) != 0)
        return -1;
    cleanup_close int stream_fd = levels_below > 0 ? openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    cleanup_dir DIR *stream = stream_fd < 0 ? NULL : fdopendir(stream_fd);
    if (!stream)
        return levels_below == 0 ? 0
                                 : hf_error_set(err, "storage-failed", errno, NULL, "cannot list the run directory");
    (void)STEAL_FD(stream_fd); /* the stream closes it */
    int failed = 0;
    for (const struct dirent *entry = readdir(stream); entry && !failed; entry = readdir(stream)) {
        if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
            continue;
        cleanup_close int subdirfd = hf_dir_open(dirfd, entry->d_name, false, err);
        failed = subdirfd < 0 || sweep_temporaries(subdirfd, levels_below - 1, err) != 0;
    }
    return failed ? -1 : 0;
}

static int recover_directory(struct hf_controller *controller, int runs_fd, const char *run_id, struct hf_error *err)
{
    cleanup_close int dirfd = -1;
    if (claim_dead_run(runs_fd, run_id, &dirfd, err) != 0)
        return -1;
    if (dirfd < 0)
        return 0;
    if (hf_dir_check_private(dirfd, run_id, err) != 0)
        return -1;
    if (sweep_temporaries(dirfd, 2, err) != 0)
        return -1;
    if (has_file(dirfd, "target-quarantine.json") && restore_target(controller, dirfd, err) != 0)
        return hf_error_prefix(err, "recovering %s", run_id);
    if (is_settled(controller, dirfd, run_id))
        return 0;
    if (!has_file(dirfd, "metadata.json") && !has_file(dirfd, "transitions.jsonl"))
        return sweep_unstarted(runs_fd, dirfd, run_id, err);
    return recover_run(controller, dirfd, run_id, err);
}

static int is_run_name(const struct dirent *entry)
{
    return strncmp(entry->d_name, "run-", 4) == 0 && hf_text_is(HF_TEXT_RUN_ID, entry->d_name);
}

int hf_recover_all(struct hf_controller *controller, struct hf_error *err)
{
    struct dirent **entries = NULL;
    cleanup_close int runs_fd = hf_dir_open(AT_FDCWD, controller->config.runs_dir, false, err);
    /* Names begin with the time, so this order is the order of the index. */
    int count = runs_fd < 0 ? -1 : scandirat(runs_fd, ".", &entries, is_run_name, alphasort);
    if (count < 0)
        return hf_error_set(err, "storage-failed", errno, NULL, "cannot list the run directories in %s: %s",
                            controller->config.runs_dir, strerror(errno));
    int failed = 0;
    for (int i = 0; i < count; i++) {
        failed = failed || recover_directory(controller, runs_fd, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    return failed ? -1 : 0;
}
