/* The coarse graph: every fusion becomes one operator, all else is copied.
 *
 * A fused operator has its members' weights and arithmetic, and the largest of their workspaces. It reads what comes
 * from outside and writes what is read outside or by nobody. What passes between members is neither written nor read
 * again:
 *   flops     what the members state. One that states none adds none, unless it is a product or a convolution: then
 *             nobody knows the sum, and the cost model works the product out of its sizes;
 *   traffic   the members' sum less twice the tensors between them, and never below what crosses the boundary
 *             (tensors and weights). A member that states none reads and writes its tensors and weights, or nothing
 *             where it only looks at memory in another way; where no member states any, the fused one does neither;
 *   time_ns   for a device that all members were measured on: the members' sum less a launch for every member
 *             but one, less the time of the saved traffic at the device's bandwidth, and never below the slowest
 *             member. A device of which no figures are known keeps the plain sum.
 * The constants are the roofline model's: a launch of 5 us, three quarters of the data sheet's bandwidth.
 *
 * O(V+E) and what the builder needs. */
#include <stdlib.h>
#include <string.h>

#include <moirai/cluster.h>
#include "coarsen/coarsen.h"
#include "cost/cost_class.h"

#define LAUNCH_NS 5000.0
#define SHARE_OF_BANDWIDTH 0.75

typedef struct fuser {
    const moirai_graph *g;
    const coarsen_fusions *f;
    moirai_graph_builder *b;
    int32_t *seen; /* [tensor] 1 + number of the last fusion that listed it as an input */
    int32_t *held; /* [shared weight] 1 + number of the last fusion that holds it */
    double *gb_s;  /* [time key] memory bandwidth of that device, 0: unknown */
    char *type;    /* the joined type under construction */
    size_t type_capacity;
} fuser;

/* What a fusion's members add up to. */
typedef struct total {
    int64_t weight_bytes, workspace_bytes;
    int64_t flops;           /* MOIRAI_UNKNOWN where those of a product are */
    int64_t traffic_bytes;   /* of all members, stated or not */
    bool some_flops, stated; /* some member states its flops; its traffic */
    int64_t inner_bytes;     /* tensors between members */
    int64_t boundary_bytes;  /* tensors that enter and leave */
} total;

static int add_to(int64_t *sum, int64_t value, const char *what, const char *op)
{
    if (*sum == MOIRAI_UNKNOWN || value == MOIRAI_UNKNOWN) {
        *sum = MOIRAI_UNKNOWN;
        return 0;
    }
    if (!util_add64(sum, *sum, value))
        return moirai_error(MOIRAI_EINPUT, "operator '%s': the %s of what is fused do not fit 64 bits", op, what);
    return 0;
}

static int32_t group_of_tensor(const fuser *x, int32_t tensor)
{
    int32_t producer = x->g->tensor_producer[tensor];

    return producer == MOIRAI_NONE ? MOIRAI_NONE : x->f->group[producer];
}

/* Does the tensor leave the fusion? Readers are all inside or, for the last member, all outside. */
static bool leaves(const fuser *x, int32_t tensor, int32_t group)
{
    const moirai_graph *g = x->g;
    int32_t k = g->tensor_reader_off[tensor];

    return k == g->tensor_reader_off[tensor + 1] || x->f->group[g->tensor_reader[k]] != group;
}

/* Inputs of one member that come from outside, each tensor once per fusion. */
static int member_inputs(fuser *x, int32_t op, int32_t group, int32_t fused, total *sum)
{
    const moirai_graph *g = x->g;
    int rc = 0;

    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1] && !rc; e++) {
        int32_t t = g->op_in[e];

        if (group_of_tensor(x, t) == group || x->seen[t] == group + 1)
            continue;
        x->seen[t] = group + 1;
        rc = moirai_graph_builder_input(x->b, fused, g->tensor_name[t]);
        rc = rc ? rc : add_to(&sum->boundary_bytes, g->tensor_bytes[t], "tensors", g->op_name[op]);
    }
    return rc;
}

