/*
 * Progress of a campaign on a terminal (one line per action, rewritten in place) or in a log (plain lines). Prints only
 * trusted words: case ids, categories, states, numbers (I7).
 */
#ifndef HF_CLI_PROGRESS_H
#define HF_CLI_PROGRESS_H

#include "server/controller.h"

#include <stdbool.h>
#include <stdio.h>

struct hf_progress_printer {
    FILE *out;
    bool terminal;  /* rewrite the running action's line */
    bool quiet;     /* print nothing at all */
    bool line_open; /* a rewritten line is waiting for its newline */
    char state[32]; /* last state shown */
};

void hf_progress_printer_init(struct hf_progress_printer *printer, FILE *out, bool quiet);
void hf_progress_print(struct hf_progress_printer *printer, const struct hf_progress *progress);

#endif
