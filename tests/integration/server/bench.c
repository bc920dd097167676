/* Implementation of bench.h. */
#include "tests/integration/server/bench.h"

#include "common/cleanup.h"
#include "common/durable.h"
#include "server/core/run.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

static void write_script(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

void bench_set_behaviours(struct bench *bench, const char *behaviours)
{
    char text[2048];
    snprintf(text, sizeof text, "#!/bin/sh\nexec %s/fake-executor '%s' '%s'\n", getenv("HF_BIN_DIR"), behaviours,
             bench->root);
    write_script(bench->wrapper, text);
}

void bench_set_strategist(struct bench *bench, const char *body)
{
    char text[4096];
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", body);
    write_script(bench->strategist, text);
    bench->request.strategist = HF_STRATEGIST_COMMAND;
    snprintf(bench->request.strategist_command, sizeof bench->request.strategist_command, "%s", bench->strategist);
}

void bench_open(struct bench *bench, const char *behaviours)
{
    memset(bench, 0, sizeof *bench);
    snprintf(bench->root, sizeof bench->root, "/tmp/hf-server-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(bench->root));
    snprintf(bench->runs, sizeof bench->runs, "%s/runs", bench->root);
    snprintf(bench->state, sizeof bench->state, "%s/state", bench->root);
    snprintf(bench->wrapper, sizeof bench->wrapper, "%s/wrapper", bench->root);
    snprintf(bench->strategist, sizeof bench->strategist, "%s/strategist", bench->root);
    bench_set_behaviours(bench, behaviours);
    struct hf_campaign_request *request = &bench->request;
    hf_campaign_request_defaults(request);
    snprintf(request->campaign, sizeof request->campaign, "guest-isolation");
    snprintf(request->executor_command, sizeof request->executor_command, "%s", bench->wrapper);
    request->phase_timeout_seconds = 1;
    request->action_timeout_seconds = 1;
    request->seed = 1234;
}

static void on_progress(void *context, const struct hf_progress *progress)
{
    struct bench *bench = context;
    bench->states += progress->kind == HF_PROGRESS_STATE;
    bench->actions += progress->kind == HF_PROGRESS_ACTION;
    bench->observations += progress->kind == HF_PROGRESS_OBSERVATION;
    bench->view = *progress->view;
    if (bench->on_progress)
        bench->on_progress(bench, progress);
    if (progress->kind != HF_PROGRESS_FINISHED)
        return;
    bench->finished = true;
    bench->error = progress->error ? *progress->error : (struct hf_error){0};
}

bool bench_start_controller(struct bench *bench)
{
    char source_root[4096];
    ck_assert_ptr_nonnull(getcwd(source_root, sizeof source_root));
    struct hf_controller_config config = {
        .source_root = source_root,
        .bin_dir = getenv("HF_BIN_DIR"),
        .guest_dir = getenv("HF_GUEST_DIR"),
        .runs_dir = bench->runs,
        .state_dir = bench->state,
    };
    uv_loop_init(&bench->loop);
    bench->controller = hf_controller_new(&bench->loop, &config, &bench->error);
    if (!bench->controller) {
        uv_run(&bench->loop, UV_RUN_DEFAULT); /* handles close on the loop */
        uv_loop_close(&bench->loop);
        return false;
    }
    struct hf_controller_times *times = &bench->controller->times;
    times->initialize_overhead_ms = 1500;
    times->grace_ms = 500;
    times->shutdown_ms = times->exit_ms = 1500;
    times->quarantine_timeout_ms = 1000;
    times->term_ms = 700;
    times->strategist_limit_ms = 2000;
    times->storage_retry_ms = 100;
    hf_controller_listen(bench->controller, on_progress, bench);
    return true;
}

void bench_stop_controller(struct bench *bench)
{
    hf_controller_stop(bench->controller, NULL, NULL);
    while (hf_controller_live_count(bench->controller) > 0)
        uv_run(&bench->loop, UV_RUN_ONCE);
    hf_controller_free(bench->controller);
    bench->controller = NULL;
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&bench->loop), 0); /* every handle was closed */
}

static void on_started(void *context, const char *run_id, const struct hf_error *err)
{
    struct bench *bench = context;
    snprintf(bench->run_id, sizeof bench->run_id, "%s", run_id);
    bench->refused = err != NULL;
    if (err)
        bench->error = *err;
}

