/*
 * The strict JSON reader and the canonical writer. Every byte of JSON that holdfast reads passes through
 * hf_json_parse(); every byte that it writes through hf_json_canonical().
 *
 * Reader: RFC 8259, one value, no trailing bytes; UTF-8 without BOM; duplicate keys at any depth, U+0000 in any string
 * or key, lone surrogates, integers outside int64 and non-finite numbers are refused. The result is a cJSON tree in
 * which each number node keeps its source text in `valuestring`, so that integers are exact to 64 bits. Only the
 * functions below may create or read numbers; cJSON's own printer is never used because it would lose them.
 */
#ifndef HF_COMMON_JSON_H
#define HF_COMMON_JSON_H

#include "common/error.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF_JSON_MAX_DEPTH         64    /* nesting of arrays and objects */
#define HF_JSON_MAX_NODES         65536 /* values in one document: bounds the memory (~10 MiB) and time a text may cost */
#define HF_JSON_TEXT(macro)       HF_JSON_TEXT_OF(macro)
#define HF_JSON_TEXT_OF(argument) #argument

struct hf_json_limits {
    size_t max_bytes;
    unsigned max_depth; /* 1..HF_JSON_MAX_DEPTH */
};

/* Parses exactly one value of `length` bytes (no NUL needed). Returns an owned tree, or NULL with err->code
 * "json-invalid" and a message with the byte offset and what was expected; saved_errno is EEXIST when, and only when,
 * the text was refused for a repeated key, so that a caller can tell that refusal from the others. */
cJSON *hf_json_parse(const void *text, size_t length, const struct hf_json_limits *limits, struct hf_error *err);

/* True and *out set when item is a number written as an integer (no fraction, no exponent) within int64. */
bool hf_json_get_int64(const cJSON *item, int64_t *out);

/* Builders. Each returns the new item (owned by the parent when there is one), or aborts the process on out of memory:
 * no caller can do anything better, and a half-built document must never be written. */
cJSON *hf_json_new_object(void);
cJSON *hf_json_new_array(void);
cJSON *hf_json_new_int(int64_t value);
cJSON *hf_json_new_string(const char *text);                     /* valid UTF-8 expected; invalid bytes become U+FFFD */
cJSON *hf_json_add(cJSON *object, const char *key, cJSON *item); /* takes item */
cJSON *hf_json_add_int(cJSON *object, const char *key, int64_t value);
cJSON *hf_json_add_bool(cJSON *object, const char *key, bool value);
cJSON *hf_json_add_string(cJSON *object, const char *key, const char *text); /* NULL text adds null */
cJSON *hf_json_add_null(cJSON *object, const char *key);
cJSON *hf_json_append(cJSON *array, cJSON *item); /* takes item */

/* Lookups that never crash on a wrong type: NULL / fallback when absent or of another type. Case-sensitive. */
const cJSON *hf_json_get(const cJSON *object, const char *key);
const char *hf_json_get_string(const cJSON *object, const char *key); /* borrowed */
int64_t hf_json_get_int_or(const cJSON *object, const char *key, int64_t fallback);
bool hf_json_get_bool_or(const cJSON *object, const char *key, bool fallback);

/* Canonical JSON: keys sorted by code point, no spaces, ASCII only (lower-case \uXXXX, short escapes for \b \f \n \r \t
 * \" \\, U+007F escaped), integers exact. Returns an owned NUL-terminated string; *length (may be NULL) without the
 * NUL. */
char *hf_json_canonical(const cJSON *item, size_t *length);

#endif
