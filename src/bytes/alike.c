/* Classes of equal shape: blocks that differ in numbers alone.
 *
 * Layers that were measured one by one, windows that are shifted or not, the first layer of a stage: same operators,
 * same edges, other times and sizes. They are no copies, so that nothing that is proven of one holds for the other; but
 * prices are valid for every block whatever they were found for, and a plan's devices and order make a plan of the
 * other. So of two classes of equal shape the one that occurs more often leads, and the other begins where it has
 * ended. O(classes^2) comparisons of sums, O(V+E) where those agree. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_state.h"
#include "bytes/bytes_tuning.h"
#include "util/util.h"

static double work(const decompose_block *b)
{
    const moirai_problem *q = &b->problem;
    double sum = 0;
    for (int32_t i = b->first; i < b->first + b->n_interior; i++)
        for (int32_t k = 0; k < q->n_devices; k++)
            sum += q->op_devices[i] >> k & 1 ? (double)moirai_op_ns(q, i, k) : 0;
    return sum;
}

static bool same(const int32_t *a, const int32_t *b, int32_t n)
{
    return n == 0 || !memcmp(a, b, sizeof *a * (size_t)n);
}

/* Operators, edges, allowed devices, groups, components and kinds agree. */
static bool same_shape(const decompose_block *a, const decompose_block *b)
{
    const moirai_problem *p = &a->problem, *q = &b->problem;
    if (p->n_ops != q->n_ops || p->n_tensors != q->n_tensors || p->n_edges != q->n_edges || a->entry != b->entry ||
        a->exit != b->exit || a->n_components != b->n_components || a->n_kinds != b->n_kinds)
        return false;
    for (int32_t i = a->first; i < a->first + a->n_interior; i++)
        if (p->op_devices[i] != q->op_devices[i] || p->op_group[i] != q->op_group[i])
            return false;
    return same(p->op_out_off, q->op_out_off, p->n_ops + 1) &&
           same(p->tensor_edge_off, q->tensor_edge_off, p->n_tensors + 1) &&
           same(p->edge_reader, q->edge_reader, p->n_edges) &&
           same(a->component_kind, b->component_kind, a->n_components) &&
           same(a->component_off, b->component_off, a->n_components + 1) &&
           same(a->component_op, b->component_op, a->n_interior) &&
           decompose_block_shared_tensor(a) == decompose_block_shared_tensor(b);
}

static bool leads(const pair_chain *c, int32_t a, int32_t b)
{
    int32_t x = c->s->class_count[a], y = c->s->class_count[b];
    return x != y ? x > y : a < b;
}

/* Classes in the order in which they lead. */
static void sort_by_lead(const pair_chain *c, int32_t *order)
{
    for (int32_t i = 0; i < c->s->n_classes; i++) {
        int32_t at = i;
        for (; at > 0 && leads(c, i, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

int bytes_find_alike(bytes_prices *m)
{
    const pair_chain *c = m->c;
    int32_t n = c->s->n_classes;
    m->alike = util_alloc((size_t)n, sizeof *m->alike);
    int32_t *order = util_alloc((size_t)n, sizeof *order);
    double *sum = util_alloc((size_t)n, sizeof *sum);
    bool done = m->alike && order && sum;
    if (done)
        sort_by_lead(c, order);
    for (int32_t i = 0; i < n && done; i++) {
        int32_t x = order[i];
        m->alike[x] = -1;
        sum[x] = c->block[x] && c->block[x]->n_interior ? work(c->block[x]) : 0;
        for (int32_t j = 0; j < i && m->alike[x] < 0 && sum[x] > 0; j++) {
            int32_t y = order[j]; /* who has a class of equal shape does not lead */
            if (m->alike[y] < 0 && fabs(sum[x] - sum[y]) < BYTES_ALIKE_ALIKE * sum[x] &&
                same_shape(c->block[x], c->block[y]))
                m->alike[x] = y;
        }
    }
    free(order);
    free(sum);
    return done ? 0 : MOIRAI_EFAIL;
}
