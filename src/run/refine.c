/* Measured segments back into the operators' times.
 *
 * Times of single operators never add up to the time of a segment: caches are warm or not, ONNX Runtime fuses across what
 * was measured apart, a segment has a price of its own, and on one machine the ranks share cores and memory. A run tells
 * what a segment really took. Nothing is known of how that splits among its operators, so all of them are scaled alike:
 * they keep their proportions and sum exactly to the measured time (a sum of 0 is split evenly). A plan of the same
 * segments is then predicted right by construction.
 *
 * A re-plan moves operators to where they were not measured. If only what ran were scaled, and it usually grows, the rest
 * would look cheap just for not having been tried. So all other operators of a device are scaled by its total (measured
 * over predicted, of all its segments), and devices that ran nothing by the total of all.
 *
 * Medians over the runs are the robust part, and the runner's job. O(operators x devices). */
#include <moirai/refine.h>

#include <stdlib.h>
#include <string.h>

#include "util/json.h"
#include "util/util.h"

typedef struct refiner {
    moirai_graph *g;
    int64_t *time_ns;      /* the new table */
    bool *done;            /* [op * keys + key] part of a segment */
    double *predicted, *measured; /* [key] sums over segments */
    double *ratio;         /* measured / predicted, of segments that take time */
    int32_t n_ratios;
    moirai_refine_report report;
} refiner;

static int64_t cell(const moirai_graph *g, int32_t op, int32_t key)
{
    return (int64_t)op * g->n_time_keys + key;
}

static int find_key(int32_t *out, const refiner *r, const moirai_json_at *at)
{
    for (*out = 0; *out < r->g->n_time_keys; ++*out)
        if (!strcmp(r->g->time_key[*out], at->name))
            return 0;
    return moirai_json_fail(at, "the graph has no times of it");
}

static int find_op(int32_t *out, const refiner *r, const moirai_json_at *at, yyjson_val *value, int32_t key)
{
    const char *name = NULL;
    int rc = moirai_json_value_string(&name, NULL, at, value, "ops");
    if (rc)
        return rc;
    *out = moirai_graph_find(r->g, name);
    if (*out == MOIRAI_NONE)
        return moirai_json_fail(at, "operator '%.200s' is not in the graph", name);
    if (r->g->time_ns[cell(r->g, *out, key)] < 0)
        return moirai_json_fail(at, "operator '%.200s' has no time for '%.200s'", name, r->g->time_key[key]);
    if (r->done[cell(r->g, *out, key)])
        return moirai_json_fail(at, "operator '%.200s' runs twice on '%.200s'", name, r->g->time_key[key]);
    return 0;
}

static int sum_ops(int64_t *sum, refiner *r, const moirai_json_at *at, yyjson_val *ops, int32_t key)
{
    yyjson_val *value;
    size_t i, n;
    *sum = 0;
    yyjson_arr_foreach(ops, i, n, value) {
        int32_t op;
        int rc = find_op(&op, r, at, value, key);
        if (rc)
            return rc;
        r->done[cell(r->g, op, key)] = true;
        if (!moirai_add64(sum, *sum, r->g->time_ns[cell(r->g, op, key)]))
            return moirai_json_fail(at, "its operators' times do not fit 64 bits");
    }
    return 0;
}

/* The first operators' shares are rounded down, and whatever is left belongs to the last: the sum is exact. */
static void share_out(refiner *r, yyjson_val *ops, int32_t key, int64_t sum, int64_t measured_ns)
{
    int64_t left = measured_ns;
    yyjson_val *value;
    size_t i, n;
    yyjson_arr_foreach(ops, i, n, value) {
        int64_t at = cell(r->g, moirai_graph_find(r->g, yyjson_get_str(value)), key);
        double share = sum ? (double)r->g->time_ns[at] / (double)sum : 1 / (double)n;
        int64_t ns = i + 1 == n ? left : MOIRAI_MIN((int64_t)((double)measured_ns * share), left);
        r->time_ns[at] = ns;
        left -= ns;
    }
}

static int take_segment(refiner *r, const moirai_json_at *at, yyjson_val *segment, int32_t key)
{
    yyjson_val *ops = NULL;
    int64_t measured_ns = 0, sum;
    int rc = moirai_json_object(at, segment);
    rc = rc ? rc : moirai_json_array(&ops, at, segment, "ops", true);
    rc = rc ? rc : moirai_json_int64(&measured_ns, at, segment, "median_ns", true, 0);
    if (rc || !measured_ns || !yyjson_arr_size(ops))
        return rc;
    rc = sum_ops(&sum, r, at, ops, key);
    if (rc)
        return rc;
    share_out(r, ops, key, sum, measured_ns);
    r->report.n_segments++;
    r->report.n_ops += (int32_t)yyjson_arr_size(ops);
    r->predicted[key] += (double)sum;
    r->measured[key] += (double)measured_ns;
    double *ratio = moirai_resize(r->ratio, (size_t)r->n_ratios + 1, sizeof *ratio);
    if (!ratio)
        return MOIRAI_EFAIL;
    r->ratio = ratio;
    if (sum)
        r->ratio[r->n_ratios++] = (double)measured_ns / (double)sum;
    return 0;
}

