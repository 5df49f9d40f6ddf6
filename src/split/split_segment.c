/* Segments: as few sub-models as the schedule allows.
 *
 * A device runs its operators in the plan's order. A run of them may become one sub-model [f..l] if that delays
 * nothing: a sub-model starts when everything that it reads has arrived, so each transfer into it must have finished,
 * in the plan, by the start of f; and its results leave when all of it is done, so each transfer out of it must start,
 * in the plan, no earlier than the finish of l. A part of such a run is such a run, too: taking as many operators as
 * possible from the left gives the least number of segments. O(operators + edges).
 *
 * Segments, and transfers in their sender's order, then wait for each other in the order of planned times, so nothing
 * can wait in a circle, except where times are equal: operators and transfers that take no time. Whether that has
 * happened is looked for; then segments end at every transfer, where the graph's own order excludes circles. */
#include "split/split.h"

#include <stdlib.h>

#include "util/util.h"

typedef struct limits {
    int64_t *arrives_ns; /* unit -> the last finish of a transfer that it waits for, or -1 */
    int64_t *leaves_ns;  /* unit -> the first start of a transfer of its results, or INT64_MAX */
} limits;

static void find_limits(const split_plan *p, limits *l)
{
    const moirai_graph *g = p->units;
    for (int32_t i = 0; i < g->n_ops; i++) {
        l->arrives_ns[i] = -1;
        l->leaves_ns[i] = INT64_MAX;
    }
    for (int32_t x = 0; x < p->n_transfers; x++) {
        const split_transfer *t = &p->transfer[x];
        int32_t maker = g->tensor_producer[t->tensor];
        l->leaves_ns[maker] = UTIL_MIN(l->leaves_ns[maker], t->start_ns);
        for (int32_t e = g->tensor_reader_off[t->tensor]; e < g->tensor_reader_off[t->tensor + 1]; e++) {
            int32_t reader = g->tensor_reader[e];
            if (p->unit_device[reader] == t->to)
                l->arrives_ns[reader] = UTIL_MAX(l->arrives_ns[reader], t->finish_ns);
        }
    }
}

static void open_segment(split_plan *p, int32_t device, int32_t at)
{
    split_segment *s = &p->segment[p->n_segments++];
    int32_t unit = p->order[at];
    *s = (split_segment){.device = device, .first = at, .start_ns = p->unit_start_ns[unit]};
}

static void add_unit(split_plan *p, int32_t unit)
{
    split_segment *s = &p->segment[p->n_segments - 1];
    s->n_units++;
    s->finish_ns = UTIL_MAX(s->finish_ns, p->unit_finish_ns[unit]);
    s->work_ns += p->unit_finish_ns[unit] - p->unit_start_ns[unit];
    p->unit_segment[unit] = p->n_segments - 1;
}

static void group(split_plan *p, const limits *l, bool careful)
{
    p->n_segments = 0;
    for (int32_t k = 0; k < p->n_devices; k++) {
        int64_t leaves_ns = INT64_MAX; /* the first departure from the open segment */
        for (int32_t at = p->device_off[k]; at < p->device_off[k + 1]; at++) {
            int32_t unit = p->order[at];
            bool cut = at == p->device_off[k];
            if (!cut && careful)
                cut = l->arrives_ns[unit] >= 0 || leaves_ns != INT64_MAX;
            else if (!cut)
                cut =
                    l->arrives_ns[unit] > p->segment[p->n_segments - 1].start_ns || leaves_ns < p->unit_finish_ns[unit];
            if (cut) {
                open_segment(p, k, at);
                leaves_ns = INT64_MAX;
            }
            add_unit(p, unit);
            leaves_ns = UTIL_MIN(leaves_ns, l->leaves_ns[unit]);
        }
    }
}

/* ---- circles ---- tasks are segments, then transfers; edges lead from a task to those that wait for it. */

typedef struct waits {
    int32_t n, n_edges;
    int32_t *from, *to;
    int32_t *missing, *offset, *next, *queue;
} waits;

static void add_wait(waits *w, int32_t from, int32_t to)
{
    w->from[w->n_edges] = from;
    w->to[w->n_edges++] = to;
}

