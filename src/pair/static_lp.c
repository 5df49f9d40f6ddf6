/* The static bound: one linear programme for a block of parallel work.
 *
 * Prices in time (pricing/) see a component through a spanning tree; a mixture of experts is one component, and most of
 * its edges are outside any tree. Here time is left out but for starts, heads and tails, and all edges are kept. For a
 * plan of length T let y(i, k) = 1 if operator i is on k, w(e, a, b) = 1 if the ends of edge e are on a and b, z(t, a,
 * b) = 1 if tensor t is sent from a to b, and s(i) the start of i. Then
 *
 *   sum over b of w(e, a, b) = y(i, a),  sum over a of w(e, a, b) = y(j, b)        for e from i to j
 *   z(t, a, b) >= w(e, a, b)                                                       for the edges e of t (flow tensor)
 *   s(j) >= s(i) + sum t(i, k) y(i, k) + sum x(e, a, b) w(e, a, b)                 for e from i to j
 *   T >= s(i) + sum t(i, k) y(i, k)                                                for every i
 *   T >= h + q + sum over i with head(i, k) >= h, tail(i, k) >= q of t(i, k) y(i, k)   for device k, h + q <= proven
 *
 * and the last row for ports (channels) with x z in place of t y. Tasks of a resource that come no sooner than h and
 * are followed by q at least fit between h and T - q; where there are none the row says T >= h + q, hence the guard.
 * Without it the bound would be false. The programme's optimum is a bound, in floating point; what proves is this:
 *
 * **Any multipliers are valid.** With multipliers u >= 0 on inequalities and any on equalities, the Lagrangian
 * T + sum u (right - left) is at most T at every plan. It is a sum of independent parts: for each operator a least over
 * k, for each edge a least over (a, b), for each z in [0, 1], for each start in its window [head, upper - tail], for T
 * in [proven, upper]. So the duals are rounded to whole numbers, and the sum of the least parts, in whole numbers,
 * bounds every plan no longer than `upper`; longer ones need no bound. O(edges K^2 + rows (V K + tensors K^2)) for the
 * evaluation. Load rows are added where a solution violates them (static_loads.c); cases, in which more is known of
 * devices, heads and numbers, are in static_cases.c. */
#include "pair/static_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define UNIT PAIR_STATIC_UNIT
#define MOST_DUAL INT64_C(1000000000000000)
#define MOST_CUTS 14 /* rounds of load rows for one case */
#define VIOLATED 1e-3
#define REFUTING 1e5 /* programme's units: multipliers of a case without plans */
#define LIGHT 0.004  /* of what is proven: transfers that are no longer have no columns */

/* ---- the programme ---- */

static bool may_be(const moirai_problem *q, int32_t i, int32_t k)
{
    return q->op_devices[i] >> k & 1;
}

static bool is_pinned(const moirai_problem *q, int32_t i)
{
    return !(q->op_devices[i] & (q->op_devices[i] - 1));
}

/* Which edges need columns of their own. The devices of an edge whose one end is pinned are those of its other end; an
 * edge whose transfers take next to no time is left to its path row alone (multipliers 0). */
static void choose_ways(pair_programme *x)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    for (int32_t e = 0; e < x->E; e++) {
        int32_t i = x->from[e], j = q->edge_reader[e];
        int64_t most = 0;
        for (int32_t ab = 0; ab < K * K; ab++)
            if (may_be(q, i, ab / K) && may_be(q, j, ab % K))
                most = UTIL_MAX(most, moirai_transfer_ns(q, q->edge_tensor[e], ab / K, ab % K));
        x->way[e] = (double)most <= LIGHT * (double)x->proven_ns ? PAIR_WAY_LIGHT
                    : is_pinned(q, i)                            ? PAIR_WAY_OF_READER
                    : is_pinned(q, j)                            ? PAIR_WAY_OF_PRODUCER
                                                                 : PAIR_WAY_OWN;
    }
}

static bool may_share(const pair_programme *x, int32_t e, int32_t a, int32_t b)
{
    return x->shared[x->q->edge_tensor[e]] && a != b && x->way[e] != PAIR_WAY_LIGHT && may_be(x->q, x->from[e], a) &&
           may_be(x->q, x->q->edge_reader[e], b);
}

