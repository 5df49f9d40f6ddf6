/* Operators that a linear programme over times and precedence cannot tell apart. Private. */
#ifndef MOIRAI_PLACE_LIST_COLOURS_H
#define MOIRAI_PLACE_LIST_COLOURS_H

#include <moirai/problem.h>

typedef struct place_colours {
    int32_t n;     /* colours */
    int32_t *of;   /* operator -> colour; colours are numbered by their first operator in topological order */
    int32_t *op;   /* colour -> its first operator in topological order */
    int32_t *size; /* colour -> operators */
} place_colours;

/* The coarsest colours found such that operators of one colour have the same times, and as many producers and readers
 * (one per edge) of each colour. Members of groups have colours of their own. With `plain`, every operator has. O(E)
 * per sweep, a few sweeps. */
int place_colours_find(place_colours *out, const moirai_problem *p, bool plain);
void place_colours_clear(place_colours *c);

#endif
