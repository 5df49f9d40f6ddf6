/* Chapter: how long making the plans took, and how much memory, beside the paper's table. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const column[] = {"hrl", "m-sct", "getf", "moirai"};
enum { N_COLUMNS = 4 };

/* Seconds on all testbeds, "0.01 / 0.02". */
static void ours(study_document *d, const moirai_study *s, const study_names *clusters, const char *network,
                 bool coarsened, const char *placer)
{
    char text[96] = "";
    size_t used = 0;
    for (int c = 0; c < clusters->n && used < sizeof text; c++) {
        const moirai_study_row *r = study_latency_row(s, network, clusters->name[c], coarsened, placer);
        const char *slash = c ? " / " : "";
        double seconds = study_has_plan(r) ? (double)r->generation_ns * 1e-9 : NAN;
        used += (size_t)(isnan(seconds) ? snprintf(text + used, sizeof text - used, "%s-", slash)
                                        : snprintf(text + used, sizeof text - used, "%s%.*f", slash,
                                                   seconds < 0.0995 ? 3
                                                   : seconds < 9.95 ? 2
                                                                    : 1,
                                                   seconds));
    }
    study_cell(d, "%s", text);
}

static void table(study_document *d, const moirai_study *s, const study_names *clusters, const study_names *networks,
                  bool coarsened)
{
    study_say(d, "**%s graphs**, seconds:", coarsened ? "Coarsened" : "Original");
    study_table(d, coarsened ? "generation-coarsened" : "generation-original", 1,
                "network|hrl|paper's HRL|m-sct|paper's m-SCT|getf|paper's GETF|moirai|paper's Moirai");
    for (int n = 0; n < networks->n; n++) {
        study_cell(d, "%s", networks->name[n]);
        for (int i = 0; i < N_COLUMNS; i++) {
            double paper = study_paper_generation_s(networks->name[n], coarsened, column[i]);
            ours(d, s, clusters, networks->name[n], coarsened, column[i]);
            if (paper > 0)
                study_cell(d, "%.*f", paper < 1000 ? 1 : 0, paper);
            else
                study_cell(d, "-");
        }
    }
}

static double mean_seconds(const moirai_study *s, const study_names *clusters, const char *network, const char *placer)
{
    study_range range = {0};
    for (int c = 0; c < clusters->n; c++) {
        const moirai_study_row *r = study_latency_row(s, network, clusters->name[c], false, placer);
        study_range_add(&range, study_has_plan(r) ? (double)r->generation_ns * 1e-9 : NAN, NULL);
    }
    return study_range_mean(&range);
}

static void figure(study_document *d, const moirai_study *s, const study_names *clusters, const study_names *networks)
{
    static const char *const series[] = {"m-sct", "paper's m-SCT", "getf", "paper's GETF", "moirai", "paper's Moirai"};
    double value[STUDY_MOST_NAMES * 6];
    report_text svg = {0};
    for (int n = 0; n < networks->n; n++)
        for (int i = 0; i < 3; i++) {
            double paper = study_paper_generation_s(networks->name[n], false, column[i + 1]);
            value[n * 6 + 2 * i] = mean_seconds(s, clusters, networks->name[n], column[i + 1]);
            value[n * 6 + 2 * i + 1] = paper > 0 ? paper : NAN;
        }
    study_draw_bars(&svg, &(study_bars){.title = "Seconds to make a plan, original graphs (logarithmic)",
                                        .unit = " s",
                                        .n_groups = networks->n,
                                        .n_series = 6,
                                        .group = networks->name,
                                        .series = series,
                                        .value = value,
                                        .logarithmic = true});
    study_figure(d, "generation", &svg, "The paper's table of placement generation times as bars, ours beside them.");
}

static void memory(study_document *d, const moirai_study *s, const study_names *clusters, const study_names *networks,
                   const study_names *placers)
{
    char columns[512] = "network";
    size_t used = strlen(columns);
    for (int i = 0; i < placers->n && used < sizeof columns; i++)
        used += (size_t)snprintf(columns + used, sizeof columns - used, "|%s", placers->name[i]);
    study_say(d,
              "**Peak memory** of the placer's own process, its problem included, original graphs, the larger of the "
              "testbeds, megabytes (the paper gives none):");
    study_table(d, "memory", 1, columns);
    for (int n = 0; n < networks->n; n++) {
        study_cell(d, "%s", networks->name[n]);
        for (int i = 0; i < placers->n; i++) {
            int64_t most = 0;
            for (int c = 0; c < clusters->n; c++) {
                const moirai_study_row *r =
                    study_latency_row(s, networks->name[n], clusters->name[c], false, placers->name[i]);
                most = r && r->process_bytes > most ? r->process_bytes : most;
            }
            if (most > 0)
                study_cell(d, "%.0f", (double)most * 1e-6);
            else
                study_cell(d, "-");
        }
    }
}

void study_tell_generation(study_document *d, const moirai_study *s)
{
    study_names networks, clusters, placers;
    char order[96] = "";
    study_networks(&networks, s, MOIRAI_STUDY_LATENCY);
    study_clusters(&clusters, s, MOIRAI_STUDY_LATENCY);
    study_placers(&placers, s, MOIRAI_STUDY_LATENCY);
    if (!networks.n)
        return;
    for (int c = 0; c < clusters.n; c++)
        snprintf(order + strlen(order), sizeof order - strlen(order), "%s%s", c ? " / " : "", clusters.name[c]);
    study_heading(d, "Placement generation time");
    study_say(
        d,
        "Wall-clock seconds of the placer alone, %s. The paper's are from an i7-8700 with an RTX 2080 Ti and Gurobi, "
        "without saying for "
        "which testbed: they stand here for the order of magnitude. `hrl` (and `placeto`) learn for as long as they "
        "may, %g s here, several hours there; `moirai` ends at its limit of %g s or when its plan is proven to be "
        "within 1 %% of the best.",
        order, s->time_limit_s, s->time_limit_s);
    table(d, s, &clusters, &networks, false);
    table(d, s, &clusters, &networks, true);
    figure(d, s, &clusters, &networks);
    memory(d, s, &clusters, &networks, &placers);
}
