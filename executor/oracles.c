/* The executor's side of the watchdog; see oracles.h. */
#include "executor/oracles.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/digest.h"
#include "common/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CLOSE_DEADLINE_MS = 2000, SEQUENCE_UNASKED = 0 };

void oracles_init(struct oracles *oracles)
{
    memset(oracles, 0, sizeof *oracles);
    hf_child_init(&oracles->child);
    oracles->socket_fd = oracles->canary_dirfd = oracles->interrupt_fd = -1;
    oracles->state.host_canary_intact = 1;
}

bool oracles_violated(const struct oracles *oracles)
{
    return !oracles->state.host_canary_intact || oracles->state.network_canary_connections > 0;
}

/* The watchdog is gone, so its canary is looked at here a last time: a missing witness must not hide a violation. */
static void look_at_canary(struct oracles *oracles)
{
    char sha256[HF_SHA256_HEX_SIZE] = "";
    if (oracles->canary_dirfd < 0)
        return;
    cleanup_close int fd =
        openat(oracles->canary_dirfd, WATCHDOG_CANARY_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || hf_sha256_fd(fd, 1 << 20, sha256, NULL, NULL) != 0 ||
        strcmp(sha256, oracles->state.host_canary_sha256) != 0)
        oracles->state.host_canary_intact = 0;
}

static void lose(struct oracles *oracles, const char *why)
{
    if (oracles->lost[0] != '\0')
        return;
    snprintf(oracles->lost, sizeof oracles->lost, "oracle-unavailable: %.450s", why);
    look_at_canary(oracles);
}

/* Merges one word of the watchdog into the worst of all. */
static void take(struct oracles *oracles, struct watchdog_state *said)
{
    struct watchdog_state *worst = &oracles->state;
    said->host_canary_sha256[sizeof said->host_canary_sha256 - 1] = '\0';
    said->watchdog_error[sizeof said->watchdog_error - 1] = '\0';
    said->network_canary_error[sizeof said->network_canary_error - 1] = '\0';
    bool intact = worst->host_canary_intact && said->host_canary_intact;
    uint64_t connections = said->network_canary_connections;
    if (connections < worst->network_canary_connections)
        connections = worst->network_canary_connections;
    *worst = *said;
    worst->host_canary_intact = intact;
    worst->network_canary_connections = connections < WATCHDOG_MAX_CONNECTIONS ? connections : WATCHDOG_MAX_CONNECTIONS;
    oracles->heard_mono_ms = hf_clock_mono_ms();
    if (worst->watchdog_error[0] != '\0')
        lose(oracles, worst->watchdog_error);
    if (worst->network_canary_error[0] != '\0')
        lose(oracles, worst->network_canary_error);
}

