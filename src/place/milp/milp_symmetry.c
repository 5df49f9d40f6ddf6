/* What can be exchanged without changing anything: devices (problem/equal_devices.h) and operators. Operators i and j are
 * twins if they read the same tensors, cost the same everywhere, and their outputs pair up (size, transfer table,
 * readers); operators of keep-together groups are left out. Twins are linked into chains by number.
 * The tight formulation then asks for one representative only (milp_cuts.c). O(K^2 V + C K^3 + V log V + pairs). */
#include "place/milp/milp.h"

#include <stdlib.h>
#include <string.h>

#include "problem/equal_devices.h"

static bool outputs_equal(const moirai_problem *p, int32_t i, int32_t j)
{
    int32_t n = p->op_out_off[i + 1] - p->op_out_off[i];
    if (p->op_out_off[j + 1] - p->op_out_off[j] != n)
        return false;
    for (int32_t o = 0; o < n; o++) {
        int32_t s = p->op_out[p->op_out_off[i] + o], t = p->op_out[p->op_out_off[j] + o];
        int32_t m = p->tensor_edge_off[s + 1] - p->tensor_edge_off[s];
        if (p->tensor_class[s] != p->tensor_class[t] || p->tensor_bytes[s] != p->tensor_bytes[t] ||
            p->tensor_edge_off[t + 1] - p->tensor_edge_off[t] != m)
            return false;
        if (m > 0 && memcmp(p->edge_reader + p->tensor_edge_off[s], p->edge_reader + p->tensor_edge_off[t],
                            (size_t)m * sizeof *p->edge_reader))
            return false;
    }
    return true;
}

static bool inputs_equal(const moirai_problem *p, int32_t i, int32_t j)
{
    int32_t n = p->op_in_off[i + 1] - p->op_in_off[i];
    return p->op_in_off[j + 1] - p->op_in_off[j] == n &&
           (n == 0 || !memcmp(p->op_in + p->op_in_off[i], p->op_in + p->op_in_off[j], (size_t)n * sizeof *p->op_in));
}

static bool shares_weight(const moirai_problem *p, int32_t i)
{
    bool found = false;
    for (int32_t e = 0; p->n_weights && e < p->weight_reader_off[p->n_weights] && !found; e++)
        found = p->weight_reader[e] == i;
    return found;
}

static bool operators_equal(const moirai_problem *p, int32_t i, int32_t j)
{
    if (shares_weight(p, i) || shares_weight(p, j))
        return false;
    return p->op_group[i] == MOIRAI_NONE && p->op_group[j] == MOIRAI_NONE &&
           p->op_memory_bytes[i] == p->op_memory_bytes[j] &&
           !memcmp(p->op_time_ns + (int64_t)i * p->n_devices, p->op_time_ns + (int64_t)j * p->n_devices,
                   (size_t)p->n_devices * sizeof *p->op_time_ns) &&
           inputs_equal(p, i, j) && outputs_equal(p, i, j);
}

void milp_symmetry(milp_dag *d)
{
    const moirai_problem *p = d->p;
    problem_equal_devices(p, d->device_class);
    /* Twins read the same tensors: only readers of one's first input can be its twins. Operators without inputs
     * would need all pairs; for those the next number alone is tried. */
    for (int32_t i = 0; i < p->n_ops; i++) {
        d->twin[i] = MOIRAI_NONE;
        if (p->op_in_off[i] == p->op_in_off[i + 1]) {
            if (i + 1 < p->n_ops && operators_equal(p, i, i + 1))
                d->twin[i] = i + 1;
            continue;
        }
        int32_t t = p->op_in[p->op_in_off[i]];
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1] && d->twin[i] == MOIRAI_NONE; e++)
            if (p->edge_reader[e] > i && operators_equal(p, i, p->edge_reader[e]))
                d->twin[i] = p->edge_reader[e];
    }
}
