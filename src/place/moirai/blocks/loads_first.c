/* Blocks that are no copies of each other, raised by prices on loads before prices in time.
 *
 * Where layers repeat, the pairs of a few classes are worth minutes of prices in time. Where every layer has sizes of its
 * own, there are K^2 pairs for each of them, and what they take for a start decides: one price per resource takes 0.1 s
 * for a pair of 24 operators in 8 branches, prices on loads (relax/relax.h) some milliseconds. So
 *
 *   1. a few pairs of the bound's path show what prices on loads are worth;
 *   2. some for each pair that the bound's path meets (in blocks.c, as it goes);
 *   3. plans for the pairs of the plan's path, by prices in time: LP solutions of masters are what annealing needs to
 *      begin with;
 *   4. prices on loads again, where the path has moved;
 *   5. plans once more, from other seeds, with more evaluations.
 *
 * What is left of the time goes to pairs by what hangs on them, as everywhere. */
#include "place/moirai/blocks/blocks.h"
#include "util/pool.h"
#include "util/util.h"

#define DIFFERENT_CLASSES 3
#define BRANCHES 5
#define MOST_OPS 20000 /* beyond, there is no time for each class */
#define TRIALS 4       /* pairs that show whether they are worth it, */
#define WORTH 0.1      /* by this part of what lies between bound and plan */
#define MOST_OPEN 8192 /* pairs */
#define PLAN_PATHS 3   /* that are followed as plans get shorter */
#define BOUND_PATHS 60 /* and as bounds rise */
#define AGAIN 2.0      /* times the effort of the first plans */

bool blocks_wants_loads(const blocks *x, const pair_state *y)
{
    return x->loads_first.used && !y->loads.tried && y->block.n_interior >= PAIR_LOADS_OPS;
}

static int raise_loads(void *data, int32_t i)
{
    blocks *x = data;
    return pair_raise_loads(x->c->pair[x->opened[i]], x->in->stop);
}

/* The first pairs of the bound's path whose blocks are large enough; opened. */
static int open_trials(blocks *x, int32_t *n)
{
    const decompose_cuts *s = x->c->s;
    int rc = 0;
    *n = 0;
    for (int32_t i = 0; i < s->n_blocks && *n < TRIALS && !rc; i++) {
        int32_t class_ = s->block_class[i];
        int64_t at = pair_chain_on_path(x->c, i, x->cut_device);
        const decompose_block *b =
            s->block_size[i] && s->class_count[class_] == 1 ? pair_chain_block(x->c, class_) : NULL;
        if (!b || b->n_interior < PAIR_LOADS_OPS)
            continue;
        x->index[(*n)++] = at;
    }
    rc = pair_chain_open(x->c, x->index, *n, x->in->o->budget.threads, &x->in->stop);
    for (int32_t i = 0; i < *n && !rc; i++)
        if (!x->c->pair[x->index[i]] || !x->c->pair[x->index[i]]->open)
            *n = 0; /* no time left */
    return rc;
}

/* A few pairs of the bound's path show what prices on loads are worth. */
static int try_loads(blocks *x)
{
    int64_t before = 0, open = 0, after = 0;
    int32_t n;
    int rc = open_trials(x, &n);
    for (int32_t i = 0; i < n && !rc; i++) {
        const pair_state *y = x->c->pair[x->index[i]];
        before += y->lower_ns;
        open += y->plan.length_ns - y->lower_ns;
    }
    x->opened = x->index;
    rc = rc ? rc : util_pool_run(raise_loads, x, n, x->in->o->budget.threads);
    for (int32_t i = 0; i < n && !rc; i++)
        after += x->c->pair[x->index[i]]->lower_ns;
    x->loads_first.used = n > 0 && (double)(after - before) >= WORTH * (double)open;
    return rc;
}

int blocks_begin_with_loads(blocks *x)
{
    int rc = try_loads(x);
    if (!rc && x->loads_first.used && pair_chain_distinct(x->c) <= MOST_OPEN) /* longest paths save some */
        rc = pair_chain_open_all(x->c, x->in->o->budget.threads, &x->in->stop);
    incumbent_take_bound(x->in, pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->cut_device));
    return rc;
}

/* Many branches side by side, hardly any of them copies: few are searched, copies are priced together. */
static bool many_branches(const decompose_block *b)
{
    return b->n_components >= BRANCHES && 2 * b->n_kinds > b->n_components;
}

