/*
 * A test instrument for the controller: speaks the executor protocol without any VM and misbehaves on request, so that
 * every broken, late, lying or vanishing target can be had in milliseconds. The real executor has its own tests.
 *
 * fake-executor BEHAVIOURS DIR: a comma-separated list of VERB[:STEP[:ARGUMENT]]; STEP is initialize, execute, execute2
 * (the second one), finalize, quarantine, shutdown, or empty for any. Every request that arrives is noted as one line
 * in DIR/seen.log, which is how tests know what was dispatched.
 */
#include "common/protocol/protocol.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct hf_dialect dialect = {
    .source = "holdfast",
    .vmm = "qemu",
    .runtime = "libc",
    .artifact_names = {"kernel", "kernel_provenance", "initramfs", "initramfs_package_manifest", "initramfs_provenance",
                       "qemu", "qemu_provenance", "scenario_runner", "scenario_runner_provenance"},
    .artifact_count = 9,
};
static const char sha256[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static const char *behaviours;
static const char *step; /* of the request being answered */
static struct hf_request request;
static char artifact_root[256];
static int executed;

/* True when VERB is asked for at the present step; *argument (may be NULL) gets what follows. */
static bool asked(const char *verb, const char **argument)
{
    static char found[128];
    char list[1024], *rest = list, *one;
    snprintf(list, sizeof list, "%s", behaviours);
    while ((one = strsep(&rest, ","))) {
        char *name = strsep(&one, ":"), *at = strsep(&one, ":");
        if (strcmp(name, verb) != 0 || (at && at[0] && (!step || strcmp(at, step) != 0)))
            continue;
        snprintf(found, sizeof found, "%s", one ? one : "");
        if (argument)
            *argument = found;
        return true;
    }
    return false;
}

static void pause_ms(long ms)
{
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&span, NULL);
}

static void put(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t count = write(STDOUT_FILENO, bytes, length);
        if (count <= 0)
            exit(1);
        bytes += count;
        length -= (size_t)count;
    }
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

static void note(const char *directory, const char *line)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/seen.log", directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dprintf(fd, "%s\n", line);
    close(fd);
}

static struct hf_boot_record clean_boot(void)
{
    return (struct hf_boot_record){.category = HF_CATEGORY_PASSED,
                                   .has_returncode = true,
                                   .duration_ms = 5,
                                   .teardown_complete = true,
                                   .pids = {4321},
                                   .pid_count = 1,
                                   .artifact_path = "/nowhere/boot"};
}

static void fill_initialize(struct hf_initialize_response *answer)
{
    answer->passed = true;
    memcpy(answer->run_id, request.run_id, sizeof answer->run_id);
    memcpy(answer->backend, request.backend, sizeof answer->backend);
    memcpy(answer->host_type, request.host_type, sizeof answer->host_type);
    memcpy(answer->commit, request.expected_commit, sizeof answer->commit);
    memcpy(answer->vmm_commit, request.expected_vmm_commit, sizeof answer->vmm_commit);
    answer->status_lines = hf_json_new_array();
    answer->vmm_status_lines = hf_json_new_array();
    snprintf(answer->os, sizeof answer->os, "Linux");
    snprintf(answer->os_release, sizeof answer->os_release, "6.1");
    snprintf(answer->machine, sizeof answer->machine, "x86_64");
    snprintf(answer->runtime, sizeof answer->runtime, "glibc 2.36");
    for (size_t i = 0; i < dialect.artifact_count; i++) {
        snprintf(answer->artifacts[i].path, sizeof answer->artifacts[i].path, "/nowhere/%s", dialect.artifact_names[i]);
        memcpy(answer->artifacts[i].sha256, sha256, sizeof sha256);
        answer->artifacts[i].size = 1;
    }
    answer->baseline = clean_boot();
    memcpy(answer->host_canary_sha256, sha256, sizeof sha256);
    answer->network_canary_port = 4242;
    answer->oracles.host_canary_intact = true;
    memcpy(answer->artifact_root, artifact_root, sizeof artifact_root);
    if (asked("refuse", NULL)) {
        answer->passed = false;
        answer->verify_returncode = 3;
    }
    if (asked("contradict", NULL))
        answer->baseline.live_pids[answer->baseline.live_pid_count++] = 4321;
    if (asked("violation", NULL)) {
        answer->passed = false;
        answer->oracles.network_canary_connections = 1;
    }
}

