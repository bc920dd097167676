/* `holdfast catalog`: lists campaigns and their cases as the loader sees them. Reads catalog/, writes stdout. */
#include "common/catalog/catalog.h"
#include "cli/command.h"
#include "common/cleanup.h"
#include "common/durable.h"
#include "common/json.h"
#include "common/options/options.h"
#include "common/options/paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct listing {
    char campaigns_dir[HF_PATH_SIZE + 32];
    struct hf_profile profile;
    bool json;
};

static bool supported(const struct hf_profile *profile, const struct hf_campaign *campaign)
{
    for (size_t i = 0; i < campaign->case_count; i++)
        if (!hf_profile_find_scenario(profile, campaign->cases[i].scenario))
            return false;
    return true;
}

static void print_text(const struct listing *listing, const struct hf_campaign *campaign)
{
    printf("%s  %s\n  %s\n", campaign->name,
           supported(&listing->profile, campaign) ? "" : "(has scenarios that this profile does not run)",
           campaign->description);
    for (size_t i = 0; i < campaign->case_count; i++) {
        const struct hf_case *item = &campaign->cases[i];
        printf("    %-34s %-28s x%d  %s\n", item->id, item->scenario, item->repetitions,
               hf_profile_find_scenario(&listing->profile, item->scenario) ? "" : "(scenario unknown to the profile)");
    }
    printf("  digest %s\n\n", campaign->catalog_sha256);
}

static cJSON *case_json(const struct listing *listing, const struct hf_case *item)
{
    cJSON *object = hf_json_new_object();
    hf_json_add_string(object, "id", item->id);
    hf_json_add_string(object, "scenario", item->scenario);
    hf_json_add_string(object, "description", item->description);
    cJSON *coverage = hf_json_add(object, "coverage", hf_json_new_array());
    for (size_t i = 0; i < item->coverage_count; i++)
        hf_json_append(coverage, hf_json_new_string(item->coverage[i]));
    hf_json_add_int(object, "repetitions", item->repetitions);
    hf_json_add_int(object, "timeout_multiplier", item->timeout_multiplier);
    hf_json_add_bool(object, "supported", hf_profile_find_scenario(&listing->profile, item->scenario) != NULL);
    return object;
}

static void print_json(const struct listing *listing, const struct hf_campaign *campaign)
{
    cleanup_json cJSON *object = hf_json_new_object();
    hf_json_add_string(object, "campaign", campaign->name);
    hf_json_add_string(object, "description", campaign->description);
    hf_json_add_string(object, "catalog_sha256", campaign->catalog_sha256);
    hf_json_add_bool(object, "supported", supported(&listing->profile, campaign));
    cJSON *cases = hf_json_add(object, "cases", hf_json_new_array());
    for (size_t i = 0; i < campaign->case_count; i++)
        hf_json_append(cases, case_json(listing, &campaign->cases[i]));
    cleanup_free char *text = hf_json_canonical(object, NULL);
    puts(text);
}

static int print_campaign(const struct listing *listing, const char *name, struct hf_error *err)
{
    char file[HF_IDENTIFIER_SIZE + 8];
    snprintf(file, sizeof file, "%s.json", name);
    cleanup_close int directory = hf_dir_open(AT_FDCWD, listing->campaigns_dir, false, err);
    if (directory < 0)
        return -1;
    size_t length;
    cleanup_free char *text = hf_document_read(directory, file, HF_CATALOG_MAX_BYTES, &length, err);
    struct hf_campaign campaign;
    if (!text || hf_campaign_parse(text, length, name, &campaign, err) < 0)
        return -1;
    if (listing->json)
        print_json(listing, &campaign);
    else
        print_text(listing, &campaign);
    hf_campaign_clear(&campaign);
    return 0;
}

static int print_all(const struct listing *listing, struct hf_error *err)
{
    char(*names)[HF_IDENTIFIER_SIZE] = NULL;
    size_t count;
    if (hf_campaign_list(listing->campaigns_dir, &names, &count, err) < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = print_campaign(listing, names[i], err);
    free(names);
    return result;
}

static int open_listing(struct listing *listing, const char *source_root, const char *profile, struct hf_error *err)
{
    struct hf_paths paths;
    if (hf_paths_find(&paths, source_root, err) < 0)
        return -1;
    char profiles_dir[HF_PATH_SIZE + 32];
    snprintf(profiles_dir, sizeof profiles_dir, "%s/catalog/profiles", paths.source_root);
    if (hf_profile_load(profiles_dir, profile, &listing->profile, err) < 0)
        return -1;
    const struct hf_placeholders values = {
        .source_root = paths.source_root, .bin_dir = paths.bin_dir, .guest_dir = paths.guest_dir};
    cleanup_free char *campaigns_dir = hf_placeholder_expand(listing->profile.campaigns_dir, &values, err);
    if (!campaigns_dir)
        return -1;
    snprintf(listing->campaigns_dir, sizeof listing->campaigns_dir, "%s", campaigns_dir);
    return 0;
}

int hf_command_catalog(int argc, char **argv)
{
    const char *profile = "qemu";
    const char *source_root = NULL;
    static struct listing listing;
    const struct hf_option options[] = {
        {.name = "profile",
         .kind = HF_OPTION_STRING,
         .argument = "NAME",
         .target = &profile,
         .help = "mark what this profile runs; default qemu"},
        {.name = "source-root",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .target = &source_root,
         .help = "tree with catalog/; default: above this program"},
        {.name = "json", .kind = HF_OPTION_FLAG, .target = &listing.json, .help = "one JSON object per campaign"},
    };
    struct hf_error err = {0};
    struct hf_option_result result;
    if (hf_options_parse(options, sizeof options / sizeof options[0], argc, argv, &result, &err) < 0 ||
        (!result.help && result.first_operand < argc &&
         hf_error_set(&err, "usage", 0, "", "'holdfast catalog' takes options only") < 0))
        return hf_command_fail("catalog", &err);
    if (result.help) {
        printf("usage: holdfast catalog [OPTIONS]\n\nLists campaigns, cases, scenarios and catalog digests.\n\n");
        hf_options_print(options, sizeof options / sizeof options[0], stdout);
        return HF_EXIT_PASSED;
    }
    int status = open_listing(&listing, source_root, profile, &err);
    if (status == 0)
        status = print_all(&listing, &err);
    hf_profile_clear(&listing.profile);
    return status == 0 ? HF_EXIT_PASSED : hf_command_fail("catalog", &err);
}
