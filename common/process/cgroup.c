/*
 * cgroup v2 of one process tree (cgroup.h). Libc only; holds no state of its own.
 */
#include "common/process/cgroup.h"
#include "common/process/proc_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_PREFIX "holdfast-tree-"
#define MAX_NESTING 8 /* levels of cgroups below ours that are cleaned up */

/* mountinfo writes space, tab, newline and backslash as \ooo. Decodes one field up to a space. */
static int copy_mount_field(const char *field, char *out, size_t out_size)
{
    size_t length = 0;

    while (*field != ' ' && *field != '\n' && *field != '\0') {
        unsigned char byte = (unsigned char)*field++;
        if (byte == '\\' && strspn(field, "01234567") >= 3) {
            byte = (unsigned char)((field[0] - '0') * 64 + (field[1] - '0') * 8 + (field[2] - '0'));
            field += 3;
        }
        if (length + 1 >= out_size)
            return -1;
        out[length++] = (char)byte;
    }
    out[length] = '\0';
    return 0;
}

/* Start of the n-th (from 0) space-separated field of a line, or NULL. */
static const char *line_field(const char *line, unsigned n)
{
    while (n-- > 0) {
        line += strcspn(line, " \n");
        if (*line != ' ')
            return NULL;
        line++;
    }
    return line;
}

/* One line of mountinfo: when it mounts a cgroup2 that shows `path`, writes the directory and returns 0. */
static int directory_in_mount(const char *line, const char *path, char *out, size_t out_size)
{
    char root[1024], point[1024];
    const char *root_field = line_field(line, 3), *point_field = line_field(line, 4);

    if (!strstr(line, " - cgroup2 ") || !root_field || !point_field ||
        copy_mount_field(root_field, root, sizeof root) < 0 || copy_mount_field(point_field, point, sizeof point) < 0)
        return -1;
    size_t root_length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, root_length) != 0 || (path[root_length] != '/' && path[root_length] != '\0'))
        return -1;
    int length = snprintf(out, out_size, "%s%s", point, path + root_length);
    return length > 0 && (size_t)length < out_size ? 0 : -1;
}

/* Reads at most size-1 bytes and adds a NUL. Returns the length, or -1 with errno. */
static ssize_t read_file(const char *path, char *buffer, size_t size)
{
    size_t length = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    while (length < size - 1) {
        ssize_t got = read(fd, buffer + length, size - 1 - length);
        if (got < 0) {
            int saved_errno = errno;
            close(fd);
            errno = saved_errno;
            return -1;
        }
        if (got == 0)
            break;
        length += (size_t)got;
    }
    close(fd);
    buffer[length] = '\0';
    return (ssize_t)length;
}

