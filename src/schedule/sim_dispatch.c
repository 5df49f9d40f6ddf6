/* Dispatch: devices and priorities in, times out. A list scheduler that never lets a resource idle on purpose.
 *
 * Time jumps from finish to finish. At each moment all that ends now is taken first, with everything that follows
 * from it in no time; then each free device starts its most urgent ready operator and each free pair of ports (or
 * channel) its most urgent waiting transfer, a transfer being as urgent as its most urgent reader. Operators and
 * transfers that take no time run the moment they can, beside whatever holds the resource (model.md: empty spans
 * never overlap). Tasks are started in order of time, so the log is sorted for free.
 *
 * With a limit it ends as soon as the limit can't be kept: at each start, what the device (the two ports) has still to do
 * and the shortest way to the end come behind it. Annealing rejects most of what it tries, and knows the longest
 * makespan that it would take before it asks: a layer of GPT-3 takes a third of the time so.
 *
 * The paper has no such algorithm: there the solver sets all starts; (4a)-(4g) hold here by construction.
 * O((V + E) log V + E K^2): heaps per device and per pair of devices; sets of devices are 64-bit masks. */
#include "schedule/sim.h"
#include "util/util.h"

#include <string.h>

typedef struct dispatch {
    moirai_sim *sim;
    const int64_t *priority;
    int64_t now_ns;
    int32_t n_done, n_flying;            /* depth of the stack, size of the heap */
    uint64_t busy, sending, receiving;   /* devices and ports in use */
    uint64_t fresh;                      /* devices that got a ready operator or fell idle */
    bool moved;                          /* a port fell idle or a transfer came to wait */
    int32_t running[MOIRAI_MAX_DEVICES]; /* operator on each busy device */
    int64_t until_ns[MOIRAI_MAX_DEVICES];
    uint64_t waits[MOIRAI_MAX_DEVICES]; /* per sender: receivers for which a transfer waits */
    uint64_t channel_busy[MOIRAI_MAX_DEVICES];
    int32_t n_ops_left;
    const schedule_limit *limit;         /* NULL: none, and nothing of the following */
    bool over;                           /* it can't end within the limit */
    int64_t left_ns[MOIRAI_MAX_DEVICES]; /* time of operators (transfers) that have not begun */
    int64_t left_send_ns[MOIRAI_MAX_DEVICES], left_receive_ns[MOIRAI_MAX_DEVICES];
} dispatch;

/* ---- heaps ---- */

static inline bool sooner(const schedule_urgency *a, const schedule_urgency *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
}

static void push(schedule_urgency *heap, int32_t *n, schedule_urgency x)
{
    int32_t at = (*n)++;
    while (at > 0 && sooner(&x, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = x;
}

static schedule_urgency pop(schedule_urgency *heap, int32_t *n)
{
    schedule_urgency top = heap[0], x = heap[--*n];
    int32_t at = 0;
    for (int32_t child; (child = 2 * at + 1) < *n; at = child) {
        if (child + 1 < *n && sooner(&heap[child + 1], &heap[child]))
            child++;
        if (!sooner(&heap[child], &x))
            break;
        heap[at] = heap[child];
    }
    heap[at] = x;
    return top;
}

static void fly(dispatch *x, int32_t slot, int64_t until_ns)
{
    schedule_event *heap = x->sim->flying;
    int32_t at = x->n_flying++;
    while (at > 0 && until_ns < heap[(at - 1) / 2].time_ns) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = (schedule_event){until_ns, slot};
}

static int32_t land(dispatch *x)
{
    schedule_event *heap = x->sim->flying;
    int32_t n = --x->n_flying, at = 0, slot = heap[0].slot;
    schedule_event last = heap[n];
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1].time_ns < heap[child].time_ns)
            child++;
        if (heap[child].time_ns >= last.time_ns)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return slot;
}

/* ---- what follows from a finish ---- */

