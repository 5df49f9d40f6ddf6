/* A plan file on the operators of a model, without the problem that it was made from.
 *
 * Whose operators they are, split_match.c finds out; in which order they run, split_order.c. What would go wrong later
 * is checked here: a transfer of other bytes (another batch size), a tensor that
 * never arrives, an operator before what it reads. */
#include "split/split_read.h"

#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

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
    yyjson_arr_foreach(ops, i, n, value) {
        rc = rc ? rc : read_op(r, value, i);
    }
    yyjson_arr_foreach(transfers, i, n, value) {
        rc = rc ? rc : read_transfer(r, &r->p->transfer[i], tensors, value, i);
    }
    return rc;
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
    yyjson_arr_foreach(devices, i, n, value) { /* the plan's own order, idle devices too */
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
    rc = rc ? rc : split_match(p, fine, rules, ops);
    rc = rc ? rc : allocate(p, transfers);
    reader r = {.p = p, .devices = util_names_new(16)};
    rc = rc || r.devices ? rc : MOIRAI_EFAIL;
    rc = rc ? rc : read_placement(&r, ops, transfers, devices);
    util_names_free(r.devices);
    rc = rc ? rc : split_order(p);
    return rc ? rc : check(p);
}

int split_plan_take(split_plan **out, yyjson_val *root, const char *path, const moirai_graph *fine, const char *rules)
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

int split_plan_read(split_plan **out, const char *path, const moirai_graph *fine, const char *rules)
{
    yyjson_doc *doc;
    *out = NULL;
    int rc = util_json_read(&doc, path, "moirai-plan");
    if (rc)
        return rc;
    rc = split_plan_take(out, yyjson_doc_get_root(doc), path, fine, rules);
    yyjson_doc_free(doc);
    return rc;
}
