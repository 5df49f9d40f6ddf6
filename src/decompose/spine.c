/* What is left of a problem when some operators float: they are left out, and whatever is proven of the rest, the *spine*,
 * holds for the whole (problem_without.c). Chains of intervals are made so (intervals.c). */
#include "decompose/spine.h"

#include <stdlib.h>

#include "util/util.h"

void decompose_spine_free(decompose_spine *s)
{
    if (!s)
        return;
    moirai_problem_free(s->problem);
    free(s->floating);
    free(s->whole_op);
    free(s->whole_tensor);
    free(s);
}

int decompose_spine_from(decompose_spine **out, const moirai_problem *p, const bool *floating)
{
    *out = NULL;
    decompose_spine *s = util_alloc(1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    s->whole = p;
    s->floating = util_alloc((size_t)p->n_ops, sizeof *s->floating);
    s->whole_op = util_alloc((size_t)p->n_ops, sizeof *s->whole_op);
    s->whole_tensor = util_alloc((size_t)p->n_tensors, sizeof *s->whole_tensor);
    int rc =
        s->floating && s->whole_op && s->whole_tensor ? moirai_problem_without(&s->problem, p, floating) : MOIRAI_EFAIL;
    if (rc) {
        decompose_spine_free(s);
        return rc;
    }
    s->problem->memory = MOIRAI_MEMORY_STATIC;
    int32_t ops = 0, tensors = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        s->floating[i] = floating[i];
        s->n_floating += floating[i];
        if (!floating[i])
            s->whole_op[ops++] = i;
    }
    for (int32_t t = 0; t < p->n_tensors; t++)
        if (!floating[p->tensor_producer[t]])
            s->whole_tensor[tensors++] = t;
    *out = s;
    return 0;
}
