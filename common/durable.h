/*
 * Durable storage: append-only journals of JSON lines and atomic documents. Blocking; on the controller's loop use
 * common/loop/durable_queue.h, which runs these functions on the thread pool.
 *
 * Every failure is an error with errno and path; nothing is retried silently and nothing half-written is ever taken for
 * whole. Tests inject faults through hf_durable_fault_hook.
 */
#ifndef HF_COMMON_DURABLE_H
#define HF_COMMON_DURABLE_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* `name` is one file name of at most HF_DURABLE_NAME_MAX bytes in the directory dirfd, without '/'; only
 * hf_document_read() and hf_dir_open() take paths (and AT_FDCWD). Links are never followed in the last component. */
#define HF_DURABLE_NAME_MAX 127

struct hf_journal {
    int fd;
    uint64_t size_bytes;                /* durable length: everything before it has been fdatasync'ed */
    bool failed;                        /* a write failed and could not be undone: all further appends are refused */
    char name[HF_DURABLE_NAME_MAX + 1]; /* for messages */
};

void hf_journal_init(struct hf_journal *journal);
/* Opens or creates `name` in directory dirfd, 0600, for appending, and fsyncs the directory when it created it. A
 * journal that ends inside a line is refused: hf_journal_recover() comes first. */
int hf_journal_open(struct hf_journal *journal, int dirfd, const char *name, struct hf_error *err);
/* Appends one line (without '\n'; none may be inside) or several already joined with '\n', adds the final newline and
 * returns after fdatasync(2). Empty lines and control characters (canonical JSON has none) are refused before anything
 * is written. On failure the file is cut back to its former length; when that fails, or when it was fdatasync(2) that
 * failed (what the disk holds is then unknown), journal->failed is set. Code "storage-failed". */
int hf_journal_append(struct hf_journal *journal, const char *lines, size_t length, struct hf_error *err);
void hf_journal_close(struct hf_journal *journal);

/* Recovery, before the journal is opened: reads `name`, cuts a torn last line (no newline) off the file durably, and
 * calls `line` for each whole one. *torn_bytes (may be NULL) tells how much was cut. A callback that returns -1 ends
 * the reading with its error. A missing file is zero lines. Lines above max_line bytes are an error. */
int hf_journal_recover(int dirfd, const char *name, size_t max_line,
                       int (*line)(void *context, const char *text, size_t length, uint64_t number,
                                   struct hf_error *err),
                       void *context, uint64_t *torn_bytes, struct hf_error *err);

/* Writes a document so that `name` holds either its old or its new bytes, whatever happens: temporary in the same
 * directory, fsync, rename, fsync of the directory. Mode 0600. */
int hf_document_write(int dirfd, const char *name, const void *bytes, size_t length, struct hf_error *err);
/* Reads a whole regular file (no links) of at most max_bytes. Owned, NUL-terminated; code "storage-missing" when
 * absent. */
char *hf_document_read(int dirfd, const char *name, size_t max_bytes, size_t *length, struct hf_error *err);

/* Removes left-over temporaries of hf_document_write() in a directory (they end in ".tmp~"). */
int hf_document_sweep(int dirfd, struct hf_error *err);

/* Opens (creating 0700 when asked, durably) a directory; O_DIRECTORY|O_CLOEXEC|O_NOFOLLOW. Returns the descriptor or
 * -1; code "storage-missing" when it is absent and not to be created. */
int hf_dir_open(int dirfd, const char *name, bool create, struct hf_error *err);

/* 0 when nobody but this user can put files there: the open directory dirfd belongs to this user and is writable by
 * nobody else. Otherwise -1 with code "storage-unsafe"; `name` is for the message. */
int hf_dir_check_private(int dirfd, const char *name, struct hf_error *err);

/* Fault injection for tests: called before each open, mkdir, read, write, truncate, fdatasync, fsync, rename and unlink
 * with the operation's name and the file's; a non-zero return is the errno that the operation then fails with. For
 * "write" a negative return -n makes the write short by n bytes instead. NULL outside tests; set it only while no other
 * thread is inside this module. */
extern int (*hf_durable_fault_hook)(const char *operation, const char *name);

#endif
