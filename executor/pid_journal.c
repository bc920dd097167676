/* Reading the pid journal; see pid_journal.h. */
#include "executor/pid_journal.h"

#include "common/cleanup.h"
#include "common/durable.h"
#include "common/json_shape.h"
#include "common/process/proc_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PID = 4194304 }; /* PID_MAX_LIMIT of 64-bit kernels, proc(5) */

/* Start times are known to one clock tick (10 ms), and the wall clock may be slewed meanwhile. */
#define START_TIME_TOLERANCE_NS UINT64_C(1000000000)

static const struct hf_shape_field LINE_FIELDS[] = {
    {.name = "pid", .type = HF_SHAPE_INT, .min = 1, .max = MAX_PID},
    {.name = "recorded_at_ns", .type = HF_SHAPE_INT, .min = 0, .max = INT64_MAX},
};
static const struct hf_shape LINE = {"pid journal line", LINE_FIELDS, sizeof LINE_FIELDS / sizeof LINE_FIELDS[0]};

static int add(struct pid_journal *journal, int64_t pid, uint64_t recorded_at_ns, struct hf_error *err)
{
    size_t at = 0;
    while (at < journal->count && journal->pids[at] != pid)
        at++;
    if (at == HF_PROTOCOL_MAX_PIDS)
        return hf_error_set(err, "pid-journal-invalid", 0, "pid", "more than %d processes are recorded",
                            HF_PROTOCOL_MAX_PIDS);
    journal->pids[at] = pid;
    journal->recorded_at_ns[at] = recorded_at_ns;
    journal->count = at == journal->count ? at + 1 : journal->count;
    return 0;
}

static int read_line(struct pid_journal *journal, const char *line, size_t length, struct hf_error *err)
{
    const struct hf_json_limits limits = {.max_bytes = 256, .max_depth = 2};
    cleanup_json cJSON *item = hf_json_parse(line, length, &limits, err);
    if (!item || hf_shape_check(&LINE, NULL, item, err) != 0)
        return -1;
    return add(journal, hf_json_get_int_or(item, "pid", 0), (uint64_t)hf_json_get_int_or(item, "recorded_at_ns", 0),
               err);
}

int pid_journal_read(int dirfd, struct pid_journal *journal, struct hf_error *err)
{
    memset(journal, 0, sizeof *journal);
    size_t length;
    struct hf_error why = {0};
    cleanup_free char *text = hf_document_read(dirfd, PID_JOURNAL_NAME, PID_JOURNAL_MAX_BYTES, &length, &why);
    if (!text && why.code && strcmp(why.code, "storage-missing") == 0)
        return 0;
    unsigned number = 0;
    int status = text ? 0 : -1;
    for (const char *at = text, *end = text ? text + length : NULL; status == 0 && at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        number++;
        if (newline)
            status = read_line(journal, at, (size_t)(newline - at), &why);
        else
            status = hf_error_set(&why, "pid-journal-invalid", 0, "", "the last line is unfinished");
        at = newline ? newline + 1 : end;
    }
    if (status == 0)
        return 0;
    return hf_error_set(err, "pid-journal-invalid", why.saved_errno, why.field, "pid journal, line %u: %.800s", number,
                        why.message);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

bool pid_journal_is_alive(pid_t pid, uint64_t recorded_at_ns)
{
    struct proc_stat stat;
    if (proc_stat_read(pid, 0, &stat) != 0) {
        bool gone = errno == ENOENT || errno == ESRCH;
        return !gone || kill(pid, 0) == 0 || errno != ESRCH; /* /proc may be mounted with hidepid */
    }
    if (proc_stat_has_exited(&stat))
        return false;
    uint64_t start_boot_ns = stat.start_ticks * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
    uint64_t age_ns = clock_ns(CLOCK_BOOTTIME) - start_boot_ns;
    uint64_t start_wall_ns = clock_ns(CLOCK_REALTIME) - age_ns;
    return start_wall_ns <= recorded_at_ns + START_TIME_TOLERANCE_NS;
}

void pid_journal_find_live(struct pid_journal *journal, uint64_t run_started_wall_ns)
{
    const uint64_t earliest_ns = run_started_wall_ns - START_TIME_TOLERANCE_NS;
    const uint64_t latest_ns = clock_ns(CLOCK_REALTIME) + START_TIME_TOLERANCE_NS;
    journal->live_count = 0;
    for (size_t i = 0; i < journal->count; i++) {
        uint64_t recorded_at_ns = journal->recorded_at_ns[i];
        if (recorded_at_ns < earliest_ns || recorded_at_ns > latest_ns)
            recorded_at_ns = latest_ns;
        if (pid_journal_is_alive((pid_t)journal->pids[i], recorded_at_ns))
            journal->live[journal->live_count++] = journal->pids[i];
    }
}
