/* The cheapest way through the blocks: a recursion over cuts and devices, as in pair/chain.c, with bytes in the costs. */
#include <string.h>

#include "bytes/bytes_state.h"
#include "util/util.h"

#define MOST_COST (INT64_C(1) << 60) /* of a path, in units; what costs more is no path that anyone takes */

int64_t bytes_cut_cost(const bytes_prices *m, int32_t cut, int32_t k, const int64_t *price)
{
    const moirai_problem *p = m->c->p;
    return pricing_units(m->c->s->unit, moirai_op_ns(p, cut, k)) + price[k] * p->op_memory_bytes[cut];
}

int64_t bytes_pair_of(const bytes_prices *m, int32_t block)
{
    return pair_chain_on_path(m->c, block, m->at.device);
}

/* One block of the recursion: `cost` by the device before it becomes `cost` by the device after. */
static void advance(bytes_prices *m, int32_t block, uint64_t out, int64_t *cost)
{
    const pair_chain *c = m->c;
    int64_t next[MOIRAI_MASK_DEVICES];
    for (int32_t l = 0; l < m->K; l++) {
        next[l] = INT64_MAX;
        for (int32_t k = 0; k < m->K && (out >> l & 1); k++) {
            int64_t pair = m->work.pair_cost[bytes_pair_at(m, block, k, l)];
            if (cost[k] == INT64_MAX || pair == INT64_MAX)
                continue;
            if (m->jump.counted)
                pair += pricing_units(c->s->unit, bytes_late_ns(m, block, k, l));
            int64_t sum = UTIL_MIN(cost[k] + UTIL_MIN(pair, MOST_COST), MOST_COST); /* less is claimed: still true */
            if (sum >= next[l])
                continue;
            next[l] = sum;
            m->work.from[(int64_t)block * m->K + l] = (int8_t)k;
        }
    }
    memcpy(cost, next, sizeof *next * (size_t)m->K);
}

int64_t bytes_cheapest_path(bytes_prices *m, int32_t first, int32_t last)
{
    const decompose_cuts *s = m->c->s;
    int32_t entry = first > 0 ? m->at.device[first - 1] : 0, exit = last < s->n_cuts ? m->at.device[last] : 0;
    int64_t cost[MOIRAI_MASK_DEVICES];
    for (int32_t k = 0; k < MOIRAI_MASK_DEVICES; k++)
        cost[k] = k == entry ? 0 : INT64_MAX;
    for (int32_t i = first; i <= last; i++) {
        advance(m, i, i == last ? UINT64_C(1) << exit : pair_chain_exit_mask(m->c, i), cost);
        for (int32_t l = 0; l < m->K && i < last; l++)
            if (cost[l] != INT64_MAX)
                cost[l] = UTIL_MIN(cost[l] + bytes_cut_cost(m, s->cut[i], l, m->now.price), MOST_COST);
    }
    if (cost[exit] == INT64_MAX)
        return INT64_MAX;
    for (int32_t i = last, l = exit; i > first; i--) {
        l = m->work.from[(int64_t)i * m->K + l];
        m->at.device[i - 1] = l;
    }
    return cost[exit];
}
