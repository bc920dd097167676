/*
 * Preparation: everything between a checked request and a campaign that counts as started. Runs on the thread pool,
 * once per run; touches only its own run, the configuration (constant) and the identity cache (locked).
 *
 * What is wrong with the request (no such campaign, wrapper that is no executable, ...) refuses the start and leaves
 * nothing behind. A prerequisite that is missing is remembered and fails preflight, in the open, with a run directory
 * (I10).
 */
#include "common/cleanup.h"
#include "common/durable.h"
#include "server/core/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

/* A file that is not there means a name that the client got wrong; a file that cannot be read is the host's fault. */
static int name_unknown(const char *field, const char *name, struct hf_error *err)
{
    if (!err->code || strcmp(err->code, "storage-missing") != 0)
        return hf_error_prefix(err, "%s", field);
    return hf_error_set(err, "storage-missing", 0, field, "there is no %s of the name %s in the catalog", field, name);
}

static int load_data(struct hf_run *run, struct hf_error *err)
{
    const struct hf_controller_config *config = &run->controller->config;
    const struct hf_campaign_request *request = &run->record.request;
    if (hf_profile_load(config->profiles_dir, request->profile, &run->profile, err) != 0)
        return name_unknown("profile", request->profile, err);
    if (!hf_profile_has_backend(&run->profile, request->backend))
        return hf_error_set(err, "request-invalid", 0, "backend", "backend %s is not one of the profile %s",
                            request->backend, request->profile);
    struct hf_placeholders values = {.source_root = config->source_root};
    cleanup_free char *directory = hf_placeholder_expand(run->profile.campaigns_dir, &values, err);
    if (!directory)
        return -1;
    if (hf_campaign_load(directory, request->campaign, &run->profile, &run->campaign, err) != 0)
        return name_unknown("campaign", request->campaign, err);
    memcpy(run->record.catalog_sha256, run->campaign.catalog_sha256, sizeof run->record.catalog_sha256);
    return 0;
}

static int resolve_programs(struct hf_run *run, struct hf_error *err)
{
    const struct hf_campaign_request *request = &run->record.request;
    if (hf_executor_command_resolve(&run->controller->config, request, &run->executor, err) != 0)
        return -1;
    run->record.local = run->executor.local;
    snprintf(run->record.target, sizeof run->record.target, "%s", run->executor.target);
    if (request->strategist != HF_STRATEGIST_COMMAND)
        return 0;
    return hf_executable_resolve(request->strategist_command, "strategist command", &run->strategist_program, err);
}

static void read_identity(struct hf_run *run)
{
    const char *source_root = run->controller->config.source_root;
    run->record.identity_known = hf_identity_read(&run->controller->identities, &run->profile, source_root,
                                                  &run->record.identity, &run->identity_error) == 0;
}

static int fill_directory(struct hf_run *run, struct hf_error *err)
{
    if (hf_run_reserve_make(run->dirfd, err) != 0)
        return -1;
    if (run->strategist_program) {
        run->copilot_dirfd = hf_dir_open(run->dirfd, "copilot", true, err);
        if (run->copilot_dirfd < 0)
            return -1;
    }
    size_t length;
    cleanup_free char *metadata = hf_run_metadata_build(&run->record, NULL, &length);
    return hf_document_write(run->dirfd, "metadata.json", metadata, length, err);
}

/* Makes the directory and locks it, which tells recovery of another controller process that this run is alive. The
 * shared lock on the parent closes the moment between the two: recovery looks for the dead under an exclusive one. */
static int make_locked(struct hf_run *run, int runs_fd, struct hf_error *err)
{
    if (flock(runs_fd, LOCK_SH) != 0)
        return hf_error_set(err, "storage-failed", errno, NULL, "cannot lock the directory of the runs");
    run->dirfd = hf_dir_open(runs_fd, run->record.run_id, true, err);
    int locked = run->dirfd < 0 ? -1 : flock(run->dirfd, LOCK_EX | LOCK_NB);
    if (run->dirfd >= 0 && locked != 0)
        hf_error_set(err, "storage-failed", errno, NULL, "cannot lock the new run directory");
    flock(runs_fd, LOCK_UN);
    return locked;
}

static int make_directory(struct hf_run *run, struct hf_error *err)
{
    cleanup_close int runs_fd = hf_dir_open(AT_FDCWD, run->controller->config.runs_dir, false, err);
    if (runs_fd < 0)
        return -1;
    if (make_locked(run, runs_fd, err) == 0 && fill_directory(run, err) == 0)
        return 0;
    if (run->dirfd < 0)
        return -1;
    unlinkat(run->dirfd, "copilot", AT_REMOVEDIR);
    hf_run_reserve_release(run->dirfd);
    unlinkat(run->dirfd, "metadata.json", 0);
    unlinkat(runs_fd, run->record.run_id, AT_REMOVEDIR);
    return -1;
}

int hf_run_prepare(struct hf_run *run, struct hf_error *err)
{
    if (load_data(run, err) != 0 || resolve_programs(run, err) != 0)
        return -1;
    read_identity(run);
    return make_directory(run, err);
}
