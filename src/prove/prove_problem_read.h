/* A problem file on its way: prove_problem_read.c takes it from the file, prove_problem_settle.c finds what follows from
 * its numbers. Private to this folder. */
#ifndef MOIRAI_PROVE_PROBLEM_READ_H
#define MOIRAI_PROVE_PROBLEM_READ_H

#include "prove/prove_problem.h"

#include "util/util.h"

typedef struct prove_tensor {
    const char *name;
    int64_t bytes;
    int32_t from, output, n_readers;
    int64_t *ns;          /* the file's own table, or NULL */
    const int64_t *table; /* that counts */
    int64_t most_ns;      /* in it */
    int64_t even_ns;      /* all of it between two devices, or PROVE_NONE */
} prove_tensor;

typedef struct prove_weight {
    int64_t bytes;
    int32_t first, last, group; /* readers; the group of all of them, or PROVE_NONE */
    bool apart;                 /* readers may be on several devices */
} prove_weight;

typedef struct prove_groups {
    int32_t n;
    int32_t *of_op;
    uint64_t *may; /* per group */
} prove_groups;

typedef struct prove_reader {
    const char *label;
    yyjson_val *root, *ops;
    prove_problem *p;
    int64_t *rate, *latency; /* [a * K + b] */
    util_names *devices, *tensors, *groups, *weights;
    prove_tensor *tensor;
    size_t n_tensors, tensor_room, n_edges, edge_room, n_weights, weight_room;
    prove_weight *weight;
    prove_groups group;
} prove_reader;

/* Times of transfers, devices of groups, weights that all plans hold; MOIRAI_EINPUT where sums are too large. */
int prove_problem_settle(prove_reader *x);

#endif
