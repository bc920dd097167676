/*
 * holdfast-supervise: runs one program and answers for every process that comes of it (child.h, supervise.h).
 *
 * Started by hf_child_start() for each contained child; one instance per tree, a thousand at once, so it is one small
 * static program: libc only, single-threaded, no allocation of its own, nothing kept from the program's stdio. It may
 * not write to any descriptor but the control socket, and it signals nothing that it has not proved to be a descendant.
 *
 * Life: become subreaper, make a cgroup, start the program in a session of its own; wait for its end, for a stop or for
 * the end of the control socket (the caller died); then freeze, kill and reap what is left, report, exit.
 */
#include "common/process/supervise.h"
#include "common/process/cgroup.h"
#include "common/process/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FREEZE_BUDGET_MS      1000 /* then kill whatever stands still or not: a thread inside vfork(2) never stops */
#define FREEZE_STEP_MS        1
#define REAP_STEP_MS          20 /* wait for killed processes to be reaped before looking again */
#define ATTEMPTS_AFTER_REPORT 6  /* of HF_CHILD_REAP_DEADLINE_MS each */
#define REAP_BATCH            1024
#define USAGE_STATUS          125

struct supervisor {
    pid_t pid;
    pid_t main_pid;
    int signal_fd;      /* SIGCHLD */
    int exec_status_fd; /* errno of a failed exec, or end of file */
    int control_fd;     /* -1 once the caller is gone */
    bool wait_for_descendants;
    bool main_ended;
    int main_status;   /* wait(2) status */
    bool more_zombies; /* the last reap() stopped at its bound */
    bool childless;    /* the last wait found no child at all: no descendant exists either, orphans come to us */
    bool stop_requested;
    uint64_t stop_deadline_ms; /* when the grace of the stop is over */
    uint64_t start_ms;
    struct cgroup cgroup;
    bool cgroup_used;
    struct tree *tree;
};

static struct tree process_tree; /* static: large, and untouched pages cost nothing */

/* ---- the program ---- */

/* Looks the program up in PATH like execvp(3), but never runs a script without interpreter line through a shell and
 * never looks in the working directory. Returns errno. */
static int exec_program(char *const *argv)
{
    char path[PATH_MAX];
    const char *directories = getenv("PATH");
    int result = ENOENT;

    if (strchr(argv[0], '/')) {
        execve(argv[0], argv, environ);
        return errno;
    }
    for (const char *cursor = directories ? directories : "/usr/bin:/bin"; *cursor != '\0';) {
        int length = (int)strcspn(cursor, ":");
        if (*cursor == '/') {
            int written = snprintf(path, sizeof path, "%.*s/%s", length, cursor, argv[0]);
            if (written > 0 && (size_t)written < sizeof path)
                execve(path, argv, environ);
            if (errno != ENOENT && errno != ENOTDIR)
                result = errno; /* found, but not executable: better than "not found" if nothing else is */
        }
        cursor += length + (cursor[length] == ':');
    }
    return result;
}

