/* Layers that are copies of each other: their plans, annealed once for all.
 *
 * A network of twelve equal layers between cuts has one layer to plan, between any two devices, and the whole is a path
 * through these plans (pair/chain.c). The pairs of a large class are annealed like a whole problem (whole_anneal.c), both
 * ends pinned, which at 50 operators instead of 600 makes ten times as many trials a second, each of which counts
 * twelve times. First all pairs a little, those of small blocks as well, so that paths mean something; then, round by
 * round with more trials, the pairs that the best plan uses, with several runs each, and sometimes those that stay on
 * one device. What does not see edges over cuts is composed and polished as a whole afterwards. */
#include <math.h>
#include <stdlib.h>

#include "place/moirai/blocks/blocks.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_anneal.h"
#include "schedule/plan_order.h"
#include "util/pool.h"
#include "util/util.h"

typedef struct run {
    int64_t pair;
    bool afresh;
    moirai_plan *plan; /* found; NULL: none */
} run;

typedef struct copying {
    blocks *x;
    run *run;
    double trials;
    int32_t round;
    const util_stop *stop;
} copying;

static bool repeats_at_all(const blocks *x, int32_t class_)
{
    const decompose_cuts *s = x->c->s;
    return s->class_count[class_] >= BLOCKS_COPIES_COPIES && s->block_size[s->class_block[class_]] > 1;
}

static bool is_large(const blocks *x, int32_t class_)
{
    const decompose_cuts *s = x->c->s;
    return repeats_at_all(x, class_) && s->block_size[s->class_block[class_]] >= BLOCKS_COPIES_LEAST_OPS;
}

/* Most operators are in copies of large blocks. */
static bool repeats(const blocks *x)
{
    const decompose_cuts *s = x->c->s;
    int64_t ops = 0;
    for (int32_t i = 0; i < s->n_classes; i++)
        ops += is_large(x, i) ? (int64_t)s->class_count[i] * s->block_size[s->class_block[i]] : 0;
    return 2 * ops > x->in->p->n_ops && pair_chain_distinct(x->c) <= BLOCKS_COPIES_MOST_PAIRS;
}

/* ---- one pair ---- */

/* The pair's plan from a schedule of its block. */
static int keep_plan(pair_state *y, const moirai_plan *plan)
{
    moirai_task *order;
    int64_t n;
    int rc = schedule_plan_order(&order, &n, &y->block.problem, plan);
    if (rc)
        return rc;
    rc = pair_take_plan(y, plan->makespan_ns, plan->op_device, order, n);
    free(order);
    return rc;
}

/* A schedule of the block to begin with: the pair's plan, or everything on the device of its entry. */
static int begin_with(moirai_plan **out, const pair_state *y, bool afresh, moirai_sim *sim)
{
    const moirai_problem *q = &y->block.problem;
    *out = NULL;
    if (!afresh)
        return moirai_sim_replay(sim, y->plan.device, y->plan.order, y->plan.n_order) < 0 ? 0
                                                                                          : moirai_sim_plan(out, sim);
    int32_t *device = util_alloc((size_t)q->n_ops, sizeof *device);
    if (!device)
        return MOIRAI_EFAIL;
    int32_t k = y->plan.device[y->block.entry >= 0 ? y->block.entry : 0];
    for (int32_t i = 0; i < q->n_ops; i++)
        device[i] = q->op_devices[i] >> k & 1 ? k : y->plan.device[i];
    int rc = moirai_sim_dispatch(sim, device, NULL) < 0 ? 0 : moirai_sim_plan(out, sim);
    free(device);
    return rc;
}

/* Goes on from the pair's plan, or begins again, hotter: which of several valleys a short run falls into is chance, and
 * going on does not leave it. */
static int anneal_run(void *data, int32_t i)
{
    const copying *job = data;
    run *r = &job->run[i];
    const pair_state *y = job->x->c->pair[r->pair];
    moirai_sim *sim;
    if (!y->open || !y->plan.device || y->plan.length_ns <= y->lower_ns || util_stopped(job->stop))
        return 0;
    int rc = moirai_sim_new(&sim, &y->block.problem);
    rc = rc ? rc : begin_with(&r->plan, y, r->afresh, sim);
    for (int32_t part = r->afresh ? 0 : 1; part < 2 && !rc && r->plan; part++) {
        place_whole_task task = {
            .evaluations = (int64_t)(part ? job->trials : job->trials / 4) + 1,
            .heat = r->afresh        ? 2
                    : job->round % 2 ? 4
                                     : 0.5,
            .exchanges = true,
            .cold = BLOCKS_COPIES_COLD,
            .lean = i % 2 ? BLOCKS_COPIES_LEAN : 0,
            .seed = ((job->x->in->o->budget.seed * 100 + (uint64_t)job->round) * BLOCKS_COPIES_RUNS + (uint64_t)i) * 2 +
                    (uint64_t)part,
            .threads = 1,
            .stop = *job->stop};
        rc = place_whole_anneal(&r->plan, &y->block.problem, &task);
    }
    moirai_sim_free(sim);
    return rc;
}