static void number_rows(pair_programme *x)
{
    int32_t K = x->K, E = x->E;
    x->assign_row = 0;
    x->out_row = x->n;
    x->in_row = x->out_row + E * K;
    x->share_row = x->in_row + E * K;
    x->path_row = x->share_row;
    for (int32_t c = 0; c < E * K * K; c++)
        x->share_of[c] = may_share(x, c / (K * K), c / K % K, c % K) ? x->path_row++ : -1;
    x->end_row = x->path_row + E;
    x->number_row = x->end_row + x->n;
    x->load_row = x->n_rows = x->number_row + x->n_numbers;
}

static int add_column(pair_programme *x, int32_t *which, double cost)
{
    int rc = pricing_lp_add_column(x->lp, cost, x->n_entries, x->place, x->value);
    x->n_entries = 0;
    if (which)
        *which = x->n_columns;
    x->n_columns++;
    return rc;
}

static int begin_rows(pair_programme *x)
{
    double *low = util_alloc((size_t)x->n_rows, sizeof *low), *high = util_alloc((size_t)x->n_rows, sizeof *high);
    int rc = low && high ? 0 : MOIRAI_EFAIL;
    for (int32_t r = 0; !rc && r < x->n_rows; r++) {
        bool equal = r < x->share_row, number = r >= x->number_row;
        low[r] = r < x->out_row ? 1 : number ? -HUGE_VAL : 0;
        high[r] = equal ? low[r] : HUGE_VAL;
    }
    rc = rc ? rc : pricing_lp_new(&x->lp, x->n_rows, low, high);
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
            pair_programme_enter(x, x->path_row + q->op_in_edge[j], 1);
        for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
            for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                pair_programme_enter(x, x->path_row + e, -1);
        pair_programme_enter(x, x->end_row + i, -1);
        rc = add_column(x, NULL, 0);
    }
    for (int32_t i = 0; i < x->n; i++)
        pair_programme_enter(x, x->end_row + i, 1);
    return rc ? rc : add_column(x, &x->time_column, 1);
}

static int32_t times_read(const pair_programme *x, int32_t i);

/* What the column of operator i on k says of edges whose other end is pinned. */
static void enter_pinned_edge(pair_programme *x, int32_t e, int32_t a, int32_t b, double path)
{
    const moirai_problem *q = x->q;
    int32_t cell = (e * x->K + a) * x->K + b;
    path += x->way[e] == PAIR_WAY_LIGHT ? 0 : (double)moirai_transfer_ns(q, q->edge_tensor[e], a, b) / x->unit_ns;
    if (path > 0)
        pair_programme_enter(x, x->path_row + e, -path);
    if (x->share_of[cell] >= 0)
        pair_programme_enter(x, x->share_of[cell], -1);
    x->edge_column[cell] = x->n_columns;
}

static void enter_edge_behind(pair_programme *x, int32_t e, int32_t k, double time)
{
    const moirai_problem *q = x->q;
    if (x->way[e] == PAIR_WAY_OF_PRODUCER) {
        enter_pinned_edge(x, e, k, __builtin_ctzll(q->op_devices[q->edge_reader[e]]), time);
        return;
    }
    if (x->way[e] == PAIR_WAY_OWN)
        pair_programme_enter(x, x->out_row + e * x->K + k, -1);
    pair_programme_enter(x, x->path_row + e, -time);
}

static void enter_edge_before(pair_programme *x, int32_t e, int32_t k)
{
    if (x->way[e] == PAIR_WAY_OF_READER)
        enter_pinned_edge(x, e, __builtin_ctzll(x->q->op_devices[x->from[e]]), k, 0);
    else if (x->way[e] == PAIR_WAY_OWN)
        pair_programme_enter(x, x->in_row + e * x->K + k, -1);
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
        pair_programme_enter(x, x->assign_row + i, 1);
        pair_programme_enter(x, x->end_row + i, -time);
        for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++)
            enter_edge_before(x, q->op_in_edge[j], k);
        for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
            for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                enter_edge_behind(x, e, k, time);
        if (x->group_of[i] != MOIRAI_NONE)
            pair_programme_enter(x, x->number_row + x->group_of[i] * K + k, 1);
        if (x->sent != MOIRAI_NONE && times_read(x, i))
            pair_programme_enter(x, x->number_row + x->n_groups * K + k, times_read(x, i));
        rc = add_column(x, &x->op_column[i * K + k], 0);
    }
    return rc;
}

