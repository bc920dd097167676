/* Implementation of executor_command.h. */
#include "server/core/executor_command.h"

#include "common/catalog/profile.h"
#include "common/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static char *join(const char *first, const char *second)
{
    char *text;
    if (asprintf(&text, "%s%s", first, second) < 0)
        abort();
    return text;
}

static int refuse(const char *field, const char *path, int saved_errno, const char *why, struct hf_error *err)
{
    char quoted[HF_ERROR_QUOTE_SIZE];
    return hf_error_set(err, "executor-command-invalid", saved_errno, field,
                        "%s must name one executable file and takes no arguments: \"%s\" %s", field,
                        hf_error_quote(path, strlen(path), quoted), why);
}

int hf_executable_resolve(const char *path, const char *field, char **absolute, struct hf_error *err)
{
    struct stat status;
    cleanup_free char *resolved = realpath(path, NULL);
    if (!resolved && strchr(path, ' '))
        return refuse(field, path, errno, "contains spaces and is not itself a file", err);
    if (!resolved)
        return refuse(field, path, errno, errno == ENOENT ? "does not exist" : strerror(errno), err);
    if (stat(resolved, &status) != 0)
        return refuse(field, path, errno, strerror(errno), err);
    if (S_ISDIR(status.st_mode))
        return refuse(field, path, EISDIR, "is a directory", err);
    if (!S_ISREG(status.st_mode))
        return refuse(field, path, EINVAL, "is not a regular file", err);
    if (access(resolved, X_OK) != 0)
        return refuse(field, path, errno, "is not executable", err);
    *absolute = STEAL_PTR(resolved);
    return 0;
}

static char **argv_of(const char *program, const char *const *options)
{
    size_t count = 0;
    while (options && options[count])
        count++;
    char **argv = calloc(count + 2, sizeof *argv);
    if (!argv)
        abort();
    argv[0] = strdup(program);
    for (size_t i = 0; i < count; i++)
        argv[i + 1] = strdup(options[i]);
    return argv;
}

static int resolve_local(const struct hf_controller_config *config, const struct hf_campaign_request *request,
                         struct hf_executor_command *command, struct hf_error *err)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    gethostname(host, sizeof host - 1);
    cleanup_free char *wanted = join(config->bin_dir, "/holdfast-executor");
    cleanup_free char *program = NULL;
    if (hf_executable_resolve(wanted, "local executor", &program, err) != 0)
        return -1;
    const char *options[] = {"--profile",
                             request->profile,
                             "--source-root",
                             config->source_root,
                             "--guest-dir",
                             config->guest_dir,
                             config->profiles_dir ? "--profiles-dir" : NULL,
                             config->profiles_dir,
                             NULL};
    command->local = true;
    command->argv = argv_of(program, options);
    command->target = join("local:", host);
    return 0;
}

static int resolve_wrapper(const char *path, const char *field, struct hf_executor_command *command,
                           struct hf_error *err)
{
    cleanup_free char *program = NULL;
    if (hf_executable_resolve(path, field, &program, err) != 0)
        return -1;
    command->argv = argv_of(program, NULL);
    command->target = join("external:", program);
    return 0;
}

int hf_executor_command_resolve(const struct hf_controller_config *config, const struct hf_campaign_request *request,
                                struct hf_executor_command *command, struct hf_error *err)
{
    *command = (struct hf_executor_command){0};
    if (request->executor_command[0])
        return resolve_wrapper(request->executor_command, "executor command", command, err);
    for (size_t i = 0; i < config->executor_count; i++) {
        const struct hf_executor_config *executor = &config->executors[i];
        if (strcmp(executor->name, request->executor) != 0)
            continue;
        return executor->command ? resolve_wrapper(executor->command, "executor command", command, err)
                                 : resolve_local(config, request, command, err);
    }
    if (strcmp(request->executor, "local") == 0)
        return resolve_local(config, request, command, err);
    return hf_error_set(err, "executor-unknown", 0, "executor",
                        "executor must be \"local\" or a name that the administrator configured; %s is neither",
                        request->executor);
}

void hf_executor_command_clear(struct hf_executor_command *command)
{
    hf_argv_free(STEAL_PTR(command->argv));
    free(STEAL_PTR(command->target));
}
