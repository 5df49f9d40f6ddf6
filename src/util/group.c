/* A table of groups by hash, with open addressing. */
#include "util/group.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

void util_spell(util_spelling *w, int64_t word)
{
    w->failed |= util_grow(&w->word, &w->capacity, w->n + 1, sizeof *w->word) != 0;
    if (!w->failed)
        w->word[w->n++] = word;
}

static uint64_t hash_words(const util_spelling *w)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < w->n; i++) {
        h = (h ^ (uint64_t)w->word[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

static bool equal(const util_spelling *a, const util_spelling *b)
{
    return a->n == b->n && (a->n == 0 || !memcmp(a->word, b->word, a->n * sizeof *a->word));
}

int util_group(int32_t *group, int32_t *first, int32_t *n_groups, int32_t n, util_spell_fn *spell, const void *data)
{
    size_t slots = 1;
    while (slots < 2 * (size_t)n)
        slots *= 2;
    util_memory memory = {0};
    util_spelling one = {0}, other = {0};
    int32_t *table = util_take(&memory, slots, sizeof *table);    /* group + 1; 0: free */
    uint64_t *hash = util_take(&memory, (size_t)n, sizeof *hash); /* of each group: few are spelled again for nothing */
    *n_groups = 0;
    for (int32_t i = 0; i < n && !memory.failed; i++) {
        bool found = false;
        one.n = 0;
        spell(&one, data, i);
        uint64_t h = hash_words(&one);
        size_t at = (size_t)(h ^ h >> 32) & (slots - 1);
        for (; table[at] && !found; at = found ? at : (at + 1) & (slots - 1)) {
            if (hash[table[at] - 1] != h)
                continue;
            other.n = 0;
            spell(&other, data, first[table[at] - 1]);
            found = equal(&one, &other);
        }
        if (!table[at]) {
            hash[*n_groups] = h;
            first[(*n_groups)++] = i;
            table[at] = *n_groups;
        }
        group[i] = table[at] - 1;
    }
    int rc = memory.failed || one.failed || other.failed ? MOIRAI_EFAIL : 0;
    free(one.word);
    free(other.word);
    util_release(&memory);
    return rc;
}
