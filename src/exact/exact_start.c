/* A first plan for the search to beat: annealing over devices, each placement timed by the simulator.
 *
 * The start puts every unit where the root's heads and tails promise most, in topological order, as memory allows.
 * Moves take one unit elsewhere or exchange two units' devices (memory is often too tight for the former). A placement
 * that does not fit counts as worse than any that does, by its excess. The number of moves is fixed by the size of the
 * problem, the random numbers by their seed: the same problem starts the same everywhere.
 *
 * Skipped where the caller brings a makespan to beat, or heads and tails, which the simulator does not know. A plan
 * that the caller brings is kept unless something better is found. */
#include "anneal/anneal.h"
#include "exact/exact_search.h"
#include "exact/exact_tuning.h"

#include <stdlib.h>
#include <string.h>

typedef struct start {
    exact_search *s;
    moirai_sim *sim;
    util_rng rng;
    int32_t *device, *best;
    double now, least; /* value of the current and of the best placement */
    bool fits;         /* the best one does */
} start;

static double value_of(start *a, const int32_t *device, bool *fits)
{
    int64_t makespan = moirai_sim_dispatch(a->sim, device, NULL);
    int64_t excess = makespan < 0 ? INT64_MAX / 4 : moirai_sim_memory_excess(a->sim, NULL);
    *fits = excess == 0;
    return excess > 0 ? 4.0 * (double)a->s->run.horizon_ns + (double)excess : (double)makespan;
}

static void put(start *a, int32_t u, int32_t k)
{
    const exact_search *s = a->s;
    for (int32_t b = s->unit.off[u]; b < s->unit.off[u + 1]; b++)
        a->device[s->unit.op[b]] = k;
}

static uint64_t may(const exact_search *s, int32_t u)
{
    return s->p->op_devices[s->unit.op[s->unit.off[u]]];
}

static void begin(start *a)
{
    exact_search *s = a->s;
    const exact_state *st = s->stack.state[0];
    memcpy(s->work.free_bytes, s->p->device_memory_bytes, (size_t)s->K * sizeof *s->work.free_bytes);
    for (int32_t b = 0; b < s->n; b++) {
        int32_t i = s->p->topo[b], u = s->unit.of[i], best = -1;
        int64_t least = EXACT_NONE_NS, bytes = 0;
        if (a->device[i] >= 0)
            continue;
        for (int32_t c = s->unit.off[u]; c < s->unit.off[u + 1]; c++)
            bytes += s->p->op_memory_bytes[s->unit.op[c]];
        for (uint64_t m = may(s, u); m != 0; m &= m - 1) {
            int32_t k = EXACT_FIRST(m);
            int64_t at = (int64_t)i * s->K + k, all = st->head[at] + s->p->op_time_ns[at] + st->tail[at];
            all += bytes > s->work.free_bytes[k] ? s->run.horizon_ns : 0;
            if (all < least) {
                least = all;
                best = k;
            }
        }
        s->work.free_bytes[best] -= bytes;
        put(a, u, best);
    }
}

static int32_t any_device(start *a, uint64_t mask)
{
    uint32_t skip = util_rng_below(&a->rng, (uint32_t)__builtin_popcountll(mask));
    for (; skip > 0; skip--)
        mask &= mask - 1;
    return EXACT_FIRST(mask);
}

/* One move; false where it changes nothing. *other is -1 unless two units are exchanged. */
static bool propose(start *a, int32_t *u, int32_t *other, int32_t old[2])
{
    const exact_search *s = a->s;
    *u = (int32_t)util_rng_below(&a->rng, (uint32_t)s->unit.n);
    *other = -1;
    old[0] = a->device[s->unit.op[s->unit.off[*u]]];
    if (util_rng_below(&a->rng, 3) == 0) {
        *other = (int32_t)util_rng_below(&a->rng, (uint32_t)s->unit.n);
        old[1] = a->device[s->unit.op[s->unit.off[*other]]];
        if (old[0] == old[1] || !(may(s, *u) >> old[1] & 1) || !(may(s, *other) >> old[0] & 1))
            return false;
        put(a, *u, old[1]);
        put(a, *other, old[0]);
        return true;
    }
    int32_t k = any_device(a, may(s, *u));
    if (k == old[0])
        return false;
    put(a, *u, k);
    return true;
}

