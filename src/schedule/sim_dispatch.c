/* Dispatch: devices and priorities in, times out. A list scheduler that never lets a resource idle on purpose.
 *
 * Time jumps from finish to finish. At each moment all that ends now is taken first, with everything that follows
 * from it in no time; then each free device starts its most urgent ready operator and each free pair of ports (or
 * channel) its most urgent waiting transfer, a transfer being as urgent as its most urgent reader; where transfers hold
 * their devices, the most urgent of all that can start comes first. Operators and
 * transfers that take no time run the moment they can, beside whatever holds the resource (model.md: empty spans
 * never overlap). Tasks are started in order of time, so the log is sorted for free.
 *
 * With a limit it ends as soon as the limit can't be kept: at each start, what the device (the two ports) has still to do
 * comes behind it, and behind that the shortest way to the end from whatever is last there. Annealing rejects most of
 * what it tries, and knows the longest makespan that it would take before it asks: a layer of GPT-3 takes a third of the
 * time so.
 *
 * The paper has no such algorithm: there the solver sets all starts; (4a)-(4g) hold here by construction.
 * O((V + E) log V + E K^2 + V^2 / 4096): a set of bits per device in order of urgency (sim_urgency.c), a heap per pair of
 * devices; sets of devices are words of bits, one of them up to 64 devices. */
#include "problem/device_set.h"
#include "schedule/sim.h"
#include "util/util.h"

#include <stddef.h>
#include <string.h>

typedef struct dispatch {
    moirai_sim *sim;
    int32_t words; /* of a set of devices */
    int64_t now_ns;
    int32_t n_done, n_flying;            /* depth of the stack, size of the heap */
    device_set busy, sending, receiving; /* devices and ports in use */
    device_set ends;                     /* devices that finish now */
    device_set ready;                    /* devices that have a ready operator */
    device_set senders;                  /* devices from which a transfer waits */
    bool moved;                          /* a port fell idle or a transfer came to wait */
    int32_t n_ops_left;
    const schedule_limit *limit; /* NULL: none, and nothing of the times below */
    bool over;                   /* it can't end within the limit */
    /* From here on only what the problem has is ever set, since most have few devices. */
    int32_t running[MOIRAI_MAX_DEVICES];  /* operator on each busy device */
    int64_t until_ns[MOIRAI_MAX_DEVICES]; /* INT64_MAX: idle */
    uint64_t
        waits[MOIRAI_MAX_DEVICES * DEVICE_SET_WORDS]; /* `words` per sender: receivers for which a transfer waits */
    uint64_t channel_busy[MOIRAI_MAX_DEVICES * DEVICE_SET_WORDS];
    /* Time of operators (transfers) that have not begun, and the shortest way to the end from any of them. */
    int64_t left_ns[MOIRAI_MAX_DEVICES];
    int64_t left_send_ns[MOIRAI_MAX_DEVICES], left_receive_ns[MOIRAI_MAX_DEVICES];
} dispatch;

/* ---- queues ---- */

static void push_ready(dispatch *x, int32_t op, int32_t d)
{
    moirai_sim *sim = x->sim;
    int32_t place = sim->place[op], word = place / 64;
    uint64_t *set = sim->ready + (int64_t)d * (sim->ready_words + sim->ready_heads), *head = set + sim->ready_words;
    set[word] |= UINT64_C(1) << place % 64;
    head[word / 64] |= UINT64_C(1) << word % 64;
    device_set_add(&x->ready, d);
}

/* The place of the most urgent ready operator of a device that has one. */
static int32_t first_ready(const dispatch *x, int32_t d)
{
    const moirai_sim *sim = x->sim;
    const uint64_t *set = sim->ready + (int64_t)d * (sim->ready_words + sim->ready_heads),
                   *head = set + sim->ready_words;
    int32_t h = 0;
    while (head[h] == 0)
        h++;
    int32_t word = h * 64 + __builtin_ctzll(head[h]);
    return word * 64 + __builtin_ctzll(set[word]);
}

