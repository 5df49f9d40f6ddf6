/* What rank 0 makes of all measurements: the graph with its times, and a report.
 *
 * An operator that a device could not run alone (a shape that only the whole network knows, a type without numbers) is
 * estimated: its traffic at the device's median time per byte over all operators that were measured, or the median time
 * of those where its traffic is not known. The report counts them. */
#include "rank/profile/rank_profile_job.h"

#include <stdlib.h>

#include "util/json.h"
#include "util/sort.h"
#include "util/util.h"

#define MOST_LONGER 2.0 /* more than that has another reason */

static const profile_time *time_of(const profile_job *j, int device, int32_t op)
{
    int32_t piece = j->piece_of_op[op];
    return piece < 0 ? NULL : &j->time[(size_t)device * (size_t)j->n_pieces + (size_t)piece];
}

static double median(double *value, int32_t n)
{
    qsort(value, (size_t)n, sizeof *value, util_by_real);
    return n ? value[n / 2] : 0;
}

/* Fills the unknown ones among `ns`; how many there were. */
static int32_t estimate(const profile_job *j, int64_t *ns, double *scratch)
{
    const moirai_graph *g = j->graph;
    int32_t n = 0, unknown = 0;
    for (int32_t i = 0; i < g->n_ops; i++)
        if (ns[i] >= 0 && g->op_traffic_bytes[i] > 0)
            scratch[n++] = (double)ns[i] / (double)g->op_traffic_bytes[i];
    double per_byte = median(scratch, n);
    n = 0;
    for (int32_t i = 0; i < g->n_ops; i++)
        if (ns[i] >= 0)
            scratch[n++] = (double)ns[i];
    double usual = median(scratch, n);
    for (int32_t i = 0; i < g->n_ops; i++) {
        if (ns[i] >= 0)
            continue;
        unknown++;
        double guess = g->op_traffic_bytes[i] >= 0 ? per_byte * (double)g->op_traffic_bytes[i] : usual;
        ns[i] = guess < 9e18 ? (int64_t)guess : INT64_MAX / 4;
    }
    return unknown;
}

/* Of the operators that were measured, with nothing in the caches. */
static int64_t sum_cold(const profile_job *j, int device)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < j->graph->n_ops; i++) {
        const profile_time *t = time_of(j, device, i);
        if (t && t->median_ns >= 0 && !util_add64(&sum, sum, t->cold_ns))
            return INT64_MAX;
    }
    return sum;
}

/* Where the network takes longer than its operators alone (their weights are no longer in the caches, it waits for
 * memory), each of them does, on one device or on several. Where it is faster, only the whole is known to be. */
static int use_whole(profile_job *j, int device, int64_t *ns, int64_t total_ns)
{
    moirai_graph *g = j->graph;
    int64_t whole_ns = j->summary[device].whole.median_ns;
    double longer = total_ns > 0 ? (double)whole_ns / (double)total_ns : 1;
    if (whole_ns < 1 || j->cold)
        return 0;
    for (int32_t i = 0; i < g->n_ops && longer > 1; i++)
        ns[i] = (int64_t)((double)ns[i] * UTIL_MIN(longer, MOST_LONGER));
    int rc = moirai_graph_times_set(g, j->cluster->device[device].name, ns);
    return rc ? rc : moirai_graph_whole_set(g, j->cluster->device[device].name, whole_ns);
}

static int fill_times(profile_job *j, int32_t *n_estimated, int64_t *total_ns)
{
    moirai_graph *g = j->graph;
    int64_t *ns = util_alloc((size_t)g->n_ops, sizeof *ns);
    double *scratch = util_alloc((size_t)g->n_ops, sizeof *scratch);
    int rc = ns && scratch ? 0 : MOIRAI_EFAIL;
    for (int d = 0; d < j->w.size && !rc; d++) {
        for (int32_t i = 0; i < g->n_ops; i++) {
            const profile_time *t = time_of(j, d, i);
            ns[i] = !t ? MOIRAI_UNKNOWN : j->cold && t->median_ns >= 0 ? t->cold_ns : t->median_ns;
        }
        n_estimated[d] = estimate(j, ns, scratch);
        if (n_estimated[d] == g->n_ops && g->n_ops)
            rc = moirai_error(MOIRAI_EFAIL, "device '%.100s' can run none of the operators: %s",
                              j->cluster->device[d].name, j->summary[d].first_failure);
        total_ns[d] = 0;
        for (int32_t i = 0; i < g->n_ops && !rc; i++)
            if (!util_add64(&total_ns[d], total_ns[d], ns[i]))
                total_ns[d] = INT64_MAX;
        rc = rc ? rc : moirai_graph_times_set(g, j->cluster->device[d].name, ns);
        rc = rc ? rc : use_whole(j, d, ns, total_ns[d]);
    }
    free(ns);
    free(scratch);
    return rc;
}

