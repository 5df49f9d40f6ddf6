/* Solving a static programme, and what its duals prove in whole numbers (static_lp.c). */
#include "pair/static/static_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/static/static_tuning.h"
#include "util/util.h"

#define UNIT PAIR_STATIC_UNIT
#define MOST_DUAL INT64_C(1000000000000000)

static int make_room(pair_programme *x)
{
    size_t rows = (size_t)x->row.n, columns = (size_t)x->column.n;
    return util_grow(&x->found.dual, &x->found.capacity[0], rows, sizeof *x->found.dual) ||
                   util_grow(&x->found.real_dual, &x->found.capacity[1], rows, sizeof *x->found.real_dual) ||
                   util_grow(&x->found.row_value, &x->found.capacity[2], rows, sizeof *x->found.row_value) ||
                   util_grow(&x->found.column_value, &x->found.capacity[3], columns, sizeof *x->found.column_value)
               ? MOIRAI_EFAIL
               : 0;
}

typedef __int128 wide;

static wide line_price(const pair_programme *x, int32_t t, int32_t a, int32_t b)
{
    wide price = 0;
    for (int32_t r = 0; r < x->loads.n && a != b; r++)
        if (pair_load_counts_transfer(x, &x->loads.load[r], t, a, b))
            price += x->found.dual[x->row.load + r];
    return price;
}

/* What it costs to have the ends of edge e on a and b, but for the rows that tie it to them. */
static wide way_price(const pair_programme *x, int32_t e, int32_t ab)
{
    int32_t K = x->K, a = ab / K, b = ab % K, t = x->q->edge_tensor[e];
    wide price = x->found.dual[x->row.path + e], cost = 0;
    if (!x->edges.shared[t] || a == b)
        price += line_price(x, t, a, b);
    else if (x->row.share_of[e * K * K + ab] >= 0)
        cost += x->found.dual[x->row.share_of[e * K * K + ab]];
    return cost + price * moirai_transfer_ns(x->q, t, a, b);
}

/* An edge without columns of its own pays at its end that is not pinned. */
static void settle_pinned(pair_programme *x, int32_t e)
{
    int32_t K = x->K;
    bool reader = x->edges.way[e] == PAIR_WAY_OF_READER;
    int32_t pinned = __builtin_ctzll(x->q->op_devices[reader ? x->edges.from[e] : x->q->edge_reader[e]]);
    for (int32_t k = 0; k < K; k++) {
        int32_t ab = reader ? pinned * K + k : k * K + pinned;
        wide price = x->column.edge[e * K * K + ab] < 0 ? 0 : way_price(x, e, ab);
        x->found.dual[(reader ? x->row.in : x->row.out) + e * K + k] = (int64_t)UTIL_MIN(price, (wide)MOST_DUAL);
    }
}

static void round_duals(pair_programme *x)
{
    for (int32_t r = 0; r < x->row.n; r++) {
        /* Rows of times have duals without a unit, the others duals of time. */
        double u = x->found.real_dual[r] * (double)UNIT * (r < x->row.path ? x->unit_ns : 1);
        x->found.dual[r] = u > MOST_DUAL ? MOST_DUAL : u < -MOST_DUAL ? -MOST_DUAL : (int64_t)floor(u + 0.5);
        if (r >= x->row.share && x->found.dual[r] < 0)
            x->found.dual[r] = 0;
    }
    for (int32_t e = 0; e < x->E; e++)
        if (x->edges.way[e] == PAIR_WAY_OF_READER || x->edges.way[e] == PAIR_WAY_OF_PRODUCER)
            settle_pinned(x, e);
}

/* Multipliers that show that there are no plans up to `upper`: large ones. */
static void round_refutation(pair_programme *x)
{
    double most = 1e-9;
    for (int32_t r = 0; r < x->row.n; r++)
        most = fmax(most, fabs(x->found.real_dual[r]));
    for (int32_t r = 0; r < x->row.n; r++)
        x->found.real_dual[r] *= STATIC_SOLVE_REFUTING / most;
    round_duals(x);
}

