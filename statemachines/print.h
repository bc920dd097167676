/*
 * The tables as text: JSON (holdfast statemachines --json, GET /v1/statemachines), Graphviz (--dot) and Mermaid
 * (docs/statemachines/). Pure: bytes go to the sink that the caller supplies; there is no second copy of a table.
 */
#ifndef HF_STATEMACHINES_PRINT_H
#define HF_STATEMACHINES_PRINT_H

#include "statemachines/engine.h"

typedef void (*hf_sm_emit)(void *context, const char *bytes, size_t length);

/* One JSON document over all machines, keys sorted, ASCII, ends with a newline:
 * {"machines":[{"closing":[..],"effects":[..],"events":[..],"guards":[{"group":1,"name":".."}],"initial":"..",
 * "name":"..","rows":[{"effects":[..],"event":"..","guard":"..","next":"..","state":".."}],"states":[..],
 * "terminal":[..]}],"schema_version":1} */
void hf_sm_print_json(hf_sm_emit emit, void *context);

/* One digraph per machine. */
void hf_sm_print_dot(hf_sm_emit emit, void *context);

/* One machine only, for the files in docs/statemachines/. */
void hf_sm_print_dot_one(const struct hf_sm_definition *definition, hf_sm_emit emit, void *context);
void hf_sm_print_mermaid_one(const struct hf_sm_definition *definition, hf_sm_emit emit, void *context);

#endif
