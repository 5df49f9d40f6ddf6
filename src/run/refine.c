/* Measured segments back into the operators' times.
 *
 * Times of single operators never add up to the time of a segment: caches are warm or not, ONNX Runtime fuses across
 * what was measured apart, a segment has a price of its own, and on one machine the ranks share cores and memory. A run
 * tells what a segment really took. Nothing is known of how that splits among its operators, so all of them are scaled
 * alike: they keep their proportions and sum exactly to the measured time (a sum of 0 is split evenly). A plan of the
 * same segments is then predicted right by construction.
 *
 * A re-plan moves operators to where they were not measured. If only what ran were scaled, and it usually grows, the
 * rest would look cheap just for not having been tried. So all other operators of a device are scaled by its total
 * (measured over predicted, of all its segments), and devices that ran nothing by the total of all.
 *
 * With a cluster, a segment's own price goes to the latencies instead; see refine_links.c. Medians over the runs are
 * the robust part, and the runner's job. O(operators x devices + segments^2). */
#include <stdlib.h>
#include <string.h>

#include "run/refine.h"
#include "util/util.h"

typedef struct refiner {
    moirai_graph *g;
    moirai_cluster *c;
    const char *label;
    refine_timeline t;
    int32_t key[MOIRAI_MAX_DEVICES];        /* column of each device of the timeline */
    int64_t segment_ns[MOIRAI_MAX_DEVICES]; /* what a segment takes beside its operators */
    int32_t *op;                            /* numbers of the timeline's operators */
    int64_t *predicted_ns;                  /* [segment] */
    double *predicted;                      /* the same, as reals */
    int64_t *time_ns;                       /* the new table */
    bool *done;                             /* [op * keys + key] part of a segment */
    double *sum_predicted, *sum_measured;   /* [key] */
    moirai_refine_report report;
} refiner;

static int64_t cell(const moirai_graph *g, int32_t op, int32_t key)
{
    return (int64_t)op * g->n_time_keys + key;
}

/* ---- names ---- */

static int find_key(refiner *r, int32_t device)
{
    for (int32_t k = 0; k < r->g->n_time_keys; k++)
        if (!strcmp(r->g->time_key[k], r->t.device[device])) {
            r->key[device] = k;
            return 0;
        }
    return moirai_error(MOIRAI_EINPUT, "%s: device '%.200s': the graph has no times of it", r->label,
                        r->t.device[device]);
}

static int find_op(refiner *r, int32_t index, int32_t device)
{
    const char *name = r->t.op[index], *where = r->t.device[device];
    int32_t op = moirai_graph_find(r->g, name);
    if (op == MOIRAI_NONE)
        return moirai_error(MOIRAI_EINPUT, "%s: operator '%.200s' is not in the graph", r->label, name);
    int64_t at = cell(r->g, op, r->key[device]);
    if (r->g->time_ns[at] < 0)
        return moirai_error(MOIRAI_EINPUT, "%s: operator '%.200s' has no time for '%.200s'", r->label, name, where);
    if (r->done[at])
        return moirai_error(MOIRAI_EINPUT, "%s: operator '%.200s' runs twice on '%.200s'", r->label, name, where);
    r->done[at] = true;
    r->op[index] = op;
    return 0;
}

static int predict(refiner *r, size_t segment)
{
    const refine_segment *s = &r->t.segment[segment];
    int rc = find_key(r, s->device);
    for (int32_t i = 0; i < s->n_ops && !rc; i++) {
        rc = find_op(r, s->first_op + i, s->device);
        int64_t *sum = &r->predicted_ns[segment];
        if (!rc && !moirai_add64(sum, *sum, r->g->time_ns[cell(r->g, r->op[s->first_op + i], r->key[s->device])]))
            rc = moirai_error(MOIRAI_EINPUT, "%s: the times of a segment do not fit 64 bits", r->label);
    }
    r->predicted[segment] = (double)r->predicted_ns[segment];
    return rc;
}

/* ---- times ---- */

/* The first operators' shares are rounded down, and whatever is left belongs to the last: the sum is exact. */
static void share_out(refiner *r, size_t segment)
{
    const refine_segment *s = &r->t.segment[segment];
    int32_t key = r->key[s->device];
    int64_t sum = r->predicted_ns[segment], measured_ns = s->median_ns - r->segment_ns[s->device], left = measured_ns;
    for (int32_t i = 0; i < s->n_ops; i++) {
        int64_t at = cell(r->g, r->op[s->first_op + i], key);
        double share = sum ? (double)r->g->time_ns[at] / (double)sum : 1 / (double)s->n_ops;
        int64_t ns = i + 1 == s->n_ops ? left : MOIRAI_MIN((int64_t)((double)measured_ns * share), left);
        r->time_ns[at] = ns;
        left -= ns;
    }
    r->sum_predicted[key] += (double)sum;
    r->sum_measured[key] += (double)measured_ns;
    r->report.n_segments++;
    r->report.n_ops += s->n_ops;
}