/* ---- the report ---- */

static void write_device(util_writer *w, const profile_job *j, int d, int32_t n_estimated, int64_t total_ns)
{
    const profile_summary *s = &j->summary[d];
    int64_t cold_total_ns = sum_cold(j, d);
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "name", j->cluster->device[d].name);
    util_writer_pair_string(w, "host", s->host);
    util_writer_pair_string(w, "device", s->device);
    util_writer_pair_int(w, "total_ns", total_ns);
    util_writer_pair_int(w, "overhead_ns", s->overhead_ns);
    util_writer_pair_int(w, "cold_total_ns", cold_total_ns);
    if (s->whole.median_ns > 0)
        util_writer_pair_int(w, "whole_ns", s->whole.median_ns);
    util_writer_key(w, "load_average");
    util_writer_real(w, s->load);
    util_writer_pair_int(w, "hardware_threads", s->n_threads);
    util_writer_pair_int(w, "measured", s->n_measured);
    util_writer_pair_int(w, "measured_again", s->n_again);
    util_writer_pair_int(w, "cached", s->n_cached);
    util_writer_pair_int(w, "failed", s->n_failed);
    util_writer_pair_int(w, "estimated_ops", n_estimated);
    if (s->n_failed)
        util_writer_pair_string(w, "first_failure", s->first_failure);
    util_writer_close(w, '}');
}

static void write_piece(util_writer *w, const profile_job *j, int32_t piece, const char *type, int32_t count)
{
    util_writer_break(w);
    util_writer_open(w, '{');
    util_writer_pair_string(w, "type", type);
    util_writer_pair_int(w, "operators", count);
    util_writer_pair_open(w, "times", '[');
    for (int d = 0; d < j->w.size; d++) {
        const profile_time *t = &j->time[(size_t)d * (size_t)j->n_pieces + (size_t)piece];
        util_writer_open(w, '{');
        util_writer_key(w, "median_ns");
        if (t->median_ns < 0)
            util_writer_null(w);
        else
            util_writer_int(w, t->median_ns);
        util_writer_pair_int(w, "cold_ns", t->cold_ns);
        util_writer_key(w, "spread");
        util_writer_real(w, t->spread);
        util_writer_pair_int(w, "runs", t->n);
        util_writer_close(w, '}');
    }
    util_writer_close(w, ']');
    util_writer_close(w, '}');
}

static int write_pieces(util_writer *w, const profile_job *j)
{
    int32_t *count = util_alloc((size_t)j->n_pieces, sizeof *count);
    const char **type = util_alloc((size_t)j->n_pieces, sizeof *type);
    int rc = count && type ? 0 : MOIRAI_EFAIL;
    for (int32_t i = 0; i < j->graph->n_ops && !rc; i++) {
        int32_t piece = j->piece_of_op[i];
        if (piece < 0)
            continue;
        count[piece]++;
        type[piece] = j->graph->op_type[i];
    }
    for (int32_t i = 0; i < j->n_pieces && !rc; i++)
        write_piece(w, j, i, type[i], count[i]);
    free(count);
    free(type);
    return rc;
}

static int write_report(const profile_job *j, const int32_t *n_estimated, const int64_t *total_ns)
{
    util_writer w;
    util_writer_init(&w);
    util_writer_open(&w, '{');
    util_writer_pair_string(&w, "network", j->graph->name);
    util_writer_pair_int(&w, "operators", j->graph->n_ops);
    util_writer_pair_int(&w, "distinct", j->n_pieces);
    util_writer_pair_string(&w, "cache", j->cache);
    util_writer_pair_open(&w, "devices", '[');
    for (int d = 0; d < j->w.size; d++)
        write_device(&w, j, d, n_estimated[d], total_ns[d]);
    util_writer_close(&w, ']');
    util_writer_pair_open(&w, "distinct_operators", '[');
    int rc = write_pieces(&w, j);
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    if (rc) {
        util_writer_free(&w);
        return rc;
    }
    return util_writer_save(&w, j->report_path);
}

int rank_profile_write(profile_job *j)
{
    int32_t n_estimated[MOIRAI_MAX_DEVICES];
    int64_t total_ns[MOIRAI_MAX_DEVICES];
    int rc = fill_times(j, n_estimated, total_ns);
    rc = rc ? rc : j->output_path ? moirai_graph_write(j->graph, j->output_path) : 0;
    return rc ? rc : j->report_path ? write_report(j, n_estimated, total_ns) : 0;
}
