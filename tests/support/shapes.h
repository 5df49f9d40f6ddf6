/* Graphs of any size in a few shapes, for tests and benchmarks of limits. */
#ifndef MOIRAI_TEST_SHAPES_H
#define MOIRAI_TEST_SHAPES_H

#include <moirai/problem.h>

#define SHAPES 5
extern const char *const shape_name[SHAPES];

/* A problem of n operators on `devices` (4, 8, ..., 64) devices of four kinds: one of the shapes above, "two-towers" or
 * "ten-towers" (equal, nothing joins them), "masked" (a transformer without cuts, flow edge), "side" (nothing reads anything), "into-one" (the last reads
 * all others) or "wide" (the same behind one that all others read). The same for the same arguments. */
int shape_problem(moirai_problem **out, const char *shape, int32_t n, int devices);

#endif
