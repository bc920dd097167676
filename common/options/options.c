/* Table-driven command lines; see options.h. */
#include "common/options/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 64, HELP_COLUMN = 34 };

bool hf_parse_int64(const char *text, int64_t min, int64_t max, int64_t *out)
{
    const char *digits = (*text == '-' || *text == '+') ? text + 1 : text;
    if (!*digits || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno || value < min || value > max)
        return false;
    *out = value;
    return true;
}

static const struct hf_option *find_option(const struct hf_option *options, size_t count, const char *name,
                                           size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

static bool listed(const char *const *list, const char *value)
{
    for (; *list; list++)
        if (strcmp(*list, value) == 0)
            return true;
    return false;
}

static int refuse_value(const struct hf_option *option, const char *expected, const char *value, struct hf_error *err)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    return hf_error_set(err, "usage", 0, option->name, "--%s expects %s, got '%s'", option->name, expected,
                        hf_error_quote(value, strlen(value), quoted));
}

static int store_string(const struct hf_option *option, const char *value, struct hf_error *err)
{
    if (!*value)
        return hf_error_set(err, "usage", 0, option->name, "--%s expects %s, got an empty string", option->name,
                            option->argument);
    if (option->one_of && !listed(option->one_of, value)) {
        char expected[256] = "one of";
        size_t used = strlen(expected);
        for (const char *const *item = option->one_of; *item && used < sizeof expected; item++)
            used += (size_t)snprintf(expected + used, sizeof expected - used, " %s", *item);
        return refuse_value(option, expected, value, err);
    }
    *(const char **)option->target = value;
    return 0;
}

static int store_int(const struct hf_option *option, const char *value, struct hf_error *err)
{
    if (hf_parse_int64(value, option->min, option->max, option->target))
        return 0;
    char expected[96];
    snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, option->min, option->max);
    return refuse_value(option, expected, value, err);
}

static int store(const struct hf_option *option, const char *value, struct hf_error *err)
{
    switch (option->kind) {
    case HF_OPTION_FLAG:
        *(bool *)option->target = true;
        return 0;
    case HF_OPTION_NO_FLAG:
        *(bool *)option->target = false;
        return 0;
    case HF_OPTION_STRING:
        return store_string(option, value, err);
    case HF_OPTION_INT:
        return store_int(option, value, err);
    case HF_OPTION_CALL:
        return option->call(option->target, value, err);
    }
    return -1;
}

static bool takes_value(const struct hf_option *option)
{
    return option->kind != HF_OPTION_FLAG && option->kind != HF_OPTION_NO_FLAG;
}

/* Handles argv[*index], an argument that begins with "--", and its value. */
static int parse_one(const struct hf_option *options, size_t count, int argc, char **argv, int *index, bool *seen,
                     struct hf_error *err)
{
    const char *name = argv[*index] + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    char quoted[HF_ERROR_QUOTE_SIZE];
    const struct hf_option *option = find_option(options, count, name, length);
    if (!option)
        return hf_error_set(err, "usage", 0, "", "unknown option '--%s'; --help lists the options",
                            hf_error_quote(name, length, quoted));
    size_t position = (size_t)(option - options);
    if (seen[position] && option->kind != HF_OPTION_CALL)
        return hf_error_set(err, "usage", 0, option->name, "--%s was given twice; give it once", option->name);
    seen[position] = true;
    if (!takes_value(option)) {
        if (equals)
            return hf_error_set(err, "usage", 0, option->name, "--%s takes no value", option->name);
        return store(option, "", err);
    }
    if (equals)
        return store(option, equals + 1, err);
    if (*index + 1 >= argc)
        return hf_error_set(err, "usage", 0, option->name, "--%s expects %s, got nothing", option->name,
                            option->argument);
    return store(option, argv[++*index], err);
}

int hf_options_parse(const struct hf_option *options, size_t count, int argc, char **argv,
                     struct hf_option_result *result, struct hf_error *err)
{
    bool seen[MAX_OPTIONS] = {false};
    *result = (struct hf_option_result){.first_operand = argc};
    if (count > MAX_OPTIONS)
        return hf_error_set(err, "usage", 0, "", "more than %d options in one table", MAX_OPTIONS);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            result->help = true;
            return 0;
        }
        if (strcmp(argv[i], "--") == 0) {
            result->first_operand = i + 1;
            return 0;
        }
        if (strncmp(argv[i], "--", 2) != 0) {
            result->first_operand = i;
            return 0;
        }
        if (parse_one(options, count, argc, argv, &i, seen, err) < 0)
            return -1;
    }
    return 0;
}

void hf_options_print(const struct hf_option *options, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++) {
        int used = fprintf(out, "  --%s%s%s", options[i].name, options[i].argument ? " " : "",
                           options[i].argument ? options[i].argument : "");
        fprintf(out, "%*s%s\n", used < HELP_COLUMN ? HELP_COLUMN - used : 2, "", options[i].help);
    }
    fprintf(out, "  --help%*sthis text\n", HELP_COLUMN - 8, "");
}
