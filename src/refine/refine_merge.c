/* Several runs of one plan as one.
 *
 * A machine's speed changes from second to second, and a run shows one moment of it. Where a plan was run several times,
 * each of its numbers (end to end, segments, transfers) is taken as their mean without the ends (util_trimmed_mean), before
 * anything is fitted: else ten runs of one plan would outvote one of each other, and its first run would count as an
 * equation of its own. Starts and finishes, which tell who waited for whom, are those of the run whose latency is
 * nearest to that mean. The merged run takes the place of the last one: later runs tell more of what comes next.
 * O(runs^2 x (operators + transfers)). */
#include "refine/refine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool same_plan(const refine_timeline *a, const refine_timeline *b)
{
    bool same = a->n_devices == b->n_devices && a->n_segments == b->n_segments && a->n_transfers == b->n_transfers &&
                a->n_ops == b->n_ops;
    for (int32_t k = 0; k < a->n_devices && same; k++)
        same = !strcmp(a->device[k], b->device[k]);
    for (size_t i = 0; i < a->n_segments && same; i++) {
        const refine_segment *x = &a->segment[i], *y = &b->segment[i];
        same = x->device == y->device && x->first_op == y->first_op && x->n_ops == y->n_ops;
    }
    for (size_t i = 0; i < a->n_ops && same; i++)
        same = a->op_number[i] == b->op_number[i];
    for (size_t i = 0; i < a->n_transfers && same; i++) {
        const refine_transfer *x = &a->transfer[i], *y = &b->transfer[i];
        same = x->from == y->from && x->to == y->to && x->bytes == y->bytes && same_text(x->tensor, y->tensor);
    }
    return same;
}

/* ---- one number of all runs of a plan ---- */

typedef struct group {
    refine_timeline **t;
    size_t n;
    double *value;
} group;

static int64_t latency_of(const refine_timeline *t, size_t i)
{
    (void)i;
    return t->latency_ns;
}

static int64_t segment_of(const refine_timeline *t, size_t i)
{
    return t->segment[i].median_ns;
}

static int64_t transfer_of(const refine_timeline *t, size_t i)
{
    return t->transfer[i].median_ns;
}

static int64_t middle(const group *g, int64_t number_of(const refine_timeline *, size_t), size_t i)
{
    for (size_t k = 0; k < g->n; k++)
        g->value[k] = (double)number_of(g->t[k], i);
    return (int64_t)llround(UTIL_MAX(UTIL_MIN(util_trimmed_mean(g->value, g->n), 4e18), -4e18));
}

/* Leaves the merged run in the place of the last one, and frees the others. */
static void merge(group *g)
{
    refine_timeline *last = g->t[g->n - 1], *typical = last;
    int64_t latency_ns = middle(g, latency_of, 0);
    for (size_t k = 0; k < g->n; k++)
        if (llabs(g->t[k]->latency_ns - latency_ns) < llabs(typical->latency_ns - latency_ns))
            typical = g->t[k];
    for (size_t i = 0; i < last->n_segments; i++)
        typical->segment[i].median_ns = middle(g, segment_of, i);
    for (size_t i = 0; i < last->n_transfers; i++)
        typical->transfer[i].median_ns = middle(g, transfer_of, i);
    typical->latency_ns = latency_ns;
    refine_timeline moved = *typical;
    *typical = *last;
    *last = moved;
    for (size_t k = 0; k + 1 < g->n; k++)
        refine_timeline_free(g->t[k]);
}

int refine_merge(refiner *r)
{
    int32_t kept = 0;
    group g = {.t = util_alloc((size_t)r->n, sizeof *g.t), .value = util_alloc((size_t)r->n, sizeof *g.value)};
    bool *gone = util_alloc((size_t)r->n, sizeof *gone);
    int rc = g.t && g.value && gone ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < r->n && !rc; i++) {
        g.n = 0;
        for (int32_t k = i; k < r->n && !gone[i]; k++)
            if (!gone[k] && (k == i || same_plan(&r->t[i], &r->t[k])))
                g.t[g.n++] = &r->t[k];
        if (g.n < 2)
            continue;
        for (size_t k = 0; k + 1 < g.n; k++)
            gone[g.t[k] - r->t] = true;
        merge(&g);
    }
    for (int32_t i = 0; i < r->n && !rc; i++)
        if (!gone[i])
            r->t[kept++] = r->t[i];
    r->n = rc ? r->n : kept;
    free(g.t);
    free(g.value);
    free(gone);
    return rc;
}