static int take_device(refiner *r, const char *label, yyjson_val *device, size_t index)
{
    moirai_json_at at = {.label = label, .kind = "device", .index = index};
    yyjson_val *segments = NULL, *segment;
    size_t i, n;
    int32_t key = 0;
    int rc = moirai_json_object(&at, device);
    rc = rc ? rc : moirai_json_string(&at.name, NULL, &at, device, "name", true);
    rc = rc ? rc : moirai_json_array(&segments, &at, device, "segments", true);
    if (!rc && yyjson_arr_size(segments)) /* one that ran nothing need not be known */
        rc = find_key(&key, r, &at);
    if (rc)
        return rc;
    yyjson_arr_foreach(segments, i, n, segment) {
        if ((rc = take_segment(r, &at, segment, key)))
            return rc;
    }
    return 0;
}

static void scale_rest(refiner *r)
{
    const moirai_graph *g = r->g;
    double predicted = 0, measured = 0;
    for (int32_t k = 0; k < g->n_time_keys; k++) {
        predicted += r->predicted[k];
        measured += r->measured[k];
    }
    for (int32_t k = 0; k < g->n_time_keys; k++) {
        double factor = r->predicted[k] > 0 ? r->measured[k] / r->predicted[k] : predicted > 0 ? measured / predicted : 1;
        for (int32_t i = 0; i < g->n_ops; i++) {
            int64_t at = cell(g, i, k);
            double ns = (double)g->time_ns[at] * factor;
            if (!r->done[at] && g->time_ns[at] >= 0)
                r->time_ns[at] = ns < 4e18 ? (int64_t)(ns + 0.5) : (int64_t)4e18;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sum_up(refiner *r)
{
    if (!r->n_ratios)
        return;
    qsort(r->ratio, (size_t)r->n_ratios, sizeof *r->ratio, by_value);
    r->report.least = r->ratio[0];
    r->report.median = r->ratio[r->n_ratios / 2];
    r->report.most = r->ratio[r->n_ratios - 1];
}

static int refine(refiner *r, yyjson_val *root, const char *label)
{
    moirai_json_at at = {.label = label};
    yyjson_val *devices = NULL, *device;
    size_t i, n, cells = (size_t)r->g->n_ops * (size_t)r->g->n_time_keys, keys = (size_t)r->g->n_time_keys;
    int rc = moirai_json_array(&devices, &at, root, "devices", true);
    if (rc)
        return rc;
    r->time_ns = moirai_alloc(cells, sizeof *r->time_ns);
    r->done = moirai_alloc(cells, sizeof *r->done);
    r->predicted = moirai_alloc(keys, sizeof *r->predicted);
    r->measured = moirai_alloc(keys, sizeof *r->measured);
    if (!r->time_ns || !r->done || !r->predicted || !r->measured)
        return MOIRAI_EFAIL;
    if (cells)
        memcpy(r->time_ns, r->g->time_ns, cells * sizeof *r->time_ns);
    yyjson_arr_foreach(devices, i, n, device) {
        if ((rc = take_device(r, label, device, i)))
            return rc;
    }
    scale_rest(r);
    sum_up(r);
    if (cells)
        memcpy(r->g->time_ns, r->time_ns, cells * sizeof *r->time_ns);
    return 0;
}

int moirai_graph_refine_parse(moirai_graph *g, const char *json, size_t length, const char *label,
                              moirai_refine_report *report)
{
    refiner r = {.g = g};
    yyjson_doc *doc;
    int rc = moirai_json_open(&doc, json, length, label, "moirai-timeline");
    if (rc)
        return rc;
    rc = refine(&r, yyjson_doc_get_root(doc), label);
    yyjson_doc_free(doc);
    free(r.time_ns);
    free(r.done);
    free(r.predicted);
    free(r.measured);
    free(r.ratio);
    if (!rc && report)
        *report = r.report;
    return rc;
}

int moirai_graph_refine(moirai_graph *g, const char *path, moirai_refine_report *report)
{
    char *json;
    size_t length;
    int rc = moirai_file_read(&json, &length, path);
    if (rc)
        return rc;
    rc = moirai_graph_refine_parse(g, json, length, path, report);
    free(json);
    return rc;
}
