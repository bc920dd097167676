/* One process as /proc/<pid>/stat shows it (proc(5)). Used by the pid journal and by the watchdog's samples. */
#ifndef HF_EXECUTOR_PROC_STAT_H
#define HF_EXECUTOR_PROC_STAT_H

#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    char state;           /* R, S, D, T, Z, X, ... */
    uint64_t cpu_ticks;   /* user and system time of its own */
    uint64_t child_ticks; /* of the children that it waited for */
    uint64_t start_ticks; /* after boot */
};

enum proc_stat_result { PROC_STAT_READ, PROC_STAT_GONE, PROC_STAT_UNREADABLE };

enum proc_stat_result proc_stat_read(pid_t pid, struct proc_stat *stat);

#endif
