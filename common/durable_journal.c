/*
 * Journals of durable.h: append-only files of lines, of which everything up to the last newline is durable. Called by
 * the workers of common/loop/ and by recovery; blocks, keeps no state outside struct hf_journal.
 */
#include "common/cleanup.h"
#include "common/durable.h"
#include "common/durable_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64 * 1024)

void hf_journal_init(struct hf_journal *journal)
{
    *journal = (struct hf_journal){.fd = -1};
}

/* Opens the journal, creating it when it is missing. Returns the descriptor or -1. */
static int open_or_create(int dirfd, const char *name, uint64_t *size_bytes, struct hf_error *err)
{
    bool missing;
    int fd = hf_io_open_regular(dirfd, name, O_RDWR | O_APPEND, size_bytes, &missing, err);
    if (missing)
        fd = hf_io_open_regular(dirfd, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL, size_bytes, &missing, err);
    return fd;
}

int hf_journal_open(struct hf_journal *journal, int dirfd, const char *name, struct hf_error *err)
{
    uint64_t size_bytes;
    hf_journal_init(journal);
    if (hf_io_check_name(name, err) < 0)
        return -1;
    cleanup_close int fd = open_or_create(dirfd, name, &size_bytes, err);
    if (fd < 0)
        return -1;
    char last = '\n';
    if (size_bytes > 0 && hf_io_read(fd, name, &last, 1, size_bytes - 1) != 1)
        return hf_io_error(err, name, "read the end of the journal");
    if (last != '\n')
        return hf_error_set(err, "storage-failed", 0, NULL,
                            "%s: expected a journal that ends with a newline, found a torn last line; recover it first",
                            name);
    /* An empty journal may be one whose creation a crash cut short: its entry may not be durable yet. */
    if (size_bytes == 0 && hf_io_fsync(dirfd, name) < 0)
        return hf_io_error(err, name, "make the new journal durable (fsync of its directory)");
    journal->size_bytes = size_bytes;
    snprintf(journal->name, sizeof journal->name, "%s", name);
    journal->fd = STEAL_FD(fd);
    return 0;
}

/* True when every line has at least one byte and none has a control character. */
static bool lines_are_whole(const char *lines, size_t length)
{
    char previous = '\n';
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)lines[i];
        if (byte == '\n' ? previous == '\n' : byte < 0x20 || byte == 0x7f)
            return false;
        previous = lines[i];
    }
    return previous != '\n';
}

/* Copies the lines with their final newline, so that one write(2) carries them. */
static int write_lines(const struct hf_journal *journal, const char *lines, size_t length)
{
    cleanup_free char *bytes = malloc(length + 1);
    if (!bytes)
        return -1;
    memcpy(bytes, lines, length);
    bytes[length] = '\n';
    return hf_io_write(journal->fd, journal->name, bytes, length + 1);
}

/* Takes a failed append out of the file again. What could not be undone durably makes the journal unusable. */
static void cut_back(struct hf_journal *journal)
{
    if (hf_io_truncate(journal->fd, journal->name, journal->size_bytes) < 0 ||
        hf_io_fdatasync(journal->fd, journal->name) < 0)
        journal->failed = true;
}

int hf_journal_append(struct hf_journal *journal, const char *lines, size_t length, struct hf_error *err)
{
    if (journal->failed || journal->fd < 0)
        return hf_error_set(err, "storage-failed", 0, NULL, "%s: the journal is closed to further lines%s",
                            journal->name,
                            journal->failed ? " because an earlier write to it failed; restart after repairing the disk"
                                            : " because it is not open");
    if (!lines_are_whole(lines, length))
        return hf_error_set(err, "storage-failed", EINVAL, NULL,
                            "%s: expected journal lines that are not empty and have no control characters",
                            journal->name);
    if (write_lines(journal, lines, length) < 0) {
        hf_io_error(err, journal->name, "append to the journal");
        cut_back(journal);
        return -1;
    }
    if (hf_io_fdatasync(journal->fd, journal->name) < 0) {
        /* The kernel reports a lost page once and then calls it clean: a later success would prove nothing. */
        hf_io_error(err, journal->name, "make the journal durable (fdatasync)");
        cut_back(journal);
        journal->failed = true;
        return -1;
    }
    journal->size_bytes += length + 1;
    return 0;
}

