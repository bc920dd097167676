/* Campaign files: every bound, the digest, and that our three files say what the design says. */
#include "common/catalog/catalog.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "tests/run_suite.h"
#include "tests/unit/catalog/mutate.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAMPAIGNS "catalog/campaigns"
#define PROFILES  "catalog/profiles"

static const char valid[] =
    "{\"schema_version\":1,\"campaign\":\"sample\",\"description\":\"text\",\"cases\":["
    "{\"id\":\"b-case\",\"scenario\":\"lifecycle\",\"description\":\"one\",\"coverage\":[\"y\",\"x\"],"
    "\"repetitions\":2,\"timeout_multiplier\":3},"
    "{\"id\":\"a-case\",\"scenario\":\"smp-lapic\",\"description\":\"two\",\"coverage\":[\"x\"],"
    "\"repetitions\":1,\"timeout_multiplier\":8}]}";

static int parse(const char *text, size_t length, const void *context, struct hf_error *err)
{
    struct hf_campaign campaign;
    int result = hf_campaign_parse(text, length, context, &campaign, err);
    if (result != 0) {
        static const struct hf_campaign zero;
        ck_assert_mem_eq(&campaign, &zero, sizeof(zero));
    }
    hf_campaign_clear(&campaign);
    return result;
}

/* The digest of a text, or "" when it is refused. */
static void digest_of(const char *text, char out[HF_SHA256_HEX_SIZE])
{
    struct hf_campaign campaign;
    struct hf_error err = {0};
    out[0] = '\0';
    if (hf_campaign_parse(text, strlen(text), NULL, &campaign, &err) == 0)
        memcpy(out, campaign.catalog_sha256, HF_SHA256_HEX_SIZE);
    hf_campaign_clear(&campaign);
}

START_TEST(digest_matches_the_independent_vector)
{
    cleanup_free char *text = read_text("tests/data/vectors/catalog-digest.json");
    const struct hf_json_limits limits = {1 << 20, 16};
    struct hf_error err = {0};
    cleanup_json cJSON *vector = hf_json_parse(text, strlen(text), &limits, &err);
    ck_assert_ptr_nonnull(vector);
    cleanup_free char *file = hf_json_canonical(hf_json_get(vector, "campaign_file"), NULL);
    char digest[HF_SHA256_HEX_SIZE];
    digest_of(file, digest);
    ck_assert_str_eq(digest, hf_json_get_string(vector, "catalog_sha256"));
}
END_TEST

START_TEST(every_key_is_required_once_with_its_type_and_no_other_key_is_accepted)
{
    const struct mutation_subject subject = {.valid = valid, .parse = parse, .code = "catalog-invalid"};
    ck_assert_uint_gt(mutate_all(&subject), 150);
}
END_TEST

struct bound {
    const char *path;
    const char *json;
};

static const struct bound refused[] = {
    {"schema_version", "0"},
    {"schema_version", "2"},
    {"schema_version", "1.0"},
    {"campaign", "\"\""},
    {"campaign", "\"Sample\""},
    {"campaign", "\"1sample\""},
    {"campaign", "\"-sample\""},
    {"campaign", "\"a_b\""},
    {"campaign", "\"../x\""},
    {"campaign", "\"a\\n\""},
    {"campaign", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""}, /* 65 */
    {"description", "\"\""},
    {"description", "\"a\\u0007\""},
    {"cases", "[]"},
    {"cases[0].id", "\"A\""},
    {"cases[0].id", "\"\""},
    {"cases[0].scenario", "\"a b\""},
    {"cases[0].scenario", "\"\\u00e9\""},
    {"cases[0].description", "\"\""},
    {"cases[0].coverage", "[]"},
    {"cases[0].coverage", "[\"x\",\"y\",\"x\"]"},
    {"cases[0].coverage",
     "[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\",\"k\",\"l\",\"m\",\"n\",\"o\",\"p\",\"q\"]"},
    {"cases[0].repetitions", "0"},
    {"cases[0].repetitions", "5"},
    {"cases[0].repetitions", "-1"},
    {"cases[0].timeout_multiplier", "0"},
    {"cases[0].timeout_multiplier", "9"},
    {"cases[0].timeout_multiplier", "1e0"},
};