/* One move, judged; false at the root's bound. */
static bool try_move(void *data, double above)
{
    start *a = data;
    const exact_search *s = a->s;
    int32_t u, other, old[2];
    bool fits;
    if (!propose(a, &u, &other, old))
        return true;
    double value = value_of(a, a->device, &fits);
    if (value > a->now + above) {
        put(a, u, old[0]);
        if (other >= 0)
            put(a, other, old[1]);
        return true;
    }
    a->now = value;
    if (value < a->least) {
        a->least = value;
        a->fits = fits;
        memcpy(a->best, a->device, (size_t)s->n * sizeof *a->best);
    }
    return value != (double)s->stack.state[0]->lb_ns;
}

static void anneal(start *a)
{
    const exact_search *s = a->s;
    double whole = UTIL_MIN(a->least, (double)s->run.horizon_ns);
    anneal_run(&(anneal_task){
        .hot = EXACT_START_HOT * whole,
        .cold = EXACT_START_COLD * whole,
        .steps = UTIL_MIN((int64_t)EXACT_START_MOVES_PER_CHOICE * s->unit.n * s->K, EXACT_START_MOST_MOVES),
        .stride = 1,
        .rng = &a->rng,
        .stop = &s->o->stop,
        .data = a,
        .judge = try_move});
}

static int32_t edge_of(const moirai_problem *p, int32_t tensor, int32_t reader)
{
    for (int32_t e = p->tensor_edge_off[tensor]; e < p->tensor_edge_off[tensor + 1]; e++)
        if (p->edge_reader[e] == reader)
            return e;
    return MOIRAI_NONE;
}

static void take(exact_search *s, const moirai_plan *plan)
{
    exact_result *r = s->r;
    r->found = true;
    r->makespan_ns = plan->makespan_ns;
    memcpy(r->op_device, plan->op_device, (size_t)s->n * sizeof *r->op_device);
    memcpy(r->op_start_ns, plan->op_start_ns, (size_t)s->n * sizeof *r->op_start_ns);
    r->n_transfers = plan->n_transfers;
    for (int32_t a = 0; a < plan->n_transfers; a++) {
        const moirai_transfer *x = &plan->transfer[a];
        int32_t e = s->mode.edge ? edge_of(s->p, x->tensor, x->reader) : MOIRAI_NONE;
        r->transfer[a] = (exact_transfer){x->tensor, e, x->from, x->to, x->start_ns, x->finish_ns};
    }
    s->below_ns = plan->makespan_ns;
}

static int keep(start *a)
{
    bool fits;
    moirai_plan *plan;
    value_of(a, a->best, &fits);
    int rc = moirai_sim_plan(&plan, a->sim);
    if (!rc)
        take(a->s, plan);
    moirai_plan_free(plan);
    return rc;
}

/* Annealing begins from the caller's plan if that is better than what the root suggests. */
static void choose_start(start *a)
{
    const exact_search *s = a->s;
    memset(a->device, -1, (size_t)s->n * sizeof *a->device);
    begin(a);
    a->now = value_of(a, a->device, &a->fits);
    if (s->o->start && (double)s->o->start->makespan_ns < a->now) {
        memcpy(a->device, s->o->start->op_device, (size_t)s->n * sizeof *a->device);
        a->now = value_of(a, a->device, &a->fits);
    }
    a->least = a->now;
    memcpy(a->best, a->device, (size_t)s->n * sizeof *a->best);
}

int exact_start(exact_search *s)
{
    if (s->o->below_ns >= 0 || s->o->release_ns || s->o->tail_ns || s->n == 0)
        return 0;
    exact_root(s);
    if (!exact_propagate(s, s->stack.state[0]))
        return 0; /* nothing fits: the search will say so */
    if (s->o->start)
        take(s, s->o->start);
    start a = {.s = s};
    util_rng_seed(&a.rng, 1);
    a.device = util_alloc((size_t)s->n, sizeof *a.device);
    a.best = util_alloc((size_t)s->n, sizeof *a.best);
    int rc = a.device && a.best ? moirai_sim_new(&a.sim, s->p) : MOIRAI_EFAIL;
    if (!rc) {
        choose_start(&a);
        if (s->unit.n > 1 && s->stack.state[0]->lb_ns < s->below_ns && a.least > 0)
            anneal(&a);
        rc = a.fits && a.least < (double)s->below_ns ? keep(&a) : 0;
    }
    moirai_sim_free(a.sim);
    free(a.device);
    free(a.best);
    return rc;
}
