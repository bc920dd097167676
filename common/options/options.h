/*
 * Command lines as tables: one row per option drives parsing, bounds, messages and --help, so that the three cannot
 * disagree. Long options only (`--name value` or `--name=value`); a mistake names the option, what was expected and
 * what was seen.
 */
#ifndef HF_COMMON_OPTIONS_OPTIONS_H
#define HF_COMMON_OPTIONS_OPTIONS_H

#include "common/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum hf_option_kind {
    HF_OPTION_FLAG,    /* target: bool, set to true */
    HF_OPTION_NO_FLAG, /* target: bool, set to false */
    HF_OPTION_STRING,  /* target: const char *, borrowed from argv; must not be empty */
    HF_OPTION_INT,     /* target: int64_t within min..max; decimal digits with an optional sign, nothing else */
    HF_OPTION_CALL,    /* calls `call(target, value, err)`; for repeatable or structured values */
};

struct hf_option {
    const char *name; /* without dashes */
    enum hf_option_kind kind;
    const char *argument; /* placeholder for --help, e.g. "SECONDS"; NULL for flags */
    const char *help;     /* one sentence; defaults are named here */
    void *target;
    int64_t min, max;          /* HF_OPTION_INT */
    const char *const *one_of; /* HF_OPTION_STRING: NULL-terminated closed list, or NULL */
    int (*call)(void *target, const char *value, struct hf_error *err);
};

struct hf_option_result {
    bool help;         /* --help was given: nothing else was checked after it */
    int first_operand; /* index in argv of the first argument that is not an option; argc when none */
};

/* Parses argv[1..]. Options end at "--" or at the first operand. Codes: "usage". An option given twice is an error
 * unless it is HF_OPTION_CALL. */
int hf_options_parse(const struct hf_option *options, size_t count, int argc, char **argv,
                     struct hf_option_result *result, struct hf_error *err);

/* Writes one aligned line per option. */
void hf_options_print(const struct hf_option *options, size_t count, FILE *out);

/* Strict decimal integer of a whole string, within bounds; false otherwise. "nan", "inf", "1.5", "1e3", "" are false.
 */
bool hf_parse_int64(const char *text, int64_t min, int64_t max, int64_t *out);

#endif