/* That operator, which then is no longer ready. */
static int32_t pop_ready(dispatch *x, int32_t d)
{
    moirai_sim *sim = x->sim;
    uint64_t *set = sim->ready + (int64_t)d * (sim->ready_words + sim->ready_heads), *head = set + sim->ready_words;
    int32_t h = 0;
    while (head[h] == 0)
        h++;
    int32_t word = h * 64 + __builtin_ctzll(head[h]), place = word * 64 + __builtin_ctzll(set[word]);
    set[word] &= set[word] - 1;
    if (set[word] == 0) {
        head[h] &= head[h] - 1;
        while (h < sim->ready_heads && head[h] == 0)
            h++;
        if (h == sim->ready_heads)
            device_set_drop(&x->ready, d);
    }
    return sim->by_urgency[place];
}

static void push(uint64_t *heap, int32_t *n, uint64_t key)
{
    int32_t at = (*n)++;
    while (at > 0 && key < heap[(at - 1) / 2]) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = key;
}

static uint64_t pop(uint64_t *heap, int32_t *n)
{
    int32_t at = 0, end = --*n;
    uint64_t top = heap[0], last = heap[end];
    heap[end] = UINT64_MAX; /* so that every child has a sibling */
    for (int32_t child; (child = 2 * at + 1) < end; at = child) {
        child += heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static void fly(dispatch *x, schedule_event event)
{
    schedule_event *heap = x->sim->flying;
    int32_t at = x->n_flying++;
    while (at > 0 && event.time_ns < heap[(at - 1) / 2].time_ns) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = event;
}

static schedule_event land(dispatch *x)
{
    schedule_event *heap = x->sim->flying;
    int32_t n = --x->n_flying, at = 0;
    schedule_event first = heap[0], last = heap[n];
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1].time_ns < heap[child].time_ns)
            child++;
        if (heap[child].time_ns >= last.time_ns)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

/* ---- what follows from a finish ---- */

static void op_begins(dispatch *x, int32_t op, int64_t ns)
{
    moirai_sim *sim = x->sim;
    sim->start_ns[op] = x->now_ns;
    sim->finish_ns[op] = x->now_ns + ns;
    sim->makespan_ns = UTIL_MAX(sim->makespan_ns, x->now_ns + ns);
    sim->log[sim->n_log++] = op;
    x->n_ops_left--;
}

static void op_ready(dispatch *x, int32_t op)
{
    moirai_sim *sim = x->sim;
    int32_t d = sim->device[op];
    if (sim->op_ns[op] == 0) {
        op_begins(x, op, 0);
        sim->done[x->n_done++] = op;
        return;
    }
    push_ready(x, op, d);
}

static void op_gets_input(dispatch *x, int32_t op)
{
    if (--x->sim->missing[op] == 0)
        op_ready(x, op);
}

static void arrive(dispatch *x, int32_t room)
{
    const moirai_sim *sim = x->sim;
    for (int32_t e = sim->room_head[room]; e != MOIRAI_NONE; e = sim->edge_next[e])
        op_gets_input(x, sim->p->edge_reader[e]);
}

static void transfer_begins(dispatch *x, int32_t tensor, int32_t room, int32_t to, int64_t ns)
{
    moirai_sim *sim = x->sim;
    sim->log[sim->n_log++] = schedule_sim_task(sim, room, tensor, to);
    sim->arrival_ns[room] = x->now_ns + ns;
}

/* A transfer may start from now on. */
static void transfer_ready(dispatch *x, int32_t tensor, int32_t room, int32_t from, int32_t to, int32_t place)
{
    moirai_sim *sim = x->sim;
    int64_t ns = moirai_transfer_ns(sim->p, tensor, from, to);
    if (ns == 0) {
        transfer_begins(x, tensor, room, to, 0);
        arrive(x, room);
    } else if (sim->p->congestion == MOIRAI_CONGESTION_NONE) {
        transfer_begins(x, tensor, room, to, ns);
        fly(x, (schedule_event){x->now_ns + ns, room, (int16_t)from, (int16_t)to});
    } else {
        int32_t pair = from * sim->p->n_devices + to;
        push(sim->waiting + sim->waiting_off[pair], &sim->waiting_n[pair], (uint64_t)place << 32 | (uint32_t)room);
        x->waits[from * x->words + to / 64] |= (uint64_t)1 << to % 64;
        device_set_add(&x->senders, from);
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
        sim->room_head[e] = e;
        sim->edge_next[e] = MOIRAI_NONE;
        transfer_ready(x, tensor, e, from, to, sim->place[reader]);
    }
}

/* One transfer per device that reads the tensor: collect its readers and their highest urgency first. */
static void publish_tensor(dispatch *x, int32_t tensor, int32_t from)
{
    moirai_sim *sim = x->sim;
    const moirai_problem *p = sim->p;
    uint64_t *there = sim->tensor_to + (int64_t)tensor * x->words;
    int32_t most[MOIRAI_MAX_DEVICES], head[MOIRAI_MAX_DEVICES]; /* the least place; the last edge */
    for (int32_t w = 0; w < x->words; w++)
        there[w] = 0;
    for (int32_t e = p->tensor_edge_off[tensor]; e < p->tensor_edge_off[tensor + 1]; e++) {
        int32_t reader = p->edge_reader[e], to = sim->device[reader];
        if (to == from) {
            op_gets_input(x, reader);
            continue;
        }
        bool first = !(there[to / 64] >> to % 64 & 1);
        if (first || sim->place[reader] < most[to])
            most[to] = sim->place[reader];
        sim->edge_next[e] = first ? MOIRAI_NONE : head[to];
        head[to] = e;
        there[to / 64] |= (uint64_t)1 << to % 64;
    }
    for (int32_t w = 0, room = p->tensor_edge_off[tensor]; w < x->words; w++)
        for (uint64_t rest = there[w]; rest != 0; rest &= rest - 1, room++) {
            int32_t to = w * 64 + __builtin_ctzll(rest);
            sim->room_head[room] = head[to];
            transfer_ready(x, tensor, room, from, to, most[to]);
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

static void start_op(dispatch *x, int32_t d)
{
    int32_t op = pop_ready(x, d);
    int64_t ns = x->sim->op_ns[op];
    op_begins(x, op, ns);
    if (x->limit)
        look_ahead(x, op, d, ns);
    x->running[d] = op;
    x->until_ns[d] = x->now_ns + ns;
    device_set_add(&x->busy, d);
}

static void start_ops(dispatch *x)
{
    for (int32_t w = 0; w < x->words; w++)
        for (uint64_t open = x->ready.word[w] & ~x->busy.word[w]; open != 0; open &= open - 1)
            start_op(x, w * 64 + __builtin_ctzll(open));
}

static void start_transfer(dispatch *x, int32_t from, int32_t to)
{
    moirai_sim *sim = x->sim;
    int32_t pair = from * sim->p->n_devices + to;
    int32_t room = (int32_t)(uint32_t)pop(sim->waiting + sim->waiting_off[pair], &sim->waiting_n[pair]);
    int32_t tensor = sim->p->edge_tensor[room];
    int64_t ns = moirai_transfer_ns(sim->p, tensor, from, to);
    if (sim->waiting_n[pair] == 0) {
        uint64_t *waits = x->waits + from * x->words, any = 0;
        waits[to / 64] &= ~((uint64_t)1 << to % 64);
        for (int32_t w = 0; w < x->words; w++)
            any |= waits[w];
        if (any == 0)
            device_set_drop(&x->senders, from);
    }
    transfer_begins(x, tensor, room, to, ns);
    if (x->limit && sim->p->congestion == MOIRAI_CONGESTION_PORT) {
        int64_t sends = x->left_send_ns[from] -= ns, receives = x->left_receive_ns[to] -= ns;
        x->over |= x->now_ns + ns + UTIL_MAX(sends, receives) > x->limit->ns;
    }
    fly(x, (schedule_event){x->now_ns + ns, room, (int16_t)from, (int16_t)to});
}

/* The most urgent transfer from k to a receiver that is not busy. */
static inline uint64_t first_from(const dispatch *x, int32_t k, const device_set *busy, int32_t *to)
{
    const moirai_sim *sim = x->sim;
    const uint64_t *waits = x->waits + k * x->words;
    const int32_t *off = sim->waiting_off + k * sim->p->n_devices;
    uint64_t best = UINT64_MAX;
    for (int32_t w = 0; w < x->words; w++)
        for (uint64_t open = waits[w] & ~busy->word[w]; open != 0; open &= open - 1) {
            int32_t l = w * 64 + __builtin_ctzll(open);
            uint64_t top = sim->waiting[off[l]];
            if (top < best)
                best = top, *to = l;
        }
    return best;
}

/* The most urgent transfer between ends that are not busy; its key, UINT64_MAX where there is none. */
static uint64_t first_transfer(const dispatch *x, const device_set *busy_from, const device_set *busy_to, int32_t *from,
                               int32_t *to)
{
    uint64_t best = UINT64_MAX;
    for (int32_t w = 0; w < x->words; w++)
        for (uint64_t idle = x->senders.word[w] & ~busy_from->word[w]; idle != 0; idle &= idle - 1) {
            int32_t k = w * 64 + __builtin_ctzll(idle), l = 0;
            uint64_t top = first_from(x, k, busy_to, &l);
            if (top < best)
                best = top, *from = k, *to = l;
        }
    return best;
}

/* Over all pairs of free ports the most urgent transfer first, until no pair is left. */
static void start_on_ports(dispatch *x)
{
    int32_t from = 0, to = 0;
    while (first_transfer(x, &x->sending, &x->receiving, &from, &to) != UINT64_MAX) {
        start_transfer(x, from, to);
        device_set_add(&x->sending, from);
        device_set_add(&x->receiving, to);
    }
}

/* Where transfers hold their devices: the most urgent operator or transfer of those that are free, until none is left. */
static void start_on_devices(dispatch *x)
{
    for (;;) {
        int32_t from = 0, to = 0, device = MOIRAI_NONE;
        uint64_t sends = first_transfer(x, &x->busy, &x->busy, &from, &to), runs = UINT64_MAX;
        for (int32_t w = 0; w < x->words; w++)
            for (uint64_t open = x->ready.word[w] & ~x->busy.word[w]; open != 0; open &= open - 1) {
                int32_t d = w * 64 + __builtin_ctzll(open);
                uint64_t key = (uint64_t)first_ready(x, d) << 32;
                if (key < runs)
                    runs = key, device = d;
            }
        if (sends == UINT64_MAX && runs == UINT64_MAX)
            return;
        if (runs < sends) {
            start_op(x, device);
            continue;
        }
        start_transfer(x, from, to);
        device_set_add(&x->busy, from);
        device_set_add(&x->busy, to);
    }
}

static void start_on_channels(dispatch *x)
{
    for (int32_t from = 0; from < x->sim->p->n_devices; from++)
        for (int32_t w = 0; w < x->words; w++) {
            int32_t at = from * x->words + w;
            for (uint64_t open = x->waits[at] & ~x->channel_busy[at]; open != 0; open &= open - 1) {
                start_transfer(x, from, w * 64 + __builtin_ctzll(open));
                x->channel_busy[at] |= open & -open;
            }
        }
}

/* ---- the clock ---- */

/* To the next finish; which devices finish then. One by one: what was just written is not yet there for a vector. */
static bool advance(dispatch *x)
{
    int64_t next = x->n_flying > 0 ? x->sim->flying[0].time_ns : INT64_MAX;
    int32_t K = x->sim->p->n_devices;
    for (int32_t w = 0; w < x->words; w++) {
        uint64_t ends = 0;
        int64_t before = next;
        for (int32_t d = w * 64; d < UTIL_MIN(K, w * 64 + 64); d++) {
            int64_t until = x->until_ns[d];
            uint64_t bit = UINT64_C(1) << d % 64;
            ends = until < next ? 0 : ends;
            ends |= until <= next ? bit : 0;
            next = UTIL_MIN(next, until);
        }
        for (int32_t v = 0; v < w && next < before; v++) /* what ends later, after all */
            x->ends.word[v] = 0;
        x->ends.word[w] = ends;
    }
    x->now_ns = next;
    return next != INT64_MAX;
}

static void take_finishes(dispatch *x)
{
    moirai_sim *sim = x->sim;
    for (int32_t w = 0; w < x->words; w++) {
        uint64_t ends = x->ends.word[w];
        x->busy.word[w] &= ~ends;
        for (; ends != 0; ends &= ends - 1) {
            int32_t d = w * 64 + __builtin_ctzll(ends);
            x->until_ns[d] = INT64_MAX;
            sim->done[x->n_done++] = x->running[d];
        }
    }
    while (x->n_flying > 0 && sim->flying[0].time_ns == x->now_ns) {
        schedule_event event = land(x);
        device_set_drop(&x->sending, event.from);
        device_set_drop(&x->receiving, event.to);
        x->channel_busy[event.from * x->words + event.to / 64] &= ~((uint64_t)1 << event.to % 64);
        if (sim->p->congestion == MOIRAI_CONGESTION_DEVICE) {
            device_set_drop(&x->busy, event.from);
            device_set_drop(&x->busy, event.to);
        }
        x->moved = true;
        arrive(x, event.room);
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

/* Empty queues, with room for each pair's transfers. */
static void lay_out_queues(moirai_sim *sim)
{
    int32_t K = sim->p->n_devices, at = 0;
    memset(sim->ready, 0, (size_t)K * (size_t)(sim->ready_words + sim->ready_heads) * sizeof *sim->ready);
    memset(sim->waiting_n, 0, (size_t)K * (size_t)K * sizeof *sim->waiting_n);
    for (int32_t pair = 0; pair < K * K; pair++) {
        sim->waiting_off[pair] = at;
        at += sim->n_transfers[pair];
    }
}

/* Nothing is left behind what does nothing. */
static inline int64_t with_rest(int64_t load_ns, const int64_t *rest_ns, int32_t resource)
{
    return load_ns > 0 && rest_ns ? load_ns + rest_ns[resource] : load_ns;
}

/* What everybody has to do, and whether that is too much already. */
static void take_loads(dispatch *x)
{
    const moirai_sim *sim = x->sim;
    const int64_t *rest = x->limit->rest_ns;
    bool ports = sim->p->congestion == MOIRAI_CONGESTION_PORT;
    for (int32_t k = 0, K = sim->p->n_devices; k < K; k++) {
        x->left_ns[k] = with_rest(sim->load_ns[k], rest, k);
        x->left_send_ns[k] = ports ? with_rest(sim->send_load_ns[k], rest, K + k) : 0;
        x->left_receive_ns[k] = ports ? with_rest(sim->receive_load_ns[k], rest, 2 * K + k) : 0;
        x->over |= UTIL_MAX(x->left_ns[k], UTIL_MAX(x->left_send_ns[k], x->left_receive_ns[k])) > x->limit->ns;
    }
}

int64_t moirai_sim_dispatch(moirai_sim *sim, const int32_t *op_device, const int64_t *priority)
{
    return schedule_sim_dispatch_within(sim, op_device, priority, NULL);
}

static void begin(dispatch *x, moirai_sim *sim, const schedule_limit *limit)
{
    int32_t K = sim->p->n_devices, words = moirai_device_words(sim->p);
    memset(x, 0, offsetof(dispatch, running));
    x->sim = sim;
    x->words = words;
    x->n_ops_left = sim->p->n_ops;
    x->limit = limit;
    for (int32_t k = 0; k < K; k++)
        x->until_ns[k] = INT64_MAX;
    memset(x->waits, 0, (size_t)K * (size_t)words * sizeof *x->waits);
    memset(x->channel_busy, 0, (size_t)K * (size_t)words * sizeof *x->channel_busy);
}

static void run(dispatch *x)
{
    moirai_congestion congestion = x->sim->p->congestion;
    for (int64_t moment = 0; !schedule_sim_ends(x->sim, moment); moment++) {
        if (congestion == MOIRAI_CONGESTION_DEVICE)
            start_on_devices(x);
        else
            start_ops(x);
        if (x->moved && congestion == MOIRAI_CONGESTION_PORT)
            start_on_ports(x);
        else if (x->moved && congestion == MOIRAI_CONGESTION_CHANNEL)
            start_on_channels(x);
        x->moved = false;
        if (x->over || !advance(x))
            return;
        take_finishes(x);
    }
}

int64_t schedule_sim_dispatch_within(moirai_sim *sim, const int32_t *op_device, const int64_t *priority,
                                     const schedule_limit *limit)
{
    const moirai_problem *p = sim->p;
    if (!schedule_sim_load(sim, op_device))
        return -1;
    dispatch x;
    begin(&x, sim, limit);
    if (limit)
        take_loads(&x);
    if (x.over)
        return -1;
    if (!priority)
        upward_ranks(sim);
    schedule_sim_rank(sim, priority ? priority : sim->priority);
    lay_out_queues(sim);
    sim->log_sorted = true;
    memcpy(sim->missing, sim->n_inputs, (size_t)p->n_ops * sizeof *sim->missing);
    for (int32_t i = 0; i < sim->n_sources; i++)
        op_ready(&x, sim->source[i]);
    settle(&x);
    run(&x);
    x.over |= limit && sim->makespan_ns > limit->ns; /* what ends with a transfer that no port carries */
    sim->complete = x.n_ops_left == 0 && !x.over;
    return sim->complete ? sim->makespan_ns : -1;
}
