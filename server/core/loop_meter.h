/*
 * Measures the loop's thread, in two histograms:
 *
 * - callbacks: how long each entry of server/core/ from the loop took, by HF_LOOP_CALLBACK() at the top of the
 * function. The promise that no callback takes 10 ms is about these.
 * - iterations: the time from one uv_prepare to the next, less the time that libuv says it waited for events
 *   (UV_METRICS_IDLE_TIME; I/O callbacks run inside uv's poll, so uv_check alone would miss them). That is all
 * callbacks of an iteration together, and so the delay that any other event suffered.
 *
 * Both are wall time: a processor that is taken away by other processes counts. Costs a few clock reads and two fixed
 * tables. Owned by the controller, which reads it for holdfastd's log and metrics; reached through loop->data.
 */
#ifndef HF_SERVER_CORE_LOOP_METER_H
#define HF_SERVER_CORE_LOOP_METER_H

#include <stdint.h>
#include <uv.h>

/* Buckets: 8 per power of two of nanoseconds, so a quantile is at most 1/8 too high. */
#define HF_LOOP_METER_BUCKETS (64 * 8)

struct hf_histogram {
    uint64_t count;
    uint64_t max_ns;
    uint32_t buckets[HF_LOOP_METER_BUCKETS];
};

struct hf_loop_meter {
    uv_prepare_t prepare;
    uint64_t iteration_start_ns; /* 0 before the first iteration */
    uint64_t idle_ns;            /* uv_metrics_idle_time() at that moment */
    struct hf_histogram iterations, callbacks;
};

struct hf_histogram_figures {
    uint64_t count;
    uint64_t p50_ns, p99_ns, max_ns;
};

/* Before the loop's first iteration. Sets loop->data. */
struct hf_loop_meter *hf_loop_meter_new(uv_loop_t *loop);
/* The memory goes when the loop has closed the handle, one iteration later. NULL is nothing. */
void hf_loop_meter_free(struct hf_loop_meter *meter);

void hf_histogram_add(struct hf_histogram *histogram, uint64_t span_ns);
struct hf_histogram_figures hf_histogram_read(const struct hf_histogram *histogram);

/* From here to the end of the scope is one callback of the loop. Nested ones count once, as the outer one. */
struct hf_loop_span {
    struct hf_loop_meter *meter;
    uint64_t began_ns;
};
struct hf_loop_span hf_loop_span_begin(const uv_loop_t *loop);
void hf_loop_span_end(const struct hf_loop_span *span);
#define HF_LOOP_CALLBACK(loop)                                                                                         \
    __attribute__((cleanup(hf_loop_span_end), unused)) struct hf_loop_span hf_loop_callback_span =                     \
        hf_loop_span_begin(loop)

#endif
