/* A network on a cluster: flow tensor, ports, static memory, as in the table of irregular networks (docs/results.md).
 *
 * A cluster that is no testbed has devices of one to four types, or all of different ones, and equal links of 25 to 400
 * Gbit/s with up to 10 us. */
#include <stdio.h>
#include <string.h>

#include <moirai/coarsen.h>

#include "generate/generate.h"
#include "generate/network.h"

static int draw_cluster(moirai_cluster **out, generate_net *n, int32_t n_devices)
{
    static const char *const type[] = {"v100",      "p100",    "t4",  "p4", "rtx2080ti",
                                       "rtx3060ti", "rtx3090", "a10", "l4", "a100"};
    static const int gbps[] = {25, 40, 100, 200, 400};
    const int n_types = (int)(sizeof type / sizeof *type);
    int kinds = generate_net_draw(n, 0, 1) ? n_devices : generate_net_draw(n, 2, 4);
    int first = generate_net_draw(n, 0, n_types - 1), step = 1 + 2 * generate_net_draw(n, 0, 1); /* 1 or 3: all types */
    char text[1024] = "";
    for (int32_t k = 0; k < n_devices; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s, ", type[(first + k % kinds * step) % n_types]);
    int rate = gbps[generate_net_draw(n, 0, 4)], latency = generate_net_draw(n, 0, 10);
    snprintf(text + strlen(text), sizeof text - strlen(text), "%dGbps %dus", rate, latency);
    return moirai_cluster_synthetic(out, text);
}

int generate_coarsen(moirai_graph **g)
{
    moirai_rules *rules = NULL;
    moirai_graph *coarse = NULL;
    int rc = moirai_rules_open(&rules, "onnxruntime");
    rc = rc ? rc : moirai_coarsen(&coarse, *g, rules, NULL);
    moirai_rules_free(rules);
    if (rc)
        return rc;
    moirai_graph_free(*g);
    *g = coarse;
    return 0;
}

int generate_network_problem(moirai_problem **out, generate_network_fn *network, const generate_network_setting *s)
{
    generate_net n = {.size = s->size};
    moirai_graph *g = NULL;
    moirai_cluster *c = NULL;
    *out = NULL;
    util_rng_seed(&n.rng, s->seed);
    int rc = s->cluster ? moirai_cluster_open(&c, s->cluster) : draw_cluster(&c, &n, s->n_devices);
    for (int32_t k = 0; !rc && k < c->n_devices; k++) {
        int64_t bytes = c->device[k].memory_bytes;
        n.memory_bytes += bytes;
        n.least_memory_bytes = k ? UTIL_MIN(n.least_memory_bytes, bytes) : bytes;
    }
    rc = rc ? rc : zoo_net_begin(&n.z, s->name, 4);
    if (!rc) {
        network(&n);
        rc = zoo_net_finish(&g, &n.z);
    }
    if (!rc && s->coarse)
        rc = generate_coarsen(&g);
    moirai_problem_options o = {.flow = MOIRAI_FLOW_TENSOR,
                                .congestion = MOIRAI_CONGESTION_PORT,
                                .memory = MOIRAI_MEMORY_STATIC,
                                .name = s->name,
                                .cost_model = s->fitted ? "fitted" : "roofline",
                                .runtime = s->fitted ? MOIRAI_RUNTIME_EAGER : MOIRAI_RUNTIME_UNSET};
    rc = rc ? rc : moirai_problem_new(out, g, c, &o);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return rc;
}
