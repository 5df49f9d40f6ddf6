/* A problem on some of its devices. */
#ifndef MOIRAI_PROBLEM_DEVICE_PART_H
#define MOIRAI_PROBLEM_DEVICE_PART_H

#include <moirai/problem.h>

/* `out` has all of p, of its devices those listed, in that order; what does not depend on devices is p's own, so that p must
 * outlive it. Every plan of it is one of p. MOIRAI_EINFEASIBLE where an operator is left without any device.
 * problem_part_clear frees it, also after a failure. O(V n + tables). */
int problem_part(moirai_problem *out, const moirai_problem *p, const int32_t *device, int32_t n);
void problem_part_clear(moirai_problem *part);

#endif
