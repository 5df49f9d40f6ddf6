/* A directed acyclic graph of plain numbers, in CSR form: a graph without its names and tensors, put into order, and
 * searched for cycles. Private to graph/. */
#ifndef MOIRAI_GRAPH_DAG_H
#define MOIRAI_GRAPH_DAG_H

#include <stddef.h>
#include <stdint.h>
#include <moirai/error.h>

typedef struct graph_dag {
    int32_t n;
    int32_t *succ_off, *succ; /* ascending within a node, no repeats */
    int32_t *pred_off, *pred; /* the same edges seen from their heads */
    int32_t *topo;            /* among the ready, the least number first */
    int32_t *topo_rank;       /* inverse of topo */
} graph_dag;

/* From n_edges pairs (repeats are merged). MOIRAI_EINPUT if the edges close a cycle: then topo is not to be used,
 * but graph_dag_cycle says which. `d` needs graph_dag_free in every case. O((V+E) + V log V). */
int graph_dag_init(graph_dag *d, int32_t n, const int32_t *from, const int32_t *to, size_t n_edges);
void graph_dag_free(graph_dag *d);

/* After graph_dag_init returned MOIRAI_EINPUT: the nodes of one cycle in order, the least number first, into
 * `cycle` (room for n). Returns how many, or a negative result. */
int32_t graph_dag_cycle(const graph_dag *d, int32_t *cycle);

#endif
