/*
 * Reading of responses: the search for violation evidence and the strict parse of lines of the greatest length, as the
 * controller does it on its loop, where no callback may take longer than 10 ms. The ratio is 10 ms divided by the
 * median of the slowest kind of line.
 */
#include "bench.h"
#include "common/protocol/protocol.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUDGET_NS 10000000.0
#define TARGET    1.0

static const struct hf_dialect dialect = {.source = "holdfast", .vmm = "qemu", .runtime = "libc"};

static char *filled(char byte, size_t length)
{
    char *text = malloc(length + 1);
    if (!text)
        abort();
    memset(text, byte, length);
    text[length] = '\0';
    return text;
}

static void fill_execute(struct hf_execute_response *out)
{
    out->sequence = 1;
    strcpy(out->case_id, "a");
    out->category = HF_CATEGORY_TEST_FAILURE;
    uint8_t *bytes = calloc(1, HF_PROTOCOL_MAX_OUTPUT);
    out->stdout_b64 = hf_base64_encode(bytes, HF_PROTOCOL_MAX_OUTPUT);
    out->stderr_b64 = hf_base64_encode(bytes, HF_PROTOCOL_MAX_OUTPUT);
    free(bytes);
    out->oracles.host_canary_intact = true;
    memset(out->artifact_path, 'p', HF_PROTOCOL_MAX_PATH - 1);
    out->error = filled('e', HF_PROTOCOL_MAX_ERROR);
}

/* The greatest execute response that is valid, padded with spaces to the greatest length of a line. */
static char *padded_execute(size_t *length)
{
    struct hf_response response = {.operation = HF_OP_EXECUTE};
    fill_execute(&response.execute);
    size_t valid_length;
    char *valid = hf_response_build(&response, &dialect, &valid_length);
    hf_response_clear(&response);
    char *line = filled(' ', HF_PROTOCOL_MAX_LINE);
    memcpy(line, valid, valid_length);
    free(valid);
    *length = HF_PROTOCOL_MAX_LINE;
    return line;
}

/* An execute response whose sample is far beyond its bound: refused, but only after it has been read. */
static char *oversized_execute(size_t *length)
{
    struct hf_response response = {.operation = HF_OP_EXECUTE};
    fill_execute(&response.execute);
    free(response.execute.stdout_b64);
    response.execute.stdout_b64 = filled('A', HF_PROTOCOL_MAX_LINE - 24 * 1024);
    char *line = hf_response_build(&response, &dialect, length);
    hf_response_clear(&response);
    return line;
}

/* Nothing but escaped quotation marks: the worst that the search can meet. */
static char *quotation_marks(size_t *length)
{
    char *line = filled('"', HF_PROTOCOL_MAX_LINE);
    for (size_t i = 1; i < HF_PROTOCOL_MAX_LINE; i += 2)
        line[i] = '\\';
    *length = HF_PROTOCOL_MAX_LINE;
    return line;
}

/* As many values as fit. */
static char *many_values(size_t *length)
{
    char *line = filled('1', HF_PROTOCOL_MAX_LINE);
    for (size_t i = 1; i < HF_PROTOCOL_MAX_LINE; i += 2)
        line[i] = ',';
    line[0] = '[';
    line[HF_PROTOCOL_MAX_LINE - 1] = ']';
    line[1] = '1';
    *length = HF_PROTOCOL_MAX_LINE;
    return line;
}

static const struct {
    const char *name;
    char *(*make)(size_t *length);
    bool valid;
} kinds[] = {
    {"execute_padded", padded_execute, true},
    {"execute_oversized_sample", oversized_execute, false},
    {"quotation_marks", quotation_marks, false},
    {"many_values", many_values, false},
};

static uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t read_line_ns(const char *line, size_t length, bool valid)
{
    const struct hf_request request = {.operation = HF_OP_EXECUTE, .sequence = 1, .case_id = "a"};
    struct hf_response response;
    struct hf_error err = {0};
    uint64_t start_ns = processor_ns();
    bool evidence = hf_response_has_violation_evidence(line, length);
    int result = hf_response_parse(line, length, &request, &dialect, &response, &err);
    hf_response_clear(&response);
    uint64_t elapsed_ns = processor_ns() - start_ns;
    if (evidence || (result == 0) != valid)
        bench_fail("a line was read wrongly", &err);
    return elapsed_ns;
}

int main(void)
{
    cJSON *report = hf_json_new_object();
    hf_json_add_string(report, "benchmark", "protocol");
    uint64_t slowest_ns = 1;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t length;
        char *line = kinds[i].make(&length);
        uint64_t rounds_ns[BENCH_ROUNDS];
        for (int round = 0; round < BENCH_ROUNDS; round++)
            rounds_ns[round] = read_line_ns(line, length, kinds[i].valid);
        uint64_t median_ns = bench_median(rounds_ns);
        cJSON *kind = hf_json_add(report, kinds[i].name, hf_json_new_object());
        hf_json_add_int(kind, "bytes", (int64_t)length);
        hf_json_add_int(kind, "median_ns", (int64_t)median_ns);
        bench_add_ratio(kind, "mib_per_second", (double)length / 1048576.0 / ((double)median_ns / 1e9));
        slowest_ns = median_ns > slowest_ns ? median_ns : slowest_ns;
        free(line);
    }
    return bench_report(report, BUDGET_NS / (double)slowest_ns, TARGET);
}
