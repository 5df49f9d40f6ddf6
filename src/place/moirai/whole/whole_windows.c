/* Annealing by windows: a large neighbourhood of the best state, again and again.
 *
 * A deep network is many stages one after the other, and its makespan is about the sum of theirs. A round of annealing
 * over the whole leaves every stage in some valley: one draw for each stage. The best of k rounds is the best of k sums
 * of draws; annealing each stage k times and keeping its best is the sum of the best of k draws, which is far better. So:
 * take a window of the order, heat it while all else stays as it is, cool it, and keep what makes the whole no longer. The
 * evaluation (whole_sim.c) stops a little behind the last change, so that a window costs little more than its own
 * operators.
 *
 * Windows of a step are disjoint: as many as there are chains, evenly spread, annealed side by side from the same state.
 * None of their operators leaves its window's positions, so that the windows' results can be put together: one after the
 * other, each kept if the whole gets no longer. Where that finds nothing any more, windows grow and cool more slowly, as far
 * as the caller has patience. What is as good is kept as well: it leads to other states. The result
 * depends on seed and evaluations, not on the threads. */
#include "place/moirai/whole/whole_anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_moves.h"
#include "util/pool.h"

typedef struct window {
    place_mover m;
    int64_t best_ns;
    int32_t *device, *order; /* of the positions of the window, at its best */
    double heat;
    int64_t evaluations;
} window;

typedef struct windows {
    const moirai_problem *p;
    const place_whole_task *job;
    int32_t *device, *order; /* the state at hand */
    int64_t makespan_ns;
    window window[PLACE_WHOLE_CHAINS];
    util_rng rng;
    util_memory memory; /* of all but the order */
} windows;

static void keep(window *v)
{
    const place_whole *w = v->m.w;
    v->best_ns = w->makespan_ns;
    for (int32_t q = v->m.low; q < v->m.high; q++) {
        v->order[q - v->m.low] = w->order[q];
        v->device[q - v->m.low] = w->device[w->order[q]];
    }
}

/* What is as good is kept now and then: it leads to other states. */
static void keep_better(void *data, int64_t step)
{
    window *v = data;
    int64_t next = v->m.w->makespan_ns;
    if (next < v->best_ns || (next == v->best_ns && step % 64 == 0))
        keep(v);
}

static int cool(void *data, int32_t i)
{
    windows *x = data;
    window *v = &x->window[i];
    place_whole_set(v->m.w, x->device, x->order);
    keep(v);
    double hot = PLACE_WHOLE_HOT * v->heat * (double)v->best_ns, cold = PLACE_WHOLE_COLD * (double)v->best_ns;
    place_mover_cool(&v->m, &(place_cooling){.hot_ns = hot,
                                             .cold_ns = UTIL_MIN(hot, cold), /* never warmer */
                                             .evaluations = v->evaluations,
                                             .stop = &x->job->stop,
                                             .accepted = keep_better,
                                             .data = v});
    return 0;
}

/* Even by the logarithm. */
static double draw_between(util_rng *rng, double least, double most)
{
    return least * exp(util_rng_real(rng) * log(fmax(most / least, 1)));
}

/* Disjoint windows of one width, and how hot each gets. */
static int64_t choose(windows *x)
{
    int32_t n = x->p->n_ops, part = UTIL_MAX(n / PLACE_WHOLE_CHAINS, 1), patience = UTIL_MAX(x->job->patience, 1);
    int32_t width =
        (int32_t)draw_between(&x->rng, WHOLE_WINDOWS_LEAST, UTIL_MAX(UTIL_MIN(WHOLE_WINDOWS_MOST * patience, part), 1));
    int64_t evaluations = (int64_t)WHOLE_WINDOWS_EVALUATIONS * patience * width;
    int32_t at = (int32_t)util_rng_below(&x->rng, (uint32_t)n);
    width = UTIL_MIN(width, part);
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++) {
        window *v = &x->window[i];
        v->m.low = (at + i * part) % n;
        v->m.high = UTIL_MIN(v->m.low + width, n);
        v->heat = draw_between(&x->rng, WHOLE_WINDOWS_LEAST_HEAT, WHOLE_WINDOWS_MOST_HEAT);
        v->evaluations = evaluations;
    }
    return evaluations;
}

/* Puts a window's best into the state, and takes it out again if that makes the whole longer. */
static void put(windows *x, window *v)
{
    size_t n = (size_t)x->p->n_ops;
    int32_t *device = v->m.w->trial.cut.order,
            *order = v->m.w->trial.cut.spare; /* working memory of trials, of which there is none */
    memcpy(device, x->device, sizeof *device * n);
    memcpy(order, x->order, sizeof *order * n);
    for (int32_t q = v->m.low; q < v->m.high; q++) {
        x->order[q] = v->order[q - v->m.low];
        x->device[x->order[q]] = v->device[q - v->m.low];
    }
    int64_t length = place_whole_set(v->m.w, x->device, x->order);
    if (length <= x->makespan_ns) {
        x->makespan_ns = length;
        return;
    }
    memcpy(x->device, device, sizeof *device * n);
    memcpy(x->order, order, sizeof *order * n);
}

static int search(windows *x)
{
    int rc = 0;
    for (int64_t left = x->job->evaluations; left > 0 && !rc && !util_stopped(&x->job->stop);) {
        left -= choose(x);
        rc = util_pool_run(cool, x, PLACE_WHOLE_CHAINS, x->job->threads);
        for (int32_t i = 0; i < PLACE_WHOLE_CHAINS && !rc; i++)
            put(x, &x->window[i]);
    }
    return rc;
}

static int prepare(windows *x, const moirai_plan *plan)
{
    size_t n = (size_t)x->p->n_ops;
    int rc = place_whole_order(&x->order, x->p, plan);
    UTIL_TAKE(&x->memory, x->device, n);
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS && !rc; i++) {
        window *v = &x->window[i];
        UTIL_TAKE(&x->memory, v->device, n);
        UTIL_TAKE(&x->memory, v->order, n);
        rc = x->memory.failed ? MOIRAI_EFAIL : place_mover_open(&v->m, x->p, &x->job->stop);
        util_rng_seed(&v->m.rng, x->job->seed * PLACE_WHOLE_CHAINS + (uint64_t)i);
    }
    if (rc)
        return rc;
    util_rng_seed(&x->rng, x->job->seed);
    memcpy(x->device, plan->op_device, sizeof *x->device * n);
    x->makespan_ns = place_whole_set(x->window[0].m.w, x->device, x->order);
    return 0;
}

int place_whole_windows(moirai_plan **plan, const moirai_problem *p, const place_whole_task *job)
{
    if (p->n_ops == 0 || (*plan)->makespan_ns == 0 || job->evaluations <= 0)
        return 0;
    windows x = {.p = p, .job = job};
    moirai_sim *sim = NULL;
    int rc = prepare(&x, *plan);
    rc = rc ? rc : moirai_sim_new(&sim, p);
    rc = rc ? rc : search(&x);
    if (!rc) {
        place_whole_set(x.window[0].m.w, x.device, x.order);
        rc = place_whole_take(plan, sim, x.window[0].m.w);
    }
    for (int32_t i = 0; i < PLACE_WHOLE_CHAINS; i++)
        place_mover_clear(&x.window[i].m);
    moirai_sim_free(sim);
    free(x.order);
    util_release(&x.memory);
    return rc;
}
