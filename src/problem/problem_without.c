/* A problem without some of its operators.
 *
 * A plan of the whole, seen at the remaining operators alone, is a plan of what remains: devices, orders and transfers
 * among them stay as they are. So whatever is proven of the rest holds for the whole; that is what near-cuts live on
 * (docs/theory.md, Lemma 8). The one exception is memory mode peak: a tensor that has lost its readers counts as an output
 * of the network and lives to the end, where in the whole it may die early. Who proves something takes mode static,
 * which asks for less than peak. */
#include "problem/op_part.h"
#include "problem/problem_build.h"

#include <stdlib.h>
#include <string.h>

typedef struct part {
    const moirai_problem *p;
    moirai_problem view; /* of what stays (op_part.c), whose arrays are copied */
    util_memory memory;  /* of the view and of what is below */
    int32_t *op, *number;
    moirai_problem *q;
} part;

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
    q->class_transfer_ns = util_copy(p->class_transfer_ns, cells, sizeof *q->class_transfer_ns);
    return q->class_transfer_ns ? 0 : MOIRAI_EFAIL;
}

static int copy_tensors(const part *x)
{
    const moirai_problem *v = &x->view;
    moirai_problem *q = x->q;
    problem_store *store = q->store;
    size_t n = (size_t)v->n_tensors, edges = (size_t)v->n_edges;
    for (int32_t t = 0; t < v->n_tensors; t++) {
        q->tensor_name[t] = problem_keep(q, v->tensor_name[t]);
        if (!q->tensor_name[t] || util_names_put(store->tensors, q->tensor_name[t], t) < 0)
            return MOIRAI_EFAIL;
    }
    memcpy(q->op_out, v->op_out, n * sizeof *q->op_out);
    memcpy(q->tensor_bytes, v->tensor_bytes, n * sizeof *q->tensor_bytes);
    memcpy(q->tensor_producer, v->tensor_producer, n * sizeof *q->tensor_producer);
    memcpy(q->tensor_class, v->tensor_class, n * sizeof *q->tensor_class);
    memcpy(q->tensor_has_table, v->tensor_has_table, n * sizeof *q->tensor_has_table);
    memcpy(q->tensor_edge_off, v->tensor_edge_off, (n + 1) * sizeof *q->tensor_edge_off);
    memcpy(q->edge_tensor, v->edge_tensor, edges * sizeof *q->edge_tensor);
    memcpy(q->edge_reader, v->edge_reader, edges * sizeof *q->edge_reader);
    return 0;
}

/* What operator i reads, in the order in which it did; the tensors of those that are gone become names from outside. */
static int copy_inputs(const part *x, int32_t i, int32_t *n_in, int32_t *n_extern)
{
    const moirai_problem *p = x->p, *v = &x->view;
    moirai_problem *q = x->q;
    int32_t was = x->op[i];
    bool kept = true;
    for (int32_t j = p->op_in_off[was]; j < p->op_in_off[was + 1]; j++) {
        int32_t t = p->op_in[j], from = p->tensor_producer[t], at = v->op_in_off[i];
        if (x->number[from] == MOIRAI_NONE) {
            kept &= (q->op_extern[(*n_extern)++] = problem_keep(q, p->tensor_name[t])) != NULL;
            continue;
        }
        q->op_in[*n_in] = v->op_out_off[x->number[from]] + t - p->op_out[p->op_out_off[from]];
        while (v->op_in[at] != q->op_in[*n_in])
            at++;
        q->op_in_edge[(*n_in)++] = v->op_in_edge[at];
    }
    for (int32_t j = p->op_extern_off[was]; j < p->op_extern_off[was + 1]; j++)
        kept &= (q->op_extern[(*n_extern)++] = problem_keep(q, p->op_extern[j])) != NULL;
    return kept ? 0 : MOIRAI_EFAIL;
}

static int copy_ops(const part *x)
{
    const moirai_problem *v = &x->view;
    moirai_problem *q = x->q;
    problem_store *store = q->store;
    size_t n = (size_t)v->n_ops, K = (size_t)v->n_devices, words = (size_t)moirai_device_words(v);
    int32_t n_in = 0, n_extern = 0;
    memcpy(q->op_memory_bytes, v->op_memory_bytes, n * sizeof *q->op_memory_bytes);
    memcpy(q->op_time_ns, v->op_time_ns, n * K * sizeof *q->op_time_ns);
    memcpy(q->op_group, v->op_group, n * sizeof *q->op_group);
    memcpy(q->op_devices, v->op_devices, n * words * sizeof *q->op_devices);
    memcpy(q->op_out_off, v->op_out_off, (n + 1) * sizeof *q->op_out_off);
    memcpy(q->topo, v->topo, n * sizeof *q->topo);
    memcpy(q->topo_rank, v->topo_rank, n * sizeof *q->topo_rank);
    for (int32_t i = 0; i < v->n_ops; i++) {
        q->op_name[i] = problem_keep(q, v->op_name[i]);
        q->op_type[i] = problem_keep(q, v->op_type[i]);
        if (!q->op_name[i] || !q->op_type[i] || util_names_put(store->ops, q->op_name[i], i) < 0)
            return MOIRAI_EFAIL;
        q->op_in_off[i] = n_in;
        q->op_extern_off[i] = n_extern;
        if (copy_inputs(x, i, &n_in, &n_extern))
            return MOIRAI_EFAIL;
    }
    q->op_in_off[n] = n_in;
    q->op_extern_off[n] = n_extern;
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
    q->n_ops = x->view.n_ops;
    q->n_tensors = x->view.n_tensors;
    q->n_edges = x->view.n_edges;
    q->name = util_strdup(p->name);
    size_t inputs = (size_t)p->op_in_off[p->n_ops] + (size_t)p->op_extern_off[p->n_ops];
    if (!q->name || problem_reserve(q, inputs) || copy_devices(x) || copy_tensors(x) || copy_ops(x))
        return MOIRAI_EFAIL;
    return copy_groups(x);
}

int moirai_problem_without(moirai_problem **out, const moirai_problem *p, const bool *gone)
{
    part x = {.p = p, .q = util_alloc(1, sizeof *x.q)};
    int32_t n = 0;
    *out = NULL;
    UTIL_TAKE(&x.memory, x.op, (size_t)p->n_ops);
    UTIL_TAKE(&x.memory, x.number, (size_t)p->n_ops);
    int rc = x.q ? util_taken_all(&x.memory) : MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_ops && !rc; i++) {
        x.number[i] = MOIRAI_NONE;
        if (!gone[i])
            x.op[n++] = i;
    }
    rc = rc ? rc : problem_op_part(&x.view, &x.memory, p, x.op, n, x.number);
    for (int32_t i = 0; i < n && !rc; i++)
        x.number[x.op[i]] = i;
    rc = rc ? rc : build(&x);
    util_release(&x.memory);
    if (rc)
        moirai_problem_free(x.q);
    else
        *out = x.q;
    return rc;
}
