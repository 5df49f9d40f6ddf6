/* Simulated annealing over devices and one order of the whole problem.
 *
 * A chain begins with the plan at hand: its devices, its operators by their starts. Moves: the device of an operator,
 * of a connected stretch of operators that share one, or of an operator along with its neighbours' (copying a
 * neighbour's device is the likelier choice); an operator to an earlier or a later place of the order, with whatever
 * must go along. Half of the moves begin at an operator that is on a critical path: elsewhere a makespan does not fall.
 * The threshold is drawn before a state is evaluated (accept if next <= now - temperature * log(uniform)), so that the
 * evaluation (whole_sim.c) can stop where it is passed.
 *
 * Several chains with different seeds and temperatures make a round. The best states of all chains are replayed by
 * the simulator, once as they were put down and once sorted by start, which closes gaps that the append-only order has
 * left; the best plan that fits the memory is the round's. */
#include "place/moirai/whole_anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/moirai/whole_sim.h"
#include "util/pool.h"

#define HOT 0.008    /* first temperature, of the makespan */
#define COLD 0.00003 /* last one */
#define LOOKS 6      /* for an operator on a critical path */
#define STRETCH 24   /* operators that change their device at once, at most */

typedef struct chain {
    place_whole *w;
    util_rng rng;
    int64_t best_ns;
    int32_t *best_device, *best_order;
    moirai_task *task; /* of the best state */
    int64_t n_tasks;
    int32_t *stretch; /* working memory of moves */
    int32_t *seen;    /* per operator: number of the move that has seen it */
    int32_t move;
} chain;

typedef struct round_ {
    const moirai_problem *p;
    const place_whole_task *job;
    const moirai_plan *plan;
    const int32_t *start_order;
    chain chain[PLACE_WHOLE_CHAINS];
} round_;

/* ---- moves ---- */

static int32_t draw(chain *c, int32_t n)
{
    return (int32_t)util_rng_below(&c->rng, (uint32_t)n);
}

static int32_t draw_op(chain *c)
{
    int32_t op = draw(c, c->w->n);
    if (util_rng_below(&c->rng, 2))
        for (int32_t i = 0; i < LOOKS && !place_whole_critical(c->w, op); i++)
            op = draw(c, c->w->n);
    return op;
}

/* An operator that `op` reads from or that reads from it; itself where it has none. */
static int32_t draw_neighbour(chain *c, int32_t op)
{
    const moirai_problem *p = c->w->p;
    int32_t in = p->op_in_off[op + 1] - p->op_in_off[op], first = p->op_out_off[op],
            outs = p->op_out_off[op + 1] - first;
    if (in && (!outs || util_rng_below(&c->rng, 2)))
        return c->w->in_producer[p->op_in_off[op] + draw(c, in)];
    if (!outs)
        return op;
    int32_t t = p->op_out[first + draw(c, outs)], readers = p->tensor_edge_off[t + 1] - p->tensor_edge_off[t];
    return readers ? p->edge_reader[p->tensor_edge_off[t] + draw(c, readers)] : op;
}

static int32_t draw_device(chain *c, int32_t op)
{
    const place_whole *w = c->w;
    int32_t k = w->device[draw_neighbour(c, op)];
    return k != w->device[op] && util_rng_below(&c->rng, 2) ? k : draw(c, w->K);
}

/* A connected set of operators on one device, grown at random from `op`. */
static int32_t grow_stretch(chain *c, int32_t op, int32_t most)
{
    const place_whole *w = c->w;
    int32_t n = 1;
    c->stretch[0] = op;
    c->seen[op] = ++c->move;
    for (int32_t tries = 0; n < most && tries < 3 * most; tries++) {
        int32_t i = draw_neighbour(c, c->stretch[draw(c, n)]);
        if (c->seen[i] == c->move || w->device[i] != w->device[op])
            continue;
        c->seen[i] = c->move;
        c->stretch[n++] = i;
    }
    return n;
}

static void move_stretch(chain *c, int32_t op)
{
    int32_t k = draw_device(c, op), n = grow_stretch(c, op, 2 + draw(c, 2 + draw(c, STRETCH - 3)));
    for (int32_t i = 0; i < n; i++)
        place_whole_move(c->w, c->stretch[i], k);
}

static void move_order(chain *c, int32_t op)
{
    place_whole *w = c->w;
    int32_t by = 1 + draw(c, 1 << (1 + draw(c, 7))), q = w->position[op];
    if (util_rng_below(&c->rng, 2))
        place_whole_pull(w, op, UTIL_MAX(q - by, 0));
    else
        place_whole_push(w, op, UTIL_MIN(q + by, w->n - 1));
}

static void make_move(chain *c)
{
    int32_t op = draw_op(c), dice = draw(c, 100);
    place_whole_begin(c->w);
    if (dice < 25)
        place_whole_move(c->w, op, draw_device(c, op));
    else if (dice < 50)
        move_stretch(c, op);
    else if (dice < 85)
        move_order(c, op);
    else {
        move_order(c, op);
        place_whole_move(c->w, op, draw_device(c, op));
    }
}

/* ---- cooling ---- */

