/* The simulator's memory: everything is allocated here, once per problem, and reused by every simulation.
 *
 * The arrays are flat and indexed by operator, edge, tensor or slot (a possible transfer). All times
 * of a problem, and all its bytes, add up to less than 2^61 (problem_settle.c), so that no loop here has to check. */
#include "schedule/sim.h"
#include "util/util.h"

#include <stdlib.h>

#define AHEAD 16 /* so many readers are fetched before their turn */

static void index_groups(moirai_sim *sim, int32_t *first)
{
    const moirai_problem *p = sim->p;
    for (int32_t g = 0; g < p->n_groups; g++)
        first[g] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t g = p->op_group[i];
        if (g != MOIRAI_NONE && first[g] == MOIRAI_NONE)
            first[g] = i;
        sim->group_leader[i] = g == MOIRAI_NONE ? i : first[g];
    }
}

static void index_inputs(moirai_sim *sim)
{
    const moirai_problem *p = sim->p;
    for (int32_t j = 0; j < p->op_in_off[p->n_ops]; j++) {
        int32_t t = p->op_in[j];
        sim->in_producer[j] = p->tensor_producer[t];
        sim->in_room[j] = sim->per_edge ? p->op_in_edge[j] : p->tensor_edge_off[t];
    }
}

/* All priorities are 0 at first: the order of urgency is the topological one. */
static void index_operators(moirai_sim *sim)
{
    const moirai_problem *p = sim->p;
    for (int32_t i = 0; i < p->n_ops; i++) {
        sim->n_inputs[i] = p->op_in_off[i + 1] - p->op_in_off[i];
        if (sim->n_inputs[i] == 0)
            sim->source[sim->n_sources++] = i;
        sim->by_urgency[i] = p->topo[i];
        sim->place[i] = p->topo_rank[i];
        sim->loaded[i] = MOIRAI_NONE;
    }
}

static bool allocate(moirai_sim *s)
{
    const moirai_problem *p = s->p;
    size_t V = (size_t)p->n_ops, E = (size_t)p->n_edges, T = (size_t)p->n_tensors, K = (size_t)p->n_devices;
    size_t tasks = V + E;       /* a transfer has a reader: there are at most E at once */
    size_t spans = 2 * (T + E); /* beginnings and ends of tensors' lives */
    size_t sorted = UTIL_MAX(tasks, spans);
    size_t ready = K * (size_t)(s->ready_words + s->ready_heads);
#define TAKE(field, n) (s->field = util_alloc((n), sizeof *s->field)) != NULL
    return TAKE(group_leader, V) && TAKE(in_producer, E) && TAKE(in_room, E) && TAKE(device, V) && TAKE(start_ns, V) &&
           TAKE(finish_ns, V) && TAKE(arrival_ns, E + 1) && TAKE(log, tasks) && TAKE(priority, V) && TAKE(missing, V) &&
           TAKE(done, V) && TAKE(edge_next, E) && TAKE(room_head, E) && TAKE(ready, ready) && TAKE(op_ns, V) &&
           TAKE(loaded, V) && TAKE(n_readers, T * K) && TAKE(n_transfers, K * K) && TAKE(load_ns, K) &&
           TAKE(send_load_ns, K) && TAKE(receive_load_ns, K) && TAKE(n_inputs, V) && TAKE(source, V) &&
           TAKE(by_urgency, V) && TAKE(by_urgency_spare, V) && TAKE(place, V) && TAKE(ranked_by, V) &&
           TAKE(waiting, E) && TAKE(waiting_off, K * K) && TAKE(waiting_n, K * K) && TAKE(flying, E) &&
           TAKE(free_ns, K) && TAKE(send_ns, K) && TAKE(receive_ns, K) &&
           TAKE(tensor_to, T * (size_t)moirai_device_words(p)) && TAKE(channel_ns, K * K) && TAKE(key, sorted) &&
           TAKE(key_spare, sorted) && TAKE(item, sorted) && TAKE(item_spare, sorted) && TAKE(log_spare, tasks) &&
           TAKE(life_bytes, T + E) && TAKE(life_device, T + E) && TAKE(need_bytes, K);
#undef TAKE
}