static int add_edge(pair_programme *x, int32_t e)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K, t = q->edge_tensor[e];
    int rc = 0;
    for (int32_t ab = 0; ab < K * K && !rc && x->way[e] == PAIR_WAY_OWN; ab++) {
        int32_t a = ab / K, b = ab % K;
        if (!may_be(q, x->from[e], a) || !may_be(q, q->edge_reader[e], b))
            continue;
        double time = (double)moirai_transfer_ns(q, t, a, b) / x->unit_ns;
        pair_programme_enter(x, x->out_row + e * K + a, 1);
        pair_programme_enter(x, x->in_row + e * K + b, 1);
        if (time > 0)
            pair_programme_enter(x, x->path_row + e, -time);
        if (x->shared[t] && a != b)
            pair_programme_enter(x, x->share_of[e * K * K + ab], -1);
        rc = add_column(x, &x->edge_column[e * K * K + ab], 0);
    }
    return rc;
}

static int add_sends(pair_programme *x, int32_t t)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    int rc = 0;
    for (int32_t ab = 0; ab < K * K && !rc && x->shared[t]; ab++) {
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            if (x->share_of[e * K * K + ab] >= 0)
                pair_programme_enter(x, x->share_of[e * K * K + ab], 1);
        if (x->n_entries)
            rc = add_column(x, &x->send_column[t * K * K + ab], 0);
    }
    return rc;
}

static int build(pair_programme *x)
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
    return rc;
}

/* ---- the case at hand ---- */

static int fix(pair_programme *x, int32_t column, bool fixed)
{
    if (column < 0 || x->fixed[column] == fixed)
        return 0;
    x->fixed[column] = fixed;
    return pricing_lp_set_column(x->lp, column, fixed ? 0 : HUGE_VAL);
}

int pair_programme_fix(pair_programme *x)
{
    int32_t cells = x->K * x->K;
    int rc = 0;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t k = 0; k < x->K && !rc; k++)
            if (may_be(x->q, i, k))
                rc = fix(x, x->op_column[i * x->K + k], !pair_programme_allows(x, i, k));
    for (int32_t c = 0; c < x->E * cells && !rc; c++)
        if (x->way[c / cells] == PAIR_WAY_OWN)
            rc = fix(x, x->edge_column[c], !x->cell[c]);
    return rc;
}

/* ---- solving ---- */

static int make_room(pair_programme *x)
{
    size_t rows = (size_t)x->n_rows, columns = (size_t)x->n_columns;
    return util_grow(&x->dual, &x->room[0], rows, sizeof *x->dual) ||
                   util_grow(&x->real_dual, &x->room[1], rows, sizeof *x->real_dual) ||
                   util_grow(&x->row_value, &x->room[2], rows, sizeof *x->row_value) ||
                   util_grow(&x->column_value, &x->room[3], columns, sizeof *x->column_value)
               ? MOIRAI_EFAIL
               : 0;
}

typedef __int128 wide;

static wide line_price(const pair_programme *x, int32_t t, int32_t a, int32_t b)
{
    wide price = 0;
    for (int32_t r = 0; r < x->n_loads && a != b; r++)
        if (pair_load_counts_transfer(x, &x->load[r], t, a, b))
            price += x->dual[x->load_row + r];
    return price;
}

/* What it costs to have the ends of edge e on a and b, but for the rows that tie it to them. */
static wide way_price(const pair_programme *x, int32_t e, int32_t ab)
{
    int32_t K = x->K, a = ab / K, b = ab % K, t = x->q->edge_tensor[e];
    wide price = x->dual[x->path_row + e], cost = 0;
    if (!x->shared[t] || a == b)
        price += line_price(x, t, a, b);
    else if (x->share_of[e * K * K + ab] >= 0)
        cost += x->dual[x->share_of[e * K * K + ab]];
    return cost + price * moirai_transfer_ns(x->q, t, a, b);
}

