/*
 * Many campaigns at once on one holdfastd: all are started over HTTP in one burst, run against the scripted executor
 * with some latency in each step so that all are live together, and end. Told are what became of them, how long the
 * controller's loop was busy, and what a session costs in memory: in the controller (its proportional set size at the
 * peak less before) and in its supervisor. Missed when a campaign is refused, lost or has no summaries that agree, when
 * not all were live together, or when the p99 of the loop's callbacks is not below 10 ms.
 */
#include "bench.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable.h"
#include "service.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SESSIONS = 1000, END_TIMEOUT_MS = 600000, POLL_INTERVAL_US = 250000, RUN_ID_SIZE = 128, MAX_COMPLAINTS = 5 };

static const int64_t p99_limit_us = 10000;

struct memory {
    int64_t rss_kib, pss_kib;
};

struct figures {
    int sessions;
    int accepted; /* answered 202 */
    int passed;   /* both summaries say so */
    int64_t peak_live;
    uint64_t accept_ms; /* from the first request to the last answer */
    uint64_t wall_ms;   /* to the end of the last campaign */
    struct memory before, peak, supervisors;
    int supervisor_count;
    int64_t peak_descriptors; /* of holdfastd */
    char run_ids[MAX_SESSIONS][RUN_ID_SIZE];
};

static struct memory read_memory(pid_t pid)
{
    struct memory memory = {0};
    char path[64], line[256];
    long value;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "Rss: %ld kB", &value) == 1)
            memory.rss_kib = value;
        else if (sscanf(line, "Pss: %ld kB", &value) == 1)
            memory.pss_kib = value;
    }
    if (file)
        fclose(file);
    return memory;
}

/* Sums over holdfastd's children, which are the supervisors. */
static void measure_supervisors(struct figures *figures, pid_t server)
{
    cleanup_dir DIR *processes = opendir("/proc");
    for (const struct dirent *entry = processes ? readdir(processes) : NULL; entry; entry = readdir(processes)) {
        char path[300], text[512];
        int parent = 0;
        pid_t pid = atoi(entry->d_name);
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *file = pid > 0 ? fopen(path, "r") : NULL;
        bool is_child = file && fgets(text, sizeof text, file) && strrchr(text, ')') &&
                        sscanf(strrchr(text, ')'), ") %*c %d", &parent) == 1 && parent == server;
        if (file)
            fclose(file);
        if (!is_child)
            continue;
        struct memory memory = read_memory(pid);
        figures->supervisors.rss_kib += memory.rss_kib;
        figures->supervisors.pss_kib += memory.pss_kib;
        figures->supervisor_count++;
    }
}

static int64_t count_descriptors(pid_t pid)
{
    char path[64];
    int64_t count = -2; /* "." and ".." */
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    cleanup_dir DIR *descriptors = opendir(path);
    while (descriptors && readdir(descriptors))
        count++;
    return count;
}

static int64_t live_campaigns(const struct bench_service *service)
{
    cleanup_json cJSON *health = bench_service_get(service, "/healthz");
    return hf_json_get_int_or(health, "live_campaigns", -1);
}

/* Every request is on its way before the first answer is read. */
static void start_all(struct figures *figures, const struct bench_service *service, uint64_t start_ms)
{
    static int fds[MAX_SESSIONS];
    static const char body[] = "{\"campaign\":\"guest-isolation\",\"executor\":\"fake\",\"seed\":7}";
    for (int i = 0; i < figures->sessions; i++)
        fds[i] = bench_service_send(service, "/v1/campaigns", body);
    for (int i = 0; i < figures->sessions; i++) {
        int status;
        cleanup_json cJSON *answer = bench_service_answer(fds[i], &status);
        const char *run_id = hf_json_get_string(answer, "run_id");
        if (status != 202 || !run_id) {
            const char *detail = hf_json_get_string(answer, "detail");
            fprintf(stderr, "refused with status %d: %s\n", status, detail ? detail : "no detail");
            continue;
        }
        snprintf(figures->run_ids[figures->accepted++], RUN_ID_SIZE, "%s", run_id);
    }
    figures->accept_ms = hf_clock_mono_ms() - start_ms;
}

/* The controller again and again while all are live, the supervisors once they have all been started. */
static void measure(struct figures *figures, const struct bench_service *service)
{
    struct memory now = read_memory(service->pid);
    int64_t descriptors = count_descriptors(service->pid);
    if (now.pss_kib > figures->peak.pss_kib)
        figures->peak = now;
    if (descriptors > figures->peak_descriptors)
        figures->peak_descriptors = descriptors;
    if (figures->supervisor_count >= figures->accepted)
        return;
    figures->supervisors = (struct memory){0};
    figures->supervisor_count = 0;
    measure_supervisors(figures, service->pid);
}

static void wait_for_all(struct figures *figures, const struct bench_service *service, uint64_t start_ms)
{
    int64_t live = live_campaigns(service);
    while (live > 0) {
        figures->peak_live = live > figures->peak_live ? live : figures->peak_live;
        if (live == figures->sessions)
            measure(figures, service);
        if (hf_clock_mono_ms() - start_ms > END_TIMEOUT_MS)
            bench_fail("campaigns are still running after ten minutes", NULL);
        usleep(POLL_INTERVAL_US);
        live = live_campaigns(service);
    }
    figures->wall_ms = hf_clock_mono_ms() - start_ms;
}

