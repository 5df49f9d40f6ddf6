/* The static programme as it is made, solved and judged: for the files static_*.c. */
#ifndef MOIRAI_PAIR_STATIC_STATE_H
#define MOIRAI_PAIR_STATIC_STATE_H

#include "pair/static/static_lp.h"
#include "lp/lp.h"

/* How the programme knows the devices of an edge: by columns of its own, by those of its reader or producer where the
 * other end is pinned, or not at all where its transfers take no time to speak of. */
typedef enum pair_way { PAIR_WAY_OWN, PAIR_WAY_OF_READER, PAIR_WAY_OF_PRODUCER, PAIR_WAY_LIGHT } pair_way;

typedef struct pair_programme_edges {
    int32_t *from; /* per edge: producer */
    pair_way *way; /* per edge */
    bool *shared;  /* per tensor: sent once for several readers */
} pair_programme_edges;

/* Where and when operators can be, in plans of at most upper_ns. */
typedef struct pair_programme_windows {
    uint64_t *mask;         /* per operator: devices */
    int64_t *head, *tail;   /* [op * K + device] */
    int64_t *send, *arrive; /* [tensor * K + device]: head of sending from there; tail after arriving there */
    int64_t *first, *last;  /* per operator: window of its start */
    bool *cell;             /* [(edge * K + a) * K + b]: its ends can be on a and b */
} pair_programme_windows;

/* The first row of each kind, and how many there are. */
typedef struct pair_programme_rows {
    int32_t assign, out, in, share, path, end, load, n;
    int32_t *share_of; /* [(edge * K + a) * K + b]: its row, -1: none */
} pair_programme_rows;

typedef struct pair_programme_loads {
    pair_load *load;
    int32_t n;
    size_t capacity;
} pair_programme_loads;

typedef struct pair_programme_columns {
    int32_t n, time, *op, *edge, *send;
} pair_programme_columns;

typedef struct pair_programme_solution {
    bool any; /* solved once at least */
    int64_t *dual;
    double *real_dual, *row_value, *column_value;
    size_t capacity[4];
} pair_programme_solution;

/* A column or row on its way. */
typedef struct pair_programme_line {
    int32_t *place, n;
    double *value;
    size_t place_capacity, value_capacity;
} pair_programme_line;

typedef struct pair_programme {
    const moirai_problem *q;
    int32_t n, K, E;
    int64_t proven_ns, upper_ns;
    double unit_ns; /* of time in the linear programme: numbers of a few hundred are easier on the simplex */
    pair_programme_edges edges;
    pair_programme_windows at;
    pair_programme_rows row;
    pair_programme_loads loads;
    pair_programme_columns column;
    pricing_lp *lp;
    pair_programme_solution found;
    pair_programme_line line;
} pair_programme;

/* ---- static_build.c ---- */

/* Columns and rows; columns that the windows leave no plan are fixed at 0. */
int pair_programme_build(pair_programme *x);

/* ---- static_solve.c ---- */

/* Solves it with all load rows that its solution violates, or until it is longer than upper_ns; duals become whole
 * multipliers. */
int pair_programme_solve(pair_programme *x, const util_stop *stop);
/* What the multipliers at hand prove. */
int64_t pair_programme_evaluate(const pair_programme *x);

static inline bool pair_programme_is_pinned(const moirai_problem *q, int32_t i)
{
    return !(q->op_devices[i] & (q->op_devices[i] - 1));
}

static inline bool pair_programme_allows(const pair_programme *x, int32_t i, int32_t k)
{
    return x->at.mask[i] >> k & 1;
}

static inline void pair_programme_enter(pair_programme *x, int32_t place, double value)
{
    x->line.place[x->line.n] = place;
    x->line.value[x->line.n++] = value;
}

/* ---- static_windows.c ---- */

/* Devices, heads and tails. */
void pair_windows_find(pair_programme *x);
/* No plan of at most upper_ns is left: an operator, or an edge, has no devices. */
bool pair_windows_empty(const pair_programme *x);

/* ---- static_loads.c ---- */

/* Whether operator i on device k, or the transfer of t from a to b, counts in the row. */
bool pair_load_counts_op(const pair_programme *x, const pair_load *r, int32_t i, int32_t k);
bool pair_load_counts_transfer(const pair_programme *x, const pair_load *r, int32_t t, int32_t a, int32_t b);
/* Adds rows that the solution at hand violates; *added: how many. */
int pair_loads_separate(pair_programme *x, int32_t *added);

#endif
