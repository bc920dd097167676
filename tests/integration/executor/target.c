/* Building and driving a target; see target.h. */
#include "tests/integration/executor/target.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/digest.h"

#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *bin_dir(void)
{
    const char *directory = getenv("HF_BIN_DIR");
    ck_assert_msg(directory && directory[0] == '/', "HF_BIN_DIR has to name the directory of the built programs");
    return directory;
}

void target_command(const struct target *target, const char *format, ...)
{
    char command[4096], whole[4800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole, "cd %s && { %s; } >/dev/null 2>%s/command.log", target->root, command, target->root);
    ck_assert_msg(system(whole) == 0, "failed: %.100s", command);
}

void target_write(const char *directory, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    ck_assert_msg(file && fputs(text, file) >= 0 && fclose(file) == 0, "cannot write %s", path);
}

static void describe(const struct target *target, const char *artifact, const char *file, const char *source)
{
    char text[4096], name[128], sha256[HF_SHA256_HEX_SIZE];
    uint64_t size;
    ck_assert_int_eq(hf_sha256_file(file, UINT64_MAX, sha256, &size, NULL), 0);
    snprintf(text, sizeof text,
             "{\"artifact\":\"%s\",\"schema_version\":1,\"sha256\":\"%s\",\"size\":%llu,\"source\":%s}", artifact,
             sha256, (unsigned long long)size, source);
    snprintf(name, sizeof name, "%s.provenance.json", artifact);
    target_write(target->guest_dir, name, text);
}

void target_write_provenance(const struct target *target)
{
    char path[512], sha256[HF_SHA256_HEX_SIZE], built[512];
    snprintf(path, sizeof path, "%s/kernel", target->guest_dir);
    describe(target, "kernel", path,
             "{\"file\":\"boot/vmlinuz\",\"kind\":\"debian-package\",\"package\":\"linux-image-stub\","
             "\"package_sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\","
             "\"version\":\"6.1\"}");
    snprintf(path, sizeof path, "%s/src/runner.c", target->source_root);
    ck_assert_int_eq(hf_sha256_file(path, UINT64_MAX, sha256, NULL, NULL), 0);
    snprintf(built, sizeof built,
             "{\"commit\":\"%s\",\"inputs\":[{\"path\":\"src/runner.c\",\"sha256\":\"%s\"}],\"kind\":\"built\"}",
             target->commit, sha256);
    snprintf(path, sizeof path, "%s/bin/stub-scenario", target->source_root);
    describe(target, "scenario_runner", path, built);
}

static void read_line_of(const struct target *target, const char *command, char out[65])
{
    char path[300];
    target_command(target, "%s > line", command);
    snprintf(path, sizeof path, "%s/line", target->root);
    cleanup_file FILE *file = fopen(path, "re");
    ck_assert(file && fscanf(file, "%64s", out) == 1);
}

void target_read_commit(const struct target *target, const char *tree, char out[65])
{
    char command[400];
    snprintf(command, sizeof command, "git -C %s rev-parse HEAD", tree);
    read_line_of(target, command, out);
}

