/* Merging segments: fewer than the schedule asks for, where a segment's own price is more than a delay costs.
 *
 * A plan's times know no price of a sub-model, but a run pays one for each: some microseconds in ONNX Runtime, whatever
 * is in it. Where operators take microseconds themselves, cutting for every transfer costs more than it gains. So
 * neighbours on a device are merged as long as that helps, judged by playing the segments through: a segment takes its
 * price and its operators' times and starts when all that it reads is there; a transfer takes what is planned and
 * starts when all of its segment is done, after the one sent before. A merge stays if the end comes no later, nor, in
 * sum, do the arrivals of transfers and the ends of devices: off the longest path it may use time up only where that
 * delays nobody. A merge that makes segments wait in a circle is none.
 *
 * Greedy from left to right until nothing changes, cuts brought back included, from two starts: all cuts that the
 * schedule asks for, and as few as make no circle. O(cuts x (operators + edges)) per pass; given up beyond MOST_STEPS,
 * where operators are so many that none of this matters much. */
#include "split/split.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define MOST_STEPS 300000000ll
enum { MOST_PASSES = 6 };

typedef struct score {
    int64_t makespan_ns;
    double sum_ns; /* of the finishes of transfers and devices */
} score;

typedef struct merger {
    const split_plan *p;
    int64_t price_ns;
    int32_t n_readers; /* (transfer, unit that waits for it) pairs */
    int32_t *reader_of, *reader;
    bool *cut;   /* [position in order] a segment starts here */
    bool *asked; /* the cuts that the schedule asks for */
    int64_t steps;
    int32_t *segment; /* [unit] */
    int32_t n_segments, n_tasks, n_edges;
    int64_t *length_ns, *ready_ns; /* [task] segments, then transfers */
    int32_t *missing, *first, *queue;
    int32_t *edge_to, *edge_next;
    int32_t *last_sent; /* [device] */
} merger;

static void merger_free(merger *m)
{
    free(m->reader_of);
    free(m->reader);
    free(m->cut);
    free(m->asked);
    free(m->segment);
    free(m->length_ns);
    free(m->ready_ns);
    free(m->missing);
    free(m->first);
    free(m->queue);
    free(m->edge_to);
    free(m->edge_next);
    free(m->last_sent);
}

static int count_readers(int64_t *out, const split_plan *p)
{
    const moirai_graph *g = p->units;
    *out = 0;
    for (int32_t x = 0; x < p->n_transfers; x++)
        *out += g->tensor_reader_off[p->transfer[x].tensor + 1] - g->tensor_reader_off[p->transfer[x].tensor];
    return *out + g->n_ops + 2ll * p->n_transfers > INT32_MAX
               ? moirai_error(MOIRAI_EFAIL, "%s: too many transfers", p->label)
               : 0;
}

static int allocate(merger *m)
{
    int64_t readers;
    const split_plan *p = m->p;
    int rc = count_readers(&readers, p);
    if (rc)
        return rc;
    size_t units = (size_t)p->units->n_ops, tasks = units + (size_t)p->n_transfers;
    size_t edges = units + 2 * (size_t)p->n_transfers + (size_t)readers;
    m->reader_of = util_alloc((size_t)readers, sizeof *m->reader_of);
    m->reader = util_alloc((size_t)readers, sizeof *m->reader);
    m->cut = util_alloc(units, sizeof *m->cut);
    m->asked = util_alloc(units, sizeof *m->asked);
    m->segment = util_alloc(units, sizeof *m->segment);
    m->length_ns = util_alloc(tasks, sizeof *m->length_ns);
    m->ready_ns = util_alloc(tasks, sizeof *m->ready_ns);
    m->missing = util_alloc(tasks, sizeof *m->missing);
    m->first = util_alloc(tasks, sizeof *m->first);
    m->queue = util_alloc(tasks, sizeof *m->queue);
    m->edge_to = util_alloc(edges, sizeof *m->edge_to);
    m->edge_next = util_alloc(edges, sizeof *m->edge_next);
    m->last_sent = util_alloc((size_t)p->n_devices, sizeof *m->last_sent);
    return m->reader_of && m->reader && m->cut && m->asked && m->segment && m->length_ns && m->ready_ns && m->missing &&
                   m->first && m->queue && m->edge_to && m->edge_next && m->last_sent
               ? 0
               : MOIRAI_EFAIL;
}

