/* A placer of one's own, outside the library: the simulator turns devices into times, the checker judges the plan.
 *
 * The method: all on the fastest device that may run it, then one operator after the other goes where the simulated
 * makespan falls most, until nothing helps. Slow, and not bad on small networks.
 *
 * usage: own_placer NETWORK CLUSTER      for example: own_placer inception-tiny inter-server */
#include <moirai/moirai.h>

#include <stdio.h>
#include <stdlib.h>

static int32_t fastest_device(const moirai_problem *p, int32_t op)
{
    int32_t best = MOIRAI_NONE;
    for (int32_t k = 0; k < p->n_devices; k++)
        if ((p->op_devices[op] >> k & 1) && (best < 0 || moirai_op_ns(p, op, k) < moirai_op_ns(p, op, best)))
            best = k;
    return best;
}

/* Moves one operator to where the makespan is least; true if that helped. */
static bool move_op(moirai_sim *sim, const moirai_problem *p, int32_t *device, int32_t op, int64_t *makespan_ns)
{
    int32_t best = device[op];
    int64_t before = *makespan_ns;
    for (int32_t k = 0; k < p->n_devices; k++) {
        if (!(p->op_devices[op] >> k & 1))
            continue;
        device[op] = k;
        int64_t ns = moirai_sim_dispatch(sim, device, NULL);
        if (ns >= 0 && ns < *makespan_ns && moirai_sim_memory_excess(sim, NULL) == 0) {
            *makespan_ns = ns;
            best = k;
        }
    }
    device[op] = best;
    return *makespan_ns < before;
}

static int place(moirai_plan **plan, const moirai_problem *p)
{
    moirai_sim *sim = NULL;
    int32_t *device = calloc((size_t)p->n_ops, sizeof *device);
    int result = device ? moirai_sim_new(&sim, p) : MOIRAI_EFAIL;
    for (int32_t i = 0; !result && i < p->n_ops; i++)
        device[i] = fastest_device(p, i);
    int64_t makespan_ns = result ? 0 : moirai_sim_dispatch(sim, device, NULL);
    for (bool helped = !result; helped;) {
        helped = false;
        for (int32_t i = 0; i < p->n_ops; i++)
            helped |= move_op(sim, p, device, i, &makespan_ns);
    }
    if (!result && moirai_sim_dispatch(sim, device, NULL) >= 0)
        result = moirai_sim_plan(plan, sim);
    moirai_sim_free(sim);
    free(device);
    return result;
}

static int run(const char *network, const char *cluster_name)
{
    moirai_graph *graph = NULL;
    moirai_cluster *cluster = NULL;
    moirai_problem *problem = NULL;
    moirai_problem_options options = {.flow = MOIRAI_FLOW_TENSOR, .cost_model = "roofline"};
    moirai_plan *own = NULL, *best = NULL;
    int result = moirai_zoo_graph(&graph, network, 4);
    if (!result)
        result = moirai_cluster_open(&cluster, cluster_name);
    if (!result)
        result = moirai_problem_new(&problem, graph, cluster, &options);
    if (!result)
        result = place(&own, problem);
    if (!result)
        result = moirai_plan_check(problem, own, NULL, NULL);
    if (!result)
        result = moirai_place(&best, problem, "heft", NULL);
    if (!result)
        printf("own placer %.3f ms, heft %.3f ms\n", 1e-6 * (double)own->makespan_ns, 1e-6 * (double)best->makespan_ns);
    moirai_plan_free(own);
    moirai_plan_free(best);
    moirai_problem_free(problem);
    moirai_cluster_free(cluster);
    moirai_graph_free(graph);
    return result;
}

int main(int argc, char **argv)
{
    int result = run(argc > 1 ? argv[1] : "inception-tiny", argc > 2 ? argv[2] : "inter-server");
    if (result)
        fprintf(stderr, "own_placer: %s\n", moirai_error_message());
    return -result;
}
