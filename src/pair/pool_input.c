/* What the pool of all devices begins with: who waits for whom, and weights of the devices by multiplicative updates,
 * which need no linear programme. */
#include "pair/pool_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pair/pair_tuning.h"
#include "util/util.h"

/* ---- arcs ---- */

/* The least time from the start of an edge's producer to that of its reader. */
static pair_pool_arc arc_of(const moirai_problem *q, int32_t e)
{
    int32_t t = q->edge_tensor[e], i = q->tensor_producer[t], j = q->edge_reader[e];
    pair_pool_arc arc = {i, j, INT64_MAX};
    for (int32_t k = 0; k < q->n_devices; k++)
        for (int32_t l = 0; l < q->n_devices; l++)
            if (q->op_devices[i] >> k & 1 && q->op_devices[j] >> l & 1)
                arc.ns = UTIL_MIN(arc.ns, moirai_op_ns(q, i, k) + moirai_transfer_ns(q, t, k, l));
    return arc;
}

static void sort_arcs(pair_pool_arcs *x, int32_t n_ops)
{
    for (int32_t e = 0; e < x->n; e++) {
        x->out_off[x->arc[e].from + 1]++;
        x->in_off[x->arc[e].to + 1]++;
    }
    for (int32_t i = 0; i < n_ops; i++) {
        x->out_off[i + 1] += x->out_off[i];
        x->in_off[i + 1] += x->in_off[i];
    }
    for (int32_t e = x->n - 1; e >= 0; e--) { /* offsets run back to the beginnings */
        x->out[--x->out_off[x->arc[e].from + 1]] = e;
        x->in[--x->in_off[x->arc[e].to + 1]] = e;
    }
    for (int32_t i = 0; i < n_ops; i++) {
        x->out_off[i] = x->out_off[i + 1];
        x->in_off[i] = x->in_off[i + 1];
    }
    x->out_off[n_ops] = x->in_off[n_ops] = x->n;
}

int pair_pool_find_arcs(pair_pool_arcs *x, const moirai_problem *q, const pair_pool_task *job)
{
    size_t n = (size_t)q->n_ops, E = (size_t)q->n_edges + (size_t)job->n_arcs;
    x->n = (int32_t)E;
    x->arc = util_alloc(E, sizeof *x->arc);
    x->in_off = util_alloc(n + 1, sizeof *x->in_off);
    x->out_off = util_alloc(n + 1, sizeof *x->out_off);
    x->in = util_alloc(E, sizeof *x->in);
    x->out = util_alloc(E, sizeof *x->out);
    if (!x->arc || !x->in_off || !x->out_off || !x->in || !x->out)
        return MOIRAI_EFAIL;
    for (int32_t e = 0; e < q->n_edges; e++)
        x->arc[e] = arc_of(q, e);
    for (int32_t e = 0; e < job->n_arcs; e++)
        x->arc[q->n_edges + e] = job->arc[e];
    sort_arcs(x, q->n_ops);
    return 0;
}

void pair_pool_clear_arcs(pair_pool_arcs *x)
{
    free(x->arc);
    free(x->in_off);
    free(x->out_off);
    free(x->in);
    free(x->out);
}

/* ---- weights ---- */

int pair_pool_find_weights(int64_t *weight, const moirai_problem *q, const util_stop *stop)
{
    int32_t K = q->n_devices;
    double *c = util_alloc(3 * (size_t)K, sizeof *c), *load = c + K, *best = c + 2 * K, most = -1;
    if (!c)
        return MOIRAI_EFAIL;
    for (int32_t k = 0; k < K; k++)
        c[k] = 1.0 / K;
    for (int32_t round = 0; round < PAIR_POOL_INPUT_WEIGHT_ROUNDS && (round == 0 || !util_stopped(stop)); round++) {
        double value = 0, all = 0, sum = 0;
        memset(load, 0, sizeof *load * (size_t)K);
        for (int32_t i = 0; i < q->n_ops; i++) {
            int32_t at = -1;
            double least = HUGE_VAL;
            for (int32_t k = 0; k < K; k++)
                if (q->op_devices[i] >> k & 1 && c[k] * (double)moirai_op_ns(q, i, k) < least) {
                    least = c[k] * (double)moirai_op_ns(q, i, k);
                    at = k;
                }
            if (at < 0)
                continue;
            value += least;
            load[at] += (double)moirai_op_ns(q, i, at);
        }
        if (value > most) {
            most = value;
            memcpy(best, c, sizeof *c * (size_t)K);
        }
        for (int32_t k = 0; k < K; k++)
            all += load[k];
        for (int32_t k = 0; k < K; k++)
            sum += c[k] *= exp((all > 0 ? load[k] / all : 0) / (1 + round / 20.0));
        for (int32_t k = 0; k < K; k++)
            c[k] /= sum;
    }
    for (int32_t k = 0; k < K; k++)
        weight[k] = (int64_t)floor(best[k] * PAIR_POOL_INPUT_WEIGHTS + 0.5);
    free(c);
    return 0;
}
