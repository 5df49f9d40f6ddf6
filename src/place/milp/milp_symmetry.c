/* What can be exchanged without changing anything: devices and operators.
 *
 * Devices a and b are interchangeable if swapping them leaves memories, operator times and every transfer table as
 * they are; that is an equivalence, so classes are represented by their least device. Operators i and j are
 * twins if they read the same tensors, cost the same everywhere, and their outputs pair up (size, transfer table,
 * readers); operators of keep-together groups are left out. Twins are linked into chains by number.
 * The tight formulation then asks for one representative only (milp_cuts.c). O(K^2 V + C K^3 + V log V + pairs). */
#include "place/milp/milp.h"

#include <stdlib.h>
#include <string.h>

static bool devices_equal(const moirai_problem *p, int32_t a, int32_t b)
{
    int32_t K = p->n_devices;
    if (p->device_memory_bytes[a] != p->device_memory_bytes[b])
        return false;
    for (int32_t i = 0; i < p->n_ops; i++)
        if (moirai_op_ns(p, i, a) != moirai_op_ns(p, i, b) ||
            (p->op_devices[i] >> a & 1) != (p->op_devices[i] >> b & 1))
            return false;
    for (int32_t c = 0; c < p->n_classes; c++) {
        const int64_t *table = p->class_transfer_ns + (int64_t)c * K * K;
        if (table[a * K + b] != table[b * K + a])
            return false;
        for (int32_t k = 0; k < K; k++)
            if (k != a && k != b && (table[a * K + k] != table[b * K + k] || table[k * K + a] != table[k * K + b]))
                return false;
    }
    return true;
}

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
    for (int32_t b = 0; b < p->n_devices; b++) {
        d->device_class[b] = b;
        for (int32_t a = 0; a < b && d->device_class[b] == b; a++)
            if (d->device_class[a] == a && devices_equal(p, a, b))
                d->device_class[b] = a;
    }
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
