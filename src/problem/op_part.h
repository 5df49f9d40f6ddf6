/* A problem of some of its operators. Private. */
#ifndef MOIRAI_PROBLEM_OP_PART_H
#define MOIRAI_PROBLEM_OP_PART_H

#include <moirai/problem.h>

#include "util/util.h"

/* The n operators of `op` alone, in these numbers and an order of precedence of p's. Arrays by operator, tensor and edge are
 * new, in `memory`, also on failure; devices, times of transfers, groups and names are p's, which must outlive it. Outputs of an
 * operator are all kept, whoever reads them; what the others write is read no more. Without shared weights.
 * `number` is working memory for each operator of p: MOIRAI_NONE, also afterwards. O(n K + edges). */
int problem_op_part(moirai_problem *out, util_memory *memory, const moirai_problem *p, const int32_t *op, int32_t n,
                    int32_t *number);

#endif
