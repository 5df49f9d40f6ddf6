/* Replay: devices and a total order of tasks in, times out. The innermost loop of every search.
 *
 * A task starts as soon as its inputs are there and all tasks before it in the order have left its resources: the
 * device of an operator, the ports (or channel, or both devices) of a transfer; equations (4a), (4b), (4e), (4f), (4g). Tasks that
 * take no time hold no resource (model.md: empty spans never overlap), so they neither wait for one nor block it.
 * By induction over the order no task starts later than in any schedule that has this order of starts.
 *
 * Operators pull: each looks at its inputs' producers and arrivals. O(V + E), no allocation. */
#include "schedule/sim.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

#define NOT_YET (-1)
#define AHEAD 16           /* so many operators, and readers, are fetched before their turn ... */
#define FETCHED_FROM 50000 /* ... where there are so many that they are not in a cache */

/* The inputs of an operator whose turn comes soon: of a million that read each other at random each is a miss of the cache. First where they are
 * listed is fetched, then they are. */
static void fetch_inputs(const moirai_sim *sim, const int32_t *op_order, int32_t j)
{
    const moirai_problem *p = sim->p;
    if (p->n_ops < FETCHED_FROM || j + 2 * AHEAD >= p->n_ops)
        return;
    int32_t late = p->op_in_off[op_order[j + 2 * AHEAD]], soon = op_order[j + AHEAD];
    __builtin_prefetch(&p->op_in_off[op_order[UTIL_MIN(j + 3 * AHEAD, p->n_ops - 1)]]);
    __builtin_prefetch(&sim->in_producer[late]);
    __builtin_prefetch(&sim->in_room[late]);
    int32_t begin = p->op_in_off[soon], end = UTIL_MIN(p->op_in_off[soon + 1], begin + AHEAD);
    for (int32_t i = begin; i < end; i++) {
        __builtin_prefetch(&sim->device[sim->in_producer[i]]);
        __builtin_prefetch(&sim->finish_ns[sim->in_producer[i]]);
        __builtin_prefetch(&sim->arrival_ns[sim->in_room[i]]);
        __builtin_prefetch(&sim->tensor_to[(int64_t)p->op_in[i] * moirai_device_words(p)]);
    }
}

static int64_t send(moirai_sim *sim, int32_t tensor, int32_t room, int32_t from, int32_t to)
{
    const moirai_problem *p = sim->p;
    int64_t start = UTIL_MAX(sim->finish_ns[p->tensor_producer[tensor]], sim->gate_ns);
    int64_t ns = moirai_transfer_ns(p, tensor, from, to);
    if (ns > 0 && p->congestion == MOIRAI_CONGESTION_PORT) {
        start = UTIL_MAX(start, UTIL_MAX(sim->send_ns[from], sim->receive_ns[to]));
        sim->send_ns[from] = sim->receive_ns[to] = start + ns;
    } else if (ns > 0 && p->congestion == MOIRAI_CONGESTION_CHANNEL) {
        int64_t *channel = &sim->channel_ns[from * p->n_devices + to];
        start = UTIL_MAX(start, *channel);
        *channel = start + ns;
    } else if (ns > 0 && p->congestion == MOIRAI_CONGESTION_DEVICE) {
        start = UTIL_MAX(start, UTIL_MAX(sim->free_ns[from], sim->free_ns[to]));
        sim->free_ns[from] = sim->free_ns[to] = start + ns;
    }
    sim->log[sim->n_log++] = schedule_sim_task(sim, room, tensor, to);
    return sim->arrival_ns[room] = start + ns;
}

static bool replay_op(moirai_sim *sim, int32_t op)
{
    const moirai_problem *p = sim->p;
    int32_t d = sim->device[op];
    int64_t start = sim->gate_ns;
    if (sim->finish_ns[op] != NOT_YET)
        return false;
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++) {
        int32_t producer = sim->in_producer[j], from = sim->device[producer];
        int64_t here = sim->finish_ns[producer];
        if (here == NOT_YET)
            return false;
        if (from != d) {
            int32_t room = sim->in_room[j] + (sim->per_edge ? 0 : schedule_sim_sent_before(sim, p->op_in[j], d));
            here = sim->arrival_ns[room];
            if (here == NOT_YET)
                here = send(sim, p->op_in[j], room, from, d);
        }
        start = UTIL_MAX(start, here);
    }
    int64_t ns = moirai_op_ns(p, op, d);
    if (ns > 0) {
        start = UTIL_MAX(start, sim->free_ns[d]);
        sim->free_ns[d] = start + ns;
    }
    sim->start_ns[op] = start;
    sim->finish_ns[op] = start + ns;
    sim->makespan_ns = UTIL_MAX(sim->makespan_ns, start + ns);
    sim->log[sim->n_log++] = op;
    return true;
}

