/*
 * Rules of a profile that no shape can express. Called by profile.c on a profile whose shape is right. A profile
 * decides what a target executes and what it sees, so everything that is not plainly harmless is refused here, at load.
 */
#include "common/catalog/placeholder.h"
#include "common/catalog/profile_internal.h"

#include <stdio.h>
#include <string.h>

/* A variable that may not reach a scenario, and why. */
struct refused_variable {
    const char *pattern; /* "NAME", "PREFIX*" or "*PART*" */
    const char *reason;
};

static const struct refused_variable refused_variables[] = {
    {"GITHUB_*", "could carry a credential"},
    {"GH_*", "could carry a credential"},
    {"COPILOT_*", "could carry a credential"},
    {"SSH_*", "could carry a credential"},
    {"*TOKEN*", "could carry a credential"},
    {"*SECRET*", "could carry a credential"},
    {"*PASSWORD*", "could carry a credential"},
    {"*PASSWD*", "could carry a credential"},
    {"*CREDENTIAL*", "could carry a credential"},
    {"*KEY*", "could carry a credential"},
    {"LD_*", "changes what a program loads"},
    {"BASH_ENV", "changes what a program loads"},
    {"PYTHONPATH", "changes what a program loads"},
    {"PYTHONHOME", "changes what a program loads"},
    {"PYTHONSTARTUP", "changes what a program loads"},
    {"CARGO_TARGET_DIR", "redirects the build that is being tested"},
    {"RUSTFLAGS", "redirects the build that is being tested"},
    {"RUSTUP_TOOLCHAIN", "redirects the build that is being tested"},
    {"PATH", "is always passed on"},
    {"HOME", "is always passed on"},
    {"LANG", "is always passed on"},
    {"LC_ALL", "is always passed on"},
    {"TMPDIR", "is always passed on"},
    {"USER", "is always passed on"},
};

static bool pattern_matches(const char *pattern, const char *name)
{
    size_t length = strlen(pattern);
    if (pattern[0] == '*') {
        char part[32];
        snprintf(part, sizeof(part), "%.*s", (int)(length - 2), pattern + 1);
        return strstr(name, part) != NULL;
    }
    if (pattern[length - 1] == '*')
        return strncmp(name, pattern, length - 1) == 0;
    return strcmp(name, pattern) == 0;
}

static int check_variable(const char *name, const char *field, struct hf_error *err)
{
    for (size_t i = 0; i < sizeof(refused_variables) / sizeof(refused_variables[0]); i++)
        if (pattern_matches(refused_variables[i].pattern, name))
            return hf_error_set(err, "profile-invalid", 0, field,
                                "%s: expected a variable that a hostile target may see, seen %s, which %s; remove it",
                                field, name, refused_variables[i].reason);
    return 0;
}

static int check_environment(const struct hf_profile *profile, struct hf_error *err)
{
    if (check_variable(profile->pid_journal_variable, "pid_journal_variable", err) != 0)
        return -1;
    for (size_t i = 0; i < profile->environment_count; i++) {
        char field[64];
        snprintf(field, sizeof(field), "environment[%zu]", i);
        if (check_variable(profile->environment[i], field, err) != 0)
            return -1;
        if (strcmp(profile->environment[i], profile->pid_journal_variable) == 0)
            return hf_error_set(err, "profile-invalid", 0, field,
                                "%s: %s is pid_journal_variable, which the executor sets itself; remove it", field,
                                profile->environment[i]);
    }
    return 0;
}

/* The expanded names of `metadata` and of the initialize request must stay distinct, or one message would hold a key
 * twice. Only the three free names can collide, with each other or with a fixed key. */
static int check_dialect(const struct hf_dialect *dialect, struct hf_error *err)
{
    static const char *const fixed[] = {"os", "os_release", "machine"};
    if (strcmp(dialect->source, dialect->vmm) == 0)
        return hf_error_set(err, "profile-invalid", 0, "dialect.vmm",
                            "dialect.vmm: expected a name other than dialect.source, seen \"%s\" for both; choose "
                            "another",
                            dialect->vmm);
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (strcmp(dialect->runtime, fixed[i]) == 0)
            return hf_error_set(err, "profile-invalid", 0, "dialect.runtime",
                                "dialect.runtime: \"%s\" is a fixed key of metadata; choose another", fixed[i]);
    const char *const owners[] = {dialect->source, dialect->vmm};
    static const char *const suffixes[] = {"commit", "dirty", "status"};
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < 3; j++) {
            char taken[48];
            snprintf(taken, sizeof(taken), "%s_%s", owners[i], suffixes[j]);
            if (strcmp(dialect->runtime, taken) == 0)
                return hf_error_set(err, "profile-invalid", 0, "dialect.runtime",
                                    "dialect.runtime: \"%s\" is already a key of metadata; choose another", taken);
        }
    }
    return 0;
}

