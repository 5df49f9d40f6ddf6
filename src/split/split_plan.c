/* A plan file on the operators of a model, without the problem that it was made from.
 *
 * The plan's operators are the model's own, or what fusion rules made of them. Which, the names tell: the set of names
 * in the plan must be that of the model's graph, or of its coarsening by the rules given (or by the shipped sets in
 * turn). What else would go wrong later is checked here: a transfer of other bytes (another batch size), a tensor that
 * never arrives, an operator before what it reads. */
#include "split/split.h"

#include <stdlib.h>
#include <string.h>

#include <moirai/coarsen.h>
#include "util/json.h"
#include "util/util.h"

typedef struct reader {
    split_plan *p;
    util_names *devices;
    size_t devices_capacity;
} reader;

void split_plan_free(split_plan *p)
{
    if (!p)
        return;
    for (int32_t i = 0; i < p->n_segments; i++) {
        for (int32_t k = 0; k < p->segment[i].n_inputs; k++)
            free(p->segment[i].input[k]);
        for (int32_t k = 0; k < p->segment[i].n_outputs; k++)
            free(p->segment[i].output[k]);
        free(p->segment[i].input);
        free(p->segment[i].output);
        free(p->segment[i].file);
    }
    for (int32_t k = 0; k < p->n_devices; k++)
        free(p->device[k]);
    free(p->device);
    free(p->placer);
    free(p->unit_device);
    free(p->unit_start_ns);
    free(p->unit_finish_ns);
    free(p->transfer);
    free(p->order);
    free(p->device_off);
    free(p->segment);
    free(p->unit_segment);
    moirai_graph_free(p->coarse);
    free(p);
}

/* ---- whose operators ---- */

/* *stranger: the first operator of the plan that `g` has not, or NULL. */
static bool same_names(const moirai_graph *g, yyjson_val *ops, const char **stranger)
{
    size_t i, n;
    yyjson_val *op;
    yyjson_arr_foreach(ops, i, n, op)
    {
        const char *name = yyjson_get_str(yyjson_obj_get(op, "name"));
        if (name && moirai_graph_find(g, name) == MOIRAI_NONE) {
            *stranger = name;
            return false;
        }
    }
    *stranger = NULL;
    return n == (size_t)g->n_ops;
}

static int try_rules(split_plan *p, const moirai_graph *fine, const char *rules_name, yyjson_val *ops,
                     const char **stranger)
{
    moirai_rules *rules = NULL;
    moirai_graph *coarse = NULL;
    int rc = moirai_rules_open(&rules, rules_name);
    rc = rc ? rc : moirai_coarsen(&coarse, fine, rules, NULL);
    moirai_rules_free(rules);
    if (rc)
        return rc;
    if (same_names(coarse, ops, stranger))
        p->units = p->coarse = coarse;
    else
        moirai_graph_free(coarse);
    return 0;
}

static int match(split_plan *p, const moirai_graph *fine, const char *rules, yyjson_val *ops)
{
    const char *shipped[] = {"onnxruntime", "eigen"}, *stranger = NULL;
    int rc = 0, n = rules ? 1 : 2;
    size_t count = yyjson_arr_size(ops);
    if (same_names(fine, ops, &stranger))
        p->units = fine;
    for (int i = 0; i < n && !p->units && !rc; i++)
        rc = try_rules(p, fine, rules ? rules : shipped[i], ops, &stranger);
    if (rc || p->units)
        return rc;
    if (stranger && moirai_graph_find(fine, stranger) == MOIRAI_NONE)
        return moirai_error(MOIRAI_EINPUT, "%s: the plan does not belong to this model, which has no operator '%s'",
                            p->label, stranger);
    return moirai_error(
        MOIRAI_EINPUT,
        "%s: the plan does not belong to this model: its %zu operators are neither the model's %d nor what "
        "the rules %s make of them (--rules names those that the plan was made with)",
        p->label, count, fine->n_ops, rules ? rules : "onnxruntime or eigen");
}

/* ---- reading ---- */

