/* Layers: the plans of large blocks, annealed each by itself, copies of each other once for all.
 *
 * Both ends pinned, a layer of 50 operators has ten times as many trials a second as a whole of 600, and each counts for
 * all copies. First all pairs a little, those of small blocks as well, so that paths mean something; then, round by round
 * with more trials, the pairs that the best plan uses, each as often as it takes of that, and sometimes those that stay on
 * one device. What does not see edges over cuts is composed and polished as a whole afterwards. */
#include <math.h>
#include <stdlib.h>

#include "place/moirai/blocks/blocks.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_anneal.h"
#include "schedule/sim.h"
#include "util/pool.h"
#include "util/util.h"

typedef struct run {
    int64_t pair;
    bool afresh;
    moirai_plan *plan; /* found; NULL: none */
} run;

typedef struct annealing {
    blocks *x;
    run *run;
    double trials;
    int32_t round;
    const util_stop *stop;
} annealing;

static bool is_large(const blocks *x, int32_t class_)
{
    const decompose_cuts *s = x->c->s;
    return s->block_size[s->class_block[class_]] >= BLOCKS_LAYERS_LEAST_OPS;
}

/* Whether most operators are in large blocks whose class has so many, and the most in one of them. */
static bool most_are_in(const blocks *x, int32_t copies, int32_t *most)
{
    const decompose_cuts *s = x->c->s;
    int64_t ops = 0;
    *most = 0;
    for (int32_t i = 0; i < s->n_classes; i++) {
        int32_t size = s->block_size[s->class_block[i]];
        bool counts = is_large(x, i) && s->class_count[i] >= copies;
        ops += counts ? (int64_t)s->class_count[i] * size : 0;
        *most = counts ? UTIL_MAX(*most, size) : *most;
    }
    return 2 * ops > x->in->p->n_ops && pair_chain_distinct(x->c) <= BLOCKS_LAYERS_MOST_PAIRS;
}

bool blocks_have_layers(const blocks *x)
{
    int32_t most;
    return most_are_in(x, 1, &most) && 2 * most <= x->in->p->n_ops;
}

bool blocks_repeat(const blocks *x)
{
    int32_t most;
    return most_are_in(x, BLOCKS_LAYERS_COPIES, &most);
}

/* ---- one pair ---- */

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
    const annealing *job = data;
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
            .cold = BLOCKS_LAYERS_COLD,
            .seed = ((job->x->in->o->budget.seed * 100 + (uint64_t)job->round) * BLOCKS_LAYERS_RUNS + (uint64_t)i) * 2 +
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
           trials = round ? BLOCKS_LAYERS_TRIALS * (1 + round / 4)
                          : fmin(BLOCKS_LAYERS_FIRST_TRIALS, BLOCKS_LAYERS_FIRST_IN_ALL / (n + 1));
    annealing job = {.x = x, .run = r, .trials = trials * effort, .round = round, .stop = stop};
    int rc = util_pool_run(anneal_run, &job, n, x->in->o->budget.threads);
    for (int32_t i = 0; i < n; i++) {
        if (!rc && r[i].plan)
            rc = pair_take_plan(x->c->pair[r[i].pair], r[i].plan);
        moirai_plan_free(r[i].plan);
    }
    x->in->work += n;
    return rc;
}

/* ---- which pairs ---- */

/* Those that stay on one device first: where the time is short, there is a path of them. */
static int anneal_all(blocks *x, const util_stop *stop)
{
    const decompose_cuts *s = x->c->s;
    int32_t n = 0, K = x->c->K;
    int64_t all = pair_chain_count(x->c);
    run *r = util_alloc((size_t)all, sizeof *r);
    for (int64_t j = 0; r && j < 2 * all; j++) {
        int64_t i = j % all;
        if (x->c->pair[i] && s->block_size[s->class_block[i / K / K]] > 1 && (i / K % K == i % K) == (j < all))
            r[n++] = (run){.pair = i, .afresh = true};
    }
    int rc = r ? anneal_runs(x, r, n, 0, stop) : MOIRAI_EFAIL;
    free(r);
    return rc;
}

/* The path to work on: what the best plan uses, since the chain's may not see edges over cuts; in some rounds layers that stay on a device,
 * whichever it is: the first plans of pairs are a matter of luck, and so is the path. */
static void choose_path(blocks *x)
{
    int32_t elsewhere = x->layer_rounds / BLOCKS_LAYERS_ELSEWHERE;
    if (x->layer_rounds % BLOCKS_LAYERS_ELSEWHERE)
        blocks_follow_best(x);
    else
        for (int32_t i = 0; i < x->c->s->n_cuts; i++)
            x->plan_device[i] = (elsewhere - 1) % x->c->K;
    blocks_count_path(x, x->batch.times, x->plan_device);
}

/* Of the pairs of large blocks on the path the one whose plan takes most of it, for each run that it has had. */
static int64_t next_pair(const blocks *x)
{
    int64_t K = x->c->K, next = -1;
    double most = 0;
    for (int64_t i = 0; i < pair_chain_count(x->c); i++) {
        const pair_state *y = x->c->pair[i];
        if (!y || !x->batch.times[i] || !is_large(x, (int32_t)(i / K / K)))
            continue;
        double weight = (double)x->batch.times[i] * (double)(y->plan.length_ns - y->lower_ns) / (1 + x->annealed[i]);
        if (weight > most) {
            most = weight;
            next = i;
        }
    }
    return next;
}

/* One round: runs shared out among the pairs, the first of a pair goes on, others begin again. */
static int anneal_round(blocks *x, const util_stop *stop)
{
    run r[BLOCKS_LAYERS_RUNS];
    int32_t n = 0;
    choose_path(x);
    for (int64_t pair; n < BLOCKS_LAYERS_RUNS && (pair = next_pair(x)) >= 0;) {
        bool again = false;
        for (int32_t i = 0; i < n; i++)
            again |= r[i].pair == pair;
        x->annealed[pair]++;
        r[n++] = (run){.pair = pair, .afresh = again || x->layer_rounds % 2};
    }
    int rc = n > 0 ? anneal_runs(x, r, n, x->layer_rounds, stop) : 0;
    return rc ? rc : blocks_compose(x);
}

int blocks_anneal_layers(blocks *x, double part)
{
    util_stop stop = incumbent_part(x->in, part);
    if (!x->in->best || incumbent_gap(x->in) <= x->in->o->gap)
        return 0;
    int rc = pair_chain_open_all(x->c, x->in->o->budget.threads, &stop);
    if (!rc && x->layer_rounds == 0) {
        rc = anneal_all(x, &stop);
        x->layer_rounds = 1;
    }
    rc = rc ? rc : blocks_compose(x);
    int32_t patience = 1; /* a first round that gains nothing ends it */
    for (int32_t idle = 0; !rc && idle < patience && x->layer_rounds <= BLOCKS_LAYERS_ROUNDS && !util_stopped(&stop);
         x->layer_rounds++) {
        double before = (double)x->in->best->makespan_ns;
        rc = anneal_round(x, &stop);
        idle = (double)x->in->best->makespan_ns > (1 - BLOCKS_LAYERS_WORTH_A_ROUND) * before ? idle + 1 : 0;
        patience = idle ? patience : BLOCKS_LAYERS_IDLE_ROUNDS;
    }
    return rc;
}
