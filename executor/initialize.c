/*
 * The `initialize` step: a fixed list of checks in a fixed order, refused at the first that fails (I10), so that
 * nothing is started on a target that is not exactly what the controller expects. Declared in executor.h.
 */
#include "common/cleanup.h"
#include "common/log.h"
#include "executor/boot.h"
#include "executor/environment.h"
#include "executor/run_directory.h"
#include "executor/source.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { VERIFY_TIMEOUT_MS = 120000, VERIFY_LOG_BYTES = 1 << 20, VERIFY_KEPT_BYTES = 512 };

/* The request's answer while it is made. */
struct preparation {
    struct executor *executor;
    const struct hf_request *request;
    struct hf_initialize_response *response;
    struct source_identity source, vmm;
};

static int check_source_commit(struct preparation *preparation, struct hf_error *err)
{
    struct executor *executor = preparation->executor;
    if (source_identify_git(executor->paths.source_root, executor->channel.interrupt_fd, &preparation->source, err) !=
        0)
        return -1;
    if (strcmp(preparation->source.commit, preparation->request->expected_commit) != 0)
        return hf_error_set(err, "commit-mismatch", 0, "expected_commit",
                            "the staged source tree %.512s is at commit %s, expected was %s; stage the expected commit",
                            executor->paths.source_root, preparation->source.commit,
                            preparation->request->expected_commit);
    return 0;
}

static int check_vmm_identity(struct preparation *preparation, struct hf_error *err)
{
    struct executor *executor = preparation->executor;
    const struct hf_profile *profile = &executor->profile;
    int interrupt_fd = executor->channel.interrupt_fd;
    int status;
    if (profile->vmm_identity == HF_VMM_DEBIAN_PACKAGE) {
        status = source_identify_package(profile->vmm_source, interrupt_fd, &preparation->vmm, err);
    } else {
        struct executor_placeholders places = {0};
        executor_placeholders_fill(executor, &places);
        cleanup_free char *root = hf_placeholder_expand(profile->vmm_source, &places.values, err);
        status = root ? source_identify_git(root, interrupt_fd, &preparation->vmm, err) : -1;
    }
    if (status != 0)
        return -1;
    if (strcmp(preparation->vmm.commit, preparation->request->expected_vmm_commit) != 0)
        return hf_error_set(err, "vmm-mismatch", 0, "expected_vmm_commit", "%s is at %s, expected was %s",
                            profile->dialect.vmm, preparation->vmm.commit, preparation->request->expected_vmm_commit);
    return 0;
}

static int check_clean(struct preparation *preparation, struct hf_error *err)
{
    const struct hf_dialect *dialect = &preparation->executor->profile.dialect;
    if (!preparation->request->require_clean)
        return 0;
    const bool source = preparation->source.dirty;
    if (source || preparation->vmm.dirty)
        return hf_error_set(err, "not-clean", 0, "require_clean",
                            "%s is modified (first: %.256s); a clean one was required",
                            source ? dialect->source : dialect->vmm,
                            (source ? preparation->source : preparation->vmm).status_lines->child->valuestring);
    return 0;
}

static int check_catalog(struct preparation *preparation, struct hf_error *err)
{
    struct executor *executor = preparation->executor;
    struct executor_placeholders places = {0};
    executor_placeholders_fill(executor, &places);
    cleanup_free char *campaigns_dir = hf_placeholder_expand(executor->profile.campaigns_dir, &places.values, err);
    if (!campaigns_dir || hf_campaign_load(campaigns_dir, preparation->request->campaign, &executor->profile,
                                           &executor->campaign, err) != 0)
        return -1;
    if (strcmp(executor->campaign.catalog_sha256, preparation->request->expected_catalog_sha256) != 0)
        return hf_error_set(err, "catalog-mismatch", 0, "expected_catalog_sha256",
                            "the staged catalog of campaign %s has the digest %s, expected was %s",
                            executor->campaign.name, executor->campaign.catalog_sha256,
                            preparation->request->expected_catalog_sha256);
    return 0;
}

static int start_oracles(struct preparation *preparation, struct hf_error *err)
{
    struct executor *executor = preparation->executor;
    char program[HF_PATH_SIZE + 32];
    executor->run_dirfd = run_directory_create(executor->state_dir, preparation->request->run_id, err);
    if (executor->run_dirfd < 0)
        return -1;
    if (executor_path_join(executor->run_dir, executor->state_dir, preparation->request->run_id, err) != 0)
        return -1;
    executor->child_envp = environment_new(&executor->profile, NULL);
    snprintf(program, sizeof program, "%s/holdfast-watchdog", executor->paths.bin_dir);
    const struct oracles_options options = {.program = program,
                                            .run_dir = executor->run_dir,
                                            .run_dirfd = executor->run_dirfd,
                                            .run_id = preparation->request->run_id,
                                            .seed = preparation->request->seed,
                                            .interrupt_fd = executor->channel.interrupt_fd,
                                            .envp = (const char *const *)executor->child_envp};
    return oracles_start(&executor->oracles, &options, err);
}

