/* What the tests of common/ share: scratch directories, reading test data, running one suite, children that must abort.
 */
#ifndef HF_TESTS_UNIT_COMMON_SCRATCH_H
#define HF_TESTS_UNIT_COMMON_SCRATCH_H

#include "common/json.h"

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

/* A directory below TMPDIR, removed with everything in it by scratch_remove(). */
struct scratch {
    char path[256];
    int fd;
};
void scratch_make(struct scratch *scratch);
void scratch_remove(struct scratch *scratch);

/* Bytes of a file below the scratch directory or the tree; owned, NUL-terminated. Fails the test when it is absent. */
char *scratch_read(int dirfd, const char *name, size_t *length);
void scratch_write(int dirfd, const char *name, const void *bytes, size_t length);
bool scratch_exists(int dirfd, const char *name);
/* How many entries a directory has, without "." and "..". */
size_t scratch_count(int dirfd);

/* True when function(context) ends its process with SIGABRT. */
bool scratch_aborts(void (*function)(void *context), void *context);

/* CPU seconds that this process has used. */
double scratch_cpu_seconds(void);

/* Parses text that the test knows to be valid. */
cJSON *scratch_parse(const char *text);

/* A number below `bound` from a seeded generator, so that a failure can be repeated. */
unsigned scratch_random(unsigned long long *state, unsigned bound);

/* Runs the tests in this process, so that sanitizers and debuggers see everything. Returns the exit status. */
int scratch_run(const char *suite_name, const TTest *const *tests, size_t count);
#define SCRATCH_MAIN(suite_name, ...)                                                                                  \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = {__VA_ARGS__};                                                                    \
        return scratch_run(suite_name, tests, sizeof tests / sizeof tests[0]);                                         \
    }

#endif
