/* Identity of source tree and VMM; see source.h. */
#include "executor/source.h"

#include "common/catalog/profile.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/process/child.h"
#include "executor/environment.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERY_TIMEOUT_MS = 60000, QUERY_OUTPUT_LIMIT = 65536, QUERY_ERROR_LIMIT = 512 };

struct query {
    const char *const *argv;
    const char *ceiling;
    int interrupt_fd;
    const char *code; /* of the error when it fails */
    int highest_exit; /* exit codes 0..this are answers */
};

/* Runs one question. On success *output is to be cleared; on failure there is nothing to clear. */
static int ask(const struct query *query, struct hf_child_output *output, struct hf_error *err)
{
    char **envp = environment_new_query(query->ceiling);
    struct hf_child_spec spec = {.argv = query->argv,
                                 .envp = (const char *const *)envp,
                                 .cwd = "/",
                                 .stdin_fd = HF_CHILD_NULL,
                                 .stdout_fd = HF_CHILD_PIPE,
                                 .stderr_fd = HF_CHILD_PIPE};
    struct hf_child_run_options options = {.stdout_limit = QUERY_OUTPUT_LIMIT,
                                           .stderr_limit = QUERY_ERROR_LIMIT,
                                           .stdout_file_fd = -1,
                                           .stderr_file_fd = -1,
                                           .timeout_ms = QUERY_TIMEOUT_MS,
                                           .interrupt_fd = query->interrupt_fd};
    int status = hf_child_run(&spec, &options, output, err);
    hf_argv_free(envp);
    if (status != 0) {
        hf_child_output_clear(output);
        return -1;
    }
    char said[HF_ERROR_QUOTE_SIZE];
    hf_error_quote(output->stderr_bytes, output->stderr_length, said);
    const struct hf_child_report *report = &output->report;
    if (output->interrupted)
        status = hf_error_set(err, "interrupted", 0, "", "interrupted while %s ran", query->argv[0]);
    else if (!report->started)
        status =
            hf_error_set(err, query->code, report->start_errno, "", "%s could not be started: %s; is it installed?",
                         query->argv[0], strerror(report->start_errno));
    else if (output->timed_out || !report->exited || report->exit_code > query->highest_exit)
        status = hf_error_set(err, query->code, 0, "", "%s %s (exit %d, signal %d) and said: %s", query->argv[0],
                              output->timed_out ? "did not answer in time" : "failed", report->exit_code,
                              report->term_signal, said);
    if (status != 0)
        hf_child_output_clear(output);
    return status;
}

cJSON *source_status_lines(const char *text, size_t length, bool truncated)
{
    cJSON *lines = hf_json_new_array();
    const char *end = text + length;
    size_t count = 0, left_out = 0;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line_length = (size_t)((newline ? newline : end) - text);
        if (line_length > 0 && count++ < SOURCE_MAX_STATUS_LINES) {
            char line[SOURCE_MAX_STATUS_LENGTH + 1];
            size_t kept = line_length < SOURCE_MAX_STATUS_LENGTH ? line_length : SOURCE_MAX_STATUS_LENGTH;
            for (size_t i = 0; i < kept; i++)
                line[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : '?';
            line[kept] = '\0';
            hf_json_append(lines, hf_json_new_string(line));
        } else if (line_length > 0) {
            left_out++;
        }
        text = newline ? newline + 1 : end;
    }
    if (left_out > 0 || truncated) {
        char line[96];
        snprintf(line, sizeof line, "%s%zu more lines left out", truncated ? "at least " : "", left_out);
        hf_json_append(lines, hf_json_new_string(line));
    }
    return lines;
}

/* A full hexadecimal object name on a line of its own. */
static int read_commit(const struct hf_child_output *output, const char *root, struct source_identity *identity,
                       struct hf_error *err)
{
    size_t length = strspn(output->stdout_bytes, "0123456789abcdef");
    if ((length != 40 && length != 64) || strcmp(output->stdout_bytes + length, "\n") != 0)
        return hf_error_set(err, "source-unreadable", 0, "", "git rev-parse in %.256s did not print one commit", root);
    memcpy(identity->commit, output->stdout_bytes, length);
    identity->commit[length] = '\0';
    return 0;
}

