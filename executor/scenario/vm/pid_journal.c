/* The pid journal; see pid_journal.h. */
#include "executor/scenario/vm/pid_journal.h"

#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int hf_pid_journal_open(struct hf_pid_journal *pids, const char *path, struct hf_error *err)
{
    *pids = (struct hf_pid_journal){.wanted = path != NULL};
    pthread_mutex_init(&pids->lock, NULL);
    hf_journal_init(&pids->journal);
    if (!path)
        return 0;
    const char *slash = strrchr(path, '/');
    cleanup_free char *directory = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    const char *name = slash ? slash + 1 : path;
    if (!directory || !*name)
        return hf_error_set(err, "storage-failed", 0, HF_PID_JOURNAL_VARIABLE,
                            HF_PID_JOURNAL_VARIABLE " must name a file, it names a directory or nothing");
    cleanup_close int dirfd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return hf_error_set(err, "storage-failed", errno, HF_PID_JOURNAL_VARIABLE,
                            "cannot open the directory of the pid journal that " HF_PID_JOURNAL_VARIABLE " names");
    return hf_journal_open(&pids->journal, dirfd, name, err);
}

static uint64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int append(struct hf_pid_journal *pids, pid_t pid, struct hf_error *err)
{
    char line[96];
    int length = snprintf(line, sizeof line, "{\"pid\":%d,\"recorded_at_ns\":%" PRIu64 "}", (int)pid, wall_ns());
    if (pids->journal.size_bytes + (uint64_t)length + 1 > HF_PID_JOURNAL_MAX_BYTES)
        return hf_error_set(err, "pid-journal-full", 0, HF_PID_JOURNAL_VARIABLE,
                            "the pid journal would exceed %d bytes: give each run a journal of its own",
                            HF_PID_JOURNAL_MAX_BYTES);
    return hf_journal_append(&pids->journal, line, (size_t)length, err);
}

int hf_pid_journal_record(struct hf_pid_journal *pids, pid_t pid, struct hf_error *err)
{
    if (!pids->wanted)
        return 0;
    pthread_mutex_lock(&pids->lock);
    int result = append(pids, pid, err);
    pthread_mutex_unlock(&pids->lock);
    return result;
}

void hf_pid_journal_close(struct hf_pid_journal *pids)
{
    hf_journal_close(&pids->journal);
    pthread_mutex_destroy(&pids->lock);
}
