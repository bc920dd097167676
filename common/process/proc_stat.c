/* Reading /proc/<pid>/stat; see proc_stat.h. */
#include "common/process/proc_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Numbers of the fields in proc(5); the third is the state. */
enum {
    FIELD_STATE = 3,
    FIELD_PPID,
    FIELD_UTIME = 14,
    FIELD_STIME,
    FIELD_CUTIME,
    FIELD_CSTIME,
    FIELD_NUM_THREADS = 20,
    FIELD_STARTTIME = 22,
    FIELD_COUNT,
};

/* "pid (comm) state ppid ..." where comm may hold anything: only the last ')' ends it. */
int proc_stat_parse(const char *text, struct proc_stat *out)
{
    uint64_t fields[FIELD_COUNT] = {0};
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == '\0')
        return -1;
    const char state = at[2];
    at += 3;
    for (int field = FIELD_STATE + 1; field < FIELD_COUNT; field++) {
        char *end;
        fields[field] = strtoull(at, &end, 10); /* signed ones wrap, and none of those is used */
        if (end == at)
            return -1;
        at = end;
    }
    *out = (struct proc_stat){
        .state = state,
        .parent_pid = (pid_t)fields[FIELD_PPID],
        .threads = (long)fields[FIELD_NUM_THREADS],
        .cpu_ticks = fields[FIELD_UTIME] + fields[FIELD_STIME],
        .child_ticks = fields[FIELD_CUTIME] + fields[FIELD_CSTIME],
        .start_ticks = fields[FIELD_STARTTIME],
    };
    return 0;
}

int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *out)
{
    char path[64], text[4096];
    if (tid == 0)
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    else
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t length = read(fd, text, sizeof text - 1);
    int saved_errno = errno;
    close(fd);
    errno = saved_errno;
    if (length < 0)
        return -1;
    text[length] = '\0';
    if (proc_stat_parse(text, out) == 0)
        return 0;
    errno = EPROTO;
    return -1;
}

bool proc_stat_has_exited(const struct proc_stat *stat)
{
    return stat->state == 'X' || (stat->state == 'Z' && stat->threads <= 1);
}
