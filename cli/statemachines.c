/* `holdfast statemachines`: prints the tables that the programs run on, for people and for diagrams. */
#include "cli/command.h"
#include "common/options/options.h"
#include "statemachines/print.h"

#include <stdbool.h>
#include <stdio.h>

static void emit_stdout(void *context, const char *bytes, size_t length)
{
    fwrite(bytes, 1, length, context);
}

int hf_command_statemachines(int argc, char **argv)
{
    bool dot = false, json = false;
    const struct hf_option options[] = {
        {.name = "dot", .kind = HF_OPTION_FLAG, .target = &dot, .help = "Graphviz, one digraph per machine"},
        {.name = "json", .kind = HF_OPTION_FLAG, .target = &json, .help = "one JSON document (default)"},
    };
    struct hf_error err = {0};
    struct hf_option_result result;
    int status = hf_options_parse(options, sizeof options / sizeof options[0], argc, argv, &result, &err);
    if (status == 0 && result.help) {
        printf("usage: holdfast statemachines [--dot | --json]\n\nPrints every state machine as its table.\n\n");
        hf_options_print(options, sizeof options / sizeof options[0], stdout);
        return HF_EXIT_PASSED;
    }
    if (status == 0 && ((dot && json) || result.first_operand < argc))
        status = hf_error_set(&err, "usage", 0, "", "give either --dot or --json and nothing else");
    if (status < 0)
        return hf_command_fail("statemachines", &err);
    if (dot)
        hf_sm_print_dot(emit_stdout, stdout);
    else
        hf_sm_print_json(emit_stdout, stdout);
    return HF_EXIT_PASSED;
}
