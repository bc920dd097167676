/* Running one trusted command and gathering all that it showed; see dispatch.h. */
#include "executor/dispatch.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable.h"
#include "executor/dispatch_record.h"
#include "executor/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ORACLE_POLL_MS = 100 };

/* Descriptors of one dispatch's directory. */
struct place {
    int dirfd, out_dirfd, stdout_fd, stderr_fd;
};

static void cleanup_place(const struct place *place)
{
    const int fds[] = {place->dirfd, place->out_dirfd, place->stdout_fd, place->stderr_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int create_log(int dirfd, const char *name, struct hf_error *err)
{
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        hf_error_set(err, "storage-failed", errno, "", "cannot create %s: %s", name, strerror(errno));
    return fd;
}

static int create_place(const struct executor *executor, const char *directory, struct place *place,
                        struct hf_error *err)
{
    if (mkdirat(executor->run_dirfd, directory, 0700) != 0)
        return hf_error_set(err, "storage-failed", errno, "", "cannot create %.256s in the run directory: %s",
                            directory, strerror(errno));
    place->dirfd = openat(executor->run_dirfd, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place->dirfd < 0)
        return hf_error_set(err, "storage-failed", errno, "", "cannot open %.256s: %s", directory, strerror(errno));
    place->out_dirfd = hf_dir_open(place->dirfd, "out", true, err);
    place->stdout_fd = place->out_dirfd < 0 ? -1 : create_log(place->dirfd, "stdout.log", err);
    place->stderr_fd = place->stdout_fd < 0 ? -1 : create_log(place->dirfd, "stderr.log", err);
    return place->stderr_fd < 0 ? -1 : 0;
}

/* Before: everything that must hold for anything to be started (I2). The planting of the canary is the first sample. */
static int clear_to_dispatch(struct executor *executor, const struct dispatch_spec *spec, struct place *place,
                             struct dispatch_result *result, struct hf_error *reason, struct hf_error *err)
{
    struct oracles *oracles = &executor->oracles;
    result->facts.storage_failed =
        executor_path_join(result->directory, executor->run_dir, spec->directory, reason) != 0 ||
        create_place(executor, spec->directory, place, reason) != 0;
    oracles_listen(oracles);
    int status = 0;
    if (!oracles_violated(oracles) && !result->facts.storage_failed)
        status = oracles_plant(oracles, spec->directory, err);
    if (!result->facts.storage_failed)
        result->facts.artifact_changed =
            artifacts_check_unchanged(&executor->artifacts, &executor->profile, reason) != 0;
    result->facts.violated = oracles_violated(oracles);
    result->facts.oracle_lost = oracles->lost[0] != '\0';
    return status;
}

static int run_command(struct executor *executor, const struct dispatch_spec *spec, const struct place *place,
                       struct dispatch_result *result, struct hf_error *reason)
{
    struct executor_placeholders places = {0};
    char timeout[24], out_dir[HF_PATH_SIZE + 8], journal[HF_PATH_SIZE + 128];
    executor_placeholders_fill(executor, &places);
    snprintf(timeout, sizeof timeout, "%llu", (unsigned long long)((spec->timeout_ms + 999) / 1000));
    snprintf(out_dir, sizeof out_dir, "%s/out", result->directory);
    snprintf(journal, sizeof journal, "%s=%s/" PID_JOURNAL_NAME, executor->profile.pid_journal_variable,
             result->directory);
    places.values.scenario = spec->scenario;
    places.values.timeout = timeout;
    places.values.output_dir = out_dir;
    char **argv = hf_command_expand(spec->command, spec->extra, &places.values, reason);
    if (!argv)
        return -1;
    const char *const extra[] = {journal, NULL};
    char **envp = environment_new(&executor->profile, extra);
    struct hf_child_spec child = {.argv = (const char *const *)argv,
                                  .envp = (const char *const *)envp,
                                  .cwd = executor->paths.source_root,
                                  .stdin_fd = HF_CHILD_NULL,
                                  .stdout_fd = HF_CHILD_PIPE,
                                  .stderr_fd = HF_CHILD_PIPE};
    struct hf_child_run_options options = {.stdout_limit = HF_PROTOCOL_MAX_OUTPUT,
                                           .stderr_limit = HF_PROTOCOL_MAX_OUTPUT,
                                           .stdout_file_fd = place->stdout_fd,
                                           .stderr_file_fd = place->stderr_fd,
                                           .file_limit = DISPATCH_STREAM_FILE_BYTES,
                                           .timeout_ms = spec->timeout_ms,
                                           .interrupt_fd = executor->channel.interrupt_fd,
                                           .poll = oracles_object,
                                           .poll_context = &executor->oracles,
                                           .poll_interval_ms = ORACLE_POLL_MS};
    int status = hf_child_run(&child, &options, &result->output, reason);
    hf_argv_free(envp);
    hf_argv_free(argv);
    result->ran = status == 0;
    return status;
}

/* What the process tree itself showed. */
static void judge_process(struct dispatch_result *result, struct hf_error *reason)
{
    const struct hf_child_report *report = &result->output.report;
    struct verdict_facts *facts = &result->facts;
    facts->started = result->ran && (report->started || report->supervisor_lost);
    /* What was not watched to its end is not known to have ended. */
    facts->teardown_complete = result->ran;
    if (result->ran && !facts->started)
        hf_error_set(reason, "command-not-started", report->start_errno, "",
                     "the profile's command could not be started: %s", strerror(report->start_errno));
    if (!facts->started)
        return;
    facts->timed_out = result->output.timed_out;
    result->has_returncode = report->exited || report->term_signal > 0;
    result->returncode = report->exited ? report->exit_code : -report->term_signal;
    facts->returned_zero = report->exited && report->exit_code == 0;
    /* A command that ends by itself has to have cleaned up; one that was stopped cannot. */
    bool stopped = result->output.timed_out || result->output.stopped_by_poll;
    facts->teardown_complete = report->teardown_complete && (stopped || report->descendants_killed == 0);
}

/* What it left in its directory. */
static void judge_leavings(const struct dispatch_spec *spec, const struct place *place, uint64_t started_wall_ms,
                           struct dispatch_result *result, struct hf_error *reason)
{
    struct verdict_facts *facts = &result->facts;
    if (pid_journal_read(place->dirfd, &result->journal, reason) != 0)
        facts->teardown_complete = false;
    pid_journal_find_live(&result->journal, started_wall_ms * 1000000);
    inventory_take(place->out_dirfd, spec->reports, spec->report_count, &result->inventory);
    facts->teardown_complete =
        facts->teardown_complete && result->journal.live_count == 0 && result->inventory.teardown_complete;
    facts->reports_acceptable = result->inventory.acceptable;
}

/* After: the second sample, and whether the files that were measured are still those. */
static int look_again(struct executor *executor, struct dispatch_result *result, struct hf_error *reason,
                      struct hf_error *err)
{
    int status = oracles_retire(&executor->oracles, err);
    result->facts.violated = oracles_violated(&executor->oracles);
    result->facts.oracle_lost = executor->oracles.lost[0] != '\0';
    struct hf_error changed = {0};
    if (artifacts_check_unchanged(&executor->artifacts, &executor->profile, &changed) != 0) {
        result->facts.artifact_changed = true;
        *reason = changed;
    }
    return status;
}

static int perform(struct executor *executor, const struct dispatch_spec *spec, const struct place *place,
                   struct dispatch_result *result, struct hf_error *reason, struct hf_error *err)
{
    uint64_t started_wall_ms = hf_clock_wall_ms(), started_mono_ms = hf_clock_mono_ms();
    result->dispatched = true;
    run_command(executor, spec, place, result, reason);
    result->duration_ms = hf_clock_mono_ms() - started_mono_ms;
    if (result->ran && result->output.interrupted)
        return hf_error_set(err, "interrupted", 0, "", "interrupted while the profile's command ran");
    judge_process(result, reason);
    if (result->facts.started)
        judge_leavings(spec, place, started_wall_ms, result, reason);
    return look_again(executor, result, reason, err);
}

int dispatch_run(struct executor *executor, const struct dispatch_spec *spec, struct dispatch_result *result,
                 struct hf_error *err)
{
    __attribute__((cleanup(cleanup_place))) struct place place = {-1, -1, -1, -1};
    struct hf_error reason = {0};
    memset(result, 0, sizeof *result);
    /* What a refused dispatch did not do, it did not do wrong. */
    result->facts.started = result->facts.teardown_complete = result->facts.reports_acceptable = true;
    if (clear_to_dispatch(executor, spec, &place, result, &reason, err) != 0)
        return -1;
    const struct verdict_facts *facts = &result->facts;
    if (!facts->violated && !facts->oracle_lost && !facts->storage_failed && !facts->artifact_changed &&
        perform(executor, spec, &place, result, &reason, err) != 0)
        return -1;
    dispatch_describe(executor, spec, result, &reason);
    if (place.dirfd >= 0 && dispatch_record_write(executor, spec, result, place.dirfd, &reason) != 0) {
        result->facts.storage_failed = true;
        dispatch_describe(executor, spec, result, &reason);
    }
    return 0;
}

void dispatch_result_clear(struct dispatch_result *result)
{
    hf_child_output_clear(&result->output);
    inventory_clear(&result->inventory);
}
