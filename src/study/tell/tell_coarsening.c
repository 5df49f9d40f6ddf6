/* Chapter: what coarsening does to operators, latency and generation time. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const moirai_study_row *moirai_row(const moirai_study *s, const char *network, const char *cluster,
                                          bool coarsened)
{
    return study_latency_row(s, network, cluster, coarsened, "moirai");
}

static void counts(study_document *d, const moirai_study *s, const study_names *networks)
{
    study_say(d,
              "**Operators.** The paper does not publish the rules behind its counts (its three examples are about "
              "convolutions, which these networks do not have). Ours are the shipped rules `onnxruntime`, which fuse "
              "more: each head's attention becomes one operator.");
    study_table(d, "operators", 1, "network|original|paper's|coarsened|paper's");
    for (int n = 0; n < networks->n; n++) {
        study_filter f = {STUDY_ANY};
        f.part = MOIRAI_STUDY_LATENCY;
        f.network = networks->name[n];
        f.coarsened = 1;
        const moirai_study_row *r = study_find(s, &f);
        const moirai_paper_network *paper = moirai_paper_network_find(networks->name[n]);
        if (!r)
            continue;
        study_cell(d, "%s", networks->name[n]);
        study_cell(d, "%d", r->n_ops_original);
        study_cell(d, paper ? "%d" : "-", paper ? paper->n_ops : 0);
        study_cell(d, "%d", r->n_ops);
        study_cell(d, paper ? "%d" : "-", paper ? paper->n_coarsened : 0);
    }
}

static void effect(study_document *d, const moirai_study *s, const study_names *networks, const study_names *clusters)
{
    study_say(d,
              "**Effect on the plans of moirai.** *Fused*: every fused operator is one kernel, with one launch and no "
              "traffic inside. *Unfused*: the placement found on the coarsened graph, carried out with every operator "
              "a kernel of its own, as a runtime without fusion would. Negative: longer than the plan of the original "
              "graph. *Time left*: generation time on the coarsened graph over that on the original.");
    study_table(d, "coarsening", 2,
                "network|testbed|original ms|coarsened, fused ms|cut %|coarsened, unfused ms|cut %|time left %");
    for (int n = 0; n < networks->n; n++)
        for (int c = 0; c < clusters->n; c++) {
            const moirai_study_row *fine = moirai_row(s, networks->name[n], clusters->name[c], false);
            const moirai_study_row *coarse = moirai_row(s, networks->name[n], clusters->name[c], true);
            if (!study_has_plan(fine) || !study_has_plan(coarse))
                continue;
            double was = (double)fine->makespan_ns;
            study_cell(d, "%s", networks->name[n]);
            study_cell(d, "%s", clusters->name[c]);
            study_cell_ms(d, fine->makespan_ns);
            study_cell_ms(d, coarse->makespan_ns);
            study_cell_percent(d, (was - (double)coarse->makespan_ns) / was);
            study_cell_ms(d, coarse->unfused_ns);
            study_cell_percent(d, coarse->unfused_ns < 0 ? NAN : (was - (double)coarse->unfused_ns) / was);
            study_cell_percent(d, fine->generation_ns > 0 ? (double)coarse->generation_ns / (double)fine->generation_ns
                                                          : NAN);
        }
}

void study_tell_coarsening(study_document *d, const moirai_study *s)
{
    study_names networks, clusters;
    study_networks(&networks, s, MOIRAI_STUDY_LATENCY);
    study_clusters(&clusters, s, MOIRAI_STUDY_LATENCY);
    if (!networks.n)
        return;
    study_heading(d, "Coarsening");
    counts(d, s, &networks);
    effect(d, s, &networks, &clusters);
}
