/* What is proven of a pair, and raising it by programmes that see all of its block: the static one, its cases, the pool.
 *
 * Each writes down what a certificate needs. What pricing proves is raised in pair_refine.c. */
#include "pair/pair.h"
#include "pair/static_lp.h"
#include "util/util.h"

int64_t pair_certified_ns(const pair_state *x)
{
    if (!x->open)
        return 0;
    if (x->block.n_interior == 0)
        return x->lower_ns;
    int64_t least = x->n_cases ? INT64_MAX : x->path_ns;
    for (int32_t i = 0; i < x->n_cases; i++)
        least = UTIL_MIN(least, x->cases[i].proof.price ? x->cases[i].proven_ns : x->path_ns);
    int64_t by_pool = x->pool.price ? x->pool.length_ns + 1 : 0;
    return UTIL_MAX(UTIL_MAX(least, by_pool), pair_static_ns(x));
}

int64_t pair_static_ns(const pair_state *x)
{
    const pair_static_tree *tree = pair_static_proven(x->programme);
    return tree ? tree->bound_ns : x->n_static ? x->static_proof[x->n_static - 1].bound_ns : x->path_ns;
}

int pair_raise_static(pair_state *x, util_stop stop)
{
    int64_t lower = 0;
    if (x->static_tried || x->block.n_interior == 0)
        return 0;
    pair_static_task task = {.proven_ns = x->path_ns,
                             .upper_ns = x->plan.length_ns,
                             .rounds = PAIR_STATIC_ROUNDS,
                             .entry = x->block.entry,
                             .exit = x->block.exit,
                             .stop = stop};
    x->static_tried = true;
    int rc = pair_static_new(&x->programme, &x->block.problem, &task);
    if (rc || !x->programme)
        return rc;
    rc = pair_static_rounds(&lower, x->programme, &stop, x->static_proof, &x->n_static);
    x->lower_ns = UTIL_MAX(x->lower_ns, lower);
    return rc;
}

int pair_raise_cases(pair_state *x, int64_t need_ns, int32_t cases, util_stop stop)
{
    int64_t lower = 0;
    int rc = pair_raise_static(x, stop);
    if (rc || !x->programme)
        return rc;
    rc = pair_static_divide(&lower, x->programme, cases, need_ns, &stop);
    x->lower_ns = UTIL_MAX(x->lower_ns, lower);
    return rc;
}

int pair_raise_pool(pair_state *x, const pair_pool_task *job)
{
    pair_pool_task task = *job;
    pair_pool_proof proof;
    int64_t lower = 0;
    if (x->block.n_interior == 0)
        return 0;
    task.proven_ns = UTIL_MAX(job->proven_ns, x->lower_ns);
    int rc = pair_pool(&lower, &x->block.problem, &task, &proof);
    if (rc || !proof.price)
        return rc;
    x->lower_ns = UTIL_MAX(x->lower_ns, proof.length_ns + 1);
    pair_pool_proof_free(&x->pool);
    x->pool = proof;
    return 0;
}