static const struct bound accepted[] = {
    {"campaign", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""}, /* 64 */
    {"campaign", "\"a\""},
    {"cases[0].id", "\"z9-\""},
    {"cases[0].coverage",
     "[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\",\"k\",\"l\",\"m\",\"n\",\"o\",\"p\"]"},
    {"cases[0].repetitions", "1"},
    {"cases[0].repetitions", "4"},
    {"cases[0].timeout_multiplier", "1"},
    {"cases[0].timeout_multiplier", "8"},
};

START_TEST(values_out_of_bounds_are_refused_with_their_field)
{
    const struct bound *bound = &refused[_i];
    cleanup_free char *text = mutate_set(valid, bound->path, bound->json);
    struct hf_error err = {0};
    ck_assert_msg(parse(text, strlen(text), NULL, &err) == -1, "accepted: %s = %s", bound->path, bound->json);
    ck_assert_str_eq(err.code, "catalog-invalid");
    ck_assert_str_eq(err.field, bound->path);
}
END_TEST

START_TEST(values_at_their_bounds_are_accepted)
{
    const struct bound *bound = &accepted[_i];
    cleanup_free char *text = mutate_set(valid, bound->path, bound->json);
    struct hf_error err = {0};
    ck_assert_msg(parse(text, strlen(text), NULL, &err) == 0, "%s = %s: %s", bound->path, bound->json, err.message);
}
END_TEST

/* `count` two-byte characters as a JSON string, and `extra` one-byte ones. */
static char *long_string(size_t count, size_t extra)
{
    char *text = calloc(1, count * 2 + extra + 3);
    ck_assert(text != NULL);
    strcpy(text, "\"");
    for (size_t i = 0; i < count; i++)
        strcat(text, "\xc3\xa9");
    for (size_t i = 0; i < extra; i++)
        strcat(text, "a");
    return strcat(text, "\"");
}

START_TEST(lengths_are_counted_in_bytes)
{
    static const struct {
        const char *path;
        size_t characters;
    } fields[] = {{"description", 512}, {"cases[1].description", 256}};
    for (size_t i = 0; i < 2; i++) {
        struct hf_error err = {0};
        cleanup_free char *fits = long_string(fields[i].characters, 0);
        cleanup_free char *text = mutate_set(valid, fields[i].path, fits);
        ck_assert_msg(parse(text, strlen(text), NULL, &err) == 0, "%s", err.message);
        cleanup_free char *too_long = long_string(fields[i].characters, 1);
        cleanup_free char *other = mutate_set(valid, fields[i].path, too_long);
        ck_assert_int_eq(parse(other, strlen(other), NULL, &err), -1);
        ck_assert_str_eq(err.field, fields[i].path);
    }
}
END_TEST

START_TEST(case_ids_are_unique)
{
    cleanup_free char *text = mutate_set(valid, "cases[0].id", "\"a-case\"");
    struct hf_error err = {0};
    ck_assert_int_eq(parse(text, strlen(text), NULL, &err), -1);
    ck_assert_str_eq(err.code, "catalog-invalid");
    ck_assert_str_eq(err.field, "cases[1].id");
}
END_TEST

START_TEST(more_than_64_cases_are_refused)
{
    for (size_t count = 64; count <= 65; count++) {
        const struct hf_json_limits limits = {sizeof(valid), 8};
        struct hf_error err = {0};
        cleanup_json cJSON *document = hf_json_parse(valid, strlen(valid), &limits, &err);
        cJSON *cases = cJSON_GetObjectItemCaseSensitive(document, "cases");
        for (size_t i = 2; i < count; i++) {
            cJSON *copy = cJSON_Duplicate(cJSON_GetArrayItem(cases, 0), true);
            char id[32];
            snprintf(id, sizeof(id), "case-%zu", i);
            cJSON_SetValuestring(cJSON_GetObjectItemCaseSensitive(copy, "id"), id);
            hf_json_append(cases, copy);
        }
        cleanup_free char *text = hf_json_canonical(document, NULL);
        ck_assert_int_eq(parse(text, strlen(text), NULL, &err), count == 64 ? 0 : -1);
    }
}
END_TEST

