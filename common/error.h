/*
 * The one error object of the project.
 *
 * A function that can fail returns int: 0 on success, -1 on failure with *err filled in. Library code prints nothing;
 * the program that owns the terminal or the connection decides what to do with the sentence.
 *
 * Every message names what was expected, what was seen, and what to do about it. Bytes that came from a guest are never
 * put into a message (invariant I7); bytes from a client or strategist only through hf_error_quote().
 */
#ifndef HF_COMMON_ERROR_H
#define HF_COMMON_ERROR_H

#include <stddef.h>

struct hf_error {
    const char *code;   /* stable kebab-case identifier with static lifetime, e.g. "json-invalid"; NULL when unset */
    int saved_errno;    /* errno of the system call that failed, 0 when none did */
    char field[160];    /* path of the offending field, e.g. "cases[3].coverage"; "" when not about one field */
    char message[1024]; /* one sentence, NUL-terminated, truncated if longer */
};

/* Fills *err (which may be NULL) and returns -1, so that a caller can write `return hf_error_set(err, ...)`. */
int hf_error_set(struct hf_error *err, const char *code, int saved_errno, const char *field, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Puts "prefix: " before the present message, keeping code, errno and field. Returns -1. */
int hf_error_prefix(struct hf_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Renders at most 64 bytes of untrusted text as printable ASCII (others as \xNN, "..." when cut) into out, which holds
 * at least HF_ERROR_QUOTE_SIZE bytes. Returns out. */
#define HF_ERROR_QUOTE_SIZE 272
const char *hf_error_quote(const void *bytes, size_t length, char *out);

#endif
