/* The master inside: shared by master.c (column generation), master_lp.c (its LP) and master_solution.c (what the LP
 * chose). */
#ifndef MOIRAI_PRICING_MASTER_STATE_H
#define MOIRAI_PRICING_MASTER_STATE_H

#include <math.h>

#include "lp/lp.h"
#include "pricing/master.h"
#include "lp/simplex.h"

#define PRICING_LEAST_FREE 0.02 /* part of a bucket: keeps prices bounded */

/* A schedule of a component, or a send. */
typedef struct pricing_pool_column {
    int32_t kind;      /* -1 - j: the j-th send */
    int64_t finish_ns; /* it fits into any T from here on */
    int64_t step_ns;   /* of the grid that it was found on: times are rounded down to that */
    int32_t idle;      /* solves since it was last in use */
    int32_t n_ops, n_uses;
    pricing_use *use;
    int8_t *device;
    int64_t *start;
} pricing_pool_column;

struct pricing_master {
    const decompose_block *b;
    pricing_pricer *w; /* lent by the task at hand */
    int32_t entry_device, exit_device;
    pricing_sending how;
    int32_t steps;
    pricing_grid grid;
    int32_t n_sends, n_cells;
    int32_t *lp_resource; /* per resource: its number among those that have rows, -1: none yet */
    int32_t n_lp_resources;
    pricing_pool_column *column;
    size_t n_columns, capacity;
    /* of the present solve */
    const pricing_master_task *job;
    pricing_simplex *simplex; /* one of the two: */
    pricing_lp *lp;
    bool gave_up; /* the simplex, in this solve */
    int32_t n_rows;
    int32_t *lp_column; /* column of each LP column, -1 - x for the others */
    size_t n_lp, lp_capacity;
    size_t n_solved;   /* LP columns when `primal` was found */
    double *bucket_ns; /* per cell */
    double
        length_ns[PRICING_MAX_BUCKETS + 1]; /* block times that the priced form combines: the first columns of the LP */
    int32_t n_lengths;
    double *held; /* per cell: the part that sends hold in any case; theta scales the rest alone */
    double *dual, *center, *mean, *row_dual;
    double *primal;
    size_t primal_capacity;
    int64_t *price, *best_price;
    double *mass, *value;
    int32_t *row;
    double best;            /* the best bound proven so far: theta, or value */
    double part, best_part; /* cost over capacity, of the last prices and of the best */
    int32_t added;
    bool judging; /* columns are judged against `dual` before they are added */
    int failed;
};

/* Rows: all cells, sends, kinds, branches. */
static inline int32_t pricing_master_convexity_row(const pricing_master *m, int32_t kind)
{
    return kind >= 0 ? m->n_cells + m->n_sends + kind : m->n_cells - 1 - kind;
}

static inline int32_t pricing_master_branch_row(const pricing_master *m, int32_t i)
{
    return m->n_cells + m->n_sends + m->b->n_kinds + i;
}

/* The part of a cell that theta scales. */
static inline double pricing_master_free_part(const pricing_master *m, int32_t cell)
{
    return fmax(1 - m->held[cell], PRICING_LEAST_FREE);
}

/* The schedule behind column x of the LP, NULL: another column. */
static inline pricing_pool_column *pricing_master_column(const pricing_master *m, size_t x)
{
    return m->lp_column[x] >= 0 ? &m->column[m->lp_column[x]] : NULL;
}

/* ---- master_columns.c ---- */
void pricing_column_free(pricing_pool_column *c);
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
double pricing_master_column_cost(const pricing_master *m, const pricing_pool_column *c);
/* The column in rows of all cells, in m->row and m->value; returns how many entries. */
int32_t pricing_master_entries(pricing_master *m, const pricing_pool_column *c);
/* The LP of the task at hand, with all columns that fit. */
int pricing_master_lp_build(pricing_master *m);
void pricing_master_lp_free(pricing_master *m);
/* A column of the pool into the LP. */
int pricing_master_lp_take(pricing_master *m, int32_t index);
/* Solve, giving rows to overloaded resources as needed; the LP solution goes to m->primal, the prices over all rows to
 * m->dual. */
int pricing_master_lp_solve(pricing_master *m, double *value);

#endif
