/*
 * Loading of campaign files and the catalog digest. Called by the controller (broker, preflight) and the executor,
 * which compare the digest, so that both choose from the same cases. A campaign is data: nothing in it is ever
 * executed.
 */
#include "common/catalog/catalog.h"

#include "common/catalog/text.h"
#include "common/cleanup.h"
#include "common/durable.h"
#include "common/json.h"
#include "common/json_shape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array)          (sizeof(array) / sizeof((array)[0]))
#define CATALOG_MAX_DEPTH     8
#define CATALOG_MAX_CAMPAIGNS 256

static const struct hf_shape_field coverage_element = {
    .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER};

static const struct hf_shape_field case_fields[] = {
    {.name = "id", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER},
    {.name = "scenario", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER},
    {.name = "description", .type = HF_SHAPE_STRING, .min = 1, .max = 512, .text = HF_TEXT_PRINTABLE},
    {.name = "coverage",
     .type = HF_SHAPE_ARRAY,
     .flags = HF_SHAPE_UNIQUE,
     .min = 1,
     .max = HF_CATALOG_MAX_COVERAGE,
     .element = &coverage_element},
    {.name = "repetitions", .type = HF_SHAPE_INT, .min = 1, .max = 4},
    {.name = "timeout_multiplier", .type = HF_SHAPE_INT, .min = 1, .max = 8},
};
static const struct hf_shape case_shape = {"case", case_fields, COUNT(case_fields)};
static const struct hf_shape_field case_element = {.type = HF_SHAPE_OBJECT, .object = &case_shape};

static const struct hf_shape_field campaign_fields[] = {
    {.name = "schema_version", .type = HF_SHAPE_INT, .min = 1, .max = 1},
    {.name = "campaign", .type = HF_SHAPE_STRING, .min = 1, .max = 64, .text = HF_TEXT_IDENTIFIER},
    {.name = "description", .type = HF_SHAPE_STRING, .min = 1, .max = 1024, .text = HF_TEXT_PRINTABLE},
    {.name = "cases", .type = HF_SHAPE_ARRAY, .min = 1, .max = HF_CATALOG_MAX_CASES, .element = &case_element},
};
static const struct hf_shape campaign_shape = {"campaign", campaign_fields, COUNT(campaign_fields)};

static void read_case(const cJSON *item, struct hf_case *out)
{
    hf_text_copy(out->id, sizeof(out->id), hf_json_get_string(item, "id"));
    hf_text_copy(out->scenario, sizeof(out->scenario), hf_json_get_string(item, "scenario"));
    hf_text_copy(out->description, sizeof(out->description), hf_json_get_string(item, "description"));
    out->repetitions = (int)hf_json_get_int_or(item, "repetitions", 0);
    out->timeout_multiplier = (int)hf_json_get_int_or(item, "timeout_multiplier", 0);
    for (const cJSON *tag = hf_json_get(item, "coverage")->child; tag; tag = tag->next)
        hf_text_copy(out->coverage[out->coverage_count++], HF_IDENTIFIER_SIZE, tag->valuestring);
}

static void read_campaign(const cJSON *document, struct hf_campaign *campaign)
{
    hf_text_copy(campaign->name, sizeof(campaign->name), hf_json_get_string(document, "campaign"));
    hf_text_copy(campaign->description, sizeof(campaign->description), hf_json_get_string(document, "description"));
    const cJSON *cases = hf_json_get(document, "cases");
    campaign->cases = calloc((size_t)cJSON_GetArraySize(cases), sizeof(*campaign->cases));
    if (!campaign->cases)
        abort();
    for (const cJSON *item = cases->child; item; item = item->next)
        read_case(item, &campaign->cases[campaign->case_count++]);
}

static int check_unique_ids(const struct hf_campaign *campaign, struct hf_error *err)
{
    for (size_t i = 0; i < campaign->case_count; i++) {
        if (hf_campaign_find(campaign, campaign->cases[i].id) == &campaign->cases[i])
            continue;
        char field[64];
        snprintf(field, sizeof(field), "cases[%zu].id", i);
        return hf_error_set(err, "catalog-invalid", 0, field,
                            "%s: expected each case id once, seen \"%s\" again; rename or remove one", field,
                            campaign->cases[i].id);
    }
    return 0;
}

