/* The tasks of a simulation in order of their starts, by a radix sort: no comparison, no allocation. */
#include "schedule/sim.h"
#include "util/sort.h"

/* The log respects precedence; a stable sort by (start, takes time) keeps that among tasks of one start: an empty
 * task never waits for one that takes time and starts at the same moment. */
void schedule_sim_sort_log(moirai_sim *sim)
{
    if (sim->log_sorted)
        return;
    int32_t n = (int32_t)sim->n_log, V = sim->p->n_ops;
    for (int32_t j = 0; j < n; j++) {
        moirai_task task = sim->log[j];
        int64_t ns, start;
        if (task < V) {
            start = sim->start_ns[task];
            ns = sim->finish_ns[task] - start;
        } else {
            ns = schedule_sim_transfer_ns(sim, (int32_t)(task - V));
            start = sim->arrival_ns[task - V] - ns;
        }
        sim->key[j] = (uint64_t)start << 1 | (ns > 0);
        sim->item[j] = j;
    }
    util_sort(sim->key, sim->item, sim->key_spare, sim->item_spare, n);
    for (int32_t j = 0; j < n; j++)
        sim->log_spare[j] = sim->log[sim->item[j]];
    moirai_task *old = sim->log;
    sim->log = sim->log_spare;
    sim->log_spare = old;
    sim->log_sorted = true;
}

int64_t moirai_sim_order(moirai_sim *sim, const moirai_task **order)
{
    schedule_sim_sort_log(sim);
    *order = sim->log;
    return sim->n_log;
}
