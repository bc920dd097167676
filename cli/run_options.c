/* Parsing of `holdfast run`; see run_options.h. Reads argv, the environment variable HOLDFAST_HOST_TYPE and nothing
 * else. */
#include "cli/run_options.h"

#include "common/options/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Values as argv gives them, before they are copied into the bounded members of the request. */
struct raw_options {
    struct hf_campaign_request *request;
    const char *campaign, *profile, *backend, *host_type, *executor_command;
    const char *output_dir, *source_root, *guest_dir, *profiles_dir;
    int64_t seed; /* -1: choose one */
    bool json;
};

/* `greedy`, `random` or `command:PATH`. */
static int parse_strategist(void *target, const char *value, struct hf_error *err)
{
    static const char prefix[] = "command:";
    struct hf_campaign_request *request = target;
    if (strcmp(value, "greedy") == 0) {
        request->strategist = HF_STRATEGIST_GREEDY;
        return 0;
    }
    if (strcmp(value, "random") == 0) {
        request->strategist = HF_STRATEGIST_RANDOM;
        return 0;
    }
    if (strncmp(value, prefix, sizeof prefix - 1) != 0 || !value[sizeof prefix - 1])
        return hf_error_set(err, "usage", 0, "strategist", "--strategist expects greedy, random or command:PATH");
    request->strategist = HF_STRATEGIST_COMMAND;
    return hf_path_absolute(value + sizeof prefix - 1, request->strategist_command, err);
}

#define STRING(option_name, placeholder, member, text)                                                                 \
    {                                                                                                                  \
        .name = (option_name), .kind = HF_OPTION_STRING, .argument = (placeholder), .target = &raw->member,            \
        .help = (text)                                                                                                 \
    }
#define CHOICE(option_name, placeholder, member, list, text)                                                           \
    {                                                                                                                  \
        .name = (option_name), .kind = HF_OPTION_STRING, .argument = (placeholder), .target = &raw->member,            \
        .one_of = (list), .help = (text)                                                                               \
    }
#define INTEGER(option_name, placeholder, address, low, high, text)                                                    \
    {                                                                                                                  \
        .name = (option_name), .kind = HF_OPTION_INT, .argument = (placeholder), .target = (address), .min = (low),    \
        .max = (high), .help = (text)                                                                                  \
    }

enum { OPTION_COUNT = 20 };

static void fill_table(struct raw_options *raw, struct hf_option table[OPTION_COUNT])
{
    struct hf_campaign_request *request = raw->request;
    const struct hf_option rows[] = {
        STRING("campaign", "NAME", campaign, "campaign of catalog/campaigns to run; required"),
        STRING("profile", "NAME", profile, "platform profile; default qemu"),
        CHOICE("backend", "NAME", backend, hf_backend_names, "tcg, kvm, mshv or whp; default tcg; never falls back"),
        CHOICE("host-type", "TYPE", host_type, hf_host_type_names,
               "baremetal, virtual-machine or unspecified; default $HOLDFAST_HOST_TYPE"),
        {.name = "strategist",
         .kind = HF_OPTION_CALL,
         .argument = "KIND",
         .target = request,
         .call = parse_strategist,
         .help = "greedy (default), random or command:PATH"},
        INTEGER("seed", "N", &raw->seed, 0, INT64_MAX, "seed of every random choice; default a fresh one, recorded"),
        INTEGER("budget-seconds", "N", &request->budget_seconds, 1, 86400, "wall-clock budget; default 900"),
        INTEGER("budget-actions", "N", &request->budget_actions, 1, HF_MAX_ACTIONS, "actions at most; default 8"),
        INTEGER("budget-ai-credits", "N", &request->budget_ai_credits, 0, 1000000,
                "credits for AI strategists; default 300; recorded, unused in this release"),
        INTEGER("memory-mib", "N", &request->memory_mib, 128, 4096, "memory of each VM; default 256"),
        INTEGER("phase-timeout", "SECONDS", &request->phase_timeout_seconds, 1, 3600,
                "bound of a VM phase; default 60"),
        INTEGER("action-timeout", "SECONDS", &request->action_timeout_seconds, 1, 7200,
                "bound of an action with all repetitions; default 600"),
        STRING("executor-command", "PATH", executor_command,
               "wrapper that reaches a disposable target; takes no arguments; default: this machine"),
        {.name = "no-minimize",
         .kind = HF_OPTION_NO_FLAG,
         .target = &request->minimize,
         .help = "do not minimize after a finding; recorded, this release never minimizes"},
        INTEGER("minimize-attempts", "N", &request->minimize_attempts, 1, 100,
                "fresh sessions that minimization may use; default 3; recorded"),
        STRING("output-dir", "DIR", output_dir, "where the run directory is created; default holdfast-runs"),
        STRING("source-root", "DIR", source_root, "tree with catalog/; default: above this program"),
        STRING("guest-dir", "DIR", guest_dir, "kernel, initramfs and provenance; default: guest/ beside bin/"),
        STRING("profiles-dir", "DIR", profiles_dir, "profiles; default <source-root>/catalog/profiles"),
        {.name = "json",
         .kind = HF_OPTION_FLAG,
         .target = &raw->json,
         .help = "one JSON object at the end instead of progress lines"},
    };
    _Static_assert(sizeof rows / sizeof rows[0] == OPTION_COUNT, "OPTION_COUNT counts the rows");
    memcpy(table, rows, sizeof rows);
}