/* All runs side by side; pairs take the best plans afterwards. */
static int anneal_runs(blocks *x, run *r, int32_t n, int32_t round, const util_stop *stop)
{
    double effort = fmin(x->in->o->budget.effort, 1e4),
           trials = round ? BLOCKS_COPIES_TRIALS * (1 + round / 4) : BLOCKS_COPIES_FIRST_TRIALS;
    copying job = {.x = x, .run = r, .trials = trials * effort, .round = round, .stop = stop};
    int rc = util_pool_run(anneal_run, &job, n, x->in->o->budget.threads);
    for (int32_t i = 0; i < n; i++) {
        pair_state *y = x->c->pair[r[i].pair];
        if (!rc && r[i].plan && r[i].plan->makespan_ns < y->plan.length_ns)
            rc = keep_plan(y, r[i].plan);
        moirai_plan_free(r[i].plan);
    }
    x->in->work += n;
    return rc;
}

/* ---- which pairs ---- */

static int anneal_all(blocks *x, const util_stop *stop)
{
    int32_t K = x->c->K, n = 0;
    int64_t all = pair_chain_count(x->c);
    run *r = util_alloc((size_t)all, sizeof *r);
    if (!r)
        return MOIRAI_EFAIL;
    for (int64_t i = 0; i < all; i++)
        if (x->c->pair[i] && repeats_at_all(x, (int32_t)(i / K / K)))
            r[n++] = (run){.pair = i, .afresh = true};
    int rc = anneal_runs(x, r, n, 0, stop);
    free(r);
    return rc;
}

/* Pairs of large classes on the path at hand, each once. */
static int32_t list_path(blocks *x, const int32_t *device, int64_t *pair)
{
    const decompose_cuts *s = x->c->s;
    int32_t n = 0;
    for (int32_t b = 0; b < s->n_blocks && n < BLOCKS_COPIES_RUNS; b++) {
        int64_t at = pair_chain_on_path(x->c, b, device);
        if (is_large(x, s->block_class[b]) && x->c->pair[at])
            n = pair_list_once(pair, n, at);
    }
    return n;
}

/* Pairs of large classes that stay on one device, others each time. */
static int32_t list_steady(const blocks *x, int64_t *pair)
{
    int32_t K = x->c->K, classes = x->c->s->n_classes, n = 0;
    for (int32_t i = 0, k = x->copy_rounds / BLOCKS_COPIES_ELSEWHERE - 1; i < K && n < BLOCKS_COPIES_RUNS; i++, k++)
        for (int32_t class_ = 0; class_ < classes && n < BLOCKS_COPIES_RUNS; class_++) {
            int64_t at = pair_chain_index(x->c, class_, k % K, k % K);
            if (is_large(x, class_) && x->c->pair[at])
                n = pair_list_once(pair, n, at);
        }
    return n;
}

/* Pairs that the best plan uses: the path of the chain does not see edges over cuts, the plan does. In some rounds
 * layers that stay on a device, whichever it is: the first plans of pairs are a matter of luck, and so is the path. */
static int32_t choose(blocks *x, int64_t *pair)
{
    const decompose_cuts *s = x->c->s;
    if (x->copy_rounds % BLOCKS_COPIES_ELSEWHERE == 0)
        return list_steady(x, pair);
    for (int32_t i = 0; i < s->n_cuts; i++)
        x->plan_device[i] = x->in->best->op_device[s->cut[i]];
    return list_path(x, x->plan_device, pair);
}

/* One round: runs shared out among the pairs, the first of a pair goes on, others begin again. */
static int anneal_round(blocks *x, const util_stop *stop)
{
    int64_t pair[BLOCKS_COPIES_RUNS];
    run r[BLOCKS_COPIES_RUNS];
    int32_t n = choose(x, pair);
    for (int32_t i = 0; i < BLOCKS_COPIES_RUNS && n > 0; i++)
        r[i] = (run){.pair = pair[i % n], .afresh = i >= n || x->copy_rounds % 2};
    int rc = n > 0 ? anneal_runs(x, r, BLOCKS_COPIES_RUNS, x->copy_rounds, stop) : 0;
    return rc ? rc : blocks_compose(x);
}

int blocks_anneal_copies(blocks *x, bool *any, double part)
{
    util_stop stop = incumbent_part(x->in, part);
    int rc = 0;
    *any = false;
    if (!repeats(x) || !x->in->best || incumbent_gap(x->in) <= x->in->o->gap)
        return 0;
    *any = true;
    rc = pair_chain_open_all(x->c, x->in->o->budget.threads, &stop);
    if (!rc && x->copy_rounds == 0) {
        rc = anneal_all(x, &stop);
        x->copy_rounds = 1;
    }
    rc = rc ? rc : blocks_compose(x);
    for (int32_t idle = 0;
         !rc && idle < BLOCKS_COPIES_IDLE_ROUNDS && x->copy_rounds <= BLOCKS_COPIES_ROUNDS && !util_stopped(&stop);
         x->copy_rounds++) {
        double before = (double)x->in->best->makespan_ns;
        rc = anneal_round(x, &stop);
        idle = (double)x->in->best->makespan_ns > (1 - BLOCKS_COPIES_WORTH_A_ROUND) * before ? idle + 1 : 0;
    }
    return rc;
}