static void collect(waits *w, const split_plan *p, int32_t *last_sent)
{
    const moirai_graph *g = p->units;
    for (int32_t s = 1; s < p->n_segments; s++)
        if (p->segment[s].device == p->segment[s - 1].device)
            add_wait(w, s - 1, s);
    for (int32_t k = 0; k < p->n_devices; k++)
        last_sent[k] = MOIRAI_NONE;
    for (int32_t x = 0; x < p->n_transfers; x++) {
        const split_transfer *t = &p->transfer[x];
        int32_t me = p->n_segments + x;
        add_wait(w, p->unit_segment[g->tensor_producer[t->tensor]], me);
        if (last_sent[t->from] != MOIRAI_NONE)
            add_wait(w, last_sent[t->from], me);
        last_sent[t->from] = me;
        for (int32_t e = g->tensor_reader_off[t->tensor]; e < g->tensor_reader_off[t->tensor + 1]; e++)
            if (p->unit_device[g->tensor_reader[e]] == t->to)
                add_wait(w, me, p->unit_segment[g->tensor_reader[e]]);
    }
}

static bool all_run(waits *w)
{
    for (int32_t e = 0; e < w->n_edges; e++) {
        w->missing[w->to[e]]++;
        w->offset[w->from[e] + 1]++;
    }
    for (int32_t i = 0; i < w->n; i++)
        w->offset[i + 1] += w->offset[i];
    for (int32_t e = w->n_edges - 1; e >= 0; e--)
        w->next[w->offset[w->from[e] + 1] - 1 - w->queue[w->from[e]]++] = w->to[e];
    int32_t n = 0, done = 0;
    for (int32_t i = 0; i < w->n; i++)
        w->queue[i] = 0;
    for (int32_t i = 0; i < w->n; i++)
        if (!w->missing[i])
            w->queue[n++] = i;
    while (done < n) {
        int32_t i = w->queue[done++];
        for (int32_t e = w->offset[i]; e < w->offset[i + 1]; e++)
            if (!--w->missing[w->next[e]])
                w->queue[n++] = w->next[e];
    }
    return n == w->n;
}

static int runs_through(bool *out, const split_plan *p)
{
    size_t n = (size_t)p->n_segments + (size_t)p->n_transfers, most = n + (size_t)p->n_transfers;
    for (int32_t x = 0; x < p->n_transfers; x++) {
        int32_t t = p->transfer[x].tensor;
        most += (size_t)(p->units->tensor_reader_off[t + 1] - p->units->tensor_reader_off[t]);
    }
    if (most > INT32_MAX)
        return moirai_error(MOIRAI_EFAIL, "%s: too many transfers", p->label);
    waits w = {.n = (int32_t)n,
               .from = util_alloc(most, sizeof(int32_t)),
               .to = util_alloc(most, sizeof(int32_t)),
               .missing = util_alloc(n, sizeof(int32_t)),
               .offset = util_alloc(n + 1, sizeof(int32_t)),
               .next = util_alloc(most, sizeof(int32_t)),
               .queue = util_alloc(n, sizeof(int32_t))};
    int32_t *last_sent = util_alloc((size_t)p->n_devices, sizeof *last_sent);
    int rc = w.from && w.to && w.missing && w.offset && w.next && w.queue && last_sent ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        collect(&w, p, last_sent);
        *out = all_run(&w);
    }
    free(w.from);
    free(w.to);
    free(w.missing);
    free(w.offset);
    free(w.next);
    free(w.queue);
    free(last_sent);
    return rc;
}

int split_segments(split_plan *p)
{
    size_t n = (size_t)p->units->n_ops;
    limits l = {util_alloc(n, sizeof *l.arrives_ns), util_alloc(n, sizeof *l.leaves_ns)};
    p->segment = util_alloc(n, sizeof *p->segment);
    p->unit_segment = util_alloc(n, sizeof *p->unit_segment);
    bool fine = true;
    int rc = l.arrives_ns && l.leaves_ns && p->segment && p->unit_segment ? 0 : MOIRAI_EFAIL;
    if (!rc) {
        find_limits(p, &l);
        group(p, &l, false);
        rc = runs_through(&fine, p);
    }
    if (!rc && !fine) {
        group(p, &l, true);
        rc = runs_through(&fine, p);
    }
    if (!rc && !fine)
        rc = moirai_error(MOIRAI_EINPUT, "%s: the order of operators and transfers waits for itself", p->label);
    free(l.arrives_ns);
    free(l.leaves_ns);
    return rc;
}
