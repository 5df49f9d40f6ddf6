/* Operators into gaps of devices, transfers into gaps of ports or channels: what HEFT does, and who fills gaps of a
 * plan. Private. */
#ifndef MOIRAI_PLACE_LIST_INSERT_H
#define MOIRAI_PLACE_LIST_INSERT_H

#include "place/list/list.h"
#include "place/list/timeline.h"

typedef struct place_sending_try {
    int32_t slot, from;
    int64_t start_ns, ns;
} place_sending_try;

typedef struct place_insert {
    const moirai_problem *p;
    place_list *list;              /* what has been placed */
    place_timeline *device;        /* per device */
    place_timeline *line;          /* ports: send k at k, receive k at K + k; channels: from * K + to */
    place_timeline *tried;         /* transfers of the operator on trial: one for a port, one per sender for channels */
    place_sending_try *now, *best; /* transfers on trial, and of the best device so far */
    int32_t n_now, n_best;
    int32_t trial;                  /* the operator tried last, */
    const int32_t *input;           /* and its inputs by arrival */
    const moirai_interrupt *enough; /* ends a trial of many inputs; NULL: none */
} place_insert;

int place_insert_new(place_insert **out, const moirai_problem *p);
void place_insert_free(place_insert *x);
/* Nothing placed, for another go; allocates nothing. */
void place_insert_clear(place_insert *x);

/* Earliest start of `op` on k with its inputs sent into gaps, or INT64_MAX once it is sure to finish no sooner than
 * `limit_ns`, or once there is `enough`; -1: out of memory. Its inputs must be placed. */
int64_t place_insert_try(place_insert *x, int32_t op, int32_t k, int64_t limit_ns);
/* The transfers of the last trial are the ones to commit. */
void place_insert_keep(place_insert *x);
/* Places `op` on k with the transfers kept. */
int place_insert_commit(place_insert *x, int32_t op, int32_t k, int64_t start_ns);

/* Earliest start of a transfer from `at` on; and taking the time. */
int64_t place_insert_find_sending(const place_insert *x, int32_t from, int32_t to, int64_t at, int64_t ns);
int place_insert_take_sending(place_insert *x, int32_t slot, int32_t from, int32_t to, int64_t start_ns, int64_t ns);
int place_insert_take_op(place_insert *x, int32_t op, int32_t k, int64_t start_ns);

#endif
