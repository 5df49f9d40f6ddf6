/* One length of the pool: the network of labels, its cuts, and the verdict of their flow. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/pair_tuning.h"
#include "pair/pool_state.h"
#include "util/util.h"

typedef __int128 wide;

void pair_pool_trial_clear(pair_pool_trial *x)
{
    util_release(&x->memory);
    pair_cut_free(&x->net.cut);
    pair_pool_proof_free(&x->proof);
}

/* ---- the network ---- */

/* Node of "operator i starts in label g or later"; label 0 is certain, one beyond the last impossible. */
static int32_t node(const pair_pool_trial *x, int32_t i, int32_t g)
{
    return g <= 0 ? PAIR_CUT_SOURCE : g >= x->label.n[i] ? PAIR_CUT_SINK : 2 + x->label.off[i] - i + g - 1;
}

static int32_t list_arcs(pair_pool_trial *x, int32_t *from, int32_t *to)
{
    int32_t n = 0;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t g = 0; g < x->label.n[i]; g++) {
            int32_t a = node(x, i, g), b = node(x, i, g + 1);
            bool constant = x->label.n[i] == 1;
            x->net.arc[x->label.off[i] + g] = constant ? MOIRAI_NONE : n;
            if (constant)
                continue;
            if (from) {
                from[n] = a;
                to[n] = b;
            }
            n++;
        }
    for (int32_t e = 0; e < x->E; e++) {
        int32_t i = x->arcs->arc[e].from, j = x->arcs->arc[e].to, first = UTIL_MAX(1, 1 + x->label.late[e]);
        x->net.edge_arc_off[e] = n;
        x->net.edge_step[e] = first;
        for (int32_t a = first; a < x->label.n[i]; a++, n++)
            if (from) {
                from[n] = node(x, i, a);
                to[n] = node(x, j, a - x->label.late[e]);
            }
    }
    x->net.edge_arc_off[x->E] = n;
    return n;
}

static int make_network(pair_pool_trial *x)
{
    int32_t arcs = list_arcs(x, NULL, NULL), *from = util_alloc((size_t)arcs, sizeof *from),
            *to = util_alloc((size_t)arcs, sizeof *to);
    int rc = from && to ? 0 : MOIRAI_EFAIL;
    if (!rc)
        list_arcs(x, from, to);
    rc = rc ? rc : pair_cut_new(&x->net.cut, 2 + x->label.off[x->n] - x->n, arcs, from, to);
    free(from);
    free(to);
    return rc;
}

/* Costs as capacities; what is constant adds to the flow. */
static int64_t set_capacities(pair_pool_trial *x)
{
    int64_t flow = 0;
    for (int32_t i = 0; i < x->n; i++)
        for (int32_t at = x->label.off[i]; at < x->label.off[i + 1]; at++) {
            int64_t cost = x->label.cost[at] < 0 ? PAIR_CUT_ALWAYS : x->label.cost[at];
            if (x->net.arc[at] == MOIRAI_NONE) {
                flow += x->label.cost[at] < 0 ? 0 : cost;
                continue;
            }
            x->net.cut.left[2 * x->net.arc[at]] = cost;
            x->net.cut.left[2 * x->net.arc[at] + 1] =
                at > x->label.off[i] && at + 1 < x->label.off[i + 1] ? PAIR_CUT_ALWAYS : 0;
        }
    for (int32_t a = x->net.edge_arc_off[0]; a < x->net.edge_arc_off[x->E]; a++) {
        x->net.cut.left[2 * a] = PAIR_CUT_ALWAYS;
        x->net.cut.left[2 * a + 1] = 0;
    }
    return flow;
}

int32_t pair_pool_cheapest_label(const pair_pool_trial *x, int32_t i)
{
    int32_t g = 0;
    while (g + 1 < x->label.n[i] && x->net.cut.level[node(x, i, g + 1)] < 0)
        g++;
    return g;
}

/* ---- the verdict ---- */

static int64_t flow_of(const pair_pool_trial *x, int32_t e, int32_t step)
{
    int32_t first = x->net.edge_step[e], i = x->arcs->arc[e].from;
    return step < first || step >= x->label.n[i] ? 0 : x->net.cut.left[2 * (x->net.edge_arc_off[e] + step - first) + 1];
}

/* The least of an operator's labels at the multipliers. */
static wide part_of_op(const pair_pool_trial *x, int32_t i)
{
    const pair_pool_arcs *arcs = x->arcs;
    wide least = 0, extra = 0;
    bool any = false;
    for (int32_t g = 0; g < x->label.n[i]; g++) {
        for (int32_t j = arcs->in_off[i]; j < arcs->in_off[i + 1] && g > 0; j++)
            extra -= flow_of(x, arcs->in[j], g + x->label.late[arcs->in[j]]);
        for (int32_t j = arcs->out_off[i]; j < arcs->out_off[i + 1] && g > 0; j++)
            extra += flow_of(x, arcs->out[j], g);
        int64_t cost = x->label.cost[x->label.off[i] + g];
        if (cost >= 0 && (!any || cost + extra < least)) {
            least = cost + extra;
            any = true;
        }
    }
    return least;
}

