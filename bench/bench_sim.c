/* The simulator's speed: tasks (operators and transfers) per second of processor time of dispatch, replay and memory
 * accounting.
 *
 * usage: bench_sim [NETWORK ...]     default: gpt3-330M and alphafold2-3.2B. Targets: dispatch 2, replay 5 million
 * tasks a second. */
#include <moirai/moirai.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void measure(const moirai_problem *p, moirai_sim *sim, const char *network, const char *kind,
                    const int32_t *device)
{
    int rounds = 0, replays = 0, sums = 0;
    double begun = seconds(), dispatch_s, replay_s, memory_s;
    do {
        moirai_sim_dispatch(sim, device, NULL);
        rounds++;
    } while ((dispatch_s = seconds() - begun) < 0.5);
    const moirai_task *log;
    int64_t n = moirai_sim_order(sim, &log);
    moirai_task *order = malloc((size_t)n * sizeof *order);
    for (int64_t j = 0; order != NULL && j < n; j++)
        order[j] = log[j];
    begun = seconds();
    do {
        moirai_sim_replay(sim, device, order, n);
        replays++;
    } while ((replay_s = seconds() - begun) < 0.5);
    begun = seconds();
    do {
        moirai_sim_memory_excess(sim, NULL);
        sums++;
    } while ((memory_s = seconds() - begun) < 0.5);
    double tasks = (double)n * 1e-6;
    printf("%-16s %-7s %-7s %7.0f tasks  dispatch %6.2f  replay %6.2f  memory %6.2f  million tasks/s\n", network,
           moirai_flow_name(p->flow), kind, (double)n, tasks * rounds / dispatch_s, tasks * replays / replay_s,
           tasks * sums / memory_s);
    free(order);
}

static int run(const char *network, moirai_flow flow)
{
    moirai_graph *g = NULL;
    moirai_cluster *c = NULL;
    moirai_problem *p = NULL;
    moirai_sim *sim = NULL;
    moirai_problem_options o = {.flow = flow, .memory = MOIRAI_MEMORY_PEAK};
    int rc = moirai_zoo_graph(&g, network, 2);
    if (rc == 0)
        rc = moirai_cluster_open(&c, "inter-server");
    if (rc == 0)
        rc = moirai_problem_new(&p, g, c, &o);
    if (rc == 0)
        rc = moirai_sim_new(&sim, p);
    int32_t *device = rc == 0 ? malloc((size_t)p->n_ops * sizeof *device) : NULL;
    if (device != NULL) {
        for (int32_t i = 0; i < p->n_ops; i++) /* a quarter of the network on each device: few transfers */
            device[p->topo[i]] = (int32_t)((int64_t)i * p->n_devices / p->n_ops);
        measure(p, sim, network, "quarter", device);
        for (int32_t i = 0; i < p->n_ops; i++) /* every operator elsewhere: as many transfers as there can be */
            device[i] = (int32_t)((uint32_t)i * 2654435761u >> 16) % p->n_devices;
        measure(p, sim, network, "strewn", device);
    }
    if (rc != 0)
        fprintf(stderr, "%s\n", moirai_error_message());
    free(device);
    moirai_sim_free(sim);
    moirai_problem_free(p);
    moirai_cluster_free(c);
    moirai_graph_free(g);
    return rc;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"gpt3-330M", "alphafold2-3.2B"};
    int n = argc > 1 ? argc - 1 : 2, rc = 0;
    for (int i = 0; i < n; i++) {
        rc |= run(argc > 1 ? argv[i + 1] : usual[i], MOIRAI_FLOW_TENSOR);
        rc |= run(argc > 1 ? argv[i + 1] : usual[i], MOIRAI_FLOW_EDGE);
    }
    return rc != 0;
}
