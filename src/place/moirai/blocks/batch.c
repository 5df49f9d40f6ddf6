/* What is refined next: the pairs on which most of the gap hangs.
 *
 * Tightening one moves the path to others, so few are raised at a time, and the path is looked at again. */
#include <math.h>
#include <string.h>

#include "place/moirai/blocks/blocks.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "util/pool.h"
#include "util/util.h"

static int refine_one(void *data, int32_t i)
{
    const blocks_batch *batch = &((blocks *)data)->batch;
    return pair_refine(batch->pair[i], &batch->task[i]);
}

void blocks_count_path(const blocks *x, int64_t *times, const int32_t *device)
{
    memset(times, 0, sizeof *times * (size_t)pair_chain_count(x->c));
    for (int32_t i = 0; i < x->c->s->n_blocks; i++)
        times[pair_chain_on_path(x->c, i, device)]++;
}

static bool is_due(const blocks *x, int64_t i)
{
    return x->batch.times[i] && pair_chain_get(x->c, i)->level < x->top_level;
}

/* What pair `i` would have to prove for the gap's goal, were the path to stay; a little more, since it will not. */
static int64_t needed(const blocks *x, int64_t i)
{
    const pair_state *pair = pair_chain_get(x->c, i);
    if (!x->in->best)
        return INT64_MAX;
    double goal = (double)x->in->best->makespan_ns * (1 - 0.5 * x->in->o->gap), rise = goal - (double)x->in->lower_ns;
    int64_t times = UTIL_MAX(x->batch.times[i], 1);
    return pair->lower_ns + (int64_t)(rise / (double)times * 1.1) + 1;
}

static void add_to_batch(blocks *x, int64_t i)
{
    pair_state *pair = x->c->pair[i];
    int64_t K = x->c->K;
    bool often = x->batch.times[i] * BLOCKS_BATCH_OFTEN >= x->c->s->class_count[i / K / K];
    x->batch.pair[x->batch.n] = pair;
    x->batch.task[x->batch.n++] =
        (pair_refine_task){.level = pair->level + 1,
                           .need_ns = needed(x, i),
                           /* Plans of pairs that a path often takes: what they find others can use, too. */
                           .improve = often,
                           .few_trials = x->n_large > 1,
                           .effort = x->in->effort,
                           .seed = x->in->o->budget.seed + (uint64_t)x->in->passes,
                           /* Cores that pairs leave over go to their cases and runs. */
                           .threads = x->in->o->budget.threads,
                           .stop = x->in->stop};
}

void blocks_follow_best(blocks *x)
{
    const decompose_cuts *s = x->c->s;
    for (int32_t i = 0; i < s->n_cuts; i++)
        x->plan_device[i] = x->in->best->op_device[s->cut[i]];
}

/* The pairs on which most of the gap hangs, widest first, ties by number. */
static void choose_batch(blocks *x)
{
    int64_t n = pair_chain_count(x->c);
    blocks_count_path(x, x->batch.times, x->cut_device);
    for (int64_t i = 0; i < n; i++) {
        const pair_state *pair = pair_chain_get(x->c, i);
        bool open = is_due(x, i) && pair->plan.device;
        x->batch.weight[i] = open ? x->batch.times[i] * (pair->plan.length_ns - pair->lower_ns) : 0;
    }
    x->batch.n = 0;
    int64_t most = 0;
    double least = ldexp(0.0002, -x->in->passes) * (double)x->in->best->makespan_ns;
    while (x->batch.n < BLOCKS_BATCH) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (x->batch.weight[i] > 0 && (best < 0 || x->batch.weight[i] > x->batch.weight[best]))
                best = i;
        if (best < 0 || (double)x->batch.weight[best] < least)
            return;
        most = UTIL_MAX(most, x->batch.weight[best]);
        /* The first rise of a pair's bound takes little and is most of it: until then the path goes where nothing is known. */
        bool first = pair_chain_get(x->c, best)->level < 2;
        if (first || x->batch.weight[best] >= most / BLOCKS_BATCH_MINOR)
            add_to_batch(x, best);
        x->batch.weight[best] = 0;
    }
}

int blocks_refine_batch(blocks *x, bool *done, bool *found)
{
    int64_t before[BLOCKS_BATCH];
    choose_batch(x);
    *found = false;
    *done = !x->batch.n || x->batches_left <= 0;
    if (*done)
        return 0;
    x->in->work += x->batch.n;
    for (int32_t i = 0; i < x->batch.n; i++)
        before[i] = x->batch.pair[i]->plan.length_ns;
    x->batches_left--;
    int rc = util_pool_run(refine_one, x, x->batch.n, x->in->o->budget.threads);
    for (int32_t i = 0; i < x->batch.n; i++)
        *found |= x->batch.pair[i]->plan.length_ns < before[i];
    return rc;
}

/* Levels above the last one repeat it with more effort. */
bool blocks_grow(blocks *x)
{
    if (!incumbent_grow(x->in))
        return false;
    x->top_level = PAIR_LEVELS + x->in->passes;
    x->batches_left = 16 << UTIL_MIN(x->in->passes, 16);
    return true;
}
