/*
 * ck_assert_msg() without its cost: libcheck notes every assertion that holds, which makes a test of half a million
 * of them quadratic. For helpers that look at many files.
 */
#ifndef HF_TESTS_RESTART_MUST_H
#define HF_TESTS_RESTART_MUST_H

#include <check.h>
#include <string.h>

#define must(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ck_abort_msg(__VA_ARGS__);                                                                                 \
    } while (0)

static inline void must_equal(const char *where, const char *found, const char *expected)
{
    must(found && strcmp(found, expected) == 0, "%s: found %s, expected %s", where, found ? found : "nothing",
         expected);
}

#endif
