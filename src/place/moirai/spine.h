/* Near-cuts: a problem without cuts, seen as a spine that has them and work that floats beside it. */
#ifndef MOIRAI_SPINE_H
#define MOIRAI_SPINE_H

#include <moirai/plan.h>

typedef struct moirai_spine {
    const moirai_problem *whole;
    bool *floating; /* per operator of the whole */
    int32_t n_floating;
    moirai_problem *problem; /* the whole without them, in memory mode static */
    int32_t *whole_op;       /* of each operator of the spine */
    int32_t *whole_tensor;   /* of each tensor */
} moirai_spine;

/* *out is NULL where cuts do well enough or near-cuts would do no better. */
int moirai_spine_new(moirai_spine **out, const moirai_problem *p);
/* The spine that is left without the given operators. */
int moirai_spine_from(moirai_spine **out, const moirai_problem *p, const bool *floating);
void moirai_spine_free(moirai_spine *s);

#endif
