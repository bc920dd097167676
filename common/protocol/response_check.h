/* Contradictions within a response and with its request; internal to common/protocol. */
#ifndef HF_COMMON_PROTOCOL_RESPONSE_CHECK_H
#define HF_COMMON_PROTOCOL_RESPONSE_CHECK_H

#include "common/protocol/protocol.h"

/* Codes "protocol-mismatch" (not the answer to this request) and "protocol-contradiction" (fields that cannot both be
 * true). The response's shape is right. */
int hf_response_check(const struct hf_response *response, const struct hf_request *request,
                      const struct hf_dialect *dialect, struct hf_error *err);

#endif
