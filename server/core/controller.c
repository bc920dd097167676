/*
 * Implementation of server/controller.h: configuration, the table of live runs, views, the stop. What a run does is
 * run.c; what survives a crash is recovery.c.
 */
#include "server/controller.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable.h"
#include "common/json_shape.h"
#include "server/core/controller_internal.h"
#include "server/core/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define DOCUMENT_MAX_BYTES 65536

const struct hf_controller_times hf_controller_default_times = {
    .queue_ms = 60000,
    .preflight_ms = 60000,
    .initialize_overhead_ms = HF_TIME_INITIALIZE_OVERHEAD * 1000,
    .grace_ms = HF_TIME_PROTOCOL_GRACE * 1000,
    .spawn_ms = 10000,
    .shutdown_ms = HF_TIME_PROTOCOL_GRACE * 1000,
    .exit_ms = (HF_TIME_TERMINATION_WAIT + HF_TIME_READER_JOIN) * 1000,
    .term_ms = HF_TIME_TERMINATION_WAIT * 1000,
    .kill_ms = HF_CHILD_REAP_DEADLINE_MS + 1000 * HF_TIME_READER_JOIN,
    .quarantine_timeout_ms = HF_TIME_CLEANUP_GRACE * 1000,
    .storage_ms = 30000,
    .storage_retry_ms = 1000,
    .strategist_limit_ms = 120000,
    .strategist_stop_ms = HF_CHILD_TERM_GRACE_MS + HF_CHILD_REAP_DEADLINE_MS + 5000,
};

uint64_t hf_controller_now_ms(const struct hf_controller *controller)
{
    return hf_clock_mono_ms() + controller->clock_offset_ms;
}

static const char *own(const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        abort();
    return copy;
}

static const char *own_profiles_dir(const struct hf_controller_config *config)
{
    char *path;
    if (config->profiles_dir)
        return own(config->profiles_dir);
    if (asprintf(&path, "%s/catalog/profiles", config->source_root) < 0)
        abort();
    return path;
}

static void own_config(struct hf_controller *controller, const struct hf_controller_config *config)
{
    struct hf_executor_config *executors = calloc(config->executor_count + 1, sizeof *executors);
    if (!executors)
        abort();
    for (size_t i = 0; i < config->executor_count; i++) {
        executors[i] = config->executors[i];
        executors[i].command = (char *)own(config->executors[i].command);
    }
    controller->config = (struct hf_controller_config){
        .source_root = own(config->source_root),
        .profiles_dir = own_profiles_dir(config),
        .bin_dir = own(config->bin_dir),
        .guest_dir = own(config->guest_dir),
        .runs_dir = own(config->runs_dir),
        .state_dir = own(config->state_dir),
        .executors = executors,
        .executor_count = config->executor_count,
    };
}

static void free_config(struct hf_controller_config *config)
{
    for (size_t i = 0; i < config->executor_count; i++)
        free(config->executors[i].command);
    const char *const strings[] = {config->source_root, config->profiles_dir, config->bin_dir,
                                   config->guest_dir,   config->runs_dir,     config->state_dir};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        free((char *)strings[i]);
    free((struct hf_executor_config *)config->executors);
}

/* A live run has about a dozen descriptors; the soft limit of 1,024 would end at eighty of them. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* What somebody else could plant there, a register without its entries or a run that never was, would be believed. */
static int open_directory(const char *path, struct hf_error *err)
{
    cleanup_close int fd = hf_dir_open(AT_FDCWD, path, true, err);
    return fd < 0 ? -1 : hf_dir_check_private(fd, path, err);
}

struct hf_controller *hf_controller_new(uv_loop_t *loop, const struct hf_controller_config *config,
                                        struct hf_error *err)
{
    signal(SIGPIPE, SIG_IGN); /* a wrapper that closed its stdin is an event, not the end of the controller */
    setenv("UV_THREADPOOL_SIZE", "16", 0); /* fsync waits, it does not compute; read at the pool's first use */
    raise_descriptor_limit();
    struct hf_controller *controller = calloc(1, sizeof *controller);
    if (!controller)
        abort();
    controller->loop = loop;
    controller->times = hf_controller_default_times;
    controller->meter = hf_loop_meter_new(loop);
    own_config(controller, config);
    hf_identity_cache_init(&controller->identities);
    if (open_directory(config->runs_dir, err) != 0 || open_directory(config->state_dir, err) != 0 ||
        !(controller->index = hf_index_open(loop, config->state_dir, err)) || hf_recover_all(controller, err) != 0) {
        hf_controller_free(controller);
        return NULL;
    }
    return controller;
}

void hf_controller_listen(struct hf_controller *controller, hf_progress_listener listener, void *context)
{
    controller->listener = listener;
    controller->listener_context = context;
}

int hf_controller_start(struct hf_controller *controller, const struct hf_campaign_request *request,
                        hf_started accepted, void *context, struct hf_error *err)
{
    if (controller->stopping)
        return hf_error_set(err, "controller-stopping", 0, NULL,
                            "the controller is stopping and starts no campaign any more");
    if (hf_campaign_request_check(request, err) != 0)
        return -1;
    if (controller->run_count == HF_CONTROLLER_MAX_CAMPAIGNS)
        return hf_error_set(err, "controller-busy", 0, NULL,
                            "%d campaigns are running, which is the limit; try again later",
                            HF_CONTROLLER_MAX_CAMPAIGNS);
    controller->runs[controller->run_count++] = hf_run_new(controller, request, accepted, context);
    return 0;
}

