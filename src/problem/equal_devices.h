/* Devices that can be exchanged without changing anything. */
#ifndef MOIRAI_PROBLEM_EQUAL_DEVICES_H
#define MOIRAI_PROBLEM_EQUAL_DEVICES_H

#include <moirai/problem.h>

/* Whether exchanging a and b changes nothing. O(V + C K), C tables of transfers. */
bool problem_devices_equal(const moirai_problem *p, int32_t a, int32_t b);

/* least[k] (n_devices): the least device that k can be exchanged with, k itself where there is none. Exchanging two
 * devices with the same one leaves memories, times, allowed devices and transfers as they are, so that any permutation
 * among them takes plans to plans of the same length. O(K V + C K^2) for each device, C tables of transfers. */
void problem_equal_devices(const moirai_problem *p, int32_t *least);

#endif
