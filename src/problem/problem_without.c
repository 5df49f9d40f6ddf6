/* A problem without some of its operators.
 *
 * A plan of the whole, seen at the remaining operators alone, is a plan of what remains: devices, orders and transfers
 * among them stay as they are. So whatever is proven of the rest holds for the whole; that is what near-cuts live on
 * (docs/theory.md, Lemma 8). The one exception is memory mode peak: a tensor that has lost its readers counts as an output
 * of the network and lives to the end, where in the whole it may die early. Who proves something takes mode static,
 * which asks for less than peak. */
#include "problem/problem_build.h"

#include <stdlib.h>
#include <string.h>

typedef struct part {
    const moirai_problem *p;
    const bool *gone;
    moirai_problem *q;
    int32_t *op, *tensor, *edge; /* new number of each old one, MOIRAI_NONE where gone */
} part;

/* Numbers what stays. */
static void number(part *x)
{
    const moirai_problem *p = x->p;
    moirai_problem *q = x->q;
    for (int32_t i = 0; i < p->n_ops; i++)
        x->op[i] = x->gone[i] ? MOIRAI_NONE : q->n_ops++;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        bool stays = !x->gone[p->tensor_producer[t]];
        x->tensor[t] = stays ? q->n_tensors++ : MOIRAI_NONE;
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
            x->edge[e] = stays && !x->gone[p->edge_reader[e]] ? q->n_edges++ : MOIRAI_NONE;
    }
}

static int copy_devices(const part *x)
{
    const moirai_problem *p = x->p;
    moirai_problem *q = x->q;
    size_t K = (size_t)p->n_devices, cells = K * K * (size_t)p->n_classes;
    for (size_t k = 0; k < K; k++)
        if (!(q->device_name[k] = problem_keep(q, p->device_name[k])) ||
            !(q->device_type[k] = problem_keep(q, p->device_type[k])))
            return MOIRAI_EFAIL;
    memcpy(q->device_memory_bytes, p->device_memory_bytes, K * sizeof *q->device_memory_bytes);
    memcpy(q->device_launch_ns, p->device_launch_ns, K * sizeof *q->device_launch_ns);
    memcpy(q->device_segment_ns, p->device_segment_ns, K * sizeof *q->device_segment_ns);
    memcpy(q->bytes_per_second, p->bytes_per_second, K * K * sizeof *q->bytes_per_second);
    memcpy(q->latency_ns, p->latency_ns, K * K * sizeof *q->latency_ns);
    q->n_classes = p->n_classes;
    q->class_transfer_ns = util_alloc(cells, sizeof *q->class_transfer_ns);
    if (!q->class_transfer_ns)
        return MOIRAI_EFAIL;
    if (cells)
        memcpy(q->class_transfer_ns, p->class_transfer_ns, cells * sizeof *q->class_transfer_ns);
    return 0;
}

static int copy_tensors(const part *x)
{
    const moirai_problem *p = x->p;
    moirai_problem *q = x->q;
    problem_store *store = q->store;
    int32_t edges = 0;
    for (int32_t t = 0; t < p->n_tensors; t++) {
        int32_t n = x->tensor[t];
        if (n == MOIRAI_NONE)
            continue;
        q->tensor_name[n] = problem_keep(q, p->tensor_name[t]);
        if (!q->tensor_name[n] || util_names_put(store->tensors, q->tensor_name[n], n) < 0)
            return MOIRAI_EFAIL;
        q->tensor_bytes[n] = p->tensor_bytes[t];
        q->tensor_producer[n] = x->op[p->tensor_producer[t]];
        q->tensor_class[n] = p->tensor_class[t];
        q->tensor_has_table[n] = p->tensor_has_table[t];
        q->tensor_edge_off[n] = edges;
        for (int32_t e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++)
            if (x->edge[e] != MOIRAI_NONE) {
                q->edge_tensor[edges] = n;
                q->edge_reader[edges++] = x->op[p->edge_reader[e]];
            }
    }
    q->tensor_edge_off[q->n_tensors] = edges;
    return 0;
}

