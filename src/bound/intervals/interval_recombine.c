/* New chains from what all chains have found.
 *
 * Where two chains meet in an operator, the beginning of the one and the end of the other are a chain too. A recursion
 * over the operators finds the best chain that all known intervals can make: f(v, l) = max over the intervals (u, v) of
 * min over k of f(u, k) + L(u, k, v, l) + t(v, l), one u for all devices l of v. And where operators are taken away from a
 * chain its intervals grow: they then hold what floats beside their parts and what jumps over their ends. */
#include "bound/intervals/interval_recombine.h"

#include <stdlib.h>

#include "util/util.h"

#define MERGED_OPS 250 /* of an interval that is made of two */

/* What the intervals known by now prove: the finish of an operator on each device, and the interval before it on the
 * chain that proves it. */
typedef struct crossing {
    const moirai_problem *p;
    const bound_interval_list *known;
    int64_t *finish; /* [op * K + device] */
    int64_t *worth;  /* per operator: the least over devices; -1: on no chain */
    int32_t *before; /* per operator: the chain's operator before; MOIRAI_NONE: the beginning */
} crossing;

/* The finish of the end of interval `v` on every device, and the least of them; -1: its beginning is on no chain. */
static int64_t go_on(const crossing *x, const bound_interval *v, int64_t *finish)
{
    const moirai_problem *p = x->p;
    int32_t K = p->n_devices;
    int64_t least = INT64_MAX;
    if (v->entry != MOIRAI_NONE && x->worth[v->entry] < 0)
        return -1;
    for (int32_t l = 0; l < (v->exit == MOIRAI_NONE ? 1 : K); l++) {
        int64_t soonest = INT64_MAX;
        if (v->exit != MOIRAI_NONE && !(p->op_devices[v->exit] >> l & 1))
            continue;
        for (int32_t k = 0; k < (v->entry == MOIRAI_NONE ? 1 : K); k++)
            if (v->entry == MOIRAI_NONE)
                soonest = v->lower_ns[l];
            else if (p->op_devices[v->entry] >> k & 1)
                soonest = UTIL_MIN(soonest, x->finish[(int64_t)v->entry * K + k] + v->lower_ns[k * K + l]);
        finish[l] = soonest + (v->exit == MOIRAI_NONE ? 0 : moirai_op_ns(p, v->exit, l));
        least = UTIL_MIN(least, finish[l]);
    }
    return least;
}

/* Of all intervals that end at `op` (MOIRAI_NONE: the end) the one that proves most. */
static int64_t best_before(crossing *x, int32_t op, int64_t *finish, int32_t *before)
{
    int64_t best = -1, trial[MOIRAI_MAX_DEVICES];
    for (size_t i = 0; i < x->known->n; i++) {
        const bound_interval *v = &x->known->list[i];
        int64_t worth = v->exit == op ? go_on(x, v, trial) : -1;
        if (worth > best) {
            best = worth;
            *before = v->entry;
            for (int32_t k = 0; k < x->p->n_devices && op != MOIRAI_NONE; k++)
                finish[k] = trial[k];
        }
    }
    return best;
}

/* mark: the operators of the chain that the intervals known by now make best; what it proves. */
static int64_t find_crossing(crossing *x, bool *mark)
{
    const moirai_problem *p = x->p;
    int32_t last = MOIRAI_NONE;
    for (int32_t z = 0; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        mark[i] = false;
        x->worth[i] = best_before(x, i, &x->finish[(int64_t)i * p->n_devices], &x->before[i]);
    }
    int64_t worth = best_before(x, MOIRAI_NONE, NULL, &last);
    for (; worth >= 0 && last != MOIRAI_NONE; last = x->before[last])
        mark[last] = true;
    return worth;
}

int bound_interval_best_parts(int64_t *worth, bool *mark, const moirai_problem *p, const bound_interval_list *known)
{
    size_t n = (size_t)p->n_ops;
    crossing x = {.p = p, .known = known};
    x.finish = util_alloc(n * (size_t)p->n_devices, sizeof *x.finish);
    x.worth = util_alloc(n, sizeof *x.worth);
    x.before = util_alloc(n, sizeof *x.before);
    int rc = x.finish && x.worth && x.before ? 0 : MOIRAI_EFAIL;
    if (!rc)
        *worth = find_crossing(&x, mark);
    free(x.finish);
    free(x.worth);
    free(x.before);
    return rc;
}

/* Whether the interval from one operator to the next but one says more than its two parts: work that floats beside them
 * or an edge over what lies between them is inside, and it is not too large. */
static bool worth_merging(const decompose_intervals *all, int32_t from, int32_t over, int32_t to)
{
    int32_t whole = decompose_intervals_between(all, from, to),
            parts = decompose_intervals_between(all, from, over) + decompose_intervals_between(all, over, to);
    return whole <= MERGED_OPS && (whole > parts + 1 || decompose_intervals_jumped(all, over));
}

bool bound_interval_merge(bool *mark, const moirai_problem *p, const decompose_intervals *all, int32_t first)
{
    int32_t from = MOIRAI_NONE, over = MOIRAI_NONE, seen = 0;
    bool any = false;
    for (int32_t z = 0; z <= p->n_ops; z++) {
        int32_t i = z < p->n_ops ? p->topo[z] : MOIRAI_NONE;
        if (i != MOIRAI_NONE && !mark[i])
            continue;
        bool gone = over != MOIRAI_NONE && seen++ >= first && worth_merging(all, from, over, i);
        if (gone)
            mark[over] = false;
        any |= gone;
        from = gone ? i : over != MOIRAI_NONE ? over : from;
        over = gone ? MOIRAI_NONE : i;
    }
    return any;
}
