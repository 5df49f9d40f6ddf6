/* Load rows of the static programme, found where its solution violates them.
 *
 * A row is a resource and a set S of its tasks: T >= (least head in S) + (sum over S of what is chosen) + (least tail
 * in S), valid where the two ends sum to no more than is proven (static_lp.c). There are as many as there are pairs of
 * a head and a tail, thousands for a block of fifty operators, and a few dozen bind; a coarse grid of them loses 5 % of
 * the bound of a layer of experts. So the programme begins with none, and each solution is searched for the rows that
 * it violates most: tasks in order of their tails, once for each head, O(tasks^2) for a resource.
 *
 * In the verdict a row counts *all* tasks
 * beyond its two ends: no fewer than S, which proves no less. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/static/static_state.h"
#include "pair/static/static_tuning.h"
#include "util/util.h"

typedef struct load_task {
    int64_t head_ns, tail_ns;
    double load; /* that the solution puts on the resource */
    int32_t id;
} load_task;

typedef struct violated_row {
    double by;
    int64_t head_ns, tail_ns;
} violated_row;

bool pair_load_counts_op(const pair_programme *x, const pair_load *r, int32_t i, int32_t k)
{
    return r->kind == PAIR_LOAD_DEVICE && r->which == k && x->at.head[(int64_t)i * x->K + k] >= r->head_ns &&
           x->at.tail[(int64_t)i * x->K + k] >= r->tail_ns;
}

static bool uses(const pair_programme *x, const pair_load *r, int32_t a, int32_t b)
{
    return r->kind == PAIR_LOAD_SEND      ? r->which == a
           : r->kind == PAIR_LOAD_RECEIVE ? r->which == b
                                          : r->kind == PAIR_LOAD_CHANNEL && r->which == a * x->K + b;
}

bool pair_load_counts_transfer(const pair_programme *x, const pair_load *r, int32_t t, int32_t a, int32_t b)
{
    return uses(x, r, a, b) && x->at.send[(int64_t)t * x->K + a] >= r->head_ns &&
           x->at.arrive[(int64_t)t * x->K + b] >= r->tail_ns;
}

/* ---- tasks ---- */

static bool possible(const pair_programme *x, int32_t t, int32_t a, int32_t b)
{
    bool any = false;
    for (int32_t e = x->q->tensor_edge_off[t]; e < x->q->tensor_edge_off[t + 1] && !any; e++)
        any = x->edges.way[e] != PAIR_WAY_LIGHT && x->at.cell[((int64_t)e * x->K + a) * x->K + b];
    return a != b && any && moirai_transfer_ns(x->q, t, a, b) > 0;
}

/* How much of tensor t the solution sends from a to b; flow edge: to all readers together. */
static double part_sent(const pair_programme *x, int32_t t, int32_t ab)
{
    int32_t cells = x->K * x->K;
    double sum = 0;
    if (x->edges.shared[t])
        return x->column.send[t * cells + ab] < 0 ? 0 : x->found.column_value[x->column.send[t * cells + ab]];
    for (int32_t e = x->q->tensor_edge_off[t]; e < x->q->tensor_edge_off[t + 1]; e++)
        sum += x->column.edge[e * cells + ab] < 0 ? 0 : x->found.column_value[x->column.edge[e * cells + ab]];
    return sum;
}

static int32_t list_ops(const pair_programme *x, int32_t k, load_task *task)
{
    int32_t n = 0;
    for (int32_t i = 0; i < x->n; i++) {
        int64_t ns = pair_programme_allows(x, i, k) ? moirai_op_ns(x->q, i, k) : 0;
        if (ns > 0)
            task[n++] = (load_task){x->at.head[(int64_t)i * x->K + k], x->at.tail[(int64_t)i * x->K + k],
                                    (double)ns * x->found.column_value[x->column.op[i * x->K + k]], i};
    }
    return n;
}

static int32_t list_transfers(const pair_programme *x, const pair_load *r, load_task *task)
{
    int32_t n = 0, K = x->K;
    for (int32_t t = 0; t < x->q->n_tensors; t++)
        for (int32_t ab = 0; ab < K * K; ab++)
            if (uses(x, r, ab / K, ab % K) && possible(x, t, ab / K, ab % K))
                task[n++] = (load_task){x->at.send[(int64_t)t * K + ab / K], x->at.arrive[(int64_t)t * K + ab % K],
                                        (double)moirai_transfer_ns(x->q, t, ab / K, ab % K) * part_sent(x, t, ab),
                                        t * K * K + ab};
    return n;
}

/* ---- rows ---- */

static void enter_task(pair_programme *x, pair_load_kind kind, int32_t k, int32_t id)
{
    int32_t cells = x->K * x->K;
    if (kind == PAIR_LOAD_DEVICE) {
        pair_programme_enter(x, x->column.op[id * x->K + k], -(double)moirai_op_ns(x->q, id, k) / x->unit_ns);
        return;
    }
    int32_t t = id / cells, ab = id % cells;
    double time = (double)moirai_transfer_ns(x->q, t, ab / x->K, ab % x->K) / x->unit_ns;
    if (x->edges.shared[t] && x->column.send[id] >= 0)
        pair_programme_enter(x, x->column.send[id], -time);
    for (int32_t e = x->q->tensor_edge_off[t]; e < x->q->tensor_edge_off[t + 1] && !x->edges.shared[t]; e++)
        if (x->column.edge[e * cells + ab] >= 0)
            pair_programme_enter(x, x->column.edge[e * cells + ab], -time);
}

