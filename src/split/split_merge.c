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
#include "split/split_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define MOST_STEPS 300000000ll
enum { MOST_PASSES = 6 };

typedef struct score {
    double makespan_ns;
    double sum_ns; /* of the finishes of transfers and devices */
} score;

typedef struct merger {
    const split_plan *p;
    int64_t price_ns;
    split_tasks tasks;
    bool *cut;        /* [position in order] a segment starts here */
    bool *asked;      /* the cuts that the schedule asks for */
    int32_t *segment; /* [unit] */
    int64_t steps;
} merger;

static void merger_free(merger *m)
{
    split_tasks_free(&m->tasks);
    free(m->cut);
    free(m->asked);
    free(m->segment);
}

static int merger_init(merger *m)
{
    size_t units = (size_t)m->p->units->n_ops;
    int rc = split_tasks_init(&m->tasks, m->p);
    m->cut = util_alloc(units, sizeof *m->cut);
    m->asked = util_alloc(units, sizeof *m->asked);
    m->segment = util_alloc(units, sizeof *m->segment);
    return rc || !m->cut || !m->asked || !m->segment ? MOIRAI_EFAIL : 0;
}

/* False: it waits for itself. */
static bool play(merger *m, score *out)
{
    const split_plan *p = m->p;
    int32_t n = 0;
    for (int32_t at = 0; at < p->units->n_ops; at++) {
        n += m->cut[at];
        m->segment[p->order[at]] = n - 1;
    }
    *out = (score){0};
    bool runs = split_tasks_play(&m->tasks, m->segment, n, m->price_ns, &out->makespan_ns);
    const double *finish_ns = m->tasks.tasks.finish_ns;
    for (int32_t x = 0; x < p->n_transfers; x++)
        out->sum_ns += finish_ns[n + x];
    for (int32_t k = 0; k < p->n_devices; k++)
        if (p->device_off[k] < p->device_off[k + 1])
            out->sum_ns += finish_ns[m->segment[p->order[p->device_off[k + 1] - 1]]];
    return runs;
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
        if ((m->steps += m->p->units->n_ops + m->p->n_transfers + m->tasks.n_readers) > MOST_STEPS)
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
    int rc = merger_init(&m);
    if (!rc) {
        for (int32_t i = 0; i < p->n_segments; i++)
            m.cut[p->segment[i].first] = m.asked[p->segment[i].first] = true;
        rc = merge(&m);
    }
    if (!rc)
        regroup(p, m.cut);
    merger_free(&m);
    return rc;
}