void hf_journal_close(struct hf_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    hf_journal_init(journal);
}

/* Finds where the last whole line ends: the offset after the last newline, 0 when there is none. */
static int find_whole_size(int fd, const char *name, uint64_t size_bytes, uint64_t *whole_bytes, struct hf_error *err)
{
    cleanup_free char *chunk = malloc(CHUNK_BYTES);
    uint64_t end = size_bytes;
    while (chunk && end > 0) {
        size_t wanted = end < CHUNK_BYTES ? (size_t)end : CHUNK_BYTES;
        if (hf_io_read(fd, name, chunk, wanted, end - wanted) != (int64_t)wanted)
            break;
        const char *newline = memrchr(chunk, '\n', wanted);
        if (newline) {
            *whole_bytes = end - wanted + (uint64_t)(newline - chunk) + 1;
            return 0;
        }
        end -= wanted;
    }
    *whole_bytes = 0;
    return end == 0 ? 0 : hf_io_error(err, name, "read the journal");
}

/* One pass over the whole lines of a journal. */
struct line_reader {
    int fd;
    const char *name;
    size_t max_line;
    int (*line)(void *context, const char *text, size_t length, uint64_t number, struct hf_error *err);
    void *context;
    uint64_t number;
};

/* Delivers each line that ends inside bytes; *used is where the first one that does not begins. */
static int deliver_lines(struct line_reader *reader, const char *bytes, size_t length, size_t *used,
                         struct hf_error *err)
{
    *used = 0;
    for (;;) {
        const char *start = bytes + *used;
        const char *newline = memchr(start, '\n', length - *used);
        size_t line_bytes = newline ? (size_t)(newline - start) : length - *used;
        if (line_bytes > reader->max_line)
            return hf_error_set(err, "storage-failed", EFBIG, NULL,
                                "%s: line %llu: expected at most %zu bytes, found more; the journal is damaged",
                                reader->name, (unsigned long long)reader->number + 1, reader->max_line);
        if (!newline)
            return 0;
        reader->number++;
        *used += line_bytes + 1;
        if (reader->line(reader->context, start, line_bytes, reader->number, err) < 0)
            return -1;
    }
}

static int read_lines(struct line_reader *reader, uint64_t whole_bytes, struct hf_error *err)
{
    /* An unfinished line of at most max_line bytes is kept while the next chunk is read behind it. */
    size_t capacity = reader->max_line + CHUNK_BYTES;
    cleanup_free char *buffer = malloc(capacity);
    if (!buffer)
        return hf_io_error(err, reader->name, "read the journal");
    size_t kept = 0;
    for (uint64_t offset = 0; offset < whole_bytes;) {
        uint64_t left = whole_bytes - offset;
        size_t wanted = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES, used;
        if (hf_io_read(reader->fd, reader->name, buffer + kept, wanted, offset) != (int64_t)wanted)
            return hf_io_error(err, reader->name, "read the journal");
        offset += wanted;
        kept += wanted;
        if (deliver_lines(reader, buffer, kept, &used, err) < 0)
            return -1;
        kept -= used;
        memmove(buffer, buffer + used, kept);
    }
    return 0;
}

int hf_journal_recover(int dirfd, const char *name, size_t max_line,
                       int (*line)(void *context, const char *text, size_t length, uint64_t number,
                                   struct hf_error *err),
                       void *context, uint64_t *torn_bytes, struct hf_error *err)
{
    uint64_t size_bytes, whole_bytes;
    bool missing;
    if (torn_bytes)
        *torn_bytes = 0;
    if (hf_io_check_name(name, err) < 0)
        return -1;
    cleanup_close int fd = hf_io_open_regular(dirfd, name, O_RDWR, &size_bytes, &missing, err);
    if (missing)
        return 0;
    if (fd < 0 || find_whole_size(fd, name, size_bytes, &whole_bytes, err) < 0)
        return -1;
    if (whole_bytes < size_bytes) {
        if (hf_io_truncate(fd, name, whole_bytes) < 0 || hf_io_fdatasync(fd, name) < 0)
            return hf_io_error(err, name, "cut the torn last line off the journal");
        if (torn_bytes)
            *torn_bytes = size_bytes - whole_bytes;
    }
    struct line_reader reader = {fd, name, max_line, line, context, 0};
    return read_lines(&reader, whole_bytes, err);
}
