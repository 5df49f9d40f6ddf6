#include "place/learn/judge.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

int learn_judge_open(learn_judge *j, const moirai_problem *p)
{
    *j = (learn_judge){
        .p = p, .best_ns = MOIRAI_UNKNOWN, .nearest_excess = MOIRAI_UNKNOWN, .nearest_ns = MOIRAI_UNKNOWN};
    j->best = util_alloc((size_t)p->n_ops, sizeof *j->best);
    j->nearest = util_alloc((size_t)p->n_ops, sizeof *j->nearest);
    return j->best && j->nearest ? moirai_sim_new(&j->sim, p) : MOIRAI_EFAIL;
}

void learn_judge_close(learn_judge *j)
{
    moirai_sim_free(j->sim);
    free(j->best);
    free(j->nearest);
}

static void offer_best(learn_judge *j, int64_t ns, const int32_t *op_device)
{
    if (j->best_ns != MOIRAI_UNKNOWN && j->best_ns <= ns)
        return;
    j->best_ns = ns;
    memcpy(j->best, op_device, (size_t)j->p->n_ops * sizeof *op_device);
}

static void offer_nearest(learn_judge *j, int64_t excess, int64_t ns, const int32_t *op_device)
{
    if (j->nearest_excess != MOIRAI_UNKNOWN &&
        (j->nearest_excess < excess || (j->nearest_excess == excess && j->nearest_ns <= ns)))
        return;
    j->nearest_excess = excess;
    j->nearest_ns = ns;
    memcpy(j->nearest, op_device, (size_t)j->p->n_ops * sizeof *op_device);
}

learn_verdict learn_judge_try(learn_judge *j, const int32_t *op_device)
{
    learn_verdict v = {.makespan_ns = moirai_sim_dispatch(j->sim, op_device, NULL)};
    v.excess_bytes = moirai_sim_memory_excess(j->sim, NULL);
    if (v.excess_bytes == 0)
        offer_best(j, v.makespan_ns, op_device);
    else
        offer_nearest(j, v.excess_bytes, v.makespan_ns, op_device);
    return v;
}

void learn_judge_merge(learn_judge *j, const learn_judge *from)
{
    if (from->best_ns != MOIRAI_UNKNOWN)
        offer_best(j, from->best_ns, from->best);
    if (from->nearest_excess != MOIRAI_UNKNOWN)
        offer_nearest(j, from->nearest_excess, from->nearest_ns, from->nearest);
}
