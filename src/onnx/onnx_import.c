/* From a loaded model to shapes, constants and costs of all its nodes.
 *
 * Every tensor gets a size. Inputs take theirs from the file and the options; an operator's outputs from its rule;
 * where that fails from what the file declares; else they are taken to be as large as the operator's largest input
 * (and reported). So every shape is known when it is needed, and the arithmetic on shapes that exporters
 * spell out (Shape, Gather, Concat, ...) folds into numbers: it costs nothing at run time, nor here. Inputs that can't
 * go together (a product of 1x8 by 9x8) are refused, unless a size before them was guessed, taken as 1 or depends on
 * data. One visit per node in topological order, O(nodes + edges). */
#include "onnx/onnx_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void onnx_import_free(onnx_import *im)
{
    onnx_arena_free(&im->arena);
    for (size_t i = 0; i < im->n_maps; i++)
        util_names_free(im->maps[i]);
    free(im->maps);
}

static void guess(const onnx_node *n, onnx_value *out)
{
    const onnx_value *largest = NULL;
    for (int pass = 0; pass < 2 && !largest; pass++) /* activations first, then constants */
        for (int32_t i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->shaped && (pass || !n->in[i]->constant) &&
                (!largest || n->in[i]->bytes > largest->bytes))
                largest = n->in[i];
    int32_t type = out->type ? out->type : largest ? largest->type : ONNX_FLOAT;
    if (!onnx_value_like(out, type, largest))
        onnx_value_shape(out, type, 0, NULL);
    out->guessed = true;
}

static int settle_outputs(onnx_import *im, onnx_node *n)
{
    for (int32_t i = 0; i < n->n_out; i++) {
        onnx_value *v = n->out[i];
        bool set = false;
        if (!v || v->shaped)
            continue;
        int rc = v->declared ? onnx_value_from_type(im, v, v->declared, false, &set) : 0;
        if (rc)
            return rc;
        if (!set) {
            guess(n, v);
            im->unsure = true;
        }
    }
    return 0;
}

/* Sizes that data decide at run time, or that differ from one turn of a loop to the next. */
static bool depends_on_data(const onnx_node *n)
{
    static const char *const types[] = {"NonZero", "Unique", "Compress", "NonMaxSuppression"};
    for (size_t i = 0; n->rule && i < sizeof types / sizeof *types; i++)
        if (!strcmp(n->rule->type, types[i]))
            return true;
    return n->n_children || !n->rule;
}

