/*
 * Loading of profiles: bytes to struct hf_profile. Called by controller, executor and command line. The shape is in
 * profile_shape.c, the rules between fields in profile_rules.c; nothing of a profile is used before both have passed.
 */
#include "common/catalog/profile.h"

#include "common/catalog/profile_internal.h"
#include "common/catalog/text.h"
#include "common/cleanup.h"
#include "common/durable.h"
#include "common/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static char *copy_string(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        abort(); /* as in common/json.h: nothing better can be done without memory */
    return copy;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

static size_t item_count(const cJSON *array)
{
    return (size_t)cJSON_GetArraySize(array);
}

#define COPY_FIELD(out, object, key) hf_text_copy((out), sizeof(out), hf_json_get_string((object), (key)))

static void read_template(const cJSON *array, struct hf_command_template *template)
{
    template->arguments = allocate(item_count(array), sizeof(*template->arguments));
    for (const cJSON *item = array->child; item; item = item->next)
        template->arguments[template->count++] = copy_string(item->valuestring);
}

static void clear_template(struct hf_command_template *template)
{
    for (size_t i = 0; i < template->count; i++)
        free(template->arguments[i]);
    free(template->arguments);
}

static enum hf_provenance_kind provenance_kind(const char *name)
{
    if (strcmp(name, "package") == 0)
        return HF_PROVENANCE_PACKAGE;
    return strcmp(name, "built") == 0 ? HF_PROVENANCE_BUILT : HF_PROVENANCE_NONE;
}

static void read_artifacts(const cJSON *array, struct hf_profile *profile)
{
    for (const cJSON *item = array->child; item; item = item->next) {
        struct hf_profile_artifact *artifact = &profile->artifacts[profile->artifact_count++];
        COPY_FIELD(artifact->name, item, "name");
        artifact->path = copy_string(hf_json_get_string(item, "path"));
        artifact->provenance_kind = provenance_kind(hf_json_get_string(item, "provenance_kind"));
        const char *variable = hf_json_get_string(item, "path_variable");
        if (variable)
            hf_text_copy(artifact->path_variable, sizeof(artifact->path_variable), variable);
        const char *provenance = hf_json_get_string(item, "provenance");
        if (provenance)
            hf_text_copy(artifact->provenance, sizeof(artifact->provenance), provenance);
        hf_text_copy(profile->dialect.artifact_names[profile->dialect.artifact_count++], HF_PROFILE_NAME_SIZE,
                     artifact->name);
    }
}

static void read_scenarios(const cJSON *array, struct hf_profile *profile)
{
    profile->scenarios = allocate(item_count(array), sizeof(*profile->scenarios));
    for (const cJSON *item = array->child; item; item = item->next) {
        struct hf_profile_scenario *scenario = &profile->scenarios[profile->scenario_count++];
        COPY_FIELD(scenario->name, item, "name");
        read_template(hf_json_get(item, "extra"), &scenario->extra);
        for (const cJSON *report = hf_json_get(item, "reports")->child; report; report = report->next)
            hf_text_copy(scenario->reports[scenario->report_count++], HF_PROFILE_NAME_SIZE, report->valuestring);
    }
}

static void read_identity(const cJSON *identity, struct hf_profile *profile)
{
    bool git = strcmp(hf_json_get_string(identity, "kind"), "git") == 0;
    profile->vmm_identity = git ? HF_VMM_GIT : HF_VMM_DEBIAN_PACKAGE;
    profile->vmm_source = copy_string(hf_json_get_string(identity, git ? "path" : "package"));
}

