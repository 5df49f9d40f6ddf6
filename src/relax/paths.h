/* Paths of operators as rows of a relaxation: each is busy with one of its operators at a time (docs/theory.md, Lemma 49). Private. */
#ifndef MOIRAI_RELAX_PATHS_H
#define MOIRAI_RELAX_PATHS_H

#include <moirai/problem.h>

#include "relax/relax_tuning.h"
#include "util/util.h"

typedef struct relax_paths {
    int32_t n, room;
    int32_t *off, *op; /* path -> its operators, in order */
    double price[RELAX_PATHS_MOST], mean[RELAX_PATHS_MOST], regret[RELAX_PATHS_MOST], load[RELAX_PATHS_MOST];
    double *on_path; /* per operator: the prices of its paths, */
    double *time;    /* and what it takes */
    util_memory memory;
} relax_paths;

int relax_paths_new(relax_paths *x, const moirai_problem *p);
void relax_paths_free(relax_paths *x);
/* Sets on_path of n operators by the prices, */
void relax_paths_price(relax_paths *x, int32_t n);
/* and the loads by their times. */
void relax_paths_load(relax_paths *x);
/* Paths that take longer than `length` by x->time: the longest first, then the longest by operators of no other. O(E) each. */
int relax_paths_add(relax_paths *x, const moirai_problem *p, double length);
/* Leaves out those with a mean price below `least`. */
void relax_paths_keep(relax_paths *x, double least);

#endif
