/* A radix sort from the lowest digit up: no comparison, no allocation. Digits in which all keys agree are skipped, and
 * keys that are in order already, such as starts of a plan's transfers. Millions of keys are divided by their highest digit before: five
 * million are sorted in a third of the time so. */
#include "util/sort.h"

#include <stdbool.h>
#include <string.h>

#define BITS 11
#define FIRST_BITS 9   /* so many places are written to at once without a miss of the cache at each */
#define MANY (1 << 18) /* keys that with their items do not stay in a cache */

int util_by_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int util_by_real(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int64_t util_percentile(const int64_t *sorted, int64_t n, int percent)
{
    int64_t at = (n * percent + 99) / 100 - 1;
    return sorted[at < 0 ? 0 : at < n ? at : n - 1];
}

/* By the digit of so many bits that begins at `shift`. */
static void scatter(const uint64_t *from_key, const int32_t *from_item, uint64_t *to_key, int32_t *to_item, int32_t n,
                    int shift, int bits)
{
    int32_t at[(1 << BITS) + 1] = {0}, digits = 1 << bits;
    uint64_t mask = (uint64_t)digits - 1;
    for (int32_t i = 0; i < n; i++)
        at[(from_key[i] >> shift & mask) + 1]++;
    for (int32_t b = 0; b < digits; b++)
        at[b + 1] += at[b];
    for (int32_t i = 0; i < n; i++) {
        int32_t j = at[from_key[i] >> shift & mask]++;
        to_key[j] = from_key[i];
        to_item[j] = from_item[i];
    }
}

/* Digit by digit from the lowest up, those alone in which keys `differ`; `from` is written over. True where the result is in `to`. */
static bool sort_up(uint64_t *from_key, int32_t *from_item, uint64_t *to_key, int32_t *to_item, int32_t n,
                    uint64_t differ)
{
    bool there = false;
    for (int shift = 0; shift < 64; shift += BITS) {
        if ((differ >> shift & ((1 << BITS) - 1)) == 0)
            continue;
        if (there)
            scatter(to_key, to_item, from_key, from_item, n, shift, BITS);
        else
            scatter(from_key, from_item, to_key, to_item, n, shift, BITS);
        there = !there;
    }
    return there;
}

static void copy(uint64_t *to_key, int32_t *to_item, const uint64_t *key, const int32_t *item, int32_t n)
{
    memcpy(to_key, key, (size_t)n * sizeof *key);
    memcpy(to_item, item, (size_t)n * sizeof *item);
}

/* By the highest digit first: what is left are many small sorts, each within the cache. */
static void sort_down(uint64_t *key, int32_t *item, uint64_t *key_spare, int32_t *item_spare, int32_t n,
                      uint64_t differ)
{
    int top = 64 - __builtin_clzll(differ), shift = top > FIRST_BITS ? top - FIRST_BITS : 0;
    uint64_t rest = differ & ((UINT64_C(1) << shift) - 1);
    scatter(key, item, key_spare, item_spare, n, shift, FIRST_BITS);
    for (int32_t begin = 0, end; begin < n; begin = end) {
        uint64_t digit = key_spare[begin] >> shift;
        for (end = begin; end < n && key_spare[end] >> shift == digit;)
            end++;
        if (!sort_up(key_spare + begin, item_spare + begin, key + begin, item + begin, end - begin, rest))
            copy(key + begin, item + begin, key_spare + begin, item_spare + begin, end - begin);
    }
}

void util_sort(uint64_t *key, int32_t *item, uint64_t *key_spare, int32_t *item_spare, int32_t n)
{
    uint64_t any = 0, all = UINT64_MAX;
    bool ordered = true;
    for (int32_t i = 0; i < n; i++) {
        any |= key[i], all &= key[i];
        ordered &= i == 0 || key[i - 1] <= key[i];
    }
    if (ordered)
        return;
    if (n >= MANY)
        sort_down(key, item, key_spare, item_spare, n, any ^ all);
    else if (sort_up(key, item, key_spare, item_spare, n, any ^ all))
        copy(key, item, key_spare, item_spare, n);
}
