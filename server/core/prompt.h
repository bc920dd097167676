/*
 * Prompts: pure functions from what is known to what a strategist is shown (docs/strategist.md). One JSON object,
 * canonical, so that the same facts are the same bytes; a guest that prints instructions, JSON or terminal escapes
 * changes nothing but base64 text inside it.
 */
#ifndef HF_SERVER_CORE_PROMPT_H
#define HF_SERVER_CORE_PROMPT_H

#include "server/core/broker.h"
#include "server/core/choice.h"

#define HF_PROMPT_OBSERVATIONS 16 /* the last ones */

/* Owned text without a final newline. */
char *hf_prompt_build(const struct hf_choice *choice, size_t *length);

/* The repair prompt: only the rejection and the exact allowed ids, in the order of the first prompt. */
char *hf_prompt_repair(const struct hf_choice *choice, const struct hf_refusal *refusal, size_t *length);

#endif
