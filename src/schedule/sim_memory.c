/* What each device needs in the last simulation (4d).
 *
 * static: the operators' own bytes. peak: plus the most bytes of tensors alive at once, a tensor living on a device
 * from the start of its producer there, or of its first arrival, to the finish of its last reader there and of its
 * last departure; what nobody reads is an output of the network and lives to the end. All lives become pairs of
 * events, sorted by (time, ends before beginnings): O((V + E) log) by radix sort, no allocation. */
#include "problem/device_set.h"
#include "schedule/sim.h"
#include "util/sort.h"
#include "util/util.h"

#include <string.h>

#define AHEAD 16 /* so many readers and changes are fetched before their turn: of millions each is anywhere */

typedef struct lives {
    moirai_sim *sim;
    int32_t n;
} lives;

static void add_life(lives *x, int32_t device, int64_t bytes, int64_t first_ns, int64_t last_ns)
{
    moirai_sim *sim = x->sim;
    if (last_ns <= first_ns || bytes == 0)
        return;
    sim->life_bytes[x->n] = bytes;
    sim->life_device[x->n] = device;
    sim->key[2 * x->n] = (uint64_t)first_ns << 1 | 1;
    sim->key[2 * x->n + 1] = (uint64_t)last_ns << 1;
    sim->item[2 * x->n] = sim->item[2 * x->n + 1] = x->n;
    x->n++;
}

static void tensor_lives(lives *x, int32_t t)
{
    moirai_sim *sim = x->sim;
    const moirai_problem *p = sim->p;
    int32_t producer = p->tensor_producer[t], home = sim->device[producer];
    int32_t begin = p->tensor_edge_off[t], end = p->tensor_edge_off[t + 1];
    int64_t first[MOIRAI_MAX_DEVICES], last[MOIRAI_MAX_DEVICES];
    int64_t home_last = begin == end ? sim->makespan_ns : sim->finish_ns[producer];
    device_set there = {{0}};
    for (int32_t e = begin; e < end; e++) {
        int32_t soon = p->edge_reader[UTIL_MIN(e + AHEAD, p->n_edges - 1)];
        __builtin_prefetch(&sim->device[soon]);
        __builtin_prefetch(&sim->finish_ns[soon]);
        int32_t reader = p->edge_reader[e], d = sim->device[reader];
        int64_t used = sim->finish_ns[reader];
        if (d == home) {
            home_last = UTIL_MAX(home_last, used);
            continue;
        }
        int64_t arrival = sim->arrival_ns[schedule_sim_room(sim, e, t, d)];
        int64_t departure = arrival - moirai_transfer_ns(p, t, home, d);
        bool known = device_set_has(&there, d);
        first[d] = known ? UTIL_MIN(first[d], departure) : departure;
        last[d] = known ? UTIL_MAX(last[d], used) : used;
        device_set_add(&there, d);
        home_last = UTIL_MAX(home_last, arrival);
    }
    add_life(x, home, p->tensor_bytes[t], sim->start_ns[producer], home_last);
    DEVICE_SET_EACH(d, &there)
        add_life(x, d, p->tensor_bytes[t], first[d], last[d]);
}

void schedule_sim_need(moirai_sim *sim, int64_t *need_bytes, bool with_tensors)
{
    const moirai_problem *p = sim->p;
    memset(need_bytes, 0, (size_t)p->n_devices * sizeof *need_bytes);
    for (int32_t i = 0; i < p->n_ops; i++)
        need_bytes[sim->device[i]] += p->op_memory_bytes[i];
    moirai_problem_add_weights(p, sim->device, need_bytes);
    if (!with_tensors || sim->n_log == 0)
        return;
    lives x = {sim, 0};
    for (int32_t t = 0; t < p->n_tensors; t++)
        tensor_lives(&x, t);
    int32_t n = 2 * x.n; /* the end of each life is even */
    util_sort(sim->key, sim->item, sim->key_spare, sim->item_spare, n);
    int64_t live[MOIRAI_MAX_DEVICES] = {0}, most[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t j = 0; j < n; j++) {
        int32_t soon = sim->item[UTIL_MIN(j + AHEAD, n - 1)];
        __builtin_prefetch(&sim->life_device[soon]);
        __builtin_prefetch(&sim->life_bytes[soon]);
        int32_t d = sim->life_device[sim->item[j]];
        int64_t bytes = sim->life_bytes[sim->item[j]];
        live[d] += sim->key[j] & 1 ? bytes : -bytes;
        most[d] = UTIL_MAX(most[d], live[d]);
    }
    for (int32_t d = 0; d < p->n_devices; d++)
        need_bytes[d] += most[d];
}

int64_t moirai_sim_memory_excess(moirai_sim *sim, int32_t *device)
{
    const moirai_problem *p = sim->p;
    bool peak = p->memory == MOIRAI_MEMORY_PEAK;
    if (!sim->peak_known)
        schedule_sim_need(sim, sim->need_bytes, peak);
    sim->peak_known = peak && sim->complete;
    int32_t worst = 0;
    for (int32_t d = 1; d < p->n_devices; d++)
        if (sim->need_bytes[d] - p->device_memory_bytes[d] > sim->need_bytes[worst] - p->device_memory_bytes[worst])
            worst = d;
    if (device)
        *device = worst;
    return UTIL_MAX(sim->need_bytes[worst] - p->device_memory_bytes[worst], 0);
}
