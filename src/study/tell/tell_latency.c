/* Chapter: end-to-end latency and speed-ups, beside what the paper says of them. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void header(char *text, size_t size, const study_names *placers)
{
    size_t used = (size_t)snprintf(text, size, "network|type|operators");
    for (int i = 0; i < placers->n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "|%s", placers->name[i]);
    if (used < size)
        snprintf(text + used, size - used, "|bound|gap %%");
}

/* The best bound that any placer proved, over the best plan: (plan - bound) / plan of `moirai` where it ran. */
static int64_t best_bound(const moirai_study *s, const char *network, const char *cluster, bool coarsened)
{
    study_filter f = {STUDY_ANY};
    const moirai_study_row *r;
    int64_t best = MOIRAI_UNKNOWN;
    int32_t from = 0;
    f.part = MOIRAI_STUDY_LATENCY;
    f.network = network;
    f.cluster = cluster;
    f.coarsened = coarsened;
    while ((r = study_next(s, &f, &from)))
        best = r->lower_bound_ns > best ? r->lower_bound_ns : best;
    return best;
}

static void latency_row(study_document *d, const moirai_study *s, const study_names *placers, const char *network,
                        const char *cluster, bool coarsened)
{
    study_filter f = {STUDY_ANY};
    f.part = MOIRAI_STUDY_LATENCY;
    f.network = network;
    f.cluster = cluster;
    f.coarsened = coarsened;
    const moirai_study_row *any = study_find(s, &f);
    int64_t bound = best_bound(s, network, cluster, coarsened), least = INT64_MAX;
    if (!any)
        return;
    study_cell(d, "%s", network);
    study_cell(d, "fp%d", 8 * any->element_bytes);
    study_cell(d, "%d", any->n_ops);
    for (int i = 0; i < placers->n; i++) {
        const moirai_study_row *r = study_latency_row(s, network, cluster, coarsened, placers->name[i]);
        study_cell_ms(d, study_has_plan(r) ? r->makespan_ns : MOIRAI_UNKNOWN);
        if (study_has_plan(r) && r->makespan_ns < least)
            least = r->makespan_ns;
    }
    study_cell_ms(d, bound);
    study_cell_percent(d, bound > 0 && least < INT64_MAX ? (double)(least - bound) / (double)least : NAN);
}

static void latency_tables(study_document *d, const moirai_study *s, const study_names *clusters,
                           const study_names *networks, const study_names *placers)
{
    char columns[512], name[32];
    header(columns, sizeof columns, placers);
    for (int c = 0; c < clusters->n; c++)
        for (int coarsened = 0; coarsened < 2; coarsened++) {
            study_say(d, "**%s, %s graphs**, milliseconds:", clusters->name[c], coarsened ? "coarsened" : "original");
            snprintf(name, sizeof name, "latency-%.14s-%s", clusters->name[c], coarsened ? "coarsened" : "original");
            study_table(d, name, 2, columns);
            for (int n = 0; n < networks->n; n++)
                latency_row(d, s, placers, networks->name[n], clusters->name[c], coarsened);
        }
}

static void failures(study_document *d, const moirai_study *s)
{
    study_filter f = {STUDY_ANY};
    const moirai_study_row *r;
    int32_t from = 0, n = 0;
    f.part = MOIRAI_STUDY_LATENCY;
    while ((r = study_next(s, &f, &from)))
        if (!study_has_plan(r)) {
            if (n++ == 0)
                study_say(d, "Rows without a plan, and why:");
            study_item(d, "%s, %s, %s, %s: %s", r->of.network, r->of.cluster,
                       r->of.coarsened ? "coarsened" : "original", r->of.placer, r->message);
        }
}

/* ---- the paper's figure ---- */

