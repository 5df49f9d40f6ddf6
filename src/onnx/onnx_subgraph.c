/* If, Loop and Scan are one operator each: a device runs the whole body. Their subgraphs are walked with the same
 * rules to find shapes and costs; the outer tensors that they read count as inputs of the operator.
 *
 * If costs its dearer branch (the chosen one where the condition is a constant); Loop its body times the trip count
 * where that is a constant, else nobody knows what; Scan its body times the length of what it scans. A condition may end a Loop
 * earlier: what it stacks is the most it can be. */
#include "onnx/onnx_import.h"

#include <stdlib.h>
#include <string.h>

/* ---- captured tensors ---- */

typedef struct name_list {
    const char **name;
    size_t n, capacity;
} name_list;

static int list_add(name_list *l, const char *name)
{
    int rc = util_grow(&l->name, &l->capacity, l->n + 1, sizeof *l->name);
    if (!rc)
        l->name[l->n++] = name;
    return rc;
}

static size_t graph_count(const Onnx__NodeProto *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_attribute; i++)
        n += (p->attribute[i]->g != NULL) + p->attribute[i]->n_graphs;
    return n;
}

static int define(util_names *defined, const char *name)
{
    return name && util_names_put(defined, name, 0) < 0 ? MOIRAI_EFAIL : 0;
}

static int define_all(util_names *defined, const Onnx__GraphProto *g)
{
    int rc = 0;
    for (size_t i = 0; i < g->n_input && !rc; i++)
        rc = define(defined, g->input[i]->name);
    for (size_t i = 0; i < g->n_initializer && !rc; i++)
        rc = define(defined, g->initializer[i]->name);
    for (size_t i = 0; i < g->n_sparse_initializer && !rc; i++)
        rc = define(defined, g->sparse_initializer[i]->values ? g->sparse_initializer[i]->values->name : NULL);
    for (size_t i = 0; i < g->n_node && !rc; i++)
        for (size_t k = 0; k < g->node[i]->n_output && !rc; k++)
            rc = define(defined, g->node[i]->output[k]);
    return rc;
}

static int collect_of_node(name_list *l, const Onnx__NodeProto *p);

static int collect(name_list *l, const Onnx__GraphProto *g)
{
    util_names *defined = util_names_new(g->n_node + g->n_initializer + g->n_input);
    if (!defined)
        return MOIRAI_EFAIL;
    int rc = define_all(defined, g);
    size_t begin = l->n;
    for (size_t i = 0; i < g->n_node && !rc; i++) {
        for (size_t k = 0; k < g->node[i]->n_input && !rc; k++)
            rc = *g->node[i]->input[k] ? list_add(l, g->node[i]->input[k]) : 0;
        rc = rc ? rc : collect_of_node(l, g->node[i]);
    }
    for (size_t i = 0; i < g->n_output && !rc; i++)
        rc = g->output[i]->name ? list_add(l, g->output[i]->name) : 0;
    size_t kept = begin;
    for (size_t i = begin; i < l->n && !rc; i++)
        if (util_names_get(defined, l->name[i]) < 0)
            l->name[kept++] = l->name[i];
    if (!rc)
        l->n = kept;
    util_names_free(defined);
    return rc;
}

static int collect_of_node(name_list *l, const Onnx__NodeProto *p)
{
    int rc = 0;
    for (size_t i = 0; i < p->n_attribute && !rc; i++) {
        const Onnx__AttributeProto *a = p->attribute[i];
        if (a->g)
            rc = collect(l, a->g);
        for (size_t k = 0; k < a->n_graphs && !rc; k++)
            rc = collect(l, a->graphs[k]);
    }
    return rc;
}

