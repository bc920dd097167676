/*
 * One cgroup v2 for one process tree: found, made, frozen, killed and removed by holdfast-supervise, and
 * killed by the caller when that supervisor is lost.
 *
 * A cgroup holds what the process hierarchy can lose: a descendant that moved to another pid namespace. It is an
 * addition, never a condition: where no cgroup2 mount exists or it may not be written, cgroup_create() says so and the
 * process hierarchy (tree.h) carries the containment by itself.
 * Source: Documentation/admin-guide/cgroup-v2.rst; cgroup.freeze since Linux 5.2, CLONE_INTO_CGROUP 5.7,
 * cgroup.kill 5.14.
 */
#ifndef HF_COMMON_PROCESS_CGROUP_H
#define HF_COMMON_PROCESS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cgroup {
    int parent_fd; /* the supervisor's own cgroup directory */
    int fd;        /* the tree's directory below it, -1 when there is none */
    char name[64]; /* holdfast-tree-<pid of the supervisor>-<start time>: never used twice */
};

/* Makes the cgroup; false (and cgroup->fd -1) when the host does not offer one. */
bool cgroup_create(struct cgroup *cgroup);
/* fork(2), the child being born inside the cgroup. Works without one too. Removes the cgroup when the kernel refuses.
 */
pid_t cgroup_fork(struct cgroup *cgroup);
/* Each of these does nothing and returns false without a cgroup. */
bool cgroup_freeze(const struct cgroup *cgroup, bool freeze);
bool cgroup_is_frozen(const struct cgroup *cgroup);
bool cgroup_is_populated(const struct cgroup *cgroup); /* true as well when it cannot be read */
bool cgroup_kill(const struct cgroup *cgroup);
/* Removes the (empty) cgroup and whatever (empty) cgroups the tree made below it. */
void cgroup_remove(struct cgroup *cgroup);
/* Removes empty cgroups that supervisors which were killed left beside ours. */
void cgroup_sweep(const struct cgroup *cgroup);

/* For the caller of a supervisor that died without tearing down (and is not reaped yet, so that its start time can be
 * read): kills whatever its cgroup holds. The next supervisor's sweep removes the directory. */
void cgroup_kill_tree_of(pid_t supervisor_pid);

/* The directory of the calling process's cgroup, from /proc/self/cgroup and /proc/self/mountinfo or, in tests, files
 * like them. Returns 0, or -1 when there is none. */
int cgroup_find_directory(const char *cgroup_file, const char *mountinfo_file, char *out, size_t out_size);

#endif
