/* CPU, disk and load; see usage.h. A process that ends while it is read is simply not counted. */
#include "executor/watchdog/usage.h"

#include "common/cleanup.h"
#include "common/process/proc_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MAX_PROCESSES = 1024, PROC_TEXT = 4096 };

static ssize_t read_proc(const char *path, char *out, size_t size)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, out, size - 1);
    out[length < 0 ? 0 : length] = '\0';
    return length;
}

/* Ticks of one process and of the children that it waited for; of the executor itself only the latter. */
static uint64_t process_ticks(pid_t pid, bool only_reaped)
{
    struct proc_stat stat;
    if (proc_stat_read(pid, 0, &stat) != 0)
        return 0;
    return stat.child_ticks + (only_reaped ? 0 : stat.cpu_ticks);
}

/* Appends the children of every thread of pid. */
static size_t add_children(pid_t pid, pid_t *list, size_t count)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    cleanup_dir DIR *tasks = opendir(path);
    const struct dirent *task;
    while (tasks && (task = readdir(tasks))) {
        char children[PROC_TEXT], file[128];
        if (task->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "/proc/%d/task/%.20s/children", (int)pid, task->d_name);
        if (read_proc(file, children, sizeof children) <= 0)
            continue;
        char *at = children;
        for (char *end; count < MAX_PROCESSES; at = end) {
            long child = strtol(at, &end, 10);
            if (end == at)
                break;
            list[count++] = (pid_t)child;
        }
    }
    return count;
}

static void measure_cpu(pid_t executor_pid, struct usage *usage)
{
    static pid_t list[MAX_PROCESSES];
    size_t count = add_children(executor_pid, list, 0);
    uint64_t ticks = process_ticks(executor_pid, true);
    for (size_t i = 0; i < count; i++) {
        if (list[i] == getpid())
            continue;
        ticks += process_ticks(list[i], false);
        count = add_children(list[i], list, count);
        usage->children++;
    }
    long per_second = sysconf(_SC_CLK_TCK);
    usage->children_cpu_ms = ticks * 1000 / (uint64_t)(per_second > 0 ? per_second : 100);
}

void usage_measure(pid_t executor_pid, int run_dirfd, struct usage *usage)
{
    struct statvfs disk;
    double load;
    memset(usage, 0, sizeof *usage);
    measure_cpu(executor_pid, usage);
    if (fstatvfs(run_dirfd, &disk) == 0) {
        usage->disk_known = true;
        usage->disk_used_bytes = (uint64_t)(disk.f_blocks - disk.f_bfree) * disk.f_frsize;
        usage->disk_free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    }
    if (getloadavg(&load, 1) == 1 && load >= 0 && load < 1e9) {
        usage->load_known = true;
        usage->load_milli = (int64_t)(load * 1000);
    }
}
