/* Elimination: the order in which variables go, one table per variable from the first to the last, then states backwards.
 *
 * **The order.** Always the variable whose table is the smallest now (least weighted degree); of several the one that had a table of this size
 * first. So branches shrink side by side, and no table eats its way along one of them: a third of the cells of other ways to choose on networks of
 * parallel branches.
 *
 * **Tables.** A table's inputs are the functions whose first variable to go is this one, and the tables of variables before it that have it as their first. Each has a stride for every
 * variable of the joint table, 0 where it does not know it, so that all states are gone through as an odometer. */
#include "minsum/minsum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/heap.h"

#define STOP_EVERY 64
#define NOTHING (-1)
#define BITS 1024             /* parts of a bit in which tables are compared */
#define MOST_BITS (62 * BITS) /* larger tables are all alike: too large */
#define FIELD 23              /* bits of a place, and of a variable, in a key of the heap */
#define FIELD_MASK ((INT64_C(1) << FIELD) - 1)

typedef struct input {
    bool table;     /* of a variable before; else a function of the shape */
    int64_t at;     /* where it begins there */
    int32_t stride; /* where its strides begin: one per neighbour, then the variable's own */
    int32_t next;   /* of the same variable, or NOTHING */
} input;

struct minsum {
    const minsum_shape *s;
    int32_t *var;   /* by place */
    int32_t *place; /* of a variable, or NOTHING */
    int32_t *off;   /* place -> its part of `left`, the neighbours that are left then: those of its table */
    int32_t *left;
    int32_t *first; /* place -> its inputs, linked */
    input *input;
    int32_t n_inputs;
    int32_t *stride;
    size_t n_strides, stride_capacity, left_capacity;
    int64_t *at;        /* place -> where its table begins */
    int64_t n_cells;    /* of all tables, without the variables that go */
    int64_t most;       /* of the joint tables, the largest */
    int32_t widest;     /* neighbours, at most */
    util_memory memory; /* of all arrays but left and stride, which grow */
};

/* ---- the order ---- */

typedef struct list {
    int32_t *var; /* neighbours; those that went are taken out when the list is looked through */
    size_t n, capacity;
} list;

typedef struct finder {
    minsum *m;
    int32_t n_gone;
    list *near;
    int64_t *own, *bits; /* per variable: of its states; of its table now */
    int64_t *heap;       /* keys, also of tables that have another size by now */
    int32_t n_heap;
    size_t capacity;
    util_memory memory; /* of near, own and bits */
} finder;

static int64_t bits_of(const finder *f, int32_t var)
{
    return UTIL_MIN(f->bits[var], MOST_BITS);
}

/* By size, since when, and number. */
static int push(finder *f, int32_t var)
{
    if (util_grow(&f->heap, &f->capacity, (size_t)f->n_heap + 1, sizeof *f->heap))
        return MOIRAI_EFAIL;
    util_heap_push(f->heap, f->n_heap++, bits_of(f, var) << 2 * FIELD | (int64_t)f->n_gone << FIELD | var);
    return 0;
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
    const minsum_shape *s = f->m->s;
    size_t n = (size_t)s->n_vars;
    UTIL_TAKE(&f->memory, f->near, n);
    UTIL_TAKE(&f->memory, f->own, n);
    UTIL_TAKE(&f->memory, f->bits, n);
    int rc = util_taken_all(&f->memory);
    for (int32_t v = 0; v < s->n_vars && !rc; v++) {
        f->own[v] = f->bits[v] = (int64_t)(BITS * log2(s->states[v]) + 0.5);
        f->m->place[v] = NOTHING;
    }
    for (int32_t t = 0; t < s->n_terms; t++)
        for (int32_t i = s->off[t]; i < s->off[t + 1]; i++)
            for (int32_t j = s->off[t]; j < i && !rc; j++)
                rc = join(f, s->var[i], s->var[j]);
    for (int32_t v = 0; v < s->n_vars && !rc; v++)
        rc = push(f, v);
    return rc;
}

static void close_finder(finder *f)
{
    for (int32_t v = 0; v < f->m->s->n_vars && f->near; v++)
        free(f->near[v].var);
    free(f->heap);
    util_release(&f->memory);
}