static int resolve(onnx_import *im, onnx_node *n, const name_list *l)
{
    util_names *seen = util_names_new(l->n);
    n->captured = onnx_take(&im->arena, l->n, sizeof *n->captured);
    int rc = seen && n->captured ? 0 : MOIRAI_EFAIL;
    for (size_t i = 0; i < l->n && !rc; i++) {
        int32_t first = util_names_put(seen, l->name[i], (int32_t)i);
        onnx_value *v = onnx_scope_find(n->scope, l->name[i]);
        if (first < 0)
            rc = MOIRAI_EFAIL;
        else if (!v)
            rc = moirai_error(MOIRAI_EINPUT, "its subgraph reads '%s', which is made by nobody", l->name[i]);
        else if (first == (int32_t)i)
            n->captured[n->n_captured++] = v;
    }
    util_names_free(seen);
    return rc;
}

int onnx_captured(onnx_import *im, onnx_node *n)
{
    if (!graph_count(n->proto))
        return 0;
    name_list l = {0};
    int rc = collect_of_node(&l, n->proto);
    rc = rc ? rc : resolve(im, n, &l);
    free(l.name);
    return rc;
}

/* ---- shapes and costs ---- */

static void bind(const onnx_scope *body, size_t input, const onnx_value *outer)
{
    if (input >= body->graph->n_input || !outer)
        return;
    const char *name = body->graph->input[input]->name;
    int32_t at = name ? util_names_get(body->names, name) : -1;
    if (at >= 0 && !body->value[at]->constant)
        onnx_value_like(body->value[at], outer->type, outer);
}

static void bind_slice(const onnx_scope *body, size_t input, const onnx_value *outer, int64_t axis)
{
    if (!outer || !outer->rank)
        return;
    axis = axis < 0 ? axis + outer->rank : axis;
    if (axis < 0 || axis >= outer->rank)
        return;
    onnx_value slice = *outer;
    memmove(slice.dim + axis, slice.dim + axis + 1, (size_t)(slice.rank - axis - 1) * sizeof *slice.dim);
    slice.rank--;
    bind(body, input, &slice);
}

static const onnx_value *result(const onnx_scope *body, size_t output)
{
    if (output >= body->graph->n_output || !body->graph->output[output]->name)
        return NULL;
    const onnx_value *v = onnx_scope_find(body, body->graph->output[output]->name);
    return v && v->shaped ? v : NULL;
}

static void stack(onnx_value *out, const onnx_value *item, int64_t length)
{
    int64_t dim[ONNX_MAX_RANK + 1] = {length};
    if (!item)
        return;
    memcpy(dim + 1, item->dim, (size_t)item->rank * sizeof *dim);
    onnx_value_shape(out, item->type, item->rank + 1, dim);
}

/* False where an operator inside has no known cost, so that the whole has none. */
static bool body_cost(const onnx_scope *s, int64_t *flops, int64_t *bytes)
{
    bool known = true;
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const onnx_node *n = &s->node[i];
        if (n->folded)
            continue;
        known &= n->cost_known;
        *flops = onnx_add(*flops, n->flops);
        *bytes = onnx_add(*bytes, n->inner_bytes);
        if (n->rule && n->rule->flags & ONNX_VIEW)
            continue;
        for (int32_t k = 0; k < n->n_in; k++)
            *bytes = onnx_add(*bytes, n->in[k] ? n->in[k]->bytes : 0);
        for (int32_t k = 0; k < n->n_out; k++)
            *bytes = onnx_add(*bytes, n->out[k] ? n->out[k]->bytes : 0);
    }
    return known;
}

/* The branch that a constant condition chooses, or NULL where both may run. The two come in either order. */
static const onnx_scope *chosen(const onnx_node *n)
{
    const onnx_value *condition = onnx_in(n, 0);
    if (!onnx_has_numbers(condition) || condition->elements != 1 || n->n_children != 2)
        return NULL;
    const char *wanted = onnx_value_int(condition, 0) ? "then_branch" : "else_branch";
    const Onnx__AttributeProto *a = onnx_attr(n->proto, wanted);
    for (int32_t c = 0; a && a->g && c < n->n_children; c++)
        if (n->child[c]->graph == a->g)
            return n->child[c];
    return NULL;
}

