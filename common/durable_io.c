/* Implementation of durable_io.h: the only calls into the kernel that durable storage makes, each behind the fault
 * hook. */
#include "common/durable_io.h"

#include "common/cleanup.h"
#include "common/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

int (*hf_durable_fault_hook)(const char *operation, const char *name);

/* True when a test wants this operation to fail; errno is then set. *short_by is what it wants a write to leave out. */
static bool injected(const char *operation, const char *name, size_t *short_by)
{
    int fault = hf_durable_fault_hook ? hf_durable_fault_hook(operation, name) : 0;
    if (fault < 0 && short_by)
        *short_by = (size_t)-fault;
    if (fault > 0)
        errno = fault;
    return fault > 0;
}

int hf_io_open(int dirfd, const char *name, int flags)
{
    return injected("open", name, NULL) ? -1 : openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
}

int hf_io_mkdir(int dirfd, const char *name)
{
    return injected("mkdir", name, NULL) ? -1 : mkdirat(dirfd, name, 0700);
}

int hf_io_write(int fd, const char *name, const void *bytes, size_t length)
{
    size_t done = 0;
    while (done < length) {
        size_t short_by = 0;
        if (injected("write", name, &short_by))
            return -1;
        size_t wanted = length - done;
        if (short_by > 0 && short_by < wanted)
            wanted -= short_by;
        ssize_t written = write(fd, (const char *)bytes + done, wanted);
        if (written < 0 && errno != EINTR)
            return -1;
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

int hf_io_truncate(int fd, const char *name, uint64_t size_bytes)
{
    return injected("truncate", name, NULL) ? -1 : ftruncate(fd, (off_t)size_bytes);
}

int hf_io_fdatasync(int fd, const char *name)
{
    return injected("fdatasync", name, NULL) ? -1 : fdatasync(fd);
}

int hf_io_fsync(int fd, const char *name)
{
    return injected("fsync", name, NULL) ? -1 : fsync(fd);
}

int hf_io_rename(int dirfd, const char *from, const char *to)
{
    return injected("rename", to, NULL) ? -1 : renameat(dirfd, from, dirfd, to);
}

int hf_io_unlink(int dirfd, const char *name)
{
    return injected("unlink", name, NULL) ? -1 : unlinkat(dirfd, name, 0);
}

int64_t hf_io_read(int fd, const char *name, void *bytes, size_t length, uint64_t offset)
{
    size_t done = 0;
    while (done < length) {
        if (injected("read", name, NULL))
            return -1;
        ssize_t got = pread(fd, (char *)bytes + done, length - done, (off_t)(offset + done));
        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0)
            break;
        done += got > 0 ? (size_t)got : 0;
    }
    return (int64_t)done;
}

static const char *advice(int saved_errno)
{
    switch (saved_errno) {
    case ENOSPC:
    case EDQUOT:
        return "; free space on that file system";
    case EACCES:
    case EPERM:
    case EROFS:
        return "; make the directory writable for this user";
    case EIO:
        return "; check the disk and the kernel log before using this directory again";
    case EMFILE:
    case ENFILE:
        return "; raise the limit of open files (LimitNOFILE=)";
    case ENOTDIR:
        return "; a directory is needed, not a file or a symbolic link";
    case ELOOP:
        return "; replace the symbolic link by what it points to";
    default:
        return "";
    }
}

int hf_io_error(struct hf_error *err, const char *name, const char *action)
{
    int saved_errno = errno;
    char quoted[HF_ERROR_QUOTE_SIZE];
    hf_error_quote(name, strlen(name), quoted);
    return hf_error_set(err, "storage-failed", saved_errno, NULL, "%s: cannot %s: %s%s", quoted, action,
                        strerrordesc_np(saved_errno), advice(saved_errno));
}

int hf_io_check_name(const char *name, struct hf_error *err)
{
    size_t length = strlen(name);
    if (length > 0 && length <= HF_DURABLE_NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
        strcmp(name, "..") != 0)
        return 0;
    char quoted[HF_ERROR_QUOTE_SIZE];
    return hf_error_set(err, "storage-failed", EINVAL, NULL,
                        "expected a file name of 1 to %d bytes without '/', found \"%s\"", HF_DURABLE_NAME_MAX,
                        hf_error_quote(name, length, quoted));
}

int hf_io_open_regular(int dirfd, const char *name, int flags, uint64_t *size_bytes, bool *missing,
                       struct hf_error *err)
{
    struct stat status;
    /* O_NONBLOCK: opening a FIFO must not wait for its other end; it has no effect on regular files. */
    cleanup_close int fd = hf_io_open(dirfd, name, flags | O_NONBLOCK);
    *missing = fd < 0 && errno == ENOENT;
    if (fd < 0)
        return hf_io_error(err, name, "open the file");
    if (fstat(fd, &status) < 0)
        return hf_io_error(err, name, "inspect the file");
    if (!S_ISREG(status.st_mode)) {
        errno = EINVAL;
        return hf_io_error(err, name, "use it as a file because it is not a regular one");
    }
    *size_bytes = (uint64_t)status.st_size;
    return STEAL_FD(fd);
}