static enum hf_category category_by_name(const char *name)
{
    for (int i = HF_CATEGORY_PASSED; i <= HF_CATEGORY_AVAILABILITY_FAILURE; i++)
        if (strcmp(hf_category_name((enum hf_category)i), name) == 0)
            return (enum hf_category)i;
    exit(9);
}

static void fill_execute(struct hf_execute_response *answer)
{
    const char *argument;
    *answer = (struct hf_execute_response){.sequence = request.sequence,
                                           .category = HF_CATEGORY_PASSED,
                                           .has_returncode = true,
                                           .duration_ms = 7,
                                           .oracles = {.host_canary_intact = true},
                                           .teardown_complete = true};
    memcpy(answer->case_id, request.case_id, sizeof answer->case_id);
    snprintf(answer->artifact_path, sizeof answer->artifact_path, "%s/cases/%d", artifact_root, request.sequence);
    answer->stdout_b64 = strdup("Z3Vlc3Qgc2F5czoge30K"); /* "guest says: {}\n" */
    if (asked("category", &argument)) {
        answer->category = category_by_name(argument);
        answer->returncode = 1;
        answer->timed_out = answer->category == HF_CATEGORY_TIMEOUT;
        answer->error = strdup("as asked for\x1b[31m");
    }
    if (asked("sequence", NULL))
        answer->sequence++;
    if (asked("contradict", NULL))
        answer->returncode = 1;
    if (asked("violation", NULL) || asked("violation-vanish", NULL)) {
        answer->category = HF_CATEGORY_POLICY_VIOLATION;
        answer->oracles.host_canary_intact = false;
    }
}

static void fill_finalize(struct hf_finalize_response *answer)
{
    memcpy(answer->run_id, request.run_id, sizeof answer->run_id);
    memcpy(answer->artifact_root, artifact_root, sizeof artifact_root);
    answer->oracles.host_canary_intact = true;
    answer->status = request.quarantine ? HF_FINALIZE_QUARANTINED : HF_FINALIZE_PASSED;
    answer->has_post_campaign = !request.quarantine;
    answer->post_campaign = clean_boot();
    if (asked("unclean", NULL)) {
        answer->status = HF_FINALIZE_FAILED;
        answer->post_campaign.category = HF_CATEGORY_AVAILABILITY_FAILURE;
        answer->post_campaign.returncode = 1;
    }
    if (asked("oracle", NULL)) {
        answer->status = HF_FINALIZE_FAILED;
        answer->watchdog_error = strdup("the watchdog stopped sampling");
    }
    if (asked("violation", NULL) || asked("selfquarantine", NULL)) {
        answer->status = HF_FINALIZE_QUARANTINED;
        answer->has_post_campaign = false;
        answer->oracles.network_canary_connections = 2;
    }
}

static char *build_answer(size_t *length)
{
    struct hf_response answer = {.operation = request.operation};
    if (asked("error", NULL)) {
        answer.operation = HF_OP_ERROR;
        snprintf(answer.error.request_operation, sizeof answer.error.request_operation, "%s",
                 hf_operation_name(request.operation));
        answer.error.error_type = strdup("RuntimeError");
        answer.error.error = strdup("as asked for");
    } else if (request.operation == HF_OP_INITIALIZE) {
        fill_initialize(&answer.initialize);
    } else if (request.operation == HF_OP_EXECUTE) {
        fill_execute(&answer.execute);
    } else if (request.operation == HF_OP_FINALIZE) {
        fill_finalize(&answer.finalize);
    }
    char *line = hf_response_build(&answer, &dialect, length);
    hf_response_clear(&answer);
    return line;
}

static void put_split(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i += 97) {
        put(line + i, length - i < 97 ? length - i : 97);
        pause_ms(1);
    }
}

static void put_oversized(void)
{
    static char block[65536];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 40; i++)
        put(block, sizeof block);
    put_text("\n");
}

