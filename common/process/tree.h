/*
 * The living descendants of one process, read from /proc: found, stopped, signalled and counted. Used by
 * holdfast-supervise; the caller's side only reads stat files with it. Libc only, no allocation.
 *
 * A process is recorded only when it was proved to be a descendant: its parent is the root or a recorded process whose
 * start time still matches. It is signalled through a pidfd, and only when its own start time, read after the pidfd was
 * opened, still matches: a recycled pid never receives anything. What cannot be read counts as alive.
 * Sources: proc(5) (task/<tid>/children is only complete while the thread is stopped), pidfd_open(2).
 */
#ifndef HF_COMMON_PROCESS_TREE_H
#define HF_COMMON_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TREE_MAX_PROCESSES 32768 /* beyond it, a process is killed when it is seen instead of being stopped first */
#define TREE_HASH_SLOTS    65536
#define TREE_LISTING_BYTES 524288 /* the children of one thread, as text */

struct tree_process {
    pid_t pid;
    uint32_t round; /* last scan that saw it */
    uint64_t start_ticks;
    bool stopped; /* every thread was seen stopped */
    bool gone;    /* reaped, or a zombie: it has exited */
};

struct tree_link { /* one process of the host; only used where the kernel lacks `children` files */
    pid_t pid;
    pid_t parent_pid;
};

struct tree {
    pid_t root_pid;    /* the supervisor; never signalled */
    pid_t main_pid;    /* signalled like the others, but not counted */
    bool use_children; /* task/<tid>/children exists */
    uint32_t round;
    uint64_t deadline_ms;      /* of this scan */
    uint32_t own_zombies;      /* children of the root, seen by this scan, that it has not reaped yet */
    int signal_number;         /* of this scan */
    bool moved;                /* this scan saw a process come, go or change its parent: it may have missed others */
    uint32_t running;          /* processes of this scan that did not stand still, or not yet in the scan before */
    uint32_t unreadable;       /* processes of this scan whose state could not be read */
    uint32_t descendants_seen; /* ever seen alive, the main child not counted */
    uint32_t process_count;
    uint32_t pending_count;
    uint32_t link_count;
    struct tree_process processes[TREE_MAX_PROCESSES];
    uint32_t slots[TREE_HASH_SLOTS]; /* index + 1 into processes, by pid */
    uint32_t pending[TREE_MAX_PROCESSES];
    struct tree_link links[TREE_MAX_PROCESSES];
    char listing[TREE_LISTING_BYTES];
};

/* `tree` is all zero before; it is large, so it lives in static storage, where untouched pages cost nothing. */
void tree_init(struct tree *tree, pid_t root_pid, pid_t main_pid);

/* Forgets every process, so that those still alive are found and counted anew. */
void tree_forget(struct tree *tree);
/* Walks the whole tree once. signal_number SIGSTOP stops every process that is not, 0 only looks. Returns true when the
 * walk saw every process stopped and nothing that the previous walk had not seen: then nothing can fork any more. */
bool tree_scan(struct tree *tree, int signal_number, uint64_t deadline_ms);
/* Sends a signal to every process that is known to be alive. */
void tree_signal(const struct tree *tree, int signal_number);
/* Known processes that are still alive, plus those that could not be read in the last scan. */
uint32_t tree_survivors(struct tree *tree);

uint64_t tree_now_ms(void);

#endif
