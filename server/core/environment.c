/* Implementation of environment.h. */
#include "server/core/environment.h"

#include "common/cleanup.h"

#include <string.h>

static const char *const always[] = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER"};
#define ALWAYS_COUNT (sizeof always / sizeof always[0])

static void add(char **list, size_t *count, const char *name)
{
    const char *value = getenv(name);
    if (!value)
        return;
    if (asprintf(&list[*count], "%s=%s", name, value) < 0)
        abort();
    ++*count;
}

char **hf_environment_new(const struct hf_profile *profile)
{
    char **list = calloc(ALWAYS_COUNT + HF_PROFILE_MAX_ENV + 1, sizeof *list);
    if (!list)
        abort();
    size_t count = 0;
    for (size_t i = 0; i < ALWAYS_COUNT; i++)
        add(list, &count, always[i]);
    for (size_t i = 0; profile && i < profile->environment_count; i++)
        add(list, &count, profile->environment[i]);
    return list;
}
