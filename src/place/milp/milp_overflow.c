/* Where a plan needs more memory than a device has, and which tensors together are too many there: the cliques that
 * milp_peak.c keeps apart. */
#include "place/milp/milp.h"

#include <stdlib.h>

typedef struct life {
    int64_t first, last;
} life;

static life life_on(const moirai_problem *p, const moirai_plan *plan, int32_t t, int32_t k)
{
    life l = {INT64_MAX, -1};
    int32_t i = p->tensor_producer[t];
    bool unread = p->tensor_edge_off[t] == p->tensor_edge_off[t + 1];
    if (plan->op_device[i] == k)
        l = (life){plan->op_start_ns[i], unread ? plan->makespan_ns : plan->op_finish_ns[i]};
    for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
        if (plan->op_device[p->edge_reader[e]] == k)
            l.last = UTIL_MAX(l.last, plan->op_finish_ns[p->edge_reader[e]]);
    return l;
}

static life *lives_on(const moirai_problem *p, const moirai_plan *plan, int32_t k)
{
    life *l = util_alloc((size_t)p->n_tensors, sizeof *l);
    for (int32_t t = 0; l && t < p->n_tensors; t++)
        l[t] = life_on(p, plan, t, k);
    for (int32_t n = 0; l && n < plan->n_transfers; n++) {
        const moirai_transfer *x = &plan->transfer[n];
        if (x->from == k)
            l[x->tensor].last = UTIL_MAX(l[x->tensor].last, x->finish_ns);
        if (x->to == k)
            l[x->tensor].first = UTIL_MIN(l[x->tensor].first, x->start_ns);
    }
    return l;
}

/* Most bytes alive at once; the moment of it in *when. O(T^2): for the small problems that re-solving is for. */
static int64_t most_alive(const moirai_problem *p, const life *l, int64_t *when)
{
    int64_t most = 0;
    *when = 0;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        int64_t alive = 0;
        if (l[t].first >= l[t].last)
            continue;
        for (int32_t s = 0; s < p->n_tensors; s++)
            if (l[s].first <= l[t].first && l[t].first < l[s].last)
                alive += p->tensor_bytes[s];
        if (alive > most) {
            most = alive;
            *when = l[t].first;
        }
    }
    return most;
}

static int64_t resident(const moirai_problem *p, const moirai_plan *plan, int32_t k)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        if (plan->op_device[i] == k && !util_add64(&sum, sum, p->op_memory_bytes[i]))
            return INT64_MAX / 2;
    int64_t weights[MOIRAI_MASK_DEVICES] = {0};
    moirai_problem_add_weights(p, plan->op_device, weights);
    return util_add64(&sum, sum, weights[k]) ? sum : INT64_MAX / 2;
}

/* The largest first, until they exceed the room: few members make a strong row. */
static void fewest(const moirai_problem *p, const life *l, int64_t when, int64_t room, int32_t *clique, int32_t *n)
{
    int64_t sum = 0;
    *n = 0;
    while (sum <= room) {
        int32_t best = MOIRAI_NONE;
        for (int32_t t = 0; t < p->n_tensors; t++) {
            bool taken = !(l[t].first <= when && when < l[t].last);
            for (int32_t c = 0; c < *n && !taken; c++)
                taken = clique[c] == t;
            if (!taken && (best == MOIRAI_NONE || p->tensor_bytes[t] > p->tensor_bytes[best]))
                best = t;
        }
        if (best == MOIRAI_NONE)
            return;
        sum += p->tensor_bytes[best];
        clique[(*n)++] = best;
    }
}

int64_t milp_overflow(const moirai_problem *p, const moirai_plan *plan, int32_t device, int32_t *clique, int32_t *n)
{
    int64_t when = 0, alive = 0, room = p->device_memory_bytes[device] - resident(p, plan, device);
    life *l = NULL;
    if (p->memory == MOIRAI_MEMORY_PEAK && (l = lives_on(p, plan, device)))
        alive = most_alive(p, l, &when);
    if (n)
        *n = 0;
    if (l && clique && alive > room && room >= 0)
        fewest(p, l, when, room, clique, n);
    free(l);
    return UTIL_MAX(alive - room, 0);
}