static int member_outputs(fuser *x, int32_t op, int32_t group, int32_t fused, total *sum)
{
    const moirai_graph *g = x->g;
    const char *name = g->op_name[op];
    int rc = 0;

    for (int32_t e = g->op_out_off[op]; e < g->op_out_off[op + 1] && !rc; e++) {
        int32_t t = g->op_out[e];

        if (leaves(x, t, group)) {
            rc = moirai_graph_builder_output(x->b, fused, g->tensor_name[t], g->tensor_bytes[t]);
            rc = rc ? rc : add_to(&sum->boundary_bytes, g->tensor_bytes[t], "tensors", name);
        } else {
            rc = add_to(&sum->inner_bytes, g->tensor_bytes[t], "tensors", name);
        }
    }
    return rc;
}

/* Names of what the operator stands for: its own members, or itself. */
static int member_names(fuser *x, int32_t op, int32_t fused)
{
    const moirai_graph *g = x->g;
    int rc = 0;

    if (g->op_member_off[op] == g->op_member_off[op + 1])
        return moirai_graph_builder_member(x->b, fused, g->op_name[op]);
    for (int32_t e = g->op_member_off[op]; e < g->op_member_off[op + 1] && !rc; e++)
        rc = moirai_graph_builder_member(x->b, fused, g->op_member[e]);
    return rc;
}

/* A shared weight that several members read is one weight of the fused operator. */
static int member_weights(fuser *x, int32_t op, int32_t group, int32_t fused, total *sum)
{
    const moirai_graph *g = x->g;
    int rc = add_to(&sum->weight_bytes, g->op_weight_bytes[op], "weights", g->op_name[op]);

    for (int32_t e = g->op_weight_off[op]; e < g->op_weight_off[op + 1] && !rc; e++) {
        int32_t w = g->op_weight[e];

        if (x->held[w] == group + 1)
            sum->weight_bytes -= UTIL_MIN(g->weight_bytes[w], sum->weight_bytes);
        x->held[w] = group + 1;
        rc = moirai_graph_builder_shared_weight(x->b, fused, g->weight_name[w], g->weight_bytes[w]);
    }
    return rc;
}

static int member_flops(const moirai_graph *g, int32_t op, total *sum)
{
    int64_t flops = g->op_flops[op];

    if (flops == MOIRAI_UNKNOWN && !cost_class_is_product(cost_class_of(g->op_type[op])))
        return 0;
    sum->some_flops = true;
    return add_to(&sum->flops, flops, "flops", g->op_name[op]);
}

static int member_traffic(const moirai_graph *g, int32_t op, total *sum)
{
    const char *name = g->op_name[op];
    int rc = 0;

    if (g->op_traffic_bytes[op] != MOIRAI_UNKNOWN) {
        sum->stated = true;
        return add_to(&sum->traffic_bytes, g->op_traffic_bytes[op], "bytes of traffic", name);
    }
    if (cost_class_of(g->op_type[op]) == COST_CLASS_VIEW)
        return 0;
    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1] && !rc; e++)
        rc = add_to(&sum->traffic_bytes, UTIL_MAX(g->tensor_bytes[g->op_in[e]], 0), "bytes of traffic", name);
    for (int32_t e = g->op_out_off[op]; e < g->op_out_off[op + 1] && !rc; e++)
        rc = add_to(&sum->traffic_bytes, UTIL_MAX(g->tensor_bytes[g->op_out[e]], 0), "bytes of traffic", name);
    return rc ? rc : add_to(&sum->traffic_bytes, UTIL_MAX(g->op_weight_bytes[op], 0), "bytes of traffic", name);
}

static int member_add(fuser *x, int32_t op, int32_t group, int32_t fused, total *sum)
{
    const moirai_graph *g = x->g;
    int rc = member_inputs(x, op, group, fused, sum);

    rc = rc ? rc : member_outputs(x, op, group, fused, sum);
    rc = rc ? rc : member_names(x, op, fused);
    rc = rc ? rc : member_weights(x, op, group, fused, sum);
    rc = rc ? rc : member_flops(g, op, sum);
    rc = rc ? rc : member_traffic(g, op, sum);
    sum->workspace_bytes = UTIL_MAX(sum->workspace_bytes, g->op_workspace_bytes[op]);
    return rc;
}