static void scale_rest(refiner *r)
{
    const moirai_graph *g = r->g;
    double predicted = 0, measured = 0;
    for (int32_t k = 0; k < g->n_time_keys; k++) {
        predicted += r->sum_predicted[k];
        measured += r->sum_measured[k];
    }
    for (int32_t k = 0; k < g->n_time_keys; k++) {
        double factor = r->sum_predicted[k] > 0 ? r->sum_measured[k] / r->sum_predicted[k]
                        : predicted > 0         ? measured / predicted
                                                : 1;
        for (int32_t i = 0; i < g->n_ops; i++) {
            int64_t at = cell(g, i, k);
            double ns = (double)g->time_ns[at] * factor;
            if (!r->done[at] && g->time_ns[at] >= 0)
                r->time_ns[at] = ns < 4e18 ? (int64_t)(ns + 0.5) : (int64_t)4e18;
        }
    }
}

static void sum_up(refiner *r)
{
    size_t n = 0;
    double *ratio = r->predicted; /* no longer needed */
    for (size_t i = 0; i < r->t.n_segments; i++)
        if (r->predicted_ns[i] > 0 && r->t.segment[i].median_ns > 0)
            ratio[n++] = (double)r->t.segment[i].median_ns / (double)r->predicted_ns[i];
    r->report.median = moirai_refine_median(ratio, n); /* sorts */
    r->report.least = n ? ratio[0] : 0;
    r->report.most = n ? ratio[n - 1] : 0;
}

static void price_segments(refiner *r)
{
    double price[MOIRAI_MAX_DEVICES];
    size_t n = 0;
    for (int32_t k = 0; k < r->t.n_devices; k++) {
        r->segment_ns[k] = moirai_refine_segment_cost(&r->t, k, r->predicted);
        if (r->segment_ns[k])
            price[n++] = (double)r->segment_ns[k];
    }
    r->report.segment_ns = (int64_t)moirai_refine_median(price, n);
    r->report.n_transfers = (int32_t)r->t.n_transfers;
}

static int allocate(refiner *r)
{
    size_t cells = (size_t)r->g->n_ops * (size_t)r->g->n_time_keys, keys = (size_t)r->g->n_time_keys;
    r->time_ns = moirai_alloc(cells, sizeof *r->time_ns);
    r->done = moirai_alloc(cells, sizeof *r->done);
    r->sum_predicted = moirai_alloc(keys, sizeof *r->sum_predicted);
    r->sum_measured = moirai_alloc(keys, sizeof *r->sum_measured);
    r->op = moirai_alloc(r->t.n_ops, sizeof *r->op);
    r->predicted_ns = moirai_alloc(r->t.n_segments, sizeof *r->predicted_ns);
    r->predicted = moirai_alloc(r->t.n_segments, sizeof *r->predicted);
    if (!r->time_ns || !r->done || !r->sum_predicted || !r->sum_measured || !r->op || !r->predicted_ns || !r->predicted)
        return MOIRAI_EFAIL;
    if (cells)
        memcpy(r->time_ns, r->g->time_ns, cells * sizeof *r->time_ns);
    return 0;
}

static int refine(refiner *r)
{
    int64_t latency_ns[MOIRAI_MAX_DEVICES * MOIRAI_MAX_DEVICES];
    int rc = allocate(r);
    for (size_t i = 0; i < r->t.n_segments && !rc; i++)
        rc = predict(r, i);
    if (!rc && r->c) {
        price_segments(r);
        rc = moirai_refine_latencies(latency_ns, r->c, &r->t, r->segment_ns, r->label);
    }
    if (rc)
        return rc;
    for (size_t i = 0; i < r->t.n_segments; i++)
        if (r->t.segment[i].median_ns > 0 && r->t.segment[i].n_ops)
            share_out(r, i);
    scale_rest(r);
    sum_up(r);
    if (r->g->n_ops && r->g->n_time_keys)
        memcpy(r->g->time_ns, r->time_ns, (size_t)r->g->n_ops * (size_t)r->g->n_time_keys * sizeof *r->time_ns);
    if (r->c)
        moirai_refine_links_set(r->c, latency_ns);
    return 0;
}

int moirai_refine_parse(moirai_graph *g, moirai_cluster *c, const char *json, size_t length, const char *label,
                        moirai_refine_report *report)
{
    refiner r = {.g = g, .c = c, .label = label};
    int rc = moirai_refine_timeline_parse(&r.t, json, length, label);
    if (rc)
        return rc;
    rc = refine(&r);
    moirai_refine_timeline_free(&r.t);
    free(r.time_ns);
    free(r.done);
    free(r.sum_predicted);
    free(r.sum_measured);
    free(r.op);
    free(r.predicted_ns);
    free(r.predicted);
    if (!rc && report)
        *report = r.report;
    return rc;
}

int moirai_refine(moirai_graph *g, moirai_cluster *c, const char *path, moirai_refine_report *report)
{
    char *json;
    size_t length;
    int rc = moirai_file_read(&json, &length, path);
    if (rc)
        return rc;
    rc = moirai_refine_parse(g, c, json, length, path, report);
    free(json);
    return rc;
}
