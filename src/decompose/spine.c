/* Near-cuts and floating work.
 *
 * In an encoder-decoder no operator is comparable with all others: while the encoder runs, the decoder can begin; while
 * the decoder runs, the keys and values that its later layers take from the encoder's output can be computed at any
 * time. But what spoils the cuts is little work. Without it -- it *floats* -- the rest, the *spine*, has cuts like any
 * deep network, and whatever is proven of the spine holds for the whole (docs/theory.md, Lemma 8). An operator of the whole
 * is a near-cut if it is a cut of the spine.
 *
 * Which operators should float? Those that are incomparable with much: the work W(i) that is neither before nor after i
 * is a large part of the network for floating work, one layer's branches at most for everything else. So the candidates
 * are the sets {i : W(i) >= w}, one for each w, and the best has the least
 *     (sum over blocks of the spine of (work)^2) / (all work)^2  +  FLOAT_COST * (work that floats) / (all work):
 * blocks as small as possible, and little left out. A set is taken if it at least halves that sum for the network as it
 * is.
 *
 * W needs the transitive closure, 64 operators at a time: one sweep of masks each way, and sums of weights by bytes of
 * a mask. O(V (V + E) / 64) time, O(V) memory; it is looked at only where a block holds much of the network. */
#include "decompose/spine.h"

#include <stdlib.h>

#include "decompose/cuts.h"
#include "problem/op_part.h"
#include "util/util.h"

#define LARGE_BLOCK 0.12 /* of the work: networks whose blocks are smaller do well without near-cuts */
#define LARGE_OPS 48     /* and so do blocks of fewer operators */
#define FLOAT_COST 0.25
#define MOST_FLOATING 0.35 /* of the work: the bound does not see it */
#define MOST_SETS 64       /* that are tried */
#define MOST_WORK 2e10     /* of W: half a minute; larger networks are taken as they are */

typedef struct finder {
    const moirai_problem *p;
    const util_stop *stop;
    int64_t *weight; /* least time of each operator */
    int64_t *apart;  /* W */
    double total;
    uint64_t *mask;    /* scratch: of the sweeps */
    int32_t *by_apart; /* operators, falling W */
    bool *is_cut, *floating;
} finder;

/* ---- W ---- */

/* Sums of the weights of 64 operators, by the eight bytes of a mask. */
typedef struct byte_sums {
    int64_t sum[8][256];
} byte_sums;

static void fill_sums(byte_sums *s, const finder *x, int32_t first, int32_t n)
{
    for (int32_t byte = 0; byte < 8; byte++) {
        s->sum[byte][0] = 0;
        for (int32_t m = 1; m < 256; m++) {
            int32_t z = byte * 8 + __builtin_ctz((unsigned)m);
            s->sum[byte][m] = s->sum[byte][m & (m - 1)] + (z < n ? x->weight[x->p->topo[first + z]] : 0);
        }
    }
}

static int64_t sum_of(const byte_sums *s, uint64_t mask)
{
    int64_t sum = 0;
    for (int32_t byte = 0; mask; byte++, mask >>= 8)
        sum += s->sum[byte][mask & 255];
    return sum;
}

static uint64_t own_bit(int32_t z, int32_t first, int32_t n)
{
    return z >= first && z < first + n ? UINT64_C(1) << (z - first) : 0;
}

/* Takes from W of every operator what those at positions first .. first+n-1 weigh that reach it or are reached. */
static void compare_with(finder *x, const byte_sums *s, int32_t first, int32_t n)
{
    const moirai_problem *p = x->p;
    for (int32_t z = first; z < p->n_ops; z++) {
        int32_t i = p->topo[z];
        uint64_t mask = own_bit(z, first, n);
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++) {
            int32_t from = p->tensor_producer[p->op_in[j]];
            mask |= p->topo_rank[from] >= first ? x->mask[from] : 0;
        }
        x->mask[i] = mask;
        x->apart[i] -= sum_of(s, mask);
    }
    for (int32_t z = UTIL_MIN(first + n, p->n_ops) - 1; z >= 0; z--) {
        int32_t i = p->topo[z];
        uint64_t mask = 0;
        for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++) {
            int32_t t = p->op_out[j];
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
                int32_t to = p->edge_reader[e];
                mask |= p->topo_rank[to] < first + n ? x->mask[to] : 0;
            }
        }
        x->apart[i] -= sum_of(s, mask); /* its own weight was taken off above */
        x->mask[i] = mask | own_bit(z, first, n);
    }
}

static int weigh(finder *x)
{
    const moirai_problem *p = x->p;
    byte_sums *sums = util_alloc(1, sizeof *sums);
    if (!sums)
        return MOIRAI_EFAIL;
    int64_t total = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        total += x->weight[i];
    for (int32_t i = 0; i < p->n_ops; i++)
        x->apart[i] = total;
    for (int32_t first = 0; first < p->n_ops && !util_stopped(x->stop); first += 64) {
        int32_t n = UTIL_MIN(64, p->n_ops - first);
        fill_sums(sums, x, first, n);
        compare_with(x, sums, first, n);
    }
    free(sums);
    return 0;
}

/* ---- the choice ---- */

