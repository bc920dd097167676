/* Allow-listed environments; see environment.h. */
#include "executor/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char DEFAULT_PATH[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static const char *const ALWAYS_PASSED[] = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER"};

struct builder {
    char **list;
    size_t count, room;
};

static void add(struct builder *builder, const char *name, const char *value)
{
    char *text = NULL;
    if (builder->count + 1 < builder->room && asprintf(&text, "%s%s%s", name, value ? "=" : "", value ? value : "") > 0)
        builder->list[builder->count++] = text;
    else
        abort(); /* room is computed by the callers; out of memory leaves nothing better to do */
}

static struct builder builder_new(size_t room)
{
    struct builder builder = {.list = calloc(room + 1, sizeof(char *)), .room = room + 1};
    if (!builder.list)
        abort();
    return builder;
}

char **environment_new(const struct hf_profile *profile, const char *const *extra)
{
    const size_t always = sizeof ALWAYS_PASSED / sizeof ALWAYS_PASSED[0];
    size_t extra_count = 0;
    while (extra && extra[extra_count])
        extra_count++;
    struct builder builder = builder_new(always + profile->environment_count + extra_count);
    for (size_t i = 0; i < always; i++) {
        const char *value = getenv(ALWAYS_PASSED[i]);
        if (!value && strcmp(ALWAYS_PASSED[i], "PATH") == 0)
            value = DEFAULT_PATH;
        if (value)
            add(&builder, ALWAYS_PASSED[i], value);
    }
    for (size_t i = 0; i < profile->environment_count; i++) {
        const char *value = getenv(profile->environment[i]);
        if (value)
            add(&builder, profile->environment[i], value);
    }
    for (size_t i = 0; i < extra_count; i++)
        add(&builder, extra[i], NULL);
    return builder.list;
}

char **environment_new_query(const char *ceiling_directory)
{
    static const char *const FIXED[] = {
        "LC_ALL=C",
        "HOME=/nonexistent",
        "GIT_CONFIG_NOSYSTEM=1",
        "GIT_CONFIG_SYSTEM=/dev/null",
        "GIT_CONFIG_GLOBAL=/dev/null",
        "GIT_ATTR_NOSYSTEM=1",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_TERMINAL_PROMPT=0",
        "GIT_NO_REPLACE_OBJECTS=1",
    };
    const size_t fixed = sizeof FIXED / sizeof FIXED[0];
    struct builder builder = builder_new(fixed + 2);
    const char *path = getenv("PATH");
    add(&builder, "PATH", path ? path : DEFAULT_PATH);
    if (ceiling_directory)
        add(&builder, "GIT_CEILING_DIRECTORIES", ceiling_directory);
    for (size_t i = 0; i < fixed; i++)
        add(&builder, FIXED[i], NULL);
    return builder.list;
}