static cJSON *read_summary(const struct bench_service *service, const char *run_id, const char *name)
{
    const struct hf_json_limits limits = {.max_bytes = 1 << 20, .max_depth = 32};
    char path[4400];
    size_t length;
    snprintf(path, sizeof path, "%s/runs/%s/%s", service->directory, run_id, name);
    cleanup_free char *text = hf_document_read(AT_FDCWD, path, 1 << 20, &length, NULL);
    return text ? hf_json_parse(text, length, &limits, NULL) : NULL;
}

static bool says_passed(const cJSON *summary)
{
    const char *status = hf_json_get_string(summary, "status"), *category = hf_json_get_string(summary, "category");
    return status && category && strcmp(status, "passed") == 0 && strcmp(category, "coverage-converged") == 0;
}

static void count_passed(struct figures *figures, const struct bench_service *service)
{
    for (int i = 0; i < figures->accepted; i++) {
        char path[RUN_ID_SIZE + 64];
        const char *run_id = figures->run_ids[i];
        snprintf(path, sizeof path, "/v1/campaigns/%s/public-summary", run_id);
        cleanup_json cJSON *summary = read_summary(service, run_id, "summary.json");
        cleanup_json cJSON *public_summary = read_summary(service, run_id, "public-summary.json");
        cleanup_json cJSON *told = bench_service_get(service, path);
        if (says_passed(summary) && says_passed(public_summary) && cJSON_Compare(told, public_summary, 1))
            figures->passed++;
        else if (i - figures->passed < MAX_COMPLAINTS)
            fprintf(stderr, "%s: not passed, or summaries that do not agree\n", run_id);
    }
}

static void add_per_session(cJSON *report, const char *key, int64_t kib, int64_t sessions)
{
    bench_add_ratio(report, key, sessions > 0 ? (double)kib / (double)sessions : 0);
}

static int print_report(const struct figures *figures, const cJSON *loop, long latency_ms, int wait_status)
{
    int64_t p99_us = hf_json_get_int_or(loop, "p99_us", INT64_MAX);
    bool clean_end = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    bool met = figures->passed == figures->sessions && figures->peak_live == figures->sessions && clean_end &&
               p99_us < p99_limit_us;
    cleanup_json cJSON *report = hf_json_new_object();
    hf_json_add_string(report, "benchmark", "sessions");
    hf_json_add_int(report, "sessions", figures->sessions);
    hf_json_add_int(report, "step_latency_ms", latency_ms);
    hf_json_add_int(report, "accepted", figures->accepted);
    hf_json_add_int(report, "passed", figures->passed);
    hf_json_add_int(report, "peak_live", figures->peak_live);
    hf_json_add_int(report, "accept_ms", (int64_t)figures->accept_ms);
    hf_json_add_int(report, "wall_ms", (int64_t)figures->wall_ms);
    hf_json_add(report, "loop", cJSON_Duplicate(loop, 1));
    hf_json_add_int(report, "loop_p99_limit_us", p99_limit_us);
    hf_json_add_int(report, "controller_rss_before_kib", figures->before.rss_kib);
    hf_json_add_int(report, "controller_rss_peak_kib", figures->peak.rss_kib);
    hf_json_add_int(report, "controller_pss_before_kib", figures->before.pss_kib);
    hf_json_add_int(report, "controller_pss_peak_kib", figures->peak.pss_kib);
    hf_json_add_int(report, "controller_descriptors_peak", figures->peak_descriptors);
    add_per_session(report, "controller_pss_per_session_kib", figures->peak.pss_kib - figures->before.pss_kib,
                    figures->sessions);
    add_per_session(report, "supervisor_rss_per_session_kib", figures->supervisors.rss_kib, figures->supervisor_count);
    add_per_session(report, "supervisor_pss_per_session_kib", figures->supervisors.pss_kib, figures->supervisor_count);
    hf_json_add_bool(report, "met", met);
    cleanup_free char *text = hf_json_canonical(report, NULL);
    puts(text);
    return met ? EXIT_SUCCESS : EXIT_FAILURE;
}

static long argument(int argc, char **argv, int index, long fallback, long max)
{
    char *end = NULL;
    long value = argc > index ? strtol(argv[index], &end, 10) : fallback;
    if (argc <= 3 && (!end || *end == '\0') && value >= 1 && value <= max)
        return value;
    fputs("usage: bench_sessions [SESSIONS [LATENCY_MS]]\n"
          "  1..1000 campaigns at once, default 200; 1..60000 ms for each of their nine steps, default 1500\n",
          stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    static struct figures figures;
    struct bench_service service;
    char behaviours[64];
    figures.sessions = (int)argument(argc, argv, 1, 200, MAX_SESSIONS);
    long latency_ms = argument(argc, argv, 2, 1500, 60000);
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &limit);
    snprintf(behaviours, sizeof behaviours, "late::%ld", latency_ms);
    bench_service_start(&service, behaviours);
    live_campaigns(&service); /* the first request faults in what every service has, loaded or not */
    figures.before = read_memory(service.pid);
    uint64_t start_ms = hf_clock_mono_ms();
    start_all(&figures, &service, start_ms);
    wait_for_all(&figures, &service, start_ms);
    cleanup_json cJSON *health = bench_service_get(&service, "/healthz");
    count_passed(&figures, &service);
    int wait_status = bench_service_stop(&service);
    return print_report(&figures, hf_json_get(health, "loop"), latency_ms, wait_status);
}
