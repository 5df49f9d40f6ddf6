/* Units: what keep-together groups place as one. O(V). */
#include "place/fit.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

void place_units_list(place_units *u, int32_t n_ops)
{
    memset(u->off, 0, sizeof *u->off * ((size_t)n_ops + 1));
    for (int32_t i = 0; i < n_ops; i++)
        u->off[u->of_op[i] + 1]++;
    for (int32_t unit = 0; unit < u->n; unit++)
        u->off[unit + 1] += u->off[unit];
    for (int32_t i = 0; i < n_ops; i++)
        u->op[u->off[u->of_op[i]]++] = i;
    for (int32_t unit = u->n; unit > 0; unit--)
        u->off[unit] = u->off[unit - 1];
    u->off[0] = 0;
}

static void fill_units(place_units *u, const moirai_problem *p, int32_t *of_group)
{
    for (int32_t g = 0; g < p->n_groups; g++)
        of_group[g] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t g = p->op_group[i];
        int32_t unit = g != MOIRAI_NONE && of_group[g] != MOIRAI_NONE ? of_group[g] : u->n++;
        if (g != MOIRAI_NONE)
            of_group[g] = unit;
        u->of_op[i] = unit;
        u->bytes[unit] += p->op_memory_bytes[i];
        memcpy(u->devices + (int64_t)unit * u->words, p->op_devices + (int64_t)i * u->words,
               (size_t)u->words * sizeof *u->devices);
    }
    place_units_list(u, p->n_ops);
}

int place_units_new(place_units **out, const moirai_problem *p)
{
    *out = NULL;
    size_t V = (size_t)p->n_ops;
    place_units *u = util_alloc(1, sizeof *u);
    int32_t *of_group = util_alloc((size_t)p->n_groups, sizeof *of_group);
    if (u) {
        u->words = moirai_device_words(p);
        UTIL_TAKE(&u->memory, u->of_op, V);
        UTIL_TAKE(&u->memory, u->off, V + 1);
        UTIL_TAKE(&u->memory, u->op, V);
        UTIL_TAKE(&u->memory, u->bytes, V);
        UTIL_TAKE(&u->memory, u->devices, V * (size_t)u->words);
    }
    int rc = u && of_group && !u->memory.failed ? 0 : MOIRAI_EFAIL;
    if (rc)
        place_units_free(u);
    else
        fill_units(*out = u, p, of_group);
    free(of_group);
    return rc;
}

int32_t place_unit_count(const place_units *u, int32_t unit)
{
    int32_t n = 0;
    for (int32_t w = 0; w < u->words; w++)
        n += __builtin_popcountll(u->devices[(int64_t)unit * u->words + w]);
    return n;
}

int32_t place_unit_device(const place_units *u, int32_t unit, int32_t n)
{
    int32_t w = 0;
    const uint64_t *set = u->devices + (int64_t)unit * u->words;
    for (; n >= __builtin_popcountll(set[w]); w++)
        n -= __builtin_popcountll(set[w]);
    uint64_t open = set[w];
    for (; n > 0; n--)
        open &= open - 1;
    return w * 64 + __builtin_ctzll(open);
}

void place_units_free(place_units *u)
{
    if (!u)
        return;
    util_release(&u->memory);
    free(u);
}
