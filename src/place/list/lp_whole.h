/* Linear and mixed-integer programmes that are written down at once, row by row, and solved once. Minimises.
 *
 * The master of the price search grows by columns and lives on: that is simplex.h. Here are the programmes of m-SCT, GETF
 * and the placer milp. */
#ifndef MOIRAI_PLACE_LIST_LP_WHOLE_H
#define MOIRAI_PLACE_LIST_LP_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/stop.h"

/* HUGE_VAL stands for "no limit" in every lower and upper. */
typedef struct lp_whole {
    int32_t n_columns, n_rows;
    double *cost, *lower, *upper;  /* per column */
    int *integral;                 /* per column: 1 where it must be whole */
    double *row_lower, *row_upper; /* per row */
    int *row_off, *index;          /* rows -> columns, CSR; row_off has n_rows + 1 entries once it is solved */
    double *value;
    int32_t n_values;
    size_t column_capacity[4], row_capacity[3], value_capacity[2];
    bool failed; /* memory ran out while it was written: lp_whole_solve says so */
} lp_whole;

typedef enum lp_method {
    LP_SIMPLEX,  /* dual simplex: an optimal vertex and its duals */
    LP_INTERIOR, /* interior point without crossover: a solution within the optimal face, and its duals */
    LP_MIP       /* branch and bound over the columns marked integral; no duals */
} lp_method;

typedef struct lp_whole_task {
    lp_method method;
    util_stop stop;
    bool presolve; /* let the solver simplify a linear programme first; branch and bound decides by itself */

    /* LP_MIP only. */
    double gap, gap_absolute; /* stop within this share, or this much, of its bound; 0 absolute: the solver's own */
    double tolerance;         /* of rows and whole numbers; 0: the solver's own */
    int threads;              /* 0: as many as the solver likes */
    uint64_t seed;
    int64_t max_iterations; /* of the simplex method, a limit that does not depend on the machine; 0: none */
    const double *start;    /* a value per column, NAN where left open, or NULL */
    void *data;             /* for the two below */
    void (*solution)(void *data, const double *column);       /* gets every improving solution; may be NULL */
    bool (*keep_on)(void *data, double bound, int64_t nodes); /* false: stop; may be NULL */
} lp_whole_task;

typedef enum lp_end {
    LP_OPTIMAL,    /* within the solver's tolerances */
    LP_INFEASIBLE, /* there is no solution, says the solver */
    LP_STOPPED     /* a limit, an interrupt, or the solver gave up; see has_columns */
} lp_end;

typedef struct lp_whole_answer {
    lp_end end;
    double objective;
    double bound;     /* LP_MIP: on the objective, as the solver has it; not finite where it has none */
    int64_t nodes;    /* LP_MIP */
    bool has_columns; /* `column` holds a solution (for a stopped LP_MIP its best one) */
    bool has_duals;   /* `row_dual` holds the duals; their signs as of a minimisation: >= 0 on rows a x >= b */
    double *column, *row_dual;
} lp_whole_answer;

/* Is the solver built in? The shape of moirai_placer.available. */
bool lp_whole_available(const char **why);

void lp_whole_clear(lp_whole *m);
/* Forget columns and rows, keep the memory, for the next programme. */
void lp_whole_reset(lp_whole *m);
/* Room for so many at once, where they are known: growing could take up to twice as much. 0 or MOIRAI_EFAIL. */
int lp_whole_reserve(lp_whole *m, size_t columns, size_t rows, size_t values);
/* A column, and its number. */
int32_t lp_whole_column(lp_whole *m, double cost, double lower, double upper);
/* A row, whose terms follow by lp_whole_term. Columns of one row must differ. */
void lp_whole_row(lp_whole *m, double lower, double upper);
void lp_whole_term(lp_whole *m, int32_t column, double value);

/* Deterministic, unless time or an interrupt ends it or several threads search. The solver's answer is a floating-point
 * number: what is proven from it has to be evaluated in whole numbers, or with a margin that is large enough.
 * MOIRAI_EFAIL where there is no solver, no memory, or the solver fails; MOIRAI_ELIMIT where coefficients are 10^15 or
 * more, which it does not take. The answer is cleared by
 * lp_whole_answer_clear in every case. */
int lp_whole_solve(lp_whole_answer *out, lp_whole *m, const lp_whole_task *task);
void lp_whole_answer_clear(lp_whole_answer *a);

#endif
