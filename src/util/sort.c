/* A radix sort from the lowest digit up: no comparison, no allocation. Digits in which all keys agree are skipped, and
 * keys that are in order already, such as starts of a plan's transfers. */
#include "util/sort.h"

#include <stdbool.h>
#include <string.h>

#define BITS 11
#define DIGITS (1 << BITS)

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

static void scatter(const uint64_t *from_key, const int32_t *from_item, uint64_t *to_key, int32_t *to_item, int32_t n,
                    int shift)
{
    int32_t at[DIGITS + 1] = {0};
    for (int32_t i = 0; i < n; i++)
        at[(from_key[i] >> shift & (DIGITS - 1)) + 1]++;
    for (int b = 0; b < DIGITS; b++)
        at[b + 1] += at[b];
    for (int32_t i = 0; i < n; i++) {
        int32_t j = at[from_key[i] >> shift & (DIGITS - 1)]++;
        to_key[j] = from_key[i];
        to_item[j] = from_item[i];
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
    uint64_t differ = ordered ? 0 : any ^ all;
    bool swapped = false;
    for (int shift = 0; shift < 64; shift += BITS) {
        if ((differ >> shift & (DIGITS - 1)) == 0)
            continue;
        if (swapped)
            scatter(key_spare, item_spare, key, item, n, shift);
        else
            scatter(key, item, key_spare, item_spare, n, shift);
        swapped = !swapped;
    }
    if (swapped) {
        memcpy(key, key_spare, (size_t)n * sizeof *key);
        memcpy(item, item_spare, (size_t)n * sizeof *item);
    }
}
