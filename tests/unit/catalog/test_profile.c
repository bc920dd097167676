/* Profiles: the shipped ones, every rule between fields, and the expansion of templates. */
#include "common/catalog/profile.h"
#include "common/cleanup.h"
#include "tests/run_suite.h"
#include "tests/unit/catalog/mutate.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define PROFILES "catalog/profiles"

static int parse(const char *text, size_t length, const void *context, struct hf_error *err)
{
    struct hf_profile profile;
    int result = hf_profile_parse(text, length, context, &profile, err);
    hf_profile_clear(&profile);
    return result;
}

START_TEST(the_qemu_profile_says_what_the_design_says)
{
    struct hf_profile profile;
    struct hf_error err = {0};
    ck_assert_msg(hf_profile_load(PROFILES, "qemu", &profile, &err) == 0, "%s", err.message);
    ck_assert_str_eq(profile.dialect.source, "holdfast");
    ck_assert_str_eq(profile.dialect.vmm, "qemu");
    ck_assert_str_eq(profile.dialect.runtime, "libc");
    static const char *const artifacts[] = {
        "kernel", "kernel_provenance", "initramfs",       "initramfs_package_manifest", "initramfs_provenance",
        "qemu",   "qemu_provenance",   "scenario_runner", "scenario_runner_provenance"};
    ck_assert_uint_eq(profile.artifact_count, 9);
    ck_assert_uint_eq(profile.dialect.artifact_count, 9);
    for (size_t i = 0; i < 9; i++) {
        ck_assert_str_eq(profile.artifacts[i].name, artifacts[i]);
        ck_assert_str_eq(profile.dialect.artifact_names[i], artifacts[i]);
    }
    ck_assert_int_eq(profile.artifacts[0].provenance_kind, HF_PROVENANCE_PACKAGE);
    ck_assert_str_eq(profile.artifacts[0].provenance, "kernel_provenance");
    ck_assert_int_eq(profile.artifacts[2].provenance_kind, HF_PROVENANCE_BUILT);
    ck_assert_int_eq(profile.artifacts[1].provenance_kind, HF_PROVENANCE_NONE);
    ck_assert_str_eq(profile.artifacts[1].provenance, "");
    ck_assert(hf_profile_has_backend(&profile, "tcg"));
    ck_assert(hf_profile_has_backend(&profile, "kvm"));
    ck_assert(!hf_profile_has_backend(&profile, "whp"));
    ck_assert(!hf_profile_has_backend(&profile, "tc"));
    ck_assert_int_eq(profile.vmm_identity, HF_VMM_DEBIAN_PACKAGE);
    ck_assert_str_eq(profile.vmm_source, "qemu-system-x86");
    ck_assert_str_eq(profile.pid_journal_variable, "HOLDFAST_QEMU_PID_JOURNAL");
    ck_assert_str_eq(profile.boot_report, "outcome.json");
    ck_assert_ptr_null(hf_profile_find_scenario(&profile, "boot"));
    const struct hf_profile_scenario *structured = hf_profile_find_scenario(&profile, "structured-outcome");
    ck_assert_ptr_nonnull(structured);
    ck_assert_uint_eq(structured->report_count, 3);
    hf_profile_clear(&profile);
}
END_TEST

START_TEST(the_nvx_profile_speaks_the_public_dialect)
{
    struct hf_profile profile;
    struct hf_error err = {0};
    ck_assert_msg(hf_profile_load(PROFILES, "nvx", &profile, &err) == 0, "%s", err.message);
    ck_assert_str_eq(profile.dialect.source, "nvx");
    ck_assert_str_eq(profile.dialect.vmm, "openvmm");
    ck_assert_str_eq(profile.dialect.runtime, "python");
    static const char *const artifacts[] = {
        "kernel",           "initramfs",         "initramfs_package_manifest", "initramfs_provenance",
        "openvmm",          "kernel_provenance", "openvmm_provenance",         "nvx_rs",
        "nvx_rs_provenance"};
    ck_assert_uint_eq(profile.artifact_count, 9);
    for (size_t i = 0; i < 9; i++)
        ck_assert_str_eq(profile.artifacts[i].name, artifacts[i]);
    ck_assert_str_eq(profile.artifacts[7].path_variable, "NVX_RS");
    ck_assert_str_eq(profile.pid_journal_variable, "NVX_ADVERSARIAL_OPENVMM_PID_JOURNAL");
    ck_assert_int_eq(profile.vmm_identity, HF_VMM_GIT);
    ck_assert_str_eq(profile.boot_report, "");
    ck_assert_str_eq(hf_profile_find_scenario(&profile, "managed-lifecycle")->reports[0], "managed-outcome.json");
    ck_assert_uint_eq(hf_profile_find_scenario(&profile, "structured-outcome")->report_count, 2);
    hf_profile_clear(&profile);
}
END_TEST

