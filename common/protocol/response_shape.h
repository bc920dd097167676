/* Shapes of the responses; internal to common/protocol. */
#ifndef HF_COMMON_PROTOCOL_RESPONSE_SHAPE_H
#define HF_COMMON_PROTOCOL_RESPONSE_SHAPE_H

#include "common/protocol/message.h"

/* Checks keys, types and bounds of a response of the given operation, including the artifact names of the dialect and
 * the decoded length of the output samples. Code "shape-invalid". */
int hf_response_shape_check(enum hf_operation operation, const struct hf_dialect *dialect, const cJSON *document,
                            struct hf_error *err);

#endif
