/* Equal things put together, numbered as they first appear: copies of blocks and of their parts, tensors of one size. */
#ifndef MOIRAI_UTIL_GROUP_H
#define MOIRAI_UTIL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A thing as words: things are equal where their words are. */
typedef struct util_spelling {
    int64_t *word;
    size_t n, capacity;
    bool failed; /* out of memory */
} util_spelling;
void util_spell(util_spelling *w, int64_t word);

typedef void util_spell_fn(util_spelling *w, const void *data, int32_t i);

/* group[i]: the number of thing i's group, first[g]: the first thing of group g; both have room for n. *n_groups: how many there are.
 * O(words). MOIRAI_EFAIL: out of memory. */
int util_group(int32_t *group, int32_t *first, int32_t *n_groups, int32_t n, util_spell_fn *spell, const void *data);

#endif
