/* Elimination with its order found: one table per variable, from the first that goes to the last; then states backwards.
 *
 * A table's inputs are the functions whose first variable to go is this one, and the tables of variables before it that have it as their first. Each has a stride for every
 * variable of the joint table, 0 where it does not know it, so that all states are gone through as an odometer. */
#include "minsum/minsum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "minsum/minsum_order.h"

#define STOP_EVERY 64
#define NOTHING (-1)

typedef struct input {
    bool table;     /* of a variable before; else a function of the shape */
    int64_t at;     /* where it begins there */
    int32_t stride; /* where its strides begin: one per neighbour, then the variable's own */
    int32_t next;   /* of the same variable, or NOTHING */
} input;

struct minsum {
    const minsum_shape *s;
    minsum_order order;
    int32_t *place; /* of a variable */
    int32_t *first; /* place -> its inputs, linked */
    input *input;
    int32_t n_inputs;
    int32_t *stride;
    size_t n_strides, capacity;
    int64_t *at;     /* place -> where its table begins */
    int64_t n_cells; /* of all tables, without the variables that go */
    int64_t most;    /* of the joint tables, the largest */
    int32_t widest;  /* neighbours, at most */
};

/* An input of the variable that goes first of those that it has. var[n - 1] is the fastest in its table. */
static int add_input(minsum *m, bool table, int64_t at, const int32_t *var, int32_t n)
{
    int32_t place = m->place[var[0]];
    for (int32_t i = 1; i < n; i++)
        place = UTIL_MIN(place, m->place[var[i]]);
    int32_t first = m->order.off[place], width = m->order.off[place + 1] - first;
    size_t begin = m->n_strides;
    if (util_grow(&m->stride, &m->capacity, begin + (size_t)width + 1, sizeof *m->stride))
        return MOIRAI_EFAIL;
    m->n_strides += (size_t)width + 1;
    for (int32_t i = 0; i <= width; i++) {
        int32_t step = 1, own = i < width ? m->order.left[first + i] : m->order.var[place];
        m->stride[begin + (size_t)i] = 0;
        for (int32_t j = n - 1; j >= 0; step *= m->s->states[var[j--]])
            if (var[j] == own)
                m->stride[begin + (size_t)i] = step;
    }
    m->input[m->n_inputs] = (input){table, at, (int32_t)begin, m->first[place]};
    m->first[place] = m->n_inputs++;
    return 0;
}

static int link_inputs(minsum *m)
{
    const minsum_shape *s = m->s;
    const minsum_order *o = &m->order;
    int rc = 0;
    for (int32_t t = 0; t < s->n_terms && !rc; t++)
        if (s->off[t] < s->off[t + 1])
            rc = add_input(m, false, s->at[t], s->var + s->off[t], s->off[t + 1] - s->off[t]);
    for (int32_t z = 0; z < s->n_vars && !rc; z++) {
        int32_t width = o->off[z + 1] - o->off[z];
        int64_t cells = 1;
        for (int32_t i = o->off[z]; i < o->off[z + 1]; i++)
            cells *= s->states[o->left[i]];
        m->at[z] = m->n_cells;
        m->n_cells += cells;
        m->most = UTIL_MAX(m->most, cells * s->states[o->var[z]]);
        m->widest = UTIL_MAX(m->widest, width);
        rc = width > 0 ? add_input(m, true, m->at[z], o->left + o->off[z], width) : 0;
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
    m->place = util_alloc(n, sizeof *m->place);
    m->first = util_alloc(n, sizeof *m->first);
    m->at = util_alloc(n, sizeof *m->at);
    m->input = util_alloc(n + (size_t)shape->n_terms, sizeof *m->input);
    int rc = m->place && m->first && m->at && m->input ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : minsum_order_find(&m->order, shape, most_cells, stop);
    for (int32_t z = 0; z < shape->n_vars && !rc; z++) {
        m->place[m->order.var[z]] = z;
        m->first[z] = NOTHING;
    }
    rc = rc ? rc : link_inputs(m);
    if (rc) {
        minsum_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void minsum_free(minsum *m)
{
    if (!m)
        return;
    minsum_order_close(&m->order);
    free(m->place);
    free(m->first);
    free(m->at);
    free(m->input);
    free(m->stride);
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
    const minsum_order *o = &m->order;
    int32_t first = o->off[place], width = o->off[place + 1] - first, states = m->s->states[o->var[place]];
    int64_t rows = 1;
    for (int32_t i = 0; i < width; i++)
        rows *= m->s->states[o->left[first + i]];
    memset(x->joint, 0, sizeof *x->joint * (size_t)(rows * states));
    for (int32_t i = m->first[place]; i != NOTHING; i = m->input[i].next)
        add_to_joint(x, &m->input[i], o->left + first, width, states, rows);
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
    const minsum_order *o = &m->order;
    int32_t first = o->off[place], width = o->off[place + 1] - first, var = o->var[place];
    double least = HUGE_VAL;
    state[var] = 0;
    for (int32_t a = 0; a < m->s->states[var]; a++) {
        double sum = 0;
        for (int32_t i = m->first[place]; i != NOTHING; i = m->input[i].next) {
            const int32_t *stride = m->stride + m->input[i].stride;
            int64_t at = (int64_t)a * stride[width];
            for (int32_t j = 0; j < width; j++)
                at += (int64_t)state[o->left[first + j]] * stride[j];
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
        if (!rc && m->order.off[z] == m->order.off[z + 1]) /* nothing reads it: a part of its own ends */
            *least += x.cell[m->at[z]];
    }
    for (int32_t z = m->s->n_vars - 1; z >= 0 && !rc; z--)
        choose(&x, z, state);
    util_release(&memory);
    return rc;
}