/* One message if there is one. 1: taken (its sequence in *sequence), 0: none, -1: the watchdog is gone. */
static int receive(struct oracles *oracles, uint32_t *sequence)
{
    struct watchdog_state said;
    ssize_t length = recv(oracles->socket_fd, &said, sizeof said, MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (length == (ssize_t)sizeof said && said.version == WATCHDOG_MESSAGE_VERSION) {
        *sequence = said.sequence;
        take(oracles, &said);
        return 1;
    }
    lose(oracles, length <= 0 ? "the watchdog ended" : "the watchdog sent a message of another version");
    return -1;
}

void oracles_listen(struct oracles *oracles)
{
    uint32_t sequence;
    if (!oracles->started || oracles->state.closed)
        return;
    int got = 1;
    while (got == 1 && oracles->lost[0] == '\0')
        got = receive(oracles, &sequence);
    uint64_t silent_ms = hf_clock_mono_ms() - oracles->heard_mono_ms;
    if (silent_ms > ORACLES_ANSWER_DEADLINE_MS) {
        char why[128];
        snprintf(why, sizeof why, "the watchdog has not sampled for %" PRIu64 " ms (it samples every %d ms)", silent_ms,
                 WATCHDOG_SAMPLE_INTERVAL_MS);
        lose(oracles, why);
    }
}

bool oracles_object(void *context)
{
    struct oracles *oracles = context;
    oracles_listen(oracles);
    return oracles_violated(oracles) || oracles->lost[0] != '\0';
}

/* Waits for the answer to `sequence` (SEQUENCE_UNASKED: for the first word). */
static int await(struct oracles *oracles, uint32_t sequence, uint64_t deadline_ms, int interrupt_fd,
                 struct hf_error *err)
{
    while (oracles->lost[0] == '\0') {
        uint64_t now_ms = hf_clock_mono_ms();
        uint32_t seen;
        int got = receive(oracles, &seen);
        if (got == 1 && seen == sequence)
            return 0;
        if (got != 0)
            continue;
        if (now_ms >= deadline_ms) {
            lose(oracles, "the watchdog did not answer in time");
            break;
        }
        struct pollfd polls[] = {{.fd = oracles->socket_fd, .events = POLLIN}, {.fd = interrupt_fd, .events = POLLIN}};
        if (poll(polls, 2, (int)(deadline_ms - now_ms)) > 0 && polls[1].revents)
            return hf_error_set(err, "interrupted", 0, "", "interrupted while the watchdog was asked");
    }
    return 0;
}

static int ask(struct oracles *oracles, uint32_t kind, const char *directory, uint32_t timeout_ms, int interrupt_fd,
               struct hf_error *err)
{
    struct watchdog_request request = {
        .version = WATCHDOG_MESSAGE_VERSION, .kind = kind, .sequence = ++oracles->sequence};
    if (oracles->lost[0] != '\0')
        return 0;
    int length = snprintf(request.directory, sizeof request.directory, "%s", directory ? directory : "");
    if (length >= (int)sizeof request.directory)
        lose(oracles, "the directory for a canary has too long a name");
    else if (send(oracles->socket_fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof request)
        lose(oracles, "the watchdog no longer listens");
    return await(oracles, request.sequence, hf_clock_mono_ms() + timeout_ms, interrupt_fd, err);
}

int oracles_sample(struct oracles *oracles, struct hf_error *err)
{
    return ask(oracles, WATCHDOG_SAMPLE, NULL, ORACLES_ANSWER_DEADLINE_MS, oracles->interrupt_fd, err);
}

int oracles_plant(struct oracles *oracles, const char *directory, struct hf_error *err)
{
    return ask(oracles, WATCHDOG_PLANT, directory, ORACLES_ANSWER_DEADLINE_MS, oracles->interrupt_fd, err);
}

int oracles_retire(struct oracles *oracles, struct hf_error *err)
{
    return ask(oracles, WATCHDOG_RETIRE, NULL, ORACLES_ANSWER_DEADLINE_MS, oracles->interrupt_fd, err);
}

static int start_child(struct oracles *oracles, const struct oracles_options *options, int watchdog_end,
                       struct hf_error *err)
{
    char seed[24], pid[16];
    snprintf(seed, sizeof seed, "%" PRId64, options->seed);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    const char *argv[] = {options->program, "--run-dir", options->run_dir, "--run-id", options->run_id,
                          "--seed",         seed,        "--executor-pid", pid,        NULL};
    cleanup_close int log_fd = openat(options->run_dirfd, "watchdog.stderr.log",
                                      O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (log_fd < 0)
        return hf_error_set(err, "oracle-unavailable", errno, "", "cannot create watchdog.stderr.log: %s",
                            strerror(errno));
    struct hf_child_spec spec = {.argv = argv,
                                 .envp = options->envp,
                                 .cwd = "/",
                                 .stdin_fd = HF_CHILD_NULL,
                                 .stdout_fd = HF_CHILD_NULL,
                                 .stderr_fd = log_fd,
                                 .extra_fds = {watchdog_end, -1, -1, -1},
                                 .extra_fd_count = 1};
    return hf_child_start(&spec, &oracles->child, err);
}

int oracles_start(struct oracles *oracles, const struct oracles_options *options, struct hf_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return hf_error_set(err, "oracle-unavailable", errno, "", "socketpair: %s", strerror(errno));
    oracles->socket_fd = pair[0];
    oracles->interrupt_fd = options->interrupt_fd;
    int status = start_child(oracles, options, pair[1], err);
    close(pair[1]);
    if (status != 0)
        return -1;
    oracles->started = true;
    oracles->heard_mono_ms = hf_clock_mono_ms();
    if (await(oracles, SEQUENCE_UNASKED, oracles->heard_mono_ms + ORACLES_START_DEADLINE_MS, options->interrupt_fd,
              err) != 0)
        return -1;
    if (oracles->lost[0] != '\0')
        return hf_error_set(err, "oracle-unavailable", 0, "",
                            "the watchdog did not get ready (%s); its reason is in watchdog.stderr.log of the run",
                            oracles->lost);
    oracles->canary_dirfd = hf_dir_open(options->run_dirfd, "canary", false, err);
    return oracles->canary_dirfd < 0 ? -1 : 0;
}

void oracles_close(struct oracles *oracles)
{
    if (!oracles->started)
        return;
    struct hf_error ignored; /* no interrupt here: closing is what an interrupt asks for, and it is bounded */
    if (!oracles->state.closed)
        ask(oracles, WATCHDOG_CLOSE, NULL, CLOSE_DEADLINE_MS, -1, &ignored);
    hf_child_stop(&oracles->child, 0);
    struct pollfd ended = {.fd = oracles->child.control_fd, .events = POLLIN};
    struct hf_child_report report;
    if (poll(&ended, 1, CLOSE_DEADLINE_MS) == 1)
        hf_child_read_report(&oracles->child, &report, &ignored);
    hf_child_clear(&oracles->child);
    close(oracles->socket_fd);
    if (oracles->canary_dirfd >= 0)
        close(oracles->canary_dirfd);
    oracles->socket_fd = oracles->canary_dirfd = -1;
    oracles->started = false;
}
