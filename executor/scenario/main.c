/*
 * holdfast-scenario: runs one scenario on real VMs and leaves outcome.json with everything that was checked.
 *
 * Started by holdfast-executor (or by hand). Trusts its command line and the guest directory; trusts nothing that comes
 * out of a VM. Exit status: 0 held, 1 not held, 2 usage, 3 a prerequisite is missing, 128+N after signal N.
 */
#include "common/cleanup.h"
#include "common/options/options.h"
#include "common/program.h"
#include "executor/scenario/report.h"
#include "executor/scenario/scenarios.h"
#include "executor/scenario/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

enum { EXIT_HELD = 0, EXIT_NOT_HELD = 1, EXIT_USAGE = 2, EXIT_CANNOT_RUN = 3, EXIT_SIGNAL_BASE = 128 };

#define QEMU_PATH "/usr/bin/qemu-system-x86_64"

struct command_line {
    bool verify;
    const char *guest_dir, *backend, *scenario, *output_dir;
    int64_t memory_mib, timeout_seconds, seed;
};

static int fail(int status, const struct hf_error *err)
{
    fprintf(stderr, "holdfast-scenario: %s\n", err->message);
    return status;
}

static const struct hf_scenario *find_scenario(const char *name)
{
    for (size_t i = 0; i < hf_scenario_count; i++)
        if (strcmp(hf_scenarios[i].name, name) == 0)
            return &hf_scenarios[i];
    return NULL;
}

static void print_help(const struct hf_option *options, size_t count)
{
    printf("Usage: holdfast-scenario --guest-dir DIR --backend tcg|kvm --scenario NAME --output-dir DIR [options]\n"
           "       holdfast-scenario --verify --guest-dir DIR\n\nRuns one scenario on real VMs.\n\nOptions:\n");
    hf_options_print(options, count, stdout);
    printf("\nScenarios:\n");
    for (size_t i = 0; i < hf_scenario_count; i++)
        printf("  %-20s %s\n", hf_scenarios[i].name, hf_scenarios[i].summary);
    printf("\nEnvironment:\n  " HF_PID_JOURNAL_VARIABLE "  file that receives one line per VMM started\n"
           "\nExit status: 0 held, 1 not held, 2 usage, 3 a prerequisite is missing, 128+N after signal N.\n");
}

/* --- prerequisites --- */

static int check_file(const char *what, const char *path, struct hf_error *err)
{
    if (access(path, R_OK) != 0)
        return hf_error_set(err, "prerequisite-missing", errno, what,
                            "cannot read the %s '%s': %s; build it with the target 'guest'", what, path,
                            strerror(errno));
    return 0;
}

static int resolve_guest(const char *guest_dir, struct hf_run_options *options, struct hf_error *err)
{
    char resolved[PATH_MAX];
    if (!realpath(guest_dir, resolved) || strlen(resolved) + 32 > sizeof options->kernel)
        return hf_error_set(err, "prerequisite-missing", errno, "guest-dir",
                            "cannot find the guest directory that --guest-dir names: %s", strerror(errno));
    snprintf(options->kernel, sizeof options->kernel, "%.4000s/vmlinuz", resolved);
    snprintf(options->initramfs, sizeof options->initramfs, "%.4000s/initramfs.cpio", resolved);
    return check_file("kernel", options->kernel, err) || check_file("initramfs", options->initramfs, err) ? -1 : 0;
}

/* kvm never falls back to tcg: without a usable /dev/kvm nothing is run. */
static int check_backend(enum hf_vm_backend backend, struct hf_error *err)
{
    if (access(QEMU_PATH, X_OK) != 0)
        return hf_error_set(err, "prerequisite-missing", errno, "qemu",
                            "cannot execute " QEMU_PATH ": %s; install qemu-system-x86", strerror(errno));
    cleanup_close int kvm = backend == HF_VM_KVM ? open("/dev/kvm", O_RDWR | O_CLOEXEC) : -1;
    if (backend == HF_VM_KVM && kvm < 0)
        return hf_error_set(err, "prerequisite-missing", errno, "backend",
                            "backend kvm needs read and write access to /dev/kvm: %s; use --backend tcg or a target "
                            "with KVM",
                            strerror(errno));
    return 0;
}

static int open_output_dir(const char *path, struct hf_error *err)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return hf_error_set(err, "storage-failed", errno, "output-dir", "cannot create the output directory '%s': %s",
                            path, strerror(errno));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        hf_error_set(err, "storage-failed", errno, "output-dir", "cannot open the output directory '%s': %s", path,
                     strerror(errno));
    return fd;
}

/* Blocks the signals that ask for an end and makes them readable: the VMs poll the descriptor, nobody takes it away. */
static int open_signals(void)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &wanted, NULL) != 0)
        return -1;
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* --- running --- */

