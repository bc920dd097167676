/*
 * RFC 9457 problem documents. Every error that a client sees is one of the rows of problem.c: a stable type, a status
 * and a title; the sentence and the field come from the hf_error.
 */
#ifndef HF_SERVER_HTTP_PROBLEM_H
#define HF_SERVER_HTTP_PROBLEM_H

#include "common/error.h"

#include <stddef.h>

#define HF_PROBLEM_CONTENT_TYPE "application/problem+json"
#define HF_PROBLEM_TYPE_PREFIX  "urn:holdfast:problem:"

/* HTTP status that belongs to an error code; 500 for codes that no row names. */
unsigned hf_problem_status(const char *code);

/* The document, canonical JSON: type, title, status, detail, and field when the error names one. Owned. */
char *hf_problem_document(const struct hf_error *err, size_t *length);

#endif
