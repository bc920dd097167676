/* Progress lines; see progress.h. */
#include "cli/progress.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

void hf_progress_printer_init(struct hf_progress_printer *printer, FILE *out, bool quiet)
{
    *printer = (struct hf_progress_printer){.out = out, .quiet = quiet, .terminal = isatty(fileno(out)) == 1};
}

static void close_line(struct hf_progress_printer *printer)
{
    if (printer->line_open)
        fputs("\r\033[K", printer->out);
    printer->line_open = false;
}

/* "  12.3s  735s and 4 actions left" */
static void print_budget(struct hf_progress_printer *printer, const struct hf_progress *progress)
{
    fprintf(printer->out, "  elapsed %.1f s, left %" PRId64 " s and %d action%s", (double)progress->elapsed_ms / 1000.0,
            progress->budget_left_ms / 1000, progress->budget_left_actions,
            progress->budget_left_actions == 1 ? "" : "s");
}

static void print_state(struct hf_progress_printer *printer, const struct hf_progress *progress)
{
    static const char *const shown[] = {"preflight", "initializing", "finalizing", "quarantining", "minimizing", NULL};
    const char *state = progress->view->state;
    if (strcmp(printer->state, state) == 0)
        return;
    snprintf(printer->state, sizeof printer->state, "%s", state);
    for (const char *const *name = shown; *name; name++) {
        if (strcmp(*name, state) != 0)
            continue;
        close_line(printer);
        fprintf(printer->out, "    %-32s", state);
        print_budget(printer, progress);
        fputc('\n', printer->out);
    }
}

static void print_finish(struct hf_progress_printer *printer, const struct hf_progress *progress)
{
    const struct hf_campaign_view *view = progress->view;
    fprintf(printer->out, "%s: %s, %d action%s in %.1f s, run %s\n", view->status, view->category, view->actions,
            view->actions == 1 ? "" : "s", (double)progress->elapsed_ms / 1000.0, view->run_id);
    if (view->failed_case[0])
        fprintf(printer->out, "failed case: %s\n", view->failed_case);
    if (progress->error && progress->error->message[0])
        fprintf(printer->out, "reason: %s\n", progress->error->message);
}

void hf_progress_print(struct hf_progress_printer *printer, const struct hf_progress *progress)
{
    if (printer->quiet)
        return;
    switch (progress->kind) {
    case HF_PROGRESS_STATE:
        print_state(printer, progress);
        break;
    case HF_PROGRESS_ACTION:
        if (!printer->terminal)
            break; /* a log gets one line per action, when its outcome is known */
        close_line(printer);
        fprintf(printer->out, "%3d %-32s running", progress->sequence, progress->case_id);
        print_budget(printer, progress);
        printer->line_open = true;
        break;
    case HF_PROGRESS_OBSERVATION:
        close_line(printer);
        fprintf(printer->out, "%3d %-32s %s in %.1f s", progress->sequence, progress->case_id, progress->category,
                (double)progress->duration_ms / 1000.0);
        print_budget(printer, progress);
        fputc('\n', printer->out);
        break;
    case HF_PROGRESS_FINISHED:
        close_line(printer);
        print_finish(printer, progress);
        break;
    }
    fflush(printer->out);
}
