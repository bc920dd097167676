/*
 * `holdfastd`: the controller behind HTTP. Owns the process: options, listening socket, signals, the loop and the order
 * of start and stop. Ready once it has recovered what a crash left and prints where it listens.
 */
#include "common/cleanup.h"
#include "common/json_shape.h"
#include "common/log.h"
#include "common/options/options.h"
#include "common/options/paths.h"
#include "common/program.h"
#include "server/controller.h"
#include "server/http/campaigns.h"
#include "server/http/http_server.h"
#include "server/http/listen.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_EXECUTORS = 64, EXIT_USAGE = 2, EXIT_INFRASTRUCTURE = 3 };

struct executor_table {
    struct hf_executor_config entries[MAX_EXECUTORS];
    size_t count;
};

struct options {
    const char *listen, *runs_dir, *state_dir, *source_root, *guest_dir, *profiles_dir;
    struct executor_table executors;
};

struct service {
    uv_loop_t loop;
    uv_signal_t signals[3];
    struct hf_controller *controller;
    struct hf_http_server *http;
    bool stopping;
};

/* NAME=PATH: what clients call an executor, and the wrapper behind it. */
static int add_executor(void *target, const char *value, struct hf_error *err)
{
    struct executor_table *table = target;
    const char *equals = strchr(value, '=');
    size_t length = equals ? (size_t)(equals - value) : 0;
    if (!equals || length == 0 || length >= HF_IDENTIFIER_SIZE || equals[1] != '/')
        return hf_error_set(err, "usage", 0, "executor", "--executor expects NAME=/absolute/path/of/wrapper");
    char name[HF_IDENTIFIER_SIZE] = "";
    memcpy(name, value, length);
    if (!hf_text_is(HF_TEXT_IDENTIFIER, name))
        return hf_error_set(
            err, "usage", 0, "executor",
            "--executor expects a NAME of the form [a-z][a-z0-9-]{0,63}: clients could not name another");
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->entries[i].name, name) == 0)
            return hf_error_set(err, "usage", 0, "executor", "--executor %s was given twice; give it once", name);
    if (table->count == MAX_EXECUTORS)
        return hf_error_set(err, "usage", 0, "executor", "--executor may be given at most %d times", MAX_EXECUTORS);
    struct hf_executor_config *entry = &table->entries[table->count++];
    memcpy(entry->name, name, sizeof name);
    entry->command = strdup(equals + 1);
    return entry->command ? 0 : hf_error_set(err, "usage", ENOMEM, "executor", "out of memory");
}

enum { OPTION_COUNT = 7 };

static void fill_table(struct options *options, struct hf_option table[OPTION_COUNT])
{
    const struct hf_option rows[] = {
        {.name = "listen",
         .kind = HF_OPTION_STRING,
         .argument = "ADDRESS",
         .target = &options->listen,
         .help = "127.0.0.1:PORT, [::1]:PORT or unix:/path; default 127.0.0.1:8421"},
        {.name = "runs-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .target = &options->runs_dir,
         .help = "where run directories are created; default /var/lib/holdfast/runs"},
        {.name = "state-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .target = &options->state_dir,
         .help = "index and quarantine register; default /var/lib/holdfast/state"},
        {.name = "executor",
         .kind = HF_OPTION_CALL,
         .argument = "NAME=PATH",
         .target = &options->executors,
         .call = add_executor,
         .help = "an executor that clients may name, and its wrapper; repeatable"},
        {.name = "source-root",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .target = &options->source_root,
         .help = "tree with catalog/; default: above this program"},
        {.name = "guest-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .target = &options->guest_dir,
         .help = "kernel, initramfs and provenance; default: guest/ beside bin/"},
        {.name = "profiles-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .target = &options->profiles_dir,
         .help = "profiles; default <source-root>/catalog/profiles"},
    };
    _Static_assert(sizeof rows / sizeof rows[0] == OPTION_COUNT, "OPTION_COUNT counts the rows");
    memcpy(table, rows, sizeof rows);
}

static void print_help(const struct hf_option table[OPTION_COUNT])
{
    printf("usage: holdfastd [OPTIONS]\n\nThe holdfast controller behind HTTP, on this host only.\n\n");
    hf_options_print(table, OPTION_COUNT, stdout);
    printf("\nExit status: 0 stopped by SIGTERM, SIGINT or SIGHUP, 2 usage, 3 it could not start.\n");
}

