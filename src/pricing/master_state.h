/* The master inside: shared by master.c (column generation), master_lp.c (its LP) and master_solution.c (what the LP
 * chose). */
#ifndef MOIRAI_PRICING_MASTER_STATE_H
#define MOIRAI_PRICING_MASTER_STATE_H

#include <math.h>

#include "pricing/master.h"
#include "lp/simplex.h"
#include "util/util.h"

#define PRICING_LEAST_FREE 0.02 /* part of a bucket: keeps prices bounded */

/* A schedule of a component, or a send. */
typedef struct pricing_pool_column {
    pricing_column c; /* its arrays are one piece of memory, which begins at `use` */
    int64_t step_ns;  /* of the grid that it was found on: times are rounded down to that */
    int32_t idle;     /* solves since it was last in use */
} pricing_pool_column;

/* The LP of the present solve. */
typedef struct pricing_master_lp {
    pricing_simplex *simplex;
    int32_t n_rows;
    int32_t *resource; /* per resource: its number among those that have rows, -1: none yet */
    int32_t n_resources;
    int32_t *column; /* of the pool, for each LP column; -1 - x for the others */
    size_t n, capacity;
    size_t n_solved; /* LP columns when `primal` was found */
    double *primal, *row_dual;
    size_t primal_capacity;
    double *value; /* entries of a column on its way, and their rows */
    int32_t *row;
} pricing_master_lp;

/* Cells of the grid: resources by buckets. */
typedef struct pricing_master_cells {
    int32_t n;
    double *bucket_ns;
    double *held; /* the part that sends hold in any case; theta scales the rest alone */
    double *mass; /* what a column takes */
} pricing_master_cells;

/* Prices over all rows. */
typedef struct pricing_master_prices {
    double *dual, *center, *mean;
    int64_t *whole, *best_whole;
    double best;            /* the best bound proven so far: theta, or value */
    double part, best_part; /* cost over capacity, of the last prices and of the best */
} pricing_master_prices;

typedef struct pricing_master_pool {
    pricing_pool_column *column;
    size_t n, capacity;
    int32_t added; /* since the last prices */
    bool judging;  /* columns are judged against the dual values before they are added */
} pricing_master_pool;

struct pricing_master {
    const decompose_block *b;
    pricing_pricer *w; /* lent by the task at hand */
    const pricing_master_task *job;
    pricing_sending how;
    int32_t steps;
    pricing_grid grid;
    int32_t n_sends;
    double length_ns[PRICING_MAX_BUCKETS + 1]; /* block times that the priced form combines: the first LP columns */
    int32_t n_lengths;
    pricing_master_cells cell;
    pricing_master_pool pool;
    pricing_master_lp lp;
    pricing_master_prices price;
    int failed;
    util_memory memory; /* of all arrays but the three that grow */
};

/* Rows: all cells, sends, kinds, branches. */
static inline int32_t pricing_master_convexity_row(const pricing_master *m, int32_t kind)
{
    return kind >= 0 ? m->cell.n + m->n_sends + kind : m->cell.n - 1 - kind;
}

static inline int32_t pricing_master_branch_row(const pricing_master *m, int32_t i)
{
    return m->cell.n + m->n_sends + m->b->n_kinds + i;
}

/* The part of a cell that theta scales. */
static inline double pricing_master_free_part(const pricing_master *m, int32_t cell)
{
    return fmax(1 - m->cell.held[cell], PRICING_LEAST_FREE);
}

/* The schedule behind column x of the LP, NULL: another column. */
static inline const pricing_column *pricing_master_column(const pricing_master *m, size_t x)
{
    return m->lp.column[x] >= 0 ? &m->pool.column[m->lp.column[x]].c : NULL;
}

/* ---- master_columns.c ---- */
/* A schedule from the pricing (a pricing_column_fn of the master): into the pool and the LP, if it could improve it. */
void pricing_master_take_column(void *master, const pricing_column *column);
/* Another way to send the shared tensor: columns of sends go. */
void pricing_master_set_sending(pricing_master *m, const pricing_sending *how);
/* After a solve: which columns its solution uses. */
void pricing_master_note_idle(pricing_master *m);
/* Before one: columns that no solution has used for a while go, so that the LP stays small. */
void pricing_master_drop_idle(pricing_master *m);

/* ---- master_lp.c ---- */
/* What the bytes of a schedule cost, in ns; 0 without prices on bytes. */
double pricing_master_column_cost(const pricing_master *m, const pricing_column *c);
/* The column in rows of all cells, in m->lp.row and m->lp.value; returns how many entries. */
int32_t pricing_master_entries(pricing_master *m, const pricing_column *c);
/* The LP of the task at hand, with all columns that fit. */
int pricing_master_lp_build(pricing_master *m);
void pricing_master_lp_free(pricing_master *m);
/* A column of the pool into the LP. */
int pricing_master_lp_take(pricing_master *m, int32_t index);
/* Solve, giving rows to overloaded resources as needed; the LP solution goes to m->lp.primal, the prices over all rows to
 * m->price.dual. */
int pricing_master_lp_solve(pricing_master *m, double *value);

#endif
