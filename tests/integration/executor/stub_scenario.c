/*
 * The scenario program of the `stub` profile (tests/data/profiles/stub.json): behaves well, or misbehaves in exactly
 * one way that its --scenario names. Started by a real holdfast-executor in the tests of this folder; it starts no VM,
 * and the "VMM" in its pid journal is a child that it reaps.
 *
 * The directory named by HOLDFAST_STUB_CONTROL is how a test talks to it: `boot` names the behaviour of the canary VM,
 * `verify` that of the verify command, `state` the executor's state directory, `port` the network canary's port, `pid`
 * a process to put into the journal, `swap` a file to replace.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const char *output_dir;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(99);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        die("cannot write %s: %s", path, strerror(errno));
}

static void write_report(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", output_dir, name);
    write_text(path, text);
}

static bool read_control(const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    const char *directory = getenv("HOLDFAST_STUB_CONTROL");
    snprintf(path, sizeof path, "%s/%s", directory ? directory : "/nonexistent", name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(out, 1, size - 1, file);
    fclose(file);
    out[length] = '\0';
    return true;
}

static void journal_line(const char *line)
{
    const char *path = getenv("HOLDFAST_STUB_PID_JOURNAL");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file || fputs(line, file) < 0 || fclose(file) != 0)
        die("cannot write the pid journal");
}

static void journal_pid(pid_t pid)
{
    char line[128];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(line, sizeof line, "{\"pid\":%d,\"recorded_at_ns\":%lld}\n", (int)pid,
             (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    journal_line(line);
}

/* A short-lived process in the place of a VMM. */
static void run_vmm(void)
{
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid == 0)
        _exit(0);
    journal_pid(pid);
    waitpid(pid, NULL, 0);
}

static const char GOOD_REPORT[] = "{\"schema_version\":1,\"status\":\"passed\",\"teardown\":{\"process_gone\":true}}";

static int passes(void)
{
    run_vmm();
    printf("stub console\n");
    write_report("outcome.json", GOOD_REPORT);
    return 0;
}

static int exits_seven(void)
{
    passes();
    return 7;
}

static int kills_itself(void)
{
    passes();
    raise(SIGKILL);
    return 98;
}

static int hangs(void)
{
    run_vmm();
    printf("about to hang\n");
    fflush(stdout);
    while (pause() == -1)
        continue;
    return 97;
}

static int ignores_term(void)
{
    signal(SIGTERM, SIG_IGN);
    return hangs();
}

static int forks_daemon(void)
{
    passes();
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            for (;;)
                pause();
        _exit(0);
    }
    usleep(100000);
    return 0;
}

static int lists_live_pid(void)
{
    char text[32];
    if (!read_control("pid", text, sizeof text))
        die("the test did not name a pid");
    passes();
    journal_pid((pid_t)strtol(text, NULL, 10));
    return 0;
}

static int garbles_journal(void)
{
    passes();
    journal_line("{\"pid\":1,\"recorded_at_ns\":1,\"extra\":1}\n");
    return 0;
}

/* The session's canary is found as an escaped guest would find it: by looking around from where it is. */
static void canary_path(char out[PATH_MAX])
{
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%s", output_dir);
    for (char *slash; (slash = strrchr(above, '/'));) {
        *slash = '\0';
        if (snprintf(out, PATH_MAX, "%s/canary/host-canary.bin", above) < PATH_MAX && access(out, F_OK) == 0)
            return;
    }
    die("no host canary above %s", output_dir);
}

static void overwrite(const char *path, bool restore)
{
    unsigned char first;
    struct stat status;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || pread(fd, &first, 1, 0) != 1)
        die("cannot open %s: %s", path, strerror(errno));
    const unsigned char other = (unsigned char)(first ^ 0xff);
    if (pwrite(fd, &other, 1, 0) != 1 || (restore && pwrite(fd, &first, 1, 0) != 1))
        die("cannot write %s: %s", path, strerror(errno));
    const struct timespec times[2] = {status.st_atim, status.st_mtim};
    if (restore && futimens(fd, times) != 0)
        die("cannot set times of %s: %s", path, strerror(errno));
    close(fd);
}

static int writes_canary(void)
{
    char path[PATH_MAX];
    canary_path(path);
    overwrite(path, false);
    return passes();
}

static int restores_canary(void)
{
    char path[PATH_MAX];
    canary_path(path);
    overwrite(path, true);
    return passes();
}

static int replaces_canary(void)
{
    char path[PATH_MAX], copy[PATH_MAX + 8];
    char bytes[4096];
    canary_path(path);
    snprintf(copy, sizeof copy, "%s.copy", path);
    int from = open(path, O_RDONLY | O_CLOEXEC), to = open(copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (from < 0 || to < 0 || read(from, bytes, sizeof bytes) != sizeof bytes ||
        write(to, bytes, sizeof bytes) != sizeof bytes || rename(copy, path) != 0)
        die("cannot replace %s: %s", path, strerror(errno));
    close(from);
    close(to);
    return passes();
}

static int writes_tripwire(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/../host-canary.bin", output_dir);
    overwrite(path, false);
    return passes();
}

static void connect_to_canary(void)
{
    char text[32];
    if (!read_control("port", text, sizeof text))
        die("the test did not name the port");
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(text, NULL, 10)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("cannot connect to the network canary: %s", strerror(errno));
    close(fd);
}

static int connects(void)
{
    connect_to_canary();
    return passes();
}

static int connects_late(void)
{
    int status = passes();
    fflush(stdout);
    connect_to_canary();
    _exit(status);
}

static int false_teardown(void)
{
    run_vmm();
    write_report("outcome.json", "{\"vms\":[{\"teardown\":{\"process_gone\":true,\"sockets_removed\":false}}]}");
    return 0;
}

static int omits_report(void)
{
    run_vmm();
    return 0;
}

static int oversizes_report(void)
{
    passes();
    char *text = malloc(1200001);
    memset(text, ' ', 1200000);
    text[1200000] = '\0';
    memcpy(text, GOOD_REPORT, sizeof GOOD_REPORT - 1);
    write_report("extra-report.json", text);
    free(text);
    return 0;
}

static int links_report(void)
{
    char path[PATH_MAX];
    run_vmm();
    write_report("real.txt", GOOD_REPORT);
    snprintf(path, sizeof path, "%s/outcome.json", output_dir);
    if (symlink("real.txt", path) != 0)
        die("symlink: %s", strerror(errno));
    return 0;
}

static int garbles_report(void)
{
    run_vmm();
    write_report("outcome.json", "{\"teardown\":{\"process_gone\":true},\"teardown\":{\"process_gone\":true}}");
    return 0;
}

static int floods(void)
{
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 20 * 16; i++)
        fwrite(block, 1, sizeof block, stdout);
    return passes();
}

