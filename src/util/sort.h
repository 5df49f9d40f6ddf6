/* Sorting many small keys. */
#ifndef MOIRAI_UTIL_SORT_H
#define MOIRAI_UTIL_SORT_H

#include <stdint.h>

/* For qsort: numbers, ascending. */
int util_by_int64(const void *a, const void *b);
int util_by_real(const void *a, const void *b);

/* Of n > 0 ascending numbers: the least that `percent` of them do not exceed (nearest rank). */
int64_t util_percentile(const int64_t *sorted, int64_t n, int percent);

/* Sorts n keys and the item beside each, ascending; equal keys keep their order. The spares are room for n of each.
 * O(n) per 11 bits in which keys differ. */
void util_sort(uint64_t *key, int32_t *item, uint64_t *key_spare, int32_t *item_spare, int32_t n);

#endif