/* The variable's neighbours are neighbours of each other, without it. */
static int take_out(finder *f, int32_t var)
{
    minsum *m = f->m;
    list *l = &f->near[var];
    int32_t first = m->off[f->n_gone], end = first;
    if (util_grow(&m->left, &m->left_capacity, (size_t)first + l->n + 1, sizeof *m->left))
        return MOIRAI_EFAIL;
    m->place[var] = f->n_gone;
    m->var[f->n_gone++] = var;
    for (size_t i = 0; i < l->n; i++)
        if (m->place[l->var[i]] == NOTHING)
            m->left[end++] = l->var[i];
    m->off[f->n_gone] = end;
    int rc = 0;
    for (int32_t i = first; i < end && !rc; i++) {
        f->bits[m->left[i]] -= f->own[var];
        for (int32_t j = first; j < i && !rc; j++)
            rc = join(f, m->left[i], m->left[j]);
    }
    for (int32_t i = first; i < end && !rc; i++)
        rc = push(f, m->left[i]);
    return rc;
}

static int find_order(minsum *m, int64_t most_cells, const util_stop *stop)
{
    finder f = {.m = m};
    int64_t cells = 0; /* of all tables, the variable that goes included */
    int rc = m->s->n_vars > FIELD_MASK ? MOIRAI_ELIMIT : open_finder(&f);
    while (f.n_gone < m->s->n_vars && !rc) {
        int64_t key = util_heap_pop(f.heap, f.n_heap--), bits = key >> 2 * FIELD;
        int32_t var = (int32_t)(key & FIELD_MASK);
        if (m->place[var] != NOTHING || bits != bits_of(&f, var))
            continue;
        cells += (int64_t)ceil(exp2((double)bits / BITS) * (1 - 1e-3));
        if (cells > most_cells || (f.n_gone % STOP_EVERY == 0 && util_stopped(stop)))
            rc = MOIRAI_ELIMIT;
        rc = rc ? rc : take_out(&f, var);
    }
    close_finder(&f);
    return rc;
}

/* ---- inputs ---- */

/* An input of the variable that goes first of those that it has. var[n - 1] is the fastest in its table. */
static int add_input(minsum *m, bool table, int64_t at, const int32_t *var, int32_t n)
{
    int32_t place = m->place[var[0]];
    for (int32_t i = 1; i < n; i++)
        place = UTIL_MIN(place, m->place[var[i]]);
    int32_t first = m->off[place], width = m->off[place + 1] - first;
    size_t begin = m->n_strides;
    if (util_grow(&m->stride, &m->stride_capacity, begin + (size_t)width + 1, sizeof *m->stride))
        return MOIRAI_EFAIL;
    m->n_strides += (size_t)width + 1;
    for (int32_t i = 0; i <= width; i++) {
        int32_t step = 1, own = i < width ? m->left[first + i] : m->var[place];
        m->stride[begin + (size_t)i] = 0;
        for (int32_t j = n - 1; j >= 0; step *= m->s->states[var[j--]])
            if (var[j] == own)
                m->stride[begin + (size_t)i] = step;
    }
    m->input[m->n_inputs] = (input){table, at, (int32_t)begin, m->first[place]};
    m->first[place] = m->n_inputs++;
    return 0;
}

static int64_t cells_of(const minsum_shape *s, const int32_t *var, int32_t n)
{
    int64_t cells = 1;
    for (int32_t i = 0; i < n; i++)
        cells *= s->states[var[i]];
    return cells;
}

static int link_inputs(minsum *m)
{
    const minsum_shape *s = m->s;
    int64_t at = 0;
    int rc = 0;
    for (int32_t z = 0; z < s->n_vars; z++)
        m->first[z] = NOTHING;
    for (int32_t t = 0; t < s->n_terms && !rc; t++) {
        const int32_t *var = s->var + s->off[t], n = s->off[t + 1] - s->off[t];
        rc = n > 0 ? add_input(m, false, at, var, n) : 0;
        at += cells_of(s, var, n);
    }
    for (int32_t z = 0; z < s->n_vars && !rc; z++) {
        const int32_t *left = m->left + m->off[z], width = m->off[z + 1] - m->off[z];
        int64_t cells = cells_of(s, left, width);
        m->at[z] = m->n_cells;
        m->n_cells += cells;
        m->most = UTIL_MAX(m->most, cells * s->states[m->var[z]]);
        m->widest = UTIL_MAX(m->widest, width);
        rc = width > 0 ? add_input(m, true, m->at[z], left, width) : 0;
    }
    return rc;
}

int minsum_new(minsum **out, const minsum_shape *shape, int64_t most_cells, const util_stop *stop)
{
    size_t n = (size_t)shape->n_vars;
    *out = NULL;
    minsum *m = util_alloc(1, sizeof *m);
    if (!m)
        return MOIRAI_EFAIL;
    m->s = shape;
    UTIL_TAKE(&m->memory, m->var, n);
    UTIL_TAKE(&m->memory, m->place, n);
    UTIL_TAKE(&m->memory, m->off, n + 1);
    UTIL_TAKE(&m->memory, m->first, n);
    UTIL_TAKE(&m->memory, m->at, n);
    UTIL_TAKE(&m->memory, m->input, n + (size_t)shape->n_terms);
    int rc = util_taken_all(&m->memory);
    rc = rc ? rc : find_order(m, most_cells, stop);
    rc = rc ? rc : link_inputs(m);
    if (rc)
        minsum_free(m);
    else
        *out = m;
    return rc;
}

