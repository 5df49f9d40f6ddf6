/* The order of elimination: always the variable whose table is the smallest now (least weighted degree); of several the one that
 * had a table of this size first. So branches shrink side by side, and no table eats its way along one of them: a third of the cells of other ways to choose on networks of parallel branches. */
#include "minsum/minsum_order.h"

#include <math.h>
#include <stdlib.h>

#define BITS 1024.0 /* parts of a bit in which tables are compared */
#define STOP_EVERY 64

typedef struct list {
    int32_t *var; /* neighbours; those that went are taken out when the list is looked through */
    size_t n, capacity;
} list;

typedef struct entry {
    int64_t bits;
    int32_t since, var;
} entry;

typedef struct finder {
    const minsum_shape *s;
    list *near;
    int64_t *own, *bits; /* per variable: of its states; of its table now */
    int32_t *place;      /* or LEFT */
    entry *heap;         /* with entries that no longer hold: of other sizes */
    size_t n_heap, capacity;
} finder;

#define LEFT (-1)

static bool before(entry a, entry b)
{
    if (a.bits != b.bits)
        return a.bits < b.bits;
    return a.since != b.since ? a.since < b.since : a.var < b.var;
}

static int push(finder *f, int32_t var, int32_t since)
{
    entry e = {f->bits[var], since, var};
    if (util_grow(&f->heap, &f->capacity, f->n_heap + 1, sizeof *f->heap))
        return MOIRAI_EFAIL;
    size_t at = f->n_heap++;
    for (; at > 0 && before(e, f->heap[(at - 1) / 2]); at = (at - 1) / 2)
        f->heap[at] = f->heap[(at - 1) / 2];
    f->heap[at] = e;
    return 0;
}

static entry pop(finder *f)
{
    entry top = f->heap[0], e = f->heap[--f->n_heap];
    size_t at = 0;
    for (size_t next; (next = 2 * at + 1) < f->n_heap; at = next) {
        next += next + 1 < f->n_heap && before(f->heap[next + 1], f->heap[next]);
        if (!before(f->heap[next], e))
            break;
        f->heap[at] = f->heap[next];
    }
    f->heap[at] = e;
    return top;
}

static bool has(const list *l, int32_t var)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->var[i] == var)
            return true;
    return false;
}

static int join(finder *f, int32_t a, int32_t b)
{
    list *la = &f->near[a], *lb = &f->near[b];
    if (a == b || (la->n < lb->n ? has(la, b) : has(lb, a)))
        return 0;
    if (util_grow(&la->var, &la->capacity, la->n + 1, sizeof *la->var) ||
        util_grow(&lb->var, &lb->capacity, lb->n + 1, sizeof *lb->var))
        return MOIRAI_EFAIL;
    la->var[la->n++] = b;
    lb->var[lb->n++] = a;
    f->bits[a] += f->own[b];
    f->bits[b] += f->own[a];
    return 0;
}

static int open_finder(finder *f)
{
    const minsum_shape *s = f->s;
    size_t n = (size_t)s->n_vars;
    f->near = util_alloc(n, sizeof *f->near);
    f->own = util_alloc(n, sizeof *f->own);
    f->bits = util_alloc(n, sizeof *f->bits);
    f->place = util_alloc(n, sizeof *f->place);
    if (!f->near || !f->own || !f->bits || !f->place)
        return MOIRAI_EFAIL;
    for (int32_t v = 0; v < s->n_vars; v++) {
        f->own[v] = f->bits[v] = (int64_t)(BITS * log2(s->states[v]) + 0.5);
        f->place[v] = LEFT;
    }
    int rc = 0;
    for (int32_t t = 0; t < s->n_terms; t++)
        for (int32_t i = s->off[t]; i < s->off[t + 1]; i++)
            for (int32_t j = s->off[t]; j < i && !rc; j++)
                rc = join(f, s->var[i], s->var[j]);
    for (int32_t v = 0; v < s->n_vars && !rc; v++)
        rc = push(f, v, 0);
    return rc;
}

static void close_finder(finder *f)
{
    for (int32_t v = 0; v < f->s->n_vars && f->near; v++)
        free(f->near[v].var);
    free(f->near);
    free(f->own);
    free(f->bits);
    free(f->place);
    free(f->heap);
}

/* The variable's neighbours are neighbours of each other, without it. */
static int eliminate(finder *f, minsum_order *o, int32_t place, size_t *capacity, int32_t var)
{
    list *l = &f->near[var];
    int32_t first = o->off[place], end = first;
    f->place[var] = place;
    o->var[place] = var;
    if (util_grow(&o->left, capacity, (size_t)first + l->n + 1, sizeof *o->left))
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < l->n; i++)
        if (f->place[l->var[i]] == LEFT)
            o->left[end++] = l->var[i];
    o->off[place + 1] = end;
    int rc = 0;
    for (int32_t i = first; i < end && !rc; i++) {
        f->bits[o->left[i]] -= f->own[var];
        for (int32_t j = first; j < i && !rc; j++)
            rc = join(f, o->left[i], o->left[j]);
    }
    for (int32_t i = first; i < end && !rc; i++)
        rc = push(f, o->left[i], place + 1);
    return rc;
}

int minsum_order_find(minsum_order *o, const minsum_shape *s, int64_t most_cells, const util_stop *stop)
{
    finder f = {.s = s};
    size_t capacity = 0;
    *o = (minsum_order){.var = util_alloc((size_t)s->n_vars, sizeof *o->var),
                        .off = util_alloc((size_t)s->n_vars + 1, sizeof *o->off)};
    int rc = o->var && o->off ? open_finder(&f) : MOIRAI_EFAIL;
    for (int32_t place = 0; place < s->n_vars && !rc;) {
        entry e = pop(&f);
        if (f.place[e.var] != LEFT || e.bits != f.bits[e.var])
            continue;
        o->cells += (int64_t)ceil(exp2((double)UTIL_MIN(e.bits, 62 * (int64_t)BITS) / BITS) * (1 - 1e-3));
        if (o->cells > most_cells || (place % STOP_EVERY == 0 && util_stopped(stop)))
            rc = MOIRAI_ELIMIT;
        rc = rc ? rc : eliminate(&f, o, place++, &capacity, e.var);
    }
    close_finder(&f);
    return rc;
}

void minsum_order_close(minsum_order *o)
{
    free(o->var);
    free(o->off);
    free(o->left);
}
