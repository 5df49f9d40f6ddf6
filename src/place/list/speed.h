/* How fast a device is, in one number. Private. */
#ifndef MOIRAI_PLACE_LIST_SPEED_H
#define MOIRAI_PLACE_LIST_SPEED_H

#include <moirai/problem.h>

/* Per device: (sum of the operators' least times) / (sum of their times there), over those that it can run; 1 where
 * these take no time. The fastest device for everything has 1, one that takes twice as long 0.5. O(V K). */
void place_speeds(const moirai_problem *p, double *speed);
/* The devices, fastest first, the first of equals first. */
void place_fastest_first(const moirai_problem *p, int32_t *device);

#endif
