/*
 * mkmodules ROOT OUTPUT_DIR MODULE...: copies the modules and all that they depend on from the unpacked kernel package
 * ROOT to OUTPUT_DIR, with the agent's list (OUTPUT_DIR/list) and the entries for mkinitramfs (OUTPUT_DIR/entries). Run
 * by the build. The modules are copied as Debian signed them.
 */
#include "guest/build/module_set.h"
#include "guest/build/output.h"

#include <string.h>

static int write_list(const struct hf_module_set *set, const char *directory, struct hf_error *err)
{
    char path[4096];
    struct hf_output output;
    snprintf(path, sizeof path, "%s/list", directory);
    if (hf_output_open(&output, path, err) != 0)
        return -1;
    hf_module_set_write_list(set, output.file);
    return hf_output_commit(&output, err);
}

static int write_modules(const struct hf_module_set *set, const char *directory, struct hf_error *err)
{
    char path[4096];
    for (size_t i = 0; i < set->count; i++) {
        snprintf(path, sizeof path, "%s/%s.ko", directory, set->list[i].name);
        if (hf_output_text(path, (const char *)set->list[i].bytes, set->list[i].size_bytes, err) != 0)
            return -1;
    }
    return 0;
}

static int write_entries(const struct hf_module_set *set, const char *directory, struct hf_error *err)
{
    char path[4096];
    struct hf_output output;
    snprintf(path, sizeof path, "%s/entries", directory);
    if (hf_output_open(&output, path, err) != 0)
        return -1;
    fprintf(output.file, "dir /lib 0755\ndir /lib/modules 0755\nfile /lib/modules/list 0644 %s/list\n", directory);
    for (size_t i = 0; i < set->count; i++)
        fprintf(output.file, "file /lib/modules/%s.ko 0644 %s/%s.ko\n", set->list[i].name, directory,
                set->list[i].name);
    return hf_output_commit(&output, err);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: mkmodules ROOT OUTPUT_DIR MODULE...\n");
        return 2;
    }
    static struct hf_module_set set;
    struct hf_error err = {0};
    set.root = argv[1];
    int result = 0;
    for (int i = 3; result == 0 && i < argc; i++)
        result = hf_module_set_add(&set, argv[i], &err);
    if (result == 0)
        result = write_list(&set, argv[2], &err);
    if (result == 0)
        result = write_modules(&set, argv[2], &err);
    if (result == 0)
        result = write_entries(&set, argv[2], &err);
    hf_module_set_clear(&set);
    if (result != 0)
        fprintf(stderr, "mkmodules: %s\n", err.message);
    return result != 0;
}
