/*
 * How the executor of a run is started: the local program beside the controller, or an administrator's wrapper. A
 * wrapper is one executable that takes no arguments; anything else is refused before anything starts.
 *
 * Called while a run is prepared, on the thread pool. Looks at the file system, starts nothing.
 */
#ifndef HF_SERVER_CORE_EXECUTOR_COMMAND_H
#define HF_SERVER_CORE_EXECUTOR_COMMAND_H

#include "server/controller.h"

struct hf_executor_command {
    bool local;   /* the built-in executor on this host */
    char **argv;  /* owned (hf_argv_free()) */
    char *target; /* owned; "local:<host>" or "external:<absolute path of the wrapper>": first part of a target's
                     identity */
};

/* Checks that path is an executable regular file; relative paths are taken from the working directory. *absolute is
 * owned. Code "executor-command-invalid". `field` names the option in messages. */
int hf_executable_resolve(const char *path, const char *field, char **absolute, struct hf_error *err);

/* Finds the request's executor among the configured ones, or takes its wrapper. Codes "executor-unknown",
 * "executor-command-invalid". */
int hf_executor_command_resolve(const struct hf_controller_config *config, const struct hf_campaign_request *request,
                                struct hf_executor_command *command, struct hf_error *err);
void hf_executor_command_clear(struct hf_executor_command *command);

#endif