/* Has every key of the format once. */
static const char small[] =
    "{\"schema_version\":1,\"profile\":\"small\",\"description\":\"text\",\"dialect\":{\"source\":\"s\",\"vmm\":\"v\","
    "\"runtime\":\"r\"},\"backends\":[\"tcg\"],\"campaigns_dir\":\"{source_root}/"
    "c\",\"vmm_identity\":{\"kind\":\"git\","
    "\"path\":\"{source_root}\"},\"verify\":[\"a\",\"b\"],\"boot\":[\"a\",\"{output_dir}\"],\"boot_report\":"
    "\"outcome.json\",\"command\":[\"a\",\"{output_dir}\"],\"environment\":[\"VMM\"],\"pid_journal_variable\":\"PIDS\","
    "\"artifacts\":[{\"name\":\"kernel\",\"path\":\"/k\",\"path_variable\":\"VMM\",\"provenance_kind\":\"built\","
    "\"provenance\":\"doc\"},{\"name\":\"doc\",\"path\":\"/d\",\"provenance_kind\":\"none\",\"provenance\":null}],"
    "\"scenarios\":[{\"name\":\"one\",\"extra\":[\"x\"],\"reports\":[\"outcome.json\"]}]}";

START_TEST(every_key_is_required_once_with_its_type_and_no_other_key_is_accepted)
{
    static const struct mutation_exception exceptions[] = {
        {"boot_report", "null"},
        {"artifacts[0].path_variable", "absent"},
    };
    const struct mutation_subject subject = {.valid = small,
                                             .parse = parse,
                                             .exceptions = exceptions,
                                             .exception_count = sizeof(exceptions) / sizeof(exceptions[0]),
                                             .code = "profile-invalid"};
    ck_assert_uint_gt(mutate_all(&subject), 300);
}
END_TEST

/* One change of the qemu profile, and the field that the refusal has to name. */
struct rule {
    const char *path, *json, *field;
};