START_TEST(the_name_inside_equals_the_name_of_the_file)
{
    struct hf_error err = {0};
    ck_assert_int_eq(parse(valid, strlen(valid), "sample", &err), 0);
    ck_assert_int_eq(parse(valid, strlen(valid), "other", &err), -1);
    ck_assert_str_eq(err.field, "campaign");
    ck_assert_ptr_nonnull(strstr(err.message, "other"));
}
END_TEST

START_TEST(text_that_is_not_strict_json_is_refused)
{
    static const char *const texts[] = {"", "[]", "{", "null", "{\"schema_version\":1}{", "\xff", "{\"a\":01}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct hf_error err = {0};
        ck_assert_int_eq(parse(texts[i], strlen(texts[i]), NULL, &err), -1);
        ck_assert_ptr_nonnull(err.code);
    }
}
END_TEST

START_TEST(a_file_above_its_size_bound_is_refused)
{
    cleanup_free char *text = malloc(HF_CATALOG_MAX_BYTES + 1);
    ck_assert(text != NULL);
    memset(text, ' ', HF_CATALOG_MAX_BYTES + 1);
    memcpy(text, valid, strlen(valid));
    struct hf_error err = {0};
    ck_assert_msg(parse(text, HF_CATALOG_MAX_BYTES, NULL, &err) == 0, "%s", err.message);
    ck_assert_int_eq(parse(text, HF_CATALOG_MAX_BYTES + 1, NULL, &err), -1);
    ck_assert_str_eq(err.code, "json-invalid");
}
END_TEST