static void op_begins(dispatch *x, int32_t op, int64_t ns)
{
    moirai_sim *sim = x->sim;
    sim->start_ns[op] = x->now_ns;
    sim->finish_ns[op] = x->now_ns + ns;
    sim->log[sim->n_log++] = op;
    x->n_ops_left--;
}

static void op_ready(dispatch *x, int32_t op)
{
    moirai_sim *sim = x->sim;
    int32_t d = sim->device[op];
    if (moirai_op_ns(sim->p, op, d) == 0) {
        op_begins(x, op, 0);
        sim->done[x->n_done++] = op;
        return;
    }
    schedule_urgency u = {x->priority[op], sim->p->topo_rank[op], op};
    push(sim->ready + sim->ready_off[d], &sim->ready_n[d], u);
    x->fresh |= (uint64_t)1 << d;
}

static void op_gets_input(dispatch *x, int32_t op)
{
    if (--x->sim->missing[op] == 0)
        op_ready(x, op);
}

static void arrive(dispatch *x, int32_t slot)
{
    const moirai_sim *sim = x->sim;
    for (int32_t e = sim->slot_head[slot]; e != MOIRAI_NONE; e = sim->edge_next[e])
        op_gets_input(x, sim->p->edge_reader[e]);
}

static void transfer_begins(dispatch *x, int32_t slot, int64_t ns)
{
    moirai_sim *sim = x->sim;
    sim->log[sim->n_log++] = sim->p->n_ops + (moirai_task)slot;
    sim->arrival_ns[slot] = x->now_ns + ns;
}

/* A transfer may start from now on. */
static void transfer_ready(dispatch *x, int32_t tensor, int32_t slot, int32_t from, int32_t to, schedule_urgency u)
{
    moirai_sim *sim = x->sim;
    int64_t ns = moirai_transfer_ns(sim->p, tensor, from, to);
    if (ns == 0) {
        transfer_begins(x, slot, 0);
        arrive(x, slot);
    } else if (sim->p->congestion == MOIRAI_CONGESTION_NONE) {
        transfer_begins(x, slot, ns);
        fly(x, slot, x->now_ns + ns);
    } else {
        int32_t pair = from * sim->p->n_devices + to;
        u.id = slot;
        push(sim->waiting + sim->waiting_off[pair], &sim->waiting_n[pair], u);
        x->waits[from] |= (uint64_t)1 << to;
        x->moved = true;
    }
}

static void publish_edges(dispatch *x, int32_t tensor, int32_t from)
{
    moirai_sim *sim = x->sim;
    const moirai_problem *p = sim->p;
    for (int32_t e = p->tensor_edge_off[tensor]; e < p->tensor_edge_off[tensor + 1]; e++) {
        int32_t reader = p->edge_reader[e], to = sim->device[reader];
        if (to == from) {
            op_gets_input(x, reader);
            continue;
        }
        sim->slot_head[e] = e;
        sim->edge_next[e] = MOIRAI_NONE;
        schedule_urgency u = {x->priority[reader], p->topo_rank[reader], 0};
        transfer_ready(x, tensor, e, from, to, u);
    }
}

/* One transfer per device that reads the tensor: collect its readers and their highest urgency first. */
static void publish_tensor(dispatch *x, int32_t tensor, int32_t from)
{
    moirai_sim *sim = x->sim;
    const moirai_problem *p = sim->p;
    int32_t K = p->n_devices;
    uint64_t to_mask = 0;
    schedule_urgency most[MOIRAI_MAX_DEVICES];
    for (int32_t e = p->tensor_edge_off[tensor]; e < p->tensor_edge_off[tensor + 1]; e++) {
        int32_t reader = p->edge_reader[e], to = sim->device[reader];
        if (to == from) {
            op_gets_input(x, reader);
            continue;
        }
        int32_t *head = &sim->slot_head[tensor * K + to];
        schedule_urgency u = {x->priority[reader], p->topo_rank[reader], 0};
        bool first = !(to_mask >> to & 1);
        if (first || sooner(&u, &most[to]))
            most[to] = u;
        sim->edge_next[e] = first ? MOIRAI_NONE : *head;
        *head = e;
        to_mask |= (uint64_t)1 << to;
    }
    for (; to_mask != 0; to_mask &= to_mask - 1) {
        int32_t to = __builtin_ctzll(to_mask);
        transfer_ready(x, tensor, tensor * K + to, from, to, most[to]);
    }
}