void bench_run(struct bench *bench)
{
    bench->finished = bench->refused = false;
    bench->error = (struct hf_error){0};
    bench->states = bench->actions = bench->observations = 0;
    if (hf_controller_start(bench->controller, &bench->request, on_started, bench, &bench->error) != 0) {
        bench->refused = true;
        return;
    }
    while (!bench->finished && !bench->refused)
        uv_run(&bench->loop, UV_RUN_ONCE);
    while (hf_controller_live_count(bench->controller) > 0)
        uv_run(&bench->loop, UV_RUN_ONCE);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

void bench_close(struct bench *bench)
{
    if (bench->controller)
        bench_stop_controller(bench);
    nftw(bench->root, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

static char *read_file(const char *path)
{
    size_t length;
    return hf_document_read(AT_FDCWD, path, 8 << 20, &length, NULL);
}

char *bench_read(struct bench *bench, const char *name)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s/%s", bench->runs, bench->run_id, name);
    char *text = read_file(path);
    ck_assert_msg(text != NULL, "%s is not there", path);
    return text;
}

cJSON *bench_json(struct bench *bench, const char *name)
{
    struct hf_json_limits limits = {8 << 20, 64};
    cleanup_free char *text = bench_read(bench, name);
    cJSON *json = hf_json_parse(text, strlen(text), &limits, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

bool bench_has(struct bench *bench, const char *name)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s/%s", bench->runs, bench->run_id, name);
    return access(path, F_OK) == 0;
}

int bench_count(const char *text, const char *needle)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, needle)); at += strlen(needle))
        found++;
    return found;
}

int bench_lines(struct bench *bench, const char *name)
{
    if (!bench_has(bench, name))
        return 0;
    cleanup_free char *text = bench_read(bench, name);
    return bench_count(text, "\n");
}

char *bench_seen_log(struct bench *bench)
{
    char path[300];
    snprintf(path, sizeof path, "%s/seen.log", bench->root);
    char *text = read_file(path);
    return text ? text : strdup("");
}

int bench_seen(struct bench *bench, const char *operation)
{
    char needle[64];
    cleanup_free char *text = bench_seen_log(bench);
    snprintf(needle, sizeof needle, "\"operation\":\"%s\"", operation);
    return bench_count(text, needle);
}

static void expect_same(const cJSON *summary, const cJSON *public_summary)
{
    static const char *const keys[] = {"schema_version", "run_id",    "status",  "category",    "campaign",
                                       "backend",        "host_type", "actions", "failed_case", "minimized_actions"};
    for (size_t i = 0; i < 10; i++) {
        const cJSON *one = hf_json_get(summary, keys[i]), *other = hf_json_get(public_summary, keys[i]);
        ck_assert_msg(one && other && cJSON_Compare(one, other, 1), "the summaries differ in %s", keys[i]);
    }
    ck_assert_int_eq(cJSON_GetArraySize(public_summary), 10);
    ck_assert_int_eq(cJSON_GetArraySize(summary), 14);
}

void bench_expect(struct bench *bench, const char *status, const char *category)
{
    struct hf_campaign_view view;
    ck_assert_msg(!bench->refused, "refused: %s", bench->error.message);
    cleanup_json cJSON *summary = bench_json(bench, "summary.json");
    cleanup_json cJSON *public_summary = bench_json(bench, "public-summary.json");
    expect_same(summary, public_summary);
    const char *error = hf_json_get_string(summary, "error");
    ck_assert_msg(strcmp(hf_json_get_string(summary, "category"), category) == 0, "category %s, expected %s (%s)",
                  hf_json_get_string(summary, "category"), category, error ? error : "no error");
    ck_assert_str_eq(hf_json_get_string(summary, "status"), status);
    ck_assert(hf_controller_view(bench->controller, bench->run_id, &view));
    ck_assert_str_eq(view.status, status);
    ck_assert_str_eq(view.category, category);
    ck_assert_int_eq(view.actions, bench_lines(bench, "actions.jsonl"));
    ck_assert_int_ge(bench_lines(bench, "actions.jsonl"), bench_lines(bench, "observations.jsonl")); /* I1 */
    ck_assert(!bench_has(bench, HF_RUN_RESERVE_NAME));
    if (strcmp(status, "failed") == 0)
        ck_assert_msg(error && error[0], "a failed run says why");
}