/* Its baseline is Placeto; where that was not run, one device. */
static void figure(study_document *d, const moirai_study *s, const study_names *networks, const char *cluster,
                   bool coarsened)
{
    static const char *const shown[] = {"m-sct", "getf", "heft", "single", "moirai"};
    enum { N = sizeof shown / sizeof *shown };
    double value[STUDY_MOST_NAMES * N];
    char title[120], line[80], name[32];
    const char *base = "placeto";
    report_text svg = {0};
    for (int g = 0; g < networks->n; g++) {
        const moirai_study_row *slow = study_latency_row(s, networks->name[g], cluster, coarsened, base);
        for (int i = 0; i < N; i++)
            value[g * N + i] = study_ratio(slow, study_latency_row(s, networks->name[g], cluster, coarsened, shown[i]));
    }
    double paper = moirai_paper_speedup(cluster, coarsened, base);
    snprintf(title, sizeof title, "Speed-up over Placeto, %s, %s graphs", cluster,
             coarsened ? "coarsened" : "original");
    snprintf(line, sizeof line, "the paper's Moirai: up to %.2f", paper);
    study_draw_bars(&svg, &(study_bars){.title = title,
                                        .unit = "",
                                        .n_groups = networks->n,
                                        .n_series = N,
                                        .group = networks->name,
                                        .series = shown,
                                        .value = value,
                                        .line = paper,
                                        .line_text = line});
    snprintf(name, sizeof name, "speedup-%.14s-%s", cluster, coarsened ? "coarsened" : "original");
    study_figure(d, name, &svg,
                 "The paper's figure of speed-ups, %s scenario with %s graphs, from our results. Of its bars the paper "
                 "gives the highest only.",
                 cluster, coarsened ? "coarsened" : "original");
}

/* ---- speed-ups ---- */

static void speedup_row(study_document *d, const moirai_study *s, const study_names *networks, const char *cluster,
                        bool coarsened, const char *placer)
{
    study_range range = {0};
    double paper = moirai_paper_speedup(cluster, coarsened, placer);
    for (int n = 0; n < networks->n; n++)
        study_range_add(&range,
                        study_ratio(study_latency_row(s, networks->name[n], cluster, coarsened, placer),
                                    study_latency_row(s, networks->name[n], cluster, coarsened, "moirai")),
                        networks->name[n]);
    study_cell(d, "%s", cluster);
    study_cell(d, "%s", coarsened ? "coarsened" : "original");
    study_cell(d, "%s", placer);
    study_cell_times(d, paper > 0 ? paper : NAN);
    study_cell_times(d, range.n ? range.most : NAN);
    study_cell(d, "%s", range.who ? range.who : "-");
    study_cell_times(d, study_range_mean(&range));
    study_cell_times(d, range.n ? range.least : NAN);
    study_cell(d, "%d", range.n);
}

static void speedups(study_document *d, const moirai_study *s, const study_names *clusters, const study_names *networks,
                     const study_names *placers)
{
    study_say(d, "**Speed-up of the placer moirai over the others.** The paper gives the most over its eleven networks "
                 "(\"up to\"), for three placers; \"-\": it says nothing. Means are geometric.");
    study_table(d, "speedups", 3,
                "testbed|graphs|over|paper, up to|ours, up to|reached by|ours, mean|ours, least|networks");
    for (int c = 0; c < clusters->n; c++)
        for (int coarsened = 0; coarsened < 2; coarsened++)
            for (int p = 0; p < placers->n; p++)
                if (strcmp(placers->name[p], "moirai"))
                    speedup_row(d, s, networks, clusters->name[c], coarsened, placers->name[p]);
}

void study_tell_latency(study_document *d, const moirai_study *s)
{
    study_names networks, clusters, placers;
    study_networks(&networks, s, MOIRAI_STUDY_LATENCY);
    study_clusters(&clusters, s, MOIRAI_STUDY_LATENCY);
    study_placers(&placers, s, MOIRAI_STUDY_LATENCY);
    if (!networks.n)
        return;
    study_heading(d, "Latency");
    study_say(d,
              "The paper gives speed-ups and no latencies, so that ours stand alone here; its speed-ups stand beside "
              "ours below. The bound is the best that any of the placers has proven for the row, the "
              "gap is from it to the best plan of the row.");
    latency_tables(d, s, &clusters, &networks, &placers);
    failures(d, s);
    speedups(d, s, &clusters, &networks, &placers);
    for (int c = 0; c < clusters.n; c++)
        for (int coarsened = 0; coarsened < 2; coarsened++)
            figure(d, s, &networks, clusters.name[c], coarsened);
    study_say(d,
              "The paper's figure of bandwidths over 100 seconds can't be redrawn: the measurements are not published. "
              "Its averages are the testbeds' links here; `moirai probe --seconds 100 --series 100` measures such a "
              "figure of other links.");
}
