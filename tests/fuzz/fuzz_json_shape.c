/* The shape checker on any JSON value, against a table that uses every type, flag and text rule and contains itself. */
#include "common/cleanup.h"
#include "common/json_shape.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OPTIONAL .flags = HF_SHAPE_OPTIONAL

static const char *const words[] = {"", "a", "abc", NULL};
static const struct hf_shape shape;
static const struct hf_shape_field self = {.type = HF_SHAPE_OBJECT, .flags = HF_SHAPE_NULLABLE, .object = &shape};
static const struct hf_shape_field word = {.type = HF_SHAPE_STRING, .max = 8, .text = HF_TEXT_PRINTABLE};
static const struct hf_shape_field fields[] = {
    {.name = "", .type = HF_SHAPE_ANY, OPTIONAL},
    {.name = "a", .type = HF_SHAPE_INT, OPTIONAL, .min = -1, .max = 7},
    {.name = "b", .type = HF_SHAPE_STRING, OPTIONAL, .text = HF_TEXT_BASE64},
    {.name = "asd", .type = HF_SHAPE_STRING, OPTIONAL, .text = HF_TEXT_IDENTIFIER},
    {.name = "dfg", .type = HF_SHAPE_STRING, OPTIONAL, .one_of = words},
    {.name = "title", .type = HF_SHAPE_STRING, OPTIONAL, .min = 1, .max = 40, .text = HF_TEXT_PRINTABLE},
    {.name = "id", .type = HF_SHAPE_STRING, OPTIONAL, .text = HF_TEXT_RUN_ID},
    {.name = "x", .type = HF_SHAPE_ARRAY, OPTIONAL, .max = 9, .element = &self},
    {.name = "min", .type = HF_SHAPE_ARRAY, .flags = HF_SHAPE_OPTIONAL | HF_SHAPE_UNIQUE, .element = &word},
    {.name = "max", .type = HF_SHAPE_OBJECT, OPTIONAL, .object = &shape},
    {.name = "{vmm}_sha256", .type = HF_SHAPE_STRING, OPTIONAL, .text = HF_TEXT_SHA256},
    {.name = "f", .type = HF_SHAPE_STRING, OPTIONAL, .text = HF_TEXT_FIELD_NAME},
    {.name = "e", .type = HF_SHAPE_STRING, OPTIONAL, .text = HF_TEXT_ENV_NAME},
    {.name = "t", .type = HF_SHAPE_BOOL, OPTIONAL},
};
static const struct hf_shape shape = {"fuzzed document", fields, sizeof fields / sizeof fields[0]};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hf_json_limits limits = {.max_bytes = 1 << 16, .max_depth = HF_JSON_MAX_DEPTH};
    const struct hf_shape_names names = {.vmm = "qemu"};
    struct hf_error err = {0};
    cleanup_json cJSON *tree = hf_json_parse(data, size, &limits, NULL);
    if (!tree || hf_shape_check(&shape, &names, tree, &err) == 0)
        return 0;
    if (strcmp(err.code, "shape-invalid") != 0 || strncmp(err.message, "fuzzed document", 15) != 0)
        abort();
    return 0;
}
