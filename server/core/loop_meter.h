/*
 * Measures how long the loop's thread is busy in each iteration: the time from one uv_prepare to the next, less the
 * time that libuv says it spent waiting for events (UV_METRICS_IDLE_TIME; I/O callbacks run inside uv's poll, so
 * uv_check alone would miss them). The span holds every callback of that iteration and is therefore an upper bound of
 * the longest one, and the delay that any other event suffered. Costs one clock read per iteration and one fixed table.
 *
 * Owned by the controller; read by holdfastd for its log and metrics.
 */
#ifndef HF_SERVER_CORE_LOOP_METER_H
#define HF_SERVER_CORE_LOOP_METER_H

#include <stdint.h>
#include <uv.h>

/* Buckets: 8 per power of two of nanoseconds, so a quantile is at most 1/8 too high. */
#define HF_LOOP_METER_BUCKETS (64 * 8)

struct hf_loop_meter {
    uv_prepare_t prepare;
    uint64_t iteration_start_ns; /* 0 before the first iteration */
    uint64_t idle_ns;            /* uv_metrics_idle_time() at that moment */
    uint64_t count;
    uint64_t max_ns;
    uint32_t buckets[HF_LOOP_METER_BUCKETS];
};

struct hf_loop_meter_figures {
    uint64_t iterations;
    uint64_t p50_ns, p99_ns, max_ns;
};

/* Before the loop's first iteration. */
struct hf_loop_meter *hf_loop_meter_new(uv_loop_t *loop);
/* The memory goes when the loop has closed the handle, one iteration later. NULL is nothing. */
void hf_loop_meter_free(struct hf_loop_meter *meter);
struct hf_loop_meter_figures hf_loop_meter_read(const struct hf_loop_meter *meter);

/* For tests: adds one measured span. */
void hf_loop_meter_add(struct hf_loop_meter *meter, uint64_t busy_ns);

#endif
