/* Simulated annealing over devices and one order of the whole problem.
 *
 * A chain begins with the plan at hand: its devices, its operators by their starts. The evaluation (whole_sim.c) stops
 * where the threshold of the trial (anneal/anneal.c) is passed.
 *
 * Several chains with different seeds and temperatures make a round. The best states of all chains are replayed by
 * the simulator, once as they were put down and once sorted by start, which closes gaps that the append-only order has
 * left; the best plan that fits the memory is the round's.
 *
 * Moves of annealing: the device of an operator, of a connected stretch of operators that share one, or of an operator
 * along with its neighbours' (copying a neighbour's device is the likelier choice); an operator to an earlier or a later
 * place of the order, with whatever must go along. Half of the moves begin at an operator that is on a critical path:
 * elsewhere a makespan does not fall.
 *
 * Two operators of about equal times may exchange their devices (`exchanges`): where devices are full, as they are
 * where a few heavy operators are to be shared out (experts), each of the two changes alone is far too long, and no warm
 * state leads from one packing to the next. (A layer of 8 experts on fast links, a million states from each of four
 * seeds: 1.115 ms on average without exchanges, 1.101 with.) */
#include "place/moirai/whole/whole_anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/anneal.h"
#include "place/moirai/incumbent/engine_tuning.h"
#include "schedule/plan_order.h"
#include "schedule/sim.h"
#include "util/pool.h"

/* ---- moves ---- */

int place_mover_open(place_mover *m, const moirai_problem *p, const util_stop *stop)
{
    size_t n = (size_t)p->n_ops;
    UTIL_TAKE(&m->memory, m->best_device, n);
    UTIL_TAKE(&m->memory, m->best_order, n);
    UTIL_TAKE(&m->memory, m->stretch, UTIL_MAX(n, WHOLE_MOVES_STRETCH));
    UTIL_TAKE(&m->memory, m->seen, n);
    return m->memory.failed ? MOIRAI_EFAIL : place_whole_new(&m->w, p, stop);
}

void place_mover_clear(place_mover *m)
{
    place_whole_free(m->w);
    util_release(&m->memory);
}

static void keep_best(place_mover *m)
{
    const place_whole *w = m->w;
    m->best_ns = w->makespan_ns;
    memcpy(m->best_device, w->device, sizeof *w->device * (size_t)w->n);
    memcpy(m->best_order, w->order, sizeof *w->order * (size_t)w->n);
}

void place_mover_begin(place_mover *m, const int32_t *device, const int32_t *order)
{
    place_whole_set(m->w, device, order);
    keep_best(m);
}

static int32_t draw(place_mover *m, int32_t n)
{
    return (int32_t)util_rng_below(&m->rng, (uint32_t)n);
}

static int32_t draw_op(place_mover *m)
{
    const place_whole *w = m->w;
    int32_t op = w->order[draw(m, w->n)];
    if (util_rng_below(&m->rng, 2))
        for (int32_t i = 0; i < WHOLE_MOVES_DRAWS && !place_whole_critical(w, op); i++)
            op = w->order[draw(m, w->n)];
    return op;
}

/* An operator that `op` reads from or that reads from it; itself where it has none. */
static int32_t draw_neighbour(place_mover *m, int32_t op)
{
    const moirai_problem *p = m->w->p;
    int32_t in = p->op_in_off[op + 1] - p->op_in_off[op], first = p->op_out_off[op],
            outs = p->op_out_off[op + 1] - first;
    if (in && (!outs || util_rng_below(&m->rng, 2)))
        return m->w->in.producer[p->op_in_off[op] + draw(m, in)];
    if (!outs)
        return op;
    int32_t t = p->op_out[first + draw(m, outs)], readers = p->tensor_edge_off[t + 1] - p->tensor_edge_off[t];
    return readers ? p->edge_reader[p->tensor_edge_off[t] + draw(m, readers)] : op;
}

static bool is_quicker(const moirai_problem *p, int32_t op, int32_t k, int32_t than)
{
    return moirai_op_may(p, op, k) &&
           (!moirai_op_may(p, op, than) || moirai_op_ns(p, op, k) < moirai_op_ns(p, op, than));
}

