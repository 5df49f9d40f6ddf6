/* A table of groups by hash, with open addressing. */
#include "util/group.h"

#include "util/util.h"

int util_group(int32_t *group, int32_t *first, int32_t *n_groups, int32_t n, const util_group_task *job)
{
    size_t slots = 1;
    while (slots < 2 * (size_t)n)
        slots *= 2;
    util_memory memory = {0};
    int32_t *table = util_take(&memory, slots, sizeof *table);    /* group + 1; 0: free */
    uint64_t *hash = util_take(&memory, (size_t)n, sizeof *hash); /* of each group: few are compared for nothing */
    *n_groups = 0;
    for (int32_t i = 0; i < n && !memory.failed; i++) {
        uint64_t h =
            job->hash(job->data, i) * UINT64_C(0x9e3779b97f4a7c15); /* FNV's low bits say little of high bytes */
        size_t at = (size_t)(h ^ h >> 32) & (slots - 1);
        while (table[at] && (hash[table[at] - 1] != h || !job->same(job->data, first[table[at] - 1], i)))
            at = (at + 1) & (slots - 1);
        if (!table[at]) {
            hash[*n_groups] = h;
            first[(*n_groups)++] = i;
            table[at] = *n_groups;
        }
        group[i] = table[at] - 1;
    }
    int rc = util_taken_all(&memory);
    util_release(&memory);
    return rc;
}