static void find_readers(merger *m)
{
    const moirai_graph *g = m->p->units;
    for (int32_t x = 0; x < m->p->n_transfers; x++) {
        const split_transfer *t = &m->p->transfer[x];
        for (int32_t e = g->tensor_reader_off[t->tensor]; e < g->tensor_reader_off[t->tensor + 1]; e++)
            if (m->p->unit_device[g->tensor_reader[e]] == t->to) {
                m->reader_of[m->n_readers] = x;
                m->reader[m->n_readers++] = g->tensor_reader[e];
            }
    }
}

/* ---- playing through ---- */

static void lay_segments(merger *m)
{
    const split_plan *p = m->p;
    m->n_segments = 0;
    for (int32_t at = 0; at < p->units->n_ops; at++) {
        int32_t unit = p->order[at];
        if (m->cut[at])
            m->length_ns[m->n_segments++] = m->price_ns;
        m->segment[unit] = m->n_segments - 1;
        m->length_ns[m->n_segments - 1] += p->unit_finish_ns[unit] - p->unit_start_ns[unit];
    }
    m->n_tasks = m->n_segments + p->n_transfers;
    for (int32_t i = 0; i < m->n_tasks; i++) {
        m->ready_ns[i] = m->missing[i] = 0;
        m->first[i] = MOIRAI_NONE;
    }
    m->n_edges = 0;
}

static void add_edge(merger *m, int32_t from, int32_t to)
{
    m->edge_to[m->n_edges] = to;
    m->edge_next[m->n_edges] = m->first[from];
    m->first[from] = m->n_edges++;
    m->missing[to]++;
}

static void lay_edges(merger *m)
{
    const split_plan *p = m->p;
    for (int32_t k = 0; k < p->n_devices; k++) {
        m->last_sent[k] = MOIRAI_NONE;
        for (int32_t at = p->device_off[k] + 1; at < p->device_off[k + 1]; at++)
            if (m->cut[at])
                add_edge(m, m->segment[p->order[at - 1]], m->segment[p->order[at]]);
    }
    for (int32_t x = 0; x < p->n_transfers; x++) {
        const split_transfer *t = &p->transfer[x];
        int32_t task = m->n_segments + x;
        m->length_ns[task] = t->finish_ns - t->start_ns;
        add_edge(m, m->segment[p->units->tensor_producer[t->tensor]], task);
        if (m->last_sent[t->from] != MOIRAI_NONE)
            add_edge(m, m->last_sent[t->from], task);
        m->last_sent[t->from] = task;
    }
    for (int32_t i = 0; i < m->n_readers; i++)
        add_edge(m, m->n_segments + m->reader_of[i], m->segment[m->reader[i]]);
}

/* False: it waits for itself. */
static bool play(merger *m, score *out)
{
    int32_t n = 0, done = 0;
    lay_segments(m);
    lay_edges(m);
    *out = (score){0};
    for (int32_t i = 0; i < m->n_tasks; i++)
        if (!m->missing[i])
            m->queue[n++] = i;
    while (done < n) {
        int32_t i = m->queue[done++];
        int64_t finish_ns = m->ready_ns[i] + m->length_ns[i];
        out->makespan_ns = UTIL_MAX(out->makespan_ns, finish_ns);
        out->sum_ns += i >= m->n_segments ? (double)finish_ns : 0;
        for (int32_t e = m->first[i]; e != MOIRAI_NONE; e = m->edge_next[e]) {
            int32_t to = m->edge_to[e];
            m->ready_ns[to] = UTIL_MAX(m->ready_ns[to], finish_ns);
            if (!--m->missing[to])
                m->queue[n++] = to;
        }
    }
    for (int32_t k = 0; k < m->p->n_devices; k++)
        if (m->p->device_off[k] < m->p->device_off[k + 1]) {
            int32_t last = m->segment[m->p->order[m->p->device_off[k + 1] - 1]];
            out->sum_ns += (double)(m->ready_ns[last] + m->length_ns[last]);
        }
    return n == m->n_tasks;
}

