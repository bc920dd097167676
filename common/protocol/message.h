/*
 * What the two halves of the protocol share: names of operations and categories as the wire has them. Internal to
 * common/protocol.
 */
#ifndef HF_COMMON_PROTOCOL_MESSAGE_H
#define HF_COMMON_PROTOCOL_MESSAGE_H

#include "common/json_shape.h"
#include "common/protocol/protocol.h"

#define HF_PROTOCOL_MAX_DEPTH 8
#define HF_COUNT(array)       (sizeof(array) / sizeof((array)[0]))

extern const char *const hf_category_names[];        /* by enum hf_category, NULL-terminated */
extern const char *const hf_finalize_status_names[]; /* by enum hf_finalize_status, NULL-terminated */

/* The operation of that name, HF_OP_ERROR for "error" and for any other text. name may be NULL. */
enum hf_operation hf_operation_from_name(const char *name);
/* Index of `name` in a NULL-terminated list that is known to hold it. */
int hf_name_index(const char *const *names, const char *name);

struct hf_shape_names hf_dialect_names(const struct hf_dialect *dialect);

#endif
