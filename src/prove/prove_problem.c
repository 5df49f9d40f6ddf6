/* The verifier's problem: its order, its parts, its limits. */
#include "prove/prove_problem.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define MAX_BYTES ((size_t)1 << 31)

void *prove_alloc(size_t n, size_t size)
{
    if (n > MAX_BYTES / size) {
        moirai_error(MOIRAI_EFAIL, "asks for a table of %zu numbers, more than the verifier takes", n);
        return NULL;
    }
    return util_alloc(n, size);
}

int prove_go_on(const prove_problem *p)
{
    if (!p->stop || !util_stopped(p->stop))
        return 0;
    return moirai_error(MOIRAI_ELIMIT, "stopped before everything was judged: nothing is proven");
}

void prove_problem_free(prove_problem *p)
{
    void *own[] = {p->time, p->bytes, p->may, p->name, p->edge, p->off, p->place, p->local},
         *shared[] = {p->capacity, p->table};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    for (size_t i = 0; p->whole && i < sizeof shared / sizeof *shared; i++)
        free(shared[i]);
    if (p->whole)
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

/* Edges between operators that are here; `local` has their new numbers. */
static void take_edges(prove_problem *q, const prove_problem *p)
{
    for (int32_t e = 0; e < p->n_edges; e++) {
        prove_edge f = p->edge[e];
        f.from = q->local[f.from];
        f.to = q->local[f.to];
        if (f.from >= 0 && f.to >= 0)
            q->edge[q->n_edges++] = f;
    }
    if (q->n_edges)
        qsort(q->edge, (size_t)q->n_edges, sizeof *q->edge, compare_edges);
    for (int32_t e = 0; e < q->n_edges; e++)
        q->off[q->edge[e].from + 1]++;
    for (int32_t i = 0; i < q->n; i++)
        q->off[i + 1] += q->off[i];
}

int prove_problem_take(prove_problem *q, const prove_problem *p, int32_t n, const int32_t *op)
{
    size_t K = (size_t)p->K, m = (size_t)n;
    *q = *p;
    q->whole = false;
    q->n = n;
    q->n_edges = 0;
    q->time = util_alloc(m * K, sizeof *q->time);
    q->bytes = util_alloc(m, sizeof *q->bytes);
    q->may = util_alloc(m, sizeof *q->may);
    q->name = util_alloc(m, sizeof *q->name);
    q->edge = util_alloc((size_t)p->n_edges, sizeof *q->edge);
    q->off = util_alloc(m + 1, sizeof *q->off);
    q->place = util_alloc(m, sizeof *q->place);
    q->local = util_alloc((size_t)p->n, sizeof *q->local);
    if (!q->time || !q->bytes || !q->may || !q->name || !q->edge || !q->off || !q->place || !q->local)
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
    take_edges(q, p);
    memset(q->local, 0xff, (size_t)p->n * sizeof *q->local);
    return 0;
}

/* ---- the order ---- */

static void push(int32_t *heap, int32_t size, int32_t value)
{
    int32_t i = size;
    for (; i > 0 && heap[(i - 1) / 2] > value; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = value;
}

static int32_t pop(int32_t *heap, int32_t size)
{
    int32_t least = heap[0], last = heap[size - 1], i = 0;
    for (int32_t below = 1; below < size - 1; below = 2 * i + 1) {
        below += below + 1 < size - 1 && heap[below + 1] < heap[below];
        if (heap[below] >= last)
            break;
        heap[i] = heap[below];
        i = below;
    }
    heap[i] = last;
    return least;
}

/* Of the operators that are ready the first in the file, again and again; returns how many were ever ready. */
static int32_t find_order(const prove_problem *p, const int32_t *off, int32_t *waits, int32_t *heap, int32_t *order)
{
    int32_t ready = 0, done = 0;
    for (int32_t e = 0; e < p->n_edges; e++)
        waits[p->edge[e].to]++;
    for (int32_t i = 0; i < p->n; i++)
        if (!waits[i])
            push(heap, ready++, i);
    while (ready > 0) {
        int32_t i = order[done++] = pop(heap, ready--);
        for (int32_t e = off[i]; e < off[i + 1]; e++)
            if (!--waits[p->edge[e].to])
                push(heap, ready++, p->edge[e].to);
    }
    return done;
}

int prove_problem_sort(prove_problem *p, prove_problem *raw)
{
    size_t n = (size_t)raw->n;
    int32_t *off = util_alloc(n + 1, sizeof *off), *waits = util_alloc(n, sizeof *waits),
            *heap = util_alloc(n, sizeof *heap), *order = util_alloc(n, sizeof *order);
    int rc = off && waits && heap && order ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        if (raw->n_edges)
            qsort(raw->edge, (size_t)raw->n_edges, sizeof *raw->edge, compare_edges);
        for (int32_t e = 0; e < raw->n_edges; e++)
            off[raw->edge[e].from + 1]++;
        for (size_t i = 0; i < n; i++)
            off[i + 1] += off[i];
        if (find_order(raw, off, waits, heap, order) < raw->n)
            rc = moirai_error(MOIRAI_EINPUT, "operators read each other's tensors in a ring");
    }
    rc = rc ? rc : prove_problem_take(p, raw, raw->n, order);
    if (!rc) {
        raw->whole = false;
        p->whole = true;
    }
    free(off);
    free(waits);
    free(heap);
    free(order);
    return rc;
}
