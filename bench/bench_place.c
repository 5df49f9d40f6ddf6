/* The placers that do not search, on networks of the zoo: seconds of processor time (bounds and check included), their
 * ratio to the target, quality, peak memory of the process.
 *
 * usage: bench_place [NETWORK ...]      default: gpt3-330M and alphafold2-3.2B on both testbeds
 * Targets: heft within 0.2 s on gpt3-330M, 2 s and 500 MB on alphafold2-3.2B; m-etf within 5 s there. */
#include <moirai/moirai.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "processor.h"

static double target_s(const char *network, const char *placer)
{
    bool large = strcmp(network, "alphafold2-3.2B") == 0;
    if (strcmp(placer, "heft") == 0)
        return large ? 2.0 : strcmp(network, "gpt3-330M") == 0 ? 0.2 : 0;
    return strcmp(placer, "m-etf") == 0 && large ? 5.0 : 0;
}

static void place(const moirai_problem *p, const char *network, const char *testbed, const char *placer)
{
    moirai_plan *plan;
    clock_t begun = clock();
    int rc = moirai_place(&plan, p, placer, NULL);
    double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC, target = target_s(network, placer);
    if (rc != 0) {
        printf("%-16s %-13s %-10s %s\n", network, testbed, placer, moirai_error_message());
        return;
    }
    printf("%-16s %-13s %-10s %8.4f s ", network, testbed, placer, seconds);
    if (target > 0)
        printf("%6.2f of %.1f s", seconds / target, target);
    else
        printf("%15s", "");
    printf("  makespan %10.3f ms  gap %5.1f %%  peak %6.1f MB\n", (double)plan->makespan_ns * 1e-6,
           100 * moirai_plan_gap(plan), peak_mb());
    moirai_plan_free(plan);
}

static int run(const char *network, const char *testbed)
{
    static const char *const placers[] = {"single", "heft",  "sequential", "chain", "m-topo",
                                          "m-etf",  "m-sct", "getf",       "random"};
    moirai_graph *g = NULL;
    moirai_cluster *c = NULL;
    moirai_problem *p = NULL;
    moirai_problem_options o = {.flow = MOIRAI_FLOW_TENSOR};
    int rc = moirai_zoo_graph(&g, network, 2);
    if (rc == 0)
        rc = moirai_cluster_open(&c, testbed);
    if (rc == 0)
        rc = moirai_problem_new(&p, g, c, &o);
    for (size_t i = 0; rc == 0 && i < sizeof placers / sizeof *placers; i++)
        place(p, network, testbed, placers[i]);
    if (rc != 0)
        fprintf(stderr, "%s\n", moirai_error_message());
    moirai_problem_free(p);
    moirai_cluster_free(c);
    moirai_graph_free(g);
    return rc;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"gpt3-330M", "alphafold2-3.2B"}, *const testbeds[] = {"inter-server",
                                                                                              "intra-server"};
    int n = argc > 1 ? argc - 1 : 2, rc = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 2; j++)
            rc |= run(argc > 1 ? argv[i + 1] : usual[i], testbeds[j]);
    return rc != 0;
}
