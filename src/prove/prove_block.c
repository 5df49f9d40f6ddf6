/* Blocks and components: what the verifier derives from the problem by itself. Copies are compared position by position in topological
 * order: times, allowed devices, memory and all edges with their transfer tables. */
#include "prove/prove.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define NEVER INT64_MAX
#define FAR \
    (2 * PROVE_MAX_TIME) /* heads and tails are counted up to here, so that no sum overflows: less is still true */

void prove_block_free(prove_block *b)
{
    for (int32_t i = 0; i < b->n_kinds; i++)
        prove_block_free(&b->kind[i].one);
    util_release(&b->memory);
    *b = (prove_block){0};
}

/* ---- edges ---- */

/* Those of the problem between operators of the block, which keep their order; the exit's own are behind it. */
static int list_edges(prove_block *b)
{
    const prove_problem *p = b->p;
    size_t most = 0;
    for (int32_t i = 0; i < b->n; i++)
        most += (size_t)(p->off[b->op[i] + 1] - p->off[b->op[i]]);
    if (!UTIL_TAKE(&b->memory, b->edge, most))
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < b->n; i++)
        for (int32_t e = p->off[b->op[i]]; e < p->off[b->op[i] + 1] && i != b->exit; e++) {
            prove_edge f = p->edge[e];
            f.from = i;
            f.to = p->local[f.to];
            if (f.to >= 0)
                b->edge[b->n_edges++] = f;
        }
    for (int32_t first = 0, end = 0; first < b->n_edges; first = end) {
        while (end < b->n_edges && b->edge[end].from == b->edge[first].from &&
               b->edge[end].output == b->edge[first].output)
            end++;
        for (int32_t e = first; e < end; e++) {
            b->edge[e].readers = end - first;
            b->edge[e].packet = first;
        }
    }
    return 0;
}

static bool same_op(const prove_problem *p, int32_t i, int32_t j)
{
    size_t K = (size_t)p->K;
    return p->may[i] == p->may[j] && p->bytes[i] == p->bytes[j] &&
           !memcmp(p->time + (size_t)i * K, p->time + (size_t)j * K, K * sizeof *p->time);
}

bool prove_same_block(const prove_block *x, const prove_block *y)
{
    if (x->n != y->n || x->entry != y->entry || x->exit != y->exit || x->n_edges != y->n_edges)
        return false;
    size_t table = (size_t)x->p->K * (size_t)x->p->K * sizeof(int64_t);
    for (int32_t i = 0; i < x->n; i++)
        if (!prove_is_cut(x, i) && !same_op(x->p, x->op[i], y->op[i]))
            return false;
    for (int32_t e = 0; e < x->n_edges; e++) {
        const prove_edge *f = &x->edge[e], *g = &y->edge[e];
        if (f->from != g->from || f->output != g->output || f->to != g->to ||
            (f->ns != g->ns && memcmp(f->ns, g->ns, table)))
            return false;
    }
    return true;
}

int prove_block_new(prove_block *b, const prove_problem *p, int32_t n, const int32_t *op, bool entry, bool exit)
{
    *b = (prove_block){.p = p, .n = n, .shared = PROVE_NONE};
    b->entry = entry ? 0 : PROVE_NONE;
    b->exit = exit ? n - 1 : PROVE_NONE;
    if (!UTIL_TAKE(&b->memory, b->op, (size_t)n))
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < n; i++) {
        b->op[i] = op ? op[i] : i;
        p->local[b->op[i]] = i;
    }
    int rc = list_edges(b);
    for (int32_t i = 0; i < n; i++)
        p->local[b->op[i]] = -1;
    return rc;
}

int32_t prove_packet_end(const prove_block *b, int32_t first)
{
    return first + (b->p->by_edge ? 1 : b->edge[first].readers);
}

bool prove_reads(const prove_block *b, int32_t from, int32_t to)
{
    int32_t first = 0, end = b->n_edges;
    while (first < end) { /* edges ascend by their producers */
        int32_t middle = first + (end - first) / 2;
        first = b->edge[middle].from < from ? middle + 1 : first;
        end = b->edge[middle].from < from ? end : middle;
    }
    while (first < b->n_edges && b->edge[first].from == from && b->edge[first].to != to)
        first++;
    return first < b->n_edges && b->edge[first].from == from;
}

/* ---- longest paths ---- */

/* Whether operator i may be on k: as `may` says, or (NULL) wherever it has a time, with any number of devices. */
static bool can(const prove_block *b, const uint64_t *may, int32_t i, int32_t k)
{
    return may ? may[i] >> k & 1 : prove_op_ns(b, i, k) >= 0;
}