/* Work of the blocks between the cuts that remain: sum of squares, and the largest. */
static int judge(double *squares, double *largest, finder *x)
{
    const moirai_problem *p = x->p;
    int rc = decompose_cuts_find(x->is_cut, p, x->floating);
    double block = 0;
    int32_t ops = 0;
    *squares = *largest = 0;
    for (int32_t z = 0; z <= p->n_ops && !rc; z++) {
        bool ends = z == p->n_ops || x->is_cut[z];
        if (ends) {
            *squares += block * block;
            *largest = ops >= LARGE_OPS && block > *largest ? block : *largest;
            block = ops = 0;
        }
        if (z == p->n_ops || x->floating[p->topo[z]])
            continue;
        double work = (double)x->weight[p->topo[z]] / x->total;
        if (ends) {
            *squares += work * work;
        } else {
            block += work;
            ops++;
        }
    }
    return rc;
}

static int by_falling_apart(const void *a, const void *b, void *data)
{
    const finder *x = data;
    int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (x->apart[i] != x->apart[j])
        return x->apart[i] > x->apart[j] ? -1 : 1;
    return i - j;
}

/* The best of the sets {W >= w}; *n_best gets how many of by_apart it has, 0 for none. */
static int choose(int32_t *n_best, finder *x, double whole)
{
    const moirai_problem *p = x->p;
    double best = 0.5 * whole, work = 0, tried_work = 0;
    int32_t n = 0, tried = 0;
    *n_best = 0;
    while (n < p->n_ops && tried < MOST_SETS && !util_stopped(x->stop)) {
        int64_t apart = x->apart[x->by_apart[n]];
        for (; n < p->n_ops && x->apart[x->by_apart[n]] == apart; n++) {
            x->floating[x->by_apart[n]] = true;
            work += (double)x->weight[x->by_apart[n]] / x->total;
        }
        if (apart == 0 || work > MOST_FLOATING)
            break;
        if (tried && work - tried_work < MOST_FLOATING / MOST_SETS / 2)
            continue; /* hardly another set */
        tried_work = work;
        tried++;
        double squares, largest;
        int rc = judge(&squares, &largest, x);
        if (rc)
            return rc;
        if (squares + FLOAT_COST * work < best) {
            best = squares + FLOAT_COST * work;
            *n_best = n;
        }
    }
    for (int32_t i = 0; i < n; i++)
        x->floating[x->by_apart[i]] = i < *n_best;
    return 0;
}

static int find(int32_t *n_floating, finder *x)
{
    const moirai_problem *p = x->p;
    double whole, largest;
    *n_floating = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        x->weight[i] = moirai_op_least_ns(p, i);
        x->by_apart[i] = i;
        x->total += (double)x->weight[i];
    }
    int rc = x->total > 0 ? judge(&whole, &largest, x) : 0;
    double work = (double)p->n_ops * ((double)p->n_ops + p->n_edges) / 64;
    if (rc || x->total <= 0 || largest < LARGE_BLOCK || work > MOST_WORK)
        return rc;
    rc = weigh(x);
    if (!rc && !util_stopped(x->stop)) {
        qsort_r(x->by_apart, (size_t)p->n_ops, sizeof *x->by_apart, by_falling_apart, x);
        rc = choose(n_floating, x, whole);
    }
    return rc;
}

/* ---- the spine ---- */

void decompose_spine_free(decompose_spine *s)
{
    if (!s)
        return;
    util_release(&s->memory);
    free(s);
}

int decompose_spine_from(decompose_spine **out, const moirai_problem *p, const bool *floating)
{
    int32_t n = 0, tensors = 0, *number = util_alloc((size_t)p->n_ops, sizeof *number);
    decompose_spine *s = *out = util_alloc(1, sizeof *s);
    if (s) {
        s->whole = p;
        UTIL_TAKE(&s->memory, s->floating, (size_t)p->n_ops);
        UTIL_TAKE(&s->memory, s->whole_op, (size_t)p->n_ops);
        UTIL_TAKE(&s->memory, s->whole_tensor, (size_t)p->n_tensors);
        UTIL_TAKE(&s->memory, s->problem, 1);
    }
    int rc = s && number ? util_taken_all(&s->memory) : MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops && !rc; i++) {
        number[i] = MOIRAI_NONE;
        s->floating[i] = floating[i];
        if (floating[i])
            continue;
        s->whole_op[n++] = i;
        for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++)
            s->whole_tensor[tensors++] = p->op_out[j];
    }
    rc = rc ? rc : problem_op_part(s->problem, &s->memory, p, s->whole_op, n, number);
    free(number);
    if (rc) {
        decompose_spine_free(s);
        *out = NULL;
        return rc;
    }
    s->n_floating = p->n_ops - n;
    s->problem->memory = MOIRAI_MEMORY_STATIC;
    return 0;
}

int decompose_spine_new(decompose_spine **out, const moirai_problem *p, const util_stop *stop)
{
    finder x = {.p = p, .stop = stop};
    util_memory memory = {0};
    size_t n = (size_t)p->n_ops;
    *out = NULL;
    UTIL_TAKE(&memory, x.weight, n);
    UTIL_TAKE(&memory, x.apart, n);
    UTIL_TAKE(&memory, x.mask, n);
    UTIL_TAKE(&memory, x.by_apart, n);
    UTIL_TAKE(&memory, x.is_cut, n);
    UTIL_TAKE(&memory, x.floating, n);
    int32_t n_floating = 0;
    int rc = memory.failed ? MOIRAI_EFAIL : find(&n_floating, &x);
    if (!rc && n_floating > 0)
        rc = decompose_spine_from(out, p, x.floating);
    util_release(&memory);
    return rc;
}
