/* From a loaded model to shapes, constants and costs of all its nodes.
 *
 * Every tensor gets a size. Inputs take theirs from the file and the options; an operator's outputs from its rule;
 * where that fails from what the file declares; else they are taken to be as large as the operator's largest input
 * (and reported). So every shape is known when it is needed, and the arithmetic on shapes that exporters
 * spell out (Shape, Gather, Concat, ...) folds into numbers: it costs nothing at run time, nor here. Inputs that can't
 * go together (a product of 1x8 by 9x8) are refused, unless a size before them was guessed, taken as 1 or depends on
 * data. Where sizes of images or texts are open, usual ones are tried until one goes through (onnx_open.c). One visit
 * per node and attempt in topological order, O(nodes + edges). */
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
    free(im->open);
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
    out->known = MOIRAI_ONNX_GUESSED;
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

/* What a rule found follows from the inputs, and is known no better than they are. Where that is not well, the file's
 * own word is better: `shaped` turns false where it says something else. */
static int settle_known(onnx_import *im, onnx_node *n, bool *shaped)
{
    moirai_onnx_known worst = !n->n_children && depends_on_data(n) ? MOIRAI_ONNX_AT_MOST : MOIRAI_ONNX_SURE;
    for (int32_t i = 0; i < n->n_in; i++)
        worst = n->in[i] && n->in[i]->known > worst ? n->in[i]->known : worst;
    for (int32_t i = 0; i < n->n_out; i++) {
        onnx_value *v = n->out[i], said = {0};
        bool set = false;
        if (!v || !v->shaped)
            continue;
        /* One number is one number, however many it was made of: a sum of what NonZero finds. */
        bool one = !v->rank && !is_constant(n) && worst == MOIRAI_ONNX_AT_MOST;
        v->known = UTIL_MAX(v->known, one ? MOIRAI_ONNX_SURE : worst);
        if (v->known == MOIRAI_ONNX_SURE || !v->declared || is_constant(n))
            continue;
        int rc = onnx_value_from_type(im, &said, v->declared, false, &set);
        if (rc)
            return rc;
        if (!set || (v->known == MOIRAI_ONNX_AT_MOST && said.bytes > v->bytes))
            continue;
        *shaped = *shaped && said.rank == v->rank && !memcmp(said.dim, v->dim, (size_t)v->rank * sizeof *v->dim);
        onnx_value_like(v, said.type, &said);
        v->known = MOIRAI_ONNX_SURE;
    }
    return 0;
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
    n->import->clashed = true;
    return moirai_error(MOIRAI_EINPUT, "inputs of shapes %s do not go together", text);
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
    bool blamed = im->strict ? n->clashes || n->misfits : n->clashes && !im->report->n_default_dims;
    if (!shaped && blamed && !im->unsure && n->scope == im->root)
        return refuse_clash(n);
    im->unsure |= depends_on_data(n);
    if ((rc = settle_known(im, n, &shaped)) || (rc = settle_outputs(im, n)))
        return rc;
    if (is_constant(n)) {
        fold(n, shaped);
        return 0;
    }
    count_flops(n);
    if (shaped && n->rule->fold && !(n->rule->flags & ONNX_NEVER_FOLD))
        n->rule->fold(n); /* numbers may be known of what is no constant: the chosen branch of an If made them */
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
            v->known = MOIRAI_ONNX_GUESSED;
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

static void show_tensors(const onnx_import *im)
{
    const moirai_onnx_options *o = im->options;
    for (int32_t i = 0; o && o->tensor && i < im->root->n_values; i++) {
        const onnx_value *v = im->root->value[i];
        moirai_onnx_tensor t = {v->name, onnx_type_name(v->type), v->rank, v->dim, v->bytes, v->constant, v->known};
        o->tensor(o->tensor_data, &t);
    }
}

static int64_t default_opset(const Onnx__ModelProto *m)
{
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const char *domain = m->opset_import[i]->domain;
        if (!domain || !*domain || !strcmp(domain, "ai.onnx"))
            return m->opset_import[i]->version;
    }
    return 0;
}

static int attempt(onnx_import *im)
{
    const moirai_onnx_options *o = im->options;
    im->numbers_left = ONNX_NUMBERS_BUDGET;
    im->opset = default_opset(im->model->proto);
    im->dim_used = onnx_take(&im->arena, o ? (size_t)UTIL_MAX(o->n_dims, 0) : 0, sizeof *im->dim_used);
    if (!im->dim_used)
        return MOIRAI_EFAIL;
    int rc = onnx_scope_new(&im->root, im, NULL, im->model->proto->graph);
    for (int i = 0; o && i < o->n_shapes && !rc; i++)
        rc = onnx_options_shape(im, o->shapes[i]);
    rc = rc ? rc : onnx_open_find(im);
    rc = rc ? rc : onnx_scope_infer(im, im->root);
    for (int i = 0; o && i < o->n_dims && !rc; i++)
        if (!im->dim_used[i])
            rc = onnx_options_unused(im, o->dims[i]);
    return rc ? rc : check_outputs(im);
}

/* From the beginning, with the next of the usual sizes. */
static void start_again(onnx_import *im, int number, bool strict)
{
    onnx_import fresh = {.model = im->model, .options = im->options, .report = im->report};
    onnx_import_free(im);
    *im = fresh;
    memset(im->report, 0, sizeof *im->report);
    im->attempt = number;
    im->strict = strict;
}

int onnx_import_run(onnx_import *im)
{
    char why[256] = "";
    int rc = onnx_options_check(im->options);
    if (rc)
        return rc;
    im->strict = true;
    rc = attempt(im);
    if (rc && im->clashed)
        snprintf(why, sizeof why, "%s", moirai_error_message());
    bool flexible = im->flexible;
    for (int i = 1; rc && im->clashed && flexible && i < onnx_open_attempts(); i++) {
        start_again(im, i, true);
        rc = attempt(im);
    }
    if (rc && im->clashed && flexible)
        return onnx_open_ask(im, why);
    if (rc && im->clashed) { /* nothing to try: as before, a clash is one where nothing was assumed */
        start_again(im, 0, false);
        rc = attempt(im);
    }
    if (!rc)
        show_tensors(im);
    return rc;
}
