/* How many rows a model would have, before any memory is taken for it.
 *
 * Almost all rows come from pairs: comparable operators (4a of the paper formulation), incomparable operators (4e),
 * incomparable flows (4g). Sixty-four sources at a time are pushed through the topological order as one word per
 * operator, so that 50,000 operators need no 50,000^2 bits. Flows (i,j) and (a,b) are comparable if j is or precedes a,
 * so they are counted by operator pairs weighted with in- and out-degrees. The tight count ignores time windows, which
 * only take rows away. O(V E / 64 + V^2). */
#include "place/milp/milp.h"

#include <stdlib.h>
#include <string.h>

typedef struct pair_counts {
    double ops_comparable, flows_comparable;
} pair_counts;

static void count_block(pair_counts *n, const moirai_problem *p, int32_t first, uint64_t *seen)
{
    int32_t m = UTIL_MIN(64, p->n_ops - first);
    memset(seen, 0, (size_t)p->n_ops * sizeof *seen);
    for (int32_t r = first; r < p->n_ops; r++) {
        int32_t i = p->topo[r];
        for (int32_t e = p->op_in_off[i]; e < p->op_in_off[i + 1]; e++)
            seen[i] |= seen[p->tensor_producer[p->op_in[e]]];
        n->ops_comparable += __builtin_popcountll(seen[i]);
        if (r < first + m)
            seen[i] |= UINT64_C(1) << (r - first);
        int64_t out = 0;
        for (int32_t o = p->op_out_off[i]; o < p->op_out_off[i + 1]; o++)
            out += p->tensor_edge_off[p->op_out[o] + 1] - p->tensor_edge_off[p->op_out[o]];
        for (uint64_t bits = out ? seen[i] : 0; bits; bits &= bits - 1) {
            int32_t j = p->topo[first + __builtin_ctzll(bits)];
            n->flows_comparable += (double)out * (p->op_in_off[j + 1] - p->op_in_off[j]);
        }
    }
}

int milp_rows_estimate(int64_t *rows, const moirai_problem *p, moirai_formulation f)
{
    uint64_t *seen = util_alloc((size_t)p->n_ops, sizeof *seen);
    if (!seen)
        return MOIRAI_EFAIL;
    pair_counts n = {0, 0};
    for (int32_t first = 0; first < p->n_ops; first += 64)
        count_block(&n, p, first, seen);
    free(seen);
    double V = p->n_ops, E = p->n_edges, K = p->n_devices, used = 0;
    double op_pairs = V * (V - 1) / 2 - n.ops_comparable, all = E * (E - 1) / 2;
    double flow_pairs = UTIL_MAX(all - n.flows_comparable, 0);
    if (p->flow == MOIRAI_FLOW_TENSOR && all > 0) { /* flows are (tensor, device): take the share of the edges' */
        for (int32_t t = 0; t < p->n_tensors; t++)
            used += p->tensor_edge_off[t] < p->tensor_edge_off[t + 1] ? K : 0;
        flow_pairs *= used * (used - 1) / 2 / all;
    }
    if (p->congestion == MOIRAI_CONGESTION_NONE)
        flow_pairs = 0;
    double ports = p->congestion == MOIRAI_CONGESTION_PORT ? 2 * K : K * (K - 1), sum;
    if (p->flow == MOIRAI_FLOW_TENSOR) /* flows to two devices share senders only */
        ports = p->congestion == MOIRAI_CONGESTION_PORT ? K : (K - 1) / K;
    if (f == MOIRAI_FORMULATION_PAPER)
        sum = 3 * V + E * (K * K + 2 * K + 2) + n.ops_comparable + n.flows_comparable + 2 * K * op_pairs +
              2 * ports * flow_pairs;
    else
        sum = 3 * V + E * (2 * K + 3) + (K + 3) * op_pairs + (ports + 3) * flow_pairs;
    *rows = sum < 9e18 ? (int64_t)sum : INT64_MAX;
    return 0;
}

int moirai_milp_measure(moirai_milp_size *out, const moirai_problem *p, moirai_formulation f, const moirai_plan *start)
{
    milp_program *g;
    int rc = milp_program_new(&g, p, f, start ? start->makespan_ns : -1, -1, NULL);
    if (rc)
        return rc;
    *out = (moirai_milp_size){g->m.n_rows, g->m.n_cols, 0, g->m.n_nonzeros};
    for (int32_t c = 0; c < g->m.n_cols; c++)
        out->binaries += g->m.col_kind[c] == MILP_BINARY;
    milp_program_free(g);
    return 0;
}

int moirai_formulation_parse(moirai_formulation *out, const char *text)
{
    if (!strcmp(text, "tight"))
        *out = MOIRAI_FORMULATION_TIGHT;
    else if (!strcmp(text, "paper"))
        *out = MOIRAI_FORMULATION_PAPER;
    else
        return moirai_error(MOIRAI_EUSAGE, "formulation '%s': tight or paper", text);
    return 0;
}

const char *moirai_formulation_name(moirai_formulation f)
{
    return f == MOIRAI_FORMULATION_PAPER ? "paper" : "tight";
}
