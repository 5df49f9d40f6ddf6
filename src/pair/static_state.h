/* The static programme as it is made, solved and judged: for static_lp.c and static_cases.c. */
#ifndef MOIRAI_PAIR_STATIC_STATE_H
#define MOIRAI_PAIR_STATIC_STATE_H

#include "pair/static_lp.h"
#include "pricing/lp.h"

typedef struct pair_programme {
    const moirai_problem *q;
    const pair_static_task *job;
    int32_t n, K, E;
    int64_t proven_ns;
    int32_t *from;          /* per edge: producer */
    bool *shared;           /* per tensor: sent once for several readers */
    int64_t *head, *tail;   /* [op * K + device] */
    int64_t *send, *arrive; /* [tensor * K + device]: head of sending from there; tail after arriving there */
    int64_t *first, *last;  /* per operator: window of its start */
    /* rows */
    int32_t out_row, in_row, share_row, path_row, end_row, load_row, count_row, n_rows, assign_row;
    pair_load *load;
    int32_t n_loads;
    size_t load_capacity;
    /* numbers (static_cases.c): how many operators of a group are on a device */
    int32_t n_groups, *group_of, *group_off, *group_op; /* group_of: per operator, MOIRAI_NONE: in none */
    int64_t *least, *most;                              /* [group * K + device] of the case at hand */
    int64_t *dual;
    pricing_lp *lp;
    /* a column on its way */
    int32_t *row;
    double *value;
    int32_t n_entries;
} pair_programme;

/* Windows, load rows for what is proven by now, and room for everything; clear it in any case. */
int pair_programme_prepare(pair_programme *x);
void pair_programme_clear(pair_programme *x);
int pair_programme_choose_loads(pair_programme *x);
/* All rows and columns, as x->lp. */
int pair_programme_build(pair_programme *x);
/* Duals of the linear programme as whole multipliers. */
void pair_programme_round(pair_programme *x, const double *dual);
/* What the multipliers at hand prove of the case at hand. */
int64_t pair_programme_evaluate(const pair_programme *x);
/* The multipliers at hand, as they prove `bound_ns`. */
int pair_programme_keep(pair_static_proof *out, const pair_programme *x, int64_t bound_ns);

#endif
