/* What a placement asks of each device and of each port, kept from one dispatch to the next.
 *
 * A search that dispatches again and again moves few operators at a time. With the number of readers that each tensor has
 * on each device, an operator's move changes the sums in O(K) per tensor that it reads or makes, and only what has moved
 * is checked. Sums of whole numbers: they are the same on whatever way they were reached. */
#include <string.h>

#include "schedule/paths.h"
#include "schedule/sim.h"
#include "util/util.h"

/* n transfers more (fewer) of a tensor between two devices; MOIRAI_NONE: its producer has not been placed yet. */
static void add_transfers(moirai_sim *sim, int32_t tensor, int32_t from, int32_t to, int32_t n)
{
    if (n == 0 || from == MOIRAI_NONE || from == to)
        return;
    int64_t ns = n * moirai_transfer_ns(sim->p, tensor, from, to);
    sim->n_transfers[from * sim->p->n_devices + to] += n;
    sim->send_load_ns[from] += ns;
    sim->receive_load_ns[to] += ns;
}

static void move_reader(moirai_sim *sim, int32_t tensor, int32_t from, int32_t to)
{
    int32_t *readers = sim->n_readers + (int64_t)tensor * sim->p->n_devices;
    int32_t sender = sim->loaded[sim->p->tensor_producer[tensor]];
    if (from != MOIRAI_NONE && (--readers[from] == 0 || sim->per_edge))
        add_transfers(sim, tensor, sender, from, -1);
    if (readers[to]++ == 0 || sim->per_edge)
        add_transfers(sim, tensor, sender, to, 1);
}

static void move_producer(moirai_sim *sim, int32_t tensor, int32_t from, int32_t to)
{
    const int32_t *readers = sim->n_readers + (int64_t)tensor * sim->p->n_devices;
    for (int32_t d = 0; d < sim->p->n_devices; d++) {
        int32_t n = sim->per_edge ? readers[d] : readers[d] > 0;
        add_transfers(sim, tensor, from, d, -n);
        add_transfers(sim, tensor, to, d, n);
    }
}

static void move(moirai_sim *sim, int32_t op, int32_t to)
{
    const moirai_problem *p = sim->p;
    int32_t from = sim->loaded[op];
    if (from != MOIRAI_NONE)
        sim->load_ns[from] -= sim->op_ns[op];
    sim->op_ns[op] = moirai_op_ns(p, op, to);
    sim->load_ns[to] += sim->op_ns[op];
    for (int32_t j = p->op_in_off[op]; j < p->op_in_off[op + 1]; j++)
        move_reader(sim, p->op_in[j], from, to);
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++)
        move_producer(sim, p->op_out[j], from, to);
    sim->loaded[op] = to;
}

bool schedule_sim_load(moirai_sim *sim, const int32_t *op_device)
{
    const moirai_problem *p = sim->p;
    schedule_sim_reset(sim);
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t d = op_device[i];
        if (d == sim->loaded[i] && d != MOIRAI_NONE)
            continue;
        if (d < 0 || d >= p->n_devices || !moirai_op_may(p, i, d) || schedule_sim_ends(sim, i))
            return false;
        move(sim, i, d);
    }
    for (int32_t i = 0; i < p->n_ops && p->n_groups > 0; i++)
        if (op_device[sim->group_leader[i]] != op_device[i])
            return false;
    memcpy(sim->device, op_device, (size_t)p->n_ops * sizeof *op_device);
    return true;
}

/* ---- what comes after the last of it ---- */

static void lower(int64_t *least, int64_t ns)
{
    *least = UTIL_MIN(*least, ns);
}

/* A transfer ends before one of its readers begins, wherever both sides may be: behind what a device sends comes the least
 * of what follows on another one, the second least of all where the least is its own. */
static void after_transfers(int64_t *rest_ns, const moirai_problem *p, const int64_t *tail_ns, int32_t edge)
{
    int32_t K = p->n_devices, reader = p->edge_reader[edge], producer = p->tensor_producer[p->edge_tensor[edge]];
    int32_t senders = 0, best = MOIRAI_NONE;
    int64_t least = SCHEDULE_NEVER_NS, second = SCHEDULE_NEVER_NS;
    for (int32_t k = 0; k < K; k++)
        senders += moirai_op_may(p, producer, k);
    for (int32_t to = 0; to < K; to++) {
        if (!moirai_op_may(p, reader, to))
            continue;
        int64_t after = moirai_op_ns(p, reader, to) + tail_ns[(int64_t)reader * K + to];
        if (senders > moirai_op_may(p, producer, to))
            lower(&rest_ns[2 * K + to], after);
        if (best == MOIRAI_NONE || after < least) {
            second = least;
            least = after;
            best = to;
        } else {
            lower(&second, after);
        }
    }
    for (int32_t from = 0; from < K; from++)
        if (moirai_op_may(p, producer, from))
            lower(&rest_ns[K + from], from == best ? second : least);
}

void schedule_rests(int64_t *rest_ns, const moirai_problem *p, const int64_t *tail_ns)
{
    int32_t K = p->n_devices;
    for (int32_t k = 0; k < 3 * K; k++)
        rest_ns[k] = SCHEDULE_NEVER_NS;
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t k = 0; k < K; k++)
            if (moirai_op_may(p, i, k) && moirai_op_ns(p, i, k) > 0)
                lower(&rest_ns[k], tail_ns[(int64_t)i * K + k]);
    for (int32_t e = 0; e < p->n_edges; e++)
        after_transfers(rest_ns, p, tail_ns, e);
}
