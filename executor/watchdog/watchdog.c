/* The watchdog's loop; see watchdog.h. One thread and one poll(2); it waits for nobody but, with an answer, for the
 * executor that asked. */
#include "executor/watchdog/watchdog.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "executor/watchdog/record.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SESSION_CANARY = 0, REPETITION_CANARY = 1 };
enum { POLL_CONTROL, POLL_INOTIFY, POLL_LISTENER_V4, POLL_LISTENER_V6, POLL_COUNT };

static int open_run_dir(struct watchdog *watchdog, const char *run_dir, struct hf_error *err)
{
    watchdog->run_dirfd = hf_dir_open(AT_FDCWD, run_dir, false, err);
    if (watchdog->run_dirfd < 0)
        return -1;
    if (hf_journal_open(&watchdog->samples, watchdog->run_dirfd, "watchdog-samples.jsonl", err) != 0 ||
        hf_journal_open(&watchdog->access, watchdog->run_dirfd, "canary-access.jsonl", err) != 0)
        return -1;
    cleanup_close int canary_dir = hf_dir_open(watchdog->run_dirfd, "canary", true, err);
    if (canary_dir < 0)
        return -1;
    return host_canary_plant(&watchdog->host, SESSION_CANARY, canary_dir, "canary", err);
}

int watchdog_init(struct watchdog *watchdog, const char *run_dir, const char *run_id, int64_t seed, pid_t executor_pid,
                  int control_fd, struct hf_error *err)
{
    memset(watchdog, 0, sizeof *watchdog);
    watchdog->run_id = run_id;
    watchdog->seed = seed;
    watchdog->executor_pid = executor_pid;
    watchdog->control_fd = control_fd;
    watchdog->run_dirfd = -1;
    hf_journal_init(&watchdog->samples);
    hf_journal_init(&watchdog->access);
    network_canary_init(&watchdog->network);
    if (host_canaries_init(&watchdog->host, run_id, seed, err) != 0)
        return -1;
    return open_run_dir(watchdog, run_dir, err) != 0 ? -1 : network_canary_open(&watchdog->network, err);
}

void watchdog_clear(struct watchdog *watchdog)
{
    host_canaries_clear(&watchdog->host);
    for (unsigned i = 0; i < 2; i++)
        if (watchdog->network.fds[i] >= 0)
            close(watchdog->network.fds[i]);
    hf_journal_close(&watchdog->samples);
    hf_journal_close(&watchdog->access);
    if (watchdog->run_dirfd >= 0)
        close(watchdog->run_dirfd);
    close(watchdog->control_fd);
}

/* An answer has to arrive: the executor that asked reads until it has it, or is gone, which ends the wait. An unasked
 * state never waits; a full socket loses it, and the next one carries the same sticky evidence. */
static void tell(struct watchdog *watchdog, uint32_t sequence, bool closed)
{
    struct watchdog_state state = {
        .version = WATCHDOG_MESSAGE_VERSION,
        .sequence = sequence,
        .ready = 1,
        .closed = closed,
        .host_canary_intact = watchdog->host.intact,
        .network_canary_port = watchdog->network.port,
        .network_canary_connections = watchdog->network.connections,
        .samples = watchdog->sample_count,
    };
    memcpy(state.host_canary_sha256, watchdog->host.sha256, sizeof state.host_canary_sha256);
    memcpy(state.watchdog_error, watchdog->error, sizeof state.watchdog_error);
    snprintf(state.network_canary_error, sizeof state.network_canary_error, "%s", watchdog->network.error);
    send(watchdog->control_fd, &state, sizeof state, MSG_NOSIGNAL | (sequence ? 0 : MSG_DONTWAIT));
}

