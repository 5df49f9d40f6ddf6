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
 * evaluation. */
#include "pair/static_state.h"
#include "schedule/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define UNIT PAIR_STATIC_UNIT
#define LEVELS 5 /* thresholds of heads and of tails per resource */

void pair_programme_clear(pair_programme *x)
{
    void *all[] = {x->from, x->shared, x->head,  x->tail,     x->send,      x->arrive,   x->first, x->last, x->load,
                   x->dual, x->row,    x->value, x->group_of, x->group_off, x->group_op, x->least, x->most};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    pricing_lp_free(x->lp);
}

static bool allowed(const pair_programme *x, int32_t i, int32_t k)
{
    return x->q->op_devices[i] >> k & 1;
}

/* ---- heads and tails ---- */

/* A transfer begins when its tensor exists; some reader follows where it arrives. */
static void find_transfer_windows(pair_programme *x)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    for (int32_t t = 0; t < q->n_tensors; t++)
        for (int32_t k = 0; k < K; k++) {
            int32_t i = q->tensor_producer[t];
            int64_t least = INT64_MAX;
            x->send[(int64_t)t * K + k] =
                allowed(x, i, k) ? x->head[(int64_t)i * K + k] + moirai_op_ns(q, i, k) : INT64_MAX;
            for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++) {
                int32_t r = q->edge_reader[e];
                if (allowed(x, r, k))
                    least = UTIL_MIN(least, moirai_op_ns(q, r, k) + x->tail[(int64_t)r * K + k]);
            }
            x->arrive[(int64_t)t * K + k] = least; /* INT64_MAX: never arrives here */
        }
}

static void find_windows(pair_programme *x)
{
    const schedule_paths paths = {.p = x->q};
    schedule_heads(x->head, &paths);
    schedule_tails(x->tail, &paths);
    find_transfer_windows(x);
    for (int32_t i = 0; i < x->n; i++) {
        int64_t first = INT64_MAX, after = INT64_MAX;
        for (int32_t k = 0; k < x->K; k++)
            if (allowed(x, i, k)) {
                first = UTIL_MIN(first, x->head[(int64_t)i * x->K + k]);
                after = UTIL_MIN(after, moirai_op_ns(x->q, i, k) + x->tail[(int64_t)i * x->K + k]);
            }
        x->first[i] = first;
        x->last[i] = x->job->upper_ns - after;
    }
}

/* ---- load rows ---- */

/* Whether operator i on device k, or the transfer of t from a to b, counts in the row. */
static bool op_counts(const pair_programme *x, const pair_load *r, int32_t i, int32_t k)
{
    return r->kind == PAIR_LOAD_DEVICE && r->which == k && x->head[(int64_t)i * x->K + k] >= r->head_ns &&
           x->tail[(int64_t)i * x->K + k] >= r->tail_ns;
}

