/* Near-cuts: a problem without cuts, seen as a spine that has them and work that floats beside it. */
#ifndef MOIRAI_DECOMPOSE_SPINE_H
#define MOIRAI_DECOMPOSE_SPINE_H

#include <moirai/plan.h>

#include "util/stop.h"
#include "util/util.h"

typedef struct decompose_spine {
    const moirai_problem *whole;
    bool *floating; /* per operator of the whole */
    int32_t n_floating;
    moirai_problem *problem; /* the whole without them, in memory mode static */
    int32_t *whole_op;       /* of each operator of the spine */
    int32_t *whole_tensor;   /* of each tensor */
    util_memory memory;      /* of the arrays */
} decompose_spine;

/* *out is NULL where cuts do well enough, near-cuts would do no better, or the time is up. */
int decompose_spine_new(decompose_spine **out, const moirai_problem *p, const util_stop *stop);
/* The spine that is left without the given operators. */
int decompose_spine_from(decompose_spine **out, const moirai_problem *p, const bool *floating);
void decompose_spine_free(decompose_spine *s);

#endif