/* Makes `path` absolute and creates it, 0700, with the directories above it, 0755. */
static int make_directory(const char *path, char out[HF_PATH_SIZE], struct hf_error *err)
{
    if (hf_path_absolute(path, out, err) < 0)
        return -1;
    for (char *slash = strchr(out + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int made = mkdir(out, 0755);
        *slash = '/';
        if (made < 0 && errno != EEXIST)
            break; /* the mkdir below tells */
    }
    if (mkdir(out, 0700) == 0 || errno == EEXIST)
        return 0;
    return hf_error_set(err, "storage-failed", errno, "", "cannot create the directory %.512s: %s", out,
                        strerror(errno));
}

static int open_controller(struct service *service, const struct options *options, struct hf_error *err)
{
    static struct hf_paths paths;
    static char runs_dir[HF_PATH_SIZE], state_dir[HF_PATH_SIZE], guest_dir[HF_PATH_SIZE], profiles_dir[HF_PATH_SIZE];
    if (hf_paths_find(&paths, options->source_root, err) < 0 || make_directory(options->runs_dir, runs_dir, err) < 0 ||
        make_directory(options->state_dir, state_dir, err) < 0)
        return -1;
    if (hf_path_absolute(options->guest_dir ? options->guest_dir : paths.guest_dir, guest_dir, err) < 0 ||
        (options->profiles_dir && hf_path_absolute(options->profiles_dir, profiles_dir, err) < 0))
        return -1;
    const struct hf_controller_config config = {
        .source_root = paths.source_root,
        .profiles_dir = options->profiles_dir ? profiles_dir : NULL,
        .bin_dir = paths.bin_dir,
        .guest_dir = guest_dir,
        .runs_dir = runs_dir,
        .state_dir = state_dir,
        .executors = options->executors.entries,
        .executor_count = options->executors.count,
    };
    service->controller = hf_controller_new(&service->loop, &config, err);
    return service->controller ? 0 : -1;
}

static void log_progress(void *context, const struct hf_progress *progress)
{
    (void)context;
    if (progress->kind == HF_PROGRESS_FINISHED)
        hf_log(HF_LOG_NOTICE, "campaign_finished", "run", progress->view->run_id, "status", progress->view->status,
               "category", progress->view->category, NULL);
    else if (progress->kind == HF_PROGRESS_OBSERVATION)
        hf_log(HF_LOG_INFO, "case_observed", "run", progress->view->run_id, "case", progress->case_id, "category",
               progress->category, NULL);
}

static void on_stopped(void *context)
{
    struct service *service = context;
    uv_stop(&service->loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    struct service *service = handle->data;
    if (service->stopping)
        return;
    service->stopping = true;
    hf_log(HF_LOG_NOTICE, "stopping", NULL);
    hf_controller_stop(service->controller, on_stopped, service);
}

static int start_service(struct service *service, const struct options *options, struct hf_error *err)
{
    unsigned port;
    if (open_controller(service, options, err) < 0)
        return -1;
    int listen_fd = hf_listen(options->listen, &port, err);
    if (listen_fd < 0)
        return -1;
    service->http = hf_http_server_new(&service->loop, listen_fd, port, hf_api_routes, hf_api_route_count,
                                       service->controller, err);
    if (!service->http) {
        close(listen_fd);
        return -1;
    }
    hf_controller_listen(service->controller, log_progress, service);
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    int count = hf_program_hears_hangup() ? 3 : 2;
    for (int i = 0; i < count; i++) {
        uv_signal_init(&service->loop, &service->signals[i]);
        service->signals[i].data = service;
        uv_signal_start(&service->signals[i], on_signal, numbers[i]);
    }
    if (port)
        printf("holdfastd listens on port %u\n", port);
    else
        printf("holdfastd listens on %s\n", options->listen);
    fflush(stdout);
    return 0;
}

static void stop_service(struct service *service, const struct options *options)
{
    static const char unix_prefix[] = "unix:";
    if (service->http)
        hf_http_server_free(service->http);
    if (service->http && strncmp(options->listen, unix_prefix, sizeof unix_prefix - 1) == 0)
        unlink(options->listen + sizeof unix_prefix - 1);
    if (service->controller)
        hf_controller_free(service->controller);
}

int main(int argc, char **argv)
{
    static struct options options = {
        .listen = "127.0.0.1:8421", .runs_dir = "/var/lib/holdfast/runs", .state_dir = "/var/lib/holdfast/state"};
    static struct service service;
    struct hf_option table[OPTION_COUNT];
    struct hf_option_result result;
    struct hf_error err = {0};
    hf_program_begin();
    fill_table(&options, table);
    if (hf_options_parse(table, OPTION_COUNT, argc, argv, &result, &err) < 0 ||
        (!result.help && result.first_operand < argc &&
         hf_error_set(&err, "usage", 0, "", "holdfastd takes options only") < 0)) {
        fprintf(stderr, "holdfastd: %s\ntry 'holdfastd --help'\n", err.message);
        return EXIT_USAGE;
    }
    if (result.help) {
        print_help(table);
        return 0;
    }
    hf_log_init("holdfastd", HF_LOG_INFO);
    uv_loop_init(&service.loop);
    int status = start_service(&service, &options, &err);
    if (status < 0)
        fprintf(stderr, "holdfastd: %s\n", err.message);
    else
        uv_run(&service.loop, UV_RUN_DEFAULT);
    stop_service(&service, &options);
    for (size_t i = 0; i < options.executors.count; i++)
        free(options.executors.entries[i].command);
    if (status == 0)
        return 0;
    return err.code && strcmp(err.code, "listen-address") == 0 ? EXIT_USAGE : EXIT_INFRASTRUCTURE;
}