static bool transfer_counts(const pair_programme *x, const pair_load *r, int32_t t, int32_t a, int32_t b)
{
    bool here = r->kind == PAIR_LOAD_SEND      ? r->which == a
                : r->kind == PAIR_LOAD_RECEIVE ? r->which == b
                                               : r->kind == PAIR_LOAD_CHANNEL && r->which == a * x->K + b;
    return here && x->send[(int64_t)t * x->K + a] >= r->head_ns && x->arrive[(int64_t)t * x->K + b] >= r->tail_ns;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Up to LEVELS thresholds from `n` values: 0, then quantiles. */
static int32_t thresholds(int64_t *value, int32_t n, int64_t *out)
{
    int32_t m = 1;
    out[0] = 0;
    qsort(value, (size_t)n, sizeof *value, by_value);
    for (int32_t l = 0; l < LEVELS - 1 && n > 0; l++) {
        int64_t v = value[(int64_t)l * n / (LEVELS - 1)];
        if (v > out[m - 1])
            out[m++] = v;
    }
    return m;
}

static int add_loads(pair_programme *x, pair_load_kind kind, int32_t which, int64_t *head, int64_t *tail, int32_t n)
{
    int64_t h[LEVELS], q[LEVELS];
    int32_t nh = thresholds(head, n, h), nq = thresholds(tail, n, q);
    for (int32_t i = 0; i < nh * nq && n > 0; i++) {
        pair_load row = {kind, which, h[i / nq], q[i % nq]};
        if (row.head_ns > x->proven_ns - row.tail_ns) /* the guard */
            continue;
        if (util_grow(&x->load, &x->load_capacity, (size_t)x->n_loads + 1, sizeof *x->load))
            return MOIRAI_EFAIL;
        x->load[x->n_loads++] = row;
    }
    return 0;
}

static int add_device_loads(pair_programme *x, int32_t k, int64_t *head, int64_t *tail)
{
    int32_t n = 0;
    for (int32_t i = 0; i < x->n; i++)
        if (allowed(x, i, k) && moirai_op_ns(x->q, i, k) > 0) {
            head[n] = x->head[(int64_t)i * x->K + k];
            tail[n++] = x->tail[(int64_t)i * x->K + k];
        }
    return add_loads(x, PAIR_LOAD_DEVICE, k, head, tail, n);
}

static int add_line_loads(pair_programme *x, pair_load_kind kind, int32_t which, int64_t *head, int64_t *tail)
{
    const pair_load any = {kind, which, INT64_MIN, INT64_MIN};
    int32_t n = 0, K = x->K;
    for (int32_t t = 0; t < x->q->n_tensors; t++)
        for (int32_t ab = 0; ab < K * K; ab++) {
            int32_t a = ab / K, b = ab % K;
            if (a == b || !transfer_counts(x, &any, t, a, b) || x->send[(int64_t)t * K + a] == INT64_MAX ||
                x->arrive[(int64_t)t * K + b] == INT64_MAX || moirai_transfer_ns(x->q, t, a, b) == 0)
                continue;
            head[n] = x->send[(int64_t)t * K + a];
            tail[n++] = x->arrive[(int64_t)t * K + b];
        }
    return add_loads(x, kind, which, head, tail, n);
}

int pair_programme_choose_loads(pair_programme *x)
{
    size_t room = (size_t)UTIL_MAX(x->n, x->q->n_tensors * x->K * x->K);
    int64_t *head = util_alloc(2 * room, sizeof *head), *tail = head ? head + room : NULL;
    int rc = head ? 0 : MOIRAI_EFAIL;
    x->n_loads = 0;
    for (int32_t k = 0; k < x->K && !rc; k++)
        rc = add_device_loads(x, k, head, tail);
    for (int32_t k = 0; k < x->K && !rc && x->q->congestion == MOIRAI_CONGESTION_PORT; k++) {
        rc = add_line_loads(x, PAIR_LOAD_SEND, k, head, tail);
        rc = rc ? rc : add_line_loads(x, PAIR_LOAD_RECEIVE, k, head, tail);
    }
    for (int32_t k = 0; k < x->K * x->K && !rc && x->q->congestion == MOIRAI_CONGESTION_CHANNEL; k++)
        rc = add_line_loads(x, PAIR_LOAD_CHANNEL, k, head, tail);
    free(head);
    return rc;
}

/* ---- the programme ---- */

static void number_rows(pair_programme *x)
{
    int32_t K = x->K, E = x->E;
    x->assign_row = 0;
    x->out_row = x->n;
    x->in_row = x->out_row + E * K;
    x->share_row = x->in_row + E * K;
    x->path_row = x->share_row + E * K * K;
    x->end_row = x->path_row + E;
    x->load_row = x->end_row + x->n;
    x->count_row = x->load_row + x->n_loads;
    x->n_rows = x->count_row + x->n_groups * K;
}

static void enter(pair_programme *x, int32_t row, double value)
{
    x->row[x->n_entries] = row;
    x->value[x->n_entries++] = value;
}

static int add_column(pair_programme *x, double cost)
{
    int rc = pricing_lp_add_column(x->lp, cost, x->n_entries, x->row, x->value);
    x->n_entries = 0;
    return rc;
}

static int begin_rows(pair_programme *x)
{
    double *low = util_alloc((size_t)x->n_rows, sizeof *low), *high = util_alloc((size_t)x->n_rows, sizeof *high);
    int rc = low && high ? 0 : MOIRAI_EFAIL;
    for (int32_t r = 0; !rc && r < x->n_rows; r++) {
        bool equal = r < x->share_row;
        const pair_load *load = r >= x->load_row && r < x->count_row ? &x->load[r - x->load_row] : NULL;
        low[r] = r < x->out_row ? 1 : load ? (double)(load->head_ns + load->tail_ns) : 0;
        high[r] = equal ? low[r] : HUGE_VAL;
        if (r >= x->count_row) {
            low[r] = (double)x->least[r - x->count_row];
            high[r] = (double)x->most[r - x->count_row];
        }
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
            enter(x, x->path_row + q->op_in_edge[j], 1);
        for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
            for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                enter(x, x->path_row + e, -1);
        enter(x, x->end_row + i, -1);
        rc = add_column(x, 0);
    }
    for (int32_t i = 0; i < x->n; i++)
        enter(x, x->end_row + i, 1);
    for (int32_t r = 0; r < x->n_loads; r++)
        enter(x, x->load_row + r, 1);
    return rc ? rc : add_column(x, 1);
}

static int add_devices(pair_programme *x, int32_t i)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    int rc = 0;
    for (int32_t k = 0; k < K && !rc; k++) {
        if (!allowed(x, i, k))
            continue;
        double ns = (double)moirai_op_ns(q, i, k);
        enter(x, x->assign_row + i, 1);
        enter(x, x->end_row + i, -ns);
        for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++)
            enter(x, x->in_row + q->op_in_edge[j] * K + k, -1);
        for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
            for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++) {
                enter(x, x->out_row + e * K + k, -1);
                enter(x, x->path_row + e, -ns);
            }
        for (int32_t r = 0; r < x->n_loads; r++)
            if (op_counts(x, &x->load[r], i, k))
                enter(x, x->load_row + r, -ns);
        if (x->n_groups && x->group_of[i] != MOIRAI_NONE)
            enter(x, x->count_row + x->group_of[i] * K + k, 1);
        rc = add_column(x, 0);
    }
    return rc;
}

