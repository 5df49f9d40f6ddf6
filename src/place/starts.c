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
    {&place_single, '1', false, true}, {&place_heft, 'H', false, true},        {&place_m_etf, 'E', false, true},
    {&place_random, 'R', false, true}, {&place_sequential, 'Q', false, false}, {&place_chain, 'C', false, false},
    {&place_m_sct, 'P', true, false},  {&place_getf, 'G', true, false},
};

static const struct heuristic topo = {&place_m_topo, 'T', false, true};

static int use_start(moirai_plan **out, const moirai_problem *p, const moirai_plan *start, const util_stop *stop)
{
    int rc = moirai_plan_tighten(out, p, start);
    if (rc || !moirai_plan_check(p, *out, NULL, NULL))
        return rc;
    moirai_plan_free(*out);
    *out = NULL;
    return place_fit_devices(out, p, start->op_device, stop); /* moved as little as memory asks for */
}

static int use_heuristic(moirai_plan **out, const place_starts_task *task, const struct heuristic *h, bool offered,
                         const util_stop *stop)
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
        return place_m_topo_within(out, task->p, stop, offered);
    moirai_place_options o = {.budget = util_stop_rest(stop, &task->o->budget), .gap = task->o->gap};
    return h->placer->place(out, task->p, &o);
}

/* One heuristic, or the user's start (NULL); what it found is offered. */
static int try_start(place_starts_task *task, bool *offered, const struct heuristic *h, const util_stop *stop)
{
    moirai_plan *plan = NULL;
    int found = MOIRAI_EINFEASIBLE;
    if (h)
        found = use_heuristic(&plan, task, h, *offered, stop);
    else if (task->o->start)
        found = use_start(&plan, task->p, task->o->start, stop);
    if (!found) {
        *offered = true;
        return task->offer(task->data, plan, h ? h->letter : 'S');
    }
    if (h && found == MOIRAI_EINFEASIBLE && h->explains)
        snprintf(task->why, sizeof task->why, "%s", moirai_error_message());
    return found == MOIRAI_EFAIL ? found : 0;
}

static bool is_enough(const place_starts_task *task, bool offered)
{
    return offered && (task->first || util_stopped(task->stop));
}

/* Of a million operators m-topo has a plan long before those that look at every device. */
static int32_t turn_of_topo(const place_starts_task *task)
{
    return task->p->n_ops >= PLACE_FIT_LARGE && !task->has_plan ? 0 : 3;
}

int place_starts(place_starts_task *task)
{
    bool offered = task->has_plan;
    int32_t n = sizeof heuristic / sizeof *heuristic, topo_turn = turn_of_topo(task);
    task->why[0] = '\0';
    int rc = try_start(task, &offered, NULL, task->stop);
    for (int32_t i = 0; i <= n && !rc && !is_enough(task, offered); i++) {
        const struct heuristic *h = i == topo_turn ? &topo : &heuristic[i - (i > topo_turn)];
        util_stop half = util_stop_part(task->stop, 0.5); /* the other is for a single device */
        rc = try_start(task, &offered, h, i == topo_turn && i == 0 ? &half : task->stop);
    }
    return rc;
}