/* One edge: what it reaches on device k is no less than what its other end has over the best of its devices. Where all
 * transfers between two devices take the same, the best of all others is one device for all. */
static void pass(int64_t *path, const prove_block *b, const prove_edge *e, const uint64_t *may, bool forwards)
{
    int32_t K = b->p->K, other = forwards ? e->from : e->to;
    int64_t at[PROVE_MAX_DEVICES], least = NEVER, *to = &path[(int64_t)(forwards ? e->to : e->from) * K];
    for (int32_t l = 0; l < K; l++) {
        at[l] = can(b, may, other, l) ? UTIL_MIN(path[other * (int64_t)K + l] + prove_op_ns(b, other, l), FAR) : NEVER;
        least = UTIL_MIN(least, at[l]);
    }
    for (int32_t k = 0; k < K; k++) {
        int64_t soonest = e->even_ns < 0 ? NEVER : UTIL_MIN(at[k], least + UTIL_MIN(e->even_ns, NEVER - least));
        for (int32_t l = 0; l < K && e->even_ns < 0; l++)
            if (at[l] < NEVER)
                soonest = UTIL_MIN(soonest, at[l] + e->ns[forwards ? l * K + k : k * K + l]);
        to[k] = UTIL_MAX(to[k], soonest);
    }
}

/* Edges come by producer, and producers before their readers: a head is final before it is passed on. Where the time is up, heads
 * and tails stay shorter than they are. */
void prove_reach(const prove_block *b, const uint64_t *may, int64_t *path, bool forwards)
{
    for (int32_t y = 0; y < b->n_edges; y++) {
        const prove_edge *e = &b->edge[forwards ? y : b->n_edges - 1 - y];
        if (prove_look(b->p, y))
            return;
        pass(path, b, e, may, forwards);
    }
}

int64_t prove_longest(const prove_block *b, const uint64_t *may, const int64_t *head, const int64_t *tail)
{
    int64_t most = 0;
    for (int32_t i = 0; i < b->n; i++) {
        int64_t least = NEVER;
        for (int32_t k = 0; k < b->p->K; k++) {
            int64_t at = (int64_t)i * b->p->K + k;
            if (can(b, may, i, k))
                least = UTIL_MIN(least, head[at] + prove_op_ns(b, i, k) + (tail ? tail[at] : 0));
        }
        most = UTIL_MAX(most, least);
    }
    return most;
}

/* With nothing between the cuts, only transfers from a to z are left: one after the other where a port or channel is
 * held. */
static int64_t empty_ns(const prove_block *b, int32_t a, int32_t z)
{
    int64_t sum = 0, longest = 0;
    for (int32_t e = 0; e < b->n_edges; e++) {
        sum += prove_edge_ns(b, e, a, z);
        longest = UTIL_MAX(longest, prove_edge_ns(b, e, a, z));
    }
    return b->p->congestion == PROVE_FREE ? longest : sum;
}

/* From an entry on a to an exit on each device: what is before the exit does not depend on where that is. */
static void paths_from(int64_t *ns, const prove_block *b, int32_t a, uint64_t *may, int64_t *head)
{
    int32_t K = b->p->K;
    prove_block before = *b;
    before.n -= b->exit >= 0;
    memset(head, 0, (size_t)b->n * (size_t)K * sizeof *head);
    for (int32_t i = 0; i < b->n; i++)
        may[i] = prove_allowed(b, i, a, 0);
    prove_reach(b, may, head, true);
    int64_t inside = prove_longest(&before, may, head, NULL);
    for (int32_t z = 0; z < (b->exit >= 0 ? K : 1); z++)
        ns[a * K + z] = b->exit >= 0 ? UTIL_MAX(inside, head[(int64_t)b->exit * K + z]) : inside;
}

int prove_paths(int64_t *ns, const prove_block *b)
{
    int32_t K = b->p->K, firsts = b->entry >= 0 ? K : 1;
    memset(ns, 0, (size_t)K * (size_t)K * sizeof *ns);
    if (prove_interior(b) == 0) {
        for (int32_t i = 0; i < K * K && b->n == 2; i++)
            ns[i] = empty_ns(b, i / K, i % K);
        return 0;
    }
    util_memory memory = {0};
    int64_t *head;
    uint64_t *may;
    PROVE_TAKE(&memory, head, (size_t)b->n * (size_t)K);
    UTIL_TAKE(&memory, may, (size_t)b->n);
    int rc = util_taken_all(&memory);
    for (int32_t a = 0; a < firsts && !rc; a++) {
        rc = prove_go_on(b->p);
        if (!rc)
            paths_from(ns, b, a, may, head);
    }
    util_release(&memory);
    return rc;
}