/* A file that is no JSON is a fault of the catalog; whoever named it sent a perfect request. */
START_TEST(a_file_that_is_no_json_is_the_catalogs_fault)
{
    char directory[] = "/tmp/hf-catalog-XXXXXX", path[64];
    struct hf_campaign campaign;
    struct hf_error err = {0};
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/broken.json", directory);
    FILE *file = fopen(path, "we");
    ck_assert(file && fputs("{\"campaign\":", file) >= 0 && fclose(file) == 0);
    ck_assert_int_eq(hf_campaign_load(directory, "broken", NULL, &campaign, &err), -1);
    ck_assert_str_eq(err.code, "catalog-invalid");
    ck_assert_ptr_nonnull(strstr(err.message, "campaign \"broken\": invalid JSON"));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(digest_ignores_form_and_case_order_and_nothing_else)
{
    char digest[HF_SHA256_HEX_SIZE], other[HF_SHA256_HEX_SIZE];
    digest_of(valid, digest);
    ck_assert_uint_eq(strlen(digest), 64);
    const struct hf_json_limits limits = {sizeof(valid), 8};
    struct hf_error err = {0};
    cleanup_json cJSON *document = hf_json_parse(valid, strlen(valid), &limits, &err);
    cJSON *cases = cJSON_GetObjectItemCaseSensitive(document, "cases");
    hf_json_append(cases, cJSON_DetachItemFromArray(cases, 0));
    cleanup_free char *reordered = hf_json_canonical(document, NULL);
    ck_assert_str_ne(reordered, valid);
    digest_of(reordered, other);
    ck_assert_str_eq(digest, other);
    static const struct bound changes[] = {
        {"campaign", "\"other\""},
        {"cases[0].id", "\"c-case\""},
        {"cases[0].scenario", "\"other\""},
        {"cases[0].description", "\"1\""},
        {"cases[0].repetitions", "3"},
        {"cases[0].timeout_multiplier", "4"},
        {"cases[0].coverage", "[\"x\",\"y\"]"},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        cleanup_free char *changed = mutate_set(valid, changes[i].path, changes[i].json);
        digest_of(changed, other);
        ck_assert_uint_eq(strlen(other), 64);
        ck_assert_msg(strcmp(digest, other) != 0, "%s does not change the digest", changes[i].path);
    }
    cleanup_free char *described = mutate_set(valid, "description", "\"another\"");
    digest_of(described, other);
    ck_assert_str_eq(digest, other);
}
END_TEST

/* The table of the design, transcribed once more, so that an edit of a campaign file shows. */
static const struct {
    const char *campaign, *id, *scenario, *coverage;
    int repetitions, timeout_multiplier;
} design[] = {
    {"workload-isolation", "workload-identity-boundary", "workload-identity",
     "identity, capabilities, no-new-privileges, namespaces, device-isolation", 1, 2},
    {"workload-isolation", "managed-control-lifecycle", "managed-lifecycle",
     "control-authentication, reconnect, exec-timeout, cancellation, teardown", 2, 3},
    {"workload-isolation", "managed-exec-churn", "managed-lifecycle",
     "process-churn, signal-churn, repeated-exec, timeout-recovery, output-bounds", 4, 3},
    {"workload-isolation", "filesystem-alias-boundary", "denied-filesystem-paths",
     "path-traversal, symlink-aliasing, junction-aliasing, mount-policy, read-only-layers", 1, 3},
    {"workload-isolation", "sandbox-storage-boundary", "sandbox-blocks",
     "overlay-storage, scratch-isolation, block-drain, media-validation", 1, 4},
    {"workload-isolation", "directional-network-boundary", "directional-network-policy",
     "network-egress, network-ingress, default-deny", 1, 3},
    {"workload-isolation", "loopback-network-boundary", "host-loopback-policy",
     "host-loopback, proxy-exception, port-forwarding", 1, 3},
    {"workload-isolation", "l3-l4-network-boundary", "l3-l4-egress-policy",
     "tcp-policy, udp-policy, deny-precedence, rule-validation", 1, 3},
    {"guest-isolation", "vmm-lifecycle-boundary", "lifecycle",
     "boot-readiness, control-ping, abnormal-shutdown, process-teardown", 2, 2},
    {"guest-isolation", "console-backpressure-boundary", "console-exit",
     "console-backpressure, output-exhaustion, exit-status, output-drain", 4, 3},
    {"guest-isolation", "virtio-network-boundary", "virtio-net", "virtio-net, packet-handling, network-teardown", 2, 3},
    {"guest-isolation", "interrupt-topology-boundary", "smp-lapic",
     "lapic, timer-progress, interrupt-progress, processor-topology", 1, 4},
    {"guest-isolation", "processor-interrupt-churn", "smp-lapic",
     "cpu-churn, interrupt-churn, timer-churn, relaunch-cleanliness", 4, 4},
    {"guest-isolation", "structured-outcome-boundary", "structured-outcome",
     "outcome-schema, exit-classification, policy-report, teardown-report", 2, 3},
    {"snapshot-isolation", "snapshot-core-boundary", "snapshot-core",
     "capture-boundary, artifact-immutability, repeated-restore, state-divergence", 1, 4},
    {"snapshot-isolation", "snapshot-console-boundary", "console-snapshot",
     "console-rx, console-tx, queue-boundary, console-restore", 2, 4},
    {"snapshot-isolation", "snapshot-filesystem-boundary", "filesystem-snapshot",
     "virtio-fs, filesystem-activity, disk-io-churn, inode-churn, attachment-revalidation, read-only-host-state", 2, 5},
    {"snapshot-isolation", "snapshot-scratch-boundary", "scratch-snapshot",
     "scratch-publication, scratch-replacement, corrupt-artifact, missing-artifact, truncated-artifact", 1, 5},
    {"snapshot-isolation", "snapshot-network-boundary", "network-snapshot",
     "network-activity, endpoint-state, network-restore", 2, 5},
    {"snapshot-isolation", "snapshot-policy-boundary", "endpoint-policy-snapshot",
     "endpoint-policy, policy-immutability, post-restore-policy", 1, 4},
    {"snapshot-isolation", "snapshot-smp-boundary", "smp-snapshot",
     "smp-capture, vcpu-state, interrupt-state, smp-restore", 1, 6},
    {"snapshot-isolation", "snapshot-memory-boundary", "restore-memory",
     "memory-load, memory-expansion, saved-ram-validation, memory-restore", 1, 8},
    {"snapshot-isolation", "snapshot-processor-prefix-boundary", "restore-processors",
     "processor-load, processor-prefix, saved-vp-validation, processor-restore", 1, 8},
    {"snapshot-isolation", "snapshot-tier-boundary", "snapshot-tiers",
     "snapshot-tiers, cross-instance-isolation, tier-validation", 1, 6},
};

START_TEST(our_campaigns_hold_the_24_cases_of_the_design)
{
    static const char *const names[] = {"guest-isolation", "snapshot-isolation", "workload-isolation"};
    size_t total = 0;
    for (size_t i = 0; i < 3; i++) {
        struct hf_campaign campaign;
        struct hf_error err = {0};
        ck_assert_msg(hf_campaign_load(CAMPAIGNS, names[i], NULL, &campaign, &err) == 0, "%s", err.message);
        total += campaign.case_count;
        for (size_t j = 0; j < sizeof(design) / sizeof(design[0]); j++) {
            if (strcmp(design[j].campaign, names[i]) != 0)
                continue;
            const struct hf_case *entry = hf_campaign_find(&campaign, design[j].id);
            ck_assert_msg(entry != NULL, "%s is missing", design[j].id);
            ck_assert_str_eq(entry->scenario, design[j].scenario);
            ck_assert_int_eq(entry->repetitions, design[j].repetitions);
            ck_assert_int_eq(entry->timeout_multiplier, design[j].timeout_multiplier);
            char coverage[512] = "";
            for (size_t k = 0; k < entry->coverage_count; k++)
                snprintf(coverage + strlen(coverage), sizeof(coverage) - strlen(coverage), "%s%s", k ? ", " : "",
                         entry->coverage[k]);
            ck_assert_str_eq(coverage, design[j].coverage);
        }
        hf_campaign_clear(&campaign);
    }
    ck_assert_uint_eq(total, sizeof(design) / sizeof(design[0]));
}
END_TEST

START_TEST(the_qemu_profile_runs_guest_isolation)
{
    struct hf_profile profile;
    struct hf_campaign campaign;
    struct hf_error err = {0};
    ck_assert_msg(hf_profile_load(PROFILES, "qemu", &profile, &err) == 0, "%s", err.message);
    ck_assert_msg(hf_campaign_load(CAMPAIGNS, "guest-isolation", &profile, &campaign, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(campaign.case_count, 6);
    hf_campaign_clear(&campaign);
    hf_profile_clear(&profile);
}
END_TEST

START_TEST(a_scenario_that_the_profile_does_not_know_is_refused_at_load_with_its_names)
{
    struct hf_profile profile;
    struct hf_campaign campaign;
    struct hf_error err = {0};
    cleanup_free char *text = read_text(PROFILES "/qemu.json");
    cleanup_free char *narrowed = mutate_set(text, "scenarios[1]", NULL); /* console-exit */
    ck_assert_int_eq(hf_profile_parse(narrowed, strlen(narrowed), "qemu", &profile, &err), 0);
    ck_assert_int_eq(hf_campaign_load(CAMPAIGNS, "guest-isolation", &profile, &campaign, &err), -1);
    ck_assert_str_eq(err.code, "catalog-scenario-unknown");
    ck_assert_str_eq(err.field, "cases[1].scenario");
    ck_assert_ptr_nonnull(strstr(err.message, "console-backpressure-boundary"));
    ck_assert_ptr_nonnull(strstr(err.message, "console-exit"));
    ck_assert_ptr_nonnull(strstr(err.message, "qemu"));
    ck_assert_ptr_null(campaign.cases);
    hf_profile_clear(&profile);
}
END_TEST

START_TEST(the_nvx_profile_knows_every_scenario)
{
    struct hf_profile profile;
    struct hf_error err = {0};
    ck_assert_msg(hf_profile_load(PROFILES, "nvx", &profile, &err) == 0, "%s", err.message);
    for (size_t i = 0; i < sizeof(design) / sizeof(design[0]); i++)
        ck_assert_ptr_nonnull(hf_profile_find_scenario(&profile, design[i].scenario));
    hf_profile_clear(&profile);
}
END_TEST

static char scratch[64];

static void make_scratch(void)
{
    snprintf(scratch, sizeof(scratch), "/tmp/hf-test-catalog-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
}

static void remove_scratch(void)
{
    DIR *directory = opendir(scratch);
    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    ck_assert_int_eq(rmdir(scratch), 0);
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(only_a_regular_file_of_the_right_name_is_loaded)
{
    struct hf_campaign campaign;
    struct hf_error err = {0};
    write_file("sample.json", valid);
    ck_assert_msg(hf_campaign_load(scratch, "sample", NULL, &campaign, &err) == 0, "%s", err.message);
    hf_campaign_clear(&campaign);
    ck_assert_int_eq(hf_campaign_load(scratch, "absent", NULL, &campaign, &err), -1);
    ck_assert_str_eq(err.code, "storage-missing");
    ck_assert_ptr_nonnull(strstr(err.message, "absent"));
    static const char *const bad[] = {"", "../sample", "sample.json", "Sample", "a/b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(hf_campaign_load(scratch, bad[i], NULL, &campaign, &err), -1);
        ck_assert_str_eq(err.code, "catalog-invalid");
    }
    char link[256];
    snprintf(link, sizeof(link), "%s/linked.json", scratch);
    ck_assert_int_eq(symlink("sample.json", link), 0);
    ck_assert_int_eq(hf_campaign_load(scratch, "linked", NULL, &campaign, &err), -1);
    snprintf(link, sizeof(link), "%s/pipe.json", scratch);
    ck_assert_int_eq(mkfifo(link, 0600), 0);
    ck_assert_int_eq(hf_campaign_load(scratch, "pipe", NULL, &campaign, &err), -1);
    ck_assert_int_eq(hf_campaign_load("/nonexistent", "sample", NULL, &campaign, &err), -1);
}
END_TEST

START_TEST(a_listing_is_sorted_and_refuses_foreign_files)
{
    char(*names)[HF_IDENTIFIER_SIZE];
    size_t count;
    struct hf_error err = {0};
    ck_assert_int_eq(hf_campaign_list(scratch, &names, &count, &err), 0);
    ck_assert_uint_eq(count, 0);
    free(names);
    write_file("b.json", valid);
    write_file("a.json", valid);
    ck_assert_msg(hf_campaign_list(scratch, &names, &count, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(names[0], "a");
    ck_assert_str_eq(names[1], "b");
    free(names);
    static const char *const foreign[] = {"a.json.bak", "README", ".json", "A.json", "x.jsonl"};
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        write_file(foreign[i], valid);
        ck_assert_int_eq(hf_campaign_list(scratch, &names, &count, &err), -1);
        ck_assert_ptr_null(names);
        ck_assert_ptr_nonnull(strstr(err.message, foreign[i]));
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", scratch, foreign[i]);
        unlink(path);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("catalog");
    TCase *format = tcase_create("format");
    tcase_set_timeout(format, 120);
    tcase_add_test(format, digest_matches_the_independent_vector);
    tcase_add_test(format, every_key_is_required_once_with_its_type_and_no_other_key_is_accepted);
    tcase_add_loop_test(format, values_out_of_bounds_are_refused_with_their_field, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_loop_test(format, values_at_their_bounds_are_accepted, 0, sizeof(accepted) / sizeof(accepted[0]));
    tcase_add_test(format, lengths_are_counted_in_bytes);
    tcase_add_test(format, case_ids_are_unique);
    tcase_add_test(format, more_than_64_cases_are_refused);
    tcase_add_test(format, the_name_inside_equals_the_name_of_the_file);
    tcase_add_test(format, text_that_is_not_strict_json_is_refused);
    tcase_add_test(format, a_file_above_its_size_bound_is_refused);
    tcase_add_test(format, a_file_that_is_no_json_is_the_catalogs_fault);
    tcase_add_test(format, digest_ignores_form_and_case_order_and_nothing_else);
    suite_add_tcase(suite, format);
    TCase *data = tcase_create("data");
    tcase_add_test(data, our_campaigns_hold_the_24_cases_of_the_design);
    tcase_add_test(data, the_qemu_profile_runs_guest_isolation);
    tcase_add_test(data, a_scenario_that_the_profile_does_not_know_is_refused_at_load_with_its_names);
    tcase_add_test(data, the_nvx_profile_knows_every_scenario);
    suite_add_tcase(suite, data);
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, make_scratch, remove_scratch);
    tcase_add_test(files, only_a_regular_file_of_the_right_name_is_loaded);
    tcase_add_test(files, a_listing_is_sorted_and_refuses_foreign_files);
    suite_add_tcase(suite, files);
    return run_suite(suite);
}