/* "1x8 and 9x8" */
static int refuse_clash(const onnx_node *n)
{
    char text[256] = "";
    size_t used = 0;
    for (int32_t i = 0; i < n->n_in && used < sizeof text; i++) {
        const onnx_value *v = n->in[i];
        used += v && used ? (size_t)snprintf(text + used, sizeof text - used, " and ") : 0;
        for (int32_t k = 0; v && k < v->rank && used < sizeof text; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", k ? "x" : "", (long long)v->dim[k]);
        if (v && !v->rank && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "a scalar");
    }
    return moirai_error(MOIRAI_EINPUT, "inputs of shapes %s do not go together", text);
}

static bool is_constant(const onnx_node *n)
{
    if (!n->rule || n->rule->flags & ONNX_NEVER_FOLD || n->n_children)
        return false;
    if (n->rule->flags & ONNX_OF_SHAPE)
        return true;
    bool any = false;
    for (int32_t i = 0; i < n->n_in; i++) {
        if (n->in[i] && !n->in[i]->constant)
            return false;
        any |= n->in[i] != NULL;
    }
    return any;
}

static void fold(onnx_node *n, bool shaped)
{
    n->folded = true;
    int64_t stored = 0;
    for (int32_t i = 0; i < n->n_in; i++)
        stored = onnx_add(stored, n->in[i] ? n->in[i]->stored_bytes : 0);
    for (int32_t i = 0; i < n->n_out; i++) {
        if (!n->out[i])
            continue;
        n->out[i]->constant = true;
        /* Quantized weights stay so in memory, and a renamed weight is the same weight. */
        const char *type = n->rule->type;
        if (!strcmp(type, "DequantizeLinear") || !strcmp(type, "Identity"))
            n->out[i]->stored_bytes = stored;
    }
    /* Only on the shape that the operator's own rule found: folding relies on it. */
    if (n->rule->fold && shaped)
        n->rule->fold(n);
}

static void count_flops(onnx_node *n)
{
    if (!n->rule || n->n_children)
        return;
    n->cost_known = true;
    const onnx_value *out = onnx_out(n, 0), *in = onnx_in(n, 0);
    if (n->rule->flops)
        n->flops = n->rule->flops(n);
    else
        n->flops = onnx_mul(n->rule->per_output, out ? out->elements : 0);
    if (n->rule->flags & ONNX_SELECT && in && out) {
        n->read_bytes = UTIL_MIN(in->bytes, out->bytes);
        for (int32_t i = 1; i < n->n_in; i++)
            n->read_bytes = onnx_add(n->read_bytes, n->in[i] ? n->in[i]->bytes : 0);
    }
}

static int infer_node(onnx_import *im, onnx_node *n)
{
    int rc = onnx_subgraphs_infer(im, n);
    if (rc)
        return rc;
    bool shaped = !n->n_children && n->rule && n->rule->shape(n);
    if (!shaped && n->clashes && !im->unsure && !im->report->n_default_dims && n->scope == im->root)
        return refuse_clash(n);
    im->unsure |= depends_on_data(n);
    if ((rc = settle_outputs(im, n)))
        return rc;
    if (is_constant(n))
        fold(n, shaped);
    else
        count_flops(n);
    return 0;
}

static int settle_inputs(onnx_import *im, onnx_scope *s)
{
    for (int32_t i = 0; i < s->n_values; i++) {
        onnx_value *v = s->value[i];
        bool set = false;
        if (v->producer >= 0 || v->shaped)
            continue;
        int rc = onnx_value_from_type(im, v, v->declared, s == im->root, &set);
        if (rc)
            return moirai_error_prefix(rc, "input '%s'", v->name);
        if (!set) {
            onnx_value_shape(v, v->type, 0, NULL);
            v->guessed = im->unsure = true;
        }
    }
    return 0;
}

/* Nodes need no name; then what it makes says which one it is. */
static const char *name_of(const onnx_node *n)
{
    if (n->proto->name && *n->proto->name)
        return n->proto->name;
    return n->n_out && n->out[0] ? n->out[0]->name : "";
}

int onnx_scope_infer(onnx_import *im, onnx_scope *s)
{
    int rc = settle_inputs(im, s);
    for (int32_t i = 0; i < s->n_nodes && !rc; i++) {
        onnx_node *n = &s->node[s->order[i]];
        if ((rc = infer_node(im, n)))
            moirai_error_prefix(rc, "node '%s' (%s)", name_of(n), n->proto->op_type ? n->proto->op_type : "");
    }
    return rc;
}

/* A dimension of 0 may be meant (a cache that is still empty), but not one that leaves nothing to compute. */
static int check_outputs(const onnx_import *im)
{
    const Onnx__GraphProto *graph = im->model->proto->graph;
    const char *first = NULL;
    for (size_t i = 0; i < graph->n_output; i++) {
        const onnx_value *v = onnx_scope_find(im->root, graph->output[i]->name);
        if (!v || !v->shaped || v->elements > 0)
            return 0;
        first = first ? first : v->name;
    }
    return first ? moirai_error(MOIRAI_EINPUT,
                                "output '%.80s' is empty, as are all: a dimension of 0 leaves nothing "
                                "to compute",
                                first)
                 : 0;
}

int onnx_import_run(onnx_import *im)
{
    const moirai_onnx_options *o = im->options;
    int rc = onnx_options_check(o);
    if (rc)
        return rc;
    im->numbers_left = ONNX_NUMBERS_BUDGET;
    im->dim_used = onnx_take(&im->arena, o ? (size_t)UTIL_MAX(o->n_dims, 0) : 0, sizeof *im->dim_used);
    if (!im->dim_used)
        return MOIRAI_EFAIL;
    rc = onnx_scope_new(&im->root, im, NULL, im->model->proto->graph);
    for (int i = 0; o && i < o->n_shapes && !rc; i++)
        rc = onnx_options_shape(im, o->shapes[i]);
    rc = rc ? rc : onnx_scope_infer(im, im->root);
    for (int i = 0; o && i < o->n_dims && !rc; i++)
        if (!im->dim_used[i])
            rc = moirai_error(MOIRAI_EUSAGE, "dimension \"%s\": no tensor of the model has a dimension of that name",
                              o->dims[i]);
    return rc ? rc : check_outputs(im);
}
