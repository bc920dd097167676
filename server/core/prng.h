/*
 * The one pseudo-random generator of the controller: splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom
 * Number Generators", OOPSLA 2014; the constants are those of the reference code by S. Vigna). It drives nothing but
 * the order of candidates, so it is chosen for being short, documented and the same everywhere; nothing secret comes
 * from it.
 *
 * Called by the prompt builder and the built-in strategists. Pure.
 */
#ifndef HF_SERVER_CORE_PRNG_H
#define HF_SERVER_CORE_PRNG_H

#include <stddef.h>
#include <stdint.h>

struct hf_prng {
    uint64_t state;
};

void hf_prng_init(struct hf_prng *prng, uint64_t seed);
uint64_t hf_prng_next(struct hf_prng *prng);
/* Uniform in 0..bound-1 without modulo bias; bound >= 1. */
uint64_t hf_prng_below(struct hf_prng *prng, uint64_t bound);
/* Fisher-Yates from the last element down, over indices; the order depends on the seed and the count only. */
void hf_prng_shuffle(struct hf_prng *prng, size_t *indices, size_t count);

#endif
