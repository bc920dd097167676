/* Provenance documents of the artifacts (their form: guest/README.md); declared in artifacts.h. */
#include "executor/artifacts.h"

#include "common/cleanup.h"
#include "common/durable.h"
#include "common/json.h"
#include "common/json_shape.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { MAX_INPUTS = 4096, MAX_INPUT_BYTES = 64 << 20, DOCUMENT_DEPTH = 8 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct hf_shape_field INPUT_FIELDS[] = {
    {.name = "path", .type = HF_SHAPE_STRING, .min = 1, .max = 1024, .text = HF_TEXT_PRINTABLE},
    {.name = "sha256", .type = HF_SHAPE_STRING, .min = 64, .max = 64, .text = HF_TEXT_SHA256},
};
static const struct hf_shape INPUT = {"provenance input", INPUT_FIELDS, COUNT(INPUT_FIELDS)};
static const struct hf_shape_field INPUT_ELEMENT = {.type = HF_SHAPE_OBJECT, .object = &INPUT};

static const struct hf_shape_field BUILT_FIELDS[] = {
    {.name = "kind", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .text = HF_TEXT_PRINTABLE},
    {.name = "commit", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_PRINTABLE},
    {.name = "inputs", .type = HF_SHAPE_ARRAY, .min = 1, .max = MAX_INPUTS, .element = &INPUT_ELEMENT},
};
static const struct hf_shape BUILT = {"provenance of a built artifact", BUILT_FIELDS, COUNT(BUILT_FIELDS)};

static const struct hf_shape_field PACKAGE_FIELDS[] = {
    {.name = "kind", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .text = HF_TEXT_PRINTABLE},
    {.name = "package", .type = HF_SHAPE_STRING, .min = 1, .max = 128, .text = HF_TEXT_PRINTABLE},
    {.name = "version", .type = HF_SHAPE_STRING, .min = 1, .max = 128, .text = HF_TEXT_PRINTABLE},
    {.name = "package_sha256", .type = HF_SHAPE_STRING, .flags = HF_SHAPE_NULLABLE, .text = HF_TEXT_SHA256},
    {.name = "file", .type = HF_SHAPE_STRING, .min = 1, .max = 1024, .text = HF_TEXT_PRINTABLE},
};
static const struct hf_shape PACKAGE = {"provenance of a packaged artifact", PACKAGE_FIELDS, COUNT(PACKAGE_FIELDS)};

static const struct hf_shape_field DOCUMENT_FIELDS[] = {
    {.name = "schema_version", .type = HF_SHAPE_INT, .min = 1, .max = 1},
    {.name = "artifact", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_FIELD_NAME},
    {.name = "sha256", .type = HF_SHAPE_STRING, .min = 64, .max = 64, .text = HF_TEXT_SHA256},
    {.name = "size", .type = HF_SHAPE_INT, .min = 1, .max = INT64_MAX},
    {.name = "source", .type = HF_SHAPE_ANY},
};
static const struct hf_shape DOCUMENT = {"provenance document", DOCUMENT_FIELDS, COUNT(DOCUMENT_FIELDS)};

/* Reads the very bytes that were hashed, or refuses. */
static cJSON *read_document(const struct artifact *file, struct hf_error *err)
{
    const struct hf_json_limits limits = {.max_bytes = PROVENANCE_MAX_BYTES, .max_depth = DOCUMENT_DEPTH};
    char sha256[HF_SHA256_HEX_SIZE];
    size_t length;
    cleanup_free char *text = hf_document_read(AT_FDCWD, file->path, PROVENANCE_MAX_BYTES, &length, err);
    if (!text)
        return NULL;
    hf_sha256_hex(text, length, sha256);
    if (strcmp(sha256, file->sha256) != 0) {
        hf_error_set(err, "provenance-invalid", 0, "", "it changed while it was read");
        return NULL;
    }
    return hf_json_parse(text, length, &limits, err);
}

