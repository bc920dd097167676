/*
 * A child with any kind of bad manners: process_probe BEHAVIOUR [NUMBER]. Started, contained, by the tests of
 * common/process. Every behaviour ends by itself after LIFETIME_S, so that a failing test leaves nothing behind.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIFETIME_S 30

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static _Noreturn void linger(void)
{
    time_t end = now_s() + LIFETIME_S;
    while (now_s() < end)
        sleep(1);
    _exit(0);
}

static _Noreturn void do_exit(long number)
{
    exit((int)number);
}

static _Noreturn void do_signal(long number)
{
    kill(getpid(), (int)number);
    linger();
}

static _Noreturn void do_linger(long number)
{
    (void)number;
    linger();
}

/* Announces itself on stdout; TERM changes nothing. */
static _Noreturn void do_ignore_term(long number)
{
    (void)number;
    signal(SIGTERM, SIG_IGN);
    puts("ready");
    fflush(stdout);
    linger();
}

static void on_term(int number)
{
    (void)number;
    _exit(3);
}

/* Exits 3 on TERM, but stops itself first. */
static _Noreturn void do_stopped(long number)
{
    (void)number;
    signal(SIGTERM, on_term);
    puts("ready");
    fflush(stdout);
    raise(SIGSTOP);
    linger();
}

/* Double fork with setsid; the parent ends normally. */
static _Noreturn void do_daemon(long number)
{
    for (long i = 0; i < number; i++) {
        if (fork() == 0) {
            setsid();
            if (fork() == 0)
                linger();
            _exit(0);
        }
        wait(NULL);
    }
    exit(0);
}

/* `number` daemons at once that keep forking: each generation forks the next in a session of its own and exits. */
static _Noreturn void do_hop(long number)
{
    time_t end = now_s() + LIFETIME_S;
    signal(SIGCHLD, SIG_IGN);
    for (long i = 0; i < number; i++) {
        if (fork() != 0)
            continue;
        while (now_s() < end) {
            pid_t pid = fork();
            if (pid > 0)
                _exit(0);
            if (pid == 0)
                setsid();
        }
        _exit(0);
    }
    exit(0);
}

/* A classical fork bomb: up to `number` processes, each forking as fast as it can. */
static _Noreturn void do_bomb(long number)
{
    atomic_long *alive = mmap(NULL, sizeof *alive, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    time_t end = now_s() + LIFETIME_S;
    pid_t first = getpid();
    if (alive == MAP_FAILED)
        exit(9);
    signal(SIGCHLD, SIG_IGN);
    while (now_s() < end) {
        if (atomic_fetch_add(alive, 1) >= number || fork() < 0) {
            atomic_fetch_sub(alive, 1);
            if (getpid() != first && getpid() % 3 == 0) {
                atomic_fetch_sub(alive, 1);
                _exit(0);
            }
        }
    }
    _exit(0);
}

static void *fork_in_thread(void *unused)
{
    (void)unused;
    if (fork() == 0) {
        setsid();
        linger();
    }
    for (;;)
        pause();
}

/* Children of a thread that is not the main one; with number 1 the main thread is gone as well. */
static _Noreturn void do_thread(long number)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fork_in_thread, NULL);
    if (number == 1)
        pthread_exit(NULL);
    linger();
}

/* A descendant that adopts orphans itself. */
static _Noreturn void do_subreaper(long number)
{
    (void)number;
    if (fork() == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        do_daemon(3);
    }
    if (fork() == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (fork() == 0) {
            if (fork() == 0)
                linger();
            _exit(0);
        }
        linger();
    }
    usleep(50000);
    exit(0);
}

/* A parent that vfork(2)ed stands in the kernel until its child is gone: it can never be stopped. */
static _Noreturn void do_vfork(long number)
{
    (void)number;
    if (fork() == 0) {
        if (vfork() == 0) {
            for (;;)
                pause();
        }
        _exit(0);
    }
    usleep(50000);
    exit(0);
}

/* Wakes its stopped sibling again and again. */
static _Noreturn void do_waker(long number)
{
    pid_t sibling = fork();
    (void)number;
    if (sibling == 0)
        linger();
    if (fork() == 0) {
        time_t end = now_s() + LIFETIME_S;
        setsid();
        while (now_s() < end)
            kill(sibling, SIGCONT);
        _exit(0);
    }
    exit(0);
}

static _Noreturn void do_flood(long bytes)
{
    static char chunk[65536];
    memset(chunk, 'x', sizeof chunk);
    for (long left = bytes; left > 0;) {
        ssize_t written = write(1, chunk, left < (long)sizeof chunk ? (size_t)left : sizeof chunk);
        if (written <= 0)
            exit(9);
        left -= written;
    }
    exit(0);
}

static _Noreturn void do_close_stdio(long number)
{
    (void)number;
    close(0);
    close(1);
    close(2);
    usleep(200000);
    exit(5);
}

/* Exits with the number of bytes on stdin modulo 251. */
static _Noreturn void do_count_stdin(long number)
{
    static char chunk[65536];
    long total = 0;
    ssize_t length;
    (void)number;
    while ((length = read(0, chunk, sizeof chunk)) > 0)
        total += length;
    exit((int)(total % 251));
}

/* What the program was given: descriptors, signals, session. */
static _Noreturn void do_describe(long number)
{
    sigset_t mask;
    int blocked = 0, ignored = 0;
    (void)number;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 32; i++) {
        blocked += sigismember(&mask, i) == 1;
        ignored += i != SIGKILL && i != SIGSTOP && signal(i, SIG_DFL) == SIG_IGN;
    }
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            printf("fd%d ", fd);
    }
    printf("blocked=%d ignored=%d leader=%d\n", blocked, ignored, getsid(0) == getpid());
    exit(0);
}

static _Noreturn void do_signal_supervisor(long number)
{
    kill(getppid(), (int)number);
    puts("ready");
    fflush(stdout);
    linger();
}

static _Noreturn void do_kill_supervisor_and_fork(long number)
{
    pid_t supervisor = getppid();
    (void)number;
    if (fork() == 0)
        linger();
    kill(supervisor, SIGKILL);
    linger();
}

static const struct {
    const char *name;
    void (*run)(long number);
} behaviours[] = {
    {"exit", do_exit},
    {"signal", do_signal},
    {"linger", do_linger},
    {"ignore-term", do_ignore_term},
    {"stopped", do_stopped},
    {"daemon", do_daemon},
    {"hop", do_hop},
    {"bomb", do_bomb},
    {"thread", do_thread},
    {"subreaper", do_subreaper},
    {"vfork", do_vfork},
    {"waker", do_waker},
    {"flood", do_flood},
    {"close-stdio", do_close_stdio},
    {"count-stdin", do_count_stdin},
    {"describe", do_describe},
    {"signal-supervisor", do_signal_supervisor},
    {"kill-supervisor-and-fork", do_kill_supervisor_and_fork},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof behaviours / sizeof behaviours[0]; i++) {
        if (strcmp(argv[1], behaviours[i].name) == 0)
            behaviours[i].run(argc > 2 ? strtol(argv[2], NULL, 10) : 0);
    }
    fprintf(stderr, "expected a behaviour of tests/unit/process/probe.c\n");
    return 64;
}
