/* Sets of devices of any problem. Searches that enumerate sets have problems of up to MOIRAI_MASK_DEVICES devices, and
 * one word for a set. */
#ifndef MOIRAI_PROBLEM_DEVICE_SET_H
#define MOIRAI_PROBLEM_DEVICE_SET_H

#include <moirai/problem.h>

#define DEVICE_SET_WORDS (MOIRAI_MAX_DEVICES / 64)

typedef struct device_set {
    uint64_t word[DEVICE_SET_WORDS];
} device_set;

static inline void device_set_add(device_set *s, int32_t k)
{
    s->word[k / 64] |= UINT64_C(1) << k % 64;
}

static inline void device_set_drop(device_set *s, int32_t k)
{
    s->word[k / 64] &= ~(UINT64_C(1) << k % 64);
}

static inline bool device_set_has(const device_set *s, int32_t k)
{
    return s->word[k / 64] >> k % 64 & 1;
}

/* The first device of the set that is `from` or behind it, or MOIRAI_NONE. */
static inline int32_t device_set_next(const device_set *s, int32_t from)
{
    uint64_t cut = UINT64_MAX << from % 64;
    for (int32_t w = from / 64; w < DEVICE_SET_WORDS; w++, cut = UINT64_MAX)
        if (s->word[w] & cut)
            return w * 64 + __builtin_ctzll(s->word[w] & cut);
    return MOIRAI_NONE;
}

static inline int32_t device_set_count(const device_set *s)
{
    int32_t n = 0;
    for (int32_t w = 0; w < DEVICE_SET_WORDS; w++)
        n += __builtin_popcountll(s->word[w]);
    return n;
}

#define DEVICE_SET_EACH(k, set) \
    for (int32_t k = device_set_next(set, 0); k != MOIRAI_NONE; k = device_set_next(set, k + 1))

/* What the operator can run on. */
static inline device_set device_set_of(const moirai_problem *p, int32_t op)
{
    device_set s = {{0}};
    int32_t words = moirai_device_words(p);
    for (int32_t w = 0; w < words; w++)
        s.word[w] = p->op_devices[(int64_t)op * words + w];
    return s;
}

#endif