static void shape_if(onnx_node *n)
{
    const onnx_scope *only = chosen(n);
    for (int32_t c = 0; c < n->n_children; c++) {
        if (only && n->child[c] != only)
            continue;
        int64_t flops = 0, bytes = 0;
        n->cost_known &= body_cost(n->child[c], &flops, &bytes);
        n->flops = UTIL_MAX(n->flops, flops);
        n->inner_bytes = UTIL_MAX(n->inner_bytes, bytes);
        for (int32_t i = 0; i < n->n_out; i++) {
            const onnx_value *r = result(n->child[c], (size_t)i);
            if (!n->out[i] || !r)
                continue;
            moirai_onnx_known known = UTIL_MAX(n->out[i]->known, r->known);
            if (n->out[i]->shaped && r->bytes != n->out[i]->bytes) /* either may be chosen */
                known = UTIL_MAX(known, MOIRAI_ONNX_AT_MOST);
            if (!n->out[i]->shaped || r->bytes > n->out[i]->bytes)
                onnx_value_like(n->out[i], r->type, r);
            n->out[i]->known = known;
            if (only) {
                n->out[i]->ints = r->ints;
                n->out[i]->reals = r->reals;
                n->out[i]->n_numbers = r->n_numbers;
            }
        }
    }
}

static void repeat(onnx_node *n, int64_t times)
{
    n->cost_known &= body_cost(n->child[0], &n->flops, &n->inner_bytes);
    n->flops = onnx_mul(n->flops, times);
    n->inner_bytes = onnx_mul(n->inner_bytes, times);
}

static void shape_loop(onnx_node *n)
{
    const onnx_value *trips = onnx_in(n, 0);
    /* "while" is a Loop with as many turns as there are numbers */
    bool counted = onnx_has_numbers(trips) && trips->elements == 1 && onnx_value_int(trips, 0) < INT32_MAX;
    int64_t times = counted ? onnx_value_int(trips, 0) : 1;
    times = UTIL_MAX(times, 0);
    repeat(n, times);
    n->endless = !counted;
    int32_t carried = n->n_in - 2;
    for (int32_t i = 0; i < n->n_out; i++) {
        const onnx_value *r = result(n->child[0], (size_t)i + 1), *first = onnx_in(n, i + 2);
        if (!n->out[i] || !r)
            continue;
        bool grows = i < carried && first && first->bytes != r->bytes; /* at every turn, in whatever way */
        if (i < carried)
            onnx_value_like(n->out[i], r->type, r);
        else
            stack(n->out[i], r, times);
        moirai_onnx_known own = grows || (i >= carried && !counted) ? MOIRAI_ONNX_GUESSED
                                : i >= carried                      ? MOIRAI_ONNX_AT_MOST
                                                                    : MOIRAI_ONNX_SURE;
        n->out[i]->known = UTIL_MAX(own, r->known);
    }
}

static int64_t scan_axis(const onnx_node *n, const char *attribute, int32_t which)
{
    const Onnx__AttributeProto *a = onnx_attr(n->proto, attribute);
    return a && (size_t)which < a->n_ints ? a->ints[which] : 0;
}

/* In opset 8 a batch of sequences was scanned: lengths are the first input, the batch is every tensor's first axis. */
static int32_t scan_batched(const onnx_node *n)
{
    return n->import->opset == 8;
}

/* Inputs before the scanned ones: the states, and in opset 8 the lengths. */
static int64_t scan_state_count(const onnx_node *n)
{
    int64_t scanned = onnx_attr_int(n->proto, "num_scan_inputs", 0);
    return scanned < 0 || scanned > n->n_in ? 0 : n->n_in - scanned;
}