/* Half of the operators are in large blocks, and hardly any of these are copies. */
static bool differs(pair_chain *c)
{
    const decompose_cuts *s = c->s;
    int64_t ops = 0;
    int32_t classes = 0, n_blocks = 0;
    for (int32_t i = 0; i < s->n_classes; i++) {
        int32_t n = s->block_size[s->class_block[i]];
        const decompose_block *b = n >= PAIR_LOADS_OPS ? pair_chain_block(c, i) : NULL;
        if (!b || !many_branches(b))
            continue;
        ops += (int64_t)n * s->class_count[i];
        n_blocks += s->class_count[i];
        classes++;
    }
    return 2 * ops >= c->p->n_ops && classes >= DIFFERENT_CLASSES && 2 * n_blocks <= 3 * classes;
}

int blocks_differ(bool *yes, const moirai_problem *p, const util_stop *stop)
{
    decompose_spine *spine = NULL;
    pair_chain *c = NULL;
    *yes = false;
    if (p->n_ops > MOST_OPS)
        return 0;
    int rc = decompose_spine_new(&spine, p, stop);
    rc = rc ? rc : pair_chain_new(&c, spine ? spine->problem : p);
    *yes = !rc && differs(c);
    pair_chain_free(c);
    decompose_spine_free(spine);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

/* ---- the bound's path ---- */

/* Prices on loads for all pairs that are new to the bound's path. */
static int raise_path(blocks *x, int32_t *n)
{
    const decompose_cuts *s = x->c->s;
    *n = 0;
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int64_t at = pair_chain_on_path(x->c, i, x->cut_device);
        const pair_state *y = x->c->pair[at];
        if (y && blocks_wants_loads(x, y))
            *n = pair_list_once(x->index, *n, at);
    }
    x->opened = x->index;
    int rc = util_pool_run(raise_loads, x, *n, x->in->o->budget.threads);
    x->in->work += *n;
    incumbent_take_bound(x->in, pair_chain_path(x->c, PAIR_CHAIN_LOWER, x->cut_device));
    return rc;
}

/* ---- plans ---- */

typedef struct planning {
    blocks *x;
    double effort;
    uint64_t seed;
} planning;

static int plan_one(void *data, int32_t i)
{
    const planning *job = data;
    blocks *x = job->x;
    int32_t K = x->c->K;
    int64_t at = x->index[i];
    pair_refine_task task = {.class_ = (int32_t)(at / K / K),
                             .entry_device = (int32_t)(at / K % K),
                             .exit_device = (int32_t)(at % K),
                             .level = 1,
                             .need_ns = INT64_MAX,
                             .improve = true,
                             .effort = job->effort,
                             .seed = job->seed,
                             .threads = 1, /* pairs are side by side already */
                             .stop = x->in->stop};
    return util_stopped(&x->in->stop) ? 0 : pair_refine(x->c, &task);
}

/* Pairs of the plan's path: those without a first level, or all of them. */
static int plan_path(blocks *x, const planning *job, bool all, int32_t *n)
{
    const decompose_cuts *s = x->c->s;
    *n = 0;
    for (int32_t i = 0; i < s->n_blocks; i++) {
        int64_t at = pair_chain_on_path(x->c, i, x->plan_device);
        const pair_state *y = x->c->pair[at];
        if (y && y->open && y->level <= (all ? 1 : 0) && y->lower_ns < y->plan.length_ns)
            *n = pair_list_once(x->index, *n, at);
    }
    planning task = *job;
    int rc = util_pool_run(plan_one, &task, *n, x->in->o->budget.threads);
    x->in->work += *n;
    return rc || !*n ? rc : blocks_compose(x);
}

int blocks_refine_by_loads(blocks *x)
{
    int32_t n = 1;
    int rc = 0;
    planning first = {.x = x, .effort = x->in->o->budget.effort, .seed = x->in->o->budget.seed};
    for (int32_t i = 0; i < PLAN_PATHS && n > 0 && !rc && !incumbent_stopped(x->in); i++)
        rc = plan_path(x, &first, false, &n);
    n = 1;
    for (int32_t i = 0; i < BOUND_PATHS && n > 0 && !rc && !incumbent_stopped(x->in); i++)
        rc = raise_path(x, &n);
    planning again = {.x = x, .effort = AGAIN * x->in->o->budget.effort, .seed = x->in->o->budget.seed + 1};
    if (!rc && !incumbent_stopped(x->in) && incumbent_gap(x->in) > x->in->o->gap)
        rc = plan_path(x, &again, true, &n);
    return rc;
}
