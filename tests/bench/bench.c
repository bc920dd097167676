/* Implementation of bench.h, for the programs of this directory only. */
#include "bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bench_fail(const char *what, const struct hf_error *err)
{
    fprintf(stderr, "%s%s%s\n", what, err ? ": " : "", err ? err->message : "");
    exit(2);
}

void bench_scratch_make(struct bench_scratch *scratch)
{
    const char *parent = getenv("TMPDIR");
    snprintf(scratch->path, sizeof scratch->path, "%s/hf-bench-XXXXXX", parent ? parent : "/var/tmp");
    if (!mkdtemp(scratch->path))
        bench_fail("cannot create a scratch directory; set TMPDIR to a directory that is writable", NULL);
    scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (scratch->fd < 0)
        bench_fail("cannot open the scratch directory", NULL);
}

void bench_scratch_remove(struct bench_scratch *scratch, const char *const *names)
{
    for (; *names; names++)
        unlinkat(scratch->fd, *names, 0);
    close(scratch->fd);
    rmdir(scratch->path);
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

uint64_t bench_median(uint64_t rounds_ns[BENCH_ROUNDS])
{
    qsort(rounds_ns, BENCH_ROUNDS, sizeof rounds_ns[0], compare);
    return rounds_ns[BENCH_ROUNDS / 2];
}

void bench_add_ratio(cJSON *report, const char *key, double value)
{
    const struct hf_json_limits limits = {.max_bytes = 64, .max_depth = 1};
    char text[64];
    int length = snprintf(text, sizeof text, "%.3f", value);
    cJSON *number = hf_json_parse(text, (size_t)length, &limits, NULL);
    if (!number)
        bench_fail("a ratio is not finite", NULL);
    hf_json_add(report, key, number);
}

int bench_report(cJSON *report, double ratio, double target)
{
    bench_add_ratio(report, "ratio", ratio);
    bench_add_ratio(report, "target", target);
    hf_json_add_bool(report, "met", ratio >= target);
    char *text = hf_json_canonical(report, NULL);
    puts(text);
    free(text);
    cJSON_Delete(report);
    return ratio >= target ? EXIT_SUCCESS : EXIT_FAILURE;
}
