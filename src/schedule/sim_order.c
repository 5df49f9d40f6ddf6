/* The tasks of a simulation in order of their starts, by a radix sort: no comparison, no allocation. */
#include "schedule/sim.h"

#include <string.h>

void schedule_sim_radix_sort(uint64_t *key, int32_t *item, uint64_t *key_spare, int32_t *item_spare, int32_t n)
{
    uint64_t any = 0;
    for (int32_t i = 0; i < n; i++)
        any |= key[i];
    uint64_t *from_key = key, *to_key = key_spare;
    int32_t *from_item = item, *to_item = item_spare;
    for (int shift = 0; shift < 64 && any >> shift != 0; shift += 8) {
        int32_t at[257] = {0};
        for (int32_t i = 0; i < n; i++)
            at[(from_key[i] >> shift & 255) + 1]++;
        for (int b = 0; b < 256; b++)
            at[b + 1] += at[b];
        for (int32_t i = 0; i < n; i++) {
            int32_t j = at[from_key[i] >> shift & 255]++;
            to_key[j] = from_key[i];
            to_item[j] = from_item[i];
        }
        uint64_t *k = from_key;
        int32_t *m = from_item;
        from_key = to_key, to_key = k;
        from_item = to_item, to_item = m;
    }
    if (from_key != key) {
        memcpy(key, from_key, (size_t)n * sizeof *key);
        memcpy(item, from_item, (size_t)n * sizeof *item);
    }
}

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
    schedule_sim_radix_sort(sim->key, sim->item, sim->key_spare, sim->item_spare, n);
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