static int32_t draw_device(place_mover *m, int32_t op)
{
    const place_whole *w = m->w;
    int32_t k = w->device[draw_neighbour(m, op)];
    if (k != w->device[op] && util_rng_below(&m->rng, 2))
        return k;
    k = draw(m, w->K);
    int32_t other = w->K > WHOLE_MOVES_MANY_DEVICES ? draw(m, w->K) : k;
    return is_quicker(w->p, op, other, k) ? other : k;
}

/* A connected set of operators on one device, grown at random from `op`. */
static int32_t grow_stretch(place_mover *m, int32_t op, int32_t most)
{
    const place_whole *w = m->w;
    int32_t n = 1;
    m->stretch[0] = op;
    m->seen[op] = ++m->move;
    for (int32_t tries = 0; n < most && tries < 3 * most; tries++) {
        int32_t i = draw_neighbour(m, m->stretch[draw(m, n)]);
        if (m->seen[i] == m->move || w->device[i] != w->device[op])
            continue;
        m->seen[i] = m->move;
        m->stretch[n++] = i;
    }
    return n;
}

static void move_stretch(place_mover *m, int32_t op)
{
    int32_t k = draw_device(m, op), n = grow_stretch(m, op, 2 + draw(m, 2 + draw(m, WHOLE_MOVES_STRETCH - 3)));
    for (int32_t i = 0; i < n; i++)
        place_whole_move(m->w, m->stretch[i], k);
}

static void move_op(place_mover *m, int32_t op)
{
    place_whole_move(m->w, op, draw_device(m, op));
}

static void move_order(place_mover *m, int32_t op)
{
    place_whole *w = m->w;
    int32_t by = 1 + draw(m, 1 << (1 + draw(m, 7))), q = w->position[op];
    place_whole_shift(w, op, util_rng_below(&m->rng, 2) ? UTIL_MAX(q - by, 0) : UTIL_MIN(q + by, w->n - 1));
}

/* With an operator on another device that takes neither half nor twice its time. */
static void exchange(place_mover *m, int32_t op)
{
    place_whole *w = m->w;
    int32_t from = w->device[op];
    int64_t ns = moirai_op_least_ns(w->p, op);
    for (int32_t i = 0; i < WHOLE_MOVES_PARTNERS; i++) {
        int32_t other = w->order[draw(m, w->n)], to = w->device[other];
        int64_t other_ns = moirai_op_least_ns(w->p, other);
        if (to == from || other_ns < ns / 2 || ns < other_ns / 2)
            continue;
        if (place_whole_move(w, op, to))
            place_whole_move(w, other, from);
        return;
    }
}

/* A trial: begins one and changes something. */
static void make(void *data)
{
    place_mover *m = data;
    int32_t op = draw_op(m), dice = draw(m, 100);
    place_whole_begin(m->w);
    if (m->exchanges && draw(m, 100) < WHOLE_MOVES_EXCHANGES) {
        if (dice < 50)
            move_order(m, draw_op(m));
        exchange(m, op);
    } else if (dice < 25)
        move_op(m, op);
    else if (dice < 50)
        move_stretch(m, op);
    else if (dice < 85)
        move_order(m, op);
    else {
        move_order(m, op);
        move_op(m, op);
    }
}

static bool judge(void *data, double above)
{
    place_mover *m = data;
    place_whole *w = m->w;
    if (place_whole_try(w, w->makespan_ns + (int64_t)floor(above)) == INT64_MAX) {
        place_whole_reject(w);
        return true;
    }
    place_whole_accept(w);
    if (w->makespan_ns < m->best_ns)
        keep_best(m);
    return true;
}

void place_mover_cool(place_mover *m, double hot_ns, double cold_ns, int64_t evaluations, const util_stop *stop)
{
    anneal_run(&(anneal_task){.hot = hot_ns,
                              .cold = cold_ns,
                              .steps = evaluations,
                              .stride = WHOLE_MOVES_STRIDE,
                              .rng = &m->rng,
                              .stop = stop,
                              .data = m,
                              .move = make,
                              .judge = judge});
}

/* ---- chains ---- */

