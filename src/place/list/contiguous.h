/* What `sequential` and `chain` share: pieces of the topological order. Private. */
#ifndef MOIRAI_PLACE_LIST_CONTIGUOUS_H
#define MOIRAI_PLACE_LIST_CONTIGUOUS_H

#include "place/fit.h"

/* Bytes of tensors alive while the operator of each topological rank runs, everything running one by one in that order:
 * from a tensor's producer to its last reader, to the end where nobody reads it. alive[p->n_ops]. O(V + E). */
void place_alive_bytes(const moirai_problem *p, int64_t *alive);

/* The faster of two simulations of these devices that fit: operators in topological order, and dispatched by upward
 * rank. *out is NULL where neither fits. */
int place_contiguous_plan(moirai_plan **out, moirai_sim *sim, const moirai_problem *p, const int32_t *device);

#endif
