/* Chains of intervals: operators c(1), c(2), ... of which each precedes the next, and between two of them what follows
 * the one and precedes the other (docs/theory.md, Lemma 9).
 *
 * A good chain has intervals that are small enough to be searched to the end and that hold most of what goes on in
 * their time. Its worth is the sum over its intervals of an estimate of their length: the longest path through the
 * interval or its work shared out over all devices, whichever is more, and a part of the lesser one. An edge that
 * jumps over a chain's operator is lost to the bound, which takes away part of its transfer: so coarse intervals are
 * preferred where residual connections would be cut. The chain of greatest worth is a longest path over pairs of
 * comparable operators. None of this decides what is true: any chain is valid. Noise gives other chains, and the best
 * bound of several counts.
 *
 * Who precedes whom is kept as bits, by topological position: O(V^2 / 8) bytes each way. */
#include "decompose/intervals.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

typedef struct interval {
    int32_t from, to; /* topological positions; -1: the beginning, n_ops: the end */
    int32_t n_ops;
    double path, work; /* ns */
} interval;

struct decompose_intervals {
    const moirai_problem *p;
    int32_t n;
    size_t words;
    uint64_t *before, *after; /* [position * words]: positions that precede, that follow */
    double *least, *share;    /* per position: least time; its time shared out over all devices */
    double *jump;             /* per position: longest of the transfers that jump over it */
    interval *list;           /* by rising `from` */
    size_t n_list, capacity;
    double *path; /* scratch */
    util_memory memory;
};

void decompose_intervals_free(decompose_intervals *x)
{
    if (!x)
        return;
    free(x->list);
    util_release(&x->memory);
    free(x);
}

static bool bit(const uint64_t *row, int32_t z)
{
    return row[z >> 6] >> (z & 63) & 1;
}

static void find_order(decompose_intervals *x)
{
    const moirai_problem *p = x->p;
    size_t W = x->words;
    for (int32_t z = 0; z < x->n; z++) {
        uint64_t *row = x->before + (size_t)z * W;
        for (int32_t i = p->topo[z], j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++) {
            int32_t y = p->topo_rank[p->tensor_producer[p->op_in[j]]];
            const uint64_t *other = x->before + (size_t)y * W;
            for (size_t w = 0; w < W; w++)
                row[w] |= other[w];
            row[y >> 6] |= UINT64_C(1) << (y & 63);
        }
        for (size_t w = 0; w < W; w++)
            for (uint64_t rest = row[w]; rest; rest &= rest - 1)
                x->after[((size_t)w * 64 + (size_t)__builtin_ctzll(rest)) * W + (size_t)(z >> 6)] |= UINT64_C(1)
                                                                                                     << (z & 63);
    }
}

static void find_times(decompose_intervals *x)
{
    const moirai_problem *p = x->p;
    for (int32_t z = 0; z < x->n; z++) {
        int32_t i = p->topo[z];
        double rate = 0, least = (double)moirai_op_least_ns(p, i);
        for (int32_t k = 0; k < p->n_devices; k++)
            if (p->op_devices[i] >> k & 1)
                rate += 1.0 / (double)UTIL_MAX(moirai_op_ns(p, i, k), 1);
        x->least[z] = least;
        x->share[z] = rate > 0 && least > 0 ? 1 / rate : 0;
    }
}

/* The transfer of a tensor where it is quickest. */
static double least_transfer(const moirai_problem *p, int32_t t)
{
    int64_t least = INT64_MAX;
    for (int32_t a = 0; a < p->n_devices; a++)
        for (int32_t b = 0; b < p->n_devices; b++)
            if (a != b)
                least = UTIL_MIN(least, moirai_transfer_ns(p, t, a, b));
    return least == INT64_MAX ? 0 : (double)least;
}

static void find_jumps(decompose_intervals *x)
{
    const moirai_problem *p = x->p;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        double ns = least_transfer(p, t);
        int32_t from = p->topo_rank[p->tensor_producer[t]];
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t to = p->topo_rank[p->edge_reader[e]];
            const uint64_t *after = x->after + (size_t)from * x->words, *before = x->before + (size_t)to * x->words;
            for (int32_t w = from >> 6; w <= to >> 6; w++)
                for (uint64_t rest = after[w] & before[w]; rest; rest &= rest - 1) {
                    double *jump = &x->jump[w * 64 + __builtin_ctzll(rest)];
                    *jump = UTIL_MAX(*jump, ns);
                }
        }
    }
}

/* The interval between two positions, if it has at most `most` operators. */
static int add(decompose_intervals *x, int32_t from, int32_t to, int32_t most, double path)
{
    const uint64_t *after = from >= 0 ? x->after + (size_t)from * x->words : NULL;
    const uint64_t *before = to < x->n ? x->before + (size_t)to * x->words : NULL;
    size_t first = from >= 0 ? (size_t)from >> 6 : 0, last = to < x->n ? (size_t)to >> 6 : x->words - 1;
    int32_t n = 0;
    double work = 0;
    for (size_t w = first; w <= last && n <= most; w++)
        n += __builtin_popcountll((after ? after[w] : ~UINT64_C(0)) & (before ? before[w] : ~UINT64_C(0)));
    if (n > most)
        return 0;
    for (size_t w = first; w <= last; w++)
        for (uint64_t rest = (after ? after[w] : ~UINT64_C(0)) & (before ? before[w] : ~UINT64_C(0)); rest;
             rest &= rest - 1) {
            size_t z = w * 64 + (size_t)__builtin_ctzll(rest);
            work += z < (size_t)x->n ? x->share[z] : 0;
        }
    if (util_grow(&x->list, &x->capacity, x->n_list + 1, sizeof *x->list))
        return MOIRAI_EFAIL;
    x->list[x->n_list++] = (interval){from, to, n, path, work};
    return 0;
}

