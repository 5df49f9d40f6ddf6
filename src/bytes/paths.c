/* Paths through the blocks: the cheapest, by a recursion over cuts and devices as in pair/chain.c, with bytes in the costs; all of them
 * as columns of a master; and what a path of the bound is worth by what is known by now. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_state.h"
#include "lp/simplex.h"
#include "util/pool.h"
#include "util/util.h"

#define MOST_COST (INT64_C(1) << 60) /* of a path, in units; what costs more is no path that anyone takes */

void bytes_prices_at(const bytes_prices *m, const double *dual_ns, int64_t *price)
{
    for (int32_t k = 0; k < m->K; k++) {
        double capacity = (double)UTIL_MAX(m->c->p->device_memory_bytes[k], 1);
        double in_units = dual_ns[k] / capacity * (double)m->c->s->unit;
        /* All devices full are worth less than half of what the pricing takes for "does not fit", and so is the largest
         * operator where it does not fit. */
        double most = fmax(fmax(capacity, (double)m->largest_bytes), 1e3);
        price[k] = (int64_t)fmin(fmax(in_units, 0), 1e18 / fmax(m->K, 4) / most);
    }
}

void bytes_path_set_time(const bytes_prices *m, double cost, const int64_t *price, bytes_path *x)
{
    x->time_ns = cost / (double)m->c->s->unit;
    for (int32_t k = 0; k < m->K; k++)
        x->time_ns -= (double)price[k] / (double)m->c->s->unit * x->use[k];
}

/* ---- the cheapest ---- */

/* A cut on a device: its time, and its bytes at `price`. */
static int64_t cut_cost(const bytes_prices *m, int32_t cut, int32_t k, const int64_t *price)
{
    const moirai_problem *p = m->c->p;
    return pricing_units(m->c->s->unit, moirai_op_ns(p, cut, k)) + price[k] * p->op_memory_bytes[cut];
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
                cost[l] = UTIL_MIN(cost[l] + cut_cost(m, s->cut[i], l, m->now.price), MOST_COST);
    }
    if (cost[exit] == INT64_MAX)
        return INT64_MAX;
    for (int32_t i = last, l = exit; i > first; i--) {
        l = m->work.from[(int64_t)i * m->K + l];
        m->at.device[i - 1] = l;
    }
    return cost[exit];
}

/* ---- the master ---- */

void bytes_master_free(bytes_master *x)
{
    for (size_t i = 0; i < x->n; i++) {
        free(x->path[i].device);
        free(x->path[i].pick);
    }
    free(x->path);
}

int bytes_master_solve(const bytes_prices *m, bytes_master *x, double fill, double overflow_ns, double *dual_ns)
{
    double lower[MOIRAI_MASK_DEVICES + 1], upper[MOIRAI_MASK_DEVICES + 1], dual[MOIRAI_MASK_DEVICES + 1],
        value[MOIRAI_MASK_DEVICES + 1];
    int32_t row[MOIRAI_MASK_DEVICES + 1];
    for (int32_t k = 0; k <= m->K; k++) {
        row[k] = k;
        lower[k] = k < m->K ? -HUGE_VAL : 1;
        upper[k] = k < m->K ? fill : 1;
    }
    static const util_stop never; /* a row per device: soon solved */
    pricing_simplex *lp = NULL;
    double *part = util_alloc(x->n + (size_t)m->K, sizeof *part);
    int rc = part ? pricing_simplex_new(&lp, m->K + 1, lower, upper) : MOIRAI_EFAIL;
    for (size_t i = 0; i < x->n && !rc; i++) {
        for (int32_t k = 0; k < m->K; k++)
            value[k] = x->path[i].use[k] / (double)UTIL_MAX(m->c->p->device_memory_bytes[k], 1);
        value[m->K] = 1;
        rc = pricing_simplex_add_column(lp, x->path[i].time_ns, m->K + 1, row, value);
    }
    for (int32_t k = 0; k < m->K && !rc; k++) { /* overflow, at a price that no good LP solution pays */
        double out = -1;
        rc = pricing_simplex_add_column(lp, overflow_ns, 1, &row[k], &out);
    }
    double objective;
    rc = rc ? rc : pricing_simplex_solve(lp, &never, &objective, dual, part);
    for (size_t i = 0; i < x->n && !rc; i++)
        x->path[i].part = part[i];
    for (int32_t k = 0; k < m->K && !rc; k++)
        dual_ns[k] = fmax(-dual[k], 0);
    pricing_simplex_free(lp);
    free(part);
    return rc;
}