static int fused_times(fuser *x, const coarsen_fusion *m, int32_t fused, double saved_bytes)
{
    const moirai_graph *g = x->g;

    for (int32_t k = 0; k < g->n_time_keys; k++) {
        int64_t sum = 0, slowest = 0;
        double saved_ns = 0;
        int rc;

        for (int32_t i = 0, op = m->first; i < m->length; i++, op = x->f->next[op]) {
            int64_t ns = g->time_ns[(int64_t)op * g->n_time_keys + k];

            if (add_to(&sum, ns, "times", g->op_name[op]))
                return MOIRAI_EINPUT;
            slowest = UTIL_MAX(slowest, ns);
        }
        if (sum == MOIRAI_UNKNOWN)
            continue;
        if (x->gb_s[k] > 0)
            saved_ns = LAUNCH_NS * (m->length - 1) + saved_bytes / (SHARE_OF_BANDWIDTH * x->gb_s[k]);
        if (saved_ns >= (double)(sum - slowest))
            sum = slowest;
        else
            sum -= (int64_t)saved_ns;
        rc = moirai_graph_builder_time(x->b, fused, g->time_key[k], sum);
        if (rc)
            return rc;
    }
    return 0;
}

static int type_join(fuser *x, const coarsen_fusion *m)
{
    size_t n = 0;

    for (int32_t i = 0, op = m->first; i < m->length; i++, op = x->f->next[op]) {
        const char *type = x->g->op_type[op];
        size_t length = strlen(type);

        if (util_grow(&x->type, &x->type_capacity, n + length + 2, 1))
            return MOIRAI_EFAIL;
        if (i)
            x->type[n++] = '+';
        memcpy(x->type + n, type, length + 1);
        n += length;
    }
    return 0;
}

/* `last` is the last member: the fused operator stands where it stood, under its name. */
static int fusion_emit(fuser *x, int32_t group, int32_t last)
{
    const coarsen_fusion *m = &x->f->fusion[group];
    total sum = {0};
    int32_t fused, op = m->first;
    double saved_bytes;
    int rc = type_join(x, m);

    if (rc)
        return rc;
    fused = moirai_graph_builder_op(x->b, x->g->op_name[last], x->type);
    if (fused < 0)
        return fused;
    for (int32_t i = 0; i < m->length && !rc; i++, op = x->f->next[op])
        rc = member_add(x, op, group, fused, &sum);
    rc = rc ? rc : add_to(&sum.boundary_bytes, sum.weight_bytes, "tensors and weights", x->g->op_name[last]);
    if (rc)
        return rc;
    saved_bytes = 2 * (double)sum.inner_bytes;
    if (!sum.some_flops)
        sum.flops = MOIRAI_UNKNOWN;
    if (!sum.stated) {
        sum.traffic_bytes = MOIRAI_UNKNOWN;
    } else if (sum.traffic_bytes != MOIRAI_UNKNOWN) {
        bool all = sum.inner_bytes > sum.traffic_bytes / 2;

        sum.traffic_bytes = UTIL_MAX(all ? 0 : sum.traffic_bytes - 2 * sum.inner_bytes, sum.boundary_bytes);
    }
    rc = moirai_graph_builder_cost(x->b, fused, sum.weight_bytes, sum.workspace_bytes, sum.flops, sum.traffic_bytes);
    return rc ? rc : fused_times(x, m, fused, saved_bytes);
}

static int op_copy(fuser *x, int32_t op)
{
    const moirai_graph *g = x->g;
    int32_t to = moirai_graph_builder_op(x->b, g->op_name[op], g->op_type[op]);
    int rc = to < 0 ? to : 0;

    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1] && !rc; e++)
        rc = moirai_graph_builder_input(x->b, to, g->tensor_name[g->op_in[e]]);
    for (int32_t e = g->op_out_off[op]; e < g->op_out_off[op + 1] && !rc; e++)
        rc = moirai_graph_builder_output(x->b, to, g->tensor_name[g->op_out[e]], g->tensor_bytes[g->op_out[e]]);
    for (int32_t e = g->op_member_off[op]; e < g->op_member_off[op + 1] && !rc; e++)
        rc = moirai_graph_builder_member(x->b, to, g->op_member[e]);
    for (int32_t e = g->op_weight_off[op]; e < g->op_weight_off[op + 1] && !rc; e++)
        rc = moirai_graph_builder_shared_weight(x->b, to, g->weight_name[g->op_weight[e]],
                                                g->weight_bytes[g->op_weight[e]]);
    for (int32_t k = 0; k < g->n_time_keys && !rc; k++)
        if (g->time_ns[(int64_t)op * g->n_time_keys + k] != MOIRAI_UNKNOWN)
            rc = moirai_graph_builder_time(x->b, to, g->time_key[k], g->time_ns[(int64_t)op * g->n_time_keys + k]);
    rc = rc ? rc
            : moirai_graph_builder_cost(x->b, to, g->op_weight_bytes[op], g->op_workspace_bytes[op], g->op_flops[op],
                                        g->op_traffic_bytes[op]);
    return rc;
}

