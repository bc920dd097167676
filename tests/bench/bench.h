/* What the benchmarks share: a scratch directory, the median of rounds, one JSON object on stdout. */
#ifndef HF_TESTS_BENCH_BENCH_H
#define HF_TESTS_BENCH_BENCH_H

#include "common/json.h"

#include <stdint.h>

#define BENCH_ROUNDS 7

struct bench_scratch {
    char path[4000];
    int fd;
};
/* Below TMPDIR, else /var/tmp, which is on a disk where /tmp may be memory. Ends the program on failure. */
void bench_scratch_make(struct bench_scratch *scratch);
/* Removes the named files (a NULL-terminated list) and the directory. */
void bench_scratch_remove(struct bench_scratch *scratch, const char *const *names);

/* Sorts the rounds. */
uint64_t bench_median(uint64_t rounds_ns[BENCH_ROUNDS]);

/* Adds a number with three decimals. */
void bench_add_ratio(cJSON *report, const char *key, double value);
/* Prints the report as one line and frees it. Returns the exit status: 1 when ratio < target. */
int bench_report(cJSON *report, double ratio, double target);

/* Prints a sentence to stderr and ends the program with 2. */
_Noreturn void bench_fail(const char *what, const struct hf_error *err);

#endif