static void enter_line_loads(pair_programme *x, int32_t t, int32_t a, int32_t b, double ns)
{
    for (int32_t r = 0; r < x->n_loads && a != b; r++)
        if (transfer_counts(x, &x->load[r], t, a, b))
            enter(x, x->load_row + r, -ns);
}

static int add_edge(pair_programme *x, int32_t e)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K, t = q->edge_tensor[e], from = x->from[e], to = q->edge_reader[e];
    int rc = 0;
    for (int32_t ab = 0; ab < K * K && !rc; ab++) {
        int32_t a = ab / K, b = ab % K;
        if (!allowed(x, from, a) || !allowed(x, to, b))
            continue;
        double ns = (double)moirai_transfer_ns(q, t, a, b);
        enter(x, x->out_row + e * K + a, 1);
        enter(x, x->in_row + e * K + b, 1);
        if (ns > 0)
            enter(x, x->path_row + e, -ns);
        if (x->shared[t] && a != b)
            enter(x, x->share_row + e * K * K + ab, -1);
        else if (ns > 0)
            enter_line_loads(x, t, a, b, ns);
        rc = add_column(x, 0);
    }
    return rc;
}

static int add_sends(pair_programme *x, int32_t t)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    int rc = 0;
    for (int32_t ab = 0; ab < K * K && !rc && x->shared[t]; ab++) {
        int32_t a = ab / K, b = ab % K;
        if (a == b)
            continue;
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
            enter(x, x->share_row + e * K * K + ab, 1);
        enter_line_loads(x, t, a, b, (double)moirai_transfer_ns(q, t, a, b));
        rc = add_column(x, 0);
    }
    return rc;
}

int pair_programme_build(pair_programme *x)
{
    number_rows(x);
    int64_t *whole = util_resize(x->dual, (size_t)x->n_rows, sizeof *whole);
    if (whole)
        x->dual = whole;
    int rc = whole ? begin_rows(x) : MOIRAI_EFAIL;
    rc = rc ? rc : add_starts(x);
    for (int32_t i = 0; i < x->n && !rc; i++)
        rc = add_devices(x, i);
    for (int32_t e = 0; e < x->E && !rc; e++)
        rc = add_edge(x, e);
    for (int32_t t = 0; t < x->q->n_tensors && !rc; t++)
        rc = add_sends(x, t);
    return rc;
}

void pair_programme_round(pair_programme *x, const double *dual)
{
    for (int32_t r = 0; r < x->n_rows; r++) {
        double u = dual[r] * (double)UNIT;
        x->dual[r] = u > 1e15 ? (int64_t)1e15 : u < -1e15 ? (int64_t)-1e15 : (int64_t)floor(u + 0.5);
        if (r >= x->share_row && r < x->count_row && x->dual[r] < 0)
            x->dual[r] = 0;
    }
}

