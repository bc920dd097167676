/*
 * System calls of durable storage, with fault injection, names that are checked, and one way to word an error. Internal
 * to common/durable*.c and common/loop/.
 */
#ifndef HF_COMMON_DURABLE_IO_H
#define HF_COMMON_DURABLE_IO_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -1 with errno set, like the system calls. hf_io_write() writes everything or fails. An interrupted sync counts as
 * failed: programs install their handlers with SA_RESTART, so there is none. */
int hf_io_open(int dirfd, const char *name, int flags);
int hf_io_mkdir(int dirfd, const char *name);
int hf_io_write(int fd, const char *name, const void *bytes, size_t length);
int hf_io_truncate(int fd, const char *name, uint64_t size_bytes);
int hf_io_fdatasync(int fd, const char *name);
int hf_io_fsync(int fd, const char *name);
int hf_io_rename(int dirfd, const char *from, const char *to);
int hf_io_unlink(int dirfd, const char *name);
/* Reads up to `length` bytes at `offset`, fewer only at the end of the file. Returns how many, or -1 with errno set. */
int64_t hf_io_read(int fd, const char *name, void *bytes, size_t length, uint64_t offset);

/* "storage-failed" with errno: "NAME: cannot ACTION: REASON; what to do". Returns -1. */
int hf_io_error(struct hf_error *err, const char *name, const char *action);

/* Refuses a name that is not one path component of at most HF_DURABLE_NAME_MAX bytes. */
int hf_io_check_name(const char *name, struct hf_error *err);

/* Opens a regular file and refuses every other kind. Returns the descriptor or -1; `missing` tells ENOENT. */
int hf_io_open_regular(int dirfd, const char *name, int flags, uint64_t *size_bytes, bool *missing,
                       struct hf_error *err);

#endif
