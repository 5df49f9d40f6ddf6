/* The verifier's problem: its order, its parts, its limits. */
#include "prove/prove_problem.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "util/heap.h"
#include "util/util.h"

#define MAX_BYTES ((size_t)1 << 31)

void *prove_take(util_memory *m, size_t n, size_t size)
{
    if (n <= MAX_BYTES / size)
        return util_take(m, n, size);
    moirai_error(MOIRAI_EFAIL, "asks for a table of %zu numbers, more than the verifier takes", n);
    m->failed = true;
    return NULL;
}

int prove_go_on(const prove_problem *p)
{
    if (!p->stop || !util_stopped(p->stop))
        return 0;
    return moirai_error(MOIRAI_ELIMIT, "stopped before everything was judged: nothing is proven");
}

void prove_problem_free(prove_problem *p)
{
    util_release(&p->memory);
    yyjson_doc_free(p->doc);
    *p = (prove_problem){0};
}

static int compare_edges(const void *a, const void *b)
{
    const prove_edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->output != y->output)
        return x->output < y->output ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* By from, output, to; off[i]: the first edge of operator i. */
static void sort_edges(prove_edge *edge, int32_t n_edges, int32_t *off, int32_t n)
{
    if (n_edges)
        qsort(edge, (size_t)n_edges, sizeof *edge, compare_edges);
    for (int32_t e = 0; e < n_edges; e++)
        off[edge[e].from + 1]++;
    for (int32_t i = 0; i < n; i++)
        off[i + 1] += off[i];
}

int prove_problem_take(prove_problem *q, const prove_problem *p, int32_t n, const int32_t *op)
{
    size_t K = (size_t)p->K, m = (size_t)n;
    util_memory memory = q->memory;
    *q = *p;
    q->memory = memory;
    q->doc = NULL;
    q->n = n;
    q->n_edges = 0;
    UTIL_TAKE(&q->memory, q->time, m * K);
    UTIL_TAKE(&q->memory, q->bytes, m);
    UTIL_TAKE(&q->memory, q->may, m);
    UTIL_TAKE(&q->memory, q->name, m);
    UTIL_TAKE(&q->memory, q->edge, (size_t)p->n_edges);
    UTIL_TAKE(&q->memory, q->off, m + 1);
    UTIL_TAKE(&q->memory, q->place, m);
    UTIL_TAKE(&q->memory, q->local, (size_t)p->n);
    if (q->memory.failed)
        return MOIRAI_EFAIL;
    memset(q->local, 0xff, (size_t)p->n * sizeof *q->local);
    for (int32_t i = 0; i < n; i++) {
        memcpy(q->time + (size_t)i * K, p->time + (size_t)op[i] * K, K * sizeof *q->time);
        q->bytes[i] = p->bytes[op[i]];
        q->may[i] = p->may[op[i]];
        q->name[i] = p->name[op[i]];
        q->local[op[i]] = i;
    }
    for (int32_t number = 0, used = 0; number < p->n; number++) {
        int32_t here = q->local[p->place ? p->place[number] : number];
        if (here >= 0)
            q->place[used++] = here;
    }
    for (int32_t e = 0; e < p->n_edges; e++) {
        prove_edge f = p->edge[e];
        f.from = q->local[f.from];
        f.to = q->local[f.to];
        if (f.from >= 0 && f.to >= 0)
            q->edge[q->n_edges++] = f;
    }
    sort_edges(q->edge, q->n_edges, q->off, n);
    memset(q->local, 0xff, (size_t)p->n * sizeof *q->local);
    return 0;
}

/* ---- the order ---- */

/* Of the operators that are ready the first in the file, again and again; returns how many were ever ready. */
static int32_t find_order(const prove_problem *p, const int32_t *off, int32_t *waits, int64_t *heap, int32_t *order)
{
    int32_t ready = 0, done = 0;
    for (int32_t e = 0; e < p->n_edges; e++)
        waits[p->edge[e].to]++;
    for (int32_t i = 0; i < p->n; i++)
        if (!waits[i])
            util_heap_push(heap, ready++, i);
    while (ready > 0) {
        int32_t i = order[done++] = (int32_t)util_heap_pop(heap, ready--);
        for (int32_t e = off[i]; e < off[i + 1]; e++)
            if (!--waits[p->edge[e].to])
                util_heap_push(heap, ready++, p->edge[e].to);
    }
    return done;
}

int prove_problem_sort(prove_problem *p, const prove_problem *raw)
{
    size_t n = (size_t)raw->n;
    util_memory memory = {0};
    int32_t *off, *waits, *order;
    int64_t *heap;
    UTIL_TAKE(&memory, off, n + 1);
    UTIL_TAKE(&memory, waits, n);
    UTIL_TAKE(&memory, heap, n);
    UTIL_TAKE(&memory, order, n);
    int rc = util_taken_all(&memory);
    if (!rc)
        sort_edges(raw->edge, raw->n_edges, off, raw->n);
    if (!rc && find_order(raw, off, waits, heap, order) < raw->n)
        rc = moirai_error(MOIRAI_EINPUT, "operators read each other's tensors in a ring");
    rc = rc ? rc : prove_problem_take(p, raw, raw->n, order);
    util_release(&memory);
    return rc;
}