static int device_number(int32_t *out, reader *r, const util_json_at *at, yyjson_val *object, const char *key)
{
    const char *name = NULL;
    int rc = util_json_string(&name, NULL, at, object, key, true);
    if (rc)
        return rc;
    *out = util_names_get(r->devices, name);
    if (*out >= 0)
        return 0;
    split_plan *p = r->p;
    if (util_grow(&p->device, &r->devices_capacity, (size_t)p->n_devices + 1, sizeof *p->device))
        return MOIRAI_EFAIL;
    char *copy = util_strdup(name);
    if (!copy)
        return MOIRAI_EFAIL;
    p->device[p->n_devices] = copy;
    *out = p->n_devices++;
    return util_names_put(r->devices, copy, *out) < 0 ? MOIRAI_EFAIL : 0;
}

static int read_op(reader *r, yyjson_val *value, size_t index)
{
    split_plan *p = r->p;
    util_json_at at = {p->label, "op", NULL, index};
    const char *name = NULL;
    int rc = util_json_object(&at, value);
    rc = rc ? rc : util_json_string(&name, NULL, &at, value, "name", true);
    if (rc)
        return rc;
    at.name = name;
    int32_t unit = moirai_graph_find(p->units, name);
    if (unit == MOIRAI_NONE)
        return util_json_fail(&at, "not an operator of the model");
    if (p->unit_device[unit] != MOIRAI_NONE)
        return util_json_fail(&at, "placed twice");
    rc = device_number(&p->unit_device[unit], r, &at, value, "device");
    rc = rc ? rc : util_json_int64(&p->unit_start_ns[unit], &at, value, "start_ns", true, 0);
    return rc ? rc : util_json_int64(&p->unit_finish_ns[unit], &at, value, "finish_ns", true, p->unit_start_ns[unit]);
}

static int read_transfer(reader *r, split_transfer *x, const util_names *tensors, yyjson_val *value, size_t index)
{
    split_plan *p = r->p;
    util_json_at at = {p->label, "transfer", NULL, index};
    const char *name = NULL;
    int rc = util_json_object(&at, value);
    rc = rc ? rc : util_json_string(&name, NULL, &at, value, "tensor", true);
    if (rc)
        return rc;
    at.name = name;
    x->tensor = util_names_get(tensors, name);
    if (x->tensor < 0)
        return util_json_fail(&at, "no operator of the model writes this tensor");
    x->bytes = p->units->tensor_bytes[x->tensor];
    int64_t bytes = x->bytes;
    rc = device_number(&x->from, r, &at, value, "from");
    rc = rc ? rc : device_number(&x->to, r, &at, value, "to");
    rc = rc ? rc : util_json_int64(&x->start_ns, &at, value, "start_ns", true, 0);
    rc = rc ? rc : util_json_int64(&x->finish_ns, &at, value, "finish_ns", true, x->start_ns);
    rc = rc ? rc : util_json_int64(&bytes, &at, value, "bytes", false, 0);
    if (!rc && bytes != x->bytes)
        return util_json_fail(
            &at, "the plan sends %lld bytes, the model makes %lld: give --dim and --shape as the plan had them",
            (long long)bytes, (long long)x->bytes);
    return rc;
}

static int read_lists(reader *r, yyjson_val *ops, yyjson_val *transfers, const util_names *tensors)
{
    size_t i, n;
    yyjson_val *value;
    int rc = 0;
    yyjson_arr_foreach(ops, i, n, value)
    {
        rc = rc ? rc : read_op(r, value, i);
    }
    yyjson_arr_foreach(transfers, i, n, value)
    {
        rc = rc ? rc : read_transfer(r, &r->p->transfer[i], tensors, value, i);
    }
    return rc;
}

/* ---- order ---- by start; ties by the graph's order, a transfer just after its producer: so every task comes after
 * all that it waits for, whatever takes no time. */

static int64_t unit_compare(const split_plan *p, int32_t a, int32_t b)
{
    if (p->unit_start_ns[a] != p->unit_start_ns[b])
        return p->unit_start_ns[a] < p->unit_start_ns[b] ? -1 : 1;
    return (int64_t)p->units->topo_rank[a] - p->units->topo_rank[b];
}

