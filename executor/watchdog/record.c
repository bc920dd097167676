/* Journal lines of the watchdog; see record.h. */
#include "executor/watchdog/record.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json.h"
#include "executor/watchdog/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS_PER_TURN = 2048 }; /* more than the listener's queue can hold */

/* Access lines of one turn, so that a flood costs one fdatasync a turn and not one a connection. */
struct access_lines {
    struct watchdog *watchdog;
    char *text;
    size_t length;
};

void watchdog_fail(struct watchdog *watchdog, const struct hf_error *err)
{
    if (watchdog->error[0] == '\0')
        snprintf(watchdog->error, sizeof watchdog->error, "%.500s", err->message);
}

static cJSON *new_record(void)
{
    char time[25];
    uint64_t wall_ms = hf_clock_wall_ms();
    hf_clock_format_utc(wall_ms, time);
    cJSON *record = hf_json_new_object();
    hf_json_add_int(record, "schema_version", 1);
    hf_json_add_string(record, "time", time);
    hf_json_add_int(record, "wall_ms", (int64_t)wall_ms);
    hf_json_add_int(record, "mono_ns", (int64_t)hf_clock_mono_ns());
    return record;
}

static void append(struct watchdog *watchdog, struct hf_journal *journal, const char *lines, size_t length)
{
    struct hf_error err = {0};
    if (hf_journal_append(journal, lines, length, &err) != 0)
        watchdog_fail(watchdog, &err);
}

void watchdog_record_host_access(struct watchdog *watchdog)
{
    if (watchdog->host.intact || watchdog->access_logged)
        return;
    watchdog->access_logged = true;
    size_t length;
    cleanup_json cJSON *record = new_record();
    hf_json_add_string(record, "canary", "host");
    hf_json_add_string(record, "evidence", watchdog->host.evidence);
    cleanup_free char *line = hf_json_canonical(record, &length);
    append(watchdog, &watchdog->access, line, length);
}

static void add_usage(cJSON *record, const struct usage *usage)
{
    hf_json_add_int(record, "children", usage->children);
    hf_json_add_int(record, "children_cpu_ms", (int64_t)usage->children_cpu_ms);
    if (usage->disk_known) {
        hf_json_add_int(record, "disk_used_bytes", (int64_t)usage->disk_used_bytes);
        hf_json_add_int(record, "disk_free_bytes", (int64_t)usage->disk_free_bytes);
    } else {
        hf_json_add_null(record, "disk_used_bytes");
        hf_json_add_null(record, "disk_free_bytes");
    }
    if (usage->load_known)
        hf_json_add_int(record, "load_1m_milli", usage->load_milli);
    else
        hf_json_add_null(record, "load_1m_milli");
}

void watchdog_sample(struct watchdog *watchdog)
{
    struct usage usage;
    size_t length;
    host_canaries_check(&watchdog->host);
    watchdog_record_host_access(watchdog);
    usage_measure(watchdog->executor_pid, watchdog->run_dirfd, &usage);
    cleanup_json cJSON *record = new_record();
    hf_json_add_int(record, "sample", (int64_t)watchdog->sample_count + 1);
    hf_json_add_bool(record, "host_canary_intact", watchdog->host.intact);
    hf_json_add_string(record, "host_canary_sha256",
                       watchdog->host.observed_sha256[0] ? watchdog->host.observed_sha256 : NULL);
    hf_json_add_int(record, "network_canary_connections", (int64_t)watchdog->network.connections);
    add_usage(record, &usage);
    cleanup_free char *line = hf_json_canonical(record, &length);
    append(watchdog, &watchdog->samples, line, length);
    if (watchdog->error[0] == '\0')
        watchdog->sample_count++;
}

static void note_connection(void *context, const char peer[NETWORK_CANARY_PEER_SIZE])
{
    struct access_lines *lines = context;
    if (lines->watchdog->network.connections > WATCHDOG_MAX_LOGGED_CONNECTIONS)
        return;
    size_t length;
    cleanup_json cJSON *record = new_record();
    hf_json_add_string(record, "canary", "network");
    hf_json_add_string(record, "peer", peer);
    hf_json_add_int(record, "connection", (int64_t)lines->watchdog->network.connections);
    cleanup_free char *line = hf_json_canonical(record, &length);
    char *grown = realloc(lines->text, lines->length + length + 1);
    if (!grown)
        abort(); /* as common/json.h: nobody could do better, and the executor sees the end */
    lines->text = grown;
    if (lines->length > 0)
        lines->text[lines->length++] = '\n';
    memcpy(lines->text + lines->length, line, length);
    lines->length += length;
}

static void write_lines(struct access_lines *lines)
{
    if (lines->length > 0)
        append(lines->watchdog, &lines->watchdog->access, lines->text, lines->length);
    free(lines->text);
}

void watchdog_take_connections(struct watchdog *watchdog)
{
    struct access_lines lines = {.watchdog = watchdog};
    network_canary_drain(&watchdog->network, CONNECTIONS_PER_TURN, note_connection, &lines);
    write_lines(&lines);
}

void watchdog_close_listener(struct watchdog *watchdog)
{
    struct access_lines lines = {.watchdog = watchdog};
    network_canary_close(&watchdog->network, note_connection, &lines);
    write_lines(&lines);
}
