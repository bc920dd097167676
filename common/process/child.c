/*
 * Caller's side of a contained child: starts holdfast-supervise, asks it to stop, reads its report (child.h).
 *
 * Called by every program that starts others. Callers have threads, so nothing runs between fork and exec but what
 * posix_spawn(3) does itself. Never waits for anything but an exiting supervisor, and that only for a moment.
 */
#include "common/process/child.h"
#include "common/cleanup.h"
#include "common/process/cgroup.h"
#include "common/process/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define EXIT_WAIT_MS 100 /* of a supervisor that has reported; more often it is below one */

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* ---- where the supervisor is ---- */

static char supervisor_override[PATH_MAX];

int hf_child_set_supervisor_path(const char *path, struct hf_error *err)
{
    size_t length = path ? strlen(path) : 0;

    if (path && (path[0] != '/' || length >= sizeof supervisor_override))
        return hf_error_set(err, "child-supervisor-missing", 0, "",
                            "expected an absolute path of " HF_SUPERVISE_PROGRAM " below %zu bytes, got %zu bytes%s",
                            sizeof supervisor_override, length, path[0] == '/' ? "" : " of a relative path");
    memcpy(supervisor_override, path ? path : "", length + 1);
    return 0;
}

static int find_supervisor(char out[PATH_MAX], struct hf_error *err)
{
    if (supervisor_override[0] != '\0') {
        memcpy(out, supervisor_override, sizeof supervisor_override);
    } else {
        ssize_t length = readlink("/proc/self/exe", out, PATH_MAX - sizeof HF_SUPERVISE_PROGRAM - 1);
        if (length <= 0 || length == PATH_MAX - (ssize_t)sizeof HF_SUPERVISE_PROGRAM - 1)
            return hf_error_set(
                err, "child-supervisor-missing", errno, "",
                "cannot find the directory of the running program through /proc/self/exe: %s; mount /proc",
                length < 0 ? strerror(errno) : "its path is too long");
        out[length] = '\0';
        strcpy(strrchr(out, '/') + 1, HF_SUPERVISE_PROGRAM);
    }
    if (access(out, X_OK) < 0)
        return hf_error_set(err, "child-supervisor-missing", errno, "",
                            "cannot execute %s: %s; it contains every child process and must be installed there", out,
                            strerror(errno));
    return 0;
}

/* ---- supervisors that outlive their clear() by a moment ---- */

struct unreaped {
    int pidfd;
    struct unreaped *next;
};
static struct unreaped *unreaped_list;
static pthread_mutex_t unreaped_lock = PTHREAD_MUTEX_INITIALIZER;

/* True when the supervisor is gone and its descriptor closed. */
static bool reap_supervisor(int pidfd)
{
    siginfo_t info = {0};

    if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
        return false;
    close(pidfd); /* reaped, or no child of ours any more */
    return true;
}

static void reap_late_supervisors(void)
{
    pthread_mutex_lock(&unreaped_lock);
    for (struct unreaped **link = &unreaped_list; *link;) {
        struct unreaped *entry = *link;
        if (reap_supervisor(entry->pidfd)) {
            *link = entry->next;
            free(entry);
        } else {
            link = &entry->next;
        }
    }
    pthread_mutex_unlock(&unreaped_lock);
}

static void reap_later(int pidfd)
{
    struct unreaped *entry = malloc(sizeof *entry);

    if (!entry) { /* without memory for a note, waiting is all that is left; the supervisor's deadlines bound it */
        siginfo_t info;
        waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED);
        close(pidfd);
        return;
    }
    pthread_mutex_lock(&unreaped_lock);
    *entry = (struct unreaped){.pidfd = pidfd, .next = unreaped_list};
    unreaped_list = entry;
    pthread_mutex_unlock(&unreaped_lock);
}

/* ---- start ---- */

