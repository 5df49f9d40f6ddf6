/* Numbers for operators to work on. Reals are positive and below 1: no operator leaves its domain (square roots,
 * logarithms, variances), nothing overflows, and nothing is so small that the processor takes its slow path. Integers
 * are indices where the operator says so, and 1 elsewhere: a size, a divisor, a trip count. */
#include "rank/profile/rank_profile.h"

#include <string.h>

#include "util/util.h"

enum {
    FLOAT = 1,
    INT16 = 5,
    UINT16 = 4,
    INT32 = 6,
    INT64 = 7,
    BOOL = 9,
    FLOAT16 = 10,
    DOUBLE = 11,
    UINT32 = 12,
    UINT64 = 13,
    BFLOAT16 = 16
};

static void put_real(char *at, int32_t type, double x, uint64_t bits)
{
    float single = (float)x;
    uint32_t word;
    memcpy(&word, &single, sizeof word);
    /* A half in [1/8, 1): exponent 12 to 14, any mantissa; a bfloat16 is a float's upper half. */
    uint16_t half = (uint16_t)((12 + bits % 3) << 10 | (bits >> 8 & 1023)), brain = (uint16_t)(word >> 16);
    if (type == FLOAT)
        memcpy(at, &single, sizeof single);
    else if (type == DOUBLE)
        memcpy(at, &x, sizeof x);
    else
        memcpy(at, type == FLOAT16 ? &half : &brain, sizeof half);
}

static void put_integer(char *at, int32_t type, int64_t x)
{
    size_t bytes = rank_ort_element_bytes((ONNXTensorElementDataType)type);
    for (size_t b = 0; b < bytes; b++)
        at[b] = (char)(x >> (8 * b));
}

void rank_profile_fill(void *data, int32_t type, size_t elements, int64_t bound, uint64_t seed)
{
    util_rng rng;
    char *at = data;
    size_t bytes = rank_ort_element_bytes((ONNXTensorElementDataType)type);
    util_rng_seed(&rng, seed);
    for (size_t i = 0; i < elements; i++, at += bytes) {
        uint64_t bits = util_rng_next(&rng);
        if (type == FLOAT || type == DOUBLE || type == FLOAT16 || type == BFLOAT16)
            put_real(at, type, 0.05 + 0.95 * (double)(bits >> 11) / 9007199254740992.0, bits);
        else if (type == BOOL)
            *at = (char)(bits & 1);
        else if (bound > 0)
            put_integer(at, type, (int64_t)(bits % (uint64_t)bound));
        else
            put_integer(at, type, type >= UINT16 ? 1 : (int64_t)(bits & 15)); /* bytes are quantized reals */
    }
}
