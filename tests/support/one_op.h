/* Graphs of one operator, small enough to do the sums by hand, and its time. */
#ifndef MOIRAI_TEST_ONE_OP_H
#define MOIRAI_TEST_ONE_OP_H

#include "support/check.h"

#include <moirai/cost.h>

/* One operator with one input `x` of in_bytes (made by a free view) and one output. */
typedef struct one {
    const char *type;
    int64_t in, out, weights, flops, traffic;
} one;

/* With a measured time for devices of `key`, unless that is NULL. */
moirai_graph *graph_of(const one *o, const char *key, int64_t ns);
moirai_cluster *cluster_of(const char *description);
/* Time of "op" on the first device. */
int64_t time_of(const moirai_graph *g, const char *cluster, const char *model, moirai_cost_report *report);
int64_t time_of_one(one o, const char *cluster, const char *model);

#endif
