/* The columns and rows of a static programme (static_lp.c). */
#include "pair/static/static_state.h"

#include <math.h>
#include <stdlib.h>

#include "pair/static/static_tuning.h"
#include "util/util.h"

static bool may_be(const moirai_problem *q, int32_t i, int32_t k)
{
    return q->op_devices[i] >> k & 1;
}

/* Which edges need columns of their own. The devices of an edge whose one end is pinned are those of its other end; an
 * edge whose transfers take next to no time is left to its path row alone (multipliers 0). */
static void choose_ways(pair_programme *x)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    for (int32_t e = 0; e < x->E; e++) {
        int32_t i = x->edges.from[e], j = q->edge_reader[e];
        int64_t most = 0;
        for (int32_t ab = 0; ab < K * K; ab++)
            if (may_be(q, i, ab / K) && may_be(q, j, ab % K))
                most = UTIL_MAX(most, moirai_transfer_ns(q, q->edge_tensor[e], ab / K, ab % K));
        x->edges.way[e] = (double)most <= STATIC_BUILD_LIGHT * (double)x->proven_ns ? PAIR_WAY_LIGHT
                          : pair_programme_is_pinned(q, i)                          ? PAIR_WAY_OF_READER
                          : pair_programme_is_pinned(q, j)                          ? PAIR_WAY_OF_PRODUCER
                                                                                    : PAIR_WAY_OWN;
    }
}

static bool may_share(const pair_programme *x, int32_t e, int32_t a, int32_t b)
{
    return x->edges.shared[x->q->edge_tensor[e]] && a != b && x->edges.way[e] != PAIR_WAY_LIGHT &&
           may_be(x->q, x->edges.from[e], a) && may_be(x->q, x->q->edge_reader[e], b);
}

static void number_rows(pair_programme *x)
{
    int32_t K = x->K, E = x->E;
    x->row.assign = 0;
    x->row.out = x->n;
    x->row.in = x->row.out + E * K;
    x->row.share = x->row.in + E * K;
    x->row.path = x->row.share;
    for (int32_t c = 0; c < E * K * K; c++)
        x->row.share_of[c] = may_share(x, c / (K * K), c / K % K, c % K) ? x->row.path++ : -1;
    x->row.end = x->row.path + E;
    x->row.load = x->row.n = x->row.end + x->n;
}

static int add_column(pair_programme *x, int32_t *which, double cost)
{
    int rc = pricing_lp_add_column(x->lp, cost, x->line.n, x->line.place, x->line.value);
    x->line.n = 0;
    if (which)
        *which = x->column.n;
    x->column.n++;
    return rc;
}

static int begin_rows(pair_programme *x)
{
    double *low = util_alloc((size_t)x->row.n, sizeof *low), *high = util_alloc((size_t)x->row.n, sizeof *high);
    int rc = low && high ? 0 : MOIRAI_EFAIL;
    for (int32_t r = 0; !rc && r < x->row.n; r++) {
        low[r] = r < x->row.out ? 1 : 0;
        high[r] = r < x->row.share ? low[r] : HUGE_VAL;
    }
    rc = rc ? rc : pricing_lp_new(&x->lp, x->row.n, low, high);
    free(low);
    free(high);
    return rc;
}

static int add_starts(pair_programme *x)
{
    const moirai_problem *q = x->q;
    int rc = 0;
    for (int32_t i = 0; i < x->n && !rc; i++) {
        for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++)
            pair_programme_enter(x, x->row.path + q->op_in_edge[j], 1);
        for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
            for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                pair_programme_enter(x, x->row.path + e, -1);
        pair_programme_enter(x, x->row.end + i, -1);
        rc = add_column(x, NULL, 0);
    }
    for (int32_t i = 0; i < x->n; i++)
        pair_programme_enter(x, x->row.end + i, 1);
    return rc ? rc : add_column(x, &x->column.time, 1);
}

/* What the column of operator i on k says of edges whose other end is pinned. */
static void enter_pinned_edge(pair_programme *x, int32_t e, int32_t a, int32_t b, double path)
{
    const moirai_problem *q = x->q;
    int32_t cell = (e * x->K + a) * x->K + b;
    path += x->edges.way[e] == PAIR_WAY_LIGHT ? 0 : (double)moirai_transfer_ns(q, q->edge_tensor[e], a, b) / x->unit_ns;
    if (path > 0)
        pair_programme_enter(x, x->row.path + e, -path);
    if (x->row.share_of[cell] >= 0)
        pair_programme_enter(x, x->row.share_of[cell], -1);
    x->column.edge[cell] = x->column.n;
}