static int solve(pair_programme *x)
{
    int rc = pair_programme_build(x);
    double *dual = util_alloc((size_t)x->n_rows, sizeof *dual);
    if (!rc && !dual)
        rc = MOIRAI_EFAIL;
    rc = rc ? rc : pricing_lp_solve_once(x->lp, &x->job->stop, dual, NULL);
    if (!rc)
        pair_programme_round(x, dual);
    pricing_lp_free(x->lp);
    x->lp = NULL;
    free(dual);
    return rc;
}

/* ---- the verdict, in whole numbers ---- */

typedef __int128 wide;

static wide line_price(const pair_programme *x, int32_t t, int32_t a, int32_t b)
{
    wide price = 0;
    for (int32_t r = 0; r < x->n_loads && a != b; r++)
        if (transfer_counts(x, &x->load[r], t, a, b))
            price += x->dual[x->load_row + r];
    return price;
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
        if (!allowed(x, i, k))
            continue;
        wide price = behind, cost = 0;
        for (int32_t r = 0; r < x->n_loads; r++)
            if (op_counts(x, &x->load[r], i, k))
                price += u[x->load_row + r];
        for (int32_t j = q->op_in_off[i]; j < q->op_in_off[i + 1]; j++)
            cost += u[x->in_row + q->op_in_edge[j] * K + k];
        for (int32_t o = q->op_out_off[i]; o < q->op_out_off[i + 1]; o++)
            for (int32_t t = q->op_out[o], e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1]; e++)
                cost += u[x->out_row + e * K + k];
        cost += price * moirai_op_ns(q, i, k);
        if (x->n_groups && x->group_of[i] != MOIRAI_NONE)
            cost -= u[x->count_row + x->group_of[i] * K + k];
        if (!any || cost < least)
            least = cost;
        any = true;
    }
    wide slope = behind - before;
    return least + slope * (slope > 0 ? x->first[i] : x->last[i]);
}

static wide part_of_edge(const pair_programme *x, int32_t e)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K, t = q->edge_tensor[e];
    wide least = 0;
    bool any = false;
    for (int32_t ab = 0; ab < K * K; ab++) {
        int32_t a = ab / K, b = ab % K;
        if (!allowed(x, x->from[e], a) || !allowed(x, q->edge_reader[e], b))
            continue;
        wide price = x->dual[x->path_row + e],
             cost = -(wide)x->dual[x->out_row + e * K + a] - x->dual[x->in_row + e * K + b];
        if (x->shared[t] && a != b)
            cost += x->dual[x->share_row + e * K * K + ab];
        else
            price += line_price(x, t, a, b);
        cost += price * moirai_transfer_ns(q, t, a, b);
        if (!any || cost < least)
            least = cost;
        any = true;
    }
    return least;
}

static wide part_of_sends(const pair_programme *x, int32_t t)
{
    const moirai_problem *q = x->q;
    int32_t K = x->K;
    wide sum = 0;
    for (int32_t ab = 0; ab < K * K && x->shared[t]; ab++) {
        int32_t a = ab / K, b = ab % K;
        wide cost = line_price(x, t, a, b) * moirai_transfer_ns(q, t, a, b);
        for (int32_t e = q->tensor_edge_off[t]; e < q->tensor_edge_off[t + 1] && a != b; e++)
            cost -= x->dual[x->share_row + e * K * K + ab];
        sum += cost < 0 ? cost : 0;
    }
    return sum;
}

