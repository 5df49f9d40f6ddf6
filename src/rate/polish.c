/* Plans of one copy, judged by the stream itself.
 *
 * Annealing knows loads alone, and with few requests in flight a plan whose loads are least may wait more than another. So the best plan of one copy is changed
 * by random moves, and what the simulator finds faster takes its place. A move is simulated only where its largest load is below the period of now: counting
 * loads takes a thousandth of that. BATCH moves from one plan are simulated side by side, and the best of them goes on, so that the result is the same
 * with any number of threads. */
#include <stdlib.h>
#include <string.h>

#include "place/fit.h"
#include "rate/search.h"
#include "util/pool.h"
#include "util/util.h"

#define BATCH 8
#define BATCHES 6.0      /* times the effort and the part */
#define MOST_DOUBLINGS 6 /* of the steps of a move */
#define TRIES 400        /* of moves, until one is worth a simulation */
#define SHORT_STREAM 4   /* a share of the usual tasks */

typedef struct moves {
    const moirai_problem *p; /* of one operator at least */
    const place_units *units;
    util_rng rng;
} moves;

typedef struct polish {
    rate_search *s;
    moves moves;
    const rate_candidate *now; /* the plan that is changed, one of `own` or of the search */
    rate_candidate *own[BATCH], *kept;
    rate_judge_task task;
} polish;

/* ---- moves ---- */

/* A random operator next to this one, or MOIRAI_NONE. */
static int32_t neighbour(moves *m, int32_t op)
{
    const moirai_problem *p = m->p;
    int32_t n_in = p->op_in_off[op + 1] - p->op_in_off[op], n_out = p->op_out_off[op + 1] - p->op_out_off[op];
    if (n_in + n_out == 0)
        return MOIRAI_NONE;
    int32_t which = (int32_t)util_rng_below(&m->rng, (uint32_t)(n_in + n_out));
    if (which < n_in)
        return p->tensor_producer[p->op_in[p->op_in_off[op] + which]];
    int32_t t = p->op_out[p->op_out_off[op] + which - n_in], n = p->tensor_edge_off[t + 1] - p->tensor_edge_off[t];
    return n == 0 ? MOIRAI_NONE : p->edge_reader[p->tensor_edge_off[t] + (int32_t)util_rng_below(&m->rng, (uint32_t)n)];
}

static void put(const moves *m, int32_t *device, int32_t unit, int32_t k)
{
    const place_units *u = m->units;
    for (int32_t i = u->off[unit]; i < u->off[unit + 1] && place_unit_may(u, unit, k); i++)
        device[u->op[i]] = k;
}

/* An operator and some of those around it that share its device, 2 to 32 steps along edges, go to a device of a neighbour, or to any;
 * groups stay together, and nothing goes where it may not run. Perhaps nothing moves. */
static void make_move(moves *m, int32_t *device)
{
    int32_t op = (int32_t)util_rng_below(&m->rng, (uint32_t)m->p->n_ops), own = device[op];
    int32_t next = util_rng_below(&m->rng, 2) ? neighbour(m, op) : MOIRAI_NONE;
    int32_t k = next == MOIRAI_NONE || device[next] == own ? (int32_t)util_rng_below(&m->rng, (uint32_t)m->p->n_devices)
                                                           : device[next];
    uint32_t steps = UINT32_C(1) << util_rng_below(&m->rng, MOST_DOUBLINGS);
    for (uint32_t i = 0; i < steps && op != MOIRAI_NONE; i++) {
        if (device[op] == own)
            put(m, device, m->units->of_op[op], k);
        op = neighbour(m, op);
    }
}

/* ---- batches ---- */

static int judge_one(void *data, int32_t i)
{
    polish *x = data;
    int rc = rate_judge(x->own[i], &x->task);
    return rc == MOIRAI_ELIMIT ? 0 : rc;
}

/* A move whose loads allow a shorter period; *out NULL where none was found. */
static int propose(rate_candidate **out, polish *x, int64_t *load)
{
    const rate_search *s = x->s;
    size_t bytes = sizeof **x->now->device * (size_t)s->p->n_ops;
    int64_t all = 1, need[MOIRAI_MASK_DEVICES];
    int rc = rate_candidate_of(out, s->p, "polished", x->now->device[0]);
    for (int32_t tries = 0; tries < TRIES && !rc; tries++) {
        bool fits = true;
        memcpy((*out)->device[0], x->now->device[0], bytes);
        make_move(&x->moves, (*out)->device[0]);
        if (!memcmp((*out)->device[0], x->now->device[0], bytes))
            continue;
        int64_t most = rate_loads(load, &s->v, *out, &all, 1);
        rc = most < 0 ? MOIRAI_EFAIL : rate_static_bytes(need, s->p, *out);
        for (int32_t k = 0; k < s->p->n_devices && !rc; k++)
            fits &= need[k] <= s->p->device_memory_bytes[k];
        if (!rc && fits && most < x->now->outcome.period_ns)
            return 0;
    }
    rate_candidate_free(*out);
    *out = NULL;
    return rc;
}

/* One batch: the best of its moves is the plan from then on. */
static int step(polish *x, int64_t *load)
{
    int32_t n = 0, best = MOIRAI_NONE;
    int rc = 0;
    for (int32_t i = 0; i < BATCH && !rc; i++) {
        rc = propose(&x->own[n], x, load);
        n += !rc && x->own[n];
    }
    rc = rc ? rc : util_pool_run(judge_one, x, n, x->s->o->budget.threads);
    for (int32_t i = 0; i < n && !rc; i++)
        if (rate_better(x->own[i], best == MOIRAI_NONE ? x->now : x->own[best]))
            best = i;
    for (int32_t i = 0; i < n; i++)
        if (i != best)
            rate_candidate_free(x->own[i]);
    if (best != MOIRAI_NONE) {
        rate_candidate_free(x->kept);
        x->now = x->kept = x->own[best];
    }
    return rc;
}

int rate_add_polished(rate_search *s, double part)
{
    const rate_candidate *best = NULL;
    for (int32_t i = 0; i < s->n_candidates; i++)
        if (s->candidate[i]->n_copies == 1 && !s->candidate[i]->alone && rate_better(s->candidate[i], best))
            best = s->candidate[i];
    if (!best || s->p->n_devices < 2 || s->p->n_ops == 0 || rate_stream_is_long(s->p, s->in_flight))
        return 0;
    if ((double)(best->outcome.period_ns - best->load_ns) <= RATE_NO_WAITING * (double)best->load_ns)
        return 0;
    polish x = {.s = s, .now = best, .moves = {.p = s->p, .units = s->units}};
    x.task = (rate_judge_task){.v = &s->v,
                               .in_flight = s->in_flight,
                               .latency_limit_ns = s->o->latency_limit_ns > 0 ? s->o->latency_limit_ns : INT64_MAX,
                               .most_tasks = RATE_STREAM_TASKS / SHORT_STREAM,
                               .stop = s->stop};
    int64_t *load = util_alloc((size_t)s->v.n_resources, sizeof *load);
    int rc = load ? 0 : MOIRAI_EFAIL;
    util_rng_seed(&x.moves.rng, s->seed++);
    for (int32_t i = 0; i < 1 + (int32_t)(BATCHES * part * UTIL_MIN(s->o->budget.effort, 1e4)) && !rc; i++) {
        if (util_stopped(&s->stop) || x.now->outcome.period_ns <= s->bound_ns)
            break;
        rc = step(&x, load);
    }
    if (!rc && x.kept)
        rc = rate_search_add_devices(s, "polished", x.kept->device[0]);
    rate_candidate_free(x.kept);
    free(load);
    return rc;
}
