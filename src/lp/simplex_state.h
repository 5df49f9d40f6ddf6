/* The simplex inside: simplex.c builds and solves, simplex_step.c takes an iteration, simplex_basis.c keeps the inverse. */
#ifndef MOIRAI_LP_SIMPLEX_STATE_H
#define MOIRAI_LP_SIMPLEX_STATE_H

#include <math.h>
#include <stdbool.h>

#include "lp/simplex.h"
#include "util/util.h"

/* What the numbers are worth: docs/results.md has solves of masters beside those of HiGHS. */
#define SIMPLEX_FEASIBLE 1e-9 /* limits are kept to this */
#define SIMPLEX_LEAST_PIVOT 1e-7
#define SIMPLEX_PIECE 8   /* numbers that a loop over a line takes at a time */
#define SIMPLEX_ENTRIES 4 /* and one over a column's entries */

/* Of the logical variables, by row. */
typedef struct simplex_limits {
    double *lower, *upper; /* nudged */
    bool *at_upper;        /* outside of the basis: at which of its limits */
} simplex_limits;

/* By place. */
typedef struct simplex_basis {
    double *inverse;    /* a line for each row of the programme, in it a number for each place. Where the row's logical
                         * variable is in the basis, the line is 1 at its place and 0 elsewhere: exactly so, since the
                         * exchange takes it from itself */
    int32_t stride;     /* of its lines */
    int32_t *head;      /* which variable is in the basis */
    double *basic;      /* its value */
    double *low, *high; /* and its limits */
    int32_t exchanges;  /* since the inverse was made */
} simplex_basis;

typedef struct simplex_columns {
    double *cost, most_cost;
    size_t *off; /* multiples of SIMPLEX_ENTRIES: each column is filled up with entries of 0 */
    int32_t *row;
    double *value;
    size_t cost_capacity, off_capacity, row_capacity, value_capacity;
} simplex_columns;

/* What is kept for every variable: logical ones by row, then the columns. */
typedef struct simplex_variables {
    int32_t *place; /* in the basis, -1: none */
    double *weight, *reduced, *part;
    size_t place_capacity, weight_capacity, reduced_capacity, part_capacity;
} simplex_variables;

struct pricing_simplex {
    int32_t m, n;
    simplex_limits limit;
    simplex_basis basis;
    simplex_columns columns;
    simplex_variables each;
    double *phase_cost, *dual, *column, *pivot_row;
    int32_t *costly;    /* places where the phase's cost is not 0; then those that may leave */
    bool first;         /* phase 1: some of the basis break their limits */
    util_memory memory; /* of all but columns and variables, which grow */
};

/* ---- simplex_basis.c ---- */

void simplex_identity(pricing_simplex *s);
/* part = the inner products of a line over the rows with the columns of all variables; 0 for those in the basis. */
void simplex_find_parts(pricing_simplex *s, const double *line);
/* The column of a variable in terms of the basis. */
void simplex_transform(pricing_simplex *s, int32_t v);
/* The inverse's part of a place, over the rows of the programme. */
void simplex_find_pivot_row(pricing_simplex *s, int32_t place);
/* The transformed column takes a place in the basis, whose pivot row is known: the inverse follows. */
void simplex_exchange(pricing_simplex *s, int32_t place);
void simplex_find_values(pricing_simplex *s);
/* The inverse from its columns, one after the other: logical variables of the basis take their own rows, columns those
 * of the others. A column that depends on the others by now leaves the basis. */
int simplex_renew(pricing_simplex *s);

/* ---- simplex_step.c ---- */

/* Costs of the phase at hand, and the dual values and reduced costs that follow. */
void simplex_price_anew(pricing_simplex *s);
typedef enum simplex_result { SIMPLEX_TAKEN, SIMPLEX_OPTIMAL, SIMPLEX_STUCK } simplex_result;
simplex_result simplex_step(pricing_simplex *s);

/* ---- limits and values ---- */

static inline double simplex_lower_of(const pricing_simplex *s, int32_t v)
{
    return v < s->m ? s->limit.lower[v] : 0;
}

static inline double simplex_upper_of(const pricing_simplex *s, int32_t v)
{
    return v < s->m ? s->limit.upper[v] : HUGE_VAL;
}

/* Of a variable outside of the basis. */
static inline double simplex_resting_value(const pricing_simplex *s, int32_t v)
{
    if (v >= s->m)
        return 0;
    double at = s->limit.at_upper[v] ? s->limit.upper[v] : s->limit.lower[v];
    return isinf(at) ? 0 : at;
}

/* A variable comes to this place of the basis. */
static inline void simplex_sit(pricing_simplex *s, int32_t place, int32_t v)
{
    s->basis.head[place] = v;
    s->each.place[v] = place;
    s->basis.low[place] = simplex_lower_of(s, v);
    s->basis.high[place] = simplex_upper_of(s, v);
}

/* out += by * a, n a multiple of SIMPLEX_PIECE. */
static inline void simplex_add_line(double *restrict out, const double *restrict a, double by, int32_t n)
{
    for (int32_t i = 0; i < n; i += SIMPLEX_PIECE)
        for (int32_t j = 0; j < SIMPLEX_PIECE; j++)
            out[i + j] += by * a[i + j];
}

#endif
