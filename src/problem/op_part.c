/* A problem of some of its operators: arrays by operator, tensor and edge are copied, all else is shared. */
#include "problem/op_part.h"

#include <stdlib.h>
#include <string.h>

static int reserve(moirai_problem *q, util_memory *m, const moirai_problem *p, const int32_t *op)
{
    size_t n = (size_t)q->n_ops, tensors = 0, edges = 0, words = (size_t)moirai_device_words(p);
    for (size_t i = 0; i < n; i++) {
        tensors += (size_t)(p->op_out_off[op[i] + 1] - p->op_out_off[op[i]]);
        edges += (size_t)(p->op_in_off[op[i] + 1] - p->op_in_off[op[i]]);
    }
    UTIL_TAKE(m, q->op_name, n);
    UTIL_TAKE(m, q->op_type, n);
    UTIL_TAKE(m, q->op_memory_bytes, n);
    UTIL_TAKE(m, q->op_time_ns, n * (size_t)q->n_devices);
    UTIL_TAKE(m, q->op_group, n);
    UTIL_TAKE(m, q->op_devices, n * words);
    UTIL_TAKE(m, q->op_in_off, n + 1);
    UTIL_TAKE(m, q->op_out_off, n + 1);
    UTIL_TAKE(m, q->topo, n);
    UTIL_TAKE(m, q->topo_rank, n);
    UTIL_TAKE(m, q->op_extern_off, n + 1);
    UTIL_TAKE(m, q->tensor_name, tensors);
    UTIL_TAKE(m, q->tensor_bytes, tensors);
    UTIL_TAKE(m, q->tensor_producer, tensors);
    UTIL_TAKE(m, q->tensor_class, tensors);
    UTIL_TAKE(m, q->tensor_has_table, tensors);
    UTIL_TAKE(m, q->op_out, tensors);
    UTIL_TAKE(m, q->tensor_edge_off, tensors + 1);
    UTIL_TAKE(m, q->edge_tensor, edges);
    UTIL_TAKE(m, q->edge_reader, edges);
    UTIL_TAKE(m, q->op_in, edges);
    UTIL_TAKE(m, q->op_in_edge, edges);
    return util_taken_all(m);
}

static int by_rank(const void *a, const void *b, void *data)
{
    const int32_t *rank = data;
    return rank[*(const int32_t *)a] - rank[*(const int32_t *)b];
}

static void copy_ops(moirai_problem *q, const moirai_problem *p, const int32_t *op, const int32_t *number)
{
    size_t K = (size_t)p->n_devices, words = (size_t)moirai_device_words(p);
    for (int32_t i = 0; i < q->n_ops; i++) {
        q->op_name[i] = p->op_name[op[i]];
        q->op_type[i] = p->op_type[op[i]];
        q->op_memory_bytes[i] = p->op_memory_bytes[op[i]];
        q->op_group[i] = p->op_group[op[i]];
        memcpy(q->op_devices + (size_t)i * words, p->op_devices + (size_t)op[i] * words, words * sizeof *q->op_devices);
        memcpy(q->op_time_ns + (size_t)i * K, p->op_time_ns + (size_t)op[i] * K, K * sizeof *q->op_time_ns);
        q->topo[i] = op[i];
    }
    qsort_r(q->topo, (size_t)q->n_ops, sizeof *q->topo, by_rank, p->topo_rank);
    for (int32_t z = 0; z < q->n_ops; z++) {
        q->topo[z] = number[q->topo[z]];
        q->topo_rank[q->topo[z]] = z;
    }
}

static void copy_tensors(moirai_problem *q, const moirai_problem *p, const int32_t *op, const int32_t *number)
{
    int32_t t = 0, e = 0;
    for (int32_t i = 0; i < q->n_ops; i++) {
        q->op_out_off[i] = t;
        for (int32_t j = p->op_out_off[op[i]]; j < p->op_out_off[op[i] + 1]; j++, t++) {
            int32_t from = p->op_out[j], begin = e;
            q->tensor_name[t] = p->tensor_name[from];
            q->tensor_bytes[t] = p->tensor_bytes[from];
            q->tensor_producer[t] = i;
            q->tensor_class[t] = p->tensor_class[from];
            q->tensor_has_table[t] = p->tensor_has_table[from];
            q->op_out[t] = t;
            q->tensor_edge_off[t] = begin;
            for (int32_t f = p->tensor_edge_off[from]; f < p->tensor_edge_off[from + 1]; f++) {
                int32_t reader = number[p->edge_reader[f]], at = e;
                if (reader == MOIRAI_NONE)
                    continue;
                q->edge_tensor[e++] = t;
                for (; at > begin && q->edge_reader[at - 1] > reader; at--)
                    q->edge_reader[at] = q->edge_reader[at - 1];
                q->edge_reader[at] = reader; /* ascending */
            }
        }
    }
    q->op_out_off[q->n_ops] = q->n_tensors = t;
    q->tensor_edge_off[t] = q->n_edges = e;
}

/* By tensor. */
static void find_inputs(moirai_problem *q)
{
    for (int32_t e = 0; e < q->n_edges; e++)
        q->op_in_off[q->edge_reader[e] + 1]++;
    for (int32_t i = 0; i < q->n_ops; i++)
        q->op_in_off[i + 1] += q->op_in_off[i];
    for (int32_t e = q->n_edges - 1; e >= 0; e--) { /* from the back of each list: its end becomes its beginning */
        int32_t at = --q->op_in_off[q->edge_reader[e] + 1];
        q->op_in[at] = q->edge_tensor[e];
        q->op_in_edge[at] = e;
    }
    memmove(q->op_in_off, q->op_in_off + 1, (size_t)q->n_ops * sizeof *q->op_in_off);
    q->op_in_off[q->n_ops] = q->n_edges;
}

int problem_op_part(moirai_problem *out, util_memory *memory, const moirai_problem *p, const int32_t *op, int32_t n,
                    int32_t *number)
{
    *out = *p;
    out->n_ops = n;
    out->n_weights = 0;
    if (reserve(out, memory, p, op))
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < n; i++)
        number[op[i]] = i;
    copy_ops(out, p, op, number);
    copy_tensors(out, p, op, number);
    find_inputs(out);
    for (int32_t i = 0; i < n; i++)
        number[op[i]] = MOIRAI_NONE;
    return 0;
}
