/* Any bytes as a moirai-graph file; what reads must also write. */
#include <moirai/graph.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    moirai_graph *g;
    if (moirai_graph_parse(&g, (const char *)data, size, "fuzz") == MOIRAI_OK) {
        moirai_graph_write(g, "/dev/null");
        moirai_graph_free(g);
    }
    return 0;
}
