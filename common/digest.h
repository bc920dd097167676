/* SHA-256 (nettle, SHA-NI where the processor has it), hexadecimal and base64. */
#ifndef HF_COMMON_DIGEST_H
#define HF_COMMON_DIGEST_H

#include "common/error.h"

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF_SHA256_HEX_SIZE 65 /* 64 lower-case digits and NUL */

struct hf_sha256 {
    struct sha256_ctx context;
};

void hf_sha256_init(struct hf_sha256 *hash);
void hf_sha256_update(struct hf_sha256 *hash, const void *bytes, size_t length);
void hf_sha256_final(struct hf_sha256 *hash, uint8_t out[32]);

void hf_hex(const uint8_t *bytes, size_t length, char *out); /* out holds 2*length+1 bytes */
void hf_sha256_hex(const void *bytes, size_t length, char out[HF_SHA256_HEX_SIZE]);

/* Hashes a regular file opened O_NOFOLLOW|O_CLOEXEC; refuses anything else and files above max_bytes. A file whose size
 * changes while it is read is an error. Blocking. Errors: "digest-open-failed", "digest-not-regular",
 * "digest-too-large", "digest-changed", "digest-read-failed". size_bytes may be NULL. */
int hf_sha256_file(const char *path, uint64_t max_bytes, char out[HF_SHA256_HEX_SIZE], uint64_t *size_bytes,
                   struct hf_error *err);
int hf_sha256_fd(int fd, uint64_t max_bytes, char out[HF_SHA256_HEX_SIZE], uint64_t *size_bytes, struct hf_error *err);

char *hf_base64_encode(const void *bytes, size_t length); /* owned, NUL-terminated; aborts on out of memory */
/* RFC 4648 section 4 in its one canonical form: padded, no other characters, unused bits zero. *decoded_length is set
 * when true. The empty text is canonical. */
bool hf_base64_is_canonical(const char *text, size_t *decoded_length);
/* Canonical base64 only. Returns owned bytes (never NULL for canonical text, aborts on out of memory), or NULL. */
uint8_t *hf_base64_decode(const char *text, size_t *length);

#endif