/* The Lagrangian's least value over plans of proven_ns .. upper_ns, as a bound of the makespan. */
int64_t pair_programme_evaluate(const pair_programme *x)
{
    wide sum = 0, slope = UNIT;
    for (int32_t r = 0; r < x->n_loads; r++) {
        sum += (wide)x->dual[x->load_row + r] * (x->load[r].head_ns + x->load[r].tail_ns);
        slope -= x->dual[x->load_row + r];
    }
    for (int32_t c = 0; c < x->n_groups * x->K; c++) {
        int64_t u = x->dual[x->count_row + c];
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
    sum += slope * (slope > 0 ? x->proven_ns : x->job->upper_ns);
    if (sum <= 0)
        return 0;
    wide bound = (sum + UNIT - 1) / UNIT;
    return bound > x->job->upper_ns ? x->job->upper_ns : (int64_t)bound;
}

/* ---- ---- */

int pair_programme_prepare(pair_programme *x)
{
    const moirai_problem *q = x->q;
    size_t n = (size_t)x->n, K = (size_t)x->K, E = (size_t)x->E, T = (size_t)q->n_tensors;
    x->from = util_alloc(E, sizeof *x->from);
    x->shared = util_alloc(T, sizeof *x->shared);
    x->head = util_alloc(n * K, sizeof *x->head);
    x->tail = util_alloc(n * K, sizeof *x->tail);
    x->send = util_alloc(T * K, sizeof *x->send);
    x->arrive = util_alloc(T * K, sizeof *x->arrive);
    x->first = util_alloc(n, sizeof *x->first);
    x->last = util_alloc(n, sizeof *x->last);
    size_t longest = 2 * n + 3 * E + 3 * K * K * LEVELS * LEVELS + 9;
    x->row = util_alloc(longest, sizeof *x->row);
    x->value = util_alloc(longest, sizeof *x->value);
    if (!x->from || !x->shared || !x->head || !x->tail || !x->send || !x->arrive || !x->first || !x->last || !x->row ||
        !x->value)
        return MOIRAI_EFAIL;
    for (int32_t e = 0; e < x->E; e++)
        x->from[e] = q->tensor_producer[q->edge_tensor[e]];
    for (int32_t t = 0; t < q->n_tensors; t++)
        x->shared[t] = q->flow == MOIRAI_FLOW_TENSOR && q->tensor_edge_off[t + 1] - q->tensor_edge_off[t] > 1;
    find_windows(x);
    return 0;
}

void pair_static_proof_free(pair_static_proof *proof, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        free(proof[i].load);
        free(proof[i].dual);
        free(proof[i].group_off);
        free(proof[i].group_op);
        for (int32_t j = 0; j < proof[i].n_cases; j++)
            free(proof[i].cases[j].dual);
        free(proof[i].cases);
    }
}

int pair_programme_keep(pair_static_proof *out, const pair_programme *x, int64_t bound_ns)
{
    size_t duals = (size_t)(x->n_rows - x->out_row), loads = (size_t)x->n_loads;
    pair_static_proof proof = {
        .upper_ns = x->job->upper_ns, .bound_ns = bound_ns, .n_loads = x->n_loads, .n_duals = (int64_t)duals};
    proof.load = util_alloc(loads, sizeof *proof.load);
    proof.dual = util_alloc(duals, sizeof *proof.dual);
    if (!proof.load || !proof.dual) {
        pair_static_proof_free(&proof, 1);
        return MOIRAI_EFAIL;
    }
    memcpy(proof.load, x->load, loads * sizeof *proof.load);
    memcpy(proof.dual, x->dual + x->out_row, duals * sizeof *proof.dual);
    *out = proof;
    return 0;
}

int pair_static_lp(int64_t *lower_ns, const moirai_problem *q, const pair_static_task *job, pair_static_proof *proof,
                   int32_t *n_proofs)
{
    *lower_ns = job->proven_ns;
    if (proof)
        *n_proofs = 0;
    if (!pricing_lp_available() || q->n_ops == 0 || job->proven_ns >= job->upper_ns ||
        (int64_t)q->n_edges * q->n_devices * q->n_devices > PAIR_STATIC_CELLS)
        return 0;
    pair_programme x = {
        .q = q, .job = job, .n = q->n_ops, .K = q->n_devices, .E = q->n_edges, .proven_ns = job->proven_ns};
    int32_t rounds = UTIL_MAX(1, UTIL_MIN(job->rounds, PAIR_STATIC_ROUNDS));
    int rc = pair_programme_prepare(&x);
    for (int32_t round = 0; round < rounds && !rc && !util_stopped(&job->stop); round++) {
        rc = pair_programme_choose_loads(&x);
        rc = rc ? rc : solve(&x);
        int64_t bound = rc ? 0 : pair_programme_evaluate(&x);
        bool much = bound > x.proven_ns + x.proven_ns / 500;
        if (!rc && proof && bound > x.proven_ns && !(rc = pair_programme_keep(&proof[*n_proofs], &x, bound)))
            ++*n_proofs;
        x.proven_ns = UTIL_MAX(x.proven_ns, bound);
        if (!much)
            break;
    }
    *lower_ns = x.proven_ns;
    pair_programme_clear(&x);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}
