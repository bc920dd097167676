/* Profiles from hostile bytes: whatever is accepted expands completely, one argument per element. */
#include "common/catalog/profile.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hf_placeholders values = {.backend = "tcg",
                                              .scenario = "one",
                                              .memory_mib = "256",
                                              .phase_timeout = "60",
                                              .timeout = "600",
                                              .seed = "1",
                                              .output_dir = "/o",
                                              .source_root = "/s",
                                              .bin_dir = "/b",
                                              .guest_dir = "/g"};

static void expand_path(const char *path)
{
    char *expanded = hf_placeholder_expand(path, &values, NULL);
    if (!expanded || expanded[0] != '/')
        abort();
    free(expanded);
}

static void expand_command(const struct hf_command_template *first, const struct hf_command_template *second)
{
    char **argv = hf_command_expand(first, second, &values, NULL);
    if (!argv)
        abort();
    size_t count = 0;
    while (argv[count])
        count++;
    if (count != first->count + (second ? second->count : 0))
        abort();
    hf_argv_free(argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_profile profile;
    struct hf_error err = {0};
    int result = hf_profile_parse((const char *)data, size, NULL, &profile, &err);
    if (result != 0 && (!err.code || !err.message[0]))
        abort();
    if (result == 0) {
        expand_path(profile.campaigns_dir);
        for (size_t i = 0; i < profile.artifact_count; i++)
            expand_path(profile.artifacts[i].path);
        expand_command(&profile.verify, NULL);
        expand_command(&profile.boot, NULL);
        for (size_t i = 0; i < profile.scenario_count; i++)
            expand_command(&profile.command, &profile.scenarios[i].extra);
    }
    hf_profile_clear(&profile);
    return 0;
}
