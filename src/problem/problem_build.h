/* Putting a problem together, in three steps shared by the reader and by moirai_problem_new: the structure comes from a
 * graph, the caller fills in the numbers, `settle` derives the rest and checks it. */
#ifndef MOIRAI_PROBLEM_PROBLEM_BUILD_H
#define MOIRAI_PROBLEM_PROBLEM_BUILD_H

#include <moirai/problem.h>

#include "util/util.h"

/* What moirai_problem.store points to. */
typedef struct problem_store {
    util_strings *strings;
    util_names *ops, *tensors;
} problem_store;

/* Times and sizes must add up to less than this, so that no sum that a placer forms can overflow. */
#define PROBLEM_TOTAL_LIMIT ((int64_t)1 << 61)
/* Tables of transfer times may take this much memory. */
#define PROBLEM_TABLES_LIMIT_BYTES ((int64_t)1 << 30)

/* Everything that the counts of `p` ask for, empty; `n_inputs` is what all operators read together. */
int problem_reserve(moirai_problem *p, size_t n_inputs);
/* Names, tensors, edges and order of `g`; no devices' names, no times, nobody grouped. */
int problem_start(moirai_problem **out, const moirai_graph *g, const char *name, int32_t n_devices);
/* A string that lives as long as the problem; NULL and a message if memory ran out. */
const char *problem_keep(moirai_problem *p, const char *text);
/* The bandwidth of a channel where moving 10^6 bytes costs so much beside the link, at least 1. */
int64_t problem_moving_rate(int64_t bytes_per_second, int64_t move_ns_per_mb);
/* ---- problem_uncosted.c ---- */
int problem_find_uncosted(moirai_problem *p, const moirai_graph *g);

/* Copies of n texts; *out is freed with the problem. */
int problem_keep_texts(moirai_problem *p, const char ***out, int32_t *n_out, int32_t n, const char *const *text);

/* Transfer tables by class, device masks, checks. `table` is NULL or has for each tensor NULL or its K x K times. */
int problem_settle(moirai_problem *p, const int64_t *const *table);

/* Weights that are one device's whatever the plan go to their first reader; the others stay shared. */
void problem_own_weights(moirai_problem *p);
/* Shared weights by operator: operator i has weight[off[i]] .. weight[off[i+1]-1]. Free both. */
int problem_weights_by_op(const moirai_problem *p, int32_t **off, int32_t **weight);

/* Number the groups by their first operator; their names follow. */
int problem_number_groups(moirai_problem *p);
/* Set op_devices: the devices that an operator has a time on and that its group's members allow. MOIRAI_EINFEASIBLE where
 * there are none. */
int problem_mask_devices(moirai_problem *p);

#endif
