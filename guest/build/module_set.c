/* Implementation of module_set.h. */
#include "guest/build/module_set.h"

#include "common/cleanup.h"
#include "common/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MODULE_FILE_MAX = 16 << 20 };

void hf_module_set_clear(struct hf_module_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->list[i].path);
        free(set->list[i].bytes);
    }
    set->count = 0;
}

/* "virtio-rng.ko" is the file of module virtio_rng. */
static bool file_is_module(const char *file, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (file[i] != name[i] && !(file[i] == '-' && name[i] == '_'))
            return false;
    return strcmp(file + length, ".ko") == 0;
}

static char *find_file(const char *root, const char *name)
{
    char *const roots[] = {(char *)(uintptr_t)root, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    char *path = NULL;
    for (FTSENT *entry; walk && !path && (entry = fts_read(walk));)
        if (entry->fts_info == FTS_F && file_is_module(entry->fts_name, name))
            path = strdup(entry->fts_path);
    if (walk)
        fts_close(walk);
    return path;
}

static bool name_is_plain(const char *name)
{
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length <= HF_MODINFO_NAME_MAX && name[length] == '\0';
}

static int read_module(const struct hf_module_set *set, const char *name, struct hf_module *module,
                       struct hf_error *err)
{
    if (!name_is_plain(name))
        return hf_error_set(err, "module-missing", 0, "", "expected a module name of [a-z0-9_], at most %d long",
                            HF_MODINFO_NAME_MAX);
    snprintf(module->name, sizeof module->name, "%s", name);
    module->path = find_file(set->root, name);
    if (!module->path)
        return hf_error_set(err, "module-missing", 0, name, "no file %s.ko below %s; the kernel may have it built in",
                            name, set->root);
    module->bytes = (uint8_t *)hf_document_read(AT_FDCWD, module->path, MODULE_FILE_MAX, &module->size_bytes, err);
    if (module->bytes && hf_modinfo_find(module->bytes, module->size_bytes, &module->info, err) == 0)
        return 0;
    return hf_error_prefix(err, "%s", module->path);
}

static bool contains(const struct hf_module_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->list[i].name, name) == 0)
            return true;
    return false;
}

static int add(struct hf_module_set *set, const char *name, unsigned depth, struct hf_error *err);

static int add_dependencies(struct hf_module_set *set, const struct hf_module *module, unsigned depth,
                            struct hf_error *err)
{
    size_t cursor = 0;
    const char *value = hf_modinfo_next(&module->info, "depends", &cursor);
    cleanup_free char *names = strdup(value ? value : "");
    char *rest = names;
    for (char *name; (name = strsep(&rest, ","));) {
        for (char *at = name; *at; at++)
            *at = *at == '-' ? '_' : *at;
        if (name[0] && add(set, name, depth + 1, err) != 0)
            return hf_error_prefix(err, "needed by %s", module->name);
    }
    return 0;
}

static int add(struct hf_module_set *set, const char *name, unsigned depth, struct hf_error *err)
{
    if (contains(set, name))
        return 0;
    if (depth > HF_MODULE_DEPTH_MAX)
        return hf_error_set(err, "module-cycle", 0, name, "dependencies are nested more than %d deep",
                            HF_MODULE_DEPTH_MAX);
    struct hf_module module = {0};
    int result = read_module(set, name, &module, err);
    if (result == 0)
        result = add_dependencies(set, &module, depth, err);
    if (result == 0 && set->count == HF_MODULE_SET_MAX)
        result = hf_error_set(err, "module-missing", 0, name, "more than %d modules", HF_MODULE_SET_MAX);
    if (result == 0) {
        set->list[set->count++] = module;
        return 0;
    }
    free(module.path);
    free(module.bytes);
    return -1;
}

int hf_module_set_add(struct hf_module_set *set, const char *name, struct hf_error *err)
{
    return add(set, name, 0, err);
}

static void write_depends(const struct hf_module *module, FILE *out)
{
    size_t cursor = 0;
    const char *value = hf_modinfo_next(&module->info, "depends", &cursor);
    if (!value || !value[0])
        value = "-";
    for (; *value; value++)
        fputc(*value == '-' && value[1] ? '_' : *value, out);
}

void hf_module_set_write_list(const struct hf_module_set *set, FILE *out)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct hf_module *module = &set->list[i];
        fprintf(out, "%s ", module->name);
        write_depends(module, out);
        size_t cursor = 0;
        for (const char *alias; (alias = hf_modinfo_next(&module->info, "alias", &cursor));)
            if (alias[0] && !strpbrk(alias, " \n"))
                fprintf(out, " %s", alias);
        fputc('\n', out);
    }
}
