/* From a bound to one that can be certified.
 *
 * The exhaustive search proves without leaving prices behind. Where a certificate is asked for, the pairs on the path
 * of the certified bound are raised again by prices alone, level by level, until the certified bound has reached the
 * plan's or nothing is left to try. What remains between the two is honestly shown: the certificate carries both
 * numbers. */
#include <stdlib.h>

#include "bound/certificate.h"
#include "util/pool.h"
#include "pair/pair_refine.h"
#include "util/util.h"

typedef struct certifying {
    pair_chain *c;
    const bound_certify_task *job;
    int32_t *device;
    int8_t *level;   /* per pair: by prices alone */
    int32_t *pick, n_picks;
} certifying;

static int certify_one(void *data, int32_t i)
{
    certifying *x = data;
    int32_t K = x->c->K, pair = x->pick[i];
    pair_refine_task task = {.class_ = pair / (K * K), .entry_device = pair / K % K, .exit_device = pair % K,
                               .level = ++x->level[pair], .need_ns = INT64_MAX, .prices_only = true,
                               .effort = x->job->effort, .seed = x->job->seed, .stop = x->job->stop};
    int32_t before = x->c->pair[pair].level;
    int result = pair_open(x->c, task.class_, task.entry_device, task.exit_device);
    if (!result && x->job->statics)
        result = pair_raise_static(&x->c->pair[pair], INT64_MAX, x->job->stop);
    if (!result && x->c->pair[pair].block.n_interior)
        result = pair_refine(x->c, &task);
    x->c->pair[pair].level = UTIL_MAX(x->c->pair[pair].level, before);
    return result;
}

/* Pairs of the path that prove less by prices than otherwise, or were never looked at. */
static void choose(certifying *x)
{
    const decompose_cuts *s = x->c->s;
    int32_t K = x->c->K;
    x->n_picks = 0;
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int32_t a = i > 0 ? x->device[i - 1] : 0, b = i < s->n_cuts ? x->device[i] : 0;
        int32_t pair = (s->block_class[i] * K + a) * K + b;
        const pair_state *y = &x->c->pair[pair];
        bool wanted = !y->open || (y->block.n_interior > 0 && pair_certified_ns(y) < y->plan.length_ns);
        /* Pairs that the search itself has raised by prices have had their turn. */
        bool turn = !y->exhausted && y->level > x->level[pair];
        if (turn)
            x->level[pair] = (int8_t)y->level;
        if (!wanted || x->level[pair] >= (x->job->levels ? x->job->levels : PAIR_LEVELS))
            continue;
        bool twice = false;
        for (int32_t j = 0; j < x->n_picks && !twice; j++)
            twice = x->pick[j] == pair;
        if (!twice)
            x->pick[x->n_picks++] = pair;
    }
}

int bound_certify(pair_chain *c, const bound_certify_task *job)
{
    size_t pairs = (size_t)c->s->n_classes * (size_t)c->K * (size_t)c->K;
    certifying x = {.c = c, .job = job};
    x.device = util_alloc((size_t)c->s->n_cuts, sizeof(int32_t));
    x.level = util_alloc(pairs, sizeof(int8_t));
    x.pick = util_alloc(pairs, sizeof(int32_t));
    int result = x.device && x.level && x.pick ? MOIRAI_OK : MOIRAI_EFAIL;
    while (!result && pair_chain_path(c, PAIR_CHAIN_CERTIFIED, x.device) < job->goal_ns &&
           !util_stopped(&job->stop)) {
        choose(&x);
        if (!x.n_picks)
            break;
        result = util_pool_run(certify_one, &x, x.n_picks, job->threads);
    }
    free(x.device);
    free(x.level);
    free(x.pick);
    return result;
}
