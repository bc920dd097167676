/*
 * The subcommands of `holdfast`. Each gets argv starting at its own name and returns a process exit code (enum
 * hf_exit).
 */
#ifndef HF_CLI_COMMAND_H
#define HF_CLI_COMMAND_H

#include "common/error.h"

enum hf_exit {
    HF_EXIT_PASSED = 0,
    HF_EXIT_FOUND = 1,          /* the campaign found something */
    HF_EXIT_USAGE = 2,          /* the command line is wrong; nothing was started */
    HF_EXIT_INFRASTRUCTURE = 3, /* preflight or infrastructure failed */
    HF_EXIT_INTERRUPTED = 130,  /* SIGINT, SIGTERM or SIGHUP, after the executor was finalized */
};

int hf_command_run(int argc, char **argv);
int hf_command_catalog(int argc, char **argv);
int hf_command_statemachines(int argc, char **argv);

/* Prints "holdfast COMMAND: message" and, for usage errors, where help is. Returns HF_EXIT_USAGE for errors of the
 * codes "usage" and "request-invalid", else HF_EXIT_INFRASTRUCTURE. */
int hf_command_fail(const char *command, const struct hf_error *err);

#endif
