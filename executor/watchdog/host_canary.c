/* Filesystem canaries; see host_canary.h. Used by the watchdog's main loop only. */
#include "executor/watchdog/host_canary.h"

#include "common/cleanup.h"
#include "executor/watchdog/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define FILE_EVENTS      (IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVE_SELF | IN_DELETE_SELF)
#define DIRECTORY_EVENTS (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF)

void host_canary_bytes(const char *run_id, int64_t seed, uint8_t out[HOST_CANARY_BYTES])
{
    for (unsigned block = 0; block < HOST_CANARY_BYTES / 32; block++) {
        char text[192];
        int length =
            snprintf(text, sizeof text, "holdfast-host-canary\n%s\n%lld\n%u\n", run_id, (long long)seed, block);
        struct hf_sha256 hash;
        hf_sha256_init(&hash);
        hf_sha256_update(&hash, text, (size_t)length);
        hf_sha256_final(&hash, out + 32 * block);
    }
}

int host_canaries_init(struct host_canaries *canaries, const char *run_id, int64_t seed, struct hf_error *err)
{
    memset(canaries, 0, sizeof *canaries);
    for (unsigned i = 0; i < HOST_CANARY_MAX; i++)
        canaries->list[i].dirfd = -1;
    canaries->intact = true;
    host_canary_bytes(run_id, seed, canaries->bytes);
    hf_sha256_hex(canaries->bytes, sizeof canaries->bytes, canaries->sha256);
    canaries->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (canaries->inotify_fd < 0)
        return hf_error_set(err, "watchdog-inotify", errno, "",
                            "cannot watch the host canary (inotify: %s); raise fs.inotify.max_user_instances",
                            strerror(errno));
    return 0;
}

static void note_violation(struct host_canaries *canaries, const struct host_canary *canary, const char *what)
{
    if (canaries->intact)
        snprintf(canaries->evidence, sizeof canaries->evidence, "%s: %s", canary ? canary->label : "canaries", what);
    canaries->intact = false;
}

