/*
 * `holdfast run`: the controller in one process for one campaign. Owns the loop, the signals and the terminal; what a
 * campaign does is the controller's business (server/controller.h).
 */
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/run_options.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct run {
    uv_loop_t loop;
    uv_signal_t signals[3];
    struct hf_controller *controller;
    struct hf_progress_printer printer;
    struct hf_campaign_view last; /* as of the last progress */
    struct hf_error error;        /* why the start or the campaign failed */
    char run_id[HF_RUN_ID_SIZE];
    bool finished;
    bool interrupted;
    bool stopping;
};

/* Categories that say something about the target; every other failure is infrastructure. */
static const char *const findings[] = {"policy-violation", "test-failure", "timeout", "availability-failure", NULL};

static int exit_code(const struct run *run)
{
    if (run->interrupted)
        return HF_EXIT_INTERRUPTED;
    if (!run->finished)
        return HF_EXIT_INFRASTRUCTURE;
    if (strcmp(run->last.status, "passed") == 0)
        return HF_EXIT_PASSED;
    for (const char *const *finding = findings; *finding; finding++)
        if (strcmp(*finding, run->last.category) == 0)
            return HF_EXIT_FOUND;
    return HF_EXIT_INFRASTRUCTURE;
}

static void on_stopped(void *context)
{
    struct run *run = context;
    uv_stop(&run->loop);
}

/* Cancels what is live (the executor is finalized, both summaries are written) and then ends the loop. */
static void stop(struct run *run)
{
    if (!run->stopping)
        hf_controller_stop(run->controller, on_stopped, run);
    run->stopping = true;
}

static void on_progress(void *context, const struct hf_progress *progress)
{
    struct run *run = context;
    run->last = *progress->view;
    hf_progress_print(&run->printer, progress);
    if (progress->kind != HF_PROGRESS_FINISHED)
        return;
    if (progress->error)
        run->error = *progress->error;
    run->finished = true;
    stop(run);
}

static void on_started(void *context, const char *run_id, const struct hf_error *err)
{
    struct run *run = context;
    snprintf(run->run_id, sizeof run->run_id, "%s", run_id);
    if (!err)
        return;
    run->error = *err;
    stop(run);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    struct run *run = handle->data;
    run->interrupted = true;
    /* Not stop(): a second signal has to cancel again, which terminates an executor that will not be finalized. */
    hf_controller_stop(run->controller, on_stopped, run);
}

static void catch_signals(struct run *run)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    int count = hf_program_hears_hangup() ? 3 : 2;
    for (int i = 0; i < count; i++) {
        uv_signal_init(&run->loop, &run->signals[i]);
        run->signals[i].data = run;
        uv_signal_start(&run->signals[i], on_signal, numbers[i]);
    }
}

static int make_directory(const char *path, struct hf_error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return hf_error_set(err, "storage-failed", errno, "output-dir", "cannot create the directory %.512s: %s", path,
                        strerror(errno));
}

static struct hf_controller *open_controller(struct run *run, const struct hf_run_options *options,
                                             struct hf_error *err)
{
    char state_dir[HF_PATH_SIZE + 16];
    snprintf(state_dir, sizeof state_dir, "%s/.state", options->output_dir);
    if (make_directory(options->output_dir, err) < 0 || make_directory(state_dir, err) < 0)
        return NULL;
    const struct hf_controller_config config = {
        .source_root = options->source_root,
        .profiles_dir = options->profiles_dir,
        .bin_dir = options->bin_dir,
        .guest_dir = options->guest_dir,
        .runs_dir = options->output_dir,
        .state_dir = state_dir,
    };
    return hf_controller_new(&run->loop, &config, err);
}

/* One JSON object: the public summary and where the run directory is. */
static void print_json(struct run *run, const struct hf_run_options *options)
{
    cleanup_json cJSON *object = hf_json_new_object();
    hf_json_add_string(object, "run_id", run->run_id[0] ? run->run_id : NULL);
    hf_json_add_string(object, "status", run->finished ? run->last.status : "failed");
    hf_json_add_string(object, "category", run->finished ? run->last.category : NULL);
    hf_json_add_string(object, "failed_case", run->last.failed_case[0] ? run->last.failed_case : NULL);
    hf_json_add_int(object, "actions", run->last.actions);
    hf_json_add_int(object, "seed", options->request.seed);
    hf_json_add_string(object, "error", run->error.message[0] ? run->error.message : NULL);
    if (run->run_id[0]) {
        char directory[HF_PATH_SIZE + HF_RUN_ID_SIZE + 1];
        snprintf(directory, sizeof directory, "%s/%s", options->output_dir, run->run_id);
        hf_json_add_string(object, "run_directory", directory);
    } else {
        hf_json_add_null(object, "run_directory");
    }
    cleanup_free char *text = hf_json_canonical(object, NULL);
    puts(text);
}

static void report(struct run *run, const struct hf_run_options *options)
{
    if (options->json)
        print_json(run, options);
    else if (!run->finished && run->error.message[0])
        fprintf(stderr, "holdfast run: %s\n", run->error.message);
    else if (run->finished)
        printf("evidence: %s/%s\n", options->output_dir, run->run_id);
}

static int run_campaign(struct run *run, const struct hf_run_options *options)
{
    if (uv_loop_init(&run->loop) != 0)
        return HF_EXIT_INFRASTRUCTURE;
    run->controller = open_controller(run, options, &run->error);
    if (!run->controller)
        return hf_command_fail("run", &run->error);
    hf_progress_printer_init(&run->printer, stdout, options->json);
    hf_controller_listen(run->controller, on_progress, run);
    catch_signals(run);
    if (hf_controller_start(run->controller, &options->request, on_started, run, &run->error) < 0) {
        hf_controller_free(run->controller);
        return hf_command_fail("run", &run->error);
    }
    uv_run(&run->loop, UV_RUN_DEFAULT);
    report(run, options);
    hf_controller_free(run->controller);
    return exit_code(run);
}

int hf_command_run(int argc, char **argv)
{
    static struct hf_run_options options; /* large: several paths */
    static struct run run;
    struct hf_error err = {0};
    if (hf_run_options_parse(argc, argv, &options, &err) < 0)
        return hf_command_fail("run", &err);
    if (options.help) {
        hf_run_options_print_help();
        return HF_EXIT_PASSED;
    }
    hf_log_init("holdfast", HF_LOG_WARNING);
    return run_campaign(&run, &options);
}
