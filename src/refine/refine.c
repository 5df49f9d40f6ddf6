/* Measured segments back into the operators' times.
 *
 * Times of single operators never add up to the time of a segment: caches are warm or not, ONNX Runtime fuses across
 * what was measured apart, a segment has a price of its own, and on one machine the ranks share memory. Runs tell what
 * segments really took. All timelines that are given count together:
 *
 * 1. The times of operators on a device (refine_fit.c). Operators that are equal stay equal: what one segment says of a
 *    matrix product holds for all like it, on that device, so that a plan can't win by moving an operator to where
 *    it just was not measured yet. A run of (nearly) the whole network on one device is exact.
 *    Several runs of one plan are one first (refine_merge.c).
 * 2. With a cluster, bandwidths (refine_rates.c), what a segment takes beside its operators, and the latencies (refine_links.c), since it is a cut
 *    that causes both.
 * 3. What a cut costs beyond that (refine_replay.c): the runs are played through with the new times, and latencies
 * become such that they end when they did.
 *
 * Operators that ran nowhere on a device follow that device; devices that ran nothing follow all. Medians over the runs
 * of a timeline are the runner's job. */
#include <stdlib.h>
#include <string.h>

#include "refine/refine.h"
#include "util/util.h"

/* ---- names ---- */

static int find_key(const refiner *r, refine_timeline *t, int32_t device)
{
    for (int32_t k = 0; k < r->g->n_time_keys; k++)
        if (!strcmp(r->g->time_key[k], t->device[device])) {
            t->key[device] = k;
            return 0;
        }
    return moirai_error(MOIRAI_EINPUT, "%s: device '%.200s': the graph has no times of it", t->label,
                        t->device[device]);
}

static int find_op(const refiner *r, refine_timeline *t, int32_t index, int32_t device, bool *seen)
{
    const char *name = t->op[index], *where = t->device[device];
    int32_t op = moirai_graph_find(r->g, name);
    if (op == MOIRAI_NONE)
        return moirai_error(MOIRAI_EINPUT, "%s: operator '%.200s' is not in the graph", t->label, name);
    int64_t at = refine_cell(r->g, op, t->key[device]);
    if (r->g->time_ns[at] < 0)
        return moirai_error(MOIRAI_EINPUT, "%s: operator '%.200s' has no time for '%.200s'", t->label, name, where);
    if (seen[at])
        return moirai_error(MOIRAI_EINPUT, "%s: operator '%.200s' runs twice on '%.200s'", t->label, name, where);
    seen[at] = true;
    t->op_number[index] = op;
    return 0;
}

static int find_devices(const refiner *r, refine_timeline *t)
{
    for (int32_t k = 0; r->c && k < t->n_devices; k++) {
        t->number[k] = moirai_cluster_find(r->c, t->device[k]);
        if (t->number[k] < 0)
            return moirai_error(MOIRAI_EINPUT, "%s: device '%.200s' is not in cluster '%.200s'", t->label, t->device[k],
                                r->c->name);
    }
    return 0;
}

static int find_names(const refiner *r, refine_timeline *t)
{
    bool *seen = util_alloc((size_t)r->g->n_ops * (size_t)r->g->n_time_keys, sizeof *seen);
    t->op_number = util_alloc(t->n_ops, sizeof *t->op_number);
    int rc = seen && t->op_number ? find_devices(r, t) : MOIRAI_EFAIL;
    for (size_t s = 0; s < t->n_segments && !rc; s++) {
        const refine_segment *x = &t->segment[s];
        int64_t sum = 0;
        rc = find_key(r, t, x->device);
        for (int32_t i = 0; i < x->n_ops && !rc; i++) {
            rc = find_op(r, t, x->first_op + i, x->device, seen);
            int64_t at = refine_cell(r->g, t->op_number[x->first_op + i], t->key[x->device]);
            if (!rc && !util_add64(&sum, sum, r->g->time_ns[at]))
                rc = moirai_error(MOIRAI_EINPUT, "%s: the times of a segment do not fit 64 bits", t->label);
        }
    }
    free(seen);
    return rc;
}

/* ---- the report ---- */

static int sum_up(const refiner *r, const refine_timeline *t, moirai_refine_report *out)
{
    size_t n = 0;
    double *ratio = util_alloc(t->n_segments, sizeof *ratio);
    if (!ratio)
        return MOIRAI_EFAIL;
    *out = (moirai_refine_report){.n_transfers = r->c ? (int32_t)t->n_transfers : 0};
    for (size_t s = 0; s < t->n_segments; s++) {
        const refine_segment *x = &t->segment[s];
        double sum = 0;
        if (x->median_ns <= 0 || !x->n_ops)
            continue;
        for (int32_t i = 0; i < x->n_ops; i++)
            sum += (double)r->g->time_ns[refine_cell(r->g, t->op_number[x->first_op + i], t->key[x->device])];
        if (sum > 0)
            ratio[n++] = (double)x->median_ns / sum;
        out->n_segments++;
        out->n_ops += x->n_ops;
    }
    out->median = refine_median(ratio, n); /* sorts */
    out->least = n ? ratio[0] : 0;
    out->most = n ? ratio[n - 1] : 0;
    free(ratio);
    return 0;
}