static void add_batch(onnx_value *out, int64_t batch)
{
    int64_t dim[ONNX_MAX_RANK + 1] = {batch};
    if (!out || !out->shaped)
        return;
    memcpy(dim + 1, out->dim, (size_t)out->rank * sizeof *dim);
    onnx_value_shape(out, out->type, out->rank + 1, dim);
}

static void shape_scan(onnx_node *n)
{
    int32_t batched = scan_batched(n);
    int64_t states = scan_state_count(n), length = 1;
    const onnx_value *first = onnx_in(n, (int32_t)states);
    int64_t axis = batched ? 1 : scan_axis(n, "scan_input_axes", 0), batch = 1;
    if (first && first->rank && axis >= -first->rank && axis < first->rank) {
        length = first->dim[axis < 0 ? axis + first->rank : axis];
        batch = batched ? first->dim[0] : 1;
    }
    repeat(n, onnx_mul(length, batch));
    for (int32_t i = 0; i < n->n_out; i++) {
        const onnx_value *r = result(n->child[0], (size_t)i);
        if (n->out[i] && i < states - batched && r)
            onnx_value_like(n->out[i], r->type, r);
        else if (n->out[i])
            stack(n->out[i], r, length);
        if (batched)
            add_batch(n->out[i], batch);
    }
}

static void bind_inputs(onnx_node *n, const onnx_scope *body, bool loop, bool scan)
{
    int64_t states = scan ? scan_state_count(n) : 0;
    for (int32_t i = 0; i < n->n_in && scan && scan_batched(n); i++) {
        onnx_value item = {0};
        if (!i || !n->in[i] || n->in[i]->rank < 1 ||
            !onnx_value_shape(&item, n->in[i]->type, n->in[i]->rank - 1, n->in[i]->dim + 1))
            continue;
        if (i >= states)
            bind_slice(body, (size_t)i - 1, &item, 0);
        else
            bind(body, (size_t)i - 1, &item);
    }
    for (int32_t i = 0; i < n->n_in && !(scan && scan_batched(n)); i++) {
        if (scan && i >= states)
            bind_slice(body, (size_t)i, n->in[i], scan_axis(n, "scan_input_axes", (int32_t)(i - states)));
        else if (scan || (loop && i >= 2))
            bind(body, (size_t)i, n->in[i]);
    }
}

static int open_children(onnx_import *im, onnx_node *n, bool loop, bool scan)
{
    n->child = onnx_take(&im->arena, graph_count(n->proto), sizeof *n->child);
    if (!n->child)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const Onnx__AttributeProto *a = n->proto->attribute[i];
        for (size_t k = 0; k < a->n_graphs + (a->g != NULL); k++) {
            onnx_scope *body;
            int rc = onnx_scope_new(&body, im, n->scope, k < a->n_graphs ? a->graphs[k] : a->g);
            if (rc)
                return rc;
            n->child[n->n_children++] = body;
            bind_inputs(n, body, loop, scan);
            if ((rc = onnx_scope_infer(im, body)))
                return rc;
        }
    }
    return 0;
}

static bool has_endless(const onnx_scope *s)
{
    for (int32_t i = 0; i < s->n_nodes; i++)
        if (s->node[i].endless)
            return true;
    return false;
}

int onnx_subgraphs_infer(onnx_import *im, onnx_node *n)
{
    if (!graph_count(n->proto))
        return 0;
    const char *type = n->proto->op_type ? n->proto->op_type : "";
    bool loop = !strcmp(type, "Loop"), scan = !strcmp(type, "Scan");
    int rc = open_children(im, n, loop, scan);
    if (rc)
        return rc;
    n->cost_known = !strcmp(type, "If") || loop || scan;
    if (!strcmp(type, "If"))
        shape_if(n);
    else if (loop)
        shape_loop(n);
    else if (scan)
        shape_scan(n);
    for (int32_t c = 0; c < n->n_children; c++)
        n->endless |= has_endless(n->child[c]);
    n->cost_known &= !n->endless;
    return 0;
}
