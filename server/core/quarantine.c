/*
 * The quarantine register (I3): which targets must never be used again. An entry exists in memory from the moment that
 * it is asked for, then in the run directory (target-quarantine.json, from which the index can be rebuilt) and in the
 * index. It counts as durable when the index has it. See docs/quarantine.md.
 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "server/core/run.h"

#include <string.h>

void hf_quarantine_identity(const char *target, const char *artifact_root, const char *run_id,
                            char out[HF_QUARANTINE_IDENTITY_SIZE])
{
    const char *part = artifact_root && artifact_root[0] ? artifact_root : run_id;
    if (snprintf(out, HF_QUARANTINE_IDENTITY_SIZE, "%s:%s", target, part) < HF_QUARANTINE_IDENTITY_SIZE)
        return;
    char digest[HF_SHA256_HEX_SIZE]; /* paths at their limits: the tail is told apart by its digest */
    hf_sha256_hex(part, strlen(part), digest);
    snprintf(out, HF_QUARANTINE_IDENTITY_SIZE, "%.4200s:sha256:%s", target, digest);
}

bool hf_quarantine_refuses(struct hf_controller *controller, const char *identity, struct hf_error *err)
{
    struct hf_quarantine_record record = {0};
    bool found = false;
    for (const struct hf_quarantine_entry *entry = controller->quarantined; entry && !found; entry = entry->next) {
        found = strcmp(entry->record.identity, identity) == 0;
        record = entry->record;
    }
    if (!found) {
        int indexed = hf_index_find_quarantine(controller->index, identity, &record, err);
        if (indexed < 0)
            return true;
        found = indexed == 1;
    }
    if (found)
        hf_error_set(
            err, "target-quarantined", 0, NULL,
            "the target is in the quarantine register as %s since run %s (%s); the wrapper must give a fresh target "
            "for each session",
            record.target_id, record.run_id, record.reason);
    return found;
}

/* One registration under way. */
struct registration {
    struct hf_controller *controller;
    struct hf_quarantine_record record;
    hf_quarantine_done done;
    void *context;
};

static void forget_entry(struct hf_controller *controller, const char *identity)
{
    for (struct hf_quarantine_entry **link = &controller->quarantined; *link; link = &(*link)->next) {
        struct hf_quarantine_entry *entry = *link;
        if (strcmp(entry->record.identity, identity) != 0)
            continue;
        *link = entry->next;
        free(entry);
        return;
    }
}

/* The index holds it from now on; only an entry that could not be written stays in memory. */
static void on_indexed(void *context, const struct hf_error *err)
{
    struct registration *registration = context;
    if (!err)
        forget_entry(registration->controller, registration->record.identity);
    registration->done(registration->context, err);
    free(registration);
}

char *hf_quarantine_document(const struct hf_quarantine_record *record, size_t *length)
{
    char registered_at[25];
    hf_clock_format_utc(record->registered_wall_ms, registered_at);
    cleanup_json cJSON *document = hf_json_new_object();
    hf_json_add_int(document, "schema_version", 1);
    hf_json_add_string(document, "target_id", record->target_id);
    hf_json_add_string(document, "identity", record->identity);
    hf_json_add_string(document, "run_id", record->run_id);
    hf_json_add_string(document, "reason", record->reason);
    hf_json_add_string(document, "registered_at", registered_at);
    hf_json_add_int(document, "registered_wall_ms", (int64_t)record->registered_wall_ms);
    return hf_json_canonical(document, length);
}

static void on_document_stored(void *context, const struct hf_error *err)
{
    struct hf_run *run = context;
    if (err && !run->closing)
        hf_run_storage_failed(run, err);
}

void hf_quarantine_register(struct hf_run *run, const char *reason, hf_quarantine_done done, void *context)
{
    struct hf_controller *controller = run->controller;
    struct registration *registration = calloc(1, sizeof *registration);
    struct hf_quarantine_entry *entry = calloc(1, sizeof *entry);
    if (!registration || !entry)
        abort();
    struct hf_quarantine_record *record = &registration->record;
    *registration = (struct registration){.controller = controller, .done = done, .context = context};
    hf_quarantine_identity(run->record.target, hf_session_artifact_root(run->session), run->record.run_id,
                           record->identity);
    memcpy(record->run_id, run->record.run_id, sizeof record->run_id);
    snprintf(record->reason, sizeof record->reason, "%s", reason);
    record->registered_wall_ms = hf_clock_wall_ms();
    hf_quarantine_record_name(record);
    entry->record = *record;
    entry->next = controller->quarantined;
    controller->quarantined = entry;
    size_t length;
    cleanup_free char *document = hf_quarantine_document(record, &length);
    hf_durable_queue_document(run->queue, "target-quarantine.json", document, length, on_document_stored, run);
    hf_index_quarantine(controller->index, record, on_indexed, registration);
}
