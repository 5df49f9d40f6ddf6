/* Inside the simulator: the state that dispatch, replay, memory and order share. Private. */
#ifndef MOIRAI_SCHEDULE_SIM_H
#define MOIRAI_SCHEDULE_SIM_H

#include <moirai/schedule.h>

#include "util/stop.h"

/* A transfer that is under way. */
typedef struct schedule_event {
    int64_t time_ns;
    int32_t room;
    int16_t from, to;
} schedule_event;

/* A "slot" is a possible transfer: edge e with flow edge, t * n_devices + d with flow tensor. Task number of a
 * transfer = n_ops + slot. What is known of those that take place is kept by "room": the edge with flow edge; with flow tensor one of
 * the tensor's edges, of which there are as many as devices that read it, the first for the first of these devices, and so on. So a
 * million operators on 64 devices ask for as many numbers as there are edges, not for 64 million. */
struct moirai_sim {
    const moirai_problem *p;
    bool per_edge; /* flow edge */
    int32_t n_slots;
    int32_t *group_leader; /* first operator of the group; itself where free */
    int32_t *in_producer;  /* parallel to p->op_in */
    int32_t *in_room;      /* parallel to p->op_in: its edge, or the first of its tensor's */
    int32_t *n_inputs;     /* per operator */
    int32_t *source;       /* operators without inputs */
    int32_t n_sources;

    /* The order of urgency of the last dispatch (sim_urgency.c). */
    int32_t *by_urgency, *by_urgency_spare; /* operators, the most urgent first */
    int32_t *place;                         /* of each operator in it */
    int64_t *ranked_by;                     /* priorities */

    /* What the placement of the last dispatch asks for (sim_load.c). */
    int32_t *loaded;                         /* per operator: the device that counts it; MOIRAI_NONE at first */
    int64_t *op_ns;                          /* of each operator there */
    int32_t *n_readers;                      /* [tensor * n_devices + device] */
    int32_t *n_transfers;                    /* per ordered pair of devices */
    int64_t *load_ns;                        /* per device */
    int64_t *send_load_ns, *receive_load_ns; /* per port */

    /* The last simulation. */
    int32_t *device;
    int64_t *start_ns, *finish_ns; /* per operator */
    int64_t *arrival_ns;           /* per room; meaningful only for transfers in the log */
    uint64_t *tensor_to; /* devices that the tensor is sent to: moirai_device_words(p) words each; with flow tensor */
    moirai_task *log;    /* tasks as they were started: a valid order of precedence */
    int64_t n_log;
    bool log_sorted; /* the log's starts never decrease */
    int64_t makespan_ns;
    bool complete; /* it ran to the end */
    bool stopped;  /* it did not, because of: */
    util_stop stop;

    /* Working memory of dispatch. */
    int64_t *priority;  /* upward ranks where the caller gives none */
    int32_t *missing;   /* inputs that have not come yet */
    int32_t *done;      /* stack of operators that have just finished */
    int32_t *edge_next; /* readers waiting for one transfer, a linked list of edges */
    int32_t *room_head;
    uint64_t *ready; /* per device the set of places of its ready operators, and which words of it are not 0 */
    int32_t ready_words, ready_heads;
    uint64_t *waiting; /* one heap per ordered pair of devices: place of the most urgent reader << 32 | room */
    int32_t *waiting_off, *waiting_n;
    schedule_event *flying; /* heap of running transfers */

    /* Working memory of replay: when each device, port and channel is free. */
    int64_t *free_ns, *send_ns, *receive_ns;
    int64_t *channel_ns; /* per ordered pair */
    int64_t gate_ns;     /* nothing starts before */

    /* Working memory of sorting and of memory accounting. */
    uint64_t *key, *key_spare;
    int32_t *item, *item_spare;
    moirai_task *log_spare;
    int64_t *life_bytes;
    int32_t *life_device;
    int64_t *need_bytes; /* per device */
    bool peak_known;     /* of the last simulation, in need_bytes */
};

/* Forget the last simulation. */
static inline void schedule_sim_reset(moirai_sim *sim)
{
    sim->n_log = 0;
    sim->complete = sim->stopped = sim->peak_known = false;
    sim->makespan_ns = 0;
}

/* From now on simulations end with `stop` (NULL: no longer), as if the devices were not allowed: with -1, and `stopped`. It is looked at every
 * so many tasks, so that a simulation of fewer never ends early, and none takes a tenth of a second after it. */
#define SCHEDULE_STOP_EVERY 8192
void schedule_sim_obey(moirai_sim *sim, const util_stop *stop);
/* Whether to end before task n. */
static inline bool schedule_sim_ends(moirai_sim *sim, int64_t n)
{
    if (n % SCHEDULE_STOP_EVERY != SCHEDULE_STOP_EVERY - 1)
        return false;
    return sim->stopped = util_stopped(&sim->stop);
}