void hf_run_options_print_help(void)
{
    struct hf_campaign_request request;
    struct raw_options raw = {.request = &request};
    struct hf_option table[OPTION_COUNT];
    fill_table(&raw, table);
    printf("usage: holdfast run --campaign NAME [OPTIONS]\n\nRuns one campaign and writes its run directory.\n\n");
    hf_options_print(table, OPTION_COUNT, stdout);
    printf("\nExit status: 0 passed, 1 found something, 2 usage, 3 preflight or infrastructure, 130 interrupted.\n");
}

static int copy_text(const char *option, const char *value, char *out, size_t out_size, struct hf_error *err)
{
    if (!value)
        return 0;
    if (strlen(value) >= out_size)
        return hf_error_set(err, "usage", 0, option, "--%s expects at most %zu bytes, got %zu", option, out_size - 1,
                            strlen(value));
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

static int copy_texts(const struct raw_options *raw, struct hf_campaign_request *request, struct hf_error *err)
{
    if (!raw->campaign)
        return hf_error_set(err, "usage", 0, "campaign",
                            "--campaign is required; 'holdfast catalog' lists the campaigns");
    if (copy_text("campaign", raw->campaign, request->campaign, sizeof request->campaign, err) < 0 ||
        copy_text("profile", raw->profile, request->profile, sizeof request->profile, err) < 0 ||
        copy_text("backend", raw->backend, request->backend, sizeof request->backend, err) < 0 ||
        copy_text("executor-command", raw->executor_command, request->executor_command,
                  sizeof request->executor_command, err) < 0)
        return -1;
    const char *host_type = raw->host_type ? raw->host_type : getenv("HOLDFAST_HOST_TYPE");
    if (!host_type || !*host_type)
        return 0;
    for (const char *const *known = hf_host_type_names; *known; known++)
        if (strcmp(*known, host_type) == 0)
            return copy_text("host-type", host_type, request->host_type, sizeof request->host_type, err);
    return hf_error_set(err, "usage", 0, "host-type",
                        "HOLDFAST_HOST_TYPE expects baremetal, virtual-machine or unspecified; correct or unset it");
}

static int resolve_directories(const struct raw_options *raw, struct hf_run_options *options, struct hf_error *err)
{
    struct hf_paths paths;
    if (hf_paths_find(&paths, raw->source_root, err) < 0)
        return -1;
    memcpy(options->bin_dir, paths.bin_dir, sizeof options->bin_dir);
    memcpy(options->source_root, paths.source_root, sizeof options->source_root);
    char profiles_dir[HF_PATH_SIZE + 32];
    snprintf(profiles_dir, sizeof profiles_dir, "%s/catalog/profiles", paths.source_root);
    if (hf_path_absolute(raw->guest_dir ? raw->guest_dir : paths.guest_dir, options->guest_dir, err) < 0 ||
        hf_path_absolute(raw->profiles_dir ? raw->profiles_dir : profiles_dir, options->profiles_dir, err) < 0)
        return -1;
    return hf_path_absolute(raw->output_dir ? raw->output_dir : "holdfast-runs", options->output_dir, err);
}

static int choose_seed(int64_t given, int64_t *seed, struct hf_error *err)
{
    if (given >= 0) {
        *seed = given;
        return 0;
    }
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return hf_error_set(err, "seed-unavailable", errno, "seed", "cannot draw a seed: %s; give one with --seed",
                            strerror(errno));
    *seed = (int64_t)(random >> 32); /* 32 bits: short enough to type again, and exact in every JSON reader */
    return 0;
}

int hf_run_options_parse(int argc, char **argv, struct hf_run_options *options, struct hf_error *err)
{
    memset(options, 0, sizeof *options);
    hf_campaign_request_defaults(&options->request);
    struct raw_options raw = {.request = &options->request, .seed = -1};
    struct hf_option table[OPTION_COUNT];
    struct hf_option_result result;
    fill_table(&raw, table);
    if (hf_options_parse(table, OPTION_COUNT, argc, argv, &result, err) < 0)
        return -1;
    options->help = result.help;
    if (result.help)
        return 0;
    if (result.first_operand < argc)
        return hf_error_set(err, "usage", 0, "", "'holdfast run' takes options only");
    options->json = raw.json;
    if (copy_texts(&raw, &options->request, err) < 0 || resolve_directories(&raw, options, err) < 0 ||
        choose_seed(raw.seed, &options->request.seed, err) < 0)
        return -1;
    return hf_campaign_request_check(&options->request, err);
}