static int order_compare(const void *x, const void *y, void *data)
{
    const split_plan *p = data;
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    if (p->unit_device[a] != p->unit_device[b])
        return p->unit_device[a] < p->unit_device[b] ? -1 : 1;
    int64_t c = unit_compare(p, a, b);
    return c < 0 ? -1 : c > 0;
}

static int transfer_compare(const void *x, const void *y, void *data)
{
    const moirai_graph *g = ((const split_plan *)data)->units;
    const split_transfer *a = x, *b = y;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    int32_t ra = g->topo_rank[g->tensor_producer[a->tensor]], rb = g->topo_rank[g->tensor_producer[b->tensor]];
    if (ra != rb)
        return ra < rb ? -1 : 1;
    if (a->tensor != b->tensor)
        return a->tensor < b->tensor ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

/* With flow "edge" a tensor goes to a device once per reader: the runtime sends it once, at the first time. */
static int drop_repeats(split_plan *p)
{
    int32_t kept = 0, n_devices = p->n_devices;
    char *seen = util_alloc((size_t)p->units->n_tensors * (size_t)n_devices, 1);
    if (!seen)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < p->n_transfers; i++) {
        split_transfer *x = &p->transfer[i];
        int64_t key = (int64_t)x->tensor * n_devices + x->to;
        if (seen[key])
            continue;
        seen[key] = 1;
        p->transfer[kept++] = *x;
    }
    p->n_transfers = kept;
    free(seen);
    return 0;
}

static int sort_all(split_plan *p)
{
    int32_t n = p->units->n_ops;
    p->order = util_alloc((size_t)n, sizeof *p->order);
    p->device_off = util_alloc((size_t)p->n_devices + 1, sizeof *p->device_off);
    if (!p->order || !p->device_off)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < n; i++) {
        p->order[i] = i;
        p->device_off[p->unit_device[i] + 1]++;
    }
    for (int32_t k = 0; k < p->n_devices; k++)
        p->device_off[k + 1] += p->device_off[k];
    qsort_r(p->order, (size_t)n, sizeof *p->order, order_compare, p);
    qsort_r(p->transfer, (size_t)p->n_transfers, sizeof *p->transfer, transfer_compare, p);
    return drop_repeats(p);
}

/* ---- sense ---- */

static int check_transfers(const split_plan *p, char *sent)
{
    const moirai_graph *g = p->units;
    for (int32_t i = 0; i < p->n_transfers; i++) {
        const split_transfer *x = &p->transfer[i];
        int32_t maker = g->tensor_producer[x->tensor];
        if (p->unit_device[maker] != x->from || x->start_ns < p->unit_finish_ns[maker])
            return moirai_error(MOIRAI_EINPUT, "tensor '%s' leaves device '%s' where or when it is not there",
                                g->tensor_name[x->tensor], p->device[x->from]);
        sent[(int64_t)x->tensor * p->n_devices + x->to] = 1;
    }
    return 0;
}

static int check_readers(const split_plan *p, const char *sent)
{
    const moirai_graph *g = p->units;
    for (int32_t i = 0; i < g->n_ops; i++)
        for (int32_t e = g->op_in_off[i]; e < g->op_in_off[i + 1]; e++) {
            int32_t t = g->op_in[e], maker = g->tensor_producer[t];
            if (maker == MOIRAI_NONE)
                continue;
            if (p->unit_start_ns[i] < p->unit_finish_ns[maker])
                return moirai_error(MOIRAI_EINPUT, "operator '%s' starts before '%s', which it reads, has finished",
                                    g->op_name[i], g->op_name[maker]);
            if (p->unit_device[maker] != p->unit_device[i] && !sent[(int64_t)t * p->n_devices + p->unit_device[i]])
                return moirai_error(MOIRAI_EINPUT,
                                    "operator '%s' on device '%s' reads tensor '%s', which is never sent there",
                                    g->op_name[i], p->device[p->unit_device[i]], g->tensor_name[t]);
        }
    return 0;
}

