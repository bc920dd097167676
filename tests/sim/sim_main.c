/* The simulator's command line; see sim.h. */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What survives is masked by a second line of defence (a backstop, a conclusion that is drawn again later), or is a row
 * that so few seeds never take. */
enum { MUTANTS_CAUGHT_PERCENT = 30 };

/* From this many seeds on, a batch fails that leaves more of the rows untaken: the world has become too kind. */
enum { COVERAGE_SEEDS = 20000, UNTAKEN_PERCENT = 25 };

/* What a batch of seeds has seen, so that a simulator that plays only the easy stories is noticed. */
struct tally {
    uint64_t seeds, failed, crashes, rejected, steps;
    uint64_t categories[HF_CAMPAIGN_CATEGORY_COUNT];
};

static void count_run(struct tally *tally, const struct sim *sim)
{
    tally->seeds++;
    tally->crashes += sim->truth.crashes;
    tally->rejected += sim->rejected;
    tally->steps += sim->steps;
    tally->categories[sim->disk.summary.category]++;
}

static void print_tally(const struct tally *tally)
{
    printf("%llu seeds, %llu failed, %llu crashes, %llu occurrences, %llu rejected events\n",
           (unsigned long long)tally->seeds, (unsigned long long)tally->failed, (unsigned long long)tally->crashes,
           (unsigned long long)tally->steps, (unsigned long long)tally->rejected);
    for (int i = 0; i < HF_CAMPAIGN_CATEGORY_COUNT; i++) {
        if (tally->categories[i] > 0)
            printf("%10llu %s\n", (unsigned long long)tally->categories[i],
                   hf_campaign_category_name((enum hf_campaign_category)i));
    }
}

static void print_untaken(const struct hf_sm_definition *machine, const uint64_t *strokes, unsigned *untaken)
{
    for (size_t i = 0; i < machine->row_count; i++) {
        const struct hf_sm_row *row = &machine->rows[i];
        if (strokes[i] > 0)
            continue;
        (*untaken)++;
        printf("never taken: %s, %s on %s [%s]\n", machine->name, machine->state_names[row->state],
               machine->event_names[row->event], machine->guard_names[row->guard]);
    }
}

static int run_seeds(uint64_t first, uint64_t count)
{
    static struct sim sim;
    static struct sim_coverage coverage;
    struct tally tally = {0};
    unsigned untaken = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        if (!sim_run(&sim, &sim_real_tables, seed, false, &coverage)) {
            printf("sim --seed %llu --trace    # %s\n", (unsigned long long)seed, sim.failure);
            tally.failed++;
        }
        count_run(&tally, &sim);
    }
    print_tally(&tally);
    print_untaken(&hf_campaign_machine, coverage.campaign, &untaken);
    print_untaken(&hf_executor_session_machine, coverage.session, &untaken);
    print_untaken(&hf_strategist_call_machine, coverage.strategist, &untaken);
    size_t rows =
        hf_campaign_machine.row_count + hf_executor_session_machine.row_count + hf_strategist_call_machine.row_count;
    printf("%u of %zu rows never taken\n", untaken, rows);
    bool kind = count >= COVERAGE_SEEDS && untaken * 100 > rows * UNTAKEN_PERCENT;
    return tally.failed == 0 && !kind ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: sim --seed N [--trace]\n       sim --seeds COUNT [--first N]\n       sim --mutants COUNT\n");
    return 2;
}

static bool read_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

int main(int argc, char **argv)
{
    static struct sim sim;
    uint64_t seed = 0, count = 0, first = 0;
    bool one = false, many = false, mutants = false, trace = false;
    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (strcmp(argv[i], "--trace") == 0)
            trace = true;
        else if (strcmp(argv[i], "--seed") == 0 && value && read_number(argv[i + 1], &seed))
            one = ++i;
        else if (strcmp(argv[i], "--seeds") == 0 && value && read_number(argv[i + 1], &count))
            many = ++i;
        else if (strcmp(argv[i], "--mutants") == 0 && value && read_number(argv[i + 1], &count))
            mutants = ++i;
        else if (strcmp(argv[i], "--first") == 0 && value && read_number(argv[i + 1], &first))
            ++i;
        else
            return usage();
    }
    if (one + many + mutants != 1)
        return usage();
    if (mutants)
        return sim_mutants(count) >= MUTANTS_CAUGHT_PERCENT ? EXIT_SUCCESS : EXIT_FAILURE;
    if (many)
        return run_seeds(first, count);
    bool good = sim_run(&sim, &sim_real_tables, seed, trace, NULL);
    printf("seed %llu: %s\n", (unsigned long long)seed, good ? "every check held" : sim.failure);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
