/* Making and freeing a state of the whole graph (whole_sim.c): its tables, O(V + E). */
#include "place/moirai/whole/whole_sim.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/paths.h"

void place_whole_free(place_whole *w)
{
    if (!w)
        return;
    void *all[] = {w->in_off,        w->in_producer, w->in_slot,      w->in_class,      w->least_tail_ns,
                   w->device,        w->order,       w->position,     w->finish_ns,     w->slot,
                   w->bytes,         w->mark_ns,     w->part_ns,      w->late_start_ns, w->late_finish_ns,
                   w->late_mark_ns,  w->need_ns,     w->slot_need_ns, w->moved_op,      w->moved_from,
                   w->cut_order,     w->cut_spare,   w->mark_of_op,   w->line_ns,       w->trial_mark_ns,
                   w->trial_part_ns, w->finish_log,  w->slot_log};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    place_units_free(w->units);
    free(w);
}

static bool allocate(place_whole *w)
{
    const moirai_problem *p = w->p;
    size_t V = (size_t)p->n_ops, E = (size_t)p->n_edges, K = (size_t)p->n_devices, marks = (size_t)w->n_marks;
    size_t slots = w->per_edge ? E : (size_t)p->n_tensors * K, lines = (size_t)w->n_lines;
#define TAKE(field, n) (w->field = util_alloc((n), sizeof *w->field)) != NULL
    return TAKE(in_off, V + 1) && TAKE(in_producer, E) && TAKE(in_slot, E) && TAKE(in_class, E) &&
           TAKE(least_tail_ns, V * K) && TAKE(device, V) && TAKE(order, V) && TAKE(position, V) && TAKE(finish_ns, V) &&
           TAKE(slot, slots) && TAKE(bytes, K) && TAKE(mark_ns, marks * lines) && TAKE(part_ns, marks) &&
           TAKE(late_start_ns, V) && TAKE(late_finish_ns, V) && TAKE(late_mark_ns, marks * lines) && TAKE(need_ns, V) &&
           TAKE(slot_need_ns, slots) && TAKE(moved_op, V) && TAKE(moved_from, V) && TAKE(cut_order, V) &&
           TAKE(cut_spare, V) && TAKE(mark_of_op, V) && TAKE(line_ns, lines) && TAKE(trial_mark_ns, marks * lines) &&
           TAKE(trial_part_ns, marks) && TAKE(finish_log, V) && TAKE(slot_log, E);
#undef TAKE
}

static void flatten_inputs(place_whole *w)
{
    const moirai_problem *p = w->p;
    memcpy(w->in_off, p->op_in_off, sizeof *w->in_off * ((size_t)p->n_ops + 1));
    for (int32_t j = 0; j < p->op_in_off[p->n_ops]; j++) {
        int32_t t = p->op_in[j];
        w->in_producer[j] = p->tensor_producer[t];
        w->in_slot[j] = w->per_edge ? p->op_in_edge[j] : t * w->K;
        w->in_class[j] = p->tensor_class[t] * w->K * w->K;
    }
}

int place_whole_new(place_whole **out, const moirai_problem *p, const util_stop *stop)
{
    *out = NULL;
    place_whole *w = util_alloc(1, sizeof *w);
    if (!w)
        return MOIRAI_EFAIL;
    int32_t K = p->n_devices;
    w->p = p;
    w->n = p->n_ops;
    w->K = K;
    w->per_edge = p->flow == MOIRAI_FLOW_EDGE;
    w->port = p->congestion == MOIRAI_CONGESTION_PORT;
    w->n_lines = p->congestion == MOIRAI_CONGESTION_PORT      ? 3 * K
                 : p->congestion == MOIRAI_CONGESTION_CHANNEL ? K + K * K
                                                              : K;
    w->n_marks = (w->n + PLACE_WHOLE_STRIDE - 1) / PLACE_WHOLE_STRIDE + 1;
    if (!allocate(w) || place_units_new(&w->units, p)) {
        place_whole_free(w);
        return MOIRAI_EFAIL;
    }
    flatten_inputs(w);
    schedule_tails(w->least_tail_ns, &(schedule_paths){.p = p, .stop = stop});
    *out = w;
    return 0;
}