static void enter_edge_behind(pair_programme *x, int32_t e, int32_t k, double time)
{
    const moirai_problem *q = x->q;
    if (x->edges.way[e] == PAIR_WAY_OF_PRODUCER) {
        enter_pinned_edge(x, e, k, __builtin_ctzll(q->op_devices[q->edge_reader[e]]), time);
        return;
    }
    if (x->edges.way[e] == PAIR_WAY_OWN)
        pair_programme_enter(x, x->row.out + e * x->K + k, -1);
    pair_programme_enter(x, x->row.path + e, -time);
}

static void enter_edge_before(pair_programme *x, int32_t e, int32_t k)
{
    if (x->edges.way[e] == PAIR_WAY_OF_READER)
        enter_pinned_edge(x, e, __builtin_ctzll(x->q->op_devices[x->edges.from[e]]), k, 0);
    else if (x->edges.way[e] == PAIR_WAY_OWN)
        pair_programme_enter(x, x->row.in + e * x->K + k, -1);
}

static int add_devices(pair_programme *x, int32_t i)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    int rc = 0;
    for (int32_t k = 0; k < K && !rc; k++) {
        if (!may_be(q, i, k))
            continue;
        double time = (double)moirai_op_ns(q, i, k) / x->unit_ns;
        pair_programme_enter(x, x->row.assign + i, 1);
        pair_programme_enter(x, x->row.end + i, -time);
        for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++)
            enter_edge_before(x, q->op_in_edge[j], k);
        for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
            for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                enter_edge_behind(x, e, k, time);
        rc = add_column(x, &x->column.op[i * K + k], 0);
    }
    return rc;
}

static int add_edge(pair_programme *x, int32_t e)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K, t = q->edge_tensor[e];
    int rc = 0;
    for (int32_t ab = 0; ab < K * K && !rc && x->edges.way[e] == PAIR_WAY_OWN; ab++) {
        int32_t a = ab / K, b = ab % K;
        if (!may_be(q, x->edges.from[e], a) || !may_be(q, q->edge_reader[e], b))
            continue;
        double time = (double)moirai_transfer_ns(q, t, a, b) / x->unit_ns;
        pair_programme_enter(x, x->row.out + e * K + a, 1);
        pair_programme_enter(x, x->row.in + e * K + b, 1);
        if (time > 0)
            pair_programme_enter(x, x->row.path + e, -time);
        if (x->edges.shared[t] && a != b)
            pair_programme_enter(x, x->row.share_of[e * K * K + ab], -1);
        rc = add_column(x, &x->column.edge[e * K * K + ab], 0);
    }
    return rc;
}

static int add_sends(pair_programme *x, int32_t t)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    int rc = 0;
    for (int32_t ab = 0; ab < K * K && !rc && x->edges.shared[t]; ab++) {
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            if (x->row.share_of[e * K * K + ab] >= 0)
                pair_programme_enter(x, x->row.share_of[e * K * K + ab], 1);
        if (x->line.n)
            rc = add_column(x, &x->column.send[t * K * K + ab], 0);
    }
    return rc;
}

/* What the windows leave no plan is 0. */
static int fix_columns(pair_programme *x)
{
    int32_t cells = x->K * x->K;
    int rc = 0;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t k = 0; k < x->K && !rc; k++)
            if (may_be(x->q, i, k) && !pair_programme_allows(x, i, k))
                rc = pricing_lp_set_column(x->lp, x->column.op[i * x->K + k], 0);
    for (int32_t c = 0; c < x->E * cells && !rc; c++)
        if (x->edges.way[c / cells] == PAIR_WAY_OWN && x->column.edge[c] >= 0 && !x->at.cell[c])
            rc = pricing_lp_set_column(x->lp, x->column.edge[c], 0);
    return rc;
}

int pair_programme_build(pair_programme *x)
{
    choose_ways(x);
    number_rows(x);
    int rc = begin_rows(x);
    rc = rc ? rc : add_starts(x);
    for (int32_t i = 0; i < x->n && !rc; i++)
        rc = add_devices(x, i);
    for (int32_t e = 0; e < x->E && !rc; e++)
        rc = add_edge(x, e);
    for (int32_t t = 0; t < x->q->n_tensors && !rc; t++)
        rc = add_sends(x, t);
    return rc ? rc : fix_columns(x);
}