/* A path that cannot leave the source tree by its text. */
static bool is_inside(const char *path)
{
    if (path[0] == '/')
        return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        size_t length = strcspn(at, "/");
        if (length == 0 || (length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.'))
            return false;
    }
    return true;
}

static int check_inputs(const cJSON *source, const char *source_root, struct hf_error *err)
{
    if (hf_shape_check(&BUILT, NULL, source, err) != 0)
        return -1;
    const cJSON *input;
    cJSON_ArrayForEach(input, hf_json_get(source, "inputs"))
    {
        const char *relative = hf_json_get_string(input, "path");
        char path[8192], sha256[HF_SHA256_HEX_SIZE];
        if (!is_inside(relative))
            return hf_error_set(err, "provenance-invalid", 0, "source.inputs",
                                "an input is not a plain path below the source tree");
        snprintf(path, sizeof path, "%s/%s", source_root, relative);
        if (hf_sha256_file(path, MAX_INPUT_BYTES, sha256, NULL, err) != 0 ||
            strcmp(sha256, hf_json_get_string(input, "sha256")) != 0)
            return hf_error_set(err, "provenance-stale", 0, "source.inputs",
                                "it was built from another %.256s than the staged one; build again", relative);
    }
    return 0;
}

static int check_package(const cJSON *source, const struct provenance_context *context, struct hf_error *err)
{
    if (hf_shape_check(&PACKAGE, NULL, source, err) != 0)
        return -1;
    const char *package = hf_json_get_string(source, "package");
    const char *version = hf_json_get_string(source, "version");
    if (context->vmm_package && strcmp(package, context->vmm_package) == 0 &&
        strcmp(version, context->vmm_version) != 0)
        return hf_error_set(err, "provenance-foreign", 0, "source.version",
                            "it names version %.128s of %.128s, installed is %.64s; build again", version, package,
                            context->vmm_version);
    return 0;
}

static int check_document(const cJSON *document, const struct hf_profile_artifact *wanted,
                          const struct artifact *artifact, const struct provenance_context *context,
                          struct hf_error *err)
{
    if (hf_shape_check(&DOCUMENT, NULL, document, err) != 0)
        return -1;
    int64_t size = hf_json_get_int_or(document, "size", -1);
    if (strcmp(hf_json_get_string(document, "artifact"), wanted->name) != 0 ||
        strcmp(hf_json_get_string(document, "sha256"), artifact->sha256) != 0 || size != (int64_t)artifact->size_bytes)
        return hf_error_set(err, "provenance-foreign", 0, "sha256",
                            "it describes another file (%.64s, %lld bytes) than the one in place (%.64s, %llu bytes); "
                            "build again",
                            hf_json_get_string(document, "sha256"), (long long)size, artifact->sha256,
                            (unsigned long long)artifact->size_bytes);
    const cJSON *source = hf_json_get(document, "source");
    const char *kind = hf_json_get_string(source, "kind");
    const bool built = wanted->provenance_kind == HF_PROVENANCE_BUILT;
    const char *expected = built ? "built" : "debian-package";
    if (!kind || strcmp(kind, expected) != 0)
        return hf_error_set(err, "provenance-invalid", 0, "source.kind", "source.kind has to be \"%s\"", expected);
    return built ? check_inputs(source, context->source_root, err) : check_package(source, context, err);
}

static const struct artifact *find(const struct artifact_set *set, const struct hf_profile *profile, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(profile->artifacts[i].name, name) == 0)
            return &set->list[i];
    return NULL;
}

int artifacts_check_provenance(const struct artifact_set *set, const struct provenance_context *context,
                               struct hf_error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct hf_profile_artifact *wanted = &context->profile->artifacts[i];
        if (wanted->provenance_kind == HF_PROVENANCE_NONE)
            continue;
        const struct artifact *file = find(set, context->profile, wanted->provenance);
        if (!file)
            return hf_error_set(err, "provenance-invalid", 0, wanted->name,
                                "artifact %s names %s as its provenance, which is no artifact of the profile",
                                wanted->name, wanted->provenance);
        cleanup_json cJSON *document = read_document(file, err);
        if (!document || check_document(document, wanted, &set->list[i], context, err) != 0) {
            if (strncmp(err->code, "provenance-", 11) != 0)
                err->code = "provenance-invalid";
            return hf_error_prefix(err, "provenance of %s (%.256s)", wanted->name, file->path);
        }
    }
    return 0;
}
