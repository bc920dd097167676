/*
 * What a kernel module says about itself in its ELF section ".modinfo": name, what it depends on, which devices it
 * drives. Debian's package ships no modules.dep, and nothing may be installed to make one.
 */
#ifndef HF_GUEST_BUILD_MODINFO_H
#define HF_GUEST_BUILD_MODINFO_H

#include "common/error.h"

#include <stddef.h>

#define HF_MODINFO_NAME_MAX 63

/* Borrowed views into the file's bytes; strings end with NUL within them. */
struct hf_modinfo {
    const char *section; /* "key=value" strings one after another */
    size_t size;
};

/* Finds the section in a 64-bit little-endian ELF object, every offset checked against `length`. Code
 * "modinfo-invalid". */
int hf_modinfo_find(const void *bytes, size_t length, struct hf_modinfo *info, struct hf_error *err);

/* The value of the next string with this key after *cursor (0 to begin with), or NULL. */
const char *hf_modinfo_next(const struct hf_modinfo *info, const char *key, size_t *cursor);

#endif
