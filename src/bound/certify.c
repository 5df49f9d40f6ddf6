/* From a bound to one that can be certified: the exhaustive search proves without leaving a proof behind. Pairs on the path of the
 * certified bound are searched once more for just what is proven of them, by rules that the verifier can repeat, and the tree is kept
 * (pair_raise.c); where that takes too many nodes, they are raised by prices alone, level by level, until the certified bound has reached
 * the goal or nothing is left to try. */

#include "bound/certificate.h"
#include "pair/pair_refine.h"
#include "util/pool.h"
#include "util/util.h"

typedef struct certifying {
    pair_chain *c;
    const bound_certify_task *job;
    int32_t *device;
    int8_t *level;  /* per pair: by prices alone */
    bool *searched; /* per pair: its tree was asked for */
    size_t left;    /* numbers that trees may still take */
    bool *picked;
    int64_t *pick;
    int32_t n_picks;
} certifying;

/* Its part of what trees may take: the same, whatever the number of threads. */
static int search_one(certifying *x, pair_state *pair)
{
    size_t left = x->left / (size_t)UTIL_MAX(x->n_picks, 1);
    return pair_prove_by_search(pair, (int64_t)(x->job->nodes * x->job->effort) + 1, &left, x->job->stop);
}

static int certify_one(void *data, int32_t i)
{
    certifying *x = data;
    int64_t index = x->pick[i];
    pair_state *pair = x->c->pair[index];
    if (util_stopped(&x->job->stop)) /* there may be thousands of them, and each would begin */
        return 0;
    if (pair && !pair->loads.tried)
        return pair_raise_loads(pair, x->job->stop);
    if (pair && pair->block.n_interior > 0 && !x->searched[index] && pair->lower_ns > pair_certified_ns(pair)) {
        x->searched[index] = true;
        return search_one(x, pair);
    }
    pair_refine_task task = {.level = ++x->level[index],
                             .need_ns = INT64_MAX,
                             .prices_only = true,
                             .effort = x->job->effort,
                             .seed = x->job->seed,
                             .threads = 1,
                             .stop = x->job->stop};
    if (!pair || !pair->block.n_interior)
        return 0;
    int32_t before = pair->level;
    int rc = pair_refine(pair, &task);
    pair->level = UTIL_MAX(pair->level, before);
    return rc;
}

/* Pairs of the path that prove less by their proofs than otherwise, or were never looked at; `more`: and those that
 * might prove more than is known of them. */
static void choose(certifying *x, bool more)
{
    const decompose_cuts *s = x->c->s;
    for (int32_t i = 0; i < x->n_picks; i++)
        x->picked[x->pick[i]] = false;
    x->n_picks = 0;
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int64_t pair = pair_chain_on_path(x->c, i, x->device);
        const pair_state *y = pair_chain_get(x->c, pair);
        bool wanted =
            !y->open || (y->block.n_interior > 0 && pair_certified_ns(y) < (more ? y->plan.length_ns : y->lower_ns));
        bool search = y->open && !x->searched[pair] && pair_certified_ns(y) < y->lower_ns;
        /* Pairs that the search itself has raised by prices have had their turn. */
        bool turn = !y->exhausted && y->level > x->level[pair];
        if (turn)
            x->level[pair] = (int8_t)y->level;
        if (!wanted || (!search && x->level[pair] >= x->job->levels))
            continue;
        if (!x->picked[pair])
            x->pick[x->n_picks++] = pair;
        x->picked[pair] = true;
    }
}

static void count_trees(certifying *x)
{
    size_t taken = 0;
    for (int64_t i = 0; i < pair_chain_count(x->c); i++)
        taken += x->c->pair[i] ? x->c->pair[i]->search.n_tree : 0;
    x->left = x->job->most_tree > taken ? x->job->most_tree - taken : 0;
}

int bound_certify(pair_chain *c, const bound_certify_task *job)
{
    size_t pairs = (size_t)pair_chain_count(c);
    certifying x = {.c = c, .job = job};
    util_memory memory = {0};
    UTIL_TAKE(&memory, x.device, (size_t)c->s->n_cuts);
    UTIL_TAKE(&memory, x.level, pairs);
    UTIL_TAKE(&memory, x.searched, pairs);
    UTIL_TAKE(&memory, x.picked, pairs);
    UTIL_TAKE(&memory, x.pick, (size_t)c->s->n_blocks);
    int rc = util_taken_all(&memory);
    if (!rc)
        count_trees(&x);
    while (!rc && pair_chain_path_within(c, PAIR_CHAIN_CERTIFIED, x.device, &job->stop) < job->goal_ns &&
           !util_stopped(&job->stop)) {
        choose(&x, false);
        if (!x.n_picks)
            choose(&x, true);
        if (!x.n_picks)
            break;
        rc = pair_chain_open(c, x.pick, x.n_picks, job->threads, &job->stop);
        rc = rc ? rc : util_pool_run(certify_one, &x, x.n_picks, job->threads);
        count_trees(&x);
    }
    util_release(&memory);
    return rc;
}
