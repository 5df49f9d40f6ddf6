/* Chapter: what learners find when they train for as long as the paper's did, beside what the others took. */
#include "study/measured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CURVES 8 /* of a figure */

typedef struct times {
    int n;
    double at[STUDY_MOST_NAMES];
} times;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The moments that any curve has a point of. */
static times moments(const moirai_study *s)
{
    times t = {0};
    study_measure_filter f = {.kind = STUDY_MEASURE_CURVE, .round = -1};
    const study_measure *m;
    for (size_t from = 0; (m = study_measure_next(s, &f, &from));) {
        int i = 0;
        while (i < t.n && t.at[i] != m->seconds)
            i++;
        if (i == t.n && t.n < STUDY_MOST_NAMES)
            t.at[t.n++] = m->seconds;
    }
    qsort(t.at, (size_t)t.n, sizeof *t.at, by_size);
    return t;
}

static bool first_of_its_curve(const moirai_study *s, const study_measure *m)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_CURVE,
                              .network = m->network,
                              .testbed = m->testbed,
                              .graph = m->graph,
                              .placer = m->placer,
                              .round = -1};
    return study_measure_find(s, &f) == m;
}

/* The point of the curve of `any` at that moment, or NULL. */
static const study_measure *point_at(const moirai_study *s, const study_measure *any, double seconds)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_CURVE,
                              .network = any->network,
                              .testbed = any->testbed,
                              .graph = any->graph,
                              .placer = any->placer,
                              .round = -1};
    const study_measure *m;
    for (size_t from = 0; (m = study_measure_next(s, &f, &from));)
        if (m->seconds == seconds)
            return m;
    return NULL;
}

static void curve_row(study_document *d, const moirai_study *s, const study_measure *any, const times *t)
{
    const study_measure *last = any;
    study_cell(d, "%s, %s, %s", any->network, any->testbed, any->graph);
    study_cell(d, "%s", any->placer);
    for (int i = 0; i < t->n; i++) {
        const study_measure *point = point_at(s, any, t->at[i]);
        study_cell(d, point ? "%.1f" : "-", point ? point->took : 0);
        last = point ? point : last;
    }
    study_cell(d, "%.0f", last->cpu_s);
    const moirai_study_row *moirai =
        study_latency_row(s, any->network, any->testbed, !strcmp(any->graph, "coarsened"), "moirai");
    if (study_has_plan(moirai))
        study_cell(d, "%.1f in %.1f s", (double)moirai->makespan_ns * 1e-6, (double)moirai->generation_ns * 1e-9);
    else
        study_cell(d, "-");
}

/* The curves of the problem of `any`, and the plan of moirai as a level line. */
static void figure(study_document *d, const moirai_study *s, const study_measure *any, const times *t)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_CURVE,
                              .network = any->network,
                              .testbed = any->testbed,
                              .graph = any->graph,
                              .round = -1};
    const moirai_study_row *moirai =
        study_latency_row(s, any->network, any->testbed, !strcmp(any->graph, "coarsened"), "moirai");
    double y[(MOST_CURVES + 1) * STUDY_MOST_NAMES];
    const char *series[MOST_CURVES + 1];
    char title[160], name[32];
    report_text svg = {0};
    const study_measure *m;
    int n = 0;
    for (size_t from = 0; n < MOST_CURVES && (m = study_measure_next(s, &f, &from));)
        if (first_of_its_curve(s, m)) {
            series[n] = m->placer;
            for (int i = 0; i < t->n; i++) {
                const study_measure *point = point_at(s, m, t->at[i]);
                y[n * t->n + i] = point ? point->took : NAN;
            }
            n++;
        }
    if (study_has_plan(moirai)) {
        series[n] = "moirai";
        for (int i = 0; i < t->n; i++)
            y[n * t->n + i] = (double)moirai->makespan_ns * 1e-6;
        n++;
    }
    snprintf(title, sizeof title, "Best makespan so far, %s, %s, %s", any->network, any->testbed, any->graph);
    study_draw_lines(&svg, &(study_lines){.title = title,
                                          .unit = "ms",
                                          .x_unit = "s",
                                          .n_points = t->n,
                                          .n_series = n,
                                          .x = t->at,
                                          .series = series,
                                          .y = y});
    snprintf(name, sizeof name, "curve-%.24s", any->network);
    study_figure(d, name, &svg, "%s, %s, %s: learners over time%s.", any->network, any->testbed, any->graph,
                 study_has_plan(moirai) ? ", and the plan of moirai" : "");
}

/* Each problem once. */
static void figures(study_document *d, const moirai_study *s, const times *t)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_CURVE, .round = -1};
    const study_measure *m;
    for (size_t from = 0; (m = study_measure_next(s, &f, &from));) {
        study_measure_filter same = f;
        same.network = m->network, same.testbed = m->testbed, same.graph = m->graph;
        if (study_measure_find(s, &same) == m)
            figure(d, s, m, t);
    }
}

void study_tell_curves(study_document *d, const moirai_study *s)
{
    char columns[512] = "problem|placer";
    study_measure_filter f = {.kind = STUDY_MEASURE_CURVE, .round = -1};
    const study_measure *m;
    times t = moments(s);
    if (!t.n)
        return;
    for (int i = 0; i < t.n; i++)
        snprintf(columns + strlen(columns), sizeof columns - strlen(columns), "|%g s", t.at[i]);
    snprintf(columns + strlen(columns), sizeof columns - strlen(columns), "|processor s|moirai");
    study_heading(d, "Learners that train for longer");
    study_say(d, "The paper gives 3 to 7 hours for HRL and no time for Placeto; the tables above give learners the "
                 "limit of the others. The "
                 "makespan in milliseconds of the best placement so far, after so many seconds on one thread of a "
                 "machine that was shared with other work (so processor time, all of the run, is beside it); and the "
                 "plan of `moirai` in the tables above. Curves are as old as their file: where costs were fitted anew "
                 "since then, makespans differ from those above by some per cent.");
    study_table(d, "curves", 2, columns);
    for (size_t from = 0; (m = study_measure_next(s, &f, &from));)
        if (first_of_its_curve(s, m))
            curve_row(d, s, m, &t);
    figures(d, s, &t);
}