/* An operator that reads two tensors of a pinned one has its column twice. */
static void merge_entries(pair_programme *x)
{
    int32_t n = 0;
    for (int32_t i = 0; i < x->line.n; i++) {
        int32_t at = 0;
        while (at < n && x->line.place[at] != x->line.place[i])
            at++;
        if (at < n) {
            x->line.value[at] += x->line.value[i];
        } else {
            x->line.place[n] = x->line.place[i];
            x->line.value[n++] = x->line.value[i];
        }
    }
    x->line.n = n;
}

static int add_row(pair_programme *x, const pair_load *row, const load_task *task, int32_t n)
{
    if (util_grow(&x->loads.load, &x->loads.capacity, (size_t)x->loads.n + 1, sizeof *x->loads.load))
        return MOIRAI_EFAIL;
    pair_programme_enter(x, x->column.time, 1);
    for (int32_t i = 0; i < n; i++)
        if (task[i].head_ns >= row->head_ns && task[i].tail_ns >= row->tail_ns)
            enter_task(x, row->kind, row->which, task[i].id);
    merge_entries(x);
    x->loads.load[x->loads.n++] = *row;
    x->row.n++;
    int rc = pricing_lp_add_row(x->lp, (double)(row->head_ns + row->tail_ns) / x->unit_ns, HUGE_VAL, x->line.n,
                                x->line.place, x->line.value);
    x->line.n = 0;
    return rc;
}

/* ---- separation ---- */

static int by_tail(const void *a, const void *b)
{
    const load_task *x = a, *y = b;
    return x->tail_ns != y->tail_ns ? (x->tail_ns < y->tail_ns) - (x->tail_ns > y->tail_ns) : x->id - y->id;
}

/* Keeps the few that are violated most, one for each head. */
static void keep(violated_row *best, int32_t *n, const violated_row *row)
{
    int32_t at = *n;
    if (at == STATIC_LOADS_ROWS_AT_ONCE && best[at - 1].by >= row->by)
        return;
    if (at < STATIC_LOADS_ROWS_AT_ONCE)
        ++*n;
    else
        at--;
    for (; at > 0 && best[at - 1].by < row->by; at--)
        best[at] = best[at - 1];
    best[at] = *row;
}

/* Of tasks by falling tails: for each head, the tail at which the row is violated most. */
static int32_t most_violated(const pair_programme *x, const load_task *task, int32_t n, violated_row *best)
{
    double length = x->found.column_value[x->column.time] * x->unit_ns, least = STATIC_LOADS_VIOLATED * length;
    int32_t m = 0;
    for (int32_t h = 0; h < n; h++) {
        int64_t head = task[h].head_ns;
        bool again = task[h].load <= 0;
        for (int32_t i = 0; i < h && !again; i++)
            again = task[i].head_ns == head && task[i].load > 0;
        violated_row row = {.by = 0};
        double sum = 0;
        for (int32_t i = 0; i < n && !again; i++) {
            sum += task[i].head_ns >= head ? task[i].load : 0;
            double by = (double)(head + task[i].tail_ns) + sum - length;
            if (by > fmax(row.by, least) && head <= x->proven_ns - task[i].tail_ns)
                row = (violated_row){by, head, task[i].tail_ns};
        }
        if (row.by > 0)
            keep(best, &m, &row);
    }
    return m;
}

static int separate(pair_programme *x, pair_load_kind kind, int32_t which, load_task *task, int32_t *added)
{
    pair_load row = {kind, which, 0, 0};
    violated_row best[STATIC_LOADS_ROWS_AT_ONCE];
    int32_t n = kind == PAIR_LOAD_DEVICE ? list_ops(x, which, task) : list_transfers(x, &row, task);
    int rc = 0;
    if (n)
        qsort(task, (size_t)n, sizeof *task, by_tail);
    int32_t m = most_violated(x, task, n, best);
    for (int32_t i = 0; i < m && !rc && x->loads.n < STATIC_LOADS_MOST_ROWS; i++) {
        row.head_ns = best[i].head_ns;
        row.tail_ns = best[i].tail_ns;
        rc = add_row(x, &row, task, n);
        ++*added;
    }
    return rc;
}

int pair_loads_separate(pair_programme *x, int32_t *added)
{
    int32_t K = x->K;
    size_t most = (size_t)UTIL_MAX(x->n, x->q->n_tensors * K * K);
    load_task *task = util_alloc(most, sizeof *task);
    int rc = task ? 0 : MOIRAI_EFAIL;
    *added = 0;
    for (int32_t k = 0; k < K && !rc; k++)
        rc = separate(x, PAIR_LOAD_DEVICE, k, task, added);
    for (int32_t k = 0; k < K && !rc && x->q->congestion == MOIRAI_CONGESTION_PORT; k++) {
        rc = separate(x, PAIR_LOAD_SEND, k, task, added);
        rc = rc ? rc : separate(x, PAIR_LOAD_RECEIVE, k, task, added);
    }
    for (int32_t k = 0; k < K * K && !rc && x->q->congestion == MOIRAI_CONGESTION_CHANNEL; k++)
        rc = separate(x, PAIR_LOAD_CHANNEL, k, task, added);
    free(task);
    return rc;
}
