/*
 * The shape of `catalog/profiles/<name>.json` as tables; docs/profiles.md explains each key. Called by profile.c before
 * it reads a field.
 */
#include "common/catalog/profile_internal.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const backend_names[] = {"kvm", "mshv", "whp", "tcg", NULL};
static const char *const identity_kinds[] = {"debian-package", "git", NULL};
static const char *const provenance_kinds[] = {"none", "package", "built", NULL};

static const struct hf_shape_field backend_element = {
    .type = HF_SHAPE_STRING, .min = 1, .max = 7, .one_of = backend_names};
static const struct hf_shape_field argument_element = {
    .type = HF_SHAPE_STRING, .min = 1, .max = 1024, .text = HF_TEXT_PRINTABLE};
static const struct hf_shape_field variable_element = {
    .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_ENV_NAME};
static const struct hf_shape_field report_element = {
    .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_PRINTABLE};

static const struct hf_shape_field dialect_fields[] = {
    {.name = "source", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .text = HF_TEXT_FIELD_NAME},
    {.name = "vmm", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .text = HF_TEXT_FIELD_NAME},
    {.name = "runtime", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .text = HF_TEXT_FIELD_NAME},
};
static const struct hf_shape dialect_shape = {"dialect", dialect_fields, COUNT(dialect_fields)};

static const struct hf_shape_field package_fields[] = {
    {.name = "kind", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .one_of = identity_kinds},
    {.name = "package", .type = HF_SHAPE_STRING, .min = 2, .max = 64, .text = HF_TEXT_PRINTABLE},
};
static const struct hf_shape package_shape = {"VMM identity by package", package_fields, COUNT(package_fields)};

static const struct hf_shape_field git_fields[] = {
    {.name = "kind", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .one_of = identity_kinds},
    {.name = "path", .type = HF_SHAPE_STRING, .min = 1, .max = 1024, .text = HF_TEXT_PRINTABLE},
};
static const struct hf_shape git_shape = {"VMM identity by git work tree", git_fields, COUNT(git_fields)};

/* Without a known kind it is the kind that has to be reported, whatever else is there. */
static const struct hf_shape_field unknown_kind_fields[] = {
    {.name = "kind", .type = HF_SHAPE_STRING, .min = 1, .max = 32, .one_of = identity_kinds},
    {.name = "package", .type = HF_SHAPE_ANY, .flags = HF_SHAPE_OPTIONAL},
    {.name = "path", .type = HF_SHAPE_ANY, .flags = HF_SHAPE_OPTIONAL},
};
static const struct hf_shape unknown_kind_shape = {"VMM identity", unknown_kind_fields, COUNT(unknown_kind_fields)};

static const struct hf_shape_field artifact_fields[] = {
    {.name = "name", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_FIELD_NAME},
    {.name = "path", .type = HF_SHAPE_STRING, .min = 1, .max = 1024, .text = HF_TEXT_PRINTABLE},
    {.name = "path_variable",
     .type = HF_SHAPE_STRING,
     .flags = HF_SHAPE_OPTIONAL,
     .min = 1,
     .max = 64,
     .text = HF_TEXT_ENV_NAME},
    {.name = "provenance_kind", .type = HF_SHAPE_STRING, .min = 1, .max = 16, .one_of = provenance_kinds},
    {.name = "provenance",
     .type = HF_SHAPE_STRING,
     .flags = HF_SHAPE_NULLABLE,
     .min = 1,
     .max = 64,
     .text = HF_TEXT_FIELD_NAME},
};
static const struct hf_shape artifact_shape = {"artifact", artifact_fields, COUNT(artifact_fields)};
static const struct hf_shape_field artifact_element = {.type = HF_SHAPE_OBJECT, .object = &artifact_shape};

static const struct hf_shape_field scenario_fields[] = {
    {.name = "name", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER},
    {.name = "extra", .type = HF_SHAPE_ARRAY, .min = 0, .max = HF_PROFILE_MAX_ARGS, .element = &argument_element},
    {.name = "reports",
     .type = HF_SHAPE_ARRAY,
     .flags = HF_SHAPE_UNIQUE,
     .min = 0,
     .max = HF_PROFILE_MAX_REPORTS,
     .element = &report_element},
};
static const struct hf_shape scenario_shape = {"scenario", scenario_fields, COUNT(scenario_fields)};
static const struct hf_shape_field scenario_element = {.type = HF_SHAPE_OBJECT, .object = &scenario_shape};

/* vmm_identity has two forms; hf_profile_shape_check() puts in the one that its `kind` asks for. */
enum { FIELD_VMM_IDENTITY = 6 };

static const struct hf_shape_field profile_fields[] = {
    {.name = "schema_version", .type = HF_SHAPE_INT, .min = 1, .max = 1},
    {.name = "profile", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER},
    {.name = "description", .type = HF_SHAPE_STRING, .min = 1, .max = 512, .text = HF_TEXT_PRINTABLE},
    {.name = "dialect", .type = HF_SHAPE_OBJECT, .object = &dialect_shape},
    {.name = "backends",
     .type = HF_SHAPE_ARRAY,
     .flags = HF_SHAPE_UNIQUE,
     .min = 1,
     .max = 4,
     .element = &backend_element},
    {.name = "campaigns_dir", .type = HF_SHAPE_STRING, .min = 1, .max = 1024, .text = HF_TEXT_PRINTABLE},
    [FIELD_VMM_IDENTITY] = {.name = "vmm_identity", .type = HF_SHAPE_OBJECT, .object = &unknown_kind_shape},
    {.name = "verify", .type = HF_SHAPE_ARRAY, .min = 1, .max = HF_PROFILE_MAX_ARGS, .element = &argument_element},
    {.name = "boot", .type = HF_SHAPE_ARRAY, .min = 1, .max = HF_PROFILE_MAX_ARGS, .element = &argument_element},
    {.name = "boot_report",
     .type = HF_SHAPE_STRING,
     .flags = HF_SHAPE_NULLABLE,
     .min = 1,
     .max = 64,
     .text = HF_TEXT_PRINTABLE},
    {.name = "command", .type = HF_SHAPE_ARRAY, .min = 1, .max = HF_PROFILE_MAX_ARGS, .element = &argument_element},
    {.name = "environment",
     .type = HF_SHAPE_ARRAY,
     .flags = HF_SHAPE_UNIQUE,
     .min = 0,
     .max = HF_PROFILE_MAX_ENV,
     .element = &variable_element},
    {.name = "pid_journal_variable", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_ENV_NAME},
    {.name = "artifacts",
     .type = HF_SHAPE_ARRAY,
     .min = 1,
     .max = HF_PROFILE_MAX_ARTIFACTS,
     .element = &artifact_element},
    {.name = "scenarios",
     .type = HF_SHAPE_ARRAY,
     .min = 1,
     .max = HF_PROFILE_MAX_SCENARIOS,
     .element = &scenario_element},
};

int hf_profile_shape_check(const cJSON *document, struct hf_error *err)
{
    struct hf_shape_field fields[COUNT(profile_fields)];
    memcpy(fields, profile_fields, sizeof(fields));
    const char *kind = hf_json_get_string(hf_json_get(document, "vmm_identity"), "kind");
    if (kind && strcmp(kind, "git") == 0)
        fields[FIELD_VMM_IDENTITY].object = &git_shape;
    if (kind && strcmp(kind, "debian-package") == 0)
        fields[FIELD_VMM_IDENTITY].object = &package_shape;
    const struct hf_shape shape = {"profile", fields, COUNT(fields)};
    return hf_shape_check(&shape, NULL, document, err);
}