static int judge_verify(struct preparation *preparation, const struct hf_child_output *output, struct hf_error *err)
{
    const struct hf_child_report *report = &output->report;
    char said[HF_ERROR_QUOTE_SIZE];
    hf_error_quote(output->stderr_bytes, output->stderr_length, said);
    if (output->interrupted)
        return hf_error_set(err, "interrupted", 0, "", "interrupted while the verify command ran");
    if (output->stopped_by_poll)
        return hf_error_set(err, "oracle-unavailable", 0, "",
                            "the verify command was stopped because the oracles spoke up (%s)",
                            preparation->executor->oracles.lost[0] ? preparation->executor->oracles.lost : "violation");
    if (!report->started)
        return hf_error_set(err, "verify-failed", report->start_errno, "",
                            "the verify command could not be started: %s", strerror(report->start_errno));
    if (output->timed_out || !report->exited || report->exit_code != 0)
        return hf_error_set(err, "verify-failed", 0, "",
                            "the verify command %s (exit %d, signal %d, %llu ms) and said: %s; its whole output is in "
                            "verify.stderr.log of the run",
                            output->timed_out ? "did not end within 120 s" : "failed", report->exit_code,
                            report->term_signal, (unsigned long long)report->duration_ms, said);
    preparation->response->verify_returncode = report->exit_code;
    preparation->response->verify_timed_out = output->timed_out;
    preparation->response->verify_duration_ms = (int64_t)report->duration_ms;
    return 0;
}

static int run_verify(struct preparation *preparation, struct hf_error *err)
{
    struct executor *executor = preparation->executor;
    struct executor_placeholders places = {0};
    executor_placeholders_fill(executor, &places);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    cleanup_close int stdout_fd = openat(executor->run_dirfd, "verify.stdout.log", flags, 0600);
    cleanup_close int stderr_fd = openat(executor->run_dirfd, "verify.stderr.log", flags, 0600);
    if (stdout_fd < 0 || stderr_fd < 0)
        return hf_error_set(err, "storage-failed", errno, "", "cannot create the verify logs: %s", strerror(errno));
    char **argv = hf_command_expand(&executor->profile.verify, NULL, &places.values, err);
    if (!argv)
        return -1;
    struct hf_child_spec spec = {.argv = (const char *const *)argv,
                                 .envp = (const char *const *)executor->child_envp,
                                 .cwd = executor->paths.source_root,
                                 .stdin_fd = HF_CHILD_NULL,
                                 .stdout_fd = HF_CHILD_PIPE,
                                 .stderr_fd = HF_CHILD_PIPE};
    struct hf_child_run_options options = {.stdout_limit = VERIFY_KEPT_BYTES,
                                           .stderr_limit = VERIFY_KEPT_BYTES,
                                           .stdout_file_fd = stdout_fd,
                                           .stderr_file_fd = stderr_fd,
                                           .file_limit = VERIFY_LOG_BYTES,
                                           .timeout_ms = VERIFY_TIMEOUT_MS,
                                           .interrupt_fd = executor->channel.interrupt_fd,
                                           .poll = oracles_object,
                                           .poll_context = &executor->oracles,
                                           .poll_interval_ms = 100};
    struct hf_child_output output;
    int status = hf_child_run(&spec, &options, &output, err);
    hf_argv_free(argv);
    if (status == 0)
        status = judge_verify(preparation, &output, err);
    hf_child_output_clear(&output);
    return status;
}

static int check_artifacts(struct preparation *preparation, struct hf_error *err)
{
    struct executor *executor = preparation->executor;
    struct executor_placeholders places = {0};
    executor_placeholders_fill(executor, &places);
    const bool packaged = executor->profile.vmm_identity == HF_VMM_DEBIAN_PACKAGE;
    const struct provenance_context context = {.profile = &executor->profile,
                                               .source_root = executor->paths.source_root,
                                               .vmm_package = packaged ? executor->profile.vmm_source : NULL,
                                               .vmm_version = packaged ? preparation->vmm.commit : NULL};
    if (artifacts_measure(&executor->profile, &places.values, &executor->artifacts, err) != 0)
        return -1;
    return artifacts_check_provenance(&executor->artifacts, &context, err);
}

/* A baseline that is not clean is a finding about this very target, so it is answered with status `failed` and the
 * whole record; every step before it is answered with an `error`. */
