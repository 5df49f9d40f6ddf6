/* Weights that several operators read.
 *
 * A device that runs any of the readers holds the weight once. That is no sum over operators, so bounds and searches
 * that only add up leave these bytes out, which can only make their problem easier: what they prove stays true, and
 * what they find is checked against the whole need, as the simulator and the checker count it. Where a weight has one
 * reader, or all of its readers must share a device, it is that reader's own, and nothing is left out. */
#include "problem/problem_build.h"
#include "problem/device_set.h"

#include <stdlib.h>
#include <string.h>

/* Do all readers share a device whatever the plan? */
static bool is_private(const moirai_problem *p, int32_t w)
{
    int32_t begin = p->weight_reader_off[w], end = p->weight_reader_off[w + 1],
            group = p->op_group[p->weight_reader[begin]];
    for (int32_t e = begin + 1; e < end; e++)
        if (group == MOIRAI_NONE || p->op_group[p->weight_reader[e]] != group)
            return false;
    return true;
}

void problem_own_weights(moirai_problem *p)
{
    int32_t n = 0, used = 0;
    for (int32_t w = 0; w < p->n_weights; w++) {
        int32_t begin = p->weight_reader_off[w], end = p->weight_reader_off[w + 1];
        if (begin == end || !p->weight_bytes[w])
            continue;
        if (is_private(p, w)) {
            p->op_memory_bytes[p->weight_reader[begin]] += p->weight_bytes[w];
            continue;
        }
        memmove(p->weight_reader + used, p->weight_reader + begin, sizeof *p->weight_reader * (size_t)(end - begin));
        p->weight_name[n] = p->weight_name[w];
        p->weight_bytes[n] = p->weight_bytes[w];
        p->weight_reader_off[n++] = used;
        used += end - begin;
    }
    p->n_weights = n;
    if (p->weight_reader_off)
        p->weight_reader_off[n] = used;
}

int problem_weights_by_op(const moirai_problem *p, int32_t **off_out, int32_t **weight_out)
{
    size_t reads = p->n_weights ? (size_t)p->weight_reader_off[p->n_weights] : 0;
    int32_t *off = util_alloc((size_t)p->n_ops + 2, sizeof *off), *weight = util_alloc(reads, sizeof *weight);
    *off_out = off;
    *weight_out = weight;
    if (!off || !weight)
        return MOIRAI_EFAIL;
    for (size_t e = 0; e < reads; e++)
        off[p->weight_reader[e] + 2]++;
    for (int32_t i = 0; i < p->n_ops; i++)
        off[i + 2] += off[i + 1];
    for (int32_t w = 0; w < p->n_weights; w++)
        for (int32_t e = p->weight_reader_off[w]; e < p->weight_reader_off[w + 1]; e++)
            weight[off[p->weight_reader[e] + 1]++] = w;
    return 0;
}

void moirai_problem_add_weights(const moirai_problem *p, const int32_t *op_device, int64_t *need_bytes)
{
    for (int32_t w = 0; w < p->n_weights; w++) {
        device_set there = {{0}};
        for (int32_t e = p->weight_reader_off[w]; e < p->weight_reader_off[w + 1]; e++)
            if (op_device[p->weight_reader[e]] >= 0)
                device_set_add(&there, op_device[p->weight_reader[e]]);
        DEVICE_SET_EACH(k, &there)
            need_bytes[k] += p->weight_bytes[w];
    }
}
