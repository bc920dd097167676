/*
 * Implementation of log.h. Called by programs only, from any thread once hf_log_init() has returned: the settings are
 * written once at start, and each line is one write(2).
 */
#include "common/log.h"

#include "common/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Below PIPE_BUF (4096), so that lines of several threads never mix in a pipe. */
#define LINE_BYTES 4000

static const char truncation_mark[] = " ...";

static struct {
    char program[32];
    enum hf_log_level max_level;
    bool journal;
} settings = {.program = "holdfast", .max_level = HF_LOG_INFO};

static atomic_uint lost_lines;

struct line {
    char bytes[LINE_BYTES + sizeof truncation_mark + 1];
    size_t used;
    bool truncated;
};

/* sd_notify(3) asks to compare device and inode: the variable is inherited by children whose stderr is elsewhere. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat status;
    char expected[64];
    if (!stream || fstat(STDERR_FILENO, &status) < 0)
        return false;
    snprintf(expected, sizeof expected, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(stream, expected) == 0;
}

void hf_log_init(const char *program, enum hf_log_level max_level)
{
    snprintf(settings.program, sizeof settings.program, "%s", program);
    settings.max_level = max_level;
    settings.journal = stderr_is_journal();
}

static void put(struct line *line, const char *text)
{
    size_t length = strlen(text);
    if (line->truncated || line->used + length > LINE_BYTES) {
        line->truncated = true;
        return;
    }
    memcpy(line->bytes + line->used, text, length);
    line->used += length;
}

static bool is_bare(const char *value)
{
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@+,-";
    return *value != '\0' && value[strspn(value, bare)] == '\0';
}

/* Quotes a value unless it needs none: printable ASCII as it is, quotes and backslashes escaped, other bytes as \xNN.
 */
static void put_value(struct line *line, const char *value)
{
    if (is_bare(value)) {
        put(line, value);
        return;
    }
    put(line, "\"");
    for (const char *byte = value; *byte && !line->truncated; byte++) {
        char shown[5] = {*byte};
        if (*byte == '"' || *byte == '\\')
            snprintf(shown, sizeof shown, "\\%c", *byte);
        else if (*byte < 0x20 || *byte >= 0x7f)
            snprintf(shown, sizeof shown, "\\x%02x", (unsigned)(unsigned char)*byte);
        put(line, shown);
    }
    put(line, "\"");
}

static void put_pair(struct line *line, const char *key, const char *value)
{
    put(line, " ");
    put(line, key);
    put(line, "=");
    put_value(line, value);
}

static void put_prefix(struct line *line, enum hf_log_level level, const char *event)
{
    static const char *const names[] = {[HF_LOG_ERROR] = "error",
                                        [HF_LOG_WARNING] = "warning",
                                        [HF_LOG_NOTICE] = "notice",
                                        [HF_LOG_INFO] = "info",
                                        [HF_LOG_DEBUG] = "debug"};
    char text[64];
    if (settings.journal) {
        snprintf(text, sizeof text, "<%d>", (int)level);
        put(line, text);
    } else {
        hf_clock_format_utc(hf_clock_wall_ms(), text);
        put(line, text);
        put(line, " ");
        put(line, settings.program);
        put(line, " ");
        put(line, names[level]);
        put(line, " ");
    }
    put(line, event);
}

/* True when a line can be written without waiting: for a pipe, POLLOUT promises PIPE_BUF bytes. */
static bool reader_keeps_up(void)
{
    struct pollfd output = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) != 0; /* an error of poll(2) or of the descriptor shows in the write */
}

/* A log that cannot be written (closed pipe, full disk) must not stop the program: there is nobody left to tell. */
static void emit(struct line *line)
{
    if (line->truncated) {
        memcpy(line->bytes + line->used, truncation_mark, sizeof truncation_mark - 1);
        line->used += sizeof truncation_mark - 1;
    }
    line->bytes[line->used++] = '\n';
    size_t done = 0;
    while (done < line->used) {
        ssize_t written = write(STDERR_FILENO, line->bytes + done, line->used - done);
        if (written < 0 && errno != EINTR)
            return;
        done += written > 0 ? (size_t)written : 0;
    }
}

/* A reader that is late (a full pipe, a journal that hangs) costs lines, never the controller's loop. The next line
 * that can be written is preceded by how many were lost. */
static void emit_unless_late(struct line *line)
{
    if (!reader_keeps_up()) {
        atomic_fetch_add(&lost_lines, 1);
        return;
    }
    unsigned lost = atomic_exchange(&lost_lines, 0);
    if (lost > 0) {
        char count[16];
        struct line note = {.used = 0};
        snprintf(count, sizeof count, "%u", lost);
        put_prefix(&note, HF_LOG_WARNING, "log_lines_lost");
        put_pair(&note, "lines", count);
        emit(&note);
        emit_unless_late(line); /* the note may have taken the room */
        return;
    }
    emit(line);
}

void hf_log(enum hf_log_level level, const char *event, ...)
{
    if (level > settings.max_level)
        return;
    struct line line = {.used = 0};
    put_prefix(&line, level, event);
    va_list arguments;
    va_start(arguments, event);
    for (const char *key = va_arg(arguments, const char *); key; key = va_arg(arguments, const char *)) {
        const char *value = va_arg(arguments, const char *);
        put_pair(&line, key, value ? value : "");
        if (!value) /* either a missing value or the sentinel in its place: nothing after it can be read safely */
            break;
    }
    va_end(arguments);
    emit_unless_late(&line);
}

void hf_log_error(enum hf_log_level level, const char *event, const struct hf_error *err)
{
    if (level > settings.max_level)
        return;
    struct line line = {.used = 0};
    put_prefix(&line, level, event);
    put_pair(&line, "code", err->code ? err->code : "");
    if (err->field[0])
        put_pair(&line, "field", err->field);
    if (err->saved_errno)
        put_pair(&line, "errno", strerrorname_np(err->saved_errno) ? strerrorname_np(err->saved_errno) : "unknown");
    put_pair(&line, "message", err->message);
    emit_unless_late(&line);
}