static int64_t usual_price(const refiner *r)
{
    double price[MOIRAI_MASK_DEVICES];
    size_t n = 0;
    for (int32_t k = 0; k < r->g->n_time_keys && n < MOIRAI_MASK_DEVICES; k++)
        if (r->segment_ns[k] >= 0)
            price[n++] = (double)r->segment_ns[k];
    return (int64_t)refine_median(price, n);
}

/* ---- all of it ---- */

static int allocate(refiner *r)
{
    size_t cells = (size_t)r->g->n_ops * (size_t)r->g->n_time_keys;
    size_t pairs = r->c ? (size_t)r->c->n_devices * (size_t)r->c->n_devices : 0;
    r->time_ns = util_alloc(cells, sizeof *r->time_ns);
    r->latency_ns = util_alloc(pairs, sizeof *r->latency_ns);
    r->rate = util_alloc(pairs, sizeof *r->rate);
    r->segment_ns = util_alloc((size_t)r->g->n_time_keys, sizeof *r->segment_ns);
    r->class_of = util_alloc((size_t)r->g->n_ops, sizeof *r->class_of);
    if (!r->time_ns || !r->latency_ns || !r->rate || !r->segment_ns || !r->class_of)
        return MOIRAI_EFAIL;
    if (cells)
        memcpy(r->time_ns, r->g->time_ns, cells * sizeof *r->time_ns);
    return 0;
}

static int refine(refiner *r, moirai_refine_report *report)
{
    int64_t extra_ns = 0;
    int32_t n_files = r->n;
    int rc = allocate(r);
    for (int32_t i = 0; i < r->n && !rc; i++)
        rc = find_names(r, &r->t[i]);
    for (int32_t i = 0; i < r->n && !rc && report; i++)
        rc = sum_up(r, &r->t[i], &report[i]);
    rc = rc ? rc : refine_merge(r);
    rc = rc ? rc : refine_classes(r);
    rc = rc ? rc : refine_fit(r);
    if (!rc && r->as_measured)
        refine_meet_last(r);
    if (!rc && r->c) {
        rc = refine_rates(r);
        rc = rc ? rc : refine_latencies(r);
        rc = rc ? rc : refine_replay(r, &extra_ns);
    }
    rc = rc ? rc : refine_load(r);
    for (int32_t i = 0; i < n_files && !rc && report; i++) {
        report[i].segment_ns = usual_price(r);
        report[i].extra_ns = extra_ns;
        report[i].n_rates = r->n_rates;
    }
    if (rc)
        return rc;
    if (r->g->n_ops && r->g->n_time_keys)
        memcpy(r->g->time_ns, r->time_ns, (size_t)r->g->n_ops * (size_t)r->g->n_time_keys * sizeof *r->time_ns);
    for (int32_t k = 0; r->g->time_whole_ns && k < r->g->n_time_keys; k++)
        r->g->time_whole_ns[k] = MOIRAI_UNKNOWN; /* by the runs' scale, which the times have now, it is their sum */
    if (r->c) {
        refine_links_set(r->c, r->latency_ns, r->rate);
        r->c->cuts_measured |= r->cuts_seen;
    }
    return 0;
}

static int refine_and_free(refiner *r, moirai_refine_report *report)
{
    int rc = refine(r, report);
    free(r->time_ns);
    free(r->latency_ns);
    free(r->rate);
    free(r->segment_ns);
    free(r->class_of);
    return rc;
}

int moirai_refine_parse(moirai_graph *g, moirai_cluster *c, const char *json, size_t length, const char *label,
                        moirai_refine_report *report)
{
    refine_timeline t;
    refiner r = {.g = g, .c = c, .n = 1, .t = &t};
    int rc = refine_timeline_parse(&t, json, length, label);
    if (rc)
        return rc;
    rc = refine_and_free(&r, report);
    refine_timeline_free(&t);
    return rc;
}

static int read_timeline(refine_timeline *out, const char *path)
{
    char *json;
    size_t length;
    int rc = util_file_read(&json, &length, path);
    if (rc)
        return rc;
    rc = refine_timeline_parse(out, json, length, path);
    free(json);
    return rc;
}

int moirai_refine_with(moirai_graph *g, moirai_cluster *c, const char *const *path, int32_t n,
                       const moirai_refine_options *o, moirai_refine_report *report)
{
    refiner r = {
        .g = g, .c = c, .t = util_alloc((size_t)UTIL_MAX(n, 0), sizeof *r.t), .as_measured = o && o->as_measured};
    int rc = r.t ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < n && !rc; i++)
        if (!(rc = read_timeline(&r.t[i], path[i])))
            r.n++;
    rc = rc ? rc : refine_and_free(&r, report);
    for (int32_t i = 0; i < r.n; i++)
        refine_timeline_free(&r.t[i]);
    free(r.t);
    return rc;
}

int moirai_refine(moirai_graph *g, moirai_cluster *c, const char *const *path, int32_t n, moirai_refine_report *report)
{
    return moirai_refine_with(g, c, path, n, NULL, report);
}
