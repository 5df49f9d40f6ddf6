/* Problems made of repeated blocks: the same seed gives the same problem on every machine. */
#ifndef MOIRAI_TEST_RANDOM_LAYERS_H
#define MOIRAI_TEST_RANDOM_LAYERS_H

#include <moirai/problem.h>

/* Cuts, blocks that repeat, components that are copies of each other, shared tensors, edges that jump over cuts; every
 * flow and congestion, null and zero times, groups. At most max_ops operators. */
char *random_layers_json(uint64_t seed, int max_ops, size_t *length);
moirai_problem *random_layers(uint64_t seed, int max_ops);

/* The same on so many devices, up to RANDOM_LAYERS_DEVICES, and with congestion device among the others. */
#define RANDOM_LAYERS_DEVICES 6
moirai_problem *random_layers_on(uint64_t seed, int max_ops, int devices);

#endif
