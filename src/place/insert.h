/* Operators into gaps of devices, transfers into gaps of ports or channels: what HEFT does, and who fills gaps of a
 * plan. Private. */
#ifndef MOIRAI_INSERT_H
#define MOIRAI_INSERT_H

#include "place/list.h"
#include "place/timeline.h"

typedef struct moirai_sending_try {
    int32_t slot, from;
    int64_t start_ns, ns;
} moirai_sending_try;

typedef struct moirai_insert {
    const moirai_problem *p;
    moirai_list *list;       /* what has been placed */
    moirai_timeline *device; /* per device */
    moirai_timeline *line;   /* ports: send k at k, receive k at K + k; channels: from * K + to */
    moirai_timeline *tried;  /* transfers of the operator on trial: one for a port, one per sender for channels */
    moirai_sending_try *now, *best; /* transfers on trial, and of the best device so far */
    int32_t n_now, n_best;
    int32_t trial;        /* the operator tried last, */
    const int32_t *input; /* and its inputs by arrival */
} moirai_insert;

int moirai_insert_new(moirai_insert **out, const moirai_problem *p);
void moirai_insert_free(moirai_insert *x);
/* Nothing placed, for another go; allocates nothing. */
void moirai_insert_clear(moirai_insert *x);

/* Earliest start of `op` on k with its inputs sent into gaps, or INT64_MAX once it is sure to finish no sooner than
 * `limit_ns`; -1: out of memory. Its inputs must be placed. */
int64_t moirai_insert_try(moirai_insert *x, int32_t op, int32_t k, int64_t limit_ns);
/* The transfers of the last trial are the ones to commit. */
void moirai_insert_keep(moirai_insert *x);
/* Places `op` on k with the transfers kept. */
int moirai_insert_commit(moirai_insert *x, int32_t op, int32_t k, int64_t start_ns);

/* Earliest start of a transfer from `at` on; and taking the time. */
int64_t moirai_insert_find_sending(const moirai_insert *x, int32_t from, int32_t to, int64_t at, int64_t ns);
int moirai_insert_take_sending(moirai_insert *x, int32_t slot, int32_t from, int32_t to, int64_t start_ns, int64_t ns);
int moirai_insert_take_op(moirai_insert *x, int32_t op, int32_t k, int64_t start_ns);

#endif
