/* Shared parts of the scenario runner's integration tests; see harness.h. */
#include "tests/integration/scenario/harness.h"

#include "common/cleanup.h"
#include "common/durable.h"
#include "executor/scenario/vm/pid_journal.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>

void sandbox_create(struct sandbox *sandbox)
{
    strcpy(sandbox->path, "/tmp/hf-scenario-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(sandbox->path));
    snprintf(sandbox->output, sizeof sandbox->output, "%s/output", sandbox->path);
    snprintf(sandbox->journal, sizeof sandbox->journal, "%s/pids", sandbox->path);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void sandbox_remove(struct sandbox *sandbox)
{
    nftw(sandbox->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *required_variable(const char *name)
{
    const char *value = getenv(name);
    ck_assert_msg(value != NULL, "%s is not set: run this test through ctest", name);
    return value;
}

const char *guest_dir(void)
{
    return required_variable("HF_GUEST_DIR");
}

void run_program(const struct sandbox *sandbox, const char *const arguments[], struct hf_child_output *output)
{
    char program[4096], journal[160];
    const char *argv[32] = {program};
    const char *const envp[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", journal, NULL};
    struct hf_error err = {0};
    snprintf(program, sizeof program, "%s/holdfast-scenario", required_variable("HF_BIN_DIR"));
    snprintf(journal, sizeof journal, HF_PID_JOURNAL_VARIABLE "=%s", sandbox->journal);
    for (size_t i = 0; arguments[i] && i + 2 < sizeof argv / sizeof argv[0]; i++)
        argv[i + 1] = arguments[i];
    const struct hf_child_spec spec = {.argv = argv,
                                       .envp = envp,
                                       .stdin_fd = HF_CHILD_NULL,
                                       .stdout_fd = HF_CHILD_PIPE,
                                       .stderr_fd = HF_CHILD_PIPE,
                                       .extra_fds = {-1, -1, -1, -1}};
    const struct hf_child_run_options options = {.stdout_limit = 1 << 20,
                                                 .stderr_limit = 1 << 20,
                                                 .stdout_file_fd = -1,
                                                 .stderr_file_fd = -1,
                                                 .timeout_ms = 900000,
                                                 .interrupt_fd = -1};
    ck_assert_msg(hf_child_run(&spec, &options, output, &err) == 0, "%s", err.message);
}

void run_scenario(const struct sandbox *sandbox, const char *scenario, const char *backend, const char *timeout_seconds,
                  struct hf_child_output *output)
{
    const char *const arguments[] = {"--guest-dir", guest_dir(),    "--backend",    backend,         "--scenario",
                                     scenario,      "--memory-mib", "256",          "--timeout",     timeout_seconds,
                                     "--seed",      "20260101",     "--output-dir", sandbox->output, NULL};
    run_program(sandbox, arguments, output);
}

cJSON *read_document(const char *directory, const char *name)
{
    static const struct hf_json_limits limits = {.max_bytes = 1 << 20, .max_depth = 16};
    struct hf_error err = {0};
    size_t length = 0;
    cleanup_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_free char *text = hf_document_read(fd, name, limits.max_bytes, &length, &err);
    ck_assert_msg(text != NULL, "%s: %s", name, err.message);
    cJSON *document = hf_json_parse(text, length, &limits, &err);
    ck_assert_msg(document != NULL, "%s: %s", name, err.message);
    return document;
}

const cJSON *find_check(const cJSON *checks, const char *phase, const char *name)
{
    const cJSON *check = NULL;
    cJSON_ArrayForEach(check, checks)
    {
        const char *seen_phase = hf_json_get_string(check, "phase");
        bool same_phase = phase ? seen_phase && strcmp(seen_phase, phase) == 0 : !seen_phase;
        if (same_phase && strcmp(hf_json_get_string(check, "name"), name) == 0)
            return check;
    }
    return NULL;
}

/* True when the process has an argument that is the name of a VM. */
static bool is_vm(int pid)
{
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(text + at) + 1)
        if (strncmp(text + at, "holdfast-vm-", strlen("holdfast-vm-")) == 0)
            return true;
    return false;
}

unsigned journaled_vms(const struct sandbox *sandbox, unsigned *alive)
{
    char line[256];
    unsigned count = 0;
    int pid = 0;
    cleanup_file FILE *file = fopen(sandbox->journal, "r");
    *alive = 0;
    while (file && fgets(line, sizeof line, file)) {
        ck_assert_int_eq(sscanf(line, "{\"pid\":%d,\"recorded_at_ns\":", &pid), 1);
        *alive += is_vm(pid);
        count++;
    }
    return count;
}