/* An edge without columns of its own pays at its end that is not pinned. */
static void settle_pinned(pair_programme *x, int32_t e)
{
    int32_t K = x->K;
    bool reader = x->way[e] == PAIR_WAY_OF_READER;
    int32_t pinned = __builtin_ctzll(x->q->op_devices[reader ? x->from[e] : x->q->edge_reader[e]]);
    for (int32_t k = 0; k < K; k++) {
        int32_t ab = reader ? pinned * K + k : k * K + pinned;
        wide price = x->edge_column[e * K * K + ab] < 0 ? 0 : way_price(x, e, ab);
        x->dual[(reader ? x->in_row : x->out_row) + e * K + k] = (int64_t)UTIL_MIN(price, (wide)MOST_DUAL);
    }
}

static void round_duals(pair_programme *x)
{
    for (int32_t r = 0; r < x->n_rows; r++) {
        bool number = r >= x->number_row && r < x->load_row, any_sign = r < x->share_row || number;
        /* Rows of times have duals without a unit, the others duals of time. */
        double u = x->real_dual[r] * (double)UNIT * (r < x->path_row || number ? x->unit_ns : 1);
        x->dual[r] = u > MOST_DUAL ? MOST_DUAL : u < -MOST_DUAL ? -MOST_DUAL : (int64_t)floor(u + 0.5);
        if (!any_sign && x->dual[r] < 0)
            x->dual[r] = 0;
    }
    for (int32_t e = 0; e < x->E; e++)
        if (x->way[e] == PAIR_WAY_OF_READER || x->way[e] == PAIR_WAY_OF_PRODUCER)
            settle_pinned(x, e);
}

/* Multipliers that show that the case has no plans: large ones, so that they show that plans up to `upper` are none. */
static void round_refutation(pair_programme *x)
{
    double most = 1e-9;
    for (int32_t r = 0; r < x->n_rows; r++)
        most = fmax(most, fabs(x->real_dual[r]));
    for (int32_t r = 0; r < x->n_rows; r++)
        x->real_dual[r] *= REFUTING / most;
    round_duals(x);
}

int pair_programme_solve(pair_programme *x, int64_t enough_ns, const util_stop *stop)
{
    int rc = 0;
    for (int32_t cut = 0, added = 1; cut < MOST_CUTS && added && !rc; cut++) {
        rc = make_room(x);
        if (!rc && !x->solved)
            rc = pricing_lp_solve_once(x->lp, stop, x->real_dual, x->column_value);
        rc = rc ? rc : pricing_lp_solve_again(x->lp, stop, x->real_dual, x->row_value, x->column_value);
        if (rc && pricing_lp_refuted(x->lp, x->real_dual)) {
            round_refutation(x);
            return 0;
        }
        if (!rc) {
            x->solved = true;
            round_duals(x);
            bool enough = x->column_value[x->time_column] * x->unit_ns > (double)enough_ns;
            added = 0;
            rc = cut + 1 < MOST_CUTS && !enough ? pair_loads_separate(x, &added) : 0;
        }
    }
    return rc;
}

/* ---- the verdict, in whole numbers ---- */

/* How many edges lead from the tensor that is sent to operator i. */
static int32_t times_read(const pair_programme *x, int32_t i)
{
    int32_t n = 0;
    for (int32_t j = x->q->op_in_off[i]; j < x->q->op_in_off[i + 1]; j++)
        n += pair_programme_reads(x, x->q->op_in_edge[j]);
    return n;
}

