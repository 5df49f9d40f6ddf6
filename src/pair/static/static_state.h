/* The static programme as it is made, solved and judged: for the files static_*.c. */
#ifndef MOIRAI_PAIR_STATIC_STATE_H
#define MOIRAI_PAIR_STATIC_STATE_H

#include "pair/static/static_lp.h"
#include "lp/lp.h"

/* Devices in an order that a case knows: these first; nobody else if it is closed. */
typedef struct pair_receivers {
    int32_t n;
    bool closed;
    int8_t device[MOIRAI_MAX_DEVICES];
} pair_receivers;

/* How the programme knows the devices of an edge: by columns of its own, by those of its reader or producer where the
 * other end is pinned, or not at all where its transfers take no time to speak of. */
typedef enum pair_way { PAIR_WAY_OWN, PAIR_WAY_OF_READER, PAIR_WAY_OF_PRODUCER, PAIR_WAY_LIGHT } pair_way;

/* What does not change from case to case. */
typedef struct pair_programme_edges {
    int32_t *from; /* per edge: producer */
    pair_way *way; /* per edge */
    bool *shared;  /* per tensor: sent once for several readers */
} pair_programme_edges;

typedef struct pair_programme_results {
    int32_t exit_device; /* device of the exit, to which results return; MOIRAI_NONE: no exit is known */
    int64_t return_ns;   /* what is sent there counts as a result where it takes as long */
    bool *is;            /* per tensor */
    int64_t *ns;         /* per device: the shortest transfer of a result from there */
} pair_programme_results;

/* The case at hand. */
typedef struct pair_programme_case {
    pair_receivers to;      /* who receives the entry's tensor, in order */
    pair_receivers back;    /* who sends results to the exit's device, from the last on */
    uint64_t *told;         /* per operator: devices that the case leaves it */
    uint64_t *mask;         /* those that are left by the windows */
    int64_t *head, *tail;   /* [op * K + device] */
    int64_t *send, *arrive; /* [tensor * K + device]: head of sending from there; tail after arriving there */
    int64_t *first, *last;  /* per operator: window of its start */
    int64_t *least, *most;  /* [number]: its range */
    bool *cell;             /* [(edge * K + a) * K + b]: its ends can be on a and b */
    bool *fixed;            /* per column: at 0 */
} pair_programme_case;

/* How many operators of a group are on a device, then how many readers of `sent` are. */
typedef struct pair_programme_numbers {
    int32_t n;
    int32_t n_groups, *group_of, *group_off, *group_op; /* group_of: per operator, MOIRAI_NONE: in none */
    int32_t sent, sender;                               /* tensor and its device; MOIRAI_NONE: none */
} pair_programme_numbers;

/* The first row of each kind, and how many there are. */
typedef struct pair_programme_rows {
    int32_t assign, out, in, share, path, end, number, load, n;
    int32_t *share_of; /* [(edge * K + a) * K + b]: its row, -1: none */
} pair_programme_rows;

/* Load rows of the case at hand. */
typedef struct pair_programme_loads {
    pair_load *load; /* head_ns < 0: not a row of this case */
    int32_t n;
    int64_t *off; /* tasks of a row: operators, or (tensor * K + a) * K + b */
    int32_t *task;
    size_t load_capacity, off_capacity, task_capacity;
} pair_programme_loads;

typedef struct pair_programme_columns {
    int32_t n, time, *op, *edge, *send;
} pair_programme_columns;

typedef struct pair_programme_solution {
    bool any;        /* solved once at least */
    double violated; /* of the length: load rows that are violated by less are not added */
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
    pair_programme_results result;
    pair_programme_case at;
    pair_programme_numbers number;
    pair_programme_rows row;
    pair_programme_loads loads;
    pair_programme_columns column;
    pricing_lp *lp;
    pair_programme_solution found;
    pair_programme_line line;
} pair_programme;

/* ---- static_build.c ---- */

/* Columns and rows of the whole problem. */
int pair_programme_build(pair_programme *x);
/* Columns that the case at hand does not have are fixed at 0, others are free. */
int pair_programme_fix(pair_programme *x);

/* ---- static_solve.c ---- */

