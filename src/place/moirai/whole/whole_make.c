/* Making and freeing a state of the whole graph (whole_sim.c): its tables, O(V + E). */
#include "place/moirai/incumbent/engine_tuning.h"
#include "place/moirai/whole/whole_sim.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/paths.h"

void place_whole_free(place_whole *w)
{
    if (!w)
        return;
    util_release(&w->memory);
    place_units_free(w->units);
    free(w);
}

static bool allocate(place_whole *w)
{
    const moirai_problem *p = w->p;
    size_t V = (size_t)p->n_ops, E = (size_t)p->n_edges, K = (size_t)p->n_devices, marks = (size_t)w->n_marks;
    size_t slots = w->in.per_edge ? E : (size_t)p->n_tensors * K, lines = (size_t)w->n_lines;
#define TAKE(field, n) UTIL_TAKE(&w->memory, w->field, n)
    TAKE(in.off, V + 1);
    TAKE(in.producer, E);
    TAKE(in.slot, E);
    TAKE(in.class_, E);
    TAKE(in.least_tail_ns, V * K);
    TAKE(device, V);
    TAKE(order, V);
    TAKE(position, V);
    TAKE(finish_ns, V);
    TAKE(slot, slots);
    TAKE(bytes, K);
    TAKE(mark_ns, marks * lines);
    TAKE(part_ns, marks);
    TAKE(late.start_ns, V);
    TAKE(late.finish_ns, V);
    TAKE(late.mark_ns, marks * lines);
    TAKE(late.need_ns, V);
    TAKE(late.slot_need_ns, slots);
    TAKE(trial.moved.op, V);
    TAKE(trial.moved.from, V);
    TAKE(trial.cut.order, V);
    TAKE(trial.cut.spare, V);
    TAKE(trial.mark_of_op, V);
    TAKE(trial.line_ns, lines);
    TAKE(trial.mark_ns, marks * lines);
    TAKE(trial.part_ns, marks);
    TAKE(trial.finish_log, V);
    TAKE(trial.slot_log, E);
#undef TAKE
    return !w->memory.failed;
}

/* Devices, then ports or channels. */
static int32_t count_lines(const moirai_problem *p)
{
    int32_t K = p->n_devices;
    return p->congestion == MOIRAI_CONGESTION_PORT ? 3 * K : p->congestion == MOIRAI_CONGESTION_CHANNEL ? K + K * K : K;
}

/* Transfers of every tensor to every device, and when each line is free at every mark. */
bool place_whole_fits(const moirai_problem *p)
{
    double K = p->n_devices, slots = p->flow == MOIRAI_FLOW_EDGE ? p->n_edges : p->n_tensors * K;
    double bytes = slots * (sizeof(place_whole_slot) + 2 * sizeof(int64_t)) +
                   (p->n_ops / (double)PLACE_WHOLE_STRIDE + 2) * count_lines(p) * 4 * sizeof(int64_t) +
                   p->n_ops * K * sizeof(int64_t);
    return bytes <= MANY_MOST_BYTES;
}

static void flatten_inputs(place_whole *w)
{
    const moirai_problem *p = w->p;
    memcpy(w->in.off, p->op_in_off, sizeof *w->in.off * ((size_t)p->n_ops + 1));
    for (int32_t j = 0; j < p->op_in_off[p->n_ops]; j++) {
        int32_t t = p->op_in[j];
        w->in.producer[j] = p->tensor_producer[t];
        w->in.slot[j] = w->in.per_edge ? p->op_in_edge[j] : t * w->K;
        w->in.class_[j] = p->tensor_class[t] * w->K * w->K;
    }
}

int place_whole_new(place_whole **out, const moirai_problem *p, const util_stop *stop)
{
    *out = NULL;
    place_whole *w = util_alloc(1, sizeof *w);
    if (!w)
        return MOIRAI_EFAIL;
    w->p = p;
    w->n = p->n_ops;
    w->K = p->n_devices;
    w->in.per_edge = p->flow == MOIRAI_FLOW_EDGE;
    w->n_lines = count_lines(p);
    w->n_marks = (w->n + PLACE_WHOLE_STRIDE - 1) / PLACE_WHOLE_STRIDE + 1;
    if (!allocate(w) || place_units_new(&w->units, p)) {
        place_whole_free(w);
        return MOIRAI_EFAIL;
    }
    flatten_inputs(w);
    schedule_tails(w->in.least_tail_ns, &(schedule_paths){.p = p, .stop = stop});
    *out = w;
    return 0;
}
