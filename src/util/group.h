/* Equal things put together, numbered as they first appear: kinds of components, lines of operators with equal times. */
#ifndef MOIRAI_UTIL_GROUP_H
#define MOIRAI_UTIL_GROUP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct util_group_task {
    const void *data;
    uint64_t (*hash)(const void *data, int32_t i); /* equal where things are */
    bool (*same)(const void *data, int32_t i, int32_t j);
} util_group_task;

/* group[i]: the number of thing i's group, first[g]: the first thing of group g; both have room for n. *n_groups: how many there are.
 * O(n) comparisons, but for things that differ and share a hash. MOIRAI_EFAIL: out of memory. */
int util_group(int32_t *group, int32_t *first, int32_t *n_groups, int32_t n, const util_group_task *job);

#endif
