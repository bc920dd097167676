/*
 * Reproducible bytes that guest and host compute independently from a seed, so that either side can say exactly which
 * byte differs. Included by probes and by executor/scenario. SplitMix64, public domain (Sebastiano Vigna).
 */
#ifndef HF_GUEST_PROBES_PATTERN_H
#define HF_GUEST_PROBES_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct hf_pattern {
    uint64_t state;
    uint64_t word;
    unsigned left; /* bytes of `word` not yet given out */
};

static inline void hf_pattern_init(struct hf_pattern *pattern, uint64_t seed, uint64_t stream)
{
    *pattern = (struct hf_pattern){.state = seed ^ (stream * UINT64_C(0x9E3779B97F4A7C15)) ^ stream};
}

static inline uint8_t hf_pattern_next(struct hf_pattern *pattern)
{
    if (pattern->left == 0) {
        uint64_t mixed = pattern->state += UINT64_C(0x9E3779B97F4A7C15);
        mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
        pattern->word = mixed ^ (mixed >> 31);
        pattern->left = 8;
    }
    uint8_t byte = (uint8_t)pattern->word;
    pattern->word >>= 8;
    pattern->left--;
    return byte;
}

static inline void hf_pattern_fill(struct hf_pattern *pattern, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = hf_pattern_next(pattern);
}

#endif
