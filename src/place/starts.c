/* The plans that every search begins with: the user's own start, and what the quick heuristics of the registry find.
 *
 * One list for all placers that search, so that none of their plans is worse than a heuristic's. A start that breaks
 * the memory limits, or was made for other times, still says where things should go: it is replayed, and mended as a
 * heuristic's plan would be. */
#include "place/starts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/fit.h"
#include "place/placers.h"
#include "util/util.h"

/* Those by linear programmes are for problems of this many operators and edges times devices: beyond, the programme alone
 * would take more time and memory than all the rest. */
#define PROGRAMME_SIZE 80000

static const struct heuristic {
    const moirai_placer *placer;
    char letter;
    bool by_programme;
    bool explains; /* what it says of a problem that does not fit is true of others, too */
} heuristic[] = {
    {&place_single, '1', false, true}, {&place_heft, 'H', false, true},   {&place_m_etf, 'E', false, true},
    {&place_m_topo, 'T', false, true}, {&place_random, 'R', false, true}, {&place_sequential, 'Q', false, false},
    {&place_chain, 'C', false, false}, {&place_m_sct, 'P', true, false},  {&place_getf, 'G', true, false},
};

static const struct heuristic topo = {&place_m_topo, 'T', false, true};

/* Where one device holds all there is at once, its plan is the quickest to have. Else, with memory mode peak, many orders are tried there one
 * after the other: with a million operators nobody is to wait for that who has no plan yet. */
static bool is_doubtful_alone(const moirai_problem *p)
{
    int64_t all = 0, largest = 0;
    if (p->memory != MOIRAI_MEMORY_PEAK || p->n_ops < PLACE_FIT_LARGE)
        return false;
    for (int32_t i = 0; i < p->n_ops; i++)
        all += p->op_memory_bytes[i];
    for (int32_t w = 0; w < p->n_weights; w++)
        all += p->weight_bytes[w];
    for (int32_t t = 0; t < p->n_tensors; t++)
        all += p->tensor_bytes[t];
    for (int32_t k = 0; k < p->n_devices; k++)
        largest = UTIL_MAX(largest, p->device_memory_bytes[k]);
    return all > largest;
}

/* Devices of the start, moved as little as memory asks for. */
static int mend(moirai_plan **out, const moirai_problem *p, const moirai_plan *start, const util_stop *stop)
{
    moirai_sim *sim = NULL;
    place_units *units = NULL;
    int32_t *device = util_alloc((size_t)p->n_ops, sizeof *device);
    int rc = device ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    rc = rc ? rc : place_units_new(&units, p);
    if (!rc) {
        memcpy(device, start->op_device, sizeof *device * (size_t)p->n_ops);
        rc = place_fit_plan(out, sim, p, units, device, NULL, NULL, 0, stop);
    }
    place_units_free(units);
    moirai_sim_free(sim);
    free(device);
    return rc;
}

static int use_start(moirai_plan **out, const moirai_problem *p, const moirai_plan *start, const util_stop *stop)
{
    int rc = moirai_plan_tighten(out, p, start);
    if (rc || !moirai_plan_check(p, *out, NULL, NULL))
        return rc;
    moirai_plan_free(*out);
    *out = NULL;
    return mend(out, p, start, stop);
}

static int use_heuristic(moirai_plan **out, const place_starts_task *task, const struct heuristic *h, bool offered)
{
    const char *why;
    int64_t size = ((int64_t)task->p->n_ops + task->p->n_edges) * task->p->n_devices;
    bool many = task->p->n_devices > MOIRAI_MASK_DEVICES;
    if ((h->by_programme && size > PROGRAMME_SIZE) || (many && h->placer->few_devices) ||
        (!h->explains && util_off(task->stop, UTIL_METHOD_STARTS)) ||
        (h->placer->available && !h->placer->available(&why)))
        return MOIRAI_ELIMIT;
    if (h->placer ==
        &place_m_topo) /* unlike the others it ends its plan whatever the time, but where there is one already */
        return place_m_topo_within(out, task->p, task->stop, offered);
    moirai_place_options o = {.budget = util_stop_rest(task->stop, &task->o->budget), .gap = task->o->gap};
    return h->placer->place(out, task->p, &o);
}

/* One heuristic, or the user's start (NULL); what it found is offered. */
static int try_start(place_starts_task *task, bool *offered, const struct heuristic *h)
{
    moirai_plan *plan = NULL;
    int found = MOIRAI_EINFEASIBLE;
    if (h)
        found = use_heuristic(&plan, task, h, *offered);
    else if (task->o->start)
        found = use_start(&plan, task->p, task->o->start, task->stop);
    if (!found) {
        *offered = true;
        return task->offer(task->data, plan, h ? h->letter : 'S');
    }
    if (h && found == MOIRAI_EINFEASIBLE && h->explains)
        snprintf(task->why, sizeof task->why, "%s", moirai_error_message());
    return found == MOIRAI_EFAIL ? found : 0;
}

/* m-topo before its turn; half of the time where a single device has not had its own. */
static int try_topo(place_starts_task *task, bool *offered, bool half)
{
    const util_stop *whole = task->stop;
    util_stop part = half ? util_stop_part(whole, 0.5) : *whole;
    task->stop = &part;
    int rc = try_start(task, offered, &topo);
    task->stop = whole;
    return rc;
}

static bool is_enough(const place_starts_task *task, bool offered)
{
    return offered && (task->first || util_stopped(task->stop));
}

int place_starts(place_starts_task *task)
{
    bool offered = task->has_plan, early = false; /* m-topo had its turn */
    task->why[0] = '\0';
    int rc = try_start(task, &offered, NULL);
    for (size_t i = 0; i < sizeof heuristic / sizeof *heuristic && !rc && !is_enough(task, offered); i++) {
        const struct heuristic *h = &heuristic[i];
        /* Where no device holds all, it has a plan of a million operators long before those that look at every device. */
        bool soon = h->placer == &place_heft || (h->placer == &place_single && is_doubtful_alone(task->p));
        if (soon && !offered && !early && task->p->n_ops >= PLACE_FIT_LARGE) {
            early = true;
            rc = try_topo(task, &offered, h->placer == &place_single);
        }
        bool over = is_enough(task, offered) || (early && h->placer == &place_m_topo);
        if (!rc && !over)
            rc = try_start(task, &offered, h);
    }
    return rc;
}
