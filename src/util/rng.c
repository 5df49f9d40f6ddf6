/* xoshiro256** of Blackman and Vigna (2018), seeded by splitmix64: small, fast, equal on every machine. */
#include "util/util.h"

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void util_rng_seed(util_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix(&seed);
}

uint64_t util_rng_next(util_rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint32_t util_rng_below(util_rng *r, uint32_t n)
{
    /* Multiply and shift; the few low products that would favour some results are drawn again. */
    uint64_t product = (util_rng_next(r) >> 32) * n;
    if ((uint32_t)product < n) {
        uint32_t least = -n % n;
        while ((uint32_t)product < least)
            product = (util_rng_next(r) >> 32) * n;
    }
    return (uint32_t)(product >> 32);
}

double util_rng_real(util_rng *r)
{
    return (double)(util_rng_next(r) >> 11) * 0x1.0p-53;
}