/* The least part of an operator: over its devices, and over its start. */
static wide part_of_op(const pair_programme *x, int32_t i)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    const int64_t *u = x->dual;
    wide behind = u[x->end_row + i], before = 0, least = 0;
    bool any = false;
    for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++)
        before += u[x->path_row + q->op_in_edge[j]];
    for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
        for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            behind += u[x->path_row + e];
    for (int32_t k = 0; k < K; k++) {
        if (!pair_programme_allows(x, i, k))
            continue;
        wide price = behind, cost = 0;
        for (int32_t r = 0; r < x->n_loads; r++)
            if (pair_load_counts_op(x, &x->load[r], i, k))
                price += u[x->load_row + r];
        for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++)
            cost += u[x->in_row + q->op_in_edge[j] * K + k];
        for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
            for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                cost += u[x->out_row + e * K + k];
        cost += price * moirai_op_ns(q, i, k);
        if (x->group_of[i] != MOIRAI_NONE)
            cost -= u[x->number_row + x->group_of[i] * K + k];
        if (x->sent != MOIRAI_NONE)
            cost -= (wide)times_read(x, i) * u[x->number_row + x->n_groups * K + k];
        if (!any || cost < least)
            least = cost;
        any = true;
    }
    wide slope = behind - before;
    return least + slope * (slope > 0 ? x->first[i] : x->last[i]);
}

static wide part_of_edge(const pair_programme *x, int32_t e)
{
    int32_t K = x->K;
    wide least = 0;
    bool any = false;
    for (int32_t ab = 0; ab < K * K; ab++) {
        if (!x->cell[(int64_t)e * K * K + ab])
            continue;
        wide cost = way_price(x, e, ab) - x->dual[x->out_row + e * K + ab / K] - x->dual[x->in_row + e * K + ab % K];
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
        any = x->cell[(int64_t)e * x->K * x->K + ab];
    return any;
}

static wide part_of_sends(const pair_programme *x, int32_t t)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    wide sum = 0;
    for (int32_t ab = 0; ab < K * K && x->shared[t]; ab++) {
        int32_t a = ab / K, b = ab % K;
        wide cost = line_price(x, t, a, b) * moirai_transfer_ns(q, t, a, b);
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            cost -= x->share_of[e * K * K + ab] >= 0 ? x->dual[x->share_of[e * K * K + ab]] : 0;
        sum += cost < 0 && may_send(x, t, ab) ? cost : 0; /* else z = 0 */
    }
    return sum;
}

/* The Lagrangian's least value over plans of proven_ns .. upper_ns, as a bound of the makespan. */
int64_t pair_programme_evaluate(const pair_programme *x)
{
    wide sum = 0, slope = UNIT;
    for (int32_t r = 0; r < x->n_loads; r++)
        if (x->load[r].head_ns >= 0) {
            sum += (wide)x->dual[x->load_row + r] * (x->load[r].head_ns + x->load[r].tail_ns);
            slope -= x->dual[x->load_row + r];
        }
    for (int32_t c = 0; c < x->n_numbers; c++) {
        int64_t u = x->dual[x->number_row + c];
        sum += (wide)u * (u > 0 ? x->least[c] : x->most[c]);
    }
    for (int32_t i = 0; i < x->n; i++) {
        slope -= x->dual[x->end_row + i];
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

/* ---- ---- */

/* The entry's tensor whose way matters most: several read it, and its transfers hold the sender's port. */
static void choose_sent(pair_programme *x, int32_t entry)
{
    const moirai_problem *q = x->q;
    int64_t most = 0;
    x->sent = x->sender = MOIRAI_NONE;
    if (entry == MOIRAI_NONE || q->congestion != MOIRAI_CONGESTION_PORT ||
        q->op_in_off[entry] != q->op_in_off[entry + 1] || !q->op_devices[entry] ||
        (q->op_devices[entry] & (q->op_devices[entry] - 1)))
        return;
    int32_t a = __builtin_ctzll(q->op_devices[entry]);
    for (int32_t o = q->op_out_off[entry]; o < q->op_out_off[entry + 1]; o++) {
        int32_t t = q->op_out[o];
        int64_t ns = 0;
        for (int32_t k = 0; k < x->K; k++)
            ns += moirai_transfer_ns(q, t, a, k);
        if (x->shared[t] && ns > most) {
            most = ns;
            x->sent = t;
            x->sender = a;
        }
    }
}

static int64_t shortest_to(const moirai_problem *q, int32_t t, int32_t z)
{
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < q->n_devices; k++)
        if (k != z)
            least = UTIL_MIN(least, moirai_transfer_ns(q, t, k, z));
    return least;
}

/* Results are what takes as long to the exit's device as the shortest that the exit reads. */
static void choose_results(pair_programme *x, int32_t exit)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    x->home = MOIRAI_NONE;
    if (exit == MOIRAI_NONE || q->congestion != MOIRAI_CONGESTION_PORT || !is_pinned(q, exit) || K < 2)
        return;
    int32_t z = __builtin_ctzll(q->op_devices[exit]);
    int64_t least = INT64_MAX;
    for (int32_t j = q->op_in_off[exit]; j < q->op_in_off[exit + 1]; j++)
        least = UTIL_MIN(least, shortest_to(q, q->op_in[j], z));
    if (least == INT64_MAX || least <= 0)
        return;
    x->home = z;
    x->return_ns = least;
    for (int32_t k = 0; k < K; k++)
        x->result_ns[k] = INT64_MAX;
    for (int32_t t = 0; t < q->n_tensors; t++) {
        x->result[t] = shortest_to(q, t, z) >= least;
        for (int32_t k = 0; k < K && x->result[t]; k++)
            x->result_ns[k] = UTIL_MIN(x->result_ns[k], moirai_transfer_ns(q, t, k, z));
    }
}