/* What is done instead of, or before, a proper answer. Returns true when there is no answer any more. */
static bool misbehave(const char *line, size_t length)
{
    const char *argument;
    if (asked("late", &argument))
        pause_ms(atol(argument));
    if (asked("jitter", &argument)) /* up to so many milliseconds, each time anew */
        pause_ms(random() % (atol(argument) + 1));
    if (asked("vanish", NULL))
        exit(0);
    if (asked("killed", NULL))
        raise(SIGKILL);
    if (asked("close", NULL)) {
        close(STDOUT_FILENO);
        pause_ms(600000);
    }
    if (asked("partial", NULL)) {
        put(line, length / 2);
        exit(0);
    }
    if (asked("silent", NULL))
        return true;
    if (asked("oversized", NULL)) {
        put_oversized();
    } else if (asked("garbage", NULL)) {
        put_text("Traceback (most recent call last):\n");
    } else if (asked("violation-malformed", NULL)) {
        put_text("{\"host_canary_intact\":false,\"operation\":\"execute\",\"extra\":1}\n");
    } else if (asked("duplicate", NULL)) {
        put_text("{\"schema_version\":1,");
        put(line + 1, length - 1);
        put_text("\n");
    } else {
        return false;
    }
    return true;
}

static void answer_request(void)
{
    size_t length;
    char *line = build_answer(&length);
    if (!misbehave(line, length)) {
        line[length++] = '\n';
        if (asked("split", NULL))
            put_split(line, length);
        else
            put(line, length);
    }
    free(line);
    if (asked("chatty", NULL))
        put_text("{\"hello\":1}\n");
    if (asked("violation-vanish", NULL))
        exit(0);
}

static void name_step(void)
{
    static const char *const names[] = {"initialize", "execute", "finalize", "shutdown"};
    executed += request.operation == HF_OP_EXECUTE;
    step = names[request.operation];
    if (request.operation == HF_OP_EXECUTE && executed == 2)
        step = "execute2";
    if (request.operation == HF_OP_FINALIZE && request.quarantine)
        step = "quarantine";
}

static void leave_a_daemon(void)
{
    if (fork() != 0)
        return;
    setsid();
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    pause_ms(600000);
    _exit(0);
}

/* Ends the process where the protocol says so. */
static void end_if_told(void)
{
    bool finalize = request.operation == HF_OP_FINALIZE;
    if (asked("error", NULL) && request.operation != HF_OP_EXECUTE)
        exit(1);
    if (request.operation == HF_OP_INITIALIZE && asked("refuse", NULL))
        exit(1);
    if (finalize && (request.quarantine || asked("selfquarantine", NULL)))
        exit(0);
    if (request.operation != HF_OP_SHUTDOWN)
        return;
    if (asked("linger", NULL))
        pause_ms(600000);
    exit(asked("unwell", NULL) ? 5 : 0);
}

static void serve(const char *directory)
{
    static char line[HF_PROTOCOL_MAX_LINE + 2];
    while (fgets(line, sizeof line, stdin)) {
        struct hf_error err = {0};
        line[strcspn(line, "\n")] = '\0';
        note(directory, line);
        if (hf_request_parse(line, strlen(line), &dialect, &request, &err) != 0) {
            fprintf(stderr, "fake-executor: %s\n", err.message);
            exit(8);
        }
        name_step();
        if (request.operation == HF_OP_INITIALIZE)
            snprintf(artifact_root, sizeof artifact_root, "/nowhere/%s",
                     asked("reused", NULL) ? "reused" : request.run_id);
        answer_request();
        end_if_told();
    }
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    behaviours = argv[1];
    srandom((unsigned)getpid());
    if (asked("deaf", NULL))
        signal(SIGTERM, SIG_IGN);
    if (asked("daemon", NULL))
        leave_a_daemon();
    if (asked("flood-stderr", NULL))
        for (int i = 0; i < 40000; i++)
            fputs("a line of diagnosis that nobody asked for, over and over again, for a long time\n", stderr);
    if (asked("no-read", NULL))
        pause_ms(600000);
    if (asked("environment", NULL))
        for (char **entry = environ; *entry; entry++)
            note(argv[2], *entry);
    serve(argv[2]);
}
