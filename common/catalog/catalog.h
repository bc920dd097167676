/*
 * Campaign files: `catalog/campaigns/<campaign>.json`. The trusted list of cases that a strategist may choose from; it
 * is the same bytes on controller and target, compared by digest at initialize.
 */
#ifndef HF_COMMON_CATALOG_CATALOG_H
#define HF_COMMON_CATALOG_CATALOG_H

#include "common/catalog/profile.h"
#include "common/digest.h"
#include "common/error.h"

#include <stddef.h>
#include <stdint.h>

#define HF_IDENTIFIER_SIZE      65 /* [a-z][a-z0-9-]{0,63} and NUL */
#define HF_CATALOG_MAX_CASES    64
#define HF_CATALOG_MAX_COVERAGE 16 /* tags per case */
#define HF_CATALOG_MAX_BYTES    (256 * 1024)

struct hf_case {
    char id[HF_IDENTIFIER_SIZE];
    char scenario[HF_IDENTIFIER_SIZE];
    char description[513];                                      /* UTF-8, at most 512 bytes */
    char coverage[HF_CATALOG_MAX_COVERAGE][HF_IDENTIFIER_SIZE]; /* in file order */
    size_t coverage_count;                                      /* 1.. */
    int repetitions;                                            /* 1..4 */
    int timeout_multiplier;                                     /* 1..8, of the phase timeout, per repetition */
};

struct hf_campaign {
    char name[HF_IDENTIFIER_SIZE];
    char description[1025];
    struct hf_case *cases; /* in file order */
    size_t case_count;     /* 1.. */
    char catalog_sha256[HF_SHA256_HEX_SIZE];
};

/* Parses one campaign file. The name inside must equal expected_name when that is not NULL. Codes: "json-invalid",
 * "catalog-invalid" (with the field). *campaign is all zero on failure. */
int hf_campaign_parse(const char *text, size_t length, const char *expected_name, struct hf_campaign *campaign,
                      struct hf_error *err);
/* Loads DIR/<name>.json and checks that every scenario is known to the profile (code "catalog-scenario-unknown");
 * profile may be NULL to look at a campaign without the intention to run it. A missing file is "storage-missing", one
 * that is no strict JSON "catalog-invalid". */
int hf_campaign_load(const char *campaigns_dir, const char *name, const struct hf_profile *profile,
                     struct hf_campaign *campaign, struct hf_error *err);
void hf_campaign_clear(struct hf_campaign *campaign);

const struct hf_case *hf_campaign_find(const struct hf_campaign *campaign, const char *case_id); /* NULL when absent */

/* Names of the *.json files in a directory, sorted; every other file name there is an error. */
int hf_campaign_list(const char *campaigns_dir, char (**names)[HF_IDENTIFIER_SIZE], size_t *count,
                     struct hf_error *err);

#endif