/* The watchdog of this session, found by its command line. */
static pid_t find_watchdog(void)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    while (processes && (entry = readdir(processes))) {
        char path[PATH_MAX], text[4096], *run_dir;
        snprintf(path, sizeof path, "/proc/%.20s/cmdline", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        if (length <= 0)
            continue;
        text[length] = '\0';
        size_t name = strlen(text), suffix = strlen("holdfast-watchdog");
        if (name < suffix || strcmp(text + name - suffix, "holdfast-watchdog") != 0)
            continue;
        run_dir = text + name + 1 + strlen("--run-dir") + 1;
        if (run_dir < text + length && strncmp(output_dir, run_dir, strlen(run_dir)) == 0)
            return (pid_t)strtol(entry->d_name, NULL, 10);
    }
    die("the watchdog was not found");
}

static int signal_watchdog(int signal_number)
{
    int status = passes();
    if (kill(find_watchdog(), signal_number) != 0)
        die("kill: %s", strerror(errno));
    fflush(stdout);
    sleep(signal_number == SIGSTOP ? 8 : 1);
    return status;
}

static int kills_watchdog(void)
{
    return signal_watchdog(SIGKILL);
}

static int stops_watchdog(void)
{
    return signal_watchdog(SIGSTOP);
}

static int swaps_artifact(void)
{
    char path[PATH_MAX];
    if (!read_control("swap", path, sizeof path))
        die("the test did not name a file");
    write_text(path, "another kernel");
    return passes();
}

static int fails_later(void)
{
    const char *repetition = strstr(output_dir, "rep-");
    int status = passes();
    return repetition && repetition[4] == '2' ? 3 : status;
}

static int shows_environment(void)
{
    for (char **variable = environ; *variable; variable++)
        puts(*variable);
    return passes();
}

static int takes_two_seconds(void)
{
    sleep(2);
    return passes();
}

/* verify is told no directory of the run; a tree that is not to be trusted would look for it. */
static void overwrite_canary_of_first_run(void)
{
    char state[PATH_MAX - 64], path[PATH_MAX];
    if (!read_control("state", state, sizeof state))
        die("the test named no state directory");
    snprintf(path, sizeof path, "%s/run-1/canary/host-canary.bin", state);
    overwrite(path, false);
}

static int verify(void)
{
    char behaviour[32];
    if (!read_control("verify", behaviour, sizeof behaviour))
        return 0;
    if (strcmp(behaviour, "fails") == 0) {
        fprintf(stderr, "kernel is not there\n");
        return 5;
    }
    if (strcmp(behaviour, "writes-canary") == 0)
        overwrite_canary_of_first_run();
    if (strcmp(behaviour, "ignores-term") == 0)
        signal(SIGTERM, SIG_IGN);
    while (pause() == -1)
        continue;
    return 97;
}

struct behaviour {
    const char *name;
    int (*perform)(void);
};

static const struct behaviour BEHAVIOURS[] = {
    {"passes", passes},
    {"exits-seven", exits_seven},
    {"kills-itself", kills_itself},
    {"hangs", hangs},
    {"ignores-term", ignores_term},
    {"forks-daemon", forks_daemon},
    {"lists-live-pid", lists_live_pid},
    {"garbles-journal", garbles_journal},
    {"writes-canary", writes_canary},
    {"restores-canary", restores_canary},
    {"replaces-canary", replaces_canary},
    {"writes-tripwire", writes_tripwire},
    {"connects", connects},
    {"connects-late", connects_late},
    {"false-teardown", false_teardown},
    {"omits-report", omits_report},
    {"oversizes-report", oversizes_report},
    {"links-report", links_report},
    {"garbles-report", garbles_report},
    {"floods", floods},
    {"kills-watchdog", kills_watchdog},
    {"stops-watchdog", stops_watchdog},
    {"swaps-artifact", swaps_artifact},
    {"fails-later", fails_later},
    {"shows-environment", shows_environment},
    {"takes-two-seconds", takes_two_seconds},
    {"verify", verify},
};

int main(int argc, char **argv)
{
    char boot[64];
    const char *scenario = "";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--scenario") == 0)
            scenario = argv[i + 1];
        if (strcmp(argv[i], "--output-dir") == 0)
            output_dir = argv[i + 1];
    }
    if (strcmp(scenario, "boot") == 0)
        scenario = read_control("boot", boot, sizeof boot) ? boot : "passes";
    for (size_t i = 0; i < sizeof BEHAVIOURS / sizeof BEHAVIOURS[0]; i++)
        if (strcmp(BEHAVIOURS[i].name, scenario) == 0)
            return BEHAVIOURS[i].perform();
    die("unknown scenario %s", scenario);
}