static int ops_emit(fuser *x)
{
    const moirai_graph *g = x->g;
    const coarsen_fusions *f = x->f;
    int rc = 0;

    for (int32_t k = 0; k < g->n_time_keys; k++) {
        const moirai_device_type *type = moirai_device_type_find(g->time_key[k]);

        x->gb_s[k] = type ? type->bandwidth_gb_s : 0;
    }
    for (int32_t i = 0; i < g->n_ops && !rc; i++) {
        int32_t group = f->group[i];

        if (group == MOIRAI_NONE)
            rc = op_copy(x, i);
        else if (f->next[i] == MOIRAI_NONE || f->group[f->next[i]] != group)
            rc = fusion_emit(x, group, i);
    }
    return rc;
}

static int settings_copy(moirai_graph_builder *b, const moirai_graph *g)
{
    int rc = 0;

    for (int32_t i = 0; i < g->n_dims && !rc; i++)
        rc = moirai_graph_builder_dim(b, g->dim[i]);
    for (int32_t i = 0; i < g->n_shapes && !rc; i++)
        rc = moirai_graph_builder_shape(b, g->shape[i]);
    for (int32_t i = 0; i < g->n_assumed && !rc; i++)
        rc = moirai_graph_builder_assumed(b, g->assumed[i]);
    return rc;
}

/* Fused or not, it is the same network. */
static int whole_copy(moirai_graph *out, const moirai_graph *g)
{
    int rc = 0;

    for (int32_t k = 0; g->time_whole_ns && k < g->n_time_keys && !rc; k++)
        if (g->time_whole_ns[k] >= 0)
            rc = moirai_graph_whole_set(out, g->time_key[k], g->time_whole_ns[k]);
    return rc;
}

static int graph_fuse(moirai_graph **out, const moirai_graph *g, const coarsen_fusions *f)
{
    fuser x = {.g = g, .f = f};
    int rc;

    x.seen = util_alloc((size_t)g->n_tensors, sizeof *x.seen);
    x.gb_s = util_alloc((size_t)g->n_time_keys, sizeof *x.gb_s);
    x.held = util_alloc((size_t)g->n_weights, sizeof *x.held);
    rc = x.seen && x.held && x.gb_s ? moirai_graph_builder_new(&x.b, g->name) : MOIRAI_EFAIL;
    if (!rc) {
        moirai_graph_builder_element_bytes(x.b, g->element_bytes);
        moirai_graph_builder_from_onnx(x.b, g->from_onnx);
        rc = settings_copy(x.b, g);
        rc = rc ? rc : ops_emit(&x);
        if (rc)
            moirai_graph_builder_free(x.b);
        else
            rc = moirai_graph_builder_finish(out, x.b);
        rc = rc ? rc : whole_copy(*out, g);
    }
    free(x.seen);
    free(x.held);
    free(x.gb_s);
    free(x.type);
    return rc;
}

int moirai_coarsen(moirai_graph **out, const moirai_graph *g, const moirai_rules *rules, int64_t *count)
{
    coarsen_fusions f;
    int rc;

    *out = NULL;
    rc = coarsen_fusions_find(&f, g, rules);
    if (rc)
        return rc;
    for (int r = 0; count && r < rules->n_rules; r++)
        count[r] = 0;
    for (int32_t i = 0; count && i < f.n; i++)
        count[f.fusion[i].rule]++;
    rc = graph_fuse(out, g, &f);
    coarsen_fusions_free(&f);
    return rc;
}