/* Empty operators finish while others' consequences are drawn: a stack, since chains of them may be long. */
static void settle(dispatch *x)
{
    moirai_sim *sim = x->sim;
    const moirai_problem *p = sim->p;
    while (x->n_done > 0) {
        int32_t op = sim->done[--x->n_done];
        for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
            if (sim->per_edge)
                publish_edges(x, p->op_out[j], sim->device[op]);
            else
                publish_tensor(x, p->op_out[j], sim->device[op]);
        }
    }
}

/* ---- starting what can start now ---- */

/* What the device has left, and what follows the operator on the shortest way to the end, come after it. */
static void look_ahead(dispatch *x, int32_t op, int32_t d, int64_t ns)
{
    int64_t rest = x->left_ns[d] -= ns;
    rest = UTIL_MAX(rest, x->limit->tail_ns[(int64_t)op * x->sim->p->n_devices + d]);
    x->over |= x->now_ns + ns + rest > x->limit->ns;
}

static void start_ops(dispatch *x)
{
    moirai_sim *sim = x->sim;
    for (uint64_t open = x->fresh & ~x->busy; open != 0; open &= open - 1) {
        int32_t d = __builtin_ctzll(open);
        if (sim->ready_n[d] == 0)
            continue;
        int32_t op = pop(sim->ready + sim->ready_off[d], &sim->ready_n[d]).id;
        int64_t ns = moirai_op_ns(sim->p, op, d);
        op_begins(x, op, ns);
        if (x->limit)
            look_ahead(x, op, d, ns);
        x->running[d] = op;
        x->until_ns[d] = x->now_ns + ns;
        x->busy |= (uint64_t)1 << d;
    }
    x->fresh = 0;
}

static void start_transfer(dispatch *x, int32_t from, int32_t to)
{
    moirai_sim *sim = x->sim;
    int32_t pair = from * sim->p->n_devices + to;
    int32_t slot = pop(sim->waiting + sim->waiting_off[pair], &sim->waiting_n[pair]).id;
    int32_t tensor = sim->p->edge_tensor[sim->slot_head[slot]];
    int64_t ns = moirai_transfer_ns(sim->p, tensor, from, to);
    if (sim->waiting_n[pair] == 0)
        x->waits[from] &= ~((uint64_t)1 << to);
    transfer_begins(x, slot, ns);
    if (x->limit && sim->p->congestion == MOIRAI_CONGESTION_PORT) {
        int64_t sends = x->left_send_ns[from] -= ns, receives = x->left_receive_ns[to] -= ns;
        x->over |= x->now_ns + ns + UTIL_MAX(sends, receives) > x->limit->ns;
    }
    fly(x, slot, x->now_ns + ns);
}

/* Over all pairs of free ports the most urgent transfer first, until no pair is left. */
static void start_on_ports(dispatch *x)
{
    moirai_sim *sim = x->sim;
    int32_t K = sim->p->n_devices;
    for (;;) {
        const schedule_urgency *best = NULL;
        int32_t best_from = 0, best_to = 0;
        for (int32_t from = 0; from < K; from++) {
            uint64_t open = x->sending >> from & 1 ? 0 : x->waits[from] & ~x->receiving;
            for (; open != 0; open &= open - 1) {
                int32_t to = __builtin_ctzll(open);
                const schedule_urgency *top = sim->waiting + sim->waiting_off[from * K + to];
                if (!best || sooner(top, best))
                    best = top, best_from = from, best_to = to;
            }
        }
        if (!best)
            return;
        start_transfer(x, best_from, best_to);
        x->sending |= (uint64_t)1 << best_from;
        x->receiving |= (uint64_t)1 << best_to;
    }
}

