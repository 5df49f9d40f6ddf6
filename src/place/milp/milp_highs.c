/* The model to HiGHS (place/list/lp_whole.c), incumbents and bounds back.
 *
 * Scaling is by powers of two, so that no coefficient changes its digits: times so that the horizon stays below 10^4
 * or so, bytes likewise. Tolerances are set to 10^-9: with big-M rows an integer that is off by 10^-6 would let a start
 * slip by a thousandth of the horizon's thousandth, more than the grid of a fine-grained problem.
 *
 * The solver's bound is a floating-point number: a margin of 10^-6 of the horizon is taken off, and the rest rounded up
 * to a whole grid unit, which is where makespans are (milp_dag.c). An answer "infeasible" needs no margin. */
#include "place/milp/milp.h"
#include "place/list/lp_whole.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_TIME 1e4
#define MARGIN 1e-6 /* of the horizon */

int64_t milp_safe_bound(const milp_program *g, double bound)
{
    double safe = bound - MARGIN * UTIL_MAX((double)g->d->upper, 1.0);
    if (!(safe > 0))
        return 0;
    return safe >= (double)g->d->upper ? g->d->upper : (int64_t)ceil(safe);
}

bool milp_available(const char **why)
{
    return lp_whole_available(why);
}

/* The model in the solver's units. */
typedef struct loaded {
    lp_whole lp;
    double *answer;    /* one solution in the caller's units */
    double *start;     /* the caller's, in the solver's units; NULL where there is none */
    double *col_scale; /* caller's units per solver's unit */
    double time_scale, byte_scale;
    milp_solve *s;
} loaded;

static void unload(loaded *l)
{
    lp_whole_clear(&l->lp);
    free(l->answer);
    free(l->start);
    free(l->col_scale);
}

static double power_of_two(double most, double limit)
{
    int e = 0;
    if (most > limit)
        frexp(most / limit, &e);
    return ldexp(1.0, e);
}

static double largest_bytes(const milp_model *m)
{
    double most = 0;
    for (int64_t r = 0; r < m->n_rows; r++)
        for (int64_t z = m->row_off[r]; m->row_unit[r] == MILP_BYTES && z < m->row_off[r + 1]; z++)
            if (m->col_kind[m->index[z]] == MILP_BINARY)
                most = UTIL_MAX(most, fabs(m->value[z]));
    return most;
}

static void load_columns(loaded *l, const milp_model *m)
{
    for (int32_t c = 0; c < m->n_cols; c++) {
        double scale = m->col_kind[c] == MILP_TIME ? l->time_scale : m->col_kind[c] == MILP_AMOUNT ? l->byte_scale : 1;
        l->col_scale[c] = scale;
        lp_whole_column(&l->lp, c == 0, m->col_lo[c] / scale, m->col_hi[c] / scale);
        l->lp.integral[c] = m->col_kind[c] == MILP_BINARY;
        if (l->start)
            l->start[c] = l->s->start[c] / scale;
    }
}

static void load_rows(loaded *l, const milp_model *m)
{
    for (int64_t r = 0; r < m->n_rows; r++) {
        double scale = m->row_unit[r] == MILP_TIMES ? l->time_scale : m->row_unit[r] == MILP_BYTES ? l->byte_scale : 1;
        lp_whole_row(&l->lp, m->row_sense[r] == '<' ? -HUGE_VAL : m->row_rhs[r] / scale,
                     m->row_sense[r] == '>' ? HUGE_VAL : m->row_rhs[r] / scale);
        for (int64_t z = m->row_off[r]; z < m->row_off[r + 1]; z++)
            lp_whole_term(&l->lp, m->index[z], m->value[z] * l->col_scale[m->index[z]] / scale);
    }
}

static int load(loaded *l, milp_solve *s)
{
    const milp_model *m = &s->g->m;
    size_t n = (size_t)m->n_cols;
    if (m->n_nonzeros > INT32_MAX || m->n_rows > INT32_MAX)
        return moirai_error(MOIRAI_ELIMIT, "milp: too many coefficients");
    l->s = s;
    l->answer = util_alloc(n, sizeof *l->answer);
    l->col_scale = util_alloc(n, sizeof *l->col_scale);
    l->start = s->start ? util_alloc(n, sizeof *l->start) : NULL;
    if (!l->answer || !l->col_scale || (s->start && !l->start) ||
        lp_whole_reserve(&l->lp, n, (size_t)m->n_rows, (size_t)m->n_nonzeros))
        return MOIRAI_EFAIL;
    l->time_scale = power_of_two((double)s->g->d->upper, LARGEST_TIME);
    l->byte_scale = power_of_two(largest_bytes(m), 1024);
    load_columns(l, m);
    load_rows(l, m);
    return 0;
}

static void give_back(const loaded *l, const double *value, double *out)
{
    for (int32_t c = 0; c < l->lp.n_columns; c++)
        out[c] = value[c] * l->col_scale[c];
}

static double bound_of(const loaded *l, double bound)
{
    return isfinite(bound) ? bound * l->col_scale[0] : 0;
}

static void on_solution(void *data, const double *column)
{
    loaded *l = data;
    give_back(l, column, l->answer);
    l->s->solution(l->s->data, l->answer);
}

static bool on_bound(void *data, double bound, int64_t nodes)
{
    loaded *l = data;
    return l->s->keep_on(l->s->data, bound_of(l, bound), nodes);
}

static void take(const loaded *l, milp_solve *s, const lp_whole_answer *a)
{
    s->status = a->end == LP_OPTIMAL ? MILP_OPTIMAL : a->end == LP_INFEASIBLE ? MILP_INFEASIBLE : MILP_STOPPED;
    s->bound = bound_of(l, a->bound);
    s->nodes = a->nodes;
    s->has_value = a->has_columns;
    if (a->has_columns)
        give_back(l, a->column, s->value);
}

int milp_solve_run(milp_solve *s)
{
    loaded l = {0};
    s->has_value = false;
    s->bound = 0;
    s->nodes = 0;
    s->status = MILP_STOPPED;
    int rc = load(&l, s);
    if (!rc) {
        lp_whole_answer answer;
        bool fine = s->g->m.col_kind[0] == MILP_TIME && MARGIN * (double)s->g->d->upper < 0.4;
        lp_whole_task task = {.method = LP_MIP,
                              .gap = s->gap,
                              .gap_absolute = fine ? 0.5 / l.time_scale : 0,
                              .tolerance = 1e-9,
                              .threads = s->threads,
                              .seed = s->seed,
                              .max_iterations = s->keep_on ? s->max_iterations : 0,
                              .start = l.start,
                              .data = &l,
                              .solution = s->solution ? on_solution : NULL,
                              .keep_on = s->keep_on ? on_bound : NULL};
        if (s->time_limit_s > 0)
            task.stop.deadline = util_seconds() + s->time_limit_s;
        rc = lp_whole_solve(&answer, &l.lp, &task);
        if (!rc)
            take(&l, s, &answer);
        else
            moirai_error_prefix(rc, "milp");
        lp_whole_answer_clear(&answer);
    }
    unload(&l);
    return rc;
}