static int prepare(pair_programme *x, int32_t entry, int32_t exit)
{
    const moirai_problem *q = x->q;
    size_t n = (size_t)x->n, K = (size_t)x->K, E = (size_t)x->E, T = (size_t)q->n_tensors;
    size_t longest = 2 * n + 3 * E + 2 * T * K * K + E * K * K + 9;
    x->from = util_alloc(E, sizeof *x->from);
    x->shared = util_alloc(T, sizeof *x->shared);
    x->way = util_alloc(E, sizeof *x->way);
    x->cell = util_alloc(E * K * K, sizeof *x->cell);
    x->result = util_alloc(T, sizeof *x->result);
    x->result_ns = util_alloc(K, sizeof *x->result_ns);
    x->told = util_alloc(n, sizeof *x->told);
    x->mask = util_alloc(n, sizeof *x->mask);
    x->head = util_alloc(n * K, sizeof *x->head);
    x->tail = util_alloc(n * K, sizeof *x->tail);
    x->send = util_alloc(T * K, sizeof *x->send);
    x->arrive = util_alloc(T * K, sizeof *x->arrive);
    x->first = util_alloc(n, sizeof *x->first);
    x->last = util_alloc(n, sizeof *x->last);
    x->share_of = util_alloc(E * K * K, sizeof *x->share_of);
    x->op_column = util_alloc(n * K, sizeof *x->op_column);
    x->edge_column = util_alloc(E * K * K, sizeof *x->edge_column);
    x->send_column = util_alloc(T * K * K, sizeof *x->send_column);
    x->place = util_alloc(longest, sizeof *x->place);
    x->value = util_alloc(longest, sizeof *x->value);
    if (!x->from || !x->shared || !x->mask || !x->head || !x->tail || !x->send || !x->arrive || !x->first || !x->last ||
        !x->share_of || !x->op_column || !x->edge_column || !x->send_column || !x->place || !x->value || !x->way ||
        !x->cell || !x->told || !x->result || !x->result_ns)
        return MOIRAI_EFAIL;
    memcpy(x->told, q->op_devices, n * sizeof *x->told);
    for (size_t i = 0; i < E * K * K; i++)
        x->edge_column[i] = -1;
    for (size_t i = 0; i < T * K * K; i++)
        x->send_column[i] = -1;
    for (int32_t e = 0; e < x->E; e++)
        x->from[e] = q->tensor_producer[q->edge_tensor[e]];
    for (int32_t t = 0; t < q->n_tensors; t++)
        x->shared[t] = q->flow == MOIRAI_FLOW_TENSOR && q->tensor_edge_off[t + 1] - q->tensor_edge_off[t] > 1;
    choose_sent(x, entry);
    choose_results(x, exit);
    int rc = pair_static_find_groups(x);
    if (rc)
        return rc;
    pair_windows_find(x);
    rc = build(x);
    x->fixed = util_alloc((size_t)x->n_columns, sizeof *x->fixed);
    return rc ? rc : x->fixed ? pair_programme_fix(x) : MOIRAI_EFAIL;
}

