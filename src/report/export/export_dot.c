/* The network for Graphviz: a cluster per device, an arrow per (producer, reader) pair; what crosses devices is drawn
 * strong and with its size.
 *
 * newrank has dot give all operators their ranks at once: cluster by cluster, as it does otherwise, devices that wait for
 * each other in turns end in "trouble in init_rank". From MANY operators on, its searches for the best ranks and the
 * fewest crossings are cut short: they would take minutes. */
#include "report/report.h"

#include <inttypes.h>

#include "util/text.h"

static void write_node(report_text *t, const moirai_analysis *a, int32_t i)
{
    const moirai_problem *p = a->problem;
    report_put(t, "    n%d [label=\"", i);
    report_put_dot(t, p->op_name[i]);
    report_put(t, "\\n");
    report_put_dot(t, p->op_type[i]);
    report_put(t, ", %s\"%s];\n", util_human_ns(a->plan->op_finish_ns[i] - a->plan->op_start_ns[i]).s,
               a->on_path[i] ? ", penwidth=2, color=\"#000000\"" : "");
}

static void write_device(report_text *t, const moirai_analysis *a, int32_t k)
{
    report_put(t, "  subgraph cluster_%d {\n    label=\"", k);
    report_put_dot(t, a->problem->device_name[k]);
    report_put(t, "\"; style=\"rounded,filled\"; color=\"%s\"; fillcolor=\"%s22\"; fontsize=16;\n", report_colour(k),
               report_colour(k));
    report_put(t, "    node [fillcolor=\"%s55\", color=\"%s\"];\n", report_colour(k), report_colour(k));
    for (int32_t i = 0; i < a->n_ops; i++)
        if (a->plan->op_device[i] == k)
            write_node(t, a, i);
    report_put(t, "  }\n");
}

#define MANY 400

static int write_dot(char **out, size_t *length, const moirai_analysis *a, const moirai_export_options *o)
{
    (void)o;
    const moirai_problem *p = a->problem;
    report_text t = {0};
    report_put(&t, "digraph plan {\n  label=\"");
    report_put_dot(&t, p->name);
    report_put(&t, ": %s\"; labelloc=t; rankdir=TB; newrank=true; fontname=\"Helvetica\";%s\n",
               util_human_ns(a->plan->makespan_ns).s,
               a->n_ops >= MANY ? " splines=line; nslimit=1; nslimit1=1; mclimit=0.3;" : "");
    report_put(
        &t,
        "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10, margin=\"0.08,0.04\"];\n");
    report_put(&t, "  edge [color=\"#888888\", arrowsize=0.6, fontname=\"Helvetica\", fontsize=9];\n");
    for (int32_t k = 0; k < p->n_devices; k++)
        if (a->device_ops[k])
            write_device(&t, a, k);
    for (int32_t e = 0; e < p->n_edges; e++) {
        int32_t from = p->tensor_producer[p->edge_tensor[e]], to = p->edge_reader[e];
        bool cut = a->plan->op_device[from] != a->plan->op_device[to];
        report_put(&t, "  n%d -> n%d", from, to);
        if (cut)
            report_put(&t, " [color=\"#c00000\", penwidth=1.6, label=\"%s\"]",
                       util_human_bytes(p->tensor_bytes[p->edge_tensor[e]]).s);
        report_put(&t, ";\n");
    }
    report_put(&t, "}\n");
    return report_take(out, length, &t);
}

const moirai_exporter report_export_dot = {
    .name = "dot",
    .summary = "the network by device, for Graphviz",
    .write = write_dot,
};
