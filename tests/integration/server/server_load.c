/*
 * server-load CAMPAIGNS: so many campaigns at once on one controller, each with its own scripted executor process.
 * Prints one JSON object: how many passed, how long the loop was busy per iteration (an upper bound of its longest
 * callback), and what a session costs in the controller's memory. Exits 1 when a campaign was lost or failed.
 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "server/controller.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct load {
    uv_loop_t loop;
    struct hf_controller *controller;
    int wanted, started, finished, passed, observed;
    long base_kib, peak_kib;
    size_t peak_live;
};

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        exit(2);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void on_progress(void *context, const struct hf_progress *progress)
{
    struct load *load = context;
    size_t live = hf_controller_live_count(load->controller);
    /* Reading /proc is not the controller's work, so it is done now and then only. */
    if (progress->kind == HF_PROGRESS_OBSERVATION && load->observed++ % 50 == 0 && resident_kib() > load->peak_kib) {
        load->peak_kib = resident_kib();
        load->peak_live = live;
    }
    if (progress->kind != HF_PROGRESS_FINISHED)
        return;
    load->finished++;
    load->passed += strcmp(progress->view->status, "passed") == 0;
    if (progress->error)
        fprintf(stderr, "%s: %s\n", progress->view->run_id, progress->error->message);
}

static void on_started(void *context, const char *run_id, const struct hf_error *err)
{
    struct load *load = context;
    load->started++;
    if (err) {
        fprintf(stderr, "%s was refused: %s\n", run_id, err->message);
        load->finished++;
    }
}

static void write_wrapper(const char *root, char path[300])
{
    char text[700];
    snprintf(path, 300, "%s/wrapper", root);
    snprintf(text, sizeof text, "#!/bin/sh\nexec %s/fake-executor 'late:execute:200' %s\n", getenv("HF_BIN_DIR"), root);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        exit(2);
    close(fd);
}

static void open_controller(struct load *load, const char *root)
{
    char source_root[4096], runs[300], state[300];
    struct hf_error err = {0};
    snprintf(runs, sizeof runs, "%s/runs", root);
    snprintf(state, sizeof state, "%s/state", root);
    if (!getcwd(source_root, sizeof source_root))
        exit(2);
    struct hf_controller_config config = {.source_root = source_root,
                                          .bin_dir = getenv("HF_BIN_DIR"),
                                          .guest_dir = getenv("HF_GUEST_DIR"),
                                          .runs_dir = runs,
                                          .state_dir = state};
    uv_loop_init(&load->loop);
    load->controller = hf_controller_new(&load->loop, &config, &err);
    if (!load->controller) {
        fprintf(stderr, "%s\n", err.message);
        exit(2);
    }
    hf_controller_listen(load->controller, on_progress, load);
}

static void start_all(struct load *load, const char *root)
{
    struct hf_campaign_request request;
    struct hf_error err = {0};
    hf_campaign_request_defaults(&request);
    snprintf(request.campaign, sizeof request.campaign, "guest-isolation");
    write_wrapper(root, request.executor_command);
    load->base_kib = resident_kib();
    for (int i = 0; i < load->wanted; i++) {
        request.seed = i;
        if (hf_controller_start(load->controller, &request, on_started, load, &err) != 0) {
            fprintf(stderr, "%s\n", err.message);
            exit(2);
        }
    }
}

static void report(const struct load *load, uint64_t elapsed_ms)
{
    struct hf_loop_load figures = hf_controller_loop_load(load->controller);
    long per_session = load->peak_live ? (load->peak_kib - load->base_kib) / (long)load->peak_live : 0;
    printf("{\"campaigns\":%d,\"passed\":%d,\"seconds\":%.1f,\"callbacks\":%" PRIu64 ",\"callback_p50_ms\":%.3f,"
           "\"callback_p99_ms\":%.3f,\"callback_max_ms\":%.3f,\"iterations\":%" PRIu64
           ",\"iteration_p50_ms\":%.3f,\"iteration_p99_ms\":%.3f,\"iteration_max_ms\":%.3f,\"kib_per_session\":%ld,"
           "\"live_at_peak\":%zu}\n",
           load->wanted, load->passed, (double)elapsed_ms / 1000, figures.callbacks,
           (double)figures.callback_p50_us / 1000, (double)figures.callback_p99_us / 1000,
           (double)figures.callback_max_us / 1000, figures.iterations, (double)figures.p50_us / 1000,
           (double)figures.p99_us / 1000, (double)figures.max_us / 1000, per_session, load->peak_live);
}

int main(int argc, char **argv)
{
    static struct load load;
    char root[] = "/tmp/hf-server-load-XXXXXX", command[64];
    load.wanted = argc > 1 ? atoi(argv[1]) : 200;
    if (!getenv("HF_BIN_DIR") || load.wanted < 1 || load.wanted > HF_CONTROLLER_MAX_CAMPAIGNS || !mkdtemp(root))
        return 2;
    open_controller(&load, root);
    uint64_t began_ms = hf_clock_mono_ms();
    start_all(&load, root);
    while (load.finished < load.wanted || hf_controller_live_count(load.controller) > 0)
        uv_run(&load.loop, UV_RUN_ONCE);
    report(&load, hf_clock_mono_ms() - began_ms);
    hf_controller_free(load.controller);
    uv_run(&load.loop, UV_RUN_DEFAULT);
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) != 0 || load.passed != load.wanted;
}
