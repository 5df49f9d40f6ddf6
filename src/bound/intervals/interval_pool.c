/* The pool of all devices (pair/pool.c) within the windows that intervals leave (interval_windows.c), as a bound. */
#include "bound/bounds.h"
#include "bound/intervals/interval_chain.h"
#include "util/util.h"

#define ROUNDS 3
#define CUTS 120
#define NODES 4000
#define BEYOND 1.15 /* of what is known: so far lengths are tried */

int bound_windows_pool(int64_t *lower_ns, const bound_windows *w, const moirai_problem *p, const pair_pool_task *job,
                       pair_pool_proof *proof)
{
    pair_pool_task task = *job;
    task.head = w->head;
    task.tail = w->tail;
    task.arc = w->arc;
    task.n_arcs = w->n_arcs;
    task.proven_ns = UTIL_MAX(job->proven_ns, w->lower_ns);
    task.written = proof != NULL;
    return pair_pool(lower_ns, p, &task, proof);
}

static int find_pool(int64_t *lower_ns, const moirai_problem *p, const moirai_budget *budget)
{
    bound_interval_task intervals = bound_interval_task_of(budget);
    pair_pool_task job = {
        .rounds = ROUNDS, .cuts = CUTS, .nodes = NODES, .threads = budget->threads, .stop = intervals.stop};
    bound_windows w;
    *lower_ns = MOIRAI_UNKNOWN;
    if (p->n_devices > MOIRAI_MASK_DEVICES)
        return 0;
    int rc = bound_intervals(lower_ns, &w, p, &intervals);
    if (rc || !w.head)
        return rc;
    job.proven_ns = *lower_ns;
    job.upper_ns = (int64_t)((double)*lower_ns * BEYOND) + 2;
    rc = bound_windows_pool(lower_ns, &w, p, &job, NULL);
    bound_windows_clear(&w);
    return rc;
}

const moirai_bound bound_interval_pool = {
    .name = "windows", .summary = "the pool of all devices within windows from intervals", .find = find_pool};
