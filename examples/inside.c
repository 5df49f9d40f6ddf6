/* A bound and a step of one's own at work: what they do to the gap of a problem.
 *
 * The bound (bound_behind.c) is tried on a stem with a fan behind it, the step (step_climb.c) on GoogLeNet, in a search
 * that is left with no other steps than the starts, once without it and once with it. Ends with 1 unless the gap is smaller
 * by each of them.
 *
 * usage: inside */
#include <moirai/moirai.h>

#include <stdio.h>
#include <string.h>

#include "util/methods.h"

#define LEAVES 9

/* A stem of 100 us, a fan of operators of unequal lengths, a join; two devices, one a little slower. */
static int make_fan(moirai_problem **p)
{
    char json[8000];
    int n = snprintf(
        json, sizeof json,
        "{\"format\": \"moirai-problem\", \"version\": 1, \"name\": \"fan\", \"flow\": \"tensor\", "
        "\"congestion\": \"port\", \"memory\": \"static\", \"devices\": [{\"name\": \"A\", \"memory_bytes\": "
        "1000}, {\"name\": \"B\", \"memory_bytes\": 1000}], \"channels\": ["
        "{\"from\": \"A\", \"to\": \"B\", \"bytes_per_second\": 1000000000, \"latency_ns\": 100}, "
        "{\"from\": \"B\", \"to\": \"A\", \"bytes_per_second\": 1000000000, \"latency_ns\": 100}], "
        "\"ops\": [{\"name\": \"stem\", \"type\": \"Conv\", \"memory_bytes\": 1, \"time_ns\": [100000, 120000], "
        "\"inputs\": [], \"outputs\": [{\"name\": \"s\", \"bytes\": 100}]}");
    for (int i = 0; i < LEAVES; i++)
        n += snprintf(
            json + n, sizeof json - (size_t)n,
            ", {\"name\": \"leaf%d\", \"type\": \"Conv\", \"memory_bytes\": 1, \"time_ns\": [%d, %d], \"inputs\": "
            "[\"s\"], \"outputs\": [{\"name\": \"t%d\", \"bytes\": 100}]}",
            i, 20000 + 7000 * i, 21000 + 7300 * i, i);
    n += snprintf(
        json + n, sizeof json - (size_t)n,
        ", {\"name\": \"join\", \"type\": \"Concat\", \"memory_bytes\": 1, \"time_ns\": [1000, 1000], \"inputs\": [");
    for (int i = 0; i < LEAVES; i++)
        n += snprintf(json + n, sizeof json - (size_t)n, "%s\"t%d\"", i ? ", " : "", i);
    n += snprintf(json + n, sizeof json - (size_t)n, "], \"outputs\": []}]}");
    return moirai_problem_parse(p, json, (size_t)n, "fan");
}

/* The names of all methods but the starts and, if `own`, the step of this example. */
static void leave_out(char *text, size_t size, int own)
{
    size_t n = 0;
    *text = '\0';
    for (int i = 0; i < UTIL_N_METHODS; i++) {
        const char *name = util_method_name((util_method)i);
        if (strcmp(name, "starts") != 0 && !(own && !strcmp(name, "climb")))
            n += (size_t)snprintf(text + n, size - n, "%s%s", n ? "," : "", name);
    }
}

static int place(moirai_plan **plan, const moirai_problem *p, int own)
{
    char off[2000];
    moirai_setting setting = {.name = "off", .value = off};
    moirai_place_options o;
    leave_out(off, sizeof off, own);
    moirai_place_options_init(&o);
    o.budget.threads = 1;
    o.setting = &setting;
    o.n_settings = 1;
    o.gap = 0;
    return moirai_place(plan, p, "moirai", &o);
}

static int make_network(moirai_problem **p, const char *network, const char *cluster_name)
{
    moirai_graph *graph = NULL;
    moirai_cluster *cluster = NULL;
    moirai_problem_options options = {.flow = MOIRAI_FLOW_TENSOR, .cost_model = "roofline"};
    int rc = moirai_zoo_graph(&graph, network, 4);
    rc = rc ? rc : moirai_cluster_open(&cluster, cluster_name);
    rc = rc ? rc : moirai_problem_new(p, graph, cluster, &options);
    moirai_graph_free(graph);
    moirai_cluster_free(cluster);
    return rc;
}

/* 0 where the gap is smaller with the bound than by path and load. */
static int try_bound(void)
{
    moirai_problem *p = NULL;
    moirai_plan *plan = NULL;
    int rc = make_fan(&p);
    rc = rc ? rc : place(&plan, p, 0);
    if (!rc) {
        int64_t path_ns = moirai_bound_critical_path(p), load_ns = moirai_bound_load(p);
        int64_t plain_ns = path_ns > load_ns ? path_ns : load_ns;
        printf("bound: a gap of %.2f %% by path and load, %.2f %% by '%s'\n",
               100 * (double)(plan->makespan_ns - plain_ns) / (double)plan->makespan_ns, 100 * moirai_plan_gap(plan),
               plan->origin.bound_by);
        rc = plan->lower_bound_ns > plain_ns ? 0 : -1;
    }
    moirai_plan_free(plan);
    moirai_problem_free(p);
    return rc;
}

/* 0 where the gap is smaller with the step than without it. */
static int try_step(void)
{
    moirai_problem *p = NULL;
    moirai_plan *without = NULL, *with = NULL;
    int rc = make_network(&p, "googlenet", "inter-server");
    rc = rc ? rc : place(&without, p, 0);
    rc = rc ? rc : place(&with, p, 1);
    if (!rc) {
        printf("step: a gap of %.2f %% by '%s', %.2f %% by '%s'\n", 100 * moirai_plan_gap(without),
               without->origin.plan_by, 100 * moirai_plan_gap(with), with->origin.plan_by);
        rc = moirai_plan_gap(with) < moirai_plan_gap(without) ? 0 : -1;
    }
    moirai_plan_free(without);
    moirai_plan_free(with);
    moirai_problem_free(p);
    return rc;
}

int main(void)
{
    int rc = try_bound();
    rc = rc ? rc : try_step();
    if (rc)
        fprintf(stderr, "inside: %s\n", rc == -1 ? "a gap is no smaller" : moirai_error_message());
    return rc ? 1 : 0;
}