/* Copy the devices in; false where they break a mask or split a group. */
bool schedule_sim_take_devices(moirai_sim *sim, const int32_t *op_device);
/* The same, and bring the loads up to date with them. */
bool schedule_sim_load(moirai_sim *sim, const int32_t *op_device);
/* Where each tensor is sent, by these devices, into tensor_to. */
void schedule_sim_find_sent(moirai_sim *sim);
/* Bring by_urgency and place up to date with these priorities. */
void schedule_sim_rank(moirai_sim *sim, const int64_t *priority);
/* Bring the log into order of start. */
void schedule_sim_sort_log(moirai_sim *sim);

/* A makespan that must not be passed, and what follows the finish of each operator on each device at least:
 * tail_ns[op * n_devices + device] (schedule_tails). rest_ns, 3 n_devices of them or NULL: what follows at least the last
 * operator of each device that takes time, the last transfer of each sender, that of each receiver (schedule_rests). */
typedef struct schedule_limit {
    int64_t ns;
    const int64_t *tail_ns;
    const int64_t *rest_ns;
} schedule_limit;
void schedule_rests(int64_t *rest_ns, const moirai_problem *p, const int64_t *tail_ns);
/* moirai_sim_dispatch; with a limit (NULL: none) -1 where the makespan is above it, found out as early as may be. */
int64_t schedule_sim_dispatch_within(moirai_sim *sim, const int32_t *op_device, const int64_t *priority,
                                     const schedule_limit *limit);

/* Replay in which arc_to[arc_off[task] .. arc_off[task + 1]) wait for `task` as well. The order respects these arcs and
 * holds the needed transfers, no others; -1 as moirai_sim_replay, -2 if memory ran out. */
int64_t schedule_sim_replay_arcs(moirai_sim *sim, const int32_t *op_device, const moirai_task *order, int64_t n_order,
                                 const int64_t *arc_off, const int64_t *arc_to);
/* Replay that trades time for memory: see sim_replay.c. `op_order` holds all operators in an order of precedence. */
int64_t schedule_sim_replay_window(moirai_sim *sim, const int32_t *op_device, const int32_t *op_order, int32_t window);

/* Replays n tasks and then twice what came of them, sorted by start, which closes gaps that the order has left. The makespan, or -1. */
int64_t schedule_sim_replay_closed(moirai_sim *sim, const int32_t *op_device, const moirai_task *order, int64_t n);

/* The last simulation, of this length (negative: none), takes the place of *plan (or NULL) if it is shorter and fits the
 * memory. */
int schedule_sim_take_better(moirai_plan **plan, moirai_sim *sim, int64_t length_ns);

/* Bytes that each device needs in the last simulation: resident, plus (with_tensors) the most alive at once. */
void schedule_sim_need(moirai_sim *sim, int64_t *need_bytes, bool with_tensors);

/* A transfer, from the number of its task: what goes where, and its room. */
typedef struct schedule_sent_task {
    int32_t tensor, to, room;
} schedule_sent_task;

/* How many devices before `to` the tensor is sent to. */
static inline int32_t schedule_sim_sent_before(const moirai_sim *sim, int32_t tensor, int32_t to)
{
    const uint64_t *word = sim->tensor_to + (int64_t)tensor * moirai_device_words(sim->p);
    int32_t n = 0;
    for (; to >= 64; to -= 64)
        n += __builtin_popcountll(*word++);
    uint64_t before = *word & ((UINT64_C(1) << to) - 1);
    return before ? n + __builtin_popcountll(before) : n; /* most tensors go to few devices */
}

static inline schedule_sent_task schedule_sim_sent(const moirai_sim *sim, moirai_task task)
{
    const moirai_problem *p = sim->p;
    int32_t slot = (int32_t)(task - p->n_ops);
    if (sim->per_edge)
        return (schedule_sent_task){p->edge_tensor[slot], sim->device[p->edge_reader[slot]], slot};
    int32_t tensor = (int32_t)((uint32_t)slot / (uint32_t)p->n_devices), to = slot - tensor * p->n_devices;
    return (schedule_sent_task){tensor, to, p->tensor_edge_off[tensor] + schedule_sim_sent_before(sim, tensor, to)};
}

/* The room of what the reader of an edge on device `to` waits for. */
static inline int32_t schedule_sim_room(const moirai_sim *sim, int32_t edge, int32_t tensor, int32_t to)
{
    return sim->per_edge ? edge : sim->p->tensor_edge_off[tensor] + schedule_sim_sent_before(sim, tensor, to);
}

static inline moirai_task schedule_sim_task(const moirai_sim *sim, int32_t room, int32_t tensor, int32_t to)
{
    return sim->p->n_ops + (sim->per_edge ? (moirai_task)room : (moirai_task)tensor * sim->p->n_devices + to);
}

#endif
