/* The finished graph: what it owns, and finding operators by name. */
#include <moirai/graph.h>

#include "graph/graph_store.h"

#include <stdlib.h>

void moirai_graph_free(moirai_graph *g)
{
    if (!g)
        return;
    graph_store *store = g->store;
    if (store) {
        util_strings_free(store->strings);
        util_names_free(store->ops);
        free(store);
    }
    free(g->name);
    free(g->op_name);
    free(g->op_type);
    free(g->op_weight_bytes);
    free(g->op_workspace_bytes);
    free(g->op_flops);
    free(g->op_traffic_bytes);
    free(g->op_in_off);
    free(g->op_in);
    free(g->op_out_off);
    free(g->op_out);
    free(g->op_member_off);
    free(g->op_member);
    free(g->tensor_name);
    free(g->tensor_bytes);
    free(g->tensor_producer);
    free(g->tensor_reader_off);
    free(g->tensor_reader);
    free(g->time_key);
    free(g->time_ns);
    free(g->time_whole_ns);
    free(g->weight_name);
    free(g->weight_bytes);
    free(g->op_weight_off);
    free(g->op_weight);
    free(g->dim);
    free(g->shape);
    free(g->assumed);
    free(g->topo);
    free(g->topo_rank);
    free(g);
}

int32_t moirai_graph_find(const moirai_graph *g, const char *op_name)
{
    const graph_store *store = g->store;
    return util_names_get(store->ops, op_name);
}