static int compare_ids(const void *left, const void *right)
{
    const struct hf_case *const *a = left, *const *b = right;
    return strcmp((*a)->id, (*b)->id);
}

static cJSON *digest_entry(const struct hf_campaign *campaign, const struct hf_case *entry)
{
    cJSON *object = hf_json_new_object();
    hf_json_add_string(object, "case_id", entry->id);
    hf_json_add_string(object, "campaign", campaign->name);
    hf_json_add_string(object, "scenario", entry->scenario);
    hf_json_add_string(object, "description", entry->description);
    cJSON *coverage = hf_json_add(object, "coverage", hf_json_new_array());
    for (size_t i = 0; i < entry->coverage_count; i++)
        hf_json_append(coverage, hf_json_new_string(entry->coverage[i]));
    hf_json_add_int(object, "repetitions", entry->repetitions);
    hf_json_add_int(object, "timeout_multiplier", entry->timeout_multiplier);
    return object;
}

static void compute_digest(struct hf_campaign *campaign)
{
    const struct hf_case *sorted[HF_CATALOG_MAX_CASES] = {0};
    for (size_t i = 0; i < campaign->case_count; i++)
        sorted[i] = &campaign->cases[i];
    qsort(sorted, campaign->case_count, sizeof(sorted[0]), compare_ids);
    cleanup_json cJSON *list = hf_json_new_array();
    for (size_t i = 0; i < campaign->case_count; i++)
        hf_json_append(list, digest_entry(campaign, sorted[i]));
    size_t length;
    cleanup_free char *text = hf_json_canonical(list, &length);
    hf_sha256_hex(text, length, campaign->catalog_sha256);
}

int hf_campaign_parse(const char *text, size_t length, const char *expected_name, struct hf_campaign *campaign,
                      struct hf_error *err)
{
    memset(campaign, 0, sizeof(*campaign));
    const struct hf_json_limits limits = {HF_CATALOG_MAX_BYTES, CATALOG_MAX_DEPTH};
    cleanup_json cJSON *document = hf_json_parse(text, length, &limits, err);
    if (!document)
        return -1;
    if (hf_shape_check(&campaign_shape, NULL, document, err) != 0) {
        if (err)
            err->code = "catalog-invalid";
        return -1;
    }
    read_campaign(document, campaign);
    int result = check_unique_ids(campaign, err);
    if (result == 0 && expected_name && strcmp(campaign->name, expected_name) != 0)
        result = hf_error_set(err, "catalog-invalid", 0, "campaign",
                              "campaign: expected \"%s\" (the name of the file), seen \"%s\"; rename one of them",
                              expected_name, campaign->name);
    if (result != 0) {
        hf_campaign_clear(campaign);
        return -1;
    }
    compute_digest(campaign);
    return 0;
}

static int check_scenarios(const struct hf_campaign *campaign, const struct hf_profile *profile, struct hf_error *err)
{
    for (size_t i = 0; i < campaign->case_count; i++) {
        const struct hf_case *entry = &campaign->cases[i];
        if (hf_profile_find_scenario(profile, entry->scenario))
            continue;
        char field[64];
        snprintf(field, sizeof(field), "cases[%zu].scenario", i);
        return hf_error_set(err, "catalog-scenario-unknown", 0, field,
                            "case \"%s\": expected a scenario that profile \"%s\" can run, seen \"%s\"; choose another "
                            "campaign or a profile that lists this scenario",
                            entry->id, profile->name, entry->scenario);
    }
    return 0;
}