static struct hf_run *find_live(const struct hf_controller *controller, const char *run_id)
{
    for (size_t i = 0; i < controller->run_count; i++)
        if (strcmp(controller->runs[i]->view.run_id, run_id) == 0)
            return controller->runs[i];
    return NULL;
}

int hf_controller_cancel(struct hf_controller *controller, const char *run_id, struct hf_error *err)
{
    struct hf_campaign_view view;
    struct hf_run *run = find_live(controller, run_id);
    if (run && strcmp(run->view.status, "running") == 0) {
        hf_run_cancel(run);
        return 0;
    }
    bool known = hf_index_get_run(controller->index, run_id, &view);
    if (!run && known && view.finished_wall_ms == 0)
        return hf_error_set(err, "campaign-elsewhere", 0, NULL,
                            "another controller process runs this campaign; cancel it there");
    if (run || known)
        return hf_error_set(err, "campaign-finished", 0, NULL, "the campaign has already finished");
    return hf_error_set(err, "campaign-unknown", 0, NULL, "there is no campaign of this id");
}

bool hf_controller_view(struct hf_controller *controller, const char *run_id, struct hf_campaign_view *view)
{
    const struct hf_run *run = find_live(controller, run_id);
    if (!run)
        return hf_index_get_run(controller->index, run_id, view);
    *view = run->view;
    return true;
}

size_t hf_controller_list(struct hf_controller *controller, const char *before_run_id, size_t limit,
                          struct hf_campaign_view *views)
{
    size_t count = hf_index_list_runs(controller->index, before_run_id, limit, views);
    for (size_t i = 0; i < count; i++) {
        const struct hf_run *run = views[i].finished_wall_ms ? NULL : find_live(controller, views[i].run_id);
        if (run)
            views[i] = run->view;
    }
    return count;
}

char *hf_controller_document(struct hf_controller *controller, const char *run_id, const char *name, size_t *length)
{
    if (!hf_text_is(HF_TEXT_RUN_ID, run_id) || strchr(name, '/') || name[0] == '.')
        return NULL;
    cleanup_close int runs_fd = hf_dir_open(AT_FDCWD, controller->config.runs_dir, false, NULL);
    cleanup_close int run_fd = runs_fd < 0 ? -1 : hf_dir_open(runs_fd, run_id, false, NULL);
    return run_fd < 0 ? NULL : hf_document_read(run_fd, name, DOCUMENT_MAX_BYTES, length, NULL);
}

size_t hf_controller_quarantine(struct hf_controller *controller, size_t limit, struct hf_quarantine_record *records)
{
    return hf_index_list_quarantine(controller->index, limit, records);
}

size_t hf_controller_live_count(const struct hf_controller *controller)
{
    return controller->run_count;
}

struct hf_loop_load hf_controller_loop_load(const struct hf_controller *controller)
{
    struct hf_histogram_figures iterations = hf_histogram_read(&controller->meter->iterations);
    struct hf_histogram_figures callbacks = hf_histogram_read(&controller->meter->callbacks);
    return (struct hf_loop_load){
        .iterations = iterations.count,
        .p50_us = iterations.p50_ns / 1000,
        .p99_us = iterations.p99_ns / 1000,
        .max_us = iterations.max_ns / 1000,
        .callbacks = callbacks.count,
        .callback_p50_us = callbacks.p50_ns / 1000,
        .callback_p99_us = callbacks.p99_ns / 1000,
        .callback_max_us = callbacks.max_ns / 1000,
    };
}

static void check_stopped(struct hf_controller *controller)
{
    void (*stopped)(void *context) = controller->stopped;
    if (!controller->stopping || controller->run_count > 0 || !stopped)
        return;
    controller->stopped = NULL;
    stopped(controller->stopped_context);
}

void hf_controller_remove(struct hf_controller *controller, struct hf_run *run)
{
    for (size_t i = 0; i < controller->run_count; i++)
        if (controller->runs[i] == run)
            controller->runs[i--] = controller->runs[--controller->run_count];
    check_stopped(controller);
}

void hf_controller_stop(struct hf_controller *controller, void (*stopped)(void *context), void *context)
{
    controller->stopping = true;
    controller->stopped = stopped;
    controller->stopped_context = context;
    for (size_t i = 0; i < controller->run_count; i++)
        hf_run_cancel(controller->runs[i]);
    check_stopped(controller);
}

void hf_controller_free(struct hf_controller *controller)
{
    hf_loop_meter_free(controller->meter);
    hf_index_close(controller->index);
    hf_identity_cache_clear(&controller->identities);
    while (controller->quarantined) {
        struct hf_quarantine_entry *entry = controller->quarantined;
        controller->quarantined = entry->next;
        free(entry);
    }
    free_config(&controller->config);
    free(controller);
}
