/* Linear and mixed-integer programmes that are written down at once, row by row, and solved once. Minimises.
 *
 * The master of the price search grows by columns and lives on: that is lp.h. Here are the programmes of m-SCT and GETF. */
#ifndef MOIRAI_PRICING_LP_WHOLE_H
#define MOIRAI_PRICING_LP_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/stop.h"

/* HUGE_VAL stands for "no limit" in every lower and upper. */
typedef struct pricing_whole {
    int32_t n_columns, n_rows;
    double *cost, *lower, *upper;  /* per column */
    int *integral;                 /* per column: 1 where it must be whole */
    double *row_lower, *row_upper; /* per row */
    int *row_off, *index;          /* rows -> columns, CSR; row_off has n_rows + 1 entries once it is solved */
    double *value;
    int32_t n_values;
    size_t column_capacity[4], row_capacity[3], value_capacity[2];
    bool failed; /* memory ran out while it was written: pricing_whole_solve says so */
} pricing_whole;

typedef enum pricing_method {
    PRICING_SIMPLEX,  /* dual simplex: an optimal vertex and its duals */
    PRICING_INTERIOR, /* interior point without crossover: a solution within the optimal face, and its duals */
    PRICING_MIP       /* branch and bound over the columns marked integral; no duals */
} pricing_method;

typedef struct pricing_whole_task {
    pricing_method method;
    util_stop stop;
    double gap;          /* PRICING_MIP: stop within this share of its bound */
    uint64_t seed;       /* PRICING_MIP */
    const double *start; /* PRICING_MIP: a solution to begin with, or NULL */
    bool presolve;       /* let the solver simplify first */
} pricing_whole_task;

typedef enum pricing_end {
    PRICING_OPTIMAL, /* within the solver's tolerances */
    PRICING_STOPPED  /* time limit, interrupt, or the solver gave up; see has_columns */
} pricing_end;

typedef struct pricing_whole_answer {
    pricing_end end;
    double objective;
    bool has_columns; /* `column` holds a solution (for a stopped PRICING_MIP its best one) */
    bool has_duals;   /* `row_dual` holds the duals; their signs as of a minimisation: >= 0 on rows a x >= b */
    double *column, *row_dual;
} pricing_whole_answer;

/* Is the solver built in? The shape of moirai_placer.available. */
bool pricing_whole_available(const char **why);

void pricing_whole_clear(pricing_whole *m);
/* Forget columns and rows, keep the memory, for the next programme. */
void pricing_whole_reset(pricing_whole *m);
/* A column, and its number. */
int32_t pricing_whole_column(pricing_whole *m, double cost, double lower, double upper);
/* A row, whose terms follow by pricing_whole_term. Columns of one row must differ. */
void pricing_whole_row(pricing_whole *m, double lower, double upper);
void pricing_whole_term(pricing_whole *m, int32_t column, double value);

/* Deterministic unless time or an interrupt ends it. The solver's answer is a floating-point number: what is proven from it has
 * to be evaluated in whole numbers. MOIRAI_EFAIL where there is no solver, no memory, or the programme is infeasible or
 * unbounded, which no caller here means to write. The answer is cleared by pricing_whole_answer_clear in every case. */
int pricing_whole_solve(pricing_whole_answer *out, pricing_whole *m, const pricing_whole_task *task);
void pricing_whole_answer_clear(pricing_whole_answer *a);

#endif