static const struct rule rules[] = {
    {"schema_version", "2", "schema_version"},
    {"profile", "\"Qemu\"", "profile"},
    {"backends", "[]", "backends"},
    {"backends", "[\"tcg\",\"tcg\"]", "backends"},
    {"backends", "[\"xen\"]", "backends[0]"},
    /* dialect */
    {"dialect.source", "\"Holdfast\"", "dialect.source"},
    {"dialect.source", "\"a-b\"", "dialect.source"},
    {"dialect.source", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", "dialect.source"},
    {"dialect.vmm", "\"holdfast\"", "dialect.vmm"},
    {"dialect.runtime", "\"os\"", "dialect.runtime"},
    {"dialect.runtime", "\"machine\"", "dialect.runtime"},
    {"dialect.runtime", "\"qemu_dirty\"", "dialect.runtime"},
    {"dialect.runtime", "\"holdfast_commit\"", "dialect.runtime"},
    /* commands and placeholders */
    {"command", "[]", "command"},
    {"command", "[\"sub/dir\",\"{output_dir}\"]", "command[0]"},
    {"command", "[\"{scenario}\",\"{output_dir}\"]", "command[0]"},
    {"command", "[\"{bin_dir}x/y\",\"{output_dir}\"]", "command[0]"},
    {"command", "[\"{bin_dir}/../sh\",\"{output_dir}\"]", "command[0]"},
    {"command", "[\"-c\",\"{output_dir}\"]", "command[0]"},
    {"command", "[\"\",\"{output_dir}\"]", "command[0]"},
    {"command", "[\"a\",\"{output_dir}\",\"{shell}\"]", "command[2]"},
    {"command", "[\"a\",\"{output_dir}\",\"{}\"]", "command[2]"},
    {"command", "[\"a\",\"{output_dir}\",\"{backend\"]", "command[2]"},
    {"command", "[\"a\",\"{output_dir}\",\"backend}\"]", "command[2]"},
    {"command", "[\"a\",\"{output_dir}\",\"{{backend}}\"]", "command[2]"},
    {"command", "[\"a\",\"{output_dir}\",\"{Backend}\"]", "command[2]"},
    {"command", "[\"a\",\"{output_dir}\",\"x\\ny\"]", "command[2]"},
    {"command", "[\"a\",\"{scenario}\"]", "scenarios[0].extra"},
    {"boot", "[\"a\",\"{output_dir}\",\"{scenario}\"]", "boot[2]"},
    {"boot", "[\"a\"]", "boot"},
    {"verify", "[\"a\",\"{output_dir}\"]", "verify[1]"},
    {"verify", "[\"a\",\"{backend}\"]", "verify[1]"},
    {"scenarios[0].extra", "[\"{nope}\"]", "scenarios[0].extra[0]"},
    /* paths */
    {"campaigns_dir", "\"catalog\"", "campaigns_dir"},
    {"campaigns_dir", "\"{output_dir}/catalog\"", "campaigns_dir"},
    {"campaigns_dir", "\"/a/../b\"", "campaigns_dir"},
    {"campaigns_dir", "\"/a/..\"", "campaigns_dir"},
    {"campaigns_dir", "\"/a/{bin_dir}\"", "campaigns_dir"},
    {"campaigns_dir", "\"{bin_dir}/{guest_dir}\"", "campaigns_dir"},
    {"artifacts[0].path", "\"vmlinuz\"", "artifacts[0].path"},
    {"artifacts[0].path", "\"{guest_dir}vmlinuz\"", "artifacts[0].path"},
    /* identity */
    {"vmm_identity", "{\"kind\":\"debian-package\",\"package\":\"-x\"}", "vmm_identity.package"},
    {"vmm_identity", "{\"kind\":\"debian-package\",\"package\":\"a b\"}", "vmm_identity.package"},
    {"vmm_identity", "{\"kind\":\"debian-package\",\"path\":\"/x\"}", "vmm_identity"},
    {"vmm_identity", "{\"kind\":\"git\",\"package\":\"qemu\"}", "vmm_identity"},
    {"vmm_identity", "{\"kind\":\"git\",\"path\":\"relative\"}", "vmm_identity.path"},
    {"vmm_identity", "{\"kind\":\"url\",\"package\":\"qemu\"}", "vmm_identity.kind"},
    /* environment */
    {"environment", "[\"GITHUB_TOKEN\"]", "environment[0]"},
    {"environment", "[\"GITHUB_X\"]", "environment[0]"},
    {"environment", "[\"GH_X\"]", "environment[0]"},
    {"environment", "[\"COPILOT_X\"]", "environment[0]"},
    {"environment", "[\"SSH_AUTH_SOCK\"]", "environment[0]"},
    {"environment", "[\"A\",\"MY_TOKEN_X\"]", "environment[1]"},
    {"environment", "[\"A_SECRET\"]", "environment[0]"},
    {"environment", "[\"PASSWORD\"]", "environment[0]"},
    {"environment", "[\"API_KEY_1\"]", "environment[0]"},
    {"environment", "[\"CARGO_TARGET_DIR\"]", "environment[0]"},
    {"environment", "[\"RUSTFLAGS\"]", "environment[0]"},
    {"environment", "[\"RUSTUP_TOOLCHAIN\"]", "environment[0]"},
    {"environment", "[\"LD_PRELOAD\"]", "environment[0]"},
    {"environment", "[\"PYTHONPATH\"]", "environment[0]"},
    {"environment", "[\"PATH\"]", "environment[0]"},
    {"environment", "[\"lower\"]", "environment[0]"},
    {"environment", "[\"A=B\"]", "environment[0]"},
    {"environment", "[\"A\",\"A\"]", "environment"},
    {"environment", "[\"HOLDFAST_QEMU_PID_JOURNAL\"]", "environment[0]"},
    {"pid_journal_variable", "\"PATH\"", "pid_journal_variable"},
    {"pid_journal_variable", "\"LD_X\"", "pid_journal_variable"},
    {"pid_journal_variable", "\"a\"", "pid_journal_variable"},
    /* artifacts */
    {"artifacts[3].name", "\"kernel\"", "artifacts[3]"},
    {"artifacts[0].provenance", "null", "artifacts[0].provenance"},
    {"artifacts[0].provenance", "\"qemu\"", "artifacts[0].provenance"},
    {"artifacts[0].provenance", "\"nowhere\"", "artifacts[0].provenance"},
    {"artifacts[0].provenance_kind", "\"none\"", "artifacts[0].provenance"},
    {"artifacts[0].provenance_kind", "\"other\"", "artifacts[0].provenance_kind"},
    {"artifacts[0].path_variable", "\"NOT_LISTED\"", "artifacts[0]"},
    /* reports and scenarios */
    {"boot_report", "\"result.json\"", "boot_report"},
    {"boot_report", "\"../outcome.json\"", "boot_report"},
    {"boot_report", "\"outcome.json.txt\"", "boot_report"},
    {"scenarios[0].reports", "[\".outcome.json\"]", "scenarios[0].reports[0]"},
    {"scenarios[0].reports", "[\"OUTCOME.json\"]", "scenarios[0].reports[0]"},
    {"scenarios[0].reports", "[\"a/outcome.json\"]", "scenarios[0].reports[0]"},
    {"scenarios[0].reports", "[\"outcome.json\",\"outcome.json\"]", "scenarios[0].reports"},
    {"scenarios[0].name", "\"smp-lapic\"", "scenarios[3]"},
    {"scenarios[0].name", "\"a_b\"", "scenarios[0].name"},
};

START_TEST(each_rule_is_enforced_with_its_field)
{
    const struct rule *rule = &rules[_i];
    cleanup_free char *text = read_text(PROFILES "/qemu.json");
    cleanup_free char *changed = mutate_set(text, rule->path, rule->json);
    struct hf_error err = {0};
    ck_assert_msg(parse(changed, strlen(changed), "qemu", &err) == -1, "accepted: %s = %s", rule->path, rule->json);
    ck_assert_str_eq(err.code, "profile-invalid");
    ck_assert_msg(strcmp(err.field, rule->field) == 0, "%s = %s: field %s: %s", rule->path, rule->json, err.field,
                  err.message);
}
END_TEST

START_TEST(command_and_extra_together_are_bounded)
{
    cleanup_free char *text = read_text(PROFILES "/qemu.json");
    char extra[1024] = "[\"x\"";
    for (int i = 1; i < 40; i++)
        strcat(extra, ",\"x\"");
    strcat(extra, "]");
    cleanup_free char *changed = mutate_set(text, "scenarios[2].extra", extra);
    struct hf_error err = {0};
    ck_assert_int_eq(parse(changed, strlen(changed), NULL, &err), -1);
    ck_assert_str_eq(err.field, "scenarios[2]");
}
END_TEST

START_TEST(the_name_inside_equals_the_name_of_the_file)
{
    cleanup_free char *text = read_text(PROFILES "/qemu.json");
    struct hf_error err = {0};
    ck_assert_int_eq(parse(text, strlen(text), "other", &err), -1);
    ck_assert_str_eq(err.field, "profile");
    static const char *const bad[] = {"", "../qemu", "qemu.json", "no-such-profile"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hf_profile profile;
        ck_assert_int_eq(hf_profile_load(PROFILES, bad[i], &profile, &err), -1);
        hf_profile_clear(&profile);
    }
    ck_assert_str_eq(err.code, "storage-missing");
}
END_TEST

static const struct hf_placeholders values = {.backend = "tcg",
                                              .scenario = "lifecycle",
                                              .memory_mib = "256",
                                              .phase_timeout = "60",
                                              .timeout = "120",
                                              .seed = "7",
                                              .output_dir = "/o {backend} $(x)",
                                              .source_root = "/s",
                                              .bin_dir = "/b",
                                              .guest_dir = "/g"};

START_TEST(one_element_becomes_one_argument)
{
    struct hf_profile profile;
    struct hf_error err = {0};
    ck_assert_int_eq(hf_profile_load(PROFILES, "qemu", &profile, &err), 0);
    const struct hf_profile_scenario *scenario = hf_profile_find_scenario(&profile, "lifecycle");
    char **argv = hf_command_expand(&profile.command, &scenario->extra, &values, &err);
    ck_assert_msg(argv != NULL, "%s", err.message);
    static const char *const expected[] = {
        "/b/holdfast-scenario", "--guest-dir", "/g",        "--backend", "tcg",    "--scenario", "lifecycle",
        "--memory-mib",         "256",         "--timeout", "60",        "--seed", "7",          "--output-dir",
        "/o {backend} $(x)"};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ck_assert_str_eq(argv[i], expected[i]);
    ck_assert_ptr_null(argv[sizeof(expected) / sizeof(expected[0])]);
    hf_argv_free(argv);
    hf_profile_clear(&profile);
}
END_TEST

START_TEST(values_are_not_expanded_again)
{
    struct hf_error err = {0};
    cleanup_free char *text = hf_placeholder_expand("a{output_dir}b{seed}", &values, &err);
    ck_assert_str_eq(text, "a/o {backend} $(x)b7");
}
END_TEST

START_TEST(a_placeholder_without_a_value_is_an_error_that_names_it)
{
    struct hf_placeholders missing = values;
    missing.phase_timeout = NULL;
    struct hf_error err = {0};
    ck_assert_ptr_null(hf_placeholder_expand("{phase_timeout}", &missing, &err));
    ck_assert_str_eq(err.code, "profile-placeholder-missing");
    ck_assert_ptr_nonnull(strstr(err.message, "{phase_timeout}"));
    cleanup_free char *other = hf_placeholder_expand("{timeout}", &missing, &err);
    ck_assert_str_eq(other, "120");
    char *arguments[] = {"a", "{seed}", "{phase_timeout}"};
    const struct hf_command_template template = {arguments, 3};
    ck_assert_ptr_null(hf_command_expand(&template, NULL, &missing, &err));
}
END_TEST

START_TEST(every_shipped_template_expands)
{
    static const char *const names[] = {"qemu", "nvx"};
    for (size_t i = 0; i < 2; i++) {
        struct hf_profile profile;
        struct hf_error err = {0};
        ck_assert_int_eq(hf_profile_load(PROFILES, names[i], &profile, &err), 0);
        const struct hf_command_template *const templates[] = {&profile.verify, &profile.boot, &profile.command};
        for (size_t j = 0; j < 3; j++) {
            char **argv = hf_command_expand(templates[j], NULL, &values, &err);
            ck_assert_msg(argv != NULL, "%s", err.message);
            hf_argv_free(argv);
        }
        for (size_t j = 0; j < profile.artifact_count; j++) {
            cleanup_free char *path = hf_placeholder_expand(profile.artifacts[j].path, &values, &err);
            ck_assert_int_eq(path[0], '/');
            ck_assert_ptr_null(strchr(path, '{'));
        }
        hf_profile_clear(&profile);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile");
    TCase *format = tcase_create("format");
    tcase_set_timeout(format, 120);
    tcase_add_test(format, the_qemu_profile_says_what_the_design_says);
    tcase_add_test(format, the_nvx_profile_speaks_the_public_dialect);
    tcase_add_test(format, every_key_is_required_once_with_its_type_and_no_other_key_is_accepted);
    tcase_add_loop_test(format, each_rule_is_enforced_with_its_field, 0, sizeof(rules) / sizeof(rules[0]));
    tcase_add_test(format, command_and_extra_together_are_bounded);
    tcase_add_test(format, the_name_inside_equals_the_name_of_the_file);
    suite_add_tcase(suite, format);
    TCase *expansion = tcase_create("expansion");
    tcase_add_test(expansion, one_element_becomes_one_argument);
    tcase_add_test(expansion, values_are_not_expanded_again);
    tcase_add_test(expansion, a_placeholder_without_a_value_is_an_error_that_names_it);
    tcase_add_test(expansion, every_shipped_template_expands);
    suite_add_tcase(suite, expansion);
    return run_suite(suite);
}
