/* The least sum of functions of few variables each, exactly: variables are eliminated one after the other.
 *
 * A variable goes into one table over its neighbours: for each of their states the least that its functions sum to. The neighbours are neighbours of each other then, so that the order decides
 * how large tables get: the variable with the smallest table goes first. Networks are long and narrow: tables of a few hundred cells, whatever their length. */
#ifndef MOIRAI_MINSUM_MINSUM_H
#define MOIRAI_MINSUM_MINSUM_H

#include "util/stop.h"

/* Functions of variables, without their values: tables one behind the other, the last variable's states next to each other. */
typedef struct minsum_shape {
    int32_t n_vars, n_terms;
    int32_t *states;    /* of each variable */
    int32_t *off, *var; /* function -> its variables, all different */
} minsum_shape;

typedef struct minsum minsum;

/* Finds the order, for any number of solves; the shape's arrays must outlive it. MOIRAI_ELIMIT: tables have more than most_cells together, or `stop` came. */
int minsum_new(minsum **out, const minsum_shape *shape, int64_t most_cells, const util_stop *stop);
void minsum_free(minsum *m);
/* States of the least sum, the first where several are; HUGE_VAL as a value forbids. From several threads at once. MOIRAI_ELIMIT: `stop` came, nothing is
 * known. O(cells * functions of a variable). */
int minsum_solve(const minsum *m, const double *value, int32_t *state, double *least, const util_stop *stop);

#endif
