/*
 * Descendants from /proc (tree.h). Part of holdfast-supervise: libc only, no allocation, single-threaded.
 */
#include "common/process/tree.h"
#include "common/process/proc_stat.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t tree_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool is_gone_errno(int number)
{
    return number == ENOENT || number == ESRCH;
}

/* Decimal name of a /proc entry, or 0. */
static pid_t entry_pid(const char *name)
{
    char *end;

    if (!isdigit((unsigned char)name[0]))
        return 0;
    long pid = strtol(name, &end, 10);
    return *end == '\0' && pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

void tree_init(struct tree *tree, pid_t root_pid, pid_t main_pid)
{
    char path[64];

    tree->root_pid = root_pid;
    tree->main_pid = main_pid;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)root_pid, (int)root_pid);
    tree->use_children = access(path, R_OK) == 0; /* absent without CONFIG_PROC_CHILDREN */
}

void tree_forget(struct tree *tree)
{
    tree->process_count = 0;
    tree->descendants_seen = 0;
    memset(tree->slots, 0, sizeof tree->slots);
}

/* The slot that holds pid and start time, or the free one where it would go. */
static uint32_t *find_slot(struct tree *tree, pid_t pid, uint64_t start_ticks)
{
    uint32_t at = (uint32_t)pid % TREE_HASH_SLOTS;

    while (tree->slots[at] != 0) {
        const struct tree_process *process = &tree->processes[tree->slots[at] - 1];
        if (process->pid == pid && process->start_ticks == start_ticks)
            break;
        at = (at + 1) % TREE_HASH_SLOTS;
    }
    return &tree->slots[at];
}

/* Signals exactly this process, or nobody when its pid has passed on to another. */
static void signal_process(pid_t pid, uint64_t start_ticks, int signal_number)
{
    struct proc_stat stat;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd < 0)
        return;
    if (proc_stat_read(pid, 0, &stat) == 0 && stat.start_ticks == start_ticks)
        syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0);
    close(pidfd);
}

static void mark_gone(struct tree *tree, struct tree_process *process)
{
    if (!process->gone)
        tree->moved = true; /* its children, if any, have just moved to another parent */
    process->gone = true;
}

/* True when `stat`, read just now from pid's file, proves that pid is a child of the parent that we know. */
static bool is_child_of(const struct tree *tree, const struct proc_stat *stat, pid_t parent_pid,
                        uint64_t parent_start_ticks)
{
    struct proc_stat parent;

    if (stat->parent_pid == tree->root_pid)
        return true;
    return stat->parent_pid == parent_pid && proc_stat_read(parent_pid, 0, &parent) == 0 &&
           parent.start_ticks == parent_start_ticks;
}

/* One system call instead of four: a tree can leave tens of thousands of zombies to us, the root. */
static bool is_own_zombie(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid == pid;
}

/* A pid that was listed as a child: proves it, records it, stops it and queues it for this scan. */
static void consider(struct tree *tree, pid_t pid, pid_t parent_pid, uint64_t parent_start_ticks)
{
    struct proc_stat stat;

    if (parent_pid == tree->root_pid && is_own_zombie(pid)) {
        tree->own_zombies++;
        return;
    }
    if (proc_stat_read(pid, 0, &stat) < 0) {
        tree->unreadable += !is_gone_errno(errno);
        tree->moved = true;
        return;
    }
    if (!is_child_of(tree, &stat, parent_pid, parent_start_ticks)) {
        tree->moved = true; /* moved to another parent: the next scan finds it there */
        return;
    }
    uint32_t *slot = find_slot(tree, pid, stat.start_ticks);
    if (*slot == 0) {
        tree->moved = true;
        tree->descendants_seen += pid != tree->main_pid && !proc_stat_has_exited(&stat);
        if (tree->signal_number != 0) /* at once: it may be about to fork */
            signal_process(pid, stat.start_ticks, tree->signal_number);
        if (tree->process_count == TREE_MAX_PROCESSES) {
            signal_process(pid, stat.start_ticks, SIGKILL);
            return;
        }
        tree->processes[tree->process_count] = (struct tree_process){.pid = pid, .start_ticks = stat.start_ticks};
        *slot = ++tree->process_count;
    }
    struct tree_process *process = &tree->processes[*slot - 1];
    if (process->round != tree->round) {
        process->round = tree->round;
        tree->pending[tree->pending_count++] = *slot - 1;
    }
}

/* Pids of a listing, the last (newest) first: of a tree that runs away by forking and exiting, the living are at the
 * end and must be stopped before they fork again, while there may be thousands of zombies before them. */
static void consider_listing(struct tree *tree, size_t length, pid_t parent_pid, uint64_t parent_start_ticks)
{
    for (size_t end = length; end > 0;) {
        size_t start = end;
        while (start > 0 && isdigit((unsigned char)tree->listing[start - 1]))
            start--;
        if (start == end) {
            end--;
            continue;
        }
        long pid = strtol(tree->listing + start, NULL, 10);
        if (pid > 0 && pid <= INT32_MAX)
            consider(tree, (pid_t)pid, parent_pid, parent_start_ticks);
        end = start;
    }
}

