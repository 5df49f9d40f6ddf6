/* The static programme as it is made, solved and judged: for static_lp.c, static_loads.c and static_cases.c. */
#ifndef MOIRAI_PAIR_STATIC_STATE_H
#define MOIRAI_PAIR_STATIC_STATE_H

#include "pair/static_lp.h"
#include "pricing/lp.h"

/* Where the entry's tensor goes, in the order of arrival: these devices first; nobody else if it is closed. */
typedef struct pair_receivers {
    int32_t n;
    bool closed;
    int8_t device[MOIRAI_MAX_DEVICES];
} pair_receivers;

typedef struct pair_programme {
    const moirai_problem *q;
    int32_t n, K, E;
    int64_t proven_ns, upper_ns;
    double unit_ns; /* of time in the linear programme: numbers of a few hundred are easier on the simplex */
    int32_t *from;  /* per edge: producer */
    bool *shared;   /* per tensor: sent once for several readers */
    /* the case at hand */
    pair_receivers to;
    uint64_t *mask;         /* per operator: its devices */
    int64_t *head, *tail;   /* [op * K + device] */
    int64_t *send, *arrive; /* [tensor * K + device]: head of sending from there; tail after arriving there */
    int64_t *first, *last;  /* per operator: window of its start */
    int64_t *least, *most;  /* [number]: its range */
    /* numbers: how many operators of a group are on a device, then how many readers of `sent` are */
    int32_t n_groups, *group_of, *group_off, *group_op; /* group_of: per operator, MOIRAI_NONE: in none */
    int32_t sent, sender;                               /* tensor and its device; MOIRAI_NONE: none */
    int32_t n_numbers;
    /* rows */
    int32_t assign_row, out_row, in_row, share_row, path_row, end_row, number_row, load_row, n_rows;
    int32_t *share_of; /* [(edge * K + a) * K + b]: its row, -1: none */
    pair_load *load;   /* of the case at hand; head_ns < 0: not a row of this case */
    int32_t n_loads;
    int64_t *load_off; /* tasks of a row: operators, or (tensor * K + a) * K + b */
    int32_t *load_task;
    size_t load_capacity, off_capacity, task_capacity;
    /* columns */
    int32_t n_columns, time_column, *op_column, *edge_column, *send_column;
    pricing_lp *lp;
    bool solved; /* once at least */
    int64_t *dual;
    double *real_dual, *row_value, *column_value;
    size_t room[4];
    /* a column or row on its way */
    int32_t *place;
    double *value;
    int32_t n_entries;
    size_t place_capacity, value_capacity;
} pair_programme;

/* ---- static_lp.c ---- */

/* Windows of the case in which the entry's tensor goes there; load rows follow. */
void pair_programme_send(pair_programme *x, const pair_receivers *to);
/* Solves the case at hand, with all load rows that its solution violates, or until it is longer than `enough`; duals
 * become whole multipliers. */
int pair_programme_solve(pair_programme *x, int64_t enough_ns, const util_stop *stop);
/* What the multipliers at hand prove of the case at hand. */
int64_t pair_programme_evaluate(const pair_programme *x);

static inline bool pair_programme_allows(const pair_programme *x, int32_t i, int32_t k)
{
    return x->mask[i] >> k & 1;
}

static inline bool pair_programme_reads(const pair_programme *x, int32_t e)
{
    return x->q->edge_tensor[e] == x->sent;
}

static inline void pair_programme_enter(pair_programme *x, int32_t place, double value)
{
    x->place[x->n_entries] = place;
    x->value[x->n_entries++] = value;
}

/* ---- static_loads.c ---- */

/* Whether operator i on device k, or the transfer of t from a to b, counts in the row. */
bool pair_load_counts_op(const pair_programme *x, const pair_load *r, int32_t i, int32_t k);
bool pair_load_counts_transfer(const pair_programme *x, const pair_load *r, int32_t t, int32_t a, int32_t b);
/* Heads and tails of all rows for the case at hand. */
int pair_loads_refresh(pair_programme *x);
/* Adds rows that the solution at hand violates; *added: how many. */
int pair_loads_separate(pair_programme *x, int32_t *added);

/* ---- static_cases.c ---- */

typedef struct pair_static_search {
    pair_static_tree tree;
    double *number; /* [case * numbers + number] in the programme's solution */
    size_t number_capacity;
    bool idle; /* does not help, or nothing left */
} pair_static_search;

struct pair_static {
    pair_programme x;
    int32_t rounds;
    pair_static_search search;
};

int pair_static_find_groups(pair_programme *x);
/* The multipliers at hand as a certificate has them: load rows without any are left out. */
int pair_static_pack(pair_static_case *c, pair_programme *x, bool numbers);
void pair_static_search_clear(pair_static_search *s);

#endif