void minsum_free(minsum *m)
{
    if (!m)
        return;
    free(m->left);
    free(m->stride);
    util_release(&m->memory);
    free(m);
}

/* ---- solving ---- */

typedef struct solver {
    const minsum *m;
    const double *value;
    double *cell;  /* of all tables */
    double *joint; /* of the variable that goes and its neighbours */
    int32_t *digit;
} solver;

static const double *values_of(const solver *x, const input *in)
{
    return (in->table ? x->cell : x->value) + in->at;
}

/* Adds an input to the joint table: neighbours as digits, the last one the fastest but for the variable's own states. */
static void add_to_joint(solver *x, const input *in, const int32_t *left, int32_t width, int32_t states, int64_t rows)
{
    const int32_t *stride = x->m->stride + in->stride, *n = x->m->s->states;
    const double *from = values_of(x, in);
    double *to = x->joint;
    int32_t own = stride[width], last = width > 0 ? n[left[width - 1]] : 1, step = width > 0 ? stride[width - 1] : 0;
    memset(x->digit, 0, sizeof *x->digit * (size_t)width);
    for (int64_t row = 0; row < rows; row += last) {
        for (int32_t b = 0; b < last; b++, to += states)
            for (int32_t a = 0; a < states; a++)
                to[a] += from[b * step + a * own];
        for (int32_t i = width - 2; i >= 0; i--) {
            from += stride[i];
            if (++x->digit[i] < n[left[i]])
                break;
            from -= (int64_t)stride[i] * n[left[i]];
            x->digit[i] = 0;
        }
    }
}

static void eliminate(solver *x, int32_t place)
{
    const minsum *m = x->m;
    const int32_t *left = m->left + m->off[place], width = m->off[place + 1] - m->off[place];
    int32_t states = m->s->states[m->var[place]];
    int64_t rows = cells_of(m->s, left, width);
    memset(x->joint, 0, sizeof *x->joint * (size_t)(rows * states));
    for (int32_t i = m->first[place]; i != NOTHING; i = m->input[i].next)
        add_to_joint(x, &m->input[i], left, width, states, rows);
    for (int64_t row = 0; row < rows; row++) {
        double least = x->joint[row * states];
        for (int32_t a = 1; a < states; a++)
            least = UTIL_MIN(least, x->joint[row * states + a]);
        x->cell[m->at[place] + row] = least;
    }
}

/* The first state of those that cost least, where all neighbours have theirs. */
static void choose(const solver *x, int32_t place, int32_t *state)
{
    const minsum *m = x->m;
    int32_t first = m->off[place], width = m->off[place + 1] - first, var = m->var[place];
    double least = HUGE_VAL;
    state[var] = 0;
    for (int32_t a = 0; a < m->s->states[var]; a++) {
        double sum = 0;
        for (int32_t i = m->first[place]; i != NOTHING; i = m->input[i].next) {
            const int32_t *stride = m->stride + m->input[i].stride;
            int64_t at = (int64_t)a * stride[width];
            for (int32_t j = 0; j < width; j++)
                at += (int64_t)state[m->left[first + j]] * stride[j];
            sum += values_of(x, &m->input[i])[at];
        }
        if (sum < least) {
            least = sum;
            state[var] = a;
        }
    }
}

int minsum_solve(const minsum *m, const double *value, int32_t *state, double *least, const util_stop *stop)
{
    util_memory memory = {0};
    solver x = {.m = m, .value = value};
    UTIL_TAKE(&memory, x.cell, (size_t)m->n_cells);
    UTIL_TAKE(&memory, x.joint, (size_t)m->most);
    UTIL_TAKE(&memory, x.digit, (size_t)m->widest);
    int rc = util_taken_all(&memory);
    *least = 0;
    for (int32_t z = 0; z < m->s->n_vars && !rc; z++) {
        if (z % STOP_EVERY == 0 && util_stopped(stop))
            rc = MOIRAI_ELIMIT;
        if (!rc)
            eliminate(&x, z);
        if (!rc && m->off[z] == m->off[z + 1]) /* nothing reads it: a part of its own ends */
            *least += x.cell[m->at[z]];
    }
    for (int32_t z = m->s->n_vars - 1; z >= 0 && !rc; z--)
        choose(&x, z, state);
    util_release(&memory);
    return rc;
}
