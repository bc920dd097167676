/* Base64 both ways: text that is accepted is exactly what its bytes encode to, and any bytes survive. */
#include "common/cleanup.h"
#include "common/digest.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const uint8_t *data, size_t size)
{
    size_t length;
    cleanup_free char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    cleanup_free uint8_t *bytes = hf_base64_decode(text, &length);
    if (!bytes)
        return;
    cleanup_free char *again = hf_base64_encode(bytes, length);
    if (strcmp(text, again) != 0)
        abort();
}

static void check_bytes(const uint8_t *data, size_t size)
{
    size_t length;
    cleanup_free char *text = hf_base64_encode(data, size);
    cleanup_free uint8_t *bytes = hf_base64_decode(text, &length);
    if (!bytes || length != size || memcmp(bytes, data, size) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    check_text(data, size);
    check_bytes(data, size);
    return 0;
}
