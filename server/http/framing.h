/*
 * What a request may look like before anybody asks what it wants. Called by http_server.c for each request, before its
 * path and body are looked at.
 *
 * A request that two parsers could read differently is refused and its connection closed, so that a proxy before this
 * listener cannot be made to see other requests than it does (request smuggling): header names without spaces, the
 * fields that frame or route a request at most once, a length or chunks but not both, query parameters at most once.
 */
#ifndef HF_SERVER_HTTP_FRAMING_H
#define HF_SERVER_HTTP_FRAMING_H

#include "common/error.h"

struct MHD_Connection;

/* 0, or -1 with "framing-refused" or "parameter-invalid". */
int hf_http_framing_check(struct MHD_Connection *mhd, const char *version, struct hf_error *err);

#endif
