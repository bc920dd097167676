/*
 * One process or thread as /proc/<pid>/stat shows it (proc(5)). Used by process containment, the pid journal and the
 * watchdog's samples; libc only, because holdfast-supervise is part of it.
 */
#ifndef HF_COMMON_PROCESS_PROC_STAT_H
#define HF_COMMON_PROCESS_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    char state; /* R, S, D, T, t, Z, X, ... */
    pid_t parent_pid;
    long threads;         /* of the process, its leader included even when that has exited */
    uint64_t cpu_ticks;   /* user and system time of its own */
    uint64_t child_ticks; /* of the children that it waited for */
    uint64_t start_ticks; /* after boot */
};

/* Of the process, or of one thread of it when tid is not 0. Returns 0, or -1 with errno: ENOENT or ESRCH when there is
 * none, EPROTO when the file is not as proc(5) says. */
int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *out);

/* Parses the text of a stat file; the command name in it is hostile. Returns 0 or -1. */
int proc_stat_parse(const char *text, struct proc_stat *out);

/* The process runs no more, reaped or not. A leader that has exited is a zombie too while other threads of its process
 * run; those count. */
bool proc_stat_has_exited(const struct proc_stat *stat);

#endif
