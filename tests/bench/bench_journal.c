/*
 * Journal append: hf_journal_append() beside a bare write(2)+fdatasync(2) loop with the same lines on the same file
 * system, in turns of one append each, so that a disk whose speed drifts treats both alike. The ratio is the bare
 * loop's median time for a round divided by ours.
 */
#include "bench.h"
#include "common/clock.h"
#include "common/durable.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 300 /* about the size of an action's line */
#define TARGET     0.8

static uint64_t bare_append_ns(int fd, const char *line)
{
    uint64_t start_ns = hf_clock_mono_ns();
    if (write(fd, line, LINE_BYTES + 1) != LINE_BYTES + 1 || fdatasync(fd) < 0)
        bench_fail("the bare loop cannot write", NULL);
    return hf_clock_mono_ns() - start_ns;
}

static uint64_t journal_append_ns(struct hf_journal *journal, const char *line)
{
    struct hf_error err = {0};
    uint64_t start_ns = hf_clock_mono_ns();
    if (hf_journal_append(journal, line, LINE_BYTES, &err) < 0)
        bench_fail("hf_journal_append", &err);
    return hf_clock_mono_ns() - start_ns;
}

static int usage(void)
{
    fputs("usage: bench_journal [APPENDS]   1..100000 appends per round, default 200\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const char *const files[] = {"journal", "bare", NULL};
    char *end = NULL;
    long appends = argc == 2 ? strtol(argv[1], &end, 10) : 200;
    if (argc > 2 || (end && *end != '\0') || appends < 1 || appends > 100000)
        return usage();
    uint64_t journal_ns[BENCH_ROUNDS] = {0}, bare_ns[BENCH_ROUNDS] = {0};
    char line[LINE_BYTES + 1];
    memset(line, 'x', LINE_BYTES);
    line[LINE_BYTES] = '\n';
    struct bench_scratch scratch;
    struct hf_journal journal;
    struct hf_error err = {0};
    bench_scratch_make(&scratch);
    int bare_fd = openat(scratch.fd, "bare", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (bare_fd < 0 || hf_journal_open(&journal, scratch.fd, "journal", &err) < 0)
        bench_fail("cannot create the files", &err);
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        for (long i = 0; i < appends; i++) {
            journal_ns[round] += journal_append_ns(&journal, line);
            bare_ns[round] += bare_append_ns(bare_fd, line);
        }
    }
    hf_journal_close(&journal);
    close(bare_fd);
    bench_scratch_remove(&scratch, files);
    uint64_t journal_median = bench_median(journal_ns), bare_median = bench_median(bare_ns);
    cJSON *report = hf_json_new_object();
    hf_json_add_string(report, "benchmark", "journal-append");
    hf_json_add_int(report, "appends_per_round", appends);
    hf_json_add_int(report, "line_bytes", LINE_BYTES);
    hf_json_add_int(report, "rounds", BENCH_ROUNDS);
    hf_json_add_int(report, "journal_ns_per_append", (int64_t)journal_median / appends);
    hf_json_add_int(report, "bare_ns_per_append", (int64_t)bare_median / appends);
    return bench_report(report, (double)bare_median / (double)journal_median, TARGET);
}