static int finish(struct hf_run *run, int held)
{
    struct hf_error err = {0};
    struct signalfd_siginfo signal_info;
    int written = hf_report_write(run, &err);
    if (written != 0)
        fail(EXIT_NOT_HELD, &err);
    hf_report_transcript(run, STDOUT_FILENO);
    if (run->error.code)
        fail(EXIT_NOT_HELD, &run->error);
    if (read(run->host.interrupt_fd, &signal_info, sizeof signal_info) == sizeof signal_info)
        return EXIT_SIGNAL_BASE + (int)signal_info.ssi_signo;
    return held == 0 && written == 0 && hf_report_passed(run) ? EXIT_HELD : EXIT_NOT_HELD;
}

static int run_scenario(const struct command_line *line, const struct hf_scenario *scenario)
{
    struct hf_error err = {0};
    struct hf_pid_journal pids;
    struct hf_run run;
    struct hf_run_options options = {.backend = strcmp(line->backend, "kvm") == 0 ? HF_VM_KVM : HF_VM_TCG,
                                     .scenario = scenario->name,
                                     .memory_mib = (unsigned)line->memory_mib,
                                     .timeout_ms = (uint64_t)line->timeout_seconds * 1000,
                                     .seed = (uint64_t)line->seed};
    if (resolve_guest(line->guest_dir, &options, &err) || check_backend(options.backend, &err))
        return fail(EXIT_CANNOT_RUN, &err);
    cleanup_close int output_dirfd = open_output_dir(line->output_dir, &err);
    if (output_dirfd < 0 || hf_pid_journal_open(&pids, getenv(HF_PID_JOURNAL_VARIABLE), &err))
        return fail(EXIT_CANNOT_RUN, &err);
    cleanup_close int interrupt_fd = open_signals();
    if (interrupt_fd < 0)
        return fail(EXIT_CANNOT_RUN, &(struct hf_error){.message = "cannot watch for signals"});
    const struct hf_vm_host host = {
        .qemu_path = QEMU_PATH, .output_dirfd = output_dirfd, .interrupt_fd = interrupt_fd, .pids = &pids};
    hf_run_init(&run, &options, &host);
    int status = finish(&run, scenario->run(&run));
    hf_run_clear(&run);
    hf_pid_journal_close(&pids);
    return status;
}

static int require(const struct command_line *line, struct hf_error *err)
{
    const struct {
        const char *name, *value;
        bool for_verify;
    } required[] = {{"guest-dir", line->guest_dir, true},
                    {"backend", line->backend, false},
                    {"scenario", line->scenario, false},
                    {"output-dir", line->output_dir, false}};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
        if (!required[i].value && (required[i].for_verify || !line->verify))
            return hf_error_set(err, "usage", 0, required[i].name, "--%s is missing; see --help", required[i].name);
    if (!line->verify && !find_scenario(line->scenario))
        return hf_error_set(err, "usage", 0, "scenario", "--scenario names no scenario of this program; see --help");
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const backends[] = {"tcg", "kvm", NULL};
    struct command_line line = {.memory_mib = 256, .timeout_seconds = 60};
    const struct hf_option options[] = {
        {.name = "guest-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .help = "kernel, initramfs and their provenance documents",
         .target = &line.guest_dir},
        {.name = "backend",
         .kind = HF_OPTION_STRING,
         .argument = "NAME",
         .help = "tcg or kvm; one never replaces the other",
         .target = &line.backend,
         .one_of = backends},
        {.name = "scenario",
         .kind = HF_OPTION_STRING,
         .argument = "NAME",
         .help = "what to run, see below",
         .target = &line.scenario},
        {.name = "memory-mib",
         .kind = HF_OPTION_INT,
         .argument = "N",
         .help = "memory of each VM (default 256)",
         .target = &line.memory_mib,
         .min = 128,
         .max = 4096},
        {.name = "timeout",
         .kind = HF_OPTION_INT,
         .argument = "SECONDS",
         .help = "bound of one VM, from start to expected end (default 60)",
         .target = &line.timeout_seconds,
         .min = 1,
         .max = 3600},
        {.name = "seed",
         .kind = HF_OPTION_INT,
         .argument = "N",
         .help = "of everything pseudo-random (default 0)",
         .target = &line.seed,
         .min = 0,
         .max = INT64_MAX},
        {.name = "output-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .help = "receives outcome.json and the logs; created when missing",
         .target = &line.output_dir},
        {.name = "verify",
         .kind = HF_OPTION_FLAG,
         .help = "check QEMU, kernel and initramfs, run nothing",
         .target = &line.verify},
    };
    size_t count = sizeof options / sizeof options[0];
    struct hf_option_result result;
    struct hf_error err = {0};
    hf_program_begin();
    if (hf_options_parse(options, count, argc, argv, &result, &err))
        return fail(EXIT_USAGE, &err);
    if (result.help)
        return print_help(options, count), 0;
    if (result.first_operand < argc)
        return fail(EXIT_USAGE, &(struct hf_error){.message = "expected options only; see --help"});
    if (require(&line, &err))
        return fail(EXIT_USAGE, &err);
    return line.verify ? hf_verify(QEMU_PATH, line.guest_dir) : run_scenario(&line, find_scenario(line.scenario));
}
