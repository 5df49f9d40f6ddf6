/* A problem file on its way: prove_problem_read.c takes it from the file, prove_problem_settle.c finds what follows from
 * its numbers. Private to this folder. */
#ifndef MOIRAI_PROVE_PROBLEM_READ_H
#define MOIRAI_PROVE_PROBLEM_READ_H

#include "prove/prove_problem.h"

#include "util/util.h"

typedef struct prove_tensor {
    const char *name;
    int64_t bytes;
    int32_t from, output, n_readers, last_reader;
    int64_t *own;      /* the file's own table, or NULL */
    const int64_t *ns; /* the table that counts; NULL: nobody reads the tensor */
    int64_t most_ns;   /* in it */
    int64_t even_ns;   /* all of it between two devices, or PROVE_NONE */
} prove_tensor;

typedef struct prove_weight {
    int64_t bytes;
    int32_t first, last, group; /* readers; the group of all of them, or PROVE_NONE */
    bool apart;                 /* readers may be on several devices */
} prove_weight;

typedef enum prove_name { PROVE_DEVICE, PROVE_TENSOR, PROVE_GROUP, PROVE_WEIGHT, PROVE_NAMES } prove_name;

typedef struct prove_reader {
    const char *label;
    yyjson_val *root;
    prove_problem *p;        /* its operators numbered as in the file; all but `kept` is in its memory */
    util_memory *kept;       /* of what stays: bytes of devices, tables */
    int64_t *rate, *latency; /* [a * K + b] */
    util_names *names[PROVE_NAMES];
    prove_tensor *tensor;
    int32_t n_tensors, n_weights, n_groups;
    prove_weight *weight;
    int32_t *group;      /* of each operator, or PROVE_NONE */
    uint64_t *group_may; /* per group */
} prove_reader;

/* Times of transfers, devices of groups, weights that all plans hold; MOIRAI_EINPUT where sums are too large. */
int prove_problem_settle(prove_reader *x);

#endif
