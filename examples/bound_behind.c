/* A bound of one's own: one file, as it would stand in src/bound, and two rows (CONTRIBUTING.md, "Adding a bound";
 * examples/CMakeLists.txt adds them to copies of the files that hold them).
 *
 * *What comes behind an operator is shared out by K devices at best.* Let h(i) be the least start of operator i by
 * longest paths, every operator at its fastest, transfers free, t(i) its least time, and D(i) all operators that follow
 * it. None of D(i) starts before h(i) + t(i), each of them takes its least time or more on one of K devices, and a device
 * runs one at a time: between h(i) + t(i) and the end of any plan, K devices have done the work of D(i). So
 *
 *     makespan >= h(i) + t(i) + ceil(sum of t(j) over D(i) / K),   for every i.
 *
 * More than the critical path where a long beginning fans out, more than the load there, since that shares out the
 * beginning as well. Whole numbers; sums are below 2^61 (docs/model.md). Who follows whom is found 64 operators at a time:
 * O(V (V + E) / 64). */
#include <stdlib.h>

#include "bound/bounds.h"
#include "util/util.h"

typedef struct behind {
    const moirai_problem *p;
    int64_t *least; /* per operator: its least time */
    int64_t *done;  /* its least finish */
    uint64_t *mask; /* which of 64 operators it follows */
    int64_t work[64];
} behind;

static void find_paths(behind *x)
{
    const moirai_problem *p = x->p;
    for (int32_t t = 0; t < p->n_ops; t++) {
        int32_t i = p->topo[t];
        int64_t start = 0, least = INT64_MAX;
        for (int32_t e = p->op_in_off[i]; e < p->op_in_off[i + 1]; e++)
            start = UTIL_MAX(start, x->done[p->tensor_producer[p->op_in[e]]]);
        for (int32_t k = 0; k < p->n_devices; k++)
            if (p->op_devices[i] >> k & 1)
                least = UTIL_MIN(least, moirai_op_ns(p, i, k));
        x->least[i] = least;
        x->done[i] = start + least;
    }
}

/* The work behind each of the 64 operators from `first` on. */
static void find_work(behind *x, int32_t first)
{
    const moirai_problem *p = x->p;
    for (int32_t t = 0; t < p->n_ops; t++) {
        int32_t i = p->topo[t];
        x->mask[i] = 0;
        for (int32_t e = p->op_in_off[i]; e < p->op_in_off[i + 1]; e++) {
            int32_t j = p->tensor_producer[p->op_in[e]];
            x->mask[i] |= x->mask[j] | (j >= first && j - first < 64 ? UINT64_C(1) << (j - first) : 0);
        }
        for (uint64_t left = x->mask[i]; left; left &= left - 1)
            x->work[__builtin_ctzll(left)] += x->least[i];
    }
}

static int find_behind(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    (void)budget;
    size_t n = (size_t)p->n_ops;
    behind x = {.p = p,
                .least = util_alloc(n, sizeof *x.least),
                .done = util_alloc(n, sizeof *x.done),
                .mask = util_alloc(n, sizeof *x.mask)};
    int rc = x.least && x.done && x.mask ? 0 : MOIRAI_EFAIL;
    *lower_ns = 0;
    if (!rc)
        find_paths(&x);
    for (int32_t first = 0; first < p->n_ops && !rc; first += 64) {
        for (int32_t i = 0; i < 64; i++)
            x.work[i] = 0;
        find_work(&x, first);
        for (int32_t i = first; i < p->n_ops && i - first < 64; i++) {
            int64_t behind_ns = (x.work[i - first] + p->n_devices - 1) / p->n_devices;
            *lower_ns = UTIL_MAX(*lower_ns, x.done[i] + behind_ns);
        }
    }
    free(x.least);
    free(x.done);
    free(x.mask);
    return rc;
}

const moirai_bound bound_behind = {
    .name = "behind", .summary = "what comes behind an operator, shared out", .find = find_behind, .plain = true};
