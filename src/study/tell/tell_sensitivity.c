/* Chapter: where placing pays. Launches, devices, bandwidth, batch: one figure per question. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 32 };
#define PAYS 1.05 /* a gain that is worth a second device, in words */

typedef struct numbers {
    int n, value[MOST_POINTS];
} numbers;

static int by_size(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void add_number(numbers *l, int value)
{
    for (int i = 0; i < l->n; i++)
        if (l->value[i] == value)
            return;
    if (l->n < MOST_POINTS)
        l->value[l->n++] = value;
}

/* The devices, bandwidths and batches that the done rows of two parts have. */
static void axes(const moirai_study *s, moirai_study_part part, numbers *devices, numbers *gbps, numbers *batch)
{
    for (int32_t i = 0; i < s->n; i++) {
        const moirai_study_row *r = &s->row[i];
        if (!r->done || r->of.part != part)
            continue;
        add_number(devices, r->of.devices);
        add_number(gbps, r->of.gbps);
        add_number(batch, r->of.batch);
    }
    qsort(devices->value, (size_t)devices->n, sizeof(int), by_size);
    qsort(gbps->value, (size_t)gbps->n, sizeof(int), by_size);
    qsort(batch->value, (size_t)batch->n, sizeof(int), by_size);
}

/* The gain with that many devices or fewer: links are equal, so that a plan for fewer is a plan for more. */
static double point(const moirai_study *s, const char *network, int devices, int gbps, int batch)
{
    double most = NAN;
    for (int32_t i = 0; i < s->n; i++) {
        const moirai_study_case *c = &s->row[i].of;
        if (c->part == (batch == 1 ? MOIRAI_STUDY_MAP : MOIRAI_STUDY_BATCH) && c->devices <= devices &&
            c->gbps == gbps && c->batch == batch && !strcmp(c->network, network))
            most = fmax(most, study_gain(&s->row[i])); /* of a number and a NAN, fmax takes the number */
    }
    return most;
}

/* ---- launches ---- */

static void runtime_cells(study_document *d, const moirai_study *s, const char *network, const char *cluster,
                          int runtime)
{
    static const char *const placer[] = {"single", "m-sct", "getf", "heft", "moirai"};
    const moirai_study_row *r[5];
    for (int i = 0; i < 5; i++) {
        study_filter f = {STUDY_ANY};
        f.part = runtime ? MOIRAI_STUDY_RUNTIME : MOIRAI_STUDY_LATENCY;
        f.network = network;
        f.cluster = cluster;
        f.runtime = runtime;
        f.placer = placer[i];
        f.coarsened = 0;
        r[i] = study_find(s, &f);
    }
    study_cell(d, "%s", network);
    study_cell(d, "%s", cluster);
    study_cell(d, "%s", runtime ? moirai_runtime_name((moirai_runtime)runtime) : "eager");
    study_cell_ms(d, study_has_plan(r[4]) ? r[4]->makespan_ns : MOIRAI_UNKNOWN);
    for (int i = 0; i < 4; i++)
        study_cell_times(d, study_ratio(r[i], r[4]));
}

static void runtimes(study_document *d, const moirai_study *s)
{
    study_names networks, clusters;
    study_networks(&networks, s, MOIRAI_STUDY_RUNTIME);
    study_clusters(&clusters, s, MOIRAI_STUDY_RUNTIME);
    if (!networks.n)
        return;
    study_say(
        d, "**What a launch costs.** Speed-up of `moirai` over others on original graphs, when starting an operator "
           "takes what eager PyTorch needs (26.6 us), ONNX Runtime (5 us) or a CUDA graph (1 us). Several devices "
           "launch side by side: a part of every speed-up under `eager` is that, and goes when launches get cheaper.");
    study_table(d, "runtime", 3, "network|testbed|runtime|moirai ms|over single|over m-sct|over getf|over heft");
    for (int n = 0; n < networks.n; n++)
        for (int c = 0; c < clusters.n; c++) {
            runtime_cells(d, s, networks.name[n], clusters.name[c], MOIRAI_RUNTIME_UNSET);
            runtime_cells(d, s, networks.name[n], clusters.name[c], MOIRAI_RUNTIME_ORT);
            runtime_cells(d, s, networks.name[n], clusters.name[c], MOIRAI_RUNTIME_GRAPH);
        }
}

/* ---- flow ---- */

/* The same case with the other flow, which another part has. */
static const moirai_study_row *other_flow(const moirai_study *s, const moirai_study_row *r)
{
    study_filter f = {STUDY_ANY};
    if (!r->of.devices)
        return study_latency_row(s, r->of.network, r->of.cluster, true, "moirai");
    f.part = MOIRAI_STUDY_MAP;
    f.network = r->of.network;
    f.cluster = r->of.cluster;
    return study_find(s, &f);
}

static void flows(study_document *d, const moirai_study *s)
{
    study_filter f = {STUDY_ANY};
    const moirai_study_row *r;
    int32_t from = 0;
    f.part = MOIRAI_STUDY_FLOW;
    if (!study_find(s, &f))
        return;
    study_say(
        d,
        "**How often is a tensor sent?** In the paper's model (flow `edge`) a tensor travels once for every operator "
        "that reads it, also to the same device; a runtime would send it once to each device (flow `tensor`). "
        "Coarsened graphs; gains are over the best single device.");
    study_table(d, "flow", 2, "network|cluster|edge ms|tensor ms|gain, edge|gain, tensor|edge over tensor");
    while ((r = study_next(s, &f, &from))) {
        const moirai_study_row *o = other_flow(s, r), *edge = r->of.devices ? r : o, *tensor = r->of.devices ? o : r;
        study_cell(d, "%s", r->of.network);
        study_cell(d, "%s", r->of.cluster);
        study_cell_ms(d, study_has_plan(edge) ? edge->makespan_ns : MOIRAI_UNKNOWN);
        study_cell_ms(d, study_has_plan(tensor) ? tensor->makespan_ns : MOIRAI_UNKNOWN);
        study_cell_times(d, study_gain(edge));
        study_cell_times(d, study_gain(tensor));
        study_cell_times(d, study_ratio(edge, tensor));
    }
}

/* ---- devices and bandwidth ---- */

static void map_table(study_document *d, const char *name, const study_map *m)
{
    char columns[512] = "devices";
    size_t used = strlen(columns);
    for (int c = 0; c < m->n_columns && used < sizeof columns; c++)
        used += (size_t)snprintf(columns + used, sizeof columns - used, "|%d Gbit/s", m->x[c]);
    study_table(d, name, 1, columns);
    for (int r = 0; r < m->n_rows; r++) {
        study_cell(d, "%d", m->y[r]);
        for (int c = 0; c < m->n_columns; c++)
            study_cell_times(d, m->value[r * m->n_columns + c]);
    }
}

static void one_map(study_document *d, const moirai_study *s, const char *network, const numbers *devices,
                    const numbers *gbps)
{
    double value[MOST_POINTS * MOST_POINTS];
    char title[120], name[32];
    report_text svg = {0};
    for (int k = 0; k < devices->n; k++)
        for (int b = 0; b < gbps->n; b++)
            value[k * gbps->n + b] = point(s, network, devices->value[k], gbps->value[b], 1);
    snprintf(title, sizeof title, "%s: how many times as fast as one V100", network);
    study_map m = {.title = title,
                   .x_title = " Gbit/s",
                   .y_title = "devices",
                   .n_columns = gbps->n,
                   .n_rows = devices->n,
                   .x = gbps->value,
                   .y = devices->value,
                   .value = value};
    study_draw_map(&svg, &m);
    snprintf(name, sizeof name, "map-%.27s", network);
    map_table(d, name, &m);
    study_figure(d, name, &svg, "%s by devices and bandwidth; 1.00: one device is best.", network);
}

/* In words: from which bandwidth on it pays, and what more devices give. */
static void map_words(study_document *d, const moirai_study *s, const char *network, const numbers *devices,
                      const numbers *gbps)
{
    int last = gbps->value[gbps->n - 1], few = devices->value[0], many = devices->value[devices->n - 1], from = 0;
    double with_few = point(s, network, few, last, 1), with_many = point(s, network, many, last, 1), most = 0;
    for (int b = gbps->n - 1; b >= 0; b--)
        for (int k = 0; k < devices->n; k++)
            if (point(s, network, devices->value[k], gbps->value[b], 1) >= PAYS)
                from = gbps->value[b];
    for (int k = 0; k < devices->n; k++)
        most = fmax(most, point(s, network, devices->value[k], last, 1));
    if (isnan(with_few) || isnan(with_many))
        return;
    if (!from)
        study_item(d, "%s: placing gives less than %.0f %% everywhere: one device is best.", network, 100 * (PAYS - 1));
    else
        study_item(
            d,
            "%s: placing gives %.0f %% or more from %d Gbit/s on; below, one device does about as well. At %d Gbit/s "
            "%d devices are %.2f times as fast as one, %d devices %.2f times, the best number of devices %.2f times.",
            network, 100 * (PAYS - 1), from, last, few, with_few, many, with_many, most);
}

/* The worst and the mean of what is not proven. */
static void map_gaps(study_document *d, const moirai_study *s, moirai_study_part part)
{
    study_filter f = {STUDY_ANY};
    const moirai_study_row *r;
    double sum = 0, worst = 0;
    int32_t from = 0, n = 0;
    f.part = (int)part;
    while ((r = study_next(s, &f, &from))) {
        double gap = study_gap(r);
        if (isnan(gap))
            continue;
        sum += gap;
        worst = gap > worst ? gap : worst;
        n++;
    }
    if (n)
        study_say(
            d,
            "%d points, %.1f %% from the proven bound on average, %.1f %% at most: no plan is shorter by more than "
            "that.",
            n, 100 * sum / n, 100 * worst);
}

static void maps(study_document *d, const moirai_study *s)
{
    study_names networks;
    numbers devices = {0}, gbps = {0}, batch = {0};
    study_networks(&networks, s, MOIRAI_STUDY_MAP);
    if (!networks.n)
        return;
    axes(s, MOIRAI_STUDY_MAP, &devices, &gbps, &batch);
    study_say(d,
              "**How many devices, how fast the links?** Equal V100s, every two linked with that bandwidth and %d us, "
              "coarsened graphs, one sample, flow tensor, %g s a point. The numbers are the best single device over "
              "the best plan for that many devices or fewer.",
              STUDY_LATENCY_NS / 1000, s->time_limit_s);
    for (int n = 0; n < networks.n; n++)
        one_map(d, s, networks.name[n], &devices, &gbps);
    for (int n = 0; n < networks.n; n++)
        map_words(d, s, networks.name[n], &devices, &gbps);
    map_gaps(d, s, MOIRAI_STUDY_MAP);
}

/* ---- batch ---- */

typedef struct batch_study {
    const char *network;
    int devices;
    numbers gbps, batch;
    double gain[MOST_POINTS * MOST_POINTS]; /* [batch * gbps.n + gbps] */
} batch_study;

static void batch_values(batch_study *b, const moirai_study *s, const char *network)
{
    b->network = network;
    for (int i = 0; i < b->batch.n; i++)
        for (int g = 0; g < b->gbps.n; g++)
            b->gain[i * b->gbps.n + g] = point(s, network, b->devices, b->gbps.value[g], b->batch.value[i]);
}

static void batch_figure(study_document *d, const batch_study *b)
{
    double x[MOST_POINTS];
    char label[MOST_POINTS][24], title[120], name[32];
    const char *series[MOST_POINTS];
    report_text svg = {0};
    for (int i = 0; i < b->batch.n; i++) {
        snprintf(label[i], sizeof label[i], "batch %d", b->batch.value[i]);
        series[i] = label[i];
    }
    for (int g = 0; g < b->gbps.n; g++)
        x[g] = b->gbps.value[g];
    snprintf(title, sizeof title, "%s on %d V100s: how many times as fast as one", b->network, b->devices);
    study_draw_lines(&svg, &(study_lines){.title = title,
                                          .unit = "",
                                          .x_unit = " Gbit/s",
                                          .n_points = b->gbps.n,
                                          .n_series = b->batch.n,
                                          .x = x,
                                          .series = series,
                                          .y = b->gain});
    snprintf(name, sizeof name, "batch-%.25s", b->network);
    study_figure(d, name, &svg, "%s by batch and bandwidth.", b->network);
}

static void batch_rows(study_document *d, const batch_study *b)
{
    for (int i = 0; i < b->batch.n; i++) {
        study_cell(d, "%s", b->network);
        study_cell(d, "%d", b->batch.value[i]);
        for (int g = 0; g < b->gbps.n; g++)
            study_cell_times(d, b->gain[i * b->gbps.n + g]);
    }
}

static void batches(study_document *d, const moirai_study *s)
{
    study_names networks;
    numbers devices = {0};
    batch_study b = {.batch = {1, {1}}};
    char columns[512] = "network|batch";
    study_networks(&networks, s, MOIRAI_STUDY_BATCH);
    if (!networks.n)
        return;
    axes(s, MOIRAI_STUDY_BATCH, &devices, &b.gbps, &b.batch);
    b.devices = devices.value[0];
    for (int g = 0; g < b.gbps.n; g++)
        snprintf(columns + strlen(columns), sizeof columns - strlen(columns), "|%d Gbit/s", b.gbps.value[g]);
    study_say(
        d,
        "**How large a batch?** %d V100s as above. A batch makes operators and tensors larger, but neither launches "
        "nor latencies: what is left is the ratio of arithmetic to bytes.",
        b.devices);
    study_table(d, "batch", 1, columns);
    for (int n = 0; n < networks.n; n++) {
        batch_values(&b, s, networks.name[n]);
        batch_rows(d, &b);
    }
    for (int n = 0; n < networks.n; n++) {
        batch_values(&b, s, networks.name[n]);
        batch_figure(d, &b);
    }
    map_gaps(d, s, MOIRAI_STUDY_BATCH);
}

void study_tell_sensitivity(study_document *d, const moirai_study *s)
{
    study_names map, batch, runtime;
    study_networks(&map, s, MOIRAI_STUDY_MAP);
    study_networks(&batch, s, MOIRAI_STUDY_BATCH);
    study_networks(&runtime, s, MOIRAI_STUDY_RUNTIME);
    if (!map.n && !batch.n && !runtime.n)
        return;
    study_heading(d, "Where does placing pay?");
    runtimes(d, s);
    flows(d, s);
    maps(d, s);
    batches(d, s);
}
