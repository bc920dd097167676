/* The resources of this release: campaigns, state machines and health. A thin layer over server/controller.h. */
#ifndef HF_SERVER_HTTP_CAMPAIGNS_H
#define HF_SERVER_HTTP_CAMPAIGNS_H

#include "server/controller.h"
#include "server/http/http_server.h"

/* The context of the HTTP server must be the struct hf_controller. */
extern const struct hf_http_route hf_api_routes[];
extern const size_t hf_api_route_count;

#endif