static void read_profile(const cJSON *document, struct hf_profile *profile)
{
    COPY_FIELD(profile->name, document, "profile");
    COPY_FIELD(profile->description, document, "description");
    const cJSON *dialect = hf_json_get(document, "dialect");
    COPY_FIELD(profile->dialect.source, dialect, "source");
    COPY_FIELD(profile->dialect.vmm, dialect, "vmm");
    COPY_FIELD(profile->dialect.runtime, dialect, "runtime");
    for (const cJSON *item = hf_json_get(document, "backends")->child; item; item = item->next)
        hf_text_copy(profile->backends[profile->backend_count++], sizeof(profile->backends[0]), item->valuestring);
    for (const cJSON *item = hf_json_get(document, "environment")->child; item; item = item->next)
        hf_text_copy(profile->environment[profile->environment_count++], HF_PROFILE_NAME_SIZE, item->valuestring);
    profile->campaigns_dir = copy_string(hf_json_get_string(document, "campaigns_dir"));
    read_identity(hf_json_get(document, "vmm_identity"), profile);
    read_template(hf_json_get(document, "verify"), &profile->verify);
    read_template(hf_json_get(document, "boot"), &profile->boot);
    read_template(hf_json_get(document, "command"), &profile->command);
    const char *boot_report = hf_json_get_string(document, "boot_report");
    if (boot_report)
        hf_text_copy(profile->boot_report, sizeof(profile->boot_report), boot_report);
    COPY_FIELD(profile->pid_journal_variable, document, "pid_journal_variable");
    read_artifacts(hf_json_get(document, "artifacts"), profile);
    read_scenarios(hf_json_get(document, "scenarios"), profile);
}

int hf_profile_parse(const char *text, size_t length, const char *expected_name, struct hf_profile *profile,
                     struct hf_error *err)
{
    memset(profile, 0, sizeof(*profile));
    const struct hf_json_limits limits = {HF_PROFILE_MAX_BYTES, 8};
    cleanup_json cJSON *document = hf_json_parse(text, length, &limits, err);
    if (!document)
        return -1;
    if (hf_profile_shape_check(document, err) != 0) {
        if (err)
            err->code = "profile-invalid";
        return -1;
    }
    read_profile(document, profile);
    if (expected_name && strcmp(profile->name, expected_name) != 0)
        return hf_error_set(err, "profile-invalid", 0, "profile",
                            "expected profile \"%s\" (the name of the file), seen \"%s\"; rename one of them",
                            expected_name, profile->name);
    return hf_profile_rules_check(profile, err);
}

int hf_profile_load(const char *profiles_dir, const char *name, struct hf_profile *profile, struct hf_error *err)
{
    memset(profile, 0, sizeof(*profile));
    char quoted[HF_ERROR_QUOTE_SIZE];
    if (!hf_text_is(HF_TEXT_IDENTIFIER, name))
        return hf_error_set(err, "profile-invalid", 0, "profile",
                            "expected a profile name of the form [a-z][a-z0-9-]{0,63}, seen \"%s\"; name a file of "
                            "catalog/profiles without .json",
                            hf_error_quote(name, strlen(name), quoted));
    cleanup_close int directory = hf_dir_open(AT_FDCWD, profiles_dir, false, err);
    if (directory < 0)
        return -1;
    char file_name[HF_PROFILE_NAME_SIZE + sizeof(".json")];
    snprintf(file_name, sizeof(file_name), "%s.json", name);
    size_t length;
    cleanup_free char *text = hf_document_read(directory, file_name, HF_PROFILE_MAX_BYTES, &length, err);
    if (text && hf_profile_parse(text, length, name, profile, err) == 0)
        return 0;
    if (err && strcmp(err->code, "json-invalid") == 0)
        err->code = "profile-invalid"; /* of this file, and not of a request that names it */
    return hf_error_prefix(err, "profile \"%s\"", name);
}

void hf_profile_clear(struct hf_profile *profile)
{
    free(profile->campaigns_dir);
    free(profile->vmm_source);
    clear_template(&profile->verify);
    clear_template(&profile->boot);
    clear_template(&profile->command);
    for (size_t i = 0; i < profile->artifact_count; i++)
        free(profile->artifacts[i].path);
    for (size_t i = 0; i < profile->scenario_count; i++)
        clear_template(&profile->scenarios[i].extra);
    free(profile->scenarios);
    memset(profile, 0, sizeof(*profile));
}

bool hf_profile_has_backend(const struct hf_profile *profile, const char *backend)
{
    for (size_t i = 0; i < profile->backend_count; i++)
        if (strcmp(profile->backends[i], backend) == 0)
            return true;
    return false;
}

const struct hf_profile_scenario *hf_profile_find_scenario(const struct hf_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->scenario_count; i++)
        if (strcmp(profile->scenarios[i].name, name) == 0)
            return &profile->scenarios[i];
    return NULL;
}