static int check(const split_plan *p)
{
    char *sent = util_alloc((size_t)p->units->n_tensors * (size_t)p->n_devices, 1);
    int rc = sent ? check_transfers(p, sent) : MOIRAI_EFAIL;
    rc = rc ? rc : check_readers(p, sent);
    free(sent);
    return rc == MOIRAI_EINPUT ? moirai_error_prefix(rc, "%s", p->label) : rc;
}

/* ---- all of it ---- */

static int allocate(split_plan *p, yyjson_val *transfers)
{
    size_t n = (size_t)p->units->n_ops, n_transfers = yyjson_arr_size(transfers);
    if (n_transfers > INT32_MAX)
        return moirai_error(MOIRAI_EINPUT, "%zu transfers, more than 2^31", n_transfers);
    p->unit_device = util_alloc(n, sizeof *p->unit_device);
    p->unit_start_ns = util_alloc(n, sizeof *p->unit_start_ns);
    p->unit_finish_ns = util_alloc(n, sizeof *p->unit_finish_ns);
    p->transfer = util_alloc(n_transfers, sizeof *p->transfer);
    if (!p->unit_device || !p->unit_start_ns || !p->unit_finish_ns || !p->transfer)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < n; i++)
        p->unit_device[i] = MOIRAI_NONE;
    p->n_transfers = (int32_t)n_transfers;
    return 0;
}

static int read_placement(reader *r, yyjson_val *ops, yyjson_val *transfers, yyjson_val *devices)
{
    split_plan *p = r->p;
    const moirai_graph *g = p->units;
    size_t i, n;
    yyjson_val *value;
    int rc = 0;
    yyjson_arr_foreach(devices, i, n, value)
    { /* the plan's own order, idle devices too */
        util_json_at at = {p->label, "device", NULL, i};
        int32_t ignored;
        rc = rc ? rc : device_number(&ignored, r, &at, value, "name");
    }
    util_names *tensors = util_names_new((size_t)g->n_tensors);
    rc = rc || tensors ? rc : MOIRAI_EFAIL;
    for (int32_t t = 0; t < g->n_tensors && !rc; t++)
        if (g->tensor_producer[t] != MOIRAI_NONE && util_names_put(tensors, g->tensor_name[t], t) < 0)
            rc = MOIRAI_EFAIL;
    rc = rc ? rc : read_lists(r, ops, transfers, tensors);
    util_names_free(tensors);
    return rc;
}

static int read_root(split_plan *p, yyjson_val *root, const moirai_graph *fine, const char *rules)
{
    util_json_at at = {p->label, NULL, NULL, 0};
    yyjson_val *ops = NULL, *transfers = NULL, *devices = NULL;
    const char *placer = "";
    int rc = util_json_array(&ops, &at, root, "ops", true);
    rc = rc ? rc : util_json_array(&transfers, &at, root, "transfers", true);
    rc = rc ? rc : util_json_array(&devices, &at, root, "devices", false);
    rc = rc ? rc : util_json_string(&placer, NULL, &at, root, "placer", false);
    rc = rc ? rc : util_json_int64(&p->makespan_ns, &at, root, "makespan_ns", true, 0);
    rc = rc ? rc : (p->placer = util_strdup(placer)) ? 0 : MOIRAI_EFAIL;
    rc = rc ? rc : match(p, fine, rules, ops);
    rc = rc ? rc : allocate(p, transfers);
    reader r = {.p = p, .devices = util_names_new(16)};
    rc = rc || r.devices ? rc : MOIRAI_EFAIL;
    rc = rc ? rc : read_placement(&r, ops, transfers, devices);
    util_names_free(r.devices);
    rc = rc ? rc : sort_all(p);
    return rc ? rc : check(p);
}

int split_plan_read(split_plan **out, yyjson_val *root, const char *path, const moirai_graph *fine, const char *rules)
{
    *out = NULL;
    split_plan *p = util_alloc(1, sizeof *p);
    if (!p)
        return MOIRAI_EFAIL;
    p->label = path;
    int rc = read_root(p, root, fine, rules);
    if (rc) {
        split_plan_free(p);
        return rc;
    }
    *out = p;
    return 0;
}