static int boot_baseline(struct preparation *preparation, struct hf_error *err)
{
    struct executor *executor = preparation->executor;
    struct hf_initialize_response *response = preparation->response;
    char why[HF_PROTOCOL_MAX_ERROR] = "";
    if (boot_run(executor, "baseline", preparation->request->baseline_timeout_seconds, &response->baseline, why, err) !=
        0)
        return -1;
    response->passed = hf_boot_record_clean(&response->baseline) && !oracles_violated(&executor->oracles) &&
                       executor->oracles.lost[0] == '\0';
    if (why[0] != '\0')
        hf_log(HF_LOG_WARNING, "baseline_failed", "reason", why, NULL);
    return 0;
}

static void fill_metadata(const struct executor *executor, struct hf_initialize_response *response)
{
    struct utsname system;
    uname(&system);
    snprintf(response->os, sizeof response->os, "%s", system.sysname);
    snprintf(response->os_release, sizeof response->os_release, "%.*s", (int)sizeof response->os_release - 1,
             system.release);
    snprintf(response->machine, sizeof response->machine, "%s", system.machine);
    snprintf(response->runtime, sizeof response->runtime, "glibc %s (holdfast-executor " HF_VERSION ")",
             gnu_get_libc_version());
    for (size_t i = 0; i < executor->artifacts.count; i++) {
        const struct artifact *artifact = &executor->artifacts.list[i];
        struct hf_artifact_record *record = &response->artifacts[i];
        memcpy(record->path, artifact->path, sizeof record->path);
        memcpy(record->sha256, artifact->sha256, sizeof record->sha256);
        record->size = (int64_t)artifact->size_bytes;
    }
}

static void fill_response(struct preparation *preparation)
{
    const struct hf_request *request = preparation->request;
    struct hf_initialize_response *response = preparation->response;
    const struct executor *executor = preparation->executor;
    const struct watchdog_state *oracles = &executor->oracles.state;
    memcpy(response->run_id, request->run_id, sizeof response->run_id);
    memcpy(response->backend, request->backend, sizeof response->backend);
    memcpy(response->host_type, request->host_type, sizeof response->host_type);
    memcpy(response->commit, preparation->source.commit, sizeof response->commit);
    memcpy(response->vmm_commit, preparation->vmm.commit, sizeof response->vmm_commit);
    response->dirty = preparation->source.dirty;
    response->vmm_dirty = preparation->vmm.dirty;
    response->status_lines = STEAL_PTR(preparation->source.status_lines);
    response->vmm_status_lines = STEAL_PTR(preparation->vmm.status_lines);
    fill_metadata(executor, response);
    memcpy(response->host_canary_sha256, oracles->host_canary_sha256, sizeof response->host_canary_sha256);
    response->network_canary_port = oracles->network_canary_port;
    response->oracles.host_canary_intact = oracles->host_canary_intact;
    response->oracles.network_canary_connections = (int64_t)oracles->network_canary_connections;
    snprintf(response->artifact_root, sizeof response->artifact_root, "%s", executor->run_dir);
}

static int check_backend(struct preparation *preparation, struct hf_error *err)
{
    const struct hf_profile *profile = &preparation->executor->profile;
    if (!hf_profile_has_backend(profile, preparation->request->backend))
        return hf_error_set(err, "backend-unknown", 0, "backend", "profile %s has no backend %s", profile->name,
                            preparation->request->backend);
    return 0;
}

/* Evidence outranks whatever else ended the preparation: under any other error type the controller would take the
 * target for merely refused and use it again (I3). */
static void tell_violation(struct executor *executor, struct hf_error *err)
{
    oracles_listen(&executor->oracles);
    if (!oracles_violated(&executor->oracles) || strcmp(err->code, "interrupted") == 0)
        return;
    hf_error_prefix(err, "the oracles have evidence of a violation");
    err->code = "policy-violation";
}

int executor_initialize(struct executor *executor, const struct hf_request *request, struct hf_response *response,
                        struct hf_error *err)
{
    /* The order is the protocol's (docs/executor.md). */
    static int (*const STEPS[])(struct preparation *, struct hf_error *) = {
        check_backend, check_source_commit, check_vmm_identity, check_clean,  check_catalog,
        start_oracles, run_verify,          check_artifacts,    boot_baseline};
    struct preparation preparation = {.executor = executor, .request = request, .response = &response->initialize};
    executor->settings = *request;
    int status = 0;
    for (size_t i = 0; status == 0 && i < sizeof STEPS / sizeof STEPS[0]; i++)
        status = STEPS[i](&preparation, err);
    if (status == 0)
        fill_response(&preparation);
    else
        tell_violation(executor, err);
    source_identity_clear(&preparation.source);
    source_identity_clear(&preparation.vmm);
    if (status != 0 || !response->initialize.passed)
        executor_close_session(executor);
    return status;
}