static int write_file(const struct host_canaries *canaries, int dirfd, struct hf_error *err)
{
    cleanup_close int fd =
        openat(dirfd, WATCHDOG_CANARY_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return hf_error_set(err, "watchdog-canary", errno, "", "cannot create the host canary: %s", strerror(errno));
    ssize_t written = write(fd, canaries->bytes, sizeof canaries->bytes);
    if (written != (ssize_t)sizeof canaries->bytes || fsync(fd) != 0)
        return hf_error_set(err, "watchdog-canary", errno, "", "cannot write the host canary durably: %s",
                            strerror(errno));
    return 0;
}

static int watch(struct host_canaries *canaries, struct host_canary *canary, struct hf_error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", canary->dirfd);
    canary->directory_watch = inotify_add_watch(canaries->inotify_fd, path, DIRECTORY_EVENTS);
    snprintf(path, sizeof path, "/proc/self/fd/%d/" WATCHDOG_CANARY_NAME, canary->dirfd);
    canary->file_watch = inotify_add_watch(canaries->inotify_fd, path, FILE_EVENTS | IN_DONT_FOLLOW);
    if (canary->directory_watch < 0 || canary->file_watch < 0)
        return hf_error_set(err, "watchdog-inotify", errno, "",
                            "cannot watch the host canary (inotify: %s); raise fs.inotify.max_user_watches",
                            strerror(errno));
    return 0;
}

int host_canary_plant(struct host_canaries *canaries, unsigned index, int dirfd, const char *label,
                      struct hf_error *err)
{
    struct host_canary *canary = &canaries->list[index];
    if (canary->planted)
        return hf_error_set(err, "watchdog-canary", 0, "",
                            "the canary of %s is still planted; it has to be retired first", canary->label);
    if (write_file(canaries, dirfd, err) != 0)
        return -1;
    canary->dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
    if (canary->dirfd < 0 || fstatat(dirfd, WATCHDOG_CANARY_NAME, &canary->identity, AT_SYMLINK_NOFOLLOW) != 0)
        return hf_error_set(err, "watchdog-canary", errno, "", "cannot look at the host canary: %s", strerror(errno));
    snprintf(canary->label, sizeof canary->label, "%s", label);
    if (watch(canaries, canary, err) != 0)
        return -1;
    canary->planted = true;
    return 0;
}

/* What, if anything, differs from the file that was planted. Reading does not count, so O_NOATIME is no courtesy. */
static const char *difference(struct host_canary *canary, const struct host_canaries *canaries,
                              char sha256[HF_SHA256_HEX_SIZE])
{
    sha256[0] = '\0';
    cleanup_close int fd =
        openat(canary->dirfd, WATCHDOG_CANARY_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME | O_NONBLOCK);
    struct stat now;
    if (fd < 0 || fstat(fd, &now) != 0)
        return "the file is gone or can no longer be opened";
    const struct stat *then = &canary->identity;
    if (now.st_dev != then->st_dev || now.st_ino != then->st_ino || !S_ISREG(now.st_mode))
        return "the file was replaced";
    if (now.st_size != then->st_size || hf_sha256_fd(fd, HOST_CANARY_BYTES, sha256, NULL, NULL) != 0 ||
        strcmp(sha256, canaries->sha256) != 0)
        return "its content changed";
    if (now.st_mtim.tv_sec != then->st_mtim.tv_sec || now.st_mtim.tv_nsec != then->st_mtim.tv_nsec ||
        now.st_ctim.tv_sec != then->st_ctim.tv_sec || now.st_ctim.tv_nsec != then->st_ctim.tv_nsec)
        return "it was modified or re-attributed and then restored";
    return NULL;
}

static void judge_event(struct host_canaries *canaries, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW)
        note_violation(canaries, NULL, "so many changes at once that the kernel dropped some");
    for (unsigned i = 0; i < HOST_CANARY_MAX; i++) {
        const struct host_canary *canary = &canaries->list[i];
        if (!canary->planted)
            continue;
        if (event->wd == canary->file_watch && (event->mask & FILE_EVENTS))
            note_violation(canaries, canary, "it was opened for writing, changed, moved or removed");
        if (event->wd != canary->directory_watch)
            continue;
        if (event->mask & (IN_MOVE_SELF | IN_DELETE_SELF))
            note_violation(canaries, canary, "its directory was moved or removed");
        else if (event->len > 0 && strcmp(event->name, WATCHDOG_CANARY_NAME) == 0)
            note_violation(canaries, canary, "its name was created, removed or renamed");
    }
}

static void read_events(struct host_canaries *canaries)
{
    _Alignas(struct inotify_event) char buffer[16384];
    for (;;) {
        ssize_t length = read(canaries->inotify_fd, buffer, sizeof buffer);
        if (length < 0 && errno == EINTR)
            continue;
        if (length <= 0)
            return;
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)(buffer + at);
            judge_event(canaries, event);
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
}

void host_canaries_check(struct host_canaries *canaries)
{
    read_events(canaries);
    for (unsigned i = 0; i < HOST_CANARY_MAX; i++) {
        struct host_canary *canary = &canaries->list[i];
        if (!canary->planted)
            continue;
        char sha256[HF_SHA256_HEX_SIZE];
        const char *what = difference(canary, canaries, sha256);
        if (what)
            note_violation(canaries, canary, what);
        if (i == 0)
            memcpy(canaries->observed_sha256, sha256, sizeof sha256);
    }
}

void host_canary_retire(struct host_canaries *canaries, unsigned index)
{
    struct host_canary *canary = &canaries->list[index];
    if (canary->planted) {
        host_canaries_check(canaries);
        inotify_rm_watch(canaries->inotify_fd, canary->file_watch);
        inotify_rm_watch(canaries->inotify_fd, canary->directory_watch);
    }
    if (canary->dirfd >= 0)
        close(canary->dirfd);
    canary->dirfd = -1;
    canary->planted = false;
}

void host_canaries_clear(struct host_canaries *canaries)
{
    for (unsigned i = 0; i < HOST_CANARY_MAX; i++)
        host_canary_retire(canaries, i);
    if (canaries->inotify_fd >= 0)
        close(canaries->inotify_fd);
    canaries->inotify_fd = -1;
}
