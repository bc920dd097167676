/* Implementation of left_overs.h. */
#include "tests/integration/restart/left_overs.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/integration/restart/must.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_SUPERVISORS = 65536, PROCESS_TIMEOUT_MS = 10000, POLL_INTERVAL_US = 20000 };

static pid_t supervisors[MAX_SUPERVISORS];
static size_t supervisor_count;

static ssize_t read_process_file(const char *pid, const char *name, char *out, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, out, size - 1);
    out[length > 0 ? length : 0] = '\0';
    return length;
}

void left_overs_note_supervisors(pid_t controller)
{
    char stat[1024];
    cleanup_dir DIR *processes = opendir("/proc");
    must(processes != NULL, "cannot read a directory: %s", strerror(errno));
    for (const struct dirent *entry = readdir(processes); entry; entry = readdir(processes)) {
        int parent;
        if (atoi(entry->d_name) <= 0 || read_process_file(entry->d_name, "stat", stat, sizeof stat) <= 0)
            continue;
        const char *end = strrchr(stat, ')');
        if (end && sscanf(end, ") %*c %d", &parent) == 1 && parent == controller && supervisor_count < MAX_SUPERVISORS)
            supervisors[supervisor_count++] = atoi(entry->d_name);
    }
}

/* A living process with the directory on its command line, or 0. */
static pid_t find_process(const char *directory, pid_t spared)
{
    char text[4096];
    cleanup_dir DIR *processes = opendir("/proc");
    must(processes != NULL, "cannot read a directory: %s", strerror(errno));
    for (const struct dirent *entry = readdir(processes); entry; entry = readdir(processes)) {
        pid_t pid = atoi(entry->d_name);
        if (pid <= 0 || pid == spared)
            continue;
        ssize_t length = read_process_file(entry->d_name, "cmdline", text, sizeof text);
        if (length > 0 && memmem(text, (size_t)length, directory, strlen(directory)))
            return pid;
    }
    return 0;
}

void left_overs_expect_no_process(const char *directory, pid_t spared)
{
    char pid[16], command[4096];
    uint64_t deadline_ms = hf_clock_mono_ms() + PROCESS_TIMEOUT_MS;
    pid_t found;
    while ((found = find_process(directory, spared)) != 0 && hf_clock_mono_ms() < deadline_ms)
        usleep(POLL_INTERVAL_US);
    snprintf(pid, sizeof pid, "%d", (int)found);
    read_process_file(pid, "cmdline", command, sizeof command);
    must(found == 0, "process %s (%s) outlived its controller", pid, command);
}

static int look_at_file(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    static const char temporary[] = ".tmp~";
    size_t length = strlen(path);
    (void)kind;
    (void)walk;
    must(!S_ISSOCK(status->st_mode) && !S_ISFIFO(status->st_mode), "%s is left", path);
    must(length < sizeof temporary || strcmp(path + length - (sizeof temporary - 1), temporary) != 0, "%s is left",
         path);
    return 0;
}

static bool is_noted(pid_t pid)
{
    for (size_t i = 0; i < supervisor_count; i++)
        if (supervisors[i] == pid)
            return true;
    return false;
}

static int look_at_cgroup(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    int pid;
    (void)status;
    if (kind == FTW_D && sscanf(path + walk->base, "holdfast-tree-%d-", &pid) == 1 && is_noted(pid))
        must(kill(pid, 0) == 0, "the cgroup %s is left without its supervisor", path);
    return 0;
}

void left_overs_expect_no_file(const char *directory)
{
    must(nftw(directory, look_at_file, 32, FTW_PHYS) == 0, "cannot walk %s", directory);
    nftw("/sys/fs/cgroup", look_at_cgroup, 32, FTW_PHYS); /* others make and remove cgroups meanwhile */
}