static void start_on_channels(dispatch *x)
{
    for (int32_t from = 0; from < x->sim->p->n_devices; from++)
        for (uint64_t open = x->waits[from] & ~x->channel_busy[from]; open != 0; open &= open - 1) {
            int32_t to = __builtin_ctzll(open);
            start_transfer(x, from, to);
            x->channel_busy[from] |= (uint64_t)1 << to;
        }
}

/* ---- the clock ---- */

static bool advance(dispatch *x)
{
    int64_t next = x->n_flying > 0 ? x->sim->flying[0].time_ns : INT64_MAX;
    for (uint64_t busy = x->busy; busy != 0; busy &= busy - 1)
        next = UTIL_MIN(next, x->until_ns[__builtin_ctzll(busy)]);
    x->now_ns = next;
    return next != INT64_MAX;
}

static void take_finishes(dispatch *x)
{
    moirai_sim *sim = x->sim;
    for (uint64_t busy = x->busy; busy != 0; busy &= busy - 1) {
        int32_t d = __builtin_ctzll(busy);
        if (x->until_ns[d] != x->now_ns)
            continue;
        x->busy &= ~((uint64_t)1 << d);
        x->fresh |= (uint64_t)1 << d;
        sim->done[x->n_done++] = x->running[d];
    }
    while (x->n_flying > 0 && sim->flying[0].time_ns == x->now_ns) {
        int32_t slot = land(x), edge = sim->slot_head[slot];
        int32_t from = sim->device[sim->p->tensor_producer[sim->p->edge_tensor[edge]]];
        int32_t to = sim->device[sim->p->edge_reader[edge]];
        x->sending &= ~((uint64_t)1 << from);
        x->receiving &= ~((uint64_t)1 << to);
        x->channel_busy[from] &= ~((uint64_t)1 << to);
        x->moved = true;
        arrive(x, slot);
    }
    settle(x);
}

/* ---- set-up ---- */

/* Longest remaining path with the actual times and transfers: the upward rank of HEFT for known devices. */
static void upward_ranks(moirai_sim *sim)
{
    const moirai_problem *p = sim->p;
    for (int32_t r = p->n_ops - 1; r >= 0; r--) {
        int32_t op = p->topo[r], from = sim->device[op];
        int64_t rest = 0;
        for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++) {
            int32_t t = p->op_out[j];
            const int64_t *row =
                p->class_transfer_ns + ((int64_t)p->tensor_class[t] * p->n_devices + from) * p->n_devices;
            for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
                int32_t reader = p->edge_reader[e];
                rest = UTIL_MAX(rest, row[sim->device[reader]] + sim->priority[reader]);
            }
        }
        sim->priority[op] = rest + moirai_op_ns(p, op, from);
    }
}

/* Room for each device's ready operators and, where transfers may wait, for each pair's transfers. An edge
 * counts once with either flow: an upper bound with flow tensor. */
static void lay_out_queues(moirai_sim *sim)
{
    const moirai_problem *p = sim->p;
    int32_t K = p->n_devices;
    memset(sim->ready_n, 0, (size_t)K * sizeof *sim->ready_n);
    memset(sim->waiting_n, 0, (size_t)K * (size_t)K * sizeof *sim->waiting_n);
    for (int32_t i = 0; i < p->n_ops; i++)
        sim->ready_n[sim->device[i]]++;
    if (p->congestion != MOIRAI_CONGESTION_NONE)
        for (int32_t e = 0; e < p->n_edges; e++) {
            int32_t from = sim->device[p->tensor_producer[p->edge_tensor[e]]];
            sim->waiting_n[from * K + sim->device[p->edge_reader[e]]]++;
        }
    int32_t at = 0;
    for (int32_t d = 0; d < K; d++) {
        sim->ready_off[d] = at;
        at += sim->ready_n[d];
        sim->ready_n[d] = 0;
    }
    at = 0;
    for (int32_t pair = 0; pair < K * K; pair++) {
        sim->waiting_off[pair] = at;
        at += sim->waiting_n[pair];
        sim->waiting_n[pair] = 0;
    }
}

