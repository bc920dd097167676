/*
 * The `execute` step: one case of the loaded catalog, repetition by repetition, until one fails or the time is used up.
 * Declared in executor.h.
 */
#include "common/clock.h"
#include "common/digest.h"
#include "common/durable.h"
#include "executor/dispatch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One execute request while it is worked on. */
struct action {
    struct executor *executor;
    const struct hf_request *request;
    const struct hf_case *test_case;
    const struct hf_profile_scenario *scenario;
    char directory[128]; /* cases/NNN-<case> */
    uint64_t started_mono_ms;
};

static int check_request(const struct executor *executor, const struct hf_request *request, struct action *action,
                         struct hf_error *err)
{
    if (strcmp(request->run_id, executor->settings.run_id) != 0)
        return hf_error_set(err, "run-mismatch", 0, "run_id", "run_id is not that of this session");
    if (request->sequence <= executor->last_sequence)
        return hf_error_set(err, "sequence-invalid", 0, "sequence", "sequence %d was expected to be above %d",
                            request->sequence, executor->last_sequence);
    action->test_case = hf_campaign_find(&executor->campaign, request->case_id);
    if (!action->test_case)
        return hf_error_set(err, "case-unknown", 0, "case_id", "case_id %s is not in the catalog of campaign %s",
                            request->case_id, executor->campaign.name);
    action->scenario = hf_profile_find_scenario(&executor->profile, action->test_case->scenario);
    if (!action->scenario)
        return hf_error_set(err, "case-unknown", 0, "case_id", "scenario %s is not in profile %s",
                            action->test_case->scenario, executor->profile.name);
    return 0;
}

static int create_case_directory(struct action *action, struct hf_error *err)
{
    int dirfd = action->executor->run_dirfd;
    snprintf(action->directory, sizeof action->directory, "cases/%03d-%s", action->request->sequence,
             action->test_case->id);
    if ((mkdirat(dirfd, "cases", 0700) != 0 && errno != EEXIST) || mkdirat(dirfd, action->directory, 0700) != 0)
        return hf_error_set(err, "storage-failed", errno, "", "cannot create %s in the run directory: %s",
                            action->directory, strerror(errno));
    return 0;
}

/* Time for the next repetition: its own bound, and never beyond the request's. 0 when none is left. */
static uint64_t repetition_timeout_ms(const struct action *action)
{
    uint64_t own_ms = (uint64_t)action->executor->settings.phase_timeout_seconds * 1000 *
                      (uint64_t)action->test_case->timeout_multiplier;
    uint64_t whole_ms = (uint64_t)action->request->timeout_seconds * 1000;
    uint64_t used_ms = hf_clock_mono_ms() - action->started_mono_ms;
    uint64_t left_ms = used_ms < whole_ms ? whole_ms - used_ms : 0;
    return own_ms < left_ms ? own_ms : left_ms;
}

/* The only way of guest bytes off the target: base64 of what dispatch.c kept, at most HF_PROTOCOL_MAX_OUTPUT (I7). */
static void fill_streams(const struct dispatch_result *result, struct hf_execute_response *response)
{
    const struct hf_child_output *output = &result->output;
    response->stdout_b64 = hf_base64_encode(output->stdout_bytes, output->stdout_length);
    response->stderr_b64 = hf_base64_encode(output->stderr_bytes, output->stderr_length);
    response->stdout_truncated = output->stdout_total > output->stdout_length;
    response->stderr_truncated = output->stderr_total > output->stderr_length;
}

/* The response speaks of the repetition that failed, or of the last one. */
static void fill_result(const struct dispatch_result *result, struct hf_execute_response *response)
{
    free(response->stdout_b64);
    free(response->stderr_b64);
    free(response->error);
    fill_streams(result, response);
    response->category = verdict_category(&result->facts);
    response->has_returncode = result->has_returncode;
    response->returncode = result->returncode;
    response->timed_out = result->facts.timed_out;
    response->teardown_complete = result->facts.teardown_complete;
    response->error = result->error[0] ? strdup(result->error) : NULL;
}

static void fill_out_of_time(const struct action *action, int repetition, struct hf_execute_response *response)
{
    struct dispatch_result *result = calloc(1, sizeof *result);
    if (!result)
        abort();
    result->facts = (struct verdict_facts){.started = true, .timed_out = true, .teardown_complete = true};
    snprintf(result->error, sizeof result->error,
             "repetition %d of %d was not started: the %d s of the request were used up", repetition,
             action->test_case->repetitions, action->request->timeout_seconds);
    fill_result(result, response);
    free(result);
}

static int run_repetition(const struct action *action, int repetition, uint64_t timeout_ms,
                          struct hf_execute_response *response, struct hf_error *err)
{
    char directory[160];
    const char *reports[HF_PROFILE_MAX_REPORTS];
    snprintf(directory, sizeof directory, "%s/rep-%d", action->directory, repetition);
    for (size_t i = 0; i < action->scenario->report_count; i++)
        reports[i] = action->scenario->reports[i];
    const struct dispatch_spec spec = {.command = &action->executor->profile.command,
                                       .extra = action->scenario->extra.count > 0 ? &action->scenario->extra : NULL,
                                       .scenario = action->scenario->name,
                                       .directory = directory,
                                       .timeout_ms = timeout_ms,
                                       .reports = reports,
                                       .report_count = action->scenario->report_count};
    struct dispatch_result *result = calloc(1, sizeof *result);
    if (!result)
        abort();
    int status = dispatch_run(action->executor, &spec, result, err);
    if (status == 0)
        fill_result(result, response);
    dispatch_result_clear(result);
    free(result);
    return status;
}

int executor_execute(struct executor *executor, const struct hf_request *request, struct hf_response *whole,
                     struct hf_error *err)
{
    struct action action = {.executor = executor, .request = request, .started_mono_ms = hf_clock_mono_ms()};
    struct hf_execute_response *response = &whole->execute;
    if (check_request(executor, request, &action, err) != 0 || create_case_directory(&action, err) != 0)
        return -1;
    executor->last_sequence = request->sequence;
    response->sequence = request->sequence;
    snprintf(response->case_id, sizeof response->case_id, "%s", request->case_id);
    if (executor_path_join(response->artifact_path, executor->run_dir, action.directory, err) != 0)
        return -1;
    response->category = HF_CATEGORY_PASSED;
    for (int repetition = 1; repetition <= action.test_case->repetitions && response->category == HF_CATEGORY_PASSED;
         repetition++) {
        uint64_t timeout_ms = repetition_timeout_ms(&action);
        if (timeout_ms == 0)
            fill_out_of_time(&action, repetition, response);
        else if (run_repetition(&action, repetition, timeout_ms, response, err) != 0)
            return -1;
    }
    response->duration_ms = (int64_t)(hf_clock_mono_ms() - action.started_mono_ms);
    response->oracles.host_canary_intact = executor->oracles.state.host_canary_intact;
    response->oracles.network_canary_connections = (int64_t)executor->oracles.state.network_canary_connections;
    return 0;
}