/* Descriptors of one start; each is closed on every way out. */
struct launch {
    int control[2];                            /* ours, the supervisor's */
    int child_fds[3 + HF_CHILD_MAX_EXTRA_FDS]; /* above HF_SUPERVISE_CONTROL_FD, owned copies */
    int caller_fds[3];                         /* our ends of pipes, or -1 */
    int cwd_fd;
    unsigned fd_count;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void launch_clear(struct launch *launch)
{
    close_fd(&launch->control[0]);
    close_fd(&launch->control[1]);
    close_fd(&launch->cwd_fd);
    for (unsigned i = 0; i < 3 + HF_CHILD_MAX_EXTRA_FDS; i++)
        close_fd(&launch->child_fds[i]);
    for (unsigned i = 0; i < 3; i++)
        close_fd(&launch->caller_fds[i]);
}

static int spawn_error(struct hf_error *err, int number, const char *field, const char *what)
{
    return hf_error_set(err, "child-spawn-failed", number, field, "cannot start a child process: %s: %s", what,
                        strerror(number));
}

/* A copy above the numbers that the child gets, so that no dup2 in the child overwrites the source of a later one. */
static int copy_above(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, HF_SUPERVISE_CONTROL_FD + 1);
}

/* A pipe for descriptor 0 (we write) or 1, 2 (we read). Our end does not block. */
static int make_pipe(struct launch *launch, unsigned index)
{
    int ends[2];
    unsigned ours = index == 0 ? 1 : 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    launch->caller_fds[index] = ends[ours];
    launch->child_fds[index] = copy_above(ends[1 - ours]);
    int saved_errno = errno;
    close(ends[1 - ours]);
    errno = saved_errno;
    if (launch->child_fds[index] < 0)
        return -1;
    return fcntl(ends[ours], F_SETFL, O_NONBLOCK);
}

static int prepare_fd(struct launch *launch, unsigned index, int fd, struct hf_error *err)
{
    static const char *const names[] = {"stdin_fd", "stdout_fd", "stderr_fd"};
    const char *field = index < 3 ? names[index] : "extra_fds";

    if (index < 3 && fd == HF_CHILD_PIPE)
        return make_pipe(launch, index) < 0 ? spawn_error(err, errno, field, "cannot make a pipe") : 0;
    if (index < 3 && fd == HF_CHILD_NULL) {
        cleanup_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        launch->child_fds[index] = null_fd < 0 ? -1 : copy_above(null_fd);
        return launch->child_fds[index] < 0 ? spawn_error(err, errno, field, "cannot open /dev/null") : 0;
    }
    launch->child_fds[index] = copy_above(fd);
    if (launch->child_fds[index] < 0)
        return spawn_error(err, errno, field, "the descriptor to be passed on is not usable");
    return 0;
}

static int check_spec(const struct hf_child_spec *spec, struct hf_error *err)
{
    if (!spec->argv || !spec->argv[0] || spec->argv[0][0] == '\0' || !spec->envp)
        return hf_error_set(err, "child-spawn-failed", EINVAL, "argv",
                            "cannot start a child process: expected a program name and an environment, got none");
    if (spec->argv[0][0] != '/' && strchr(spec->argv[0], '/'))
        return hf_error_set(err, "child-spawn-failed", EINVAL, "argv",
                            "cannot start a child process: expected an absolute path or a name without '/', got a "
                            "relative path; make it absolute");
    if (spec->extra_fd_count > HF_CHILD_MAX_EXTRA_FDS)
        return hf_error_set(err, "child-spawn-failed", EINVAL, "extra_fd_count",
                            "cannot start a child process: expected at most %d extra descriptors, got %u",
                            HF_CHILD_MAX_EXTRA_FDS, spec->extra_fd_count);
    return 0;
}

