/*
 * Placeholders in the templates of a profile: the closed set, the scan that refuses everything else, and the expansion
 * into strings and argument vectors. Called by profile_rules.c (scan) and by the executor (expansion). One element of a
 * template always becomes exactly one argument: nothing is split, quoted or expanded twice.
 */
#include "common/catalog/placeholder.h"

#include "common/catalog/profile.h"
#include "common/cleanup.h"

#include <stdio.h>
#include <string.h>

struct placeholder {
    const char *name;
    unsigned bit;
    size_t offset; /* of its value in struct hf_placeholders */
};

static const struct placeholder placeholders[] = {
    {"backend", HF_PLACEHOLDER_BACKEND, offsetof(struct hf_placeholders, backend)},
    {"scenario", HF_PLACEHOLDER_SCENARIO, offsetof(struct hf_placeholders, scenario)},
    {"memory_mib", HF_PLACEHOLDER_MEMORY_MIB, offsetof(struct hf_placeholders, memory_mib)},
    {"phase_timeout", HF_PLACEHOLDER_PHASE_TIMEOUT, offsetof(struct hf_placeholders, phase_timeout)},
    {"timeout", HF_PLACEHOLDER_TIMEOUT, offsetof(struct hf_placeholders, timeout)},
    {"seed", HF_PLACEHOLDER_SEED, offsetof(struct hf_placeholders, seed)},
    {"output_dir", HF_PLACEHOLDER_OUTPUT_DIR, offsetof(struct hf_placeholders, output_dir)},
    {"source_root", HF_PLACEHOLDER_SOURCE_ROOT, offsetof(struct hf_placeholders, source_root)},
    {"bin_dir", HF_PLACEHOLDER_BIN_DIR, offsetof(struct hf_placeholders, bin_dir)},
    {"guest_dir", HF_PLACEHOLDER_GUEST_DIR, offsetof(struct hf_placeholders, guest_dir)},
};

#define PLACEHOLDER_COUNT (sizeof(placeholders) / sizeof(placeholders[0]))

/* `text` points at '{'. Returns the placeholder and *length, its bytes with both braces; NULL when there is none. */
static const struct placeholder *placeholder_at(const char *text, size_t *length)
{
    for (size_t i = 0; i < PLACEHOLDER_COUNT; i++) {
        size_t name_length = strlen(placeholders[i].name);
        if (strncmp(text + 1, placeholders[i].name, name_length) == 0 && text[1 + name_length] == '}') {
            *length = name_length + 2;
            return &placeholders[i];
        }
    }
    return NULL;
}

static int refuse_brace(const char *brace, const char *field, struct hf_error *err)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    return hf_error_set(err, "profile-invalid", 0, field,
                        "%s: expected a placeholder of the closed set (backend, scenario, memory_mib, phase_timeout, "
                        "timeout, seed, output_dir, source_root, bin_dir, guest_dir), seen \"%s\"; correct its name or "
                        "remove the brace",
                        field, hf_error_quote(brace, strlen(brace), quoted));
}

int hf_placeholder_scan(const char *text, unsigned allowed, const char *field, unsigned *used, struct hf_error *err)
{
    *used = 0;
    for (const char *at = text; *at;) {
        if (*at != '{' && *at != '}') {
            at++;
            continue;
        }
        size_t length;
        const struct placeholder *found = *at == '{' ? placeholder_at(at, &length) : NULL;
        if (!found)
            return refuse_brace(at, field, err);
        if (!(found->bit & allowed))
            return hf_error_set(err, "profile-invalid", 0, field,
                                "%s: {%s} has no value here; use only the placeholders that docs/profiles.md lists for "
                                "this key",
                                field, found->name);
        *used |= found->bit;
        at += length;
    }
    return 0;
}

static const char *placeholder_value(const struct placeholder *placeholder, const struct hf_placeholders *values)
{
    return *(const char *const *)((const char *)values + placeholder->offset);
}

char *hf_placeholder_expand(const char *text, const struct hf_placeholders *values, struct hf_error *err)
{
    char *expanded = NULL;
    size_t expanded_length = 0;
    FILE *out = open_memstream(&expanded, &expanded_length);
    if (!out)
        abort(); /* only for want of memory */
    for (const char *at = text; *at;) {
        size_t length = 0;
        const struct placeholder *found = *at == '{' ? placeholder_at(at, &length) : NULL;
        if (!found) {
            fputc(*at++, out);
            continue;
        }
        const char *value = placeholder_value(found, values);
        if (!value) {
            fclose(out);
            free(expanded);
            hf_error_set(err, "profile-placeholder-missing", 0, "",
                         "expected a value for {%s}, seen none in this context; remove it from the template",
                         found->name);
            return NULL;
        }
        fputs(value, out);
        at += length;
    }
    if (fclose(out) != 0)
        abort();
    return expanded;
}

char **hf_command_expand(const struct hf_command_template *first, const struct hf_command_template *second,
                         const struct hf_placeholders *values, struct hf_error *err)
{
    size_t total = first->count + (second ? second->count : 0);
    char **argv = calloc(total + 1, sizeof(*argv));
    if (!argv)
        abort();
    for (size_t i = 0; i < total; i++) {
        const char *text = i < first->count ? first->arguments[i] : second->arguments[i - first->count];
        argv[i] = hf_placeholder_expand(text, values, err);
        if (!argv[i]) {
            hf_argv_free(argv);
            return NULL;
        }
    }
    return argv;
}

void hf_argv_free(char **argv)
{
    if (!argv)
        return;
    for (size_t i = 0; argv[i]; i++)
        free(argv[i]);
    free(argv);
}