static _Noreturn void run_program(const struct supervisor *supervisor, char *const *argv, int exec_status_fd)
{
    sigset_t none;

    /* A killed supervisor takes the main child along; the check closes the window before the prctl. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor->pid)
        _exit(127);
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int number = exec_program(argv);
    if (write(exec_status_fd, &number, sizeof number) != (ssize_t)sizeof number)
        _exit(126);
    _exit(127);
}

/* Returns 0, or the errno with which no program could be started. */
static int start_program(struct supervisor *supervisor, char *const *argv)
{
    int status_pipe[2];

    if (pipe2(status_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return errno;
    supervisor->start_ms = tree_now_ms();
    supervisor->main_pid = cgroup_fork(&supervisor->cgroup);
    if (supervisor->main_pid < 0)
        return errno;
    if (supervisor->main_pid == 0)
        run_program(supervisor, argv, status_pipe[1]);
    close(status_pipe[1]);
    supervisor->exec_status_fd = status_pipe[0];
    return 0;
}

/* ---- waiting ---- */

/* A timeout for poll(2): 0 when the time has come, at most HF_SUPERVISE_MAX_GRACE_MS. */
static int until_ms(uint64_t deadline_ms)
{
    uint64_t now_ms = tree_now_ms();

    return deadline_ms > now_ms ? (int)(deadline_ms - now_ms) : 0;
}

/* Reaps what has ended: the main child first, then a bounded number of others, because a tree can make new zombies as
 * fast as they are reaped and nothing may keep us from the main child, the control socket and the deadlines. */
static void reap(struct supervisor *supervisor)
{
    int status;
    pid_t pid = 1;

    if (!supervisor->main_ended && waitpid(supervisor->main_pid, &status, WNOHANG) == supervisor->main_pid) {
        supervisor->main_ended = true;
        supervisor->main_status = status;
    }
    for (int i = 0; i < REAP_BATCH && pid > 0; i++) {
        pid = waitpid(-1, &status, WNOHANG | __WALL);
        if (pid == supervisor->main_pid && !supervisor->main_ended) {
            supervisor->main_ended = true;
            supervisor->main_status = status;
        }
    }
    supervisor->more_zombies = pid > 0;
    supervisor->childless = pid < 0 && errno == ECHILD;
}

/* The main child leads a session and group whose other members are all descendants. While it is not reaped its pid, and
 * with it the group's number, cannot pass on to anybody else, so this signal is safe, and one system call for all. */
static void signal_main_group(const struct supervisor *supervisor, int signal_number)
{
    if (!supervisor->main_ended)
        kill(-supervisor->main_pid, signal_number);
}

static void stop(struct supervisor *supervisor, uint32_t grace_ms)
{
    uint64_t deadline_ms = tree_now_ms() + grace_ms;

    if (supervisor->stop_requested && supervisor->stop_deadline_ms <= deadline_ms)
        return;
    supervisor->stop_deadline_ms = deadline_ms;
    if (!supervisor->stop_requested && grace_ms > 0) {
        signal_main_group(supervisor, SIGTERM);
        signal_main_group(supervisor, SIGCONT); /* a stopped process would never hear the TERM */
        if (supervisor->main_ended) {
            tree_scan(supervisor->tree, 0, deadline_ms);
            tree_signal(supervisor->tree, SIGTERM);
            tree_signal(supervisor->tree, SIGCONT);
            tree_forget(supervisor->tree); /* only what is alive when teardown begins is counted as killed */
        }
    }
    supervisor->stop_requested = true;
}

static void read_control(struct supervisor *supervisor)
{
    struct hf_supervise_stop message;
    ssize_t length = recv(supervisor->control_fd, &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length <= 0) {
        close(supervisor->control_fd);
        supervisor->control_fd = -1;
        stop(supervisor, 0);
        return;
    }
    /* A message that is not understood is a stop without grace: the caller wants something, and this is the safe end.
     */
    bool valid = length == (ssize_t)sizeof message && message.version == HF_SUPERVISE_VERSION &&
                 message.grace_ms <= HF_SUPERVISE_MAX_GRACE_MS;
    stop(supervisor, valid ? message.grace_ms : 0);
}

/* Waits at most timeout_ms (-1: for ever) for a SIGCHLD or, unless in teardown, for the control socket. */
static void wait_for_event(struct supervisor *supervisor, int timeout_ms, bool with_control)
{
    struct signalfd_siginfo info;
    struct pollfd fds[2] = {
        {.fd = supervisor->signal_fd, .events = POLLIN},
        {.fd = with_control ? supervisor->control_fd : -1, .events = POLLIN},
    };

    if (poll(fds, 2, supervisor->more_zombies ? 0 : timeout_ms) < 0)
        return;
    if (fds[0].revents != 0 && read(supervisor->signal_fd, &info, sizeof info) < 0)
        return;
    if (fds[1].revents != 0 && supervisor->control_fd >= 0) {
        reap(supervisor); /* an end that came first is the child's own, not the stop's */
        if (!supervisor->main_ended || supervisor->wait_for_descendants)
            read_control(supervisor);
    }
}

static bool is_over(const struct supervisor *supervisor)
{
    if (supervisor->main_ended && (supervisor->childless || !supervisor->wait_for_descendants))
        return true;
    return supervisor->stop_requested && tree_now_ms() >= supervisor->stop_deadline_ms;
}

static void supervise(struct supervisor *supervisor)
{
    for (;;) {
        siginfo_t info = {0};
        /* Freeze the group of a main child that has ended before its number is given up by reaping it. */
        if (!supervisor->wait_for_descendants && !supervisor->main_ended &&
            waitid(P_PID, (id_t)supervisor->main_pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
            signal_main_group(supervisor, SIGSTOP);
        reap(supervisor);
        if (is_over(supervisor))
            return;
        wait_for_event(supervisor, supervisor->stop_requested ? until_ms(supervisor->stop_deadline_ms) : -1, true);
    }
}

/* ---- teardown ---- */

static uint64_t earlier(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* Drains the zombies for a moment only: while anything still runs, it may make them faster than we reap. */
static bool nothing_left(struct supervisor *supervisor)
{
    uint64_t end_ms = tree_now_ms() + REAP_STEP_MS;

    do {
        reap(supervisor);
    } while (supervisor->more_zombies && tree_now_ms() < end_ms);
    return supervisor->childless && !cgroup_is_populated(&supervisor->cgroup);
}

/* One system call each: nobody in the cgroup forks between freeze and kill. Processes are counted in between. */
static void kill_cgroup(struct supervisor *supervisor, uint64_t deadline_ms)
{
    uint64_t freeze_deadline_ms = earlier(tree_now_ms() + FREEZE_BUDGET_MS, deadline_ms);

    if (!cgroup_freeze(&supervisor->cgroup, true))
        return;
    while (!cgroup_is_frozen(&supervisor->cgroup) && tree_now_ms() < freeze_deadline_ms)
        wait_for_event(supervisor, FREEZE_STEP_MS, false);
    do { /* a process that was already exiting when the freeze came hands its children on during the first look */
        tree_scan(supervisor->tree, 0, deadline_ms);
    } while (supervisor->tree->moved && tree_now_ms() < freeze_deadline_ms);
    cgroup_kill(&supervisor->cgroup);
    cgroup_freeze(&supervisor->cgroup, false); /* a thawed process can be stopped and seen stopped below */
}

/* Whatever the cgroup did not reach, or everything where there is none: stop all, look until nothing new appears, kill.
 */
static void kill_tree(struct supervisor *supervisor, uint64_t deadline_ms)
{
    uint64_t freeze_deadline_ms = earlier(tree_now_ms() + FREEZE_BUDGET_MS, deadline_ms);

    /* Nothing is reaped meanwhile: zombies do no harm, and a tree that has used up all pids stands still. */
    for (;;) {
        uint32_t known = supervisor->tree->process_count;
        if (tree_scan(supervisor->tree, SIGSTOP, deadline_ms) || tree_now_ms() >= freeze_deadline_ms)
            break;
        if (supervisor->tree->process_count == known) /* nobody forks: give the signals a moment to take effect */
            wait_for_event(supervisor, FREEZE_STEP_MS, false);
    }
    tree_signal(supervisor->tree, SIGKILL);
}

static bool wait_until_nothing_left(struct supervisor *supervisor, uint64_t deadline_ms)
{
    while (!nothing_left(supervisor)) {
        if (tree_now_ms() >= deadline_ms)
            return false;
        /* An empty cgroup announces itself a moment after the last process is reaped, without any SIGCHLD. */
        wait_for_event(supervisor, supervisor->childless ? 1 : until_ms(deadline_ms), false);
    }
    return true;
}

/* Kills and reaps every descendant. Returns how many are still alive at the deadline. */
static uint32_t tear_down(struct supervisor *supervisor)
{
    uint64_t deadline_ms = tree_now_ms() + HF_CHILD_REAP_DEADLINE_MS;

    signal_main_group(supervisor, SIGSTOP);
    if (nothing_left(supervisor))
        return 0;
    do {
        kill_cgroup(supervisor, deadline_ms);
        if (wait_until_nothing_left(supervisor, earlier(tree_now_ms() + REAP_STEP_MS, deadline_ms)))
            return 0;
        kill_tree(supervisor, deadline_ms);
        if (wait_until_nothing_left(supervisor, earlier(tree_now_ms() + REAP_STEP_MS, deadline_ms)))
            return 0;
    } while (tree_now_ms() < deadline_ms);
    /* Somebody is left, even where no file tells who. */
    uint32_t survivors = tree_survivors(supervisor->tree);
    return survivors > 0 ? survivors : 1;
}

/* ---- report ---- */

static uint64_t children_cpu_ms(void)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static void send_report(const struct supervisor *supervisor, int start_errno, uint32_t survivors)
{
    struct hf_supervise_report report = {
        .version = HF_SUPERVISE_VERSION, .size = sizeof report, .start_errno = start_errno, .survivors = survivors};

    report.flags |= start_errno == 0 ? HF_SUPERVISE_STARTED : 0;
    report.flags |= survivors == 0 ? HF_SUPERVISE_TEARDOWN_COMPLETE : 0;
    report.flags |= supervisor->stop_requested ? HF_SUPERVISE_STOP_REQUESTED : 0;
    report.flags |= supervisor->cgroup_used ? HF_SUPERVISE_CGROUP_USED : 0;
    if (start_errno == 0) {
        if (supervisor->main_ended && WIFEXITED(supervisor->main_status)) {
            report.flags |= HF_SUPERVISE_EXITED;
            report.exit_code = WEXITSTATUS(supervisor->main_status);
        } else if (supervisor->main_ended) {
            report.term_signal = WTERMSIG(supervisor->main_status);
        }
        report.descendants_killed = supervisor->tree->descendants_seen;
        report.duration_ms = tree_now_ms() - supervisor->start_ms;
        report.cpu_ms = children_cpu_ms();
    }
    if (supervisor->control_fd >= 0)
        send(supervisor->control_fd, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- set-up ---- */

/* Signal state that the caller had (ignored, blocked) reaches neither us, who need SIGCHLD, nor the program. All
 * signals stay blocked here: those of a terminal or of a service manager are meant for the caller, whose end we notice.
 */
static int reset_signals(void)
{
    sigset_t all, child;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int parse_arguments(int argc, char **argv, unsigned *extra_fds, bool *wait_for_descendants)
{
    if (argc < 6 || strcmp(argv[1], HF_SUPERVISE_VERSION_TEXT) != 0 || strcmp(argv[4], "--") != 0)
        return -1;
    if (argv[2][0] < '0' || argv[2][0] > '0' + HF_CHILD_MAX_EXTRA_FDS || argv[2][1] != '\0')
        return -1;
    *extra_fds = (unsigned)(argv[2][0] - '0');
    *wait_for_descendants = strcmp(argv[3], "wait") == 0;
    return *wait_for_descendants || strcmp(argv[3], "once") == 0 ? 0 : -1;
}

static int set_up(struct supervisor *supervisor, unsigned extra_fds)
{
    close_range(HF_SUPERVISE_CONTROL_FD + 1, ~0U, 0);
    if (fcntl(HF_SUPERVISE_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0)
        return -1;
    /* Occupy the numbers that the program does not use, so that none of our own descriptors lands below the control
     * socket, where main() closes everything once the program has been forked. */
    for (int fd = 3 + (int)extra_fds; fd < HF_SUPERVISE_CONTROL_FD; fd++) {
        if (dup3(HF_SUPERVISE_CONTROL_FD, fd, O_CLOEXEC) < 0)
            return -1;
    }
    supervisor->signal_fd = reset_signals();
    if (supervisor->signal_fd < 0)
        return -1;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return -1;
    /* The program may run as our user: it shall not be able to stop us unheard (the caller's death wakes us) or to
     * trace us and forge the report. */
    prctl(PR_SET_PDEATHSIG, SIGCONT);
    prctl(PR_SET_DUMPABLE, 0);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned extra_fds;
    struct supervisor supervisor = {
        .pid = getpid(), .exec_status_fd = -1, .control_fd = HF_SUPERVISE_CONTROL_FD, .tree = &process_tree};

    if (parse_arguments(argc, argv, &extra_fds, &supervisor.wait_for_descendants) < 0) {
        fprintf(
            stderr, HF_SUPERVISE_PROGRAM
            ": expected VERSION EXTRA_FDS once|wait -- PROGRAM [ARGUMENT...] with version " HF_SUPERVISE_VERSION_TEXT
            "; this program is started by the holdfast programs only\n");
        return USAGE_STATUS;
    }
    if (set_up(&supervisor, extra_fds) < 0)
        return USAGE_STATUS;
    cgroup_create(&supervisor.cgroup);
    int start_errno = start_program(&supervisor, argv + 5);
    uint32_t survivors = 0;
    supervisor.cgroup_used = supervisor.cgroup.fd >= 0;
    close_range(0, HF_SUPERVISE_CONTROL_FD - 1, 0); /* the program's stdio: its readers shall see its end, not ours */
    if (start_errno == 0) {
        setpriority(PRIO_PROCESS, 0, -20); /* where allowed: a hundred forking processes must not starve their end */
        tree_init(supervisor.tree, supervisor.pid, supervisor.main_pid);
        cgroup_sweep(&supervisor.cgroup);
        supervise(&supervisor);
        survivors = tear_down(&supervisor);
        if (read(supervisor.exec_status_fd, &start_errno, sizeof start_errno) != (ssize_t)sizeof start_errno)
            start_errno = 0;
    }
    if (survivors == 0)
        cgroup_remove(&supervisor.cgroup);
    send_report(&supervisor, start_errno, survivors);
    /* The deadline is the report's. What outlived it is an incident for the caller, and still not free to go. */
    for (int attempt = 0; survivors > 0 && attempt < ATTEMPTS_AFTER_REPORT; attempt++)
        survivors = tear_down(&supervisor);
    cgroup_remove(&supervisor.cgroup);
    return 0;
}
