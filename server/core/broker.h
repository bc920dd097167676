/*
 * The broker: the only door between a strategist's bytes and a campaign. It takes exactly
 * {"schema_version":1,"case_id":"..."} naming an offered case and refuses everything else with a named reason; nothing
 * in an answer but the choice among the offered ids has any effect (I9).
 *
 * Called by the strategist call. Pure: no I/O, no clock, bounded work on hostile bytes.
 */
#ifndef HF_SERVER_CORE_BROKER_H
#define HF_SERVER_CORE_BROKER_H

#include "server/core/choice.h"

#define HF_BROKER_MAX_ANSWER 4096 /* bytes */
#define HF_BROKER_MAX_DEPTH  8    /* the answer needs 1; deeper than this is a bomb, less deep merely wrong */

/* In order of precedence: an answer with several faults is refused for the first that applies. */
enum hf_refusal_kind {
    HF_REFUSAL_NONE,
    HF_REFUSAL_ANSWER_TOO_LONG,
    HF_REFUSAL_INVALID_UTF8,
    HF_REFUSAL_EMPTY,
    HF_REFUSAL_NESTED_TOO_DEEP,
    HF_REFUSAL_NOT_AN_OBJECT,    /* one JSON value of another type */
    HF_REFUSAL_SURROUNDING_TEXT, /* an object with something before or after it */
    HF_REFUSAL_SEVERAL_OBJECTS,
    HF_REFUSAL_MALFORMED_JSON,
    HF_REFUSAL_DUPLICATE_KEY,
    HF_REFUSAL_EXTRA_KEY,
    HF_REFUSAL_MISSING_KEY,
    HF_REFUSAL_SCHEMA_VERSION, /* anything but the integer 1: also true, 1.0, "1" */
    HF_REFUSAL_CASE_ID_TYPE,   /* not a string */
    HF_REFUSAL_CASE_COMPLETED,
    HF_REFUSAL_CASE_UNKNOWN,
    HF_REFUSAL_KIND_COUNT,
};
const char *hf_refusal_name(enum hf_refusal_kind kind); /* "answer-too-long", ... */

struct hf_refusal {
    enum hf_refusal_kind kind;
    char message[512]; /* says what was expected and seen; text of the answer only through hf_error_quote() */
};

/* Returns true and the index of the chosen case, or false and why. JSON whitespace around the object is not text. */
bool hf_broker_judge(const struct hf_choice *choice, const void *answer, size_t length, size_t *case_index,
                     struct hf_refusal *refusal);

#endif