/* What operator i reads and writes; the tensors of those that are gone become names from outside. */
static int copy_ends(const part *x, int32_t i, int32_t *n_in, int32_t *n_out, int32_t *n_extern)
{
    const moirai_problem *p = x->p;
    moirai_problem *q = x->q;
    bool kept = true;
    for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++) {
        int32_t t = p->op_in[j];
        if (x->tensor[t] == MOIRAI_NONE) {
            kept &= (q->op_extern[(*n_extern)++] = problem_keep(q, p->tensor_name[t])) != NULL;
            continue;
        }
        q->op_in[*n_in] = x->tensor[t];
        q->op_in_edge[(*n_in)++] = x->edge[p->op_in_edge[j]];
    }
    for (int32_t j = p->op_extern_off[i]; j < p->op_extern_off[i + 1]; j++)
        kept &= (q->op_extern[(*n_extern)++] = problem_keep(q, p->op_extern[j])) != NULL;
    for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++)
        q->op_out[(*n_out)++] = x->tensor[p->op_out[j]];
    return kept ? 0 : MOIRAI_EFAIL;
}

static int copy_ops(const part *x)
{
    const moirai_problem *p = x->p;
    moirai_problem *q = x->q;
    problem_store *store = q->store;
    size_t K = (size_t)p->n_devices, words = (size_t)moirai_device_words(p);
    int32_t n_in = 0, n_out = 0, n_extern = 0;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t n = x->op[i];
        if (n == MOIRAI_NONE)
            continue;
        q->op_name[n] = problem_keep(q, p->op_name[i]);
        q->op_type[n] = problem_keep(q, p->op_type[i]);
        if (!q->op_name[n] || !q->op_type[n] || util_names_put(store->ops, q->op_name[n], n) < 0)
            return MOIRAI_EFAIL;
        q->op_memory_bytes[n] = p->op_memory_bytes[i];
        memcpy(q->op_time_ns + (size_t)n * K, p->op_time_ns + (size_t)i * K, K * sizeof *q->op_time_ns);
        q->op_group[n] = p->op_group[i];
        memcpy(q->op_devices + (size_t)n * words, p->op_devices + (size_t)i * words, words * sizeof *q->op_devices);
        q->op_in_off[n] = n_in;
        q->op_out_off[n] = n_out;
        q->op_extern_off[n] = n_extern;
        if (copy_ends(x, i, &n_in, &n_out, &n_extern))
            return MOIRAI_EFAIL;
    }
    q->op_in_off[q->n_ops] = n_in;
    q->op_out_off[q->n_ops] = n_out;
    q->op_extern_off[q->n_ops] = n_extern;
    for (int32_t z = 0, n = 0; z < p->n_ops; z++)
        if (x->op[p->topo[z]] != MOIRAI_NONE) {
            q->topo[n] = x->op[p->topo[z]];
            q->topo_rank[q->topo[n]] = n;
            n++;
        }
    return 0;
}

/* Groups keep the devices that all of their members allow, those that are gone included: op_devices is copied. */
static int copy_groups(const part *x)
{
    const moirai_problem *p = x->p;
    moirai_problem *q = x->q;
    free(q->group_name);
    q->group_name = util_alloc((size_t)UTIL_MAX(p->n_groups, 1), sizeof *q->group_name);
    if (!q->group_name)
        return MOIRAI_EFAIL;
    q->n_groups = p->n_groups;
    for (int32_t g = 0; g < p->n_groups; g++)
        if (!(q->group_name[g] = problem_keep(q, p->group_name[g])))
            return MOIRAI_EFAIL;
    return problem_number_groups(q);
}

static int build(part *x)
{
    const moirai_problem *p = x->p;
    moirai_problem *q = x->q;
    q->flow = p->flow;
    q->congestion = p->congestion;
    q->memory = p->memory;
    q->move_ns_per_mb = p->move_ns_per_mb;
    q->n_devices = p->n_devices;
    number(x);
    q->name = util_strdup(p->name);
    size_t inputs = (size_t)p->op_in_off[p->n_ops] + (size_t)p->op_extern_off[p->n_ops];
    if (!q->name || problem_reserve(q, inputs) || copy_devices(x) || copy_tensors(x) || copy_ops(x))
        return MOIRAI_EFAIL;
    return copy_groups(x);
}

int moirai_problem_without(moirai_problem **out, const moirai_problem *p, const bool *gone)
{
    *out = NULL;
    part x = {.p = p, .gone = gone};
    x.q = util_alloc(1, sizeof *x.q);
    x.op = util_alloc((size_t)p->n_ops, sizeof *x.op);
    x.tensor = util_alloc((size_t)p->n_tensors, sizeof *x.tensor);
    x.edge = util_alloc((size_t)p->n_edges, sizeof *x.edge);
    int rc = x.q && x.op && x.tensor && x.edge ? build(&x) : MOIRAI_EFAIL;
    free(x.op);
    free(x.tensor);
    free(x.edge);
    if (rc)
        moirai_problem_free(x.q);
    else
        *out = x.q;
    return rc;
}