/* A path is absolute from the start: '/' or one path placeholder first, none later, and no way back up. */
static int check_path(const char *text, const char *field, struct hf_error *err)
{
    unsigned used;
    if (hf_placeholder_scan(text, HF_PLACEHOLDERS_PATH, field, &used, err) != 0)
        return -1;
    const char *last_brace = strrchr(text, '{');
    bool rooted = text[0] == '/' ? last_brace == NULL : last_brace == text;
    const char *rest = strchr(text, '}');
    rest = rest ? rest + 1 : text;
    if (!rooted || (rest != text && *rest != '\0' && *rest != '/'))
        return hf_error_set(
            err, "profile-invalid", 0, field,
            "%s: expected an absolute path that begins with '/', {source_root}, {bin_dir} or {guest_dir} "
            "and holds no further placeholder, seen another form; write it so",
            field);
    for (const char *at = strstr(text, ".."); at; at = strstr(at + 1, ".."))
        if ((at == text || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
            return hf_error_set(err, "profile-invalid", 0, field, "%s: expected a path without \"..\"; write it out",
                                field);
    return 0;
}

/* The program itself: a bare name that PATH finds, or an absolute path. Never a value that a request chooses. */
static int check_program(const char *text, const char *field, struct hf_error *err)
{
    if (strchr(text, '/') || strchr(text, '{'))
        return check_path(text, field, err);
    if (text[0] == '-' || strchr(text, '}'))
        return hf_error_set(err, "profile-invalid", 0, field,
                            "%s: expected the name or absolute path of a program, seen something else; correct it",
                            field);
    return 0;
}

static int check_arguments(const struct hf_command_template *template, size_t first, unsigned allowed, const char *name,
                           unsigned *used, struct hf_error *err)
{
    for (size_t i = first; i < template->count; i++) {
        char field[160];
        snprintf(field, sizeof(field), "%s[%zu]", name, i);
        unsigned here;
        if (hf_placeholder_scan(template->arguments[i], allowed, field, &here, err) != 0)
            return -1;
        *used |= here;
    }
    return 0;
}

static int check_command(const struct hf_command_template *template, unsigned allowed, const char *name, unsigned *used,
                         struct hf_error *err)
{
    char field[64];
    snprintf(field, sizeof(field), "%s[0]", name);
    *used = 0;
    if (check_program(template->arguments[0], field, err) != 0)
        return -1;
    return check_arguments(template, 1, allowed, name, used, err);
}

static int require_output_dir(unsigned used, const char *field, struct hf_error *err)
{
    if (used & HF_PLACEHOLDER_OUTPUT_DIR)
        return 0;
    return hf_error_set(
        err, "profile-invalid", 0, field,
        "%s: expected {output_dir} among the arguments, seen none; reports could not be found without it", field);
}

/* Mirrors the inventory of the executor: only files of these names are looked at, so only they can be required. */
static int check_report(const char *name, const char *field, struct hf_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t length = strlen(name);
    bool plain = name[0] != '.' && strspn(name, allowed) == length;
    bool json = length > 5 && strcmp(name + length - 5, ".json") == 0;
    if (plain && json && (strstr(name, "outcome") || strstr(name, "report")))
        return 0;
    return hf_error_set(
        err, "profile-invalid", 0, field,
        "%s: expected a lower-case file name that matches *outcome*.json or *report*.json, seen another "
        "name; rename the report",
        field);
}

static const struct hf_profile_artifact *find_artifact(const struct hf_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->artifact_count; i++)
        if (strcmp(profile->artifacts[i].name, name) == 0)
            return &profile->artifacts[i];
    return NULL;
}

static bool environment_has(const struct hf_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->environment_count; i++)
        if (strcmp(profile->environment[i], name) == 0)
            return true;
    return false;
}

static int check_provenance(const struct hf_profile *profile, const struct hf_profile_artifact *artifact,
                            const char *field, struct hf_error *err)
{
    bool document = artifact->provenance_kind == HF_PROVENANCE_NONE;
    if (document && artifact->provenance[0] == '\0')
        return 0;
    const struct hf_profile_artifact *provenance = find_artifact(profile, artifact->provenance);
    if (!document && provenance && provenance->provenance_kind == HF_PROVENANCE_NONE)
        return 0;
    char full[128];
    snprintf(full, sizeof(full), "%s.provenance", field);
    return hf_error_set(
        err, "profile-invalid", 0, full, "%s: expected %s, seen \"%s\"; correct provenance or provenance_kind", full,
        document ? "null beside provenance_kind none" : "the name of an artifact whose own provenance_kind is none",
        artifact->provenance);
}

