/*
 * The closed set of placeholders and the rules of templates; internal to common/catalog. profile_rules.c checks every
 * template with these functions when a profile is loaded, so that expansion can only fail for want of a value.
 */
#ifndef HF_COMMON_CATALOG_PLACEHOLDER_H
#define HF_COMMON_CATALOG_PLACEHOLDER_H

#include "common/error.h"

#include <stdint.h>

enum hf_placeholder_bit {
    HF_PLACEHOLDER_BACKEND = 1 << 0,
    HF_PLACEHOLDER_SCENARIO = 1 << 1,
    HF_PLACEHOLDER_MEMORY_MIB = 1 << 2,
    HF_PLACEHOLDER_PHASE_TIMEOUT = 1 << 3,
    HF_PLACEHOLDER_TIMEOUT = 1 << 4,
    HF_PLACEHOLDER_SEED = 1 << 5,
    HF_PLACEHOLDER_OUTPUT_DIR = 1 << 6,
    HF_PLACEHOLDER_SOURCE_ROOT = 1 << 7,
    HF_PLACEHOLDER_BIN_DIR = 1 << 8,
    HF_PLACEHOLDER_GUEST_DIR = 1 << 9,
};

#define HF_PLACEHOLDERS_PATH (HF_PLACEHOLDER_SOURCE_ROOT | HF_PLACEHOLDER_BIN_DIR | HF_PLACEHOLDER_GUEST_DIR)
#define HF_PLACEHOLDERS_ALL  ((1u << 10) - 1)
#define HF_PLACEHOLDERS_BOOT (HF_PLACEHOLDERS_ALL & ~(unsigned)HF_PLACEHOLDER_SCENARIO)

/* Finds the placeholders of a template: *used gets their bits. An unknown name, a lone brace or a placeholder outside
 * `allowed` is an error ("profile-invalid", field as given). */
int hf_placeholder_scan(const char *text, unsigned allowed, const char *field, unsigned *used, struct hf_error *err);

#endif
