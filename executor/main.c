/*
 * holdfast-executor: the target's side of a campaign. Credential-free; speaks the executor protocol on its standard
 * input and output and nothing else there. Started by a wrapper or by a local controller, one process for one session.
 *
 * This file: command line, where things are, start and end.
 */
#include "common/log.h"
#include "common/options/options.h"
#include "common/program.h"
#include "executor/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

struct arguments {
    const char *profile, *source_root, *guest_dir, *state_dir, *profiles_dir;
};

static int override(const char *argument, char path[HF_PATH_SIZE], struct hf_error *err)
{
    return argument ? hf_path_absolute(argument, path, err) : 0;
}

static int locate(struct executor *executor, const struct arguments *arguments, char profiles_dir[HF_PATH_SIZE],
                  struct hf_error *err)
{
    struct hf_paths *paths = &executor->paths;
    if (hf_paths_find(paths, arguments->source_root, err) != 0)
        return -1;
    if (override(arguments->guest_dir, paths->guest_dir, err) != 0 ||
        executor_path_join(executor->state_dir, paths->source_root, "build/adv", err) != 0 ||
        override(arguments->state_dir, executor->state_dir, err) != 0 ||
        executor_path_join(profiles_dir, paths->source_root, "catalog/profiles", err) != 0)
        return -1;
    return override(arguments->profiles_dir, profiles_dir, err);
}

static int serve(struct executor *executor, const struct arguments *arguments)
{
    char profiles_dir[HF_PATH_SIZE];
    struct hf_error err = {0};
    umask(077);
    if (locate(executor, arguments, profiles_dir, &err) != 0 ||
        hf_profile_load(profiles_dir, arguments->profile, &executor->profile, &err) != 0 ||
        channel_open(&executor->channel, &err) != 0) {
        hf_log_error(HF_LOG_ERROR, "not_started", &err);
        return EXIT_USAGE;
    }
    return session_serve(executor);
}

static struct executor *executor_new(void)
{
    struct executor *executor = calloc(1, sizeof *executor);
    if (!executor)
        abort();
    executor->run_dirfd = -1;
    executor->channel = (struct channel){.in_fd = -1, .out_fd = -1, .signal_fd = -1, .interrupt_fd = -1};
    oracles_init(&executor->oracles);
    return executor;
}

static void executor_free(struct executor *executor)
{
    executor_close_session(executor);
    hf_campaign_clear(&executor->campaign);
    hf_profile_clear(&executor->profile);
    hf_argv_free(executor->child_envp);
    channel_close(&executor->channel);
    if (executor->run_dirfd >= 0)
        close(executor->run_dirfd);
    free(executor);
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.profile = "qemu"};
    const struct hf_option options[] = {
        {.name = "profile",
         .kind = HF_OPTION_STRING,
         .argument = "NAME",
         .help = "platform profile (default: qemu)",
         .target = &arguments.profile},
        {.name = "source-root",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .help = "staged source tree (default: nearest directory above the program that holds catalog/campaigns)",
         .target = &arguments.source_root},
        {.name = "guest-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .help = "kernel, initramfs and provenance (default: guest beside the program's directory)",
         .target = &arguments.guest_dir},
        {.name = "state-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .help = "run directories (default: build/adv below the source tree)",
         .target = &arguments.state_dir},
        {.name = "profiles-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .help = "profiles (default: catalog/profiles below the source tree)",
         .target = &arguments.profiles_dir},
    };
    struct hf_option_result parsed;
    struct hf_error err = {0};
    hf_program_begin();
    hf_log_init("holdfast-executor", HF_LOG_INFO);
    if (hf_options_parse(options, sizeof options / sizeof options[0], argc, argv, &parsed, &err) != 0 ||
        (!parsed.help && parsed.first_operand != argc &&
         hf_error_set(&err, "usage", 0, "", "options only were expected, no operands") != 0)) {
        hf_log_error(HF_LOG_ERROR, "usage", &err);
        return EXIT_USAGE;
    }
    if (parsed.help) {
        puts("holdfast-executor [options]: serves one controller session on standard input and output\n");
        hf_options_print(options, sizeof options / sizeof options[0], stdout);
        return 0;
    }
    struct executor *executor = executor_new();
    int status = serve(executor, &arguments);
    executor_free(executor);
    return status;
}
