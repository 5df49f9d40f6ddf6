/* From a path of devices over the cuts and the pairs' plans to a plan of the whole problem. */
#ifndef MOIRAI_PLACE_MOIRAI_COMPOSE_H
#define MOIRAI_PLACE_MOIRAI_COMPOSE_H

#include "pair/chain.h"

/* Devices of all operators and one order of all tasks; `block_plan` (n_blocks, may be NULL) overrides the pair's plan
 * of single blocks. `order` needs room for place_compose_capacity tasks; returns how many were written. */
int64_t place_compose_capacity(const moirai_problem *p);
int64_t place_compose(const pair_chain *c, const int32_t *cut_device, const pair_plan *const *block_plan,
                      int32_t *op_device, moirai_task *order);

#endif
