/* The body of POST /v1/campaigns: strict JSON, closed shape, every bound checked, as api/openapi.yaml has it. Pure. */
#ifndef HF_SERVER_HTTP_CAMPAIGN_BODY_H
#define HF_SERVER_HTTP_CAMPAIGN_BODY_H

#include "server/controller.h"

/* Fills *request from defaults and the body. A body without a seed leaves request->seed at -1: the caller draws one.
 * Codes "json-invalid", "shape-invalid", with the field. */
int hf_campaign_body_parse(const char *body, size_t length, struct hf_campaign_request *request, struct hf_error *err);

#endif
