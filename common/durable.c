/*
 * Directories and atomic documents of durable.h; journals are in durable_journal.c. Called by programs at start and by
 * the workers of common/loop/; blocks, keeps no state.
 */
#include "common/durable.h"

#include "common/cleanup.h"
#include "common/digest.h"
#include "common/durable_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY_SUFFIX ".tmp~"

/* "NAME.0123456789abcdef.tmp~": random, so that writers in several threads and left-overs never meet. */
struct temporary_name {
    char text[HF_DURABLE_NAME_MAX + sizeof ".0123456789abcdef" TEMPORARY_SUFFIX];
};

static int choose_temporary(const char *name, struct temporary_name *temporary, struct hf_error *err)
{
    uint8_t random[8];
    char hex[2 * sizeof random + 1];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return hf_io_error(err, name, "draw a random temporary name");
    hf_hex(random, sizeof random, hex);
    snprintf(temporary->text, sizeof temporary->text, "%s.%s" TEMPORARY_SUFFIX, name, hex);
    return 0;
}

static int fill_temporary(int dirfd, const char *name, const char *temporary, const void *bytes, size_t length,
                          struct hf_error *err)
{
    cleanup_close int fd = hf_io_open(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return hf_io_error(err, name, "create the temporary file for the document");
    if (hf_io_write(fd, name, bytes, length) < 0)
        return hf_io_error(err, name, "write the document");
    if (hf_io_fsync(fd, name) < 0)
        return hf_io_error(err, name, "make the document durable (fsync)");
    return 0;
}

int hf_document_write(int dirfd, const char *name, const void *bytes, size_t length, struct hf_error *err)
{
    struct temporary_name temporary;
    if (hf_io_check_name(name, err) < 0 || choose_temporary(name, &temporary, err) < 0)
        return -1;
    int result = fill_temporary(dirfd, name, temporary.text, bytes, length, err);
    if (result == 0 && hf_io_rename(dirfd, temporary.text, name) < 0)
        result = hf_io_error(err, name, "put the new document in place (rename)");
    if (result < 0) {
        /* When this fails too, hf_document_sweep() removes the file at the next start. */
        hf_io_unlink(dirfd, temporary.text);
        return -1;
    }
    if (hf_io_fsync(dirfd, name) < 0)
        return hf_io_error(err, name, "make the directory entry durable (fsync)");
    return 0;
}

char *hf_document_read(int dirfd, const char *name, size_t max_bytes, size_t *length, struct hf_error *err)
{
    uint64_t size_bytes;
    bool missing;
    cleanup_close int fd = hf_io_open_regular(dirfd, name, O_RDONLY, &size_bytes, &missing, err);
    if (missing && err)
        err->code = "storage-missing";
    if (fd < 0)
        return NULL;
    char quoted[HF_ERROR_QUOTE_SIZE];
    hf_error_quote(name, strlen(name), quoted);
    if (size_bytes > max_bytes) {
        hf_error_set(err, "storage-failed", EFBIG, NULL, "%s: expected a file of at most %zu bytes, found %llu", quoted,
                     max_bytes, (unsigned long long)size_bytes);
        return NULL;
    }
    /* Room for one byte more than was announced, so that a file that grows meanwhile shows itself, and for the NUL. */
    size_t size = (size_t)size_bytes;
    cleanup_free char *bytes = malloc(size + 2);
    int64_t got = bytes ? hf_io_read(fd, name, bytes, size + 1, 0) : -1;
    if (got < 0) {
        hf_io_error(err, name, "read the file");
        return NULL;
    }
    if ((uint64_t)got != size_bytes) {
        hf_error_set(err, "storage-failed", 0, NULL,
                     "%s: the file changed its size while it was read; stop whatever writes to it and try again",
                     quoted);
        return NULL;
    }
    bytes[size] = '\0';
    if (length)
        *length = size;
    return STEAL_PTR(bytes);
}

static bool is_left_over(int dirfd, const char *name)
{
    struct stat status;
    size_t length = strlen(name), suffix = sizeof TEMPORARY_SUFFIX - 1;
    return length > suffix && strcmp(name + length - suffix, TEMPORARY_SUFFIX) == 0 &&
           fstatat(dirfd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

int hf_document_sweep(int dirfd, struct hf_error *err)
{
    /* A descriptor of its own: the position of a directory stream is shared between duplicates. */
    cleanup_close int stream_fd = hf_io_open(dirfd, ".", O_RDONLY | O_DIRECTORY);
    if (stream_fd < 0)
        return hf_io_error(err, ".", "list the directory");
    cleanup_dir DIR *stream = fdopendir(stream_fd);
    if (!stream)
        return hf_io_error(err, ".", "list the directory");
    (void)STEAL_FD(stream_fd); /* the stream closes it */
    bool removed = false;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (!entry && errno != 0)
            return hf_io_error(err, ".", "list the directory");
        if (!entry)
            break;
        if (!is_left_over(dirfd, entry->d_name))
            continue;
        if (hf_io_unlink(dirfd, entry->d_name) < 0)
            return hf_io_error(err, entry->d_name, "remove the left-over temporary file");
        removed = true;
    }
    if (removed && hf_io_fsync(dirfd, ".") < 0)
        return hf_io_error(err, ".", "make the removal of temporary files durable (fsync)");
    return 0;
}

/* Makes the entry `name` durable in the directory that holds it. */
static int sync_parent(int dirfd, const char *name)
{
    cleanup_free char *parent = strdup(name);
    if (!parent)
        return -1;
    size_t length = strlen(parent);
    while (length > 1 && parent[length - 1] == '/')
        parent[--length] = '\0';
    char *slash = strrchr(parent, '/');
    if (!slash)
        snprintf(parent, length + 1, ".");
    else
        slash[slash == parent] = '\0';
    cleanup_close int fd = openat(dirfd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : hf_io_fsync(fd, name);
}

int hf_dir_open(int dirfd, const char *name, bool create, struct hf_error *err)
{
    if (create) {
        if (hf_io_mkdir(dirfd, name) == 0) {
            if (sync_parent(dirfd, name) < 0)
                return hf_io_error(err, name, "make the new directory durable (fsync)");
        } else if (errno != EEXIST) {
            return hf_io_error(err, name, "create the directory");
        }
    }
    int fd = hf_io_open(dirfd, name, O_RDONLY | O_DIRECTORY);
    if (fd >= 0)
        return fd;
    bool missing = errno == ENOENT;
    hf_io_error(err, name, "open the directory");
    if (missing && err)
        err->code = "storage-missing";
    return -1;
}

int hf_dir_check_private(int dirfd, const char *name, struct hf_error *err)
{
    struct stat status;
    if (fstat(dirfd, &status) < 0)
        return hf_io_error(err, name, "inspect the directory");
    if (status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH)))
        return 0;
    char quoted[HF_ERROR_QUOTE_SIZE];
    return hf_error_set(err, "storage-unsafe", 0, NULL,
                        "%s: expected a directory of user %u that nobody else may write to, found one of user %u with "
                        "mode %04o; choose another, or look at what is in it and then change owner or mode",
                        hf_error_quote(name, strlen(name), quoted), (unsigned)geteuid(), (unsigned)status.st_uid,
                        (unsigned)(status.st_mode & 07777));
}