int hf_campaign_load(const char *campaigns_dir, const char *name, const struct hf_profile *profile,
                     struct hf_campaign *campaign, struct hf_error *err)
{
    memset(campaign, 0, sizeof(*campaign));
    char quoted[HF_ERROR_QUOTE_SIZE];
    if (!hf_text_is(HF_TEXT_IDENTIFIER, name))
        return hf_error_set(
            err, "catalog-invalid", 0, "campaign",
            "expected a campaign name of the form [a-z][a-z0-9-]{0,63}, seen \"%s\"; name a file of the "
            "campaigns directory without .json",
            hf_error_quote(name, strlen(name), quoted));
    cleanup_close int directory = hf_dir_open(AT_FDCWD, campaigns_dir, false, err);
    if (directory < 0)
        return -1;
    char file_name[HF_IDENTIFIER_SIZE + sizeof(".json")];
    snprintf(file_name, sizeof(file_name), "%s.json", name);
    size_t length;
    cleanup_free char *text = hf_document_read(directory, file_name, HF_CATALOG_MAX_BYTES, &length, err);
    if (!text || hf_campaign_parse(text, length, name, campaign, err) != 0 ||
        (profile && check_scenarios(campaign, profile, err) != 0)) {
        hf_campaign_clear(campaign);
        if (err && strcmp(err->code, "json-invalid") == 0)
            err->code = "catalog-invalid"; /* of this file, and not of a request that names it */
        return hf_error_prefix(err, "campaign \"%s\"", name);
    }
    return 0;
}

void hf_campaign_clear(struct hf_campaign *campaign)
{
    free(campaign->cases);
    memset(campaign, 0, sizeof(*campaign));
}

const struct hf_case *hf_campaign_find(const struct hf_campaign *campaign, const char *case_id)
{
    for (size_t i = 0; i < campaign->case_count; i++)
        if (strcmp(campaign->cases[i].id, case_id) == 0)
            return &campaign->cases[i];
    return NULL;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* "<identifier>.json" to its identifier; anything else in a campaigns directory is refused, not skipped: a file that is
 * silently ignored would be a campaign that silently never runs. */
static int campaign_name(const char *file_name, char out[HF_IDENTIFIER_SIZE], struct hf_error *err)
{
    size_t length = strlen(file_name);
    if (length > 5 && length - 5 < HF_IDENTIFIER_SIZE && strcmp(file_name + length - 5, ".json") == 0) {
        memcpy(out, file_name, length - 5);
        out[length - 5] = '\0';
        if (hf_text_is(HF_TEXT_IDENTIFIER, out))
            return 0;
    }
    char quoted[HF_ERROR_QUOTE_SIZE];
    return hf_error_set(err, "catalog-invalid", 0, "",
                        "campaigns directory: expected only files named <campaign>.json, seen \"%s\"; move it away",
                        hf_error_quote(file_name, length, quoted));
}

static int read_names(DIR *directory, char (*names)[HF_IDENTIFIER_SIZE], size_t *count, struct hf_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry && errno != 0)
            return hf_error_set(err, "catalog-invalid", errno, "",
                                "campaigns directory: reading it failed: %s; check the disk", strerror(errno));
        if (!entry)
            return 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (*count == CATALOG_MAX_CAMPAIGNS)
            return hf_error_set(err, "catalog-invalid", 0, "",
                                "campaigns directory: expected at most %d files, seen more; split it",
                                CATALOG_MAX_CAMPAIGNS);
        if (campaign_name(entry->d_name, names[*count], err) != 0)
            return -1;
        (*count)++;
    }
}

int hf_campaign_list(const char *campaigns_dir, char (**names)[HF_IDENTIFIER_SIZE], size_t *count, struct hf_error *err)
{
    *names = NULL;
    *count = 0;
    int fd = hf_dir_open(AT_FDCWD, campaigns_dir, false, err);
    if (fd < 0)
        return -1;
    cleanup_dir DIR *directory = fdopendir(fd); /* owns fd from here on */
    if (!directory) {
        int saved_errno = errno;
        close(fd);
        return hf_error_set(err, "catalog-invalid", saved_errno, "",
                            "campaigns directory: opening it failed: %s; check it", strerror(saved_errno));
    }
    char(*found)[HF_IDENTIFIER_SIZE] = calloc(CATALOG_MAX_CAMPAIGNS, sizeof(*found));
    if (!found)
        abort();
    size_t found_count = 0;
    if (read_names(directory, found, &found_count, err) != 0) {
        free(found);
        return -1;
    }
    qsort(found, found_count, sizeof(*found), compare_names);
    *names = found;
    *count = found_count;
    return 0;
}