static bool is_better(const score *a, const score *b)
{
    return a->makespan_ns < b->makespan_ns || (a->makespan_ns == b->makespan_ns && a->sum_ns <= b->sum_ns);
}

/* ---- merging ---- */

static bool is_inner(const split_plan *p, int32_t at)
{
    return p->unit_device[p->order[at]] == p->unit_device[p->order[at - 1]];
}

/* One by one, cuts are taken away (or, with `back`, those of `asked` are brought back) where that is better, or, with
 * `anyhow`, wherever it makes no circle. True if something changed. */
static bool change_cuts(merger *m, score *best, bool back, bool anyhow)
{
    score now;
    bool changed = false;
    for (int32_t at = 1; at < m->p->units->n_ops; at++) {
        if (!m->asked[at] || m->cut[at] == back || !is_inner(m->p, at))
            continue;
        if ((m->steps += m->p->units->n_ops + m->p->n_transfers + m->n_readers) > MOST_STEPS)
            return false;
        m->cut[at] = back;
        bool runs = play(m, &now), better = runs && is_better(&now, best);
        if (better ? back && now.makespan_ns == best->makespan_ns : !runs || !anyhow)
            m->cut[at] = !back; /* a cut for nothing is none */
        else
            *best = now, changed = true;
    }
    return changed;
}

static void improve(merger *m, score *best)
{
    for (int pass = 0; pass < MOST_PASSES; pass++)
        if (!change_cuts(m, best, false, false) && !change_cuts(m, best, true, false))
            return;
}

/* From the segments that the schedule asks for, and from as few as there can be: the better end. */
static int merge(merger *m)
{
    score fine, coarse;
    size_t n = (size_t)m->p->units->n_ops;
    bool *kept = util_alloc(n, sizeof *kept);
    if (!kept)
        return MOIRAI_EFAIL;
    if (play(m, &fine)) {
        improve(m, &fine);
        memcpy(kept, m->cut, n * sizeof *kept);
        memcpy(m->cut, m->asked, n * sizeof *kept);
        play(m, &coarse);
        change_cuts(m, &coarse, false, true);
        improve(m, &coarse);
        if (m->steps > MOST_STEPS || fine.makespan_ns < coarse.makespan_ns)
            memcpy(m->cut, kept, n * sizeof *kept);
    }
    free(kept);
    return 0;
}

/* The segments that the cuts make, in the place of the old ones. */
static void regroup(split_plan *p, const bool *cut)
{
    p->n_segments = 0;
    for (int32_t at = 0; at < p->units->n_ops; at++) {
        int32_t unit = p->order[at];
        if (cut[at])
            p->segment[p->n_segments++] =
                (split_segment){.device = p->unit_device[unit], .first = at, .start_ns = p->unit_start_ns[unit]};
        split_segment *s = &p->segment[p->n_segments - 1];
        s->n_units++;
        s->finish_ns = UTIL_MAX(s->finish_ns, p->unit_finish_ns[unit]);
        s->work_ns += p->unit_finish_ns[unit] - p->unit_start_ns[unit];
        p->unit_segment[unit] = p->n_segments - 1;
    }
}

int split_merge(split_plan *p, int64_t price_ns)
{
    merger m = {.p = p, .price_ns = price_ns};
    if (price_ns <= 0 || p->n_segments < 2)
        return 0;
    int rc = allocate(&m);
    if (!rc) {
        find_readers(&m);
        for (int32_t i = 0; i < p->n_segments; i++)
            m.cut[p->segment[i].first] = m.asked[p->segment[i].first] = true;
        rc = merge(&m);
    }
    if (!rc)
        regroup(p, m.cut);
    merger_free(&m);
    return rc;
}
