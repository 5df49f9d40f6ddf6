/* Any bytes as the timeline of a run of a small network on a small cluster; what reads must leave both writable. */
#include <moirai/refine.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char graph_json[] =
    "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"g\", \"ops\": ["
    "{\"name\": \"a\", \"type\": \"Relu\", \"inputs\": [\"x\"], \"outputs\": [{\"name\": \"t\", \"bytes\": 4}],"
    " \"time_ns\": {\"A\": 5, \"B\": 7}},"
    "{\"name\": \"b\", \"type\": \"Relu\", \"inputs\": [\"t\"], \"outputs\": [], \"time_ns\": {\"A\": 0, \"B\": 9}}]}";
static const char cluster_json[] =
    "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"c\", \"devices\": ["
    "{\"name\": \"A\", \"memory\": \"1GB\"}, {\"name\": \"B\", \"memory\": \"1GB\"}], \"links\": ["
    "{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"1Gbps\", \"latency\": \"5us\", \"both\": true}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    moirai_graph *g;
    moirai_cluster *c;
    if (moirai_graph_parse(&g, graph_json, strlen(graph_json), "graph") ||
        moirai_cluster_parse(&c, cluster_json, strlen(cluster_json), "cluster"))
        abort(); /* the target itself is broken */
    moirai_refine_parse(g, c, (const char *)data, size, "fuzz", NULL);
    for (int32_t i = 0; i < g->n_ops * g->n_time_keys; i++)
        if (g->time_ns[i] < 0)
            abort();
    for (int32_t i = 0; i < c->n_devices * c->n_devices; i++)
        if (c->latency_ns[i] < 0)
            abort();
    moirai_graph_write(g, "/dev/null");
    moirai_cluster_write(c, "/dev/null");
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return 0;
}