/* Our path in the v2 hierarchy: the one numbered 0 without controllers; hybrid hosts list v1 hierarchies around it. */
static int read_own_path(const char *cgroup_file, char *out, size_t out_size)
{
    char text[4096];

    if (read_file(cgroup_file, text, sizeof text) < 0)
        return -1;
    const char *line = text;
    while (line && strncmp(line, "0::/", 4) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    size_t length = line ? strcspn(line + 3, "\n") : 0;
    if (length == 0 || length >= out_size)
        return -1;
    memcpy(out, line + 3, length);
    out[length] = '\0';
    return strstr(out, "/..") ? -1 : 0; /* outside of our cgroup namespace: no directory of ours */
}

int cgroup_find_directory(const char *cgroup_file, const char *mountinfo_file, char *out, size_t out_size)
{
    char path[1024], lines[8192 + 1];
    size_t held = 0;
    int result = -1;

    if (read_own_path(cgroup_file, path, sizeof path) < 0)
        return -1;
    int fd = open(mountinfo_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while (result < 0 && held < sizeof lines - 1) { /* a line that does not fit is no mount of ours */
        ssize_t length = read(fd, lines + held, sizeof lines - 1 - held);
        if (length <= 0)
            break;
        held += (size_t)length;
        lines[held] = '\0';
        char *line = lines, *end;
        for (; result < 0 && (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            result = directory_in_mount(line, path, out, out_size);
        }
        held = strlen(line);
        memmove(lines, line, held);
    }
    close(fd);
    return result;
}

static int open_own_directory(void)
{
    char directory[2100];
    struct statfs fs;

    if (cgroup_find_directory("/proc/self/cgroup", "/proc/self/mountinfo", directory, sizeof directory) < 0)
        return -1;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && (fstatfs(fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int format_name(struct cgroup *cgroup, pid_t supervisor_pid)
{
    struct proc_stat stat;

    if (proc_stat_read(supervisor_pid, 0, &stat) < 0)
        return -1;
    snprintf(cgroup->name, sizeof cgroup->name, NAME_PREFIX "%d-%llu", (int)supervisor_pid,
             (unsigned long long)stat.start_ticks);
    return 0;
}

/* Makes the directory, or opens one that exists. */
static bool open_tree(struct cgroup *cgroup, pid_t supervisor_pid, bool create)
{
    cgroup->fd = -1;
    cgroup->parent_fd = open_own_directory();
    if (cgroup->parent_fd < 0)
        return false;
    if (format_name(cgroup, supervisor_pid) == 0 && (!create || mkdirat(cgroup->parent_fd, cgroup->name, 0755) == 0))
        cgroup->fd = openat(cgroup->parent_fd, cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (cgroup->fd >= 0)
        return true;
    close(cgroup->parent_fd);
    cgroup->parent_fd = -1;
    return false;
}

bool cgroup_create(struct cgroup *cgroup)
{
    return open_tree(cgroup, getpid(), true);
}

void cgroup_kill_tree_of(pid_t supervisor_pid)
{
    struct cgroup cgroup;

    if (!open_tree(&cgroup, supervisor_pid, false))
        return;
    cgroup_kill(&cgroup);
    close(cgroup.fd);
    close(cgroup.parent_fd);
}

pid_t cgroup_fork(struct cgroup *cgroup)
{
    /* Born inside: nothing runs outside for an instant, and the migration lock, which costs an RCU grace period
     * (several ms) per write to cgroup.procs, is not needed. */
    if (cgroup->fd >= 0) {
        struct clone_args args = {
            .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (unsigned int)cgroup->fd};
        pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
        if (pid >= 0)
            return pid;
        cgroup_remove(cgroup); /* ENOSYS below some seccomp filters, EOPNOTSUPP in threaded cgroups */
    }
    return fork();
}

static bool write_control(const struct cgroup *cgroup, const char *name, const char *value)
{
    if (cgroup->fd < 0)
        return false;
    int fd = openat(cgroup->fd, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool written = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    close(fd);
    return written;
}

bool cgroup_freeze(const struct cgroup *cgroup, bool freeze)
{
    return write_control(cgroup, "cgroup.freeze", freeze ? "1" : "0");
}

bool cgroup_kill(const struct cgroup *cgroup)
{
    return write_control(cgroup, "cgroup.kill", "1");
}

/* Value of "frozen" or "populated": 0, 1, or -1 when it cannot be read. */
static int read_event(const struct cgroup *cgroup, const char *name)
{
    char text[256];
    int fd = openat(cgroup->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return -1;
    text[length] = '\0';
    const char *found = strstr(text, name);
    if (!found || found[strlen(name)] != ' ')
        return -1;
    return found[strlen(name) + 1] == '0' ? 0 : 1;
}

bool cgroup_is_frozen(const struct cgroup *cgroup)
{
    return cgroup->fd >= 0 && read_event(cgroup, "frozen") == 1;
}

bool cgroup_is_populated(const struct cgroup *cgroup)
{
    return cgroup->fd >= 0 && read_event(cgroup, "populated") != 0;
}

/* rmdir(2) of `name` after its sub-cgroups. The kernel refuses to remove a cgroup that holds a process, so this can
 * never harm a living tree. */
static void remove_nested(int parent_fd, const char *name, unsigned depth)
{
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || depth == 0)
        return;
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            remove_nested(fd, entry->d_name, depth - 1);
    }
    closedir(directory);
    unlinkat(parent_fd, name, AT_REMOVEDIR);
}

void cgroup_remove(struct cgroup *cgroup)
{
    if (cgroup->fd < 0)
        return;
    close(cgroup->fd);
    cgroup->fd = -1;
    remove_nested(cgroup->parent_fd, cgroup->name, MAX_NESTING);
    close(cgroup->parent_fd);
    cgroup->parent_fd = -1;
}

void cgroup_sweep(const struct cgroup *cgroup)
{
    if (cgroup->fd < 0)
        return;
    int fd = openat(cgroup->parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        if (strncmp(entry->d_name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
            continue;
        long pid = strtol(entry->d_name + strlen(NAME_PREFIX), NULL, 10);
        if (pid > 1 && pid <= INT32_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH)
            remove_nested(fd, entry->d_name, MAX_NESTING);
    }
    closedir(directory);
}