static void plant_beside_repetition(struct watchdog *watchdog, const char *directory)
{
    struct hf_error err = {0};
    struct open_how how = {.flags = O_DIRECTORY | O_RDONLY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    cleanup_close int dirfd = (int)syscall(SYS_openat2, watchdog->run_dirfd, directory, &how, sizeof how);
    if (dirfd < 0)
        hf_error_set(&err, "watchdog-canary", errno, "", "cannot open the directory to plant a canary in: %s",
                     strerror(errno));
    else
        host_canary_plant(&watchdog->host, REPETITION_CANARY, dirfd, directory, &err);
    if (err.code)
        watchdog_fail(watchdog, &err);
}

/* Performs one request; true when it was the last. */
static bool perform(struct watchdog *watchdog, struct watchdog_request *request)
{
    request->directory[sizeof request->directory - 1] = '\0';
    watchdog_take_connections(watchdog);
    if (request->kind == WATCHDOG_PLANT)
        plant_beside_repetition(watchdog, request->directory);
    if (request->kind == WATCHDOG_RETIRE)
        host_canary_retire(&watchdog->host, REPETITION_CANARY);
    if (request->kind == WATCHDOG_CLOSE)
        watchdog_close_listener(watchdog);
    watchdog_sample(watchdog);
    tell(watchdog, request->sequence, request->kind == WATCHDOG_CLOSE);
    return request->kind == WATCHDOG_CLOSE;
}

/* 1 the end was asked for, 0 go on, -1 the executor is gone or talks nonsense. */
static int hear(struct watchdog *watchdog, struct hf_error *err)
{
    struct watchdog_request request;
    ssize_t length = recv(watchdog->control_fd, &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (length <= 0)
        return hf_error_set(err, "executor-vanished", length < 0 ? errno : 0, "",
                            "the executor closed its end without asking for the watchdog's end");
    if (length != (ssize_t)sizeof request || request.version != WATCHDOG_MESSAGE_VERSION || request.sequence == 0 ||
        request.kind < WATCHDOG_SAMPLE || request.kind > WATCHDOG_CLOSE)
        return hf_error_set(err, "executor-message", 0, "",
                            "a control message of version %d and %zu bytes was expected, %zd bytes came; executor and "
                            "watchdog have to be of one build",
                            WATCHDOG_MESSAGE_VERSION, sizeof request, length);
    return perform(watchdog, &request) ? 1 : 0;
}

static void look(struct watchdog *watchdog, const struct pollfd *polls)
{
    bool network = polls[POLL_LISTENER_V4].revents || polls[POLL_LISTENER_V6].revents;
    bool host = polls[POLL_INOTIFY].revents != 0;
    bool was_intact = watchdog->host.intact;
    uint64_t connections = watchdog->network.connections;
    if (network)
        watchdog_take_connections(watchdog);
    if (host)
        host_canaries_check(&watchdog->host);
    watchdog_record_host_access(watchdog);
    if (watchdog->host.intact != was_intact || watchdog->network.connections != connections)
        tell(watchdog, 0, false);
}

int watchdog_serve(struct watchdog *watchdog, struct hf_error *err)
{
    uint64_t due_ms = hf_clock_mono_ms();
    for (;;) {
        uint64_t now_ms = hf_clock_mono_ms();
        if (now_ms >= due_ms) {
            watchdog_sample(watchdog);
            tell(watchdog, 0, false);
            due_ms += WATCHDOG_SAMPLE_INTERVAL_MS;
            now_ms = hf_clock_mono_ms();
            due_ms = due_ms > now_ms ? due_ms : now_ms + WATCHDOG_SAMPLE_INTERVAL_MS;
        }
        struct pollfd polls[POLL_COUNT] = {
            [POLL_CONTROL] = {.fd = watchdog->control_fd, .events = POLLIN},
            [POLL_INOTIFY] = {.fd = watchdog->host.inotify_fd, .events = POLLIN},
            [POLL_LISTENER_V4] = {.fd = watchdog->network.fds[0], .events = POLLIN},
            [POLL_LISTENER_V6] = {.fd = watchdog->network.fds[1], .events = POLLIN},
        };
        if (poll(polls, POLL_COUNT, (int)(due_ms - now_ms)) < 0 && errno != EINTR)
            return hf_error_set(err, "watchdog-poll", errno, "", "poll failed: %s", strerror(errno));
        look(watchdog, polls);
        int heard = polls[POLL_CONTROL].revents ? hear(watchdog, err) : 0;
        if (heard != 0)
            return heard > 0 ? 0 : -1;
    }
}
