/* States of the whole problem that annealing has left, and what they make of each other. */
#ifndef MOIRAI_PLACE_MOIRAI_WHOLE_CROSS_H
#define MOIRAI_PLACE_MOIRAI_WHOLE_CROSS_H

#include "place/moirai/whole/whole_anneal.h"

#define PLACE_STATES_MOST 32 /* kept at once */

typedef struct place_state {
    int64_t makespan_ns;
    int64_t number;  /* in the order they came */
    int64_t met;     /* no stretch of those with a smaller number makes it shorter */
    int32_t *device; /* per operator */
    int32_t *order;  /* of precedence, all operators */
} place_state;

/* Zeroed: none yet. */
typedef struct place_states {
    int32_t n;
    int64_t made;
    place_state state[PLACE_STATES_MOST];
} place_states;

/* Keeps a copy of the state; of too many the longest goes. */
int place_states_add(place_states *s, const place_whole *w);
void place_states_clear(place_states *s);

/* Replaces *plan by a shorter one where stretches of the states, put into it or into each other, make one that fits the
 * memory. What was made stays among the states. Work goes by the evaluations of the job, a small part of what annealing
 * takes for them; the result depends neither on the seed nor on the threads. */
int place_states_cross(moirai_plan **plan, place_states *s, const moirai_problem *p, const place_whole_task *job);

#endif
