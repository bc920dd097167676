/*
 * `holdfast`: picks the subcommand. A table of names is all there is; the work is in the subcommands' own files.
 */
#include "cli/command.h"
#include "common/program.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct command commands[] = {
    {"run", hf_command_run, "run one campaign in this process and write its run directory"},
    {"catalog", hf_command_catalog, "list the campaigns and cases, and which of them a profile runs"},
    {"statemachines", hf_command_statemachines, "print the state machines as JSON or Graphviz dot"},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

int hf_command_fail(const char *command, const struct hf_error *err)
{
    fprintf(stderr, "holdfast %s: %s\n", command, err->message);
    bool usage = err->code && (strcmp(err->code, "usage") == 0 || strcmp(err->code, "request-invalid") == 0);
    if (!usage)
        return HF_EXIT_INFRASTRUCTURE;
    fprintf(stderr, "try 'holdfast %s --help'\n", command);
    return HF_EXIT_USAGE;
}

static void print_help(FILE *out)
{
    fprintf(out, "holdfast " HF_VERSION ": does the isolation of your microVMs still hold?\n\n"
                 "usage: holdfast COMMAND [OPTIONS]\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-15s%s\n", commands[i].name, commands[i].help);
    fprintf(out, "\n'holdfast COMMAND --help' explains a command. Exit status: 0 passed, 1 found something, 2 usage,\n"
                 "3 preflight or infrastructure, 130 interrupted.\n");
}

/* A result that could not be printed was not given: success that nobody was told of is none. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr,
            "holdfast: standard output could not be written and is incomplete; the exit status would have been %d\n",
            status);
    return status == HF_EXIT_PASSED ? HF_EXIT_INFRASTRUCTURE : status;
}

int main(int argc, char **argv)
{
    hf_program_begin();
    if (argc < 2) {
        print_help(stderr);
        return HF_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0) {
        print_help(stdout);
        return finish(HF_EXIT_PASSED);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("holdfast " HF_VERSION "\n");
        return finish(HF_EXIT_PASSED);
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return finish(commands[i].run(argc - 1, argv + 1));
    char quoted[HF_ERROR_QUOTE_SIZE];
    fprintf(stderr, "holdfast: unknown command '%s'; 'holdfast --help' lists the commands\n",
            hf_error_quote(argv[1], strlen(argv[1]), quoted));
    return HF_EXIT_USAGE;
}
