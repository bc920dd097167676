/*
 * Reads a run directory back: metadata, and the journals line by line. transitions.jsonl is replayed through the same
 * tables that wrote it; a line that they do not know means damage, which is told in the summary and never papered over.
 */
#include "common/cleanup.h"
#include "common/durable.h"
#include "server/core/recovery_internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define TRANSITION_MAX_BYTES  65536
#define OBSERVATION_MAX_BYTES (256 * 1024)
#define METADATA_MAX_BYTES    (256 * 1024)

static const struct hf_json_limits line_limits = {OBSERVATION_MAX_BYTES, 16};

static void note_damage(struct hf_recovered *run, const char *file, const struct hf_error *err)
{
    if (run->damage.code)
        return;
    run->damage = *err;
    hf_error_prefix(&run->damage, "%s is damaged", file);
}

static int invalid_line(uint64_t number, struct hf_error *err)
{
    return hf_error_set(err, "journal-invalid", 0, NULL, "line %llu is not a transition that the tables know",
                        (unsigned long long)number);
}

static int replay_line(struct hf_recovered *run, const cJSON *line, bool session_line)
{
    const char *to_name = hf_json_get_string(line, "to");
    const char *event_name = hf_json_get_string(line, "event"), *guard_name = hf_json_get_string(line, "guard");
    struct hf_sm_instance *instance = session_line ? &run->session : &run->campaign;
    struct hf_executor_session_facts unused = {0};
    if (!to_name || !event_name || !guard_name)
        return -1;
    int event = hf_sm_event_by_name(instance->definition, event_name);
    int guard = hf_sm_guard_by_name(instance->definition, guard_name);
    if (event < 0 || guard < 0)
        return -1;
    /* The session's process is started by an effect of this transition. */
    run->session_started = run->session_started || session_line || strcmp(to_name, "initializing") == 0;
    struct hf_sm_result result =
        hf_sm_replay(instance, (uint8_t)event, (uint8_t)guard, session_line ? (void *)&unused : (void *)&run->facts);
    return result.accepted && strcmp(hf_sm_state_name(instance), to_name) == 0 ? 0 : -1;
}

static int on_transition(void *context, const char *text, size_t length, uint64_t number, struct hf_error *err)
{
    struct hf_recovered *run = context;
    cleanup_json cJSON *line = hf_json_parse(text, length, &line_limits, err);
    if (!line)
        return -1;
    const char *machine = hf_json_get_string(line, "machine");
    if (!machine)
        return invalid_line(number, err);
    bool session_line = strcmp(machine, hf_executor_session_machine.name) == 0;
    bool campaign_line = strcmp(machine, hf_campaign_machine.name) == 0;
    if (hf_json_get_bool_or(line, "rejected", false) || (!session_line && !campaign_line))
        return 0; /* the strategist has nothing to recover */
    if (replay_line(run, line, session_line) != 0)
        return invalid_line(number, err);
    int category = campaign_line ? hf_campaign_category_by_name(hf_json_get_string(line, "category")) : 0;
    if (category > 0)
        hf_campaign_conclude(&run->facts, (enum hf_campaign_category)category);
    return 0;
}

struct action_reader {
    struct hf_recovered *run;
    struct hf_sha256 hash;
};

static int on_action(void *context, const char *text, size_t length, uint64_t number, struct hf_error *err)
{
    struct action_reader *reader = context;
    (void)number;
    cleanup_json cJSON *line = hf_json_parse(text, length, &line_limits, err);
    if (!line)
        return -1;
    hf_sha256_update(&reader->hash, text, length);
    hf_sha256_update(&reader->hash, "\n", 1);
    reader->run->actions.actions++;
    reader->run->actions.size_bytes += length + 1;
    return 0;
}

static int on_observation(void *context, const char *text, size_t length, uint64_t number, struct hf_error *err)
{
    struct hf_recovered *run = context;
    cleanup_json cJSON *line = hf_json_parse(text, length, &line_limits, err);
    if (!line)
        return -1;
    const char *case_id = hf_json_get_string(line, "case_id");
    const char *category = hf_json_get_string(line, "category");
    if (!case_id || !category || strlen(case_id) >= HF_IDENTIFIER_SIZE || run->completed_count == HF_RECOVERY_MAX_CASES)
        return hf_error_set(err, "journal-invalid", 0, NULL, "line %llu is not an observation",
                            (unsigned long long)number);
    memcpy(run->completed[run->completed_count++], case_id, strlen(case_id) + 1);
    if (strcmp(category, "passed") != 0)
        memcpy(run->failed_case, case_id, strlen(case_id) + 1);
    if (strcmp(category, "policy-violation") == 0 || !hf_json_get_bool_or(line, "host_canary_intact", false) ||
        hf_json_get_int_or(line, "network_canary_connections", 1) != 0)
        run->facts.violation_evidence = true;
    return 0;
}

static void read_metadata(struct hf_recovered *run, const char *run_id)
{
    struct hf_error err = {0};
    size_t length;
    cleanup_free char *text = hf_document_read(run->dirfd, "metadata.json", METADATA_MAX_BYTES, &length, &err);
    if (text && hf_run_metadata_parse(text, length, &run->record, run->artifact_root, &err) == 0)
        return;
    note_damage(run, "metadata.json", &err);
    hf_campaign_request_defaults(&run->record.request);
    snprintf(run->record.run_id, sizeof run->record.run_id, "%s", run_id);
    snprintf(run->record.request.campaign, sizeof run->record.request.campaign, "unknown");
    snprintf(run->record.target, sizeof run->record.target, "unknown");
}

static void read_journal(struct hf_recovered *run, const char *name, size_t max_line,
                         int (*line)(void *context, const char *text, size_t length, uint64_t number,
                                     struct hf_error *err),
                         void *context)
{
    struct hf_error err = {0};
    if (hf_journal_recover(run->dirfd, name, max_line, line, context, NULL, &err) != 0)
        note_damage(run, name, &err);
}

/* The transition that starts a session is durable before the session is: without it the journal has lost lines, also
 * when those that are left fit together. */
static void check_session_told(struct hf_recovered *run)
{
    struct hf_error err = {0};
    bool had_session = run->actions.actions > 0 || run->completed_count > 0 ||
                       faccessat(run->dirfd, "target-initialize.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (!had_session || run->session_started)
        return;
    hf_error_set(&err, "journal-invalid", 0, NULL, "it does not tell of the session that other files are evidence of");
    note_damage(run, "transitions.jsonl", &err);
}

void hf_recover_read(struct hf_recovered *run, const char *run_id)
{
    hf_sm_init(&run->campaign, &hf_campaign_machine);
    hf_sm_init(&run->session, &hf_executor_session_machine);
    hf_campaign_facts_init(&run->facts);
    read_metadata(run, run_id);
    read_journal(run, "transitions.jsonl", TRANSITION_MAX_BYTES, on_transition, run);
    struct action_reader reader = {.run = run};
    hf_sha256_init(&reader.hash);
    read_journal(run, "actions.jsonl", TRANSITION_MAX_BYTES, on_action, &reader);
    uint8_t digest[32];
    hf_sha256_final(&reader.hash, digest);
    hf_hex(digest, sizeof digest, run->actions.sha256);
    read_journal(run, "observations.jsonl", OBSERVATION_MAX_BYTES, on_observation, run);
    check_session_told(run);
    if (run->facts.violation_evidence)
        hf_campaign_conclude(&run->facts, HF_CAMPAIGN_CATEGORY_POLICY_VIOLATION);
}
