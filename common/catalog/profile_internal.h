/* What profile.c, profile_shape.c and profile_rules.c share; nobody else includes it. */
#ifndef HF_COMMON_CATALOG_PROFILE_INTERNAL_H
#define HF_COMMON_CATALOG_PROFILE_INTERNAL_H

#include "common/catalog/profile.h"
#include "common/json_shape.h"

/* Checks the document against the shape of a profile file: keys, types, bounds, character rules. Code "shape-invalid".
 */
int hf_profile_shape_check(const cJSON *document, struct hf_error *err);

/* Checks what a shape cannot say about a profile whose shape is right: names that would collide on the wire, templates,
 * provenance, report names, credentials in the environment. Code "profile-invalid". */
int hf_profile_rules_check(const struct hf_profile *profile, struct hf_error *err);

#endif