static bool is_sent_to(const moirai_sim *sim, int32_t tensor, int32_t to)
{
    return sim->tensor_to[(int64_t)tensor * moirai_device_words(sim->p) + to / 64] >> to % 64 & 1;
}

static bool replay_transfer(moirai_sim *sim, moirai_task task)
{
    schedule_sent_task x = schedule_sim_sent(sim, task);
    int32_t producer = sim->p->tensor_producer[x.tensor], from = sim->device[producer];
    if (from == x.to)
        return true;
    if (sim->finish_ns[producer] == NOT_YET)
        return false;
    if ((!sim->per_edge && !is_sent_to(sim, x.tensor, x.to)) || sim->arrival_ns[x.room] != NOT_YET)
        return true;
    send(sim, x.tensor, x.room, from, x.to);
    return true;
}

static void begin(moirai_sim *sim)
{
    const moirai_problem *p = sim->p;
    size_t K = (size_t)p->n_devices;
    for (int32_t i = 0; i < p->n_ops; i++)
        sim->finish_ns[i] = NOT_YET;
    memset(sim->free_ns, 0, K * sizeof *sim->free_ns);
    memset(sim->send_ns, 0, K * sizeof *sim->send_ns);
    memset(sim->receive_ns, 0, K * sizeof *sim->receive_ns);
    memset(sim->channel_ns, 0, K * K * sizeof *sim->channel_ns);
    sim->log_sorted = false;
    sim->gate_ns = 0;
    for (int32_t e = 0; e < p->n_edges; e++)
        sim->arrival_ns[e] = NOT_YET;
    schedule_sim_find_sent(sim);
}

static bool replay_task(moirai_sim *sim, moirai_task task)
{
    int32_t V = sim->p->n_ops;
    if (task < 0 || task >= (int64_t)V + sim->n_slots)
        return false;
    return task < V ? replay_op(sim, (int32_t)task) : replay_transfer(sim, task);
}

int64_t moirai_sim_replay(moirai_sim *sim, const int32_t *op_device, const moirai_task *order, int64_t n_order)
{
    if (order == sim->log) { /* the caller replays what moirai_sim_order gave: keep it whole while we write */
        sim->log = sim->log_spare;
        sim->log_spare = (moirai_task *)order;
    }
    if (!schedule_sim_take_devices(sim, op_device))
        return -1;
    begin(sim);
    int64_t n_done = 0;
    for (int64_t j = 0; j < n_order; j++) {
        if (schedule_sim_ends(sim, j) || !replay_task(sim, order[j]))
            return -1;
        n_done += order[j] < sim->p->n_ops;
    }
    sim->complete = n_done == sim->p->n_ops;
    return sim->complete ? sim->makespan_ns : -1;
}

int64_t schedule_sim_replay_arcs(moirai_sim *sim, const int32_t *op_device, const moirai_task *order, int64_t n_order,
                                 const int64_t *arc_off, const int64_t *arc_to)
{
    int64_t V = sim->p->n_ops, n_done = 0;
    int64_t *gate = util_alloc((size_t)(V + sim->n_slots), sizeof *gate); /* when all that a task waits for is done */
    if (!gate)
        return -2;
    bool fine = schedule_sim_take_devices(sim, op_device);
    if (fine) /* else devices of some operators are nobody's */
        begin(sim);
    for (int64_t j = 0; fine && j < n_order; j++) {
        moirai_task task = order[j];
        sim->gate_ns = gate[task];
        fine = replay_task(sim, task);
        int64_t finish = !fine      ? 0
                         : task < V ? sim->finish_ns[task]
                                    : sim->arrival_ns[schedule_sim_sent(sim, task).room];
        for (int64_t i = arc_off[task]; i < arc_off[task + 1]; i++)
            gate[arc_to[i]] = UTIL_MAX(gate[arc_to[i]], finish);
        n_done += task < V;
    }
    free(gate);
    sim->complete = fine && n_done == V;
    return sim->complete ? sim->makespan_ns : -1;
}

/* Replay of operators alone, each with the transfers that it needs, no operator (nor a transfer for it) starting before
 * all but the `window` - 1 operators right before it have finished. A window of 1 is one operator at a time over all
 * devices: the least memory that this order can do with. */
int64_t schedule_sim_replay_window(moirai_sim *sim, const int32_t *op_device, const int32_t *op_order, int32_t window)
{
    const moirai_problem *p = sim->p;
    if (!schedule_sim_take_devices(sim, op_device))
        return -1;
    begin(sim);
    int64_t *finished = sim->priority; /* latest finish up to each place in the order */
    for (int32_t j = 0; j < p->n_ops; j++) {
        sim->gate_ns = j >= window ? finished[j - window] : 0;
        fetch_inputs(sim, op_order, j);
        if (schedule_sim_ends(sim, j) || !replay_op(sim, op_order[j]))
            return -1;
        finished[j] = sim->makespan_ns;
    }
    sim->complete = true;
    return sim->makespan_ns;
}
