/*
 * The kernel modules of an initramfs: those asked for and everything that they depend on, each after its dependencies.
 * The order is that of the request, depth first, hence the same for the same modules.
 */
#ifndef HF_GUEST_BUILD_MODULE_SET_H
#define HF_GUEST_BUILD_MODULE_SET_H

#include "guest/build/modinfo.h"

#include <stdint.h>
#include <stdio.h>

#define HF_MODULE_SET_MAX   64
#define HF_MODULE_DEPTH_MAX 8

struct hf_module {
    char name[HF_MODINFO_NAME_MAX + 1]; /* with '_' where the file name has '-' */
    char *path;                         /* owned */
    uint8_t *bytes;                     /* owned */
    size_t size_bytes;
    struct hf_modinfo info;
};

struct hf_module_set {
    struct hf_module list[HF_MODULE_SET_MAX];
    size_t count;
    const char *root; /* directory that is searched for NAME.ko; borrowed */
};

void hf_module_set_clear(struct hf_module_set *set);

/* Adds a module after its dependencies; one that is there already is left where it is. Codes "module-missing",
 * "module-cycle" (dependencies deeper than HF_MODULE_DEPTH_MAX), "modinfo-invalid". */
int hf_module_set_add(struct hf_module_set *set, const char *name, struct hf_error *err);

/* The list that the agent reads; its form: guest/init/modules.h. */
void hf_module_set_write_list(const struct hf_module_set *set, FILE *out);

#endif