/* All intervals that begin at a position, with the longest path through each: path[z] from the finish of `from` to the
 * start of z. */
static int add_from(decompose_intervals *x, int32_t from, int32_t most)
{
    const moirai_problem *p = x->p;
    const uint64_t *after = from >= 0 ? x->after + (size_t)from * x->words : NULL;
    double longest = 0;
    int rc = 0;
    for (int32_t z = from + 1; z < x->n && !rc; z++) {
        if (after && !bit(after, z))
            continue;
        double path = 0;
        for (int32_t i = p->topo[z], j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++) {
            int32_t y = p->topo_rank[p->tensor_producer[p->op_in[j]]];
            if (!after || bit(after, y))
                path = UTIL_MAX(path, x->path[y] + x->least[y]);
        }
        x->path[z] = path;
        longest = UTIL_MAX(longest, path + x->least[z]);
        rc = add(x, from, z, most, path);
    }
    return rc ? rc : add(x, from, x->n, most, longest);
}

int decompose_intervals_new(decompose_intervals **out, const moirai_problem *p, int32_t most_ops)
{
    *out = NULL;
    if (p->n_ops == 0 || p->n_ops > DECOMPOSE_INTERVALS_OPS)
        return 0;
    decompose_intervals *x = util_alloc(1, sizeof *x);
    if (!x)
        return MOIRAI_EFAIL;
    size_t n = (size_t)p->n_ops;
    x->p = p;
    x->n = p->n_ops;
    x->words = n / 64 + 1;
    UTIL_TAKE(&x->memory, x->before, n * x->words);
    UTIL_TAKE(&x->memory, x->after, n * x->words);
    UTIL_TAKE(&x->memory, x->least, n);
    UTIL_TAKE(&x->memory, x->share, n);
    UTIL_TAKE(&x->memory, x->jump, n);
    UTIL_TAKE(&x->memory, x->path, n);
    int rc = util_taken_all(&x->memory);
    if (!rc) {
        find_order(x);
        find_times(x);
        find_jumps(x);
    }
    for (int32_t from = -1; from < x->n && !rc; from++)
        rc = add_from(x, from, most_ops);
    if (rc)
        decompose_intervals_free(x);
    else
        *out = x;
    return rc;
}

/* ---- the chain ---- */

static double worth(const decompose_intervals *x, const interval *v, const decompose_interval_rule *rule, util_rng *rng)
{
    double more = UTIL_MAX(v->path, v->work), less = UTIL_MIN(v->path, v->work), value = more + rule->both * less;
    if (rule->noise > 0)
        value *= 1 + rule->noise * (util_rng_real(rng) - 0.5);
    return v->to < x->n ? value + x->least[v->to] - rule->jump * x->jump[v->to] : value;
}

static void mark(const decompose_intervals *x, int32_t from, int32_t to, bool *floating)
{
    const uint64_t *after = from >= 0 ? x->after + (size_t)from * x->words : NULL;
    const uint64_t *before = to < x->n ? x->before + (size_t)to * x->words : NULL;
    for (int32_t z = from + 1; z < UTIL_MIN(to + 1, x->n); z++)
        if (z == to || ((!after || bit(after, z)) && (!before || bit(before, z))))
            floating[x->p->topo[z]] = false;
}

int decompose_intervals_choose(const decompose_intervals *x, const decompose_interval_rule *rule, bool *on_chain,
                               bool *floating)
{
    size_t n = (size_t)x->n;
    util_memory memory = {0};
    double *best = util_take(&memory, n + 2, sizeof *best);  /* [position + 1]: of chains that end there */
    int32_t *from = util_take(&memory, n + 2, sizeof *from); /* the position before; -2: none yet */
    if (memory.failed) {
        util_release(&memory);
        return MOIRAI_EFAIL;
    }
    util_rng rng;
    util_rng_seed(&rng, rule->seed);
    for (size_t z = 1; z < n + 2; z++)
        from[z] = -2;
    for (size_t i = 0; i < x->n_list; i++) { /* by rising `from`: what leads there is settled */
        const interval *v = &x->list[i];
        double value = best[v->from + 1] + worth(x, v, rule, &rng);
        if (v->n_ops > rule->most_ops || (from[v->to + 1] != -2 && value <= best[v->to + 1]))
            continue;
        best[v->to + 1] = value;
        from[v->to + 1] = v->from;
    }
    for (size_t i = 0; i < n; i++) {
        on_chain[i] = false;
        floating[i] = true;
    }
    for (int32_t z = x->n; z >= 0; z = from[z + 1]) {
        mark(x, from[z + 1], z, floating);
        if (z < x->n)
            on_chain[x->p->topo[z]] = true;
    }
    util_release(&memory);
    return 0;
}
