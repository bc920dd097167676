/* Reading /proc/<pid>/stat; see proc_stat.h. */
#include "executor/proc_stat.h"

#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of the fields in proc(5); the third is the state. */
enum { FIELD_STATE = 3, FIELD_UTIME = 14, FIELD_STIME, FIELD_CUTIME, FIELD_CSTIME, FIELD_STARTTIME = 22, FIELD_COUNT };

/* The name in parentheses may hold anything, so fields are counted from the last ')'. */
static enum proc_stat_result parse(const char *text, struct proc_stat *stat)
{
    uint64_t fields[FIELD_COUNT] = {0};
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == '\0')
        return PROC_STAT_UNREADABLE;
    stat->state = at[2];
    at += 3;
    for (int field = FIELD_STATE + 1; field < FIELD_COUNT; field++) {
        char *end;
        fields[field] = strtoull(at, &end, 10); /* signed ones wrap, and none of those is used */
        if (end == at)
            return PROC_STAT_UNREADABLE;
        at = end;
    }
    stat->cpu_ticks = fields[FIELD_UTIME] + fields[FIELD_STIME];
    stat->child_ticks = fields[FIELD_CUTIME] + fields[FIELD_CSTIME];
    stat->start_ticks = fields[FIELD_STARTTIME];
    return PROC_STAT_READ;
}

enum proc_stat_result proc_stat_read(pid_t pid, struct proc_stat *stat)
{
    char path[48], text[4096];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length < 0)
        return errno == ENOENT || errno == ESRCH ? PROC_STAT_GONE : PROC_STAT_UNREADABLE;
    text[length] = '\0';
    return parse(text, stat);
}
