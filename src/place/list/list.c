/* What HEFT and m-ETF share: bookkeeping of placed operators and transfers, and the way to a plan.
 *
 * Both decide devices and starts operator by operator. The plan's times then come from replaying the tasks in order of
 * those starts, which is never later (model.md: starts always come from the simulator). */
#include "place/list/list.h"
#include "schedule/sim.h"
#include "util/sort.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

int place_list_new(place_list **out, const moirai_problem *p)
{
    *out = NULL;
    place_list *l = util_alloc(1, sizeof *l);
    if (!l)
        return MOIRAI_EFAIL;
    l->p = p;
    int rc = moirai_sim_new(&l->sim, p);
    rc = rc ? rc : place_units_new(&l->u, p);
    if (rc) {
        place_list_free(l);
        return rc;
    }
    size_t V = (size_t)p->n_ops, E = (size_t)p->n_edges, slots = (size_t)l->sim->n_slots;
    l->device = util_alloc(V, sizeof *l->device);
    l->start_ns = util_alloc(V, sizeof *l->start_ns);
    l->finish_ns = util_alloc(V, sizeof *l->finish_ns);
    l->arrival_ns = util_alloc(slots, sizeof *l->arrival_ns);
    l->unit_device = util_alloc((size_t)l->u->n, sizeof *l->unit_device);
    l->log = util_alloc(V + E, sizeof *l->log);
    l->log_start_ns = util_alloc(V + E, sizeof *l->log_start_ns);
    l->input = util_alloc(E, sizeof *l->input);
    if (!l->device || !l->start_ns || !l->finish_ns || !l->arrival_ns || !l->unit_device || !l->log ||
        !l->log_start_ns || !l->input) {
        place_list_free(l);
        return MOIRAI_EFAIL;
    }
    place_list_clear(l);
    *out = l;
    return 0;
}

void place_list_clear(place_list *l)
{
    const moirai_problem *p = l->p;
    for (int32_t i = 0; i < p->n_ops; i++)
        l->device[i] = MOIRAI_NONE;
    for (int64_t s = 0; s < l->sim->n_slots; s++)
        l->arrival_ns[s] = MOIRAI_UNKNOWN;
    for (int32_t unit = 0; unit < l->u->n; unit++)
        l->unit_device[unit] = MOIRAI_NONE;
    memcpy(l->room_bytes, p->device_memory_bytes, (size_t)p->n_devices * sizeof *l->room_bytes);
    l->n_log = 0;
    l->overfull = false;
}

void place_list_free(place_list *l)
{
    if (!l)
        return;
    moirai_sim_free(l->sim);
    place_units_free(l->u);
    free(l->device);
    free(l->start_ns);
    free(l->finish_ns);
    free(l->arrival_ns);
    free(l->unit_device);
    free(l->log);
    free(l->log_start_ns);
    free(l->input);
    free(l);
}

device_set place_list_devices(place_list *l, int32_t op)
{
    int32_t unit = l->u->of_op[op];
    device_set open = {{0}};
    if (l->unit_device[unit] != MOIRAI_NONE) {
        device_set_add(&open, l->unit_device[unit]);
        return open;
    }
    bool any = false;
    for (int32_t k = 0; k < l->p->n_devices; k++)
        if (place_unit_may(l->u, unit, k) && l->room_bytes[k] >= l->u->bytes[unit]) {
            device_set_add(&open, k);
            any = true;
        }
    if (any)
        return open;
    l->overfull = true;
    return device_set_of(l->p, op);
}

void place_list_place_op(place_list *l, int32_t op, int32_t device, int64_t start_ns)
{
    int32_t unit = l->u->of_op[op];
    if (l->unit_device[unit] == MOIRAI_NONE) { /* a group takes all its room with its first member */
        l->unit_device[unit] = device;
        l->room_bytes[device] -= l->u->bytes[unit];
    }
    l->device[op] = device;
    l->start_ns[op] = start_ns;
    l->finish_ns[op] = start_ns + moirai_op_ns(l->p, op, device);
    l->log_start_ns[l->n_log] = start_ns;
    l->log[l->n_log++] = op;
}

void place_list_place_transfer(place_list *l, int32_t slot, int64_t start_ns, int64_t ns)
{
    l->arrival_ns[slot] = start_ns + ns;
    l->log_start_ns[l->n_log] = start_ns;
    l->log[l->n_log++] = l->p->n_ops + (moirai_task)slot;
}

static int by_arrival(const void *left, const void *right, void *data)
{
    const place_list *l = data;
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    int64_t x = l->finish_ns[l->p->tensor_producer[l->p->op_in[a]]];
    int64_t y = l->finish_ns[l->p->tensor_producer[l->p->op_in[b]]];
    if (x != y)
        return x < y ? -1 : 1;
    return (a > b) - (a < b);
}

const int32_t *place_list_inputs(place_list *l, int32_t op)
{
    int32_t begin = l->p->op_in_off[op], n = l->p->op_in_off[op + 1] - begin;
    int32_t *input = l->input + begin;
    for (int32_t j = 0; j < n; j++)
        input[j] = begin + j;
    if (n > 1)
        qsort_r(input, (size_t)n, sizeof *input, by_arrival, l);
    return input;
}

int place_list_plan(moirai_plan **out, place_list *l, const util_stop *stop)
{
    const moirai_problem *p = l->p;
    moirai_sim *sim = l->sim;
    moirai_task *order = NULL;
    if (!l->overfull) {
        int32_t n = (int32_t)l->n_log;
        order = util_alloc((size_t)n, sizeof *order);
        if (!order)
            return MOIRAI_EFAIL;
        /* Placed in an order of precedence: a stable sort keeps it among tasks that start together. */
        for (int32_t j = 0; j < n; j++) {
            moirai_task task = l->log[j];
            int64_t finish = task < p->n_ops ? l->finish_ns[task] : l->arrival_ns[task - p->n_ops];
            sim->key[j] = (uint64_t)l->log_start_ns[j] << 1 | (finish > l->log_start_ns[j]);
            sim->item[j] = j;
        }
        util_sort(sim->key, sim->item, sim->key_spare, sim->item_spare, n);
        for (int32_t j = 0; j < n; j++)
            order[j] = l->log[sim->item[j]];
    }
    schedule_sim_obey(sim, stop);
    int rc = place_fit_plan(out, sim, p, l->u, l->device, NULL, order, l->n_log, stop);
    free(order);
    return rc;
}

typedef struct ranks {
    const moirai_problem *p;
    const int64_t *rank;
} ranks;

static int by_rank(const void *left, const void *right, void *data)
{
    const ranks *x = data;
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    if (x->rank[a] != x->rank[b])
        return x->rank[a] > x->rank[b] ? -1 : 1;
    return x->p->topo_rank[a] < x->p->topo_rank[b] ? -1 : 1;
}

void place_list_by_rank(int32_t *order, const int64_t *rank, const moirai_problem *p)
{
    qsort_r(order, (size_t)p->n_ops, sizeof *order, by_rank, &(ranks){p, rank});
}

int place_list_late(const moirai_problem *p, int32_t n_placed)
{
    return moirai_error(MOIRAI_ELIMIT, "the time was up when %d of %d operators were placed", n_placed, p->n_ops);
}
