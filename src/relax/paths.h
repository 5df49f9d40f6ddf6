/* Paths of operators as rows of a relaxation: each is busy with one of its operators at a time (docs/theory.md, Lemma 49). Private. */
#ifndef MOIRAI_RELAX_PATHS_H
#define MOIRAI_RELAX_PATHS_H

#include <moirai/problem.h>

#include "relax/relax_tuning.h"
#include "util/util.h"

typedef struct relax_paths {
    int32_t n, room;
    int32_t *off, *op; /* path -> its operators, in order */
    util_memory memory;
} relax_paths;

int relax_paths_new(relax_paths *x, const moirai_problem *p);
void relax_paths_free(relax_paths *x);
/* Paths that take longer than `length` where operators take so long: the longest first, then the longest by operators of no other. O(E) each. */
int relax_paths_add(relax_paths *x, const moirai_problem *p, const double *time, double length);
/* Leaves out those with a price below `least`; `price` stays as it was. */
void relax_paths_keep(relax_paths *x, const double *price, double least);

#endif
