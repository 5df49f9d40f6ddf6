/* From the duals of GETF's linear programme to a bound in whole nanoseconds.
 *
 * The duals are weights y_k >= 0 of the devices and a flow f along the edges of the graph, f_i through operator i, phi
 * in all, with sum_k y_k + phi = 1. For every plan of makespan M the load of a device is at most M, and so is the
 * length of every path; hence
 *
 *     M = sum_k y_k M + phi M >= sum_i p_i,k(i) (y_k(i) + f_i)
 *
 *       >= sum over groups (or single operators) of min_k sum_i p_ik (y_k + f_i).
 *
 * That holds for any weights and any flow. Here they are rounded to multiples of 1/UNIT such that they add up exactly:
 * the flow starts at the sinks and is handed back to the producers in proportion to the duals, the heaviest edge taking
 * what rounding leaves. The sum is evaluated over the operators themselves in 128-bit integers. How well the solver did
 * (and whether colours were right) decides how good the bound is, not whether it holds. O(E + V K). */
#include "place/list/getf/getf_state.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define UNIT ((int64_t)1 << 40) /* times below 2^43 ns and 2^30 operators stay below 2^113 */

typedef __int128 wide;

static double positive(double x)
{
    return x > 0 ? x : 0;
}

/* A share in 0 .. 1 of `amount`, never more than `left`. */
static int64_t cut_off(double share, int64_t amount, int64_t left)
{
    double part = share * (double)amount;
    return !(part > 0) ? 0 : part >= (double)left ? left : (int64_t)part;
}

/* Weights of the devices in units; returns phi, all that is left of UNIT. */
static int64_t round_weights(place_getf_state *s, const double *dual)
{
    double sum = 0;
    for (int32_t k = 0; k < s->p->n_devices; k++)
        sum += positive(dual[s->load_row[k]]);
    for (int32_t c = 0; c < s->colour.n; c++)
        if (s->sink_row[c] != MOIRAI_NONE)
            sum += positive(dual[s->sink_row[c]]);
    int64_t left = UNIT;
    for (int32_t k = 0; k < s->p->n_devices; k++) {
        s->weight[k] = sum > 0 ? cut_off(positive(dual[s->load_row[k]]) / sum, UNIT, left) : 0;
        left -= s->weight[k];
    }
    return left;
}

static void start_flow(place_getf_state *s, int64_t phi, const double *dual)
{
    const moirai_problem *p = s->p;
    int64_t left = phi;
    int32_t heavy = MOIRAI_NONE;
    double sum = 0;
    for (int32_t c = 0; c < s->colour.n; c++)
        if (s->sink_row[c] != MOIRAI_NONE) {
            sum += positive(dual[s->sink_row[c]]);
            if (heavy == MOIRAI_NONE || dual[s->sink_row[c]] > dual[s->sink_row[heavy]])
                heavy = c;
        }
    for (int32_t i = 0; i < p->n_ops && sum > 0; i++) {
        int32_t c = s->colour.of[i];
        if (s->sink_row[c] == MOIRAI_NONE)
            continue;
        s->flow[i] = cut_off(positive(dual[s->sink_row[c]]) / (sum * s->colour.size[c]), phi, left);
        left -= s->flow[i];
    }
    s->flow[s->colour.op[heavy]] += left; /* the last operator of a graph is a sink: there is a heaviest one */
}

/* The dual of an edge: its row's, shared by all the edges of the row. */
static double edge_dual(const place_getf_state *s, int32_t from, int32_t to, const double *dual)
{
    int32_t c = s->colour.of[from], d = s->colour.of[to], base = s->row_off[0];
    for (int32_t row = s->row_off[c]; row < s->row_off[c + 1]; row++)
        if (s->target[row - base] == d)
            return positive(dual[row]) / s->edges[row - base];
    return 0;
}

static void pass_back(place_getf_state *s, int32_t op, const double *dual)
{
    const moirai_problem *p = s->p;
    int32_t begin = p->op_in_off[op], end = p->op_in_off[op + 1], heavy = MOIRAI_NONE;
    int64_t left = s->flow[op];
    double sum = 0, most = -1;
    if (begin == end || left == 0)
        return;
    for (int32_t j = begin; j < end; j++) {
        int32_t from = p->tensor_producer[p->op_in[j]];
        double d = edge_dual(s, from, op, dual);
        sum += d;
        if (d > most) {
            most = d;
            heavy = from;
        }
    }
    for (int32_t j = begin; j < end && sum > 0; j++) {
        int32_t from = p->tensor_producer[p->op_in[j]];
        int64_t give = cut_off(edge_dual(s, from, op, dual) / sum, s->flow[op], left);
        s->flow[from] += give;
        left -= give;
    }
    s->flow[heavy] += left;
}

/* `cost` is scratch: one number per operator and device, summed up at the leaders. */
static int64_t evaluate(const place_getf_state *s, wide *cost)
{
    const moirai_problem *p = s->p;
    int32_t K = p->n_devices;
    wide total = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t k = 0; k < K; k++)
            if (s->devices[i] >> k & 1)
                cost[(int64_t)s->leader[i] * K + k] += (wide)moirai_op_ns(p, i, k) * (s->weight[k] + s->flow[i]);
    for (int32_t i = 0; i < p->n_ops; i++) {
        wide least = -1;
        for (int32_t k = 0; k < K && s->leader[i] == i; k++)
            if (s->devices[i] >> k & 1 && (least < 0 || cost[(int64_t)i * K + k] < least))
                least = cost[(int64_t)i * K + k];
        total += least > 0 ? least : 0;
    }
    wide lower = (total + UNIT - 1) / UNIT; /* a makespan is whole */
    return lower > INT64_MAX ? INT64_MAX : (int64_t)lower;
}

int place_getf_prove(int64_t *lower_ns, place_getf_state *s, const double *row_dual)
{
    const moirai_problem *p = s->p;
    wide *cost = util_alloc((size_t)p->n_ops * (size_t)p->n_devices, sizeof *cost);
    if (!cost)
        return MOIRAI_EFAIL;
    memset(s->flow, 0, (size_t)p->n_ops * sizeof *s->flow);
    start_flow(s, round_weights(s, row_dual), row_dual);
    for (int32_t r = p->n_ops - 1; r >= 0; r--)
        pass_back(s, p->topo[r], row_dual);
    *lower_ns = evaluate(s, cost);
    free(cost);
    return 0;
}