int moirai_sim_new(moirai_sim **out, const moirai_problem *p)
{
    *out = NULL;
    int64_t slots = p->flow == MOIRAI_FLOW_EDGE ? p->n_edges : (int64_t)p->n_tensors * p->n_devices;
    if (slots > INT32_MAX - p->n_ops)
        return moirai_error(MOIRAI_EINPUT, "problem '%s': %lld possible transfers, more than 2^31", p->name,
                            (long long)slots);
    moirai_sim *s = util_alloc(1, sizeof *s);
    int32_t *first = util_alloc((size_t)p->n_groups, sizeof *first);
    if (!s || !first) {
        free(first);
        free(s);
        return MOIRAI_EFAIL;
    }
    s->p = p;
    s->per_edge = p->flow == MOIRAI_FLOW_EDGE;
    s->n_slots = (int32_t)slots;
    s->log_sorted = true;
    s->ready_words = p->n_ops / 64 + 1;
    s->ready_heads = s->ready_words / 64 + 1;
    if (!allocate(s)) {
        free(first);
        moirai_sim_free(s);
        return MOIRAI_EFAIL;
    }
    index_groups(s, first);
    index_inputs(s);
    index_operators(s);
    free(first);
    *out = s;
    return 0;
}

void moirai_sim_free(moirai_sim *s)
{
    if (!s)
        return;
    void *all[] = {
        s->group_leader,     s->in_producer,  s->in_room,         s->device,     s->start_ns,    s->finish_ns,
        s->arrival_ns,       s->log,          s->priority,        s->missing,    s->done,        s->edge_next,
        s->room_head,        s->ready,        s->op_ns,           s->loaded,     s->n_readers,   s->n_transfers,
        s->load_ns,          s->send_load_ns, s->receive_load_ns, s->n_inputs,   s->source,      s->by_urgency,
        s->by_urgency_spare, s->place,        s->ranked_by,       s->waiting,    s->waiting_off, s->waiting_n,
        s->flying,           s->free_ns,      s->send_ns,         s->receive_ns, s->tensor_to,   s->key,
        s->key_spare,        s->item,         s->item_spare,      s->log_spare,  s->life_bytes,  s->life_device,
        s->need_bytes,       s->channel_ns};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(s);
}

bool schedule_sim_take_devices(moirai_sim *sim, const int32_t *op_device)
{
    const moirai_problem *p = sim->p;
    schedule_sim_reset(sim);
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t d = op_device[i];
        if (d < 0 || d >= p->n_devices || !moirai_op_may(p, i, d) || op_device[sim->group_leader[i]] != d)
            return false;
        sim->device[i] = d;
    }
    return true;
}

void schedule_sim_find_sent(moirai_sim *sim)
{
    const moirai_problem *p = sim->p;
    int32_t words = moirai_device_words(p);
    for (int32_t t = 0; t < p->n_tensors && !sim->per_edge; t++) {
        int32_t home = sim->device[p->tensor_producer[t]];
        uint64_t *to = sim->tensor_to + (int64_t)t * words;
        for (int32_t w = 0; w < words; w++)
            to[w] = 0;
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
            __builtin_prefetch(&sim->device[p->edge_reader[UTIL_MIN(e + AHEAD, p->n_edges - 1)]]);
            int32_t d = sim->device[p->edge_reader[e]];
            to[d / 64] |= UINT64_C(1) << d % 64;
        }
        to[home / 64] &= ~(UINT64_C(1) << home % 64);
    }
}

void schedule_sim_obey(moirai_sim *sim, const util_stop *stop)
{
    sim->stop = stop ? *stop : (util_stop){0};
}

const int64_t *moirai_sim_op_start(const moirai_sim *sim)
{
    return sim->start_ns;
}