/* How many edges lead from the tensor that is sent to operator i. */
int32_t pair_programme_times_read(const pair_programme *x, int32_t i);
/* Solves the case at hand, with all load rows that its solution violates, or until it is longer than `enough`; duals
 * become whole multipliers. */
int pair_programme_solve(pair_programme *x, int64_t enough_ns, const util_stop *stop);
/* What the multipliers at hand prove of the case at hand. */
int64_t pair_programme_evaluate(const pair_programme *x);

static inline bool pair_programme_is_pinned(const moirai_problem *q, int32_t i)
{
    return !(q->op_devices[i] & (q->op_devices[i] - 1));
}

static inline bool pair_programme_allows(const pair_programme *x, int32_t i, int32_t k)
{
    return x->at.mask[i] >> k & 1;
}

static inline bool pair_programme_reads(const pair_programme *x, int32_t e)
{
    return x->q->edge_tensor[e] == x->number.sent;
}

static inline void pair_programme_enter(pair_programme *x, int32_t place, double value)
{
    x->line.place[x->line.n] = place;
    x->line.value[x->line.n++] = value;
}

/* ---- static_windows.c ---- */

/* Devices, heads, tails and numbers of the case at hand: `to`, `least` and `most` are its own. */
void pair_windows_find(pair_programme *x);
/* No plan of at most upper_ns is left: an operator, or an edge, has no devices. */
bool pair_windows_empty(const pair_programme *x);

/* ---- static_loads.c ---- */

/* Whether operator i on device k, or the transfer of t from a to b, counts in the row. */
bool pair_load_counts_op(const pair_programme *x, const pair_load *r, int32_t i, int32_t k);
bool pair_load_counts_transfer(const pair_programme *x, const pair_load *r, int32_t t, int32_t a, int32_t b);
/* Heads and tails of all rows for the case at hand. */
int pair_loads_refresh(pair_programme *x);
/* Adds rows that the solution at hand violates; *added: how many. */
int pair_loads_separate(pair_programme *x, int32_t *added);

/* ---- static_cases.c ---- */

/* How much a side of divisions by a number has proven beyond the whole, per unit of the number that it forbids. */
typedef struct pair_static_rise {
    double sum_ns, times;
} pair_static_rise;

typedef struct pair_static_search {
    pair_static_tree tree;
    /* in the programme's solution of each case: [case * (numbers + n K)] numbers, then operators on devices */
    double *number;
    size_t number_capacity;
    pair_static_rise *rise; /* [number * 2 + side]: at most, more */
    bool idle;              /* does not help, or nothing left */
} pair_static_search;

struct pair_static {
    pair_programme x;
    int64_t most_ns; /* no use in proving more: x.upper_ns climbs up to it */
    int32_t rounds;
    pair_static_search search;
};

/* Numbers of a solution that is kept, and operators on devices behind them. */
static inline size_t pair_static_solution_size(const pair_programme *x)
{
    return (size_t)x->number.n + (size_t)x->n * (size_t)x->K;
}

/* The multipliers at hand as a certificate has them: load rows without any are left out. */
int pair_static_pack(pair_static_case *c, pair_programme *x, bool numbers);
void pair_static_search_clear(pair_static_search *s);

/* ---- static_case.c ---- */

/* Groups of operators alike, and ranges of their numbers that say nothing. */
int pair_static_find_groups(pair_programme *x);
/* Makes case `at` the one at hand. */
int pair_static_enter_case(pair_programme *x, const pair_static_tree *s, int32_t at);
/* Whether plans are left in it: every operator has a device, and every operator of a group is on one. */
bool pair_static_adds_up(const pair_programme *x);

/* ---- static_branch.c ---- */

/* Who receives the entry's tensor in case `at`, or who returns results. */
pair_receivers pair_static_listed(const pair_static_tree *s, int32_t at, pair_static_division how);
/* Case `at` was judged for the first time: what its division has brought. */
void pair_static_learn(pair_static *p, int32_t at);
/* How to divide case `at`: the devices of a division by sending or return; 0: by number or device, or not at all (*any
 * false). */
uint64_t pair_static_choose(const pair_static *p, int32_t at, pair_static_case *c, bool *any);

#endif
