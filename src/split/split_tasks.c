/* Segments and transfers as tasks that wait for each other, the way that the runtime runs them.
 *
 * A segment starts when the one before it on its device is done and all that it reads is there; a transfer when its
 * segment is done, after the one sent before it. Tasks 0 to n_segments - 1 are segments, the others transfers. */
#include "split/split_tasks.h"

#include <stdlib.h>

#include "util/util.h"

static void find_readers(split_tasks *x)
{
    const moirai_graph *g = x->p->units;
    for (int32_t i = 0; i < x->p->n_transfers; i++) {
        const split_transfer *t = &x->p->transfer[i];
        for (int32_t e = g->tensor_reader_off[t->tensor]; e < g->tensor_reader_off[t->tensor + 1]; e++)
            if (x->p->unit_device[g->tensor_reader[e]] == t->to) {
                x->reader_of[x->n_readers] = i;
                x->reader[x->n_readers++] = g->tensor_reader[e];
            }
    }
}

int split_tasks_init(split_tasks *x, const split_plan *p)
{
    const moirai_graph *g = p->units;
    size_t units = (size_t)g->n_ops, transfers = (size_t)p->n_transfers, readers = 0;
    *x = (split_tasks){.p = p};
    for (int32_t i = 0; i < p->n_transfers; i++)
        readers +=
            (size_t)(g->tensor_reader_off[p->transfer[i].tensor + 1] - g->tensor_reader_off[p->transfer[i].tensor]);
    if (readers + units + 2 * transfers > INT32_MAX)
        return moirai_error(MOIRAI_EFAIL, "%s: too many transfers", p->label);
    x->reader_of = util_alloc(readers, sizeof *x->reader_of);
    x->reader = util_alloc(readers, sizeof *x->reader);
    x->last_sent = util_alloc((size_t)p->n_devices, sizeof *x->last_sent);
    int rc = schedule_tasks_init(&x->tasks, units + transfers, units + 2 * transfers + readers);
    if (rc || !x->reader_of || !x->reader || !x->last_sent)
        return MOIRAI_EFAIL;
    find_readers(x);
    return 0;
}

void split_tasks_free(split_tasks *x)
{
    schedule_tasks_free(&x->tasks);
    free(x->reader_of);
    free(x->reader);
    free(x->last_sent);
}

static void lay_devices(split_tasks *x, const int32_t *unit_segment, int64_t price_ns)
{
    const split_plan *p = x->p;
    for (int32_t k = 0; k < p->n_devices; k++) {
        int32_t before = MOIRAI_NONE;
        for (int32_t at = p->device_off[k]; at < p->device_off[k + 1]; at++) {
            int32_t unit = p->order[at], segment = unit_segment[unit];
            if (segment != before)
                x->tasks.length_ns[segment] = (double)price_ns;
            if (segment != before && before != MOIRAI_NONE)
                schedule_tasks_wait(&x->tasks, segment, before);
            x->tasks.length_ns[segment] += (double)(p->unit_finish_ns[unit] - p->unit_start_ns[unit]);
            before = segment;
        }
    }
}

bool split_tasks_play(split_tasks *x, const int32_t *unit_segment, int32_t n_segments, int64_t price_ns, double *end_ns)
{
    const split_plan *p = x->p;
    schedule_tasks_reset(&x->tasks, n_segments + p->n_transfers);
    lay_devices(x, unit_segment, price_ns);
    for (int32_t k = 0; k < p->n_devices; k++)
        x->last_sent[k] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_transfers; i++) {
        const split_transfer *t = &p->transfer[i];
        int32_t me = n_segments + i;
        x->tasks.length_ns[me] = (double)(t->finish_ns - t->start_ns);
        schedule_tasks_wait(&x->tasks, me, unit_segment[p->units->tensor_producer[t->tensor]]);
        if (x->last_sent[t->from] != MOIRAI_NONE)
            schedule_tasks_wait(&x->tasks, me, x->last_sent[t->from]);
        x->last_sent[t->from] = me;
    }
    for (int32_t i = 0; i < x->n_readers; i++)
        schedule_tasks_wait(&x->tasks, unit_segment[x->reader[i]], n_segments + x->reader_of[i]);
    return schedule_tasks_play(&x->tasks, end_ns);
}
