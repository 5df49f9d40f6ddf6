/* Chapter: what each part of the model buys, and the paper's program against the engine. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const moirai_study_row *ablated(const moirai_study *s, const char *network, const char *cluster, int without)
{
    study_filter f = {STUDY_ANY};
    f.part = MOIRAI_STUDY_ABLATION;
    f.network = network;
    f.cluster = cluster;
    f.without = without;
    return study_find(s, &f);
}

static void ablation_row(study_document *d, const moirai_study_row *whole, const moirai_study_row *r)
{
    char fits[64] = "yes";
    bool plan = r && !r->result;
    if (plan && r->excess_bytes > 0)
        snprintf(fits, sizeof fits, "no: %.2f GB too much", (double)r->excess_bytes * 1e-9);
    study_cell(d, "%s", r->of.network);
    study_cell(d, "%s", r->of.cluster);
    study_cell(d, "%s", study_without_name[r->of.without]);
    study_cell_ms(d, plan ? r->planned_ns : MOIRAI_UNKNOWN);
    study_cell_ms(d, plan ? r->makespan_ns : MOIRAI_UNKNOWN);
    study_cell_ms(d, study_has_plan(whole) ? whole->makespan_ns : MOIRAI_UNKNOWN);
    study_cell_percent(d,
                       plan && study_has_plan(whole) ? (double)r->makespan_ns / (double)whole->makespan_ns - 1 : NAN);
    study_cell(d, "%s", plan ? fits : r->message);
}

static void figure(study_document *d, const moirai_study *s, const study_names *networks, const study_names *clusters)
{
    static const char *const series[] = {"without congestion", "without communication", "without memory"};
    const char *group[STUDY_MOST_NAMES];
    char label[STUDY_MOST_NAMES][48];
    double value[STUDY_MOST_NAMES * 3];
    report_text svg = {0};
    int g = 0;
    for (int n = 0; n < networks->n; n++)
        for (int c = 0; c < clusters->n && g < STUDY_MOST_NAMES; c++, g++) {
            const moirai_study_row *whole = study_latency_row(s, networks->name[n], clusters->name[c], true, "moirai");
            snprintf(label[g], sizeof label[g], "%s %.5s", networks->name[n], clusters->name[c]);
            group[g] = label[g];
            for (int w = 0; w < 3; w++) {
                const moirai_study_row *r = ablated(s, networks->name[n], clusters->name[c], w + 1);
                value[g * 3 + w] = r && !r->result && study_has_plan(whole)
                                       ? (double)r->makespan_ns / (double)whole->makespan_ns
                                       : NAN;
            }
        }
    study_draw_bars(&svg, &(study_bars){.title = "Makespan under the whole model, over that of the plan made with it",
                                        .unit = "",
                                        .n_groups = g,
                                        .n_series = 3,
                                        .group = group,
                                        .series = series,
                                        .value = value,
                                        .line = 1,
                                        .line_text = "as good as planned with all of it"});
    study_figure(d, "ablation", &svg,
                 "What leaving a part of the model out costs. A bar below 1 that ignores memory may "
                 "belong to a plan that does not fit: the table says which.");
}

static void ablation(study_document *d, const moirai_study *s)
{
    study_names networks, clusters;
    study_networks(&networks, s, MOIRAI_STUDY_ABLATION);
    study_clusters(&clusters, s, MOIRAI_STUDY_ABLATION);
    if (!networks.n)
        return;
    study_heading(d, "Ablation");
    study_say(
        d, "The placer `moirai` plans without a part of the model, and its plan is carried out under the whole model "
           "(flow edge, ports, memory): its devices, with the better of its own order and the simulator's. *Believed*: "
           "what it thought its plan would take. *Longer*: than the plan made with the whole model in equal time. "
           "Coarsened graphs; what coarsening itself buys is in the chapter above.");
    study_table(d, "ablation", 3,
                "network|testbed|without|believed ms|really ms|whole model ms|longer %|fits the memory");
    for (int n = 0; n < networks.n; n++)
        for (int c = 0; c < clusters.n; c++)
            for (int w = MOIRAI_STUDY_NO_CONGESTION; w < MOIRAI_STUDY_WITHOUTS; w++) {
                const moirai_study_row *r = ablated(s, networks.name[n], clusters.name[c], w);
                if (r)
                    ablation_row(d, study_latency_row(s, networks.name[n], clusters.name[c], true, "moirai"), r);
            }
    figure(d, s, &networks, &clusters);
}

/* ---- the program alone ---- */

static void milp_row(study_document *d, const moirai_study_row *milp, const moirai_study_row *engine)
{
    study_cell(d, "%s", milp->of.network);
    study_cell(d, "%s", milp->of.cluster);
    study_cell(d, "%d", milp->n_ops);
    study_cell_ms(d, study_has_plan(milp) ? milp->makespan_ns : MOIRAI_UNKNOWN);
    study_cell_percent(d, study_gap(milp));
    study_cell_ms(d, study_has_plan(engine) ? engine->makespan_ns : MOIRAI_UNKNOWN);
    study_cell_percent(d, study_gap(engine));
    study_cell(d, "%.1f / %.1f", (double)milp->generation_ns * 1e-9, engine ? (double)engine->generation_ns * 1e-9 : 0);
}

static const moirai_study_row *milp_of(const moirai_study *s, const char *network, const char *cluster,
                                       const char *placer)
{
    study_filter f = {STUDY_ANY};
    f.part = MOIRAI_STUDY_MILP;
    f.network = network;
    f.cluster = cluster;
    f.placer = placer;
    return study_find(s, &f);
}

static void milp(study_document *d, const moirai_study *s)
{
    study_names networks, clusters;
    study_networks(&networks, s, MOIRAI_STUDY_MILP);
    study_clusters(&clusters, s, MOIRAI_STUDY_MILP);
    if (!networks.n)
        return;
    study_heading(d, "The program alone");
    study_say(
        d,
        "The paper's mixed-integer program (placer `milp`, tight formulation, HiGHS, which begins from the quick "
        "placers' best plan) against the engine `moirai`, both with %g s and a gap goal of 0, on coarsened graphs. "
        "Networks of the paper's size are refused before memory is taken.",
        s->time_limit_s);
    study_table(d, "milp", 2, "network|testbed|operators|milp ms|gap %|moirai ms|gap %|seconds, both");
    for (int n = 0; n < networks.n; n++)
        for (int c = 0; c < clusters.n; c++) {
            const moirai_study_row *program = milp_of(s, networks.name[n], clusters.name[c], "milp");
            if (program)
                milp_row(d, program, milp_of(s, networks.name[n], clusters.name[c], "moirai"));
        }
    for (int n = 0; n < networks.n; n++)
        for (int c = 0; c < clusters.n; c++) {
            const moirai_study_row *program = milp_of(s, networks.name[n], clusters.name[c], "milp");
            if (program && program->result)
                study_item(d, "%s, %s: %s", program->of.network, program->of.cluster, program->message);
        }
}

void study_tell_ablation(study_document *d, const moirai_study *s)
{
    ablation(d, s);
    milp(d, s);
}
