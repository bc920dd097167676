/* Implementation of loop_meter.h. */
#include "server/core/loop_meter.h"

#include "common/clock.h"

#include <stdlib.h>

/* Index by the highest set bit and the three bits below it; spans below 8 ns get one bucket each. */
static unsigned bucket_of(uint64_t ns)
{
    if (ns < 8)
        return (unsigned)ns;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(ns);
    return exponent * 8 + (unsigned)((ns >> (exponent - 3)) & 7);
}

/* Largest span that falls into a bucket. */
static uint64_t bucket_limit(unsigned bucket)
{
    if (bucket < 8)
        return bucket;
    unsigned exponent = bucket / 8;
    return (((uint64_t)8 + bucket % 8 + 1) << (exponent - 3)) - 1;
}

void hf_histogram_add(struct hf_histogram *histogram, uint64_t span_ns)
{
    histogram->count++;
    histogram->buckets[bucket_of(span_ns)]++;
    if (span_ns > histogram->max_ns)
        histogram->max_ns = span_ns;
}

struct hf_loop_span hf_loop_span_begin(const uv_loop_t *loop)
{
    struct hf_loop_span span = {loop->data, 0};
    span.began_ns = span.meter ? hf_clock_mono_ns() : 0;
    return span;
}

void hf_loop_span_end(const struct hf_loop_span *span)
{
    if (span->meter)
        hf_histogram_add(&span->meter->callbacks, hf_clock_mono_ns() - span->began_ns);
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct hf_loop_meter *meter = prepare->data;
    uint64_t now_ns = hf_clock_mono_ns();
    uint64_t idle_ns = uv_metrics_idle_time(prepare->loop);
    uint64_t idle_delta_ns = idle_ns - meter->idle_ns;
    uint64_t span_ns = now_ns - meter->iteration_start_ns;
    if (meter->iteration_start_ns)
        hf_histogram_add(&meter->iterations, span_ns > idle_delta_ns ? span_ns - idle_delta_ns : 0);
    meter->iteration_start_ns = now_ns;
    meter->idle_ns = idle_ns;
}

struct hf_loop_meter *hf_loop_meter_new(uv_loop_t *loop)
{
    struct hf_loop_meter *meter = calloc(1, sizeof *meter);
    if (!meter)
        abort();
    uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
    uv_prepare_init(loop, &meter->prepare);
    meter->prepare.data = loop->data = meter;
    uv_prepare_start(&meter->prepare, on_prepare);
    uv_unref((uv_handle_t *)&meter->prepare);
    return meter;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void hf_loop_meter_free(struct hf_loop_meter *meter)
{
    if (!meter)
        return;
    meter->prepare.loop->data = NULL;
    uv_close((uv_handle_t *)&meter->prepare, on_closed);
}

static uint64_t quantile(const struct hf_histogram *histogram, unsigned percent)
{
    uint64_t wanted = (histogram->count * percent + 99) / 100, seen = 0;
    for (unsigned i = 0; wanted && i < HF_LOOP_METER_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= wanted)
            return bucket_limit(i) < histogram->max_ns ? bucket_limit(i) : histogram->max_ns;
    }
    return 0;
}

struct hf_histogram_figures hf_histogram_read(const struct hf_histogram *histogram)
{
    return (struct hf_histogram_figures){
        .count = histogram->count,
        .p50_ns = quantile(histogram, 50),
        .p99_ns = quantile(histogram, 99),
        .max_ns = histogram->max_ns,
    };
}
