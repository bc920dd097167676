/*
 * Number texts of the JSON tree: internal to common/json*.c. A text is what a number node keeps in `valuestring`: the
 * number as RFC 8259 writes it. None of this depends on the locale of the process.
 */
#ifndef HF_COMMON_JSON_NUMBER_H
#define HF_COMMON_JSON_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#define HF_JSON_NUMBER_SIZE 40 /* holds every int64 and every double as written by the functions below */

/* False when text has a fraction or an exponent or lies outside int64. */
bool hf_json_text_to_int64(const char *text, int64_t *out);
/* False when the nearest double is not finite; an underflow gives 0. */
bool hf_json_text_to_double(const char *text, double *out);

/* The shortest decimal that reads back as the same finite double, always with a fraction or an exponent so that it
 * never reads back as an integer: 1.0, 0.1, 1e-05, 1e+16. */
void hf_json_double_to_text(double value, char out[HF_JSON_NUMBER_SIZE]);

#endif