static void keep_best(chain *c)
{
    const place_whole *w = c->w;
    c->best_ns = w->makespan_ns;
    memcpy(c->best_device, w->device, sizeof *w->device * (size_t)w->n);
    memcpy(c->best_order, w->order, sizeof *w->order * (size_t)w->n);
}

static void cool(chain *c, const place_whole_task *job, double heat)
{
    place_whole *w = c->w;
    double hot = HOT * heat * (double)c->best_ns, cold = COLD * (double)c->best_ns;
    double rate = log(cold / hot) / (double)job->evaluations, temperature = hot;
    for (int64_t step = 0; step < job->evaluations; step++) {
        if (step % 64 == 0) {
            if (util_stopped(&job->stop))
                return;
            temperature = hot * exp(rate * (double)step);
        }
        make_move(c);
        double more = -temperature * log(1 - util_rng_real(&c->rng));
        int64_t next = place_whole_try(w, w->makespan_ns + (int64_t)more);
        if (next == INT64_MAX) {
            place_whole_reject(w);
            continue;
        }
        place_whole_accept(w);
        if (next < c->best_ns)
            keep_best(c);
    }
}

/* ---- rounds ---- */

static void chain_clear(chain *c)
{
    place_whole_free(c->w);
    free(c->best_device);
    free(c->best_order);
    free(c->task);
    free(c->stretch);
    free(c->seen);
}

static int chain_open(chain *c, const moirai_problem *p)
{
    size_t n = (size_t)p->n_ops;
    c->best_device = util_alloc(n, sizeof(int32_t));
    c->best_order = util_alloc(n, sizeof(int32_t));
    c->task = util_alloc(n + (size_t)p->n_edges, sizeof(moirai_task));
    c->stretch = util_alloc(UTIL_MAX(n, STRETCH), sizeof(int32_t));
    c->seen = util_alloc(n, sizeof(int32_t));
    if (!c->best_device || !c->best_order || !c->task || !c->stretch || !c->seen)
        return MOIRAI_EFAIL;
    return place_whole_new(&c->w, p);
}

static int run_chain(void *data, int32_t i)
{
    static const double heat[PLACE_WHOLE_CHAINS] = {1, 0.5, 2, 0.25};
    round_ *r = data;
    chain *c = &r->chain[i];
    int rc = chain_open(c, r->p);
    if (rc)
        return rc;
    util_rng_seed(&c->rng, r->job->seed * PLACE_WHOLE_CHAINS + (uint64_t)i);
    place_whole_set(c->w, r->plan->op_device, r->start_order);
    keep_best(c);
    cool(c, r->job, heat[i] * (r->job->heat > 0 ? r->job->heat : 1));
    place_whole_set(c->w, c->best_device, c->best_order);
    c->n_tasks = place_whole_tasks(c->w, c->task);
    return 0;
}

/* The chain's best state as a plan, where it is shorter than *plan and fits. */
static int take(moirai_plan **plan, moirai_sim *sim, const chain *c)
{
    const moirai_task *order;
    int64_t length = moirai_sim_replay(sim, c->best_device, c->task, c->n_tasks);
    for (int32_t i = 0; i < 2 && length >= 0; i++) {
        int64_t n = moirai_sim_order(sim, &order);
        length = moirai_sim_replay(sim, c->best_device, order, n);
    }
    if (length < 0 || length >= (*plan)->makespan_ns || moirai_sim_memory_excess(sim, NULL) > 0)
        return 0;
    moirai_plan *better;
    int rc = moirai_sim_plan(&better, sim);
    if (rc)
        return rc;
    moirai_plan_free(*plan);
    *plan = better;
    return 0;
}

typedef struct started {
    int64_t start_ns;
    int32_t rank, op;
} started;

static int earlier(const void *a, const void *b)
{
    const started *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

/* By start; what starts together by topological rank, so that the order is one of precedence. */
static int order_of_plan(int32_t **out, const moirai_problem *p, const moirai_plan *plan)
{
    size_t n = (size_t)p->n_ops;
    started *s = util_alloc(n, sizeof *s);
    int32_t *order = util_alloc(n, sizeof *order);
    if (s && order) {
        for (int32_t i = 0; i < p->n_ops; i++)
            s[i] = (started){plan->op_start_ns[i], p->topo_rank[i], i};
        qsort(s, n, sizeof *s, earlier);
        for (size_t i = 0; i < n; i++)
            order[i] = s[i].op;
    }
    int rc = s && order ? 0 : MOIRAI_EFAIL;
    free(s);
    *out = order;
    return rc;
}

int place_whole_anneal(moirai_plan **plan, const moirai_problem *p, const place_whole_task *job)
{
    if (p->n_ops == 0 || (*plan)->makespan_ns == 0 || job->evaluations <= 0)
        return 0;
    round_ r = {.p = p, .job = job, .plan = *plan};
    moirai_sim *sim = NULL;
    int32_t *order = NULL;
    int rc = order_of_plan(&order, p, *plan);
    r.start_order = order;
    rc = rc ? rc : moirai_sim_new(&sim, p);
    rc = rc ? rc : util_pool_run(run_chain, &r, PLACE_WHOLE_CHAINS, job->threads);
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++) {
        rc = rc ? rc : take(plan, sim, &r.chain[i]);
        chain_clear(&r.chain[i]);
    }
    moirai_sim_free(sim);
    free(order);
    return rc;
}