static bool excludes(const pair_pool_trial *x)
{
    wide sum = 0;
    for (int32_t i = 0; i < x->n; i++)
        sum += part_of_op(x, i);
    return sum > pair_pool_capacity(x);
}

static int keep_proof(pair_pool_trial *x)
{
    pair_pool_proof *p = &x->proof;
    int32_t n = 0;
    p->weight = util_alloc((size_t)x->K, sizeof *p->weight);
    p->price = util_alloc((size_t)p->n_buckets, sizeof *p->price);
    p->flow = util_alloc((size_t)(x->net.edge_arc_off[x->E] - x->net.edge_arc_off[0]), sizeof *p->flow);
    if (!p->weight || !p->price || !p->flow)
        return MOIRAI_EFAIL;
    memcpy(p->weight, x->weight, sizeof *p->weight * (size_t)x->K);
    memcpy(p->price, x->sale.price, sizeof *p->price * (size_t)p->n_buckets);
    p->length_ns = x->length_ns;
    p->step_ns = x->step_ns;
    p->bucket_ns = x->bucket_ns;
    for (int32_t e = 0; e < x->E; e++)
        for (int32_t a = x->net.edge_arc_off[e]; a < x->net.edge_arc_off[e + 1]; a++)
            if (x->net.cut.left[2 * a + 1] > 0)
                p->flow[n++] =
                    (pair_pool_flow){e, x->net.edge_step[e] + a - x->net.edge_arc_off[e], x->net.cut.left[2 * a + 1]};
    p->n_flows = n;
    return 0;
}

/* ---- a length ---- */

static int prepare(pair_pool_trial *x)
{
    size_t n = (size_t)x->n, E = (size_t)x->E, B = (size_t)x->proof.n_buckets;
    UTIL_TAKE(&x->memory, x->sale.price, B);
    UTIL_TAKE(&x->memory, x->sale.paid, B + 1);
    UTIL_TAKE(&x->memory, x->sale.use, B);
    UTIL_TAKE(&x->memory, x->sale.mean, B);
    UTIL_TAKE(&x->memory, x->label.offset, n);
    UTIL_TAKE(&x->memory, x->label.n, n);
    UTIL_TAKE(&x->memory, x->label.late, E);
    UTIL_TAKE(&x->memory, x->label.off, n + 1);
    UTIL_TAKE(&x->memory, x->net.edge_arc_off, E + 1);
    UTIL_TAKE(&x->memory, x->net.edge_step, E);
    if (x->memory.failed)
        return MOIRAI_EFAIL;
    pair_pool_find_windows(x);
    if (x->impossible)
        return 0;
    pair_pool_find_lateness(x);
    for (int32_t i = 0; i < x->n; i++)
        x->label.off[i + 1] = x->label.off[i] + x->label.n[i];
    UTIL_TAKE(&x->memory, x->label.cost, (size_t)x->label.off[n]);
    UTIL_TAKE(&x->memory, x->net.arc, (size_t)x->label.off[n]);
    return x->memory.failed ? MOIRAI_EFAIL : make_network(x);
}

/* Whether prices that have come so far in so many rounds are likely to get there. */
static bool hopeless(double ratio, int32_t rounds)
{
    return rounds >= PAIR_POOL_TRIAL_PATIENCE && ratio < 1 - PAIR_POOL_TRIAL_HOPE / rounds;
}

int pair_pool_try(void *data, int32_t which)
{
    pair_pool_trial *x = (pair_pool_trial *)data + which;
    double best = 0;
    int rc = prepare(x);
    for (int32_t b = 0; !rc && b < x->proof.n_buckets; b++)
        x->sale.mean[b] = 1;
    x->excluded = x->impossible && x->job->head && !x->job->written; /* no proof of it could be written down */
    for (int32_t round = 0; round < x->job->cuts && !rc && !x->impossible; round++) {
        pair_pool_set_prices(x);
        int64_t flow = set_capacities(x), enough = pair_pool_capacity(x);
        pair_cut_fill(&flow, &x->net.cut, enough, &x->job->stop);
        best = fmax(best, (double)flow / (double)UTIL_MAX(enough, 1));
        if (flow > enough && excludes(x)) {
            x->excluded = true;
            return keep_proof(x);
        }
        if (util_stopped(&x->job->stop) || hopeless(best, round + 1))
            break;
        pair_pool_update_shape(x, round);
    }
    return rc;
}