int source_identify_git(const char *root, int interrupt_fd, struct source_identity *identity, struct hf_error *err)
{
    char ceiling[PATH_MAX], safe[PATH_MAX + 32];
    snprintf(ceiling, sizeof ceiling, "%s", root);
    char *slash = strrchr(ceiling, '/');
    if (slash)
        slash[slash == ceiling ? 1 : 0] = '\0';
    snprintf(safe, sizeof safe, "safe.directory=%s", root);
    const char *commit_argv[] = {
        "git", "-C", root, "-c", safe, "-c", "core.fsmonitor=false", "rev-parse", "--verify", "HEAD^{commit}", NULL};
    const char *status_argv[] = {"git",
                                 "-C",
                                 root,
                                 "-c",
                                 safe,
                                 "-c",
                                 "core.fsmonitor=false",
                                 "-c",
                                 "core.quotePath=true",
                                 "status",
                                 "--porcelain=v1",
                                 "--untracked-files=normal",
                                 "--no-renames",
                                 NULL};
    struct query query = {commit_argv, ceiling, interrupt_fd, "source-unreadable", 0};
    struct hf_child_output output;
    if (ask(&query, &output, err) != 0)
        return -1;
    int status = read_commit(&output, root, identity, err);
    hf_child_output_clear(&output);
    query.argv = status_argv;
    if (status != 0 || ask(&query, &output, err) != 0)
        return -1;
    identity->status_lines =
        source_status_lines(output.stdout_bytes, output.stdout_length, output.stdout_total > output.stdout_length);
    identity->dirty = cJSON_GetArraySize(identity->status_lines) > 0;
    hf_child_output_clear(&output);
    return 0;
}

/* dpkg --verify prints one line for each file that differs; files left out at installation ("missing", usual in small
 * images for documentation) run nothing and are no modification. */
static cJSON *modified_files(const struct hf_child_output *output)
{
    cJSON *all =
        source_status_lines(output->stdout_bytes, output->stdout_length, output->stdout_total > output->stdout_length);
    cJSON *modified = hf_json_new_array();
    for (cJSON *line = all->child, *next; line; line = next) {
        next = line->next;
        if (strncmp(line->valuestring, "missing   /usr/share/", 21) != 0)
            hf_json_append(modified, hf_json_new_string(line->valuestring));
    }
    cJSON_Delete(all);
    return modified;
}

int source_identify_package(const char *package, int interrupt_fd, struct source_identity *identity,
                            struct hf_error *err)
{
    const char *version_argv[] = {"dpkg-query", "-W", "-f=${db:Status-Status} ${Version}", package, NULL};
    const char *verify_argv[] = {"dpkg", "--verify", package, NULL};
    struct query query = {version_argv, NULL, interrupt_fd, "vmm-unknown", 0};
    struct hf_child_output output;
    if (ask(&query, &output, err) != 0)
        return -1;
    static const char INSTALLED[] = "installed ";
    const char *version = output.stdout_bytes + strlen(INSTALLED);
    int status = 0;
    if (strncmp(output.stdout_bytes, INSTALLED, strlen(INSTALLED)) != 0 || *version == '\0' ||
        strlen(version) >= sizeof identity->commit || strpbrk(version, " \n"))
        status = hf_error_set(err, "vmm-unknown", 0, "",
                              "package %s has to be installed, with a version of at most %zu characters", package,
                              sizeof identity->commit - 1);
    else
        snprintf(identity->commit, sizeof identity->commit, "%s", version);
    hf_child_output_clear(&output);
    query.argv = verify_argv;
    query.highest_exit = 1;
    if (status != 0 || ask(&query, &output, err) != 0)
        return -1;
    identity->status_lines = modified_files(&output);
    identity->dirty = cJSON_GetArraySize(identity->status_lines) > 0;
    hf_child_output_clear(&output);
    return 0;
}

void source_identity_clear(struct source_identity *identity)
{
    cJSON_Delete(identity->status_lines);
    memset(identity, 0, sizeof *identity);
}