/* All that ports will carry, before anything is sent. */
static void add_port_loads(dispatch *x)
{
    const moirai_sim *sim = x->sim;
    const moirai_problem *p = sim->p;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        int32_t from = sim->device[p->tensor_producer[t]];
        uint64_t sent = UINT64_C(1) << from;
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            int32_t to = sim->device[p->edge_reader[e]];
            if (to == from || (!sim->per_edge && (sent >> to & 1)))
                continue;
            sent |= UINT64_C(1) << to;
            int64_t ns = moirai_transfer_ns(p, t, from, to);
            x->left_send_ns[from] += ns;
            x->left_receive_ns[to] += ns;
        }
    }
}

/* What everybody has to do, and whether that is too much already. */
static void add_loads(dispatch *x)
{
    const moirai_sim *sim = x->sim;
    for (int32_t i = 0; i < sim->p->n_ops; i++)
        x->left_ns[sim->device[i]] += moirai_op_ns(sim->p, i, sim->device[i]);
    if (sim->p->congestion == MOIRAI_CONGESTION_PORT)
        add_port_loads(x);
    for (int32_t k = 0; k < sim->p->n_devices; k++)
        x->over |= UTIL_MAX(x->left_ns[k], UTIL_MAX(x->left_send_ns[k], x->left_receive_ns[k])) > x->limit->ns;
}

int64_t moirai_sim_dispatch(moirai_sim *sim, const int32_t *op_device, const int64_t *priority)
{
    return schedule_sim_dispatch_within(sim, op_device, priority, NULL);
}

int64_t schedule_sim_dispatch_within(moirai_sim *sim, const int32_t *op_device, const int64_t *priority,
                                     const schedule_limit *limit)
{
    const moirai_problem *p = sim->p;
    if (!schedule_sim_take_devices(sim, op_device))
        return -1;
    dispatch x = {.sim = sim, .priority = priority ? priority : sim->priority, .n_ops_left = p->n_ops, .limit = limit};
    if (limit)
        add_loads(&x);
    if (x.over)
        return -1;
    if (!priority)
        upward_ranks(sim);
    lay_out_queues(sim);
    sim->log_sorted = true;
    for (int32_t i = 0; i < p->n_ops; i++)
        sim->missing[i] = p->op_in_off[i + 1] - p->op_in_off[i];
    for (int32_t i = 0; i < p->n_ops; i++)
        if (p->op_in_off[i + 1] == p->op_in_off[i])
            op_ready(&x, i);
    settle(&x);
    for (;;) {
        start_ops(&x);
        if (x.moved && p->congestion == MOIRAI_CONGESTION_PORT)
            start_on_ports(&x);
        else if (x.moved && p->congestion == MOIRAI_CONGESTION_CHANNEL)
            start_on_channels(&x);
        x.moved = false;
        if (x.over || !advance(&x))
            break;
        take_finishes(&x);
    }
    for (int32_t i = 0; i < p->n_ops && !x.over; i++)
        sim->makespan_ns = UTIL_MAX(sim->makespan_ns, sim->finish_ns[i]);
    x.over |= limit && sim->makespan_ns > limit->ns; /* what ends with a transfer that no port carries */
    sim->complete = x.n_ops_left == 0 && !x.over;
    return sim->complete ? sim->makespan_ns : -1;
}