static void consider_children_file(struct tree *tree, pid_t parent_pid, uint64_t parent_start_ticks, pid_t tid)
{
    char path[64];
    size_t length = 0;
    ssize_t got;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent_pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        tree->moved = true;
        return;
    }
    /* The whole list before the first look, because a list that is read slowly may grow for ever. */
    while ((got = read(fd, tree->listing + length, sizeof tree->listing - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    if (got < 0 || length == sizeof tree->listing - 1)
        tree->moved = true; /* not all of it: look again when some of them are gone */
    tree->listing[length] = '\0';
    consider_listing(tree, length, parent_pid, parent_start_ticks);
}

struct thread_summary {
    uint32_t alive;   /* not a zombie */
    uint32_t running; /* alive and not stopped, or unreadable */
};

/* For each thread of a process: adds its state to *summary or, when that is NULL, considers its children. Returns -1
 * with errno when the process cannot be read. A leader that has exited while other threads run is alive: only they
 * tell. */
static int walk_threads(struct tree *tree, pid_t pid, uint64_t start_ticks, struct thread_summary *summary)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *directory = opendir(path);
    if (!directory)
        return -1;
    for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        struct proc_stat stat;
        pid_t tid = entry_pid(entry->d_name);
        if (tid == 0)
            continue;
        if (!summary) {
            consider_children_file(tree, pid, start_ticks, tid);
        } else if (proc_stat_read(pid, tid, &stat) == 0) {
            bool alive = stat.state != 'Z' && stat.state != 'X';
            summary->alive += alive;
            summary->running += alive && stat.state != 'T' && stat.state != 't';
        } else if (!is_gone_errno(errno)) {
            summary->alive++;
            summary->running++;
        }
    }
    closedir(directory);
    return 0;
}

static void consider_children(struct tree *tree, pid_t pid, uint64_t start_ticks)
{
    if (tree->use_children) {
        if (walk_threads(tree, pid, start_ticks, NULL) < 0)
            tree->moved = true;
        return;
    }
    for (uint32_t i = 0; i < tree->link_count; i++) {
        if (tree->links[i].parent_pid == pid)
            consider(tree, tree->links[i].pid, pid, start_ticks);
    }
}

/* One known process: is it still there, do all its threads stand still, which children has it. */
static void visit(struct tree *tree, struct tree_process *process)
{
    struct thread_summary summary = {0};
    struct proc_stat stat;

    if (walk_threads(tree, process->pid, process->start_ticks, &summary) < 0) {
        if (is_gone_errno(errno)) {
            mark_gone(tree, process);
        } else {
            tree->unreadable++;
        }
        return;
    }
    if (proc_stat_read(process->pid, 0, &stat) < 0 || stat.start_ticks != process->start_ticks || summary.alive == 0) {
        mark_gone(tree, process);
        return;
    }
    bool stopped = summary.running == 0;
    if (!stopped || !process->stopped)
        tree->running++;
    if (!stopped && tree->signal_number != 0) /* not there yet, or woken by somebody */
        signal_process(process->pid, process->start_ticks, tree->signal_number);
    process->stopped = stopped;
    consider_children(tree, process->pid, process->start_ticks);
}

/* Where the kernel has no `children` files: parents of all processes of the host. */
static void read_links(struct tree *tree)
{
    DIR *directory = opendir("/proc");

    tree->link_count = 0;
    if (!directory) {
        tree->unreadable++;
        return;
    }
    for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        struct proc_stat stat;
        pid_t pid = entry_pid(entry->d_name);
        if (pid == 0 || proc_stat_read(pid, 0, &stat) < 0)
            continue;
        if (tree->link_count == TREE_MAX_PROCESSES) {
            tree->moved = true;
            break;
        }
        tree->links[tree->link_count++] = (struct tree_link){.pid = pid, .parent_pid = stat.parent_pid};
    }
    closedir(directory);
}

bool tree_scan(struct tree *tree, int signal_number, uint64_t deadline_ms)
{
    uint32_t own_zombies_before = tree->own_zombies;

    tree->round++;
    tree->own_zombies = 0;
    tree->signal_number = signal_number;
    tree->deadline_ms = deadline_ms;
    tree->moved = false;
    tree->running = 0;
    tree->unreadable = 0;
    tree->pending_count = 0;
    if (!tree->use_children)
        read_links(tree);
    consider_children(tree, tree->root_pid, 0);
    if (tree->own_zombies != own_zombies_before)
        tree->moved =
            true; /* somebody has died, or was reaped: its children are ours now, but perhaps not on our list */
    for (uint32_t i = 0; i < tree->pending_count; i++) {
        if (tree_now_ms() > deadline_ms) {
            tree->moved = true;
            return false;
        }
        visit(tree, &tree->processes[tree->pending[i]]);
    }
    return !tree->moved && tree->running == 0 && tree->unreadable == 0;
}

void tree_signal(const struct tree *tree, int signal_number)
{
    for (uint32_t i = 0; i < tree->process_count; i++) {
        const struct tree_process *process = &tree->processes[i];
        if (!process->gone)
            signal_process(process->pid, process->start_ticks, signal_number);
    }
}

uint32_t tree_survivors(struct tree *tree)
{
    uint32_t survivors = tree->unreadable;

    for (uint32_t i = 0; i < tree->process_count; i++) {
        const struct tree_process *process = &tree->processes[i];
        struct thread_summary summary = {0};
        struct proc_stat stat;
        if (process->gone)
            continue;
        if (walk_threads(tree, process->pid, process->start_ticks, &summary) < 0)
            survivors += !is_gone_errno(errno);
        else if (proc_stat_read(process->pid, 0, &stat) == 0 && stat.start_ticks == process->start_ticks)
            survivors += summary.alive > 0;
    }
    return survivors;
}