static int check_artifacts(const struct hf_profile *profile, struct hf_error *err)
{
    for (size_t i = 0; i < profile->artifact_count; i++) {
        const struct hf_profile_artifact *artifact = &profile->artifacts[i];
        char field[64], path_field[128];
        snprintf(field, sizeof(field), "artifacts[%zu]", i);
        snprintf(path_field, sizeof(path_field), "%s.path", field);
        if (find_artifact(profile, artifact->name) != artifact)
            return hf_error_set(err, "profile-invalid", 0, field,
                                "%s: expected each artifact once, seen \"%s\" again; remove one", field,
                                artifact->name);
        if (artifact->path_variable[0] && !environment_has(profile, artifact->path_variable))
            return hf_error_set(err, "profile-invalid", 0, field,
                                "%s: expected path_variable %s to be listed in environment, so that the scenario uses "
                                "the file that is hashed; list it",
                                field, artifact->path_variable);
        if (check_path(artifact->path, path_field, err) != 0 || check_provenance(profile, artifact, field, err) != 0)
            return -1;
    }
    return 0;
}

static int check_scenarios(const struct hf_profile *profile, unsigned command_used, struct hf_error *err)
{
    for (size_t i = 0; i < profile->scenario_count; i++) {
        const struct hf_profile_scenario *scenario = &profile->scenarios[i];
        char field[64], part[128];
        snprintf(field, sizeof(field), "scenarios[%zu]", i);
        if (hf_profile_find_scenario(profile, scenario->name) != scenario)
            return hf_error_set(err, "profile-invalid", 0, field,
                                "%s: expected each scenario once, seen \"%s\" again; remove one", field,
                                scenario->name);
        if (profile->command.count + scenario->extra.count > HF_PROFILE_MAX_ARGS)
            return hf_error_set(err, "profile-invalid", 0, field,
                                "%s: expected at most %d arguments together with command, seen %zu; shorten one", field,
                                HF_PROFILE_MAX_ARGS, profile->command.count + scenario->extra.count);
        unsigned used = command_used;
        snprintf(part, sizeof(part), "%s.extra", field);
        if (check_arguments(&scenario->extra, 0, HF_PLACEHOLDERS_ALL, part, &used, err) != 0 ||
            require_output_dir(used, part, err) != 0)
            return -1;
        for (size_t j = 0; j < scenario->report_count; j++) {
            snprintf(part, sizeof(part), "%s.reports[%zu]", field, j);
            if (check_report(scenario->reports[j], part, err) != 0)
                return -1;
        }
    }
    return 0;
}

static int check_identity(const struct hf_profile *profile, struct hf_error *err)
{
    if (profile->vmm_identity == HF_VMM_GIT)
        return check_path(profile->vmm_source, "vmm_identity.path", err);
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
    const char *package = profile->vmm_source;
    if (strspn(package, allowed) == strlen(package) && !strchr("+-.", package[0]))
        return 0;
    return hf_error_set(err, "profile-invalid", 0, "vmm_identity.package",
                        "vmm_identity.package: expected the name of a Debian package, seen another form; correct it");
}

int hf_profile_rules_check(const struct hf_profile *profile, struct hf_error *err)
{
    /* verify runs before the run directory has any output directory, and knows of no VM. */
    unsigned used;
    if (check_dialect(&profile->dialect, err) != 0 || check_environment(profile, err) != 0 ||
        check_path(profile->campaigns_dir, "campaigns_dir", err) != 0 || check_identity(profile, err) != 0 ||
        check_command(&profile->verify, HF_PLACEHOLDERS_PATH, "verify", &used, err) != 0 ||
        check_command(&profile->boot, HF_PLACEHOLDERS_BOOT, "boot", &used, err) != 0 ||
        require_output_dir(used, "boot", err) != 0)
        return -1;
    if (profile->boot_report[0] && check_report(profile->boot_report, "boot_report", err) != 0)
        return -1;
    if (check_command(&profile->command, HF_PLACEHOLDERS_ALL, "command", &used, err) != 0 ||
        check_scenarios(profile, used, err) != 0)
        return -1;
    return check_artifacts(profile, err);
}
