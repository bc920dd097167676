/* Implementation of digest.h: SHA-256 through nettle, hexadecimal, canonical base64. Files are only read. */
#include "common/digest.h"

#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Large enough that system calls vanish beside hashing, small enough to stay in the second-level cache. */
#define READ_BUFFER_BYTES (256 * 1024)

static const char base64_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hf_sha256_init(struct hf_sha256 *hash)
{
    sha256_init(&hash->context);
}

void hf_sha256_update(struct hf_sha256 *hash, const void *bytes, size_t length)
{
    if (length > 0)
        sha256_update(&hash->context, length, bytes);
}

void hf_sha256_final(struct hf_sha256 *hash, uint8_t out[32])
{
    sha256_digest(&hash->context, SHA256_DIGEST_SIZE, out);
}

void hf_hex(const uint8_t *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < length; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * length] = '\0';
}

void hf_sha256_hex(const void *bytes, size_t length, char out[HF_SHA256_HEX_SIZE])
{
    struct hf_sha256 hash;
    uint8_t digest[32];
    hf_sha256_init(&hash);
    hf_sha256_update(&hash, bytes, length);
    hf_sha256_final(&hash, digest);
    hf_hex(digest, sizeof digest, out);
}

static int read_failed(struct hf_error *err, int saved_errno)
{
    return hf_error_set(err, "digest-read-failed", saved_errno, NULL, "cannot read the file to hash: %s",
                        strerrordesc_np(saved_errno));
}

/* Hashes up to `limit` bytes from the start of the file; *total is how many there were. */
static int hash_contents(int fd, uint64_t limit, struct hf_sha256 *hash, uint64_t *total, struct hf_error *err)
{
    cleanup_free uint8_t *buffer = malloc(READ_BUFFER_BYTES);
    if (!buffer)
        return read_failed(err, ENOMEM);
    while (*total < limit) {
        uint64_t left = limit - *total;
        size_t wanted = left < READ_BUFFER_BYTES ? (size_t)left : READ_BUFFER_BYTES;
        ssize_t got = pread(fd, buffer, wanted, (off_t)*total);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return read_failed(err, errno);
        if (got == 0)
            break;
        hf_sha256_update(hash, buffer, (size_t)got);
        *total += (uint64_t)got;
    }
    return 0;
}

static bool same_version(const struct stat *before, const struct stat *after)
{
    return before->st_size == after->st_size && before->st_mtim.tv_sec == after->st_mtim.tv_sec &&
           before->st_mtim.tv_nsec == after->st_mtim.tv_nsec;
}

int hf_sha256_fd(int fd, uint64_t max_bytes, char out[HF_SHA256_HEX_SIZE], uint64_t *size_bytes, struct hf_error *err)
{
    struct stat before, after;
    if (fstat(fd, &before) < 0)
        return read_failed(err, errno);
    if (!S_ISREG(before.st_mode))
        return hf_error_set(err, "digest-not-regular", 0, NULL,
                            "expected a regular file to hash, found another kind (mode %o)", before.st_mode & S_IFMT);
    uint64_t size = (uint64_t)before.st_size;
    if (size > max_bytes)
        return hf_error_set(err, "digest-too-large", 0, NULL, "expected a file of at most %llu bytes, found %llu",
                            (unsigned long long)max_bytes, (unsigned long long)size);
    struct hf_sha256 hash;
    uint64_t total = 0;
    hf_sha256_init(&hash);
    /* One byte beyond the size that was seen, so that a file that grows meanwhile shows itself. */
    if (hash_contents(fd, size + 1, &hash, &total, err) < 0)
        return -1;
    if (fstat(fd, &after) < 0)
        return read_failed(err, errno);
    if (total != size || !same_version(&before, &after))
        return hf_error_set(err, "digest-changed", 0, NULL,
                            "the file was modified while it was hashed; stop whatever writes to it and try again");
    uint8_t digest[32];
    hf_sha256_final(&hash, digest);
    hf_hex(digest, sizeof digest, out);
    if (size_bytes)
        *size_bytes = size;
    return 0;
}

int hf_sha256_file(const char *path, uint64_t max_bytes, char out[HF_SHA256_HEX_SIZE], uint64_t *size_bytes,
                   struct hf_error *err)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    hf_error_quote(path, strlen(path), quoted);
    /* O_NONBLOCK: opening a FIFO must not wait for a writer; it has no effect on regular files. */
    cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ELOOP)
        return hf_error_set(err, "digest-not-regular", ELOOP, NULL,
                            "%s: expected a regular file to hash, found a symbolic link", quoted);
    if (fd < 0)
        return hf_error_set(err, "digest-open-failed", errno, NULL, "%s: cannot open the file to hash: %s", quoted,
                            strerrordesc_np(errno));
    if (hf_sha256_fd(fd, max_bytes, out, size_bytes, err) < 0)
        return hf_error_prefix(err, "%s", quoted);
    return 0;
}

char *hf_base64_encode(const void *bytes, size_t length)
{
    const uint8_t *in = bytes;
    char *text = malloc((length + 2) / 3 * 4 + 1);
    if (!text)
        abort();
    char *out = text;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t group = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);
        *out++ = base64_alphabet[group >> 18];
        *out++ = base64_alphabet[group >> 12 & 63];
        *out++ = left > 1 ? base64_alphabet[group >> 6 & 63] : '=';
        *out++ = left > 2 ? base64_alphabet[group & 63] : '=';
    }
    *out = '\0';
    return text;
}

static int base64_value(char character)
{
    if (character >= 'A' && character <= 'Z')
        return character - 'A';
    if (character >= 'a' && character <= 'z')
        return character - 'a' + 26;
    if (character >= '0' && character <= '9')
        return character - '0' + 52;
    return character == '+' ? 62 : character == '/' ? 63 : -1;
}

bool hf_base64_is_canonical(const char *text, size_t *decoded_length)
{
    size_t length = strlen(text);
    if (length % 4 != 0)
        return false;
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
        padding++;
    size_t digits = length - padding;
    for (size_t i = 0; i < digits; i++) {
        if (base64_value(text[i]) < 0)
            return false;
    }
    /* The last digit before padding carries 2 or 4 bits that mean nothing; canonical text has them zero. */
    static const int unused_bits[3] = {0, 0x3, 0xf};
    if (padding > 0 && (base64_value(text[digits - 1]) & unused_bits[padding]) != 0)
        return false;
    *decoded_length = length / 4 * 3 - padding;
    return true;
}

uint8_t *hf_base64_decode(const char *text, size_t *length)
{
    if (!hf_base64_is_canonical(text, length))
        return NULL;
    uint8_t *bytes = malloc(*length + 1); /* one more, so that empty text gives a pointer too */
    if (!bytes)
        abort();
    for (size_t i = 0; i < *length; i++) {
        size_t digit = i / 3 * 4 + i % 3;
        unsigned shift = 2 * (unsigned)(i % 3);
        /* Canonical text has only digits here, so neither value is negative. */
        unsigned high = (unsigned)base64_value(text[digit]) << (2 + shift);
        unsigned low = (unsigned)base64_value(text[digit + 1]) >> (4 - shift);
        bytes[i] = (uint8_t)((high | low) & 0xff);
    }
    bytes[*length] = 0;
    return bytes;
}
