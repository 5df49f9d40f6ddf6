/* Chapter: how long operators take, as the paper's figure of four networks on four devices.
 *
 * The paper draws distributions without numbers, of GoogLeNet, Inception v4, YOLOv5x and a Transformer, and does not name
 * the devices. Here are those networks of the four that the zoo has, a Transformer of T5's size among them, and the
 * paper's smallest large ones, on the four GPUs of inter-server. */
#include "study/measured.h"

#include <stdlib.h>
#include <string.h>

#include <moirai/zoo.h>

#include "util/util.h"

#define SHORT_NS 100000 /* a tenth of a millisecond */

static const struct {
    const char *name, *paper; /* as the paper calls it, with its operators */
} shown[] = {
    {"googlenet", "GoogLeNet, 306"}, {"t5-small", "Transformer, 1375"}, {"gpt3-330M", "-"}, {"swin-1.8B", "-"}};

static int by_length(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void device_row(study_document *d, const moirai_problem *p, size_t network, int k, int64_t *ns)
{
    double sum = 0;
    int32_t n = p->n_ops, below = 0;
    for (int32_t i = 0; i < n; i++) {
        ns[i] = moirai_op_ns(p, i, k);
        sum += (double)ns[i];
        below += ns[i] < SHORT_NS;
    }
    qsort(ns, (size_t)n, sizeof *ns, by_length);
    study_cell(d, "%s", shown[network].name);
    study_cell(d, "%s", shown[network].paper);
    study_cell(d, "%s", p->device_name[k]);
    study_cell(d, "%d", n);
    study_cell(d, "%.1f", (double)ns[n / 2] * 1e-3);
    study_cell(d, "%.1f", sum / n * 1e-3);
    study_cell(d, "%.1f", (double)ns[n - 1] * 1e-3);
    study_cell_percent(d, (double)below / n);
}

static int network_rows(study_document *d, const moirai_cluster *cluster, size_t network)
{
    moirai_graph *graph = NULL;
    moirai_problem *p = NULL;
    int64_t *ns = NULL;
    int rc = moirai_zoo_graph(&graph, shown[network].name, 4);
    rc = rc ? rc : moirai_problem_new(&p, graph, cluster, &(moirai_problem_options){.flow = MOIRAI_FLOW_EDGE});
    if (!rc && !(ns = util_alloc((size_t)p->n_ops, sizeof *ns)))
        rc = MOIRAI_EFAIL;
    for (int k = 0; !rc && k < p->n_devices; k++)
        device_row(d, p, network, k, ns);
    free(ns);
    moirai_problem_free(p);
    moirai_graph_free(graph);
    return rc;
}

/* The same of times that were measured, from the file. */
static void measured(study_document *d, const moirai_study *s)
{
    study_measure_filter f = {.kind = STUDY_MEASURE_OPERATORS, .round = -1};
    const study_measure *m;
    if (!study_measure_find(s, &f))
        return;
    study_say(d, "Measured, of the samples that the paper's authors have published (GPUs that they call A to D, which "
                 "they do not name; not those of the table above):");
    study_table(d, "operator-times-measured", 2, "network|device|operators|median|mean|longest|short %");
    for (size_t from = 0; (m = study_measure_next(s, &f, &from));) {
        study_cell(d, "%s", m->network);
        study_cell(d, "%s", m->part);
        study_cell(d, "%d", (int)m->operators);
        study_cell(d, "%.1f", m->predicted);
        study_cell(d, "%.1f", m->took);
        study_cell(d, "%.1f", m->seconds);
        study_cell_percent(d, m->cpu_s);
    }
}

void study_tell_operators(study_document *d, const moirai_study *s)
{
    moirai_cluster *cluster = NULL;
    int rc = moirai_cluster_open(&cluster, "inter-server");
    study_heading(d, "Times of operators");
    study_say(
        d,
        "The paper shows how long the operators of four networks take on four devices (GoogLeNet, 306 operators; "
        "Inception v4, 492; YOLOv5x, 420; a Transformer, 1,375; no numbers in its text, devices not named) and notes "
        "that networks have a number of operators with short times. By "
        "the fitted cost model, in microseconds, on the devices of inter-server (A: RTX 2080 Ti, B: T4, C: P4, D: "
        "RTX 3060 Ti); of the four the zoo has GoogLeNet and, for the Transformer, T5's encoder and decoder; "
        "Inception v4 and YOLOv5x it has not. *Short*, for us: below 100 us.");
    study_table(d, "operator-times", 3, "network|in the paper, operators|device|operators|median|mean|longest|short %");
    for (size_t i = 0; i < sizeof shown / sizeof *shown && !rc; i++)
        rc = network_rows(d, cluster, i);
    moirai_cluster_free(cluster);
    if (rc)
        d->failed = true;
    measured(d, s);
}