int bytes_master_add(bytes_master *x, const bytes_prices *m, bytes_path path, const int32_t *device, const int8_t *pick)
{
    path.device = util_copy(device, (size_t)m->c->s->n_cuts, sizeof *device);
    path.pick = pick ? util_copy(pick, (size_t)m->c->s->n_blocks, sizeof *pick) : NULL;
    if (!path.device || (pick && !path.pick) || util_grow(&x->path, &x->capacity, x->n + 1, sizeof *x->path)) {
        free(path.device);
        free(path.pick);
        return MOIRAI_EFAIL;
    }
    x->path[x->n++] = path;
    return 0;
}

/* ---- measuring again ---- */

/* A pair that a path takes, and what is known of it at the path's prices. */
typedef struct measured_pair {
    int64_t pair, value;
    int32_t times;
    double use[MOIRAI_MASK_DEVICES];
} measured_pair;

typedef struct measuring {
    bytes_prices *m;
    int64_t price[MOIRAI_MASK_DEVICES];
    measured_pair *of; /* the path's pairs */
    int32_t n;
} measuring;

static int measure_pair(void *data, int32_t i)
{
    measuring *g = data;
    measured_pair *p = &g->of[i];
    p->value = pair_priced_value_at(&g->m->pair[p->pair].priced, g->price, p->use);
    return 0;
}

/* `number`, per pair: its place in `of` + 1. */
static void list_pairs(measuring *g, int32_t *number, const bytes_path *x)
{
    const pair_chain *c = g->m->c;
    for (int32_t i = 0; i < c->s->n_blocks; i++) {
        int64_t pair = pair_chain_on_path(c, i, x->device);
        if (!pair_chain_get(c, pair)->open)
            continue;
        if (!number[pair]) {
            g->of[g->n++] = (measured_pair){.pair = pair};
            number[pair] = g->n;
        }
        g->of[number[pair] - 1].times++;
    }
}

/* Time and bytes of the path from those of its pairs, and of its cuts. */
static void add_up(const measuring *g, bytes_path *x)
{
    const bytes_prices *m = g->m;
    const pair_chain *c = m->c;
    double cost = 0;
    memset(x->use, 0, sizeof x->use);
    for (int32_t i = 0; i < c->s->n_cuts; i++) {
        cost += (double)cut_cost(m, c->s->cut[i], x->device[i], g->price);
        x->use[x->device[i]] += (double)c->p->op_memory_bytes[c->s->cut[i]];
    }
    for (const measured_pair *p = g->of; p < g->of + g->n; p++) {
        cost += p->times * (double)p->value;
        for (int32_t k = 0; k < m->K; k++)
            x->use[k] += p->times * p->use[k];
    }
    bytes_path_set_time(m, cost, g->price, x);
    x->refined = m->search.refined;
}

int bytes_measure_again(bytes_prices *m, bytes_path *x, int32_t threads)
{
    measuring g = {.m = m, .of = util_alloc((size_t)m->c->s->n_blocks, sizeof *g.of)};
    int32_t *number = util_alloc((size_t)pair_chain_count(m->c), sizeof *number);
    bool ready = g.of && number;
    if (ready) {
        bytes_prices_at(m, x->dual_ns, g.price);
        list_pairs(&g, number, x);
        util_pool_run(measure_pair, &g, g.n, threads); /* no job fails */
        add_up(&g, x);
    }
    free(g.of);
    free(number);
    return ready ? 0 : MOIRAI_EFAIL;
}
