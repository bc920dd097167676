/* Implementation of prng.h. */
#include "server/core/prng.h"

void hf_prng_init(struct hf_prng *prng, uint64_t seed)
{
    prng->state = seed;
}

uint64_t hf_prng_next(struct hf_prng *prng)
{
    prng->state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = prng->state;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

uint64_t hf_prng_below(struct hf_prng *prng, uint64_t bound)
{
    /* Numbers below 2^64 mod bound would make the low results likelier; they are drawn again. */
    uint64_t threshold = (0 - bound) % bound;
    uint64_t drawn;
    do
        drawn = hf_prng_next(prng);
    while (drawn < threshold);
    return drawn % bound;
}

void hf_prng_shuffle(struct hf_prng *prng, size_t *indices, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)hf_prng_below(prng, i);
        size_t kept = indices[i - 1];
        indices[i - 1] = indices[other];
        indices[other] = kept;
    }
}