int pair_programme_solve(pair_programme *x, const util_stop *stop)
{
    int rc = 0;
    for (int32_t cut = 0, added = 1; cut < STATIC_SOLVE_MOST_CUTS && added && !rc; cut++) {
        rc = make_room(x);
        if (!rc && !x->found.any)
            rc = pricing_lp_solve_once(x->lp, stop, x->found.real_dual, x->found.column_value);
        rc = rc ? rc
                : pricing_lp_solve_again(x->lp, stop, x->found.real_dual, x->found.row_value, x->found.column_value);
        if (rc && pricing_lp_refuted(x->lp, x->found.real_dual)) {
            round_refutation(x);
            return 0;
        }
        if (!rc) {
            x->found.any = true;
            round_duals(x);
            bool enough = x->found.column_value[x->column.time] * x->unit_ns > (double)x->upper_ns;
            added = 0;
            rc = cut + 1 < STATIC_SOLVE_MOST_CUTS && !enough ? pair_loads_separate(x, &added) : 0;
        }
    }
    return rc;
}

/* ---- the verdict, in whole numbers ---- */

/* The least part of an operator: over its devices, and over its start. */
static wide part_of_op(const pair_programme *x, int32_t i)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    const int64_t *u = x->found.dual;
    wide behind = u[x->row.end + i], before = 0, least = 0;
    bool any = false;
    for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++)
        before += u[x->row.path + q->op_in_edge[j]];
    for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
        for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            behind += u[x->row.path + e];
    for (int32_t k = 0; k < K; k++) {
        if (!pair_programme_allows(x, i, k))
            continue;
        wide price = behind, cost = 0;
        for (int32_t r = 0; r < x->loads.n; r++)
            if (pair_load_counts_op(x, &x->loads.load[r], i, k))
                price += u[x->row.load + r];
        for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++)
            cost += u[x->row.in + q->op_in_edge[j] * K + k];
        for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
            for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                cost += u[x->row.out + e * K + k];
        cost += price * moirai_op_ns(q, i, k);
        if (!any || cost < least)
            least = cost;
        any = true;
    }
    wide slope = behind - before;
    return least + slope * (slope > 0 ? x->at.first[i] : x->at.last[i]);
}

static wide part_of_edge(const pair_programme *x, int32_t e)
{
    int32_t K = x->K;
    wide least = 0;
    bool any = false;
    for (int32_t ab = 0; ab < K * K; ab++) {
        if (!x->at.cell[(int64_t)e * K * K + ab])
            continue;
        wide cost = way_price(x, e, ab) - x->found.dual[x->row.out + e * K + ab / K] -
                    x->found.dual[x->row.in + e * K + ab % K];
        if (!any || cost < least)
            least = cost;
        any = true;
    }
    return least;
}

/* Whether tensor t can be sent from a to b for any of its readers. */
static bool may_send(const pair_programme *x, int32_t t, int32_t ab)
{
    bool any = false;
    for (int32_t e = x->q->tensor_edge_off[t]; e < x->q->tensor_edge_off[t + 1] && !any; e++)
        any = x->at.cell[(int64_t)e * x->K * x->K + ab];
    return any;
}

static wide part_of_sends(const pair_programme *x, int32_t t)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    wide sum = 0;
    for (int32_t ab = 0; ab < K * K && x->edges.shared[t]; ab++) {
        int32_t a = ab / K, b = ab % K;
        wide cost = line_price(x, t, a, b) * moirai_transfer_ns(q, t, a, b);
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            cost -= x->row.share_of[e * K * K + ab] >= 0 ? x->found.dual[x->row.share_of[e * K * K + ab]] : 0;
        sum += cost < 0 && may_send(x, t, ab) ? cost : 0; /* else z = 0 */
    }
    return sum;
}

/* The Lagrangian's least value over plans of proven_ns .. upper_ns, as a bound of the makespan. */
int64_t pair_programme_evaluate(const pair_programme *x)
{
    wide sum = 0, slope = UNIT;
    for (int32_t r = 0; r < x->loads.n; r++) {
        sum += (wide)x->found.dual[x->row.load + r] * (x->loads.load[r].head_ns + x->loads.load[r].tail_ns);
        slope -= x->found.dual[x->row.load + r];
    }
    for (int32_t i = 0; i < x->n; i++) {
        slope -= x->found.dual[x->row.end + i];
        sum += part_of_op(x, i);
    }
    for (int32_t e = 0; e < x->E; e++)
        sum += part_of_edge(x, e);
    for (int32_t t = 0; t < x->q->n_tensors; t++)
        sum += part_of_sends(x, t);
    sum += slope * (slope > 0 ? x->proven_ns : x->upper_ns);
    if (sum <= 0)
        return 0;
    wide bound = (sum + UNIT - 1) / UNIT;
    return bound > x->upper_ns ? x->upper_ns : (int64_t)bound;
}
