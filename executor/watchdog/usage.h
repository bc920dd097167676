/* What the watchdog measures besides the canaries: CPU time of the executor's children, disk, load. Reads /proc only.
 */
#ifndef HF_EXECUTOR_WATCHDOG_USAGE_H
#define HF_EXECUTOR_WATCHDOG_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct usage {
    uint64_t children_cpu_ms; /* user and system time of all descendants of the executor, living and reaped, except the
                                 watchdog itself */
    unsigned children;        /* living descendants that were counted */
    bool disk_known;
    uint64_t disk_used_bytes; /* of the file system that holds the run directory */
    uint64_t disk_free_bytes; /* free to this user */
    bool load_known;
    int64_t load_milli; /* one-minute load average times 1000 */
};

void usage_measure(pid_t executor_pid, int run_dirfd, struct usage *usage);

#endif
