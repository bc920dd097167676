/* Contained probes with a lifeline (harness.h). */
#include "harness.h"

#include "common/clock.h"
#include "common/process/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum harness_mode harness_mode = HARNESS_PLAIN;

static const char *const environment[] = {"PATH=/usr/bin:/bin", "HARNESS=1", NULL};

uint64_t harness_now_ms(void)
{
    return hf_clock_mono_ms();
}

void harness_init(struct harness *harness, const char *behaviour, long number)
{
    int ends[2];

    *harness = (struct harness){.lifeline = -1};
    hf_child_init(&harness->child);
    ssize_t length = readlink("/proc/self/exe", harness->probe, 4096);
    ck_assert_int_gt(length, 0);
    harness->probe[length] = '\0';
    strcpy(strrchr(harness->probe, '/') + 1, "process_probe");
    snprintf(harness->number, sizeof harness->number, "%ld", number);
    harness->argv[0] = harness->probe;
    harness->argv[1] = behaviour;
    harness->argv[2] = harness->number;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    harness->lifeline = ends[0];
    harness->spec = (struct hf_child_spec){
        .argv = harness->argv,
        .envp = environment,
        .stdin_fd = HF_CHILD_NULL,
        .stdout_fd = HF_CHILD_PIPE,
        .stderr_fd = HF_CHILD_PIPE,
        .extra_fds = {ends[1], -1, -1, -1},
        .extra_fd_count = 1,
    };
    harness->options = (struct hf_child_run_options){
        .stdout_limit = 4096,
        .stderr_limit = 4096,
        .stdout_file_fd = -1,
        .stderr_file_fd = -1,
        .timeout_ms = 20000,
        .interrupt_fd = -1,
    };
}

static void drop_lifeline_of_ours(struct harness *harness)
{
    close(harness->spec.extra_fds[0]);
    harness->spec.extra_fds[0] = -1;
}

void harness_run(struct harness *harness)
{
    int result = hf_child_run(&harness->spec, &harness->options, &harness->output, &harness->err);

    drop_lifeline_of_ours(harness);
    ck_assert_msg(result == 0, "%s: %s", harness->err.code, harness->err.message);
}

void harness_start(struct harness *harness)
{
    int result = hf_child_start(&harness->spec, &harness->child, &harness->err);

    drop_lifeline_of_ours(harness);
    ck_assert_msg(result == 0, "%s: %s", harness->err.code, harness->err.message);
}

struct hf_child_report harness_report(struct harness *harness, int timeout_ms)
{
    struct hf_child_report report = {0};
    struct pollfd readable = {.fd = harness->child.control_fd, .events = POLLIN};

    ck_assert_msg(poll(&readable, 1, timeout_ms) == 1, "expected a report within %d ms", timeout_ms);
    ck_assert_int_eq(hf_child_read_report(&harness->child, &report, &harness->err), 1);
    hf_child_clear(&harness->child);
    return report;
}

bool harness_tree_is_gone(const struct harness *harness, int timeout_ms)
{
    struct pollfd hangup = {.fd = harness->lifeline, .events = POLLIN};

    return poll(&hangup, 1, timeout_ms) == 1 && (hangup.revents & POLLHUP);
}

void harness_wait_ready(const struct harness *harness)
{
    char text[16];
    struct pollfd readable = {.fd = harness->child.stdout_fd, .events = POLLIN};

    ck_assert_int_eq(poll(&readable, 1, 10000), 1);
    ck_assert_int_gt(read(harness->child.stdout_fd, text, sizeof text), 0);
    usleep(20000); /* from the announcement to the stop or pause that follows it */
}

void harness_clear(struct harness *harness)
{
    hf_child_output_clear(&harness->output);
    hf_child_clear(&harness->child);
    close(harness->lifeline);
}

int harness_count_fds(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");

    ck_assert_ptr_nonnull(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

int harness_count_cgroups_of(pid_t supervisor_pid)
{
    char directory[4096], prefix[64];
    int count = 0;

    if (cgroup_find_directory("/proc/self/cgroup", "/proc/self/mountinfo", directory, sizeof directory) < 0)
        return 0;
    snprintf(prefix, sizeof prefix, "holdfast-tree-%d-", (int)supervisor_pid);
    DIR *opened = opendir(directory);
    ck_assert_ptr_nonnull(opened);
    for (const struct dirent *entry = readdir(opened); entry; entry = readdir(opened))
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(opened);
    return count;
}
