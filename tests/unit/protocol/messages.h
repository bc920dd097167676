/* Valid messages that the protocol's tests start from, and the dialect they are written in. */
#ifndef HF_TESTS_UNIT_PROTOCOL_MESSAGES_H
#define HF_TESTS_UNIT_PROTOCOL_MESSAGES_H

#include "common/protocol/protocol.h"

#include <stdint.h>

extern const struct hf_dialect test_dialect; /* two artifacts: kernel, kernel_provenance */

/* A request of the given operation whose fields are all in the middle of their bounds. */
struct hf_request sample_request(enum hf_operation operation);
/* The good answer to sample_request(operation): passed, clean. Owned text. */
char *sample_response(enum hf_operation operation);

/* A seeded generator (splitmix64), so that a failing property names its seed. */
struct random_source {
    uint64_t state;
};
uint64_t random_next(struct random_source *source);
uint64_t random_below(struct random_source *source, uint64_t bound);

/* Random valid messages. The response answers the request and holds no contradiction. */
struct hf_request random_request(struct random_source *source, enum hf_operation operation);
void random_response(struct random_source *source, const struct hf_request *request, struct hf_response *response);

#endif
