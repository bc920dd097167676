/* The command line of `holdfast run`, as one table. */
#ifndef HF_CLI_RUN_OPTIONS_H
#define HF_CLI_RUN_OPTIONS_H

#include "common/error.h"
#include "common/options/paths.h"
#include "server/controller.h"

#include <stdbool.h>

struct hf_run_options {
    struct hf_campaign_request request;
    char output_dir[HF_PATH_SIZE]; /* absolute */
    char source_root[HF_PATH_SIZE];
    char guest_dir[HF_PATH_SIZE];
    char profiles_dir[HF_PATH_SIZE];
    char bin_dir[HF_PATH_SIZE];
    bool json;
    bool help; /* --help was given: nothing else is filled in */
};

/* Parses and checks everything that can be checked without starting anything. Codes "usage", "request-invalid",
 * "paths-unknown". */
int hf_run_options_parse(int argc, char **argv, struct hf_run_options *options, struct hf_error *err);
void hf_run_options_print_help(void);

#endif