int pair_static_new(pair_static **out, const moirai_problem *q, const pair_static_task *job)
{
    *out = NULL;
    if (!pricing_lp_available() || q->n_ops == 0 || job->proven_ns >= job->upper_ns ||
        pair_static_cells(q) > PAIR_STATIC_CELLS)
        return 0;
    pair_static *s = util_alloc(1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    s->x = (pair_programme){.q = q,
                            .n = q->n_ops,
                            .K = q->n_devices,
                            .E = q->n_edges,
                            .proven_ns = job->proven_ns,
                            .upper_ns = job->upper_ns,
                            .unit_ns = fmax((double)job->upper_ns / 1000, 1)};
    s->most_ns = job->upper_ns;
    s->rounds = UTIL_MAX(1, UTIL_MIN(job->rounds, PAIR_STATIC_ROUNDS));
    int rc = prepare(&s->x, job->entry, job->exit);
    if (rc)
        pair_static_free(s);
    else
        *out = s;
    return rc == MOIRAI_ELIMIT ? 0 : rc; /* times too far apart for the solver */
}

void pair_static_free(pair_static *s)
{
    if (!s)
        return;
    pair_programme *x = &s->x;
    void *all[] = {x->from,         x->share_of,    x->shared,      x->mask, x->head,      x->tail,
                   x->send,         x->arrive,      x->first,       x->last, x->least,     x->most,
                   x->group_of,     x->group_off,   x->group_op,    x->load, x->load_off,  x->load_task,
                   x->op_column,    x->edge_column, x->send_column, x->dual, x->real_dual, x->row_value,
                   x->column_value, x->place,       x->value,       x->way,  x->cell,      x->fixed,
                   x->told,         x->result,      x->result_ns};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    pricing_lp_free(x->lp);
    pair_static_search_clear(&s->search);
    free(s);
}

void pair_static_proof_free(pair_static_proof *proof, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        free(proof[i].load);
        free(proof[i].dual);
    }
}

/* The multipliers at hand, without rows that have none. */
static int keep_proof(pair_static_proof *out, pair_programme *x, int64_t bound_ns)
{
    pair_static_case c = {.parent = MOIRAI_NONE};
    int rc = pair_static_pack(&c, x, false);
    *out = (pair_static_proof){.upper_ns = x->upper_ns,
                               .bound_ns = bound_ns,
                               .n_loads = c.n_loads,
                               .load = c.load,
                               .n_duals = c.n_duals,
                               .dual = c.dual};
    return rc;
}

int pair_static_rounds(int64_t *lower_ns, pair_static *s, const util_stop *stop, pair_static_proof *proof,
                       int32_t *n_proofs)
{
    pair_programme *x = &s->x;
    int rc = 0;
    x->violated = VIOLATED;
    for (; s->rounds > 0 && !rc && !pair_windows_empty(x) && !util_stopped(stop); s->rounds--) {
        rc = pair_programme_solve(x, x->upper_ns, stop);
        int64_t bound = rc ? 0 : pair_programme_evaluate(x);
        bool much = bound > x->proven_ns + x->proven_ns / 500;
        if (!rc && proof && bound > x->proven_ns && !(rc = keep_proof(&proof[*n_proofs], x, bound)))
            ++*n_proofs;
        x->proven_ns = UTIL_MAX(x->proven_ns, bound);
        if (!rc && !much)
            s->rounds = 1; /* the last */
    }
    *lower_ns = x->proven_ns;
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

int pair_static_lp(int64_t *lower_ns, const moirai_problem *q, const pair_static_task *job, int32_t cases)
{
    pair_static *s;
    *lower_ns = job->proven_ns;
    int rc = pair_static_new(&s, q, job);
    if (rc || !s)
        return rc;
    rc = pair_static_rounds(lower_ns, s, &job->stop, NULL, NULL);
    if (!rc && cases > 0)
        rc = pair_static_divide(lower_ns, s, cases, job->upper_ns, &job->stop);
    pair_static_free(s);
    return rc;
}
