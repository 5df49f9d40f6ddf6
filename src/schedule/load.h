/* The load bound with its proof. Private. */
#ifndef MOIRAI_SCHEDULE_LOAD_H
#define MOIRAI_SCHEDULE_LOAD_H

#include <moirai/schedule.h>

/* As moirai_bound_load; `weight` (NULL: not wanted) gets the weights of the devices that prove it, whole and >= 0. */
int64_t schedule_bound_load(int64_t *weight, const moirai_problem *p);

#endif
