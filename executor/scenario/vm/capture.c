/* Bounded log files; see capture.h. */
#include "executor/scenario/vm/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void hf_capture_init(struct hf_capture *capture)
{
    *capture = (struct hf_capture){.fd = -1};
}

int hf_capture_open(struct hf_capture *capture, int dirfd, const char *name, uint64_t limit_bytes, struct hf_error *err)
{
    hf_capture_init(capture);
    snprintf(capture->name, sizeof capture->name, "%s", name);
    capture->limit_bytes = limit_bytes;
    capture->fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (capture->fd < 0)
        return hf_error_set(err, "storage-failed", errno, name,
                            "cannot create '%s' in the output directory: it must be empty and writable", name);
    return 0;
}

int hf_capture_write(struct hf_capture *capture, const void *bytes, size_t count, struct hf_error *err)
{
    uint64_t room = capture->limit_bytes - capture->stored_bytes;
    size_t left = count < room ? count : (size_t)room;
    const char *next = bytes;
    capture->total_bytes += count;
    while (left) {
        ssize_t written = write(capture->fd, next, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return hf_error_set(err, "storage-failed", errno, capture->name,
                                "cannot write '%s': free some space in the output directory and run again",
                                capture->name);
        next += written;
        left -= (size_t)written;
        capture->stored_bytes += (uint64_t)written;
    }
    return 0;
}

void hf_capture_close(struct hf_capture *capture)
{
    if (capture->fd >= 0)
        close(capture->fd);
    capture->fd = -1;
}