static int launch_prepare(struct launch *launch, const struct hf_child_spec *spec, struct hf_error *err)
{
    const int stdio[3] = {spec->stdin_fd, spec->stdout_fd, spec->stderr_fd};

    launch->fd_count = 3 + spec->extra_fd_count;
    for (unsigned i = 0; i < launch->fd_count; i++) {
        if (prepare_fd(launch, i, i < 3 ? stdio[i] : spec->extra_fds[i - 3], err) < 0)
            return -1;
    }
    if (spec->cwd) {
        cleanup_close int fd = open(spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
        launch->cwd_fd = fd < 0 ? -1 : copy_above(fd);
        if (launch->cwd_fd < 0)
            return spawn_error(err, errno, "cwd", "cannot open the working directory");
    }
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return spawn_error(err, errno, "", "cannot make the control socket");
    launch->control[0] = pair[0];
    launch->control[1] = copy_above(pair[1]);
    close(pair[1]);
    return launch->control[1] < 0 ? spawn_error(err, errno, "", "cannot make the control socket") : 0;
}

/* The supervisor's arguments: its own five, then the program's. Owned array of borrowed strings. */
static char **supervisor_arguments(const struct hf_child_spec *spec)
{
    static const char extra_counts[][2] = {"0", "1", "2", "3", "4"};
    _Static_assert(sizeof extra_counts / sizeof extra_counts[0] == HF_CHILD_MAX_EXTRA_FDS + 1, "one for each count");
    size_t count = 0;

    while (spec->argv[count])
        count++;
    const char **arguments = calloc(count + 6, sizeof *arguments);
    if (!arguments)
        return NULL;
    arguments[0] = HF_SUPERVISE_PROGRAM;
    arguments[1] = HF_SUPERVISE_VERSION_TEXT;
    arguments[2] = extra_counts[spec->extra_fd_count];
    arguments[3] = spec->wait_for_descendants ? "wait" : "once";
    arguments[4] = "--";
    memcpy(arguments + 5, spec->argv, count * sizeof *arguments);
    return (char **)(uintptr_t)arguments;
}

/* posix_spawn with the descriptors in place. Signals are blocked until the supervisor has set up its own handling, and
 * it has a session of its own, so nothing that is typed at a terminal reaches it. Returns errno. */
static int spawn(const struct launch *launch, const char *path, char **arguments, const struct hf_child_spec *spec,
                 pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;

    sigfillset(&all);
    int result = posix_spawn_file_actions_init(&actions);
    if (result != 0)
        return result;
    result = posix_spawnattr_init(&attributes);
    if (result == 0)
        result = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    if (result == 0)
        result = posix_spawnattr_setsigmask(&attributes, &all);
    for (unsigned i = 0; result == 0 && i < launch->fd_count; i++)
        result = posix_spawn_file_actions_adddup2(&actions, launch->child_fds[i], (int)i);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(&actions, launch->control[1], HF_SUPERVISE_CONTROL_FD);
    if (result == 0 && launch->cwd_fd >= 0)
        result = posix_spawn_file_actions_addfchdir_np(&actions, launch->cwd_fd);
    if (result == 0)
        result = posix_spawn(pid, path, &actions, &attributes, arguments, (char *const *)(uintptr_t)spec->envp);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

void hf_child_init(struct hf_child *child)
{
    *child = (struct hf_child){.supervisor_pid = 0,
                               .supervisor_pidfd = -1,
                               .control_fd = -1,
                               .stdin_fd = -1,
                               .stdout_fd = -1,
                               .stderr_fd = -1};
}

int hf_child_start(const struct hf_child_spec *spec, struct hf_child *child, struct hf_error *err)
{
    __attribute__((cleanup(launch_clear))) struct launch launch = {
        .control = {-1, -1}, .child_fds = {-1, -1, -1, -1, -1, -1, -1}, .caller_fds = {-1, -1, -1}, .cwd_fd = -1};
    char path[PATH_MAX];
    pid_t pid = 0;

    hf_child_init(child);
    reap_late_supervisors();
    if (check_spec(spec, err) < 0 || find_supervisor(path, err) < 0 || launch_prepare(&launch, spec, err) < 0)
        return -1;
    char **arguments = supervisor_arguments(spec);
    int result = arguments ? spawn(&launch, path, arguments, spec, &pid) : ENOMEM;
    free(arguments);
    if (result != 0)
        return spawn_error(err, result, "", HF_SUPERVISE_PROGRAM " did not start");

    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) { /* too many descriptors: closing the control socket ends the supervisor and its tree */
        int saved_errno = errno;
        launch_clear(&launch);
        waitpid(pid, NULL, 0);
        return spawn_error(err, saved_errno, "", "cannot open a descriptor of " HF_SUPERVISE_PROGRAM);
    }
    child->supervisor_pid = pid;
    child->supervisor_pidfd = pidfd;
    child->control_fd = STEAL_FD(launch.control[0]);
    child->stdin_fd = STEAL_FD(launch.caller_fds[0]);
    child->stdout_fd = STEAL_FD(launch.caller_fds[1]);
    child->stderr_fd = STEAL_FD(launch.caller_fds[2]);
    return 0;
}

/* ---- stop, report, clear ---- */

/* A tree that runs as our user may have stopped its supervisor (SIGSTOP): whenever we want something, it continues. */
static void wake_supervisor(const struct hf_child *child)
{
    syscall(SYS_pidfd_send_signal, child->supervisor_pidfd, SIGCONT, NULL, 0);
}

void hf_child_kill_supervisor(struct hf_child *child)
{
    if (child->supervisor_pid > 0)
        syscall(SYS_pidfd_send_signal, child->supervisor_pidfd, SIGKILL, NULL, 0);
}

void hf_child_stop(struct hf_child *child, uint32_t grace_ms)
{
    struct hf_supervise_stop message = {.version = HF_SUPERVISE_VERSION,
                                        .grace_ms = grace_ms < HF_SUPERVISE_MAX_GRACE_MS ? grace_ms
                                                                                         : HF_SUPERVISE_MAX_GRACE_MS};

    if (child->supervisor_pid <= 0)
        return;
    /* EPIPE: it has reported already. EAGAIN: it has more stop messages than it could read, which only a stopped
     * supervisor can have; it reads them now. */
    send(child->control_fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
    wake_supervisor(child);
}

static bool report_is_valid(const struct hf_supervise_report *wire, ssize_t length)
{
    return length == (ssize_t)sizeof *wire && wire->version == HF_SUPERVISE_VERSION && wire->size == sizeof *wire &&
           wire->exit_code >= 0 && wire->exit_code <= 255 && wire->term_signal >= 0 && wire->term_signal <= 64 &&
           wire->start_errno >= 0;
}

static void report_fill(struct hf_child_report *report, const struct hf_supervise_report *wire)
{
    *report = (struct hf_child_report){
        .started = (wire->flags & HF_SUPERVISE_STARTED) != 0,
        .start_errno = wire->start_errno,
        .exited = (wire->flags & HF_SUPERVISE_EXITED) != 0,
        .exit_code = wire->exit_code,
        .term_signal = wire->term_signal,
        .stop_requested = (wire->flags & HF_SUPERVISE_STOP_REQUESTED) != 0,
        .teardown_complete = (wire->flags & HF_SUPERVISE_TEARDOWN_COMPLETE) != 0,
        .cgroup_used = (wire->flags & HF_SUPERVISE_CGROUP_USED) != 0,
        .descendants_killed = wire->descendants_killed,
        .survivors = wire->survivors,
        .duration_ms = wire->duration_ms,
        .cpu_ms = wire->cpu_ms,
    };
}

int hf_child_read_report(struct hf_child *child, struct hf_child_report *report, struct hf_error *err)
{
    struct hf_supervise_report wire;
    ssize_t length;

    if (child->supervisor_pid <= 0 || child->reported)
        return hf_error_set(err, "child-report-failed", EBADF, "",
                            "expected a started child whose report was not read yet, got %s",
                            child->reported ? "one whose report was read" : "a cleared one");
    /* ECONNRESET says once that a stop message was never read; the report that was sent before follows it. */
    do {
        length = recv(child->control_fd, &wire, sizeof wire, MSG_DONTWAIT | MSG_TRUNC);
    } while (length < 0 && (errno == EINTR || errno == ECONNRESET));
    if (length < 0 && errno == EAGAIN)
        return 0;
    if (length < 0)
        return hf_error_set(err, "child-report-failed", errno, "",
                            "cannot read the report of " HF_SUPERVISE_PROGRAM ": %s", strerror(errno));
    child->reported = true;
    if (length == 0) {
        cgroup_kill_tree_of(child->supervisor_pid); /* the main child is dead already (PR_SET_PDEATHSIG) */
        *report = (struct hf_child_report){.started = true, .supervisor_lost = true};
        return 1;
    }
    if (!report_is_valid(&wire, length))
        return hf_error_set(err, "child-report-failed", EPROTO, "",
                            "expected a report of version %u with %zu bytes from " HF_SUPERVISE_PROGRAM
                            ", got one of %zd bytes; install it from the same build as the program that starts it",
                            HF_SUPERVISE_VERSION, sizeof wire, length);
    report_fill(report, &wire);
    return 1;
}

void hf_child_clear(struct hf_child *child)
{
    reap_late_supervisors();
    if (child->supervisor_pid > 0) {
        close_fd(&child->control_fd);
        close_fd(&child->stdin_fd);
        close_fd(&child->stdout_fd);
        close_fd(&child->stderr_fd);
        wake_supervisor(child);
        struct pollfd ended = {.fd = child->supervisor_pidfd, .events = POLLIN};
        if (child->reported)
            (void)poll(&ended, 1, EXIT_WAIT_MS);
        if (!reap_supervisor(child->supervisor_pidfd))
            reap_later(child->supervisor_pidfd);
    }
    hf_child_init(child);
}