static void create_root(struct target *target)
{
    memset(target, 0, sizeof *target);
    target->to_fd = target->from_fd = -1;
    snprintf(target->root, sizeof target->root, "/tmp/hf-executor-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(target->root));
    snprintf(target->state_dir, sizeof target->state_dir, "%s/state", target->root);
    snprintf(target->control_dir, sizeof target->control_dir, "%s/control", target->root);
    target_command(target, "mkdir control");
}

static void load(struct target *target, const char *profile, const char *campaign)
{
    struct hf_error err = {0};
    char campaigns[400];
    snprintf(campaigns, sizeof campaigns, "%s/catalog/campaigns", target->source_root);
    ck_assert_msg(hf_profile_load(target->profiles_dir, profile, &target->profile, &err) == 0, "%s", err.message);
    ck_assert_msg(hf_campaign_load(campaigns, campaign, &target->profile, &target->campaign, &err) == 0, "%s",
                  err.message);
}

void target_create_from_build(struct target *target, const char *campaign)
{
    const char *guest_dir = getenv("HF_GUEST_DIR");
    ck_assert_ptr_nonnull(guest_dir);
    create_root(target);
    ck_assert_ptr_nonnull(getcwd(target->source_root, sizeof target->source_root));
    snprintf(target->guest_dir, sizeof target->guest_dir, "%s", guest_dir);
    snprintf(target->profiles_dir, sizeof target->profiles_dir, "%s/catalog/profiles", target->source_root);
    load(target, "qemu", campaign);
    target_read_commit(target, target->source_root, target->commit);
    read_line_of(target, "dpkg-query -W -f='${Version}' qemu-system-x86", target->vmm_commit);
}

void target_create(struct target *target)
{
    char working[300];
    create_root(target);
    ck_assert_ptr_nonnull(getcwd(working, sizeof working));
    snprintf(target->source_root, sizeof target->source_root, "%s/source", target->root);
    snprintf(target->guest_dir, sizeof target->guest_dir, "%s/guest", target->root);
    snprintf(target->profiles_dir, sizeof target->profiles_dir, "%s/tests/data/profiles", working);
    target->clean_required = true;
    target_command(target,
                   "mkdir -p source/catalog/campaigns source/src source/bin source/vmm guest && "
                   "cp %s/tests/data/campaigns/stub-behaviour.json source/catalog/campaigns/ && "
                   "cp %s/stub-scenario source/bin/ && echo 'int runner;' > source/src/runner.c && "
                   "printf '/bin/\\n/vmm/\\n/build/\\n' > source/.gitignore && echo 'a kernel' > guest/kernel && "
                   "echo vmm > source/vmm/vmm.c && for tree in source source/vmm; do git -C $tree init -q && "
                   "git -C $tree add . && git -C $tree -c user.name=t -c user.email=t@localhost commit -q -m t; done",
                   working, bin_dir());
    target_read_commit(target, "source", target->commit);
    target_read_commit(target, "source/vmm", target->vmm_commit);
    target_write_provenance(target);
    load(target, "stub", "stub-behaviour");
    setenv("HOLDFAST_STUB_CONTROL", target->control_dir, 1);
}

void target_destroy(struct target *target)
{
    if (target->pid > 0) {
        kill(target->pid, SIGKILL);
        waitpid(target->pid, NULL, 0);
        target_close_input(target);
        close(target->from_fd);
    }
    target_expect_no_process(target, 10000);
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", target->root);
    ck_assert_int_eq(system(command), 0);
    hf_campaign_clear(&target->campaign);
    hf_profile_clear(&target->profile);
}

static void fill_initialize(struct target *target)
{
    struct hf_request *request = &target->initialize;
    memset(request, 0, sizeof *request);
    request->operation = HF_OP_INITIALIZE;
    snprintf(request->run_id, sizeof request->run_id, "run-%d", ++target->run_number);
    memcpy(request->expected_commit, target->commit, sizeof request->expected_commit);
    memcpy(request->expected_vmm_commit, target->vmm_commit, sizeof request->expected_vmm_commit);
    memcpy(request->expected_catalog_sha256, target->campaign.catalog_sha256, sizeof request->expected_catalog_sha256);
    request->require_clean = target->clean_required;
    strcpy(request->backend, "tcg");
    memcpy(request->campaign, target->campaign.name, sizeof target->campaign.name);
    strcpy(request->host_type, "unspecified");
    request->seed = 1234;
    request->memory_mib = 256;
    request->phase_timeout_seconds = 20;
    request->baseline_timeout_seconds = 20;
}

void target_start(struct target *target)
{
    char program[2200], log[400], on_small_disk[1024];
    int to[2], from[2];
    posix_spawn_file_actions_t actions;
    ck_assert_int_eq(target->pid, 0);
    ck_assert(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    snprintf(program, sizeof program, "%s/holdfast-executor", bin_dir());
    snprintf(log, sizeof log, "%s/executor.log", target->root);
    snprintf(on_small_disk, sizeof on_small_disk,
             "mkdir -p '%s' && mount -t tmpfs -o mode=0700,size=%s none '%s' && exec \"$0\" \"$@\"", target->state_dir,
             target->small_disk ? target->small_disk : "", target->state_dir);
    const char *const whole[] = {"unshare",
                                 "-rm",
                                 "sh",
                                 "-c",
                                 on_small_disk,
                                 program,
                                 "--profile",
                                 target->profile.name,
                                 "--source-root",
                                 target->source_root,
                                 "--guest-dir",
                                 target->guest_dir,
                                 "--state-dir",
                                 target->state_dir,
                                 "--profiles-dir",
                                 target->profiles_dir,
                                 NULL};
    const char *const *argv = target->small_disk ? whole : whole + 5;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ck_assert_int_eq(posix_spawnp(&target->pid, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    target->to_fd = to[1];
    target->from_fd = from[0];
    fill_initialize(target);
}

void target_send(struct target *target, const char *bytes, size_t length)
{
    signal(SIGPIPE, SIG_IGN);
    while (length > 0) {
        ssize_t written = write(target->to_fd, bytes, length);
        if (written < 0 && errno == EPIPE)
            return; /* the executor has already refused */
        ck_assert(written > 0);
        bytes += written;
        length -= (size_t)written;
    }
}

void target_send_line(struct target *target, const char *line)
{
    target_send(target, line, strlen(line));
    target_send(target, "\n", 1);
}

char *target_read_line(struct target *target, int timeout_ms)
{
    size_t length = 0;
    char *line = malloc(HF_PROTOCOL_MAX_LINE + 2);
    uint64_t deadline_ms = hf_clock_mono_ms() + (uint64_t)timeout_ms;
    for (;;) {
        struct pollfd ready = {.fd = target->from_fd, .events = POLLIN};
        uint64_t now_ms = hf_clock_mono_ms();
        ck_assert_msg(now_ms < deadline_ms && poll(&ready, 1, (int)(deadline_ms - now_ms)) > 0,
                      "no response within %d ms; see %s/executor.log", timeout_ms, target->root);
        ssize_t got = read(target->from_fd, line + length, HF_PROTOCOL_MAX_LINE + 1 - length);
        ck_assert(got >= 0);
        length += (size_t)got;
        line[length] = '\0';
        if (got == 0) {
            free(line);
            return NULL;
        }
        if (line[length - 1] == '\n') {
            line[length - 1] = '\0';
            return line;
        }
    }
}

/* The executor's own words, for a message of a test that fails. Owned. */
static char *executor_log(const struct target *target)
{
    char path[300], *text = calloc(1, 4096);
    snprintf(path, sizeof path, "%s/executor.log", target->root);
    cleanup_file FILE *file = fopen(path, "re");
    if (file && text)
        text[fread(text, 1, 4095, file)] = '\0';
    return text;
}

void target_ask(struct target *target, const struct hf_request *request, struct hf_response *response)
{
    struct hf_error err = {0};
    cleanup_free char *line = hf_request_build(request, &target->profile.dialect, NULL);
    target_send_line(target, line);
    cleanup_free char *answer =
        target_read_line(target, (request->timeout_seconds + request->baseline_timeout_seconds + 60) * 1000);
    cleanup_free char *log = answer ? NULL : executor_log(target);
    ck_assert_msg(answer != NULL, "the executor ended without an answer: %s", log);
    ck_assert_msg(hf_response_parse(answer, strlen(answer), request, &target->profile.dialect, response, &err) == 0,
                  "%s in %s", err.message, answer);
}

void target_expect_error(struct target *target, const char *error_type)
{
    struct hf_error err = {0};
    cleanup_free char *answer = target_read_line(target, 30000);
    cleanup_free char *log = answer ? NULL : executor_log(target);
    ck_assert_msg(answer != NULL, "the executor ended without an answer: %s", log);
    const struct hf_json_limits limits = {.max_bytes = HF_PROTOCOL_MAX_LINE, .max_depth = 8};
    cleanup_json cJSON *document = hf_json_parse(answer, strlen(answer), &limits, &err);
    ck_assert_msg(document != NULL, "%s", err.message);
    ck_assert_str_eq(hf_json_get_string(document, "operation"), "error");
    ck_assert_str_eq(hf_json_get_string(document, "error_type"), error_type);
    ck_assert_str_ne(hf_json_get_string(document, "error"), "");
}

void target_close_input(struct target *target)
{
    if (target->to_fd >= 0)
        close(target->to_fd);
    target->to_fd = -1;
}

int target_wait(struct target *target, int timeout_ms)
{
    int status;
    uint64_t deadline_ms = hf_clock_mono_ms() + (uint64_t)timeout_ms;
    while (waitpid(target->pid, &status, WNOHANG) == 0) {
        ck_assert_msg(hf_clock_mono_ms() < deadline_ms, "the executor did not end within %d ms", timeout_ms);
        poll(NULL, 0, 5);
    }
    target->pid = 0;
    target_close_input(target);
    close(target->from_fd);
    target->from_fd = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct hf_request target_request(const struct target *target, enum hf_operation operation)
{
    struct hf_request request = {.operation = operation, .timeout_seconds = 60};
    memcpy(request.run_id, target->initialize.run_id, sizeof request.run_id);
    return request;
}

void target_initialize(struct target *target, struct hf_response *response)
{
    char port[16];
    target_ask(target, &target->initialize, response);
    ck_assert_msg(response->operation == HF_OP_INITIALIZE, "initialize was refused: %s",
                  response->operation == HF_OP_ERROR ? response->error.error : "?");
    ck_assert(response->initialize.passed);
    snprintf(port, sizeof port, "%d", response->initialize.network_canary_port);
    target_write(target->control_dir, "port", port);
}

void target_execute(struct target *target, int sequence, const char *case_id, struct hf_response *response)
{
    struct hf_request request = target_request(target, HF_OP_EXECUTE);
    request.sequence = sequence;
    snprintf(request.case_id, sizeof request.case_id, "%s", case_id);
    target_ask(target, &request, response);
    ck_assert_msg(response->operation == HF_OP_EXECUTE, "execute was refused: %s",
                  response->operation == HF_OP_ERROR ? response->error.error : "?");
}

void target_shut_down(struct target *target)
{
    struct hf_response response;
    struct hf_request request = {.operation = HF_OP_SHUTDOWN};
    target_ask(target, &request, &response);
    ck_assert_int_eq(response.operation, HF_OP_SHUTDOWN);
    hf_response_clear(&response);
    ck_assert_int_eq(target_wait(target, 10000), 0);
    target_expect_no_process(target, 2000);
}

int target_process_count(const struct target *target)
{
    int count = 0;
    cleanup_dir DIR *processes = opendir("/proc");
    const struct dirent *entry;
    while ((entry = readdir(processes))) {
        char path[300], text[8192];
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
        if (length > 0 && memmem(text, (size_t)length, target->root, strlen(target->root)))
            count++;
    }
    return count;
}

void target_expect_no_process(const struct target *target, int timeout_ms)
{
    uint64_t deadline_ms = hf_clock_mono_ms() + (uint64_t)timeout_ms;
    while (target_process_count(target) > 0) {
        ck_assert_msg(hf_clock_mono_ms() < deadline_ms, "%d processes of the session are left after %d ms",
                      target_process_count(target), timeout_ms);
        poll(NULL, 0, 10);
    }
}

bool target_has_file(const struct target *target, const char *path_in_run)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/%s", target->state_dir, target->initialize.run_id, path_in_run);
    return access(path, F_OK) == 0;
}

char *target_read_file(const struct target *target, const char *path_in_run)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/%s", target->state_dir, target->initialize.run_id, path_in_run);
    cleanup_file FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s is not there", path);
    char *text = calloc(1, (32 << 20) + 1);
    size_t length = fread(text, 1, 32 << 20, file);
    text[length] = '\0';
    return text;
}
