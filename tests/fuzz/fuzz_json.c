/*
 * The strict reader and the canonical writer on any bytes: a text is refused with a clean message, or its canonical
 * form reads back as a tree with the same canonical form.
 */
#include "common/cleanup.h"
#include "common/json.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hf_json_limits limits = {.max_bytes = 1 << 20, .max_depth = HF_JSON_MAX_DEPTH};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool is_clean(const char *message)
{
    for (; *message; message++) {
        if (*message < 0x20 || *message > 0x7e)
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_error err = {0};
    cleanup_json cJSON *tree = hf_json_parse(data, size, &limits, &err);
    if (!tree) {
        require(err.code && strcmp(err.code, "json-invalid") == 0 && err.message[0] != '\0' && is_clean(err.message));
        return 0;
    }
    size_t first_length, second_length;
    cleanup_free char *first = hf_json_canonical(tree, &first_length);
    /* Escapes may make the canonical text longer than the source: its own limit does not apply here. */
    const struct hf_json_limits wide = {.max_bytes = SIZE_MAX, .max_depth = HF_JSON_MAX_DEPTH};
    cleanup_json cJSON *again = hf_json_parse(first, first_length, &wide, &err);
    require(again != NULL && is_clean(first));
    cleanup_free char *second = hf_json_canonical(again, &second_length);
    require(first_length == second_length && memcmp(first, second, first_length) == 0);
    return 0;
}