typedef struct round_ {
    const moirai_problem *p;
    const place_whole_task *job;
    const moirai_plan *plan;
    int32_t *start_order;
    place_mover chain[PLACE_WHOLE_CHAINS];
    int64_t end_ns[PLACE_WHOLE_CHAINS]; /* where each has ended, whatever it met before */
} round_;

static int run_chain(void *data, int32_t i)
{
    static const double heat[PLACE_WHOLE_CHAINS] = {1, 0.5, 2, 0.25};
    round_ *r = data;
    const place_whole_task *job = r->job;
    place_mover *m = &r->chain[i];
    r->end_ns[i] = INT64_MAX;
    if (util_stopped(&job->stop)) /* to set up a state of many operators on many devices takes long */
        return 0;
    int rc = place_mover_open(m, r->p, &job->stop);
    if (rc)
        return rc;
    m->exchanges = job->exchanges;
    util_rng_seed(&m->rng, job->seed * PLACE_WHOLE_CHAINS + (uint64_t)i);
    place_mover_begin(m, r->plan->op_device, r->start_order);
    double hot = heat[i] * (job->heat > 0 ? job->heat : 1), cold = job->cold > 0 ? job->cold : 1;
    place_mover_cool(m, WHOLE_ANNEAL_HOT * hot * (double)m->best_ns, WHOLE_ANNEAL_COLD * cold * (double)m->best_ns,
                     job->evaluations, &job->stop);
    r->end_ns[i] = m->w->makespan_ns;
    place_whole_set(m->w, m->best_device, m->best_order);
    return 0;
}

static int64_t second_end(const round_ *r)
{
    int64_t least = INT64_MAX, second = INT64_MAX;
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++) {
        int64_t end = r->end_ns[i];
        second = UTIL_MIN(second, UTIL_MAX(end, least));
        least = UTIL_MIN(least, end);
    }
    return second;
}

/* ---- states and plans ---- */

/* The state as a plan in place of *plan, where it is shorter and fits the memory. */
static int take(moirai_plan **plan, moirai_sim *sim, const place_whole *w)
{
    moirai_task *task = util_alloc((size_t)w->n + (size_t)w->p->n_edges, sizeof *task);
    if (!task)
        return MOIRAI_EFAIL;
    int64_t length = schedule_sim_replay_closed(sim, w->device, task, place_whole_tasks(w, task));
    free(task);
    return schedule_sim_take_better(plan, sim, length);
}

/* The plan's operators by their starts; what starts together is ordered by topological rank, so that the order is one of precedence. The
 * caller frees *out, also on failure. */
static int order_of(int32_t **out, const moirai_problem *p, const moirai_plan *plan)
{
    size_t n = (size_t)p->n_ops;
    schedule_timed_task *sorted = util_alloc(n, sizeof *sorted);
    *out = util_alloc(n, sizeof **out);
    int rc = sorted && *out ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops && !rc; i++)
        sorted[i] = schedule_timed_op(p, i, plan->op_start_ns[i], plan->op_start_ns[i]);
    if (!rc)
        schedule_timed_sort(sorted, n);
    for (size_t i = 0; i < n && !rc; i++)
        (*out)[i] = (int32_t)sorted[i].task;
    free(sorted);
    return rc;
}

int place_whole_anneal(moirai_plan **plan, const moirai_problem *p, const place_whole_task *job)
{
    if (p->n_ops == 0 || (*plan)->makespan_ns == 0 || job->evaluations <= 0)
        return 0;
    round_ r = {.p = p, .job = job, .plan = *plan};
    moirai_sim *sim = NULL;
    int rc = order_of(&r.start_order, p, *plan);
    rc = rc ? rc : moirai_sim_new(&sim, p);
    rc = rc ? rc : util_pool_run(run_chain, &r, PLACE_WHOLE_CHAINS, job->threads);
    if (!rc && job->second_ns)
        *job->second_ns = second_end(&r);
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++) {
        rc = rc || !r.chain[i].w ? rc : take(plan, sim, r.chain[i].w);
        place_mover_clear(&r.chain[i]);
    }
    moirai_sim_free(sim);
    free(r.start_order);
    return rc;
}
