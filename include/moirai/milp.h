/* The paper's mixed-integer program (equations 4 to 8) as an object of its own: count it, write it for
 * other solvers, read their answers back. None of this needs HiGHS; solving it does (placer "milp"). */
#ifndef MOIRAI_MILP_H
#define MOIRAI_MILP_H

#include <moirai/placer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tight: the default. paper: as printed. Both have the same optimum. */
typedef enum moirai_formulation { MOIRAI_FORMULATION_TIGHT, MOIRAI_FORMULATION_PAPER } moirai_formulation;
/* "tight" or "paper"; MOIRAI_EUSAGE for anything else. */
MOIRAI_API int moirai_formulation_parse(moirai_formulation *out, const char *text);
/* Its name. Static. */
MOIRAI_API const char *moirai_formulation_name(moirai_formulation f);

typedef struct moirai_milp_size {
    int64_t rows, columns, binaries, nonzeros;
} moirai_milp_size;

#define MOIRAI_MILP_MAX_ROWS 500000 /* default of the row limit */

/* Model of `p` without building it. `start` may be NULL: a plan whose makespan bounds the time windows.
 * O(V^2 + E^2) time, O(V^2) bits. */
MOIRAI_API int moirai_milp_measure(moirai_milp_size *out, const moirai_problem *p, moirai_formulation f,
                                   const moirai_plan *start);

/* Write the model to `path` as text ("lp" or "mps"). Times are in units of *unit_ns, which is also in the file's
 * opening comment. `start` as above: plans slower than it are not solutions of the model. Refuses models of more
 * than `max_rows` rows (MOIRAI_ELIMIT). A problem with memory "peak" is written without the lives of tensors: a
 * relaxation (import says so when an answer does not fit). `size` and `unit_ns` may be NULL. */
MOIRAI_API int moirai_milp_export(const moirai_problem *p, moirai_formulation f, const char *format,
                                  const moirai_plan *start, int64_t max_rows, const char *path, moirai_milp_size *size,
                                  int64_t *unit_ns);

/* What a solution file says about itself. */
typedef struct moirai_milp_claim {
    char solver[16]; /* "highs", "cbc", "gurobi", "scip", "glpk" */
    char status[80]; /* the file's own words, "" if it has none */
    bool optimal;    /* the file claims optimality */
    bool has_objective;
    double objective;     /* in the model's units */
    int64_t objective_ns; /* the claim in ns, rounded to the grid of the problem's times */
} moirai_milp_claim;

/* Read a solution file of any of these solvers for a model that moirai_milp_export wrote from `p`, either
 * formulation. Devices and orders are taken from it, times from the simulator. lower_bound_ns of the plan holds the
 * plain bounds only: that a file says "optimal" proves nothing here. If `trust` is set and the plan is as short as
 * the claimed objective, the claim becomes its solver_bound_ns. */
MOIRAI_API int moirai_milp_import(moirai_plan **out, const moirai_problem *p, const char *path, bool trust,
                                  moirai_milp_claim *claim);

#ifdef __cplusplus
}
#endif
#endif
