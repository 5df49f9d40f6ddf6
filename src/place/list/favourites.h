/* Favourite children (m-SCT): which reader of each operator should run where the operator ran. Private. */
#ifndef MOIRAI_PLACE_LIST_FAVOURITES_H
#define MOIRAI_PLACE_LIST_FAVOURITES_H

#include <moirai/placer.h>

#include "util/stop.h"

typedef struct place_favourites {
    int32_t *child;  /* operator -> its favourite child, or MOIRAI_NONE */
    int32_t *parent; /* operator -> the one whose favourite child it is, or MOIRAI_NONE */
    int32_t n;       /* operators that have a favourite child */
    double lp_ns;    /* value of the linear programme: a length of path, in mean times; no bound on any plan */
    int32_t n_arcs;  /* pairs (operator, reader) */
    double *x;       /* per arc: the solution, arcs by the operator's topological rank */
    int32_t *from, *to;
    double *transfer_ns; /* per arc: mean over the channels of all that passes from one to the other */
    int32_t n_blocks;    /* pieces between the operators that everything passes through */
    int32_t n_solved;    /* of which the solver was asked for: equal ones are solved once */
    bool complete;       /* false: time or an interrupt ended it; pieces that were not solved have no favourites */
} place_favourites;

typedef struct place_favourites_task {
    double threshold; /* x at most this is a favourite */
    util_stop stop;
    bool whole; /* one programme, not cut into pieces (for tests: the value must be the same) */
} place_favourites_task;

/* Solve the programme and round it; a later favourite replaces an earlier one. O(V + E) besides the solver. */
int place_favourites_find(place_favourites *out, const moirai_problem *p, const place_favourites_task *task);
void place_favourites_clear(place_favourites *f);

#endif
