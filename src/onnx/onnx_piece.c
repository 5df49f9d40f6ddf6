/* One operator, or a few that are fused, cut out of a network as a model of its own.
 *
 * What makes two operators equal is type, attributes, shapes and number types: names are replaced by "t0", "t1", ... in
 * the order of use, so that equal operators give equal bytes and need to be measured once. Weights are large and their
 * numbers do not matter for the time: they become external data that whoever runs the piece makes up. The numbers of
 * small integers do matter (axes, shapes, indices), as do a few reals (scales of Resize, bounds of Clip): constants of
 * up to ONNX_MAX_NUMBERS integers or MOST_REALS reals keep theirs. A node with subgraphs refers to outer tensors by
 * name: pieces with such nodes keep all names.
 *
 * The message tree borrows nodes' attributes from the open model and lives in an arena until it is packed. */
#include "onnx/onnx_piece.h"

#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_message.h"
#include "onnx/onnx_network.h"
#include "onnx/onnx_tensors.h"

#define MOST_REALS 8

/* A tensor of the piece under construction. */
typedef struct piece_value {
    const onnx_value *value;
    char *name;
    bool made; /* by a member */
    bool read; /* by a member, after it was made */
} piece_value;

typedef struct piece {
    const onnx_network *from;
    onnx_arena arena;
    Onnx__GraphProto graph;
    piece_value *value;
    size_t n_values, capacity;
    bool keep_names;
} piece;

/* ---- constants ---- */

static int make_up_weights(piece *c, Onnx__TensorProto *t, const onnx_value *v)
{
    t->external_data = onnx_take(&c->arena, 2, sizeof *t->external_data);
    if (!t->external_data)
        return MOIRAI_EFAIL;
    t->external_data[0] = onnx_entry(&c->arena, "location", onnx_text(&c->arena, ONNX_PIECE_WEIGHTS "%d", v->type));
    t->external_data[1] = onnx_entry(&c->arena, "length", onnx_text(&c->arena, "%lld", (long long)v->bytes));
    if (!t->external_data[0] || !t->external_data[1])
        return MOIRAI_EFAIL;
    t->n_external_data = 2;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    return 0;
}

/* Little endian, as raw_data wants it. */
static void put_number(uint8_t *at, const onnx_value *v, int32_t i, int bytes)
{
    uint64_t word;
    float single = (float)onnx_real(v, i);
    double full = onnx_real(v, i);
    uint32_t low;
    memcpy(&low, &single, sizeof low);
    memcpy(&word, &full, sizeof word);
    if (v->type == ONNX_FLOAT)
        word = low;
    else if (!onnx_type_is_float(v->type))
        word = (uint64_t)onnx_value_int(v, i);
    for (int b = 0; b < bytes; b++)
        at[b] = (uint8_t)(word >> (8 * b));
}

static bool keeps_numbers(const onnx_value *v)
{
    int bits = onnx_type_bits(v->type);
    if (bits < 8 || bits > 64 || !onnx_has_numbers(v) || v->n_numbers != v->elements)
        return false;
    if (!onnx_type_is_float(v->type))
        return bits >= 32 || v->type == ONNX_BOOL || v->elements <= MOST_REALS; /* int8 in number are weights */
    return (v->type == ONNX_FLOAT || bits == 64) && v->elements <= MOST_REALS;
}

static int add_constant(piece *c, const onnx_value *v, char *name)
{
    Onnx__GraphProto *g = &c->graph;
    Onnx__TensorProto *t = onnx_take(&c->arena, 1, sizeof *t);
    int bits = onnx_type_bits(v->type);
    if (!t)
        return MOIRAI_EFAIL;
    if (!bits)
        return moirai_error(MOIRAI_EINPUT, "constant '%.200s' is of a type without a size", v->name);
    onnx__tensor_proto__init(t);
    g->initializer[g->n_initializer++] = t;
    t->name = name;
    t->dims = (int64_t *)v->dim; /* packing does not write to it */
    t->n_dims = (size_t)v->rank;
    t->has_data_type = 1;
    t->data_type = v->type;
    if (v->elements && !keeps_numbers(v))
        return make_up_weights(c, t, v);
    t->has_raw_data = 1;
    t->raw_data.len = (size_t)v->elements * (size_t)bits / 8;
    t->raw_data.data = onnx_take(&c->arena, t->raw_data.len, 1);
    if (!t->raw_data.data)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < (int32_t)v->elements; i++)
        put_number(t->raw_data.data + (size_t)i * (size_t)bits / 8, v, i, bits / 8);
    return 0;
}

/* ---- tensors ---- */

static int describe(piece *c, Onnx__ValueInfoProto **out, const char *name, const onnx_value *v, bool shape)
{
    Onnx__TypeProto *type = onnx_tensor_type(&c->arena, v, shape);
    *out = type ? onnx_value_info(&c->arena, name, type) : NULL;
    return *out ? 0 : MOIRAI_EFAIL;
}

static piece_value *find_value(piece *c, const onnx_value *v)
{
    for (size_t i = 0; i < c->n_values; i++)
        if (c->value[i].value == v)
            return &c->value[i];
    return NULL;
}

static piece_value *new_value(piece *c, const onnx_value *v)
{
    if (util_grow(&c->value, &c->capacity, c->n_values + 1, sizeof *c->value))
        return NULL;
    char *name = c->keep_names ? (char *)v->name : onnx_text(&c->arena, "t%zu", c->n_values);
    if (!name)
        return NULL;
    c->value[c->n_values] = (piece_value){.value = v, .name = name};
    return &c->value[c->n_values++];
}

/* Whatever a member reads: made by another member, an input of the piece, or a constant. */
static int read_value(piece *c, char **name, const onnx_value *v)
{
    piece_value *known = find_value(c, v);
    if (known) {
        known->read = true;
        *name = known->name;
        return 0;
    }
    known = new_value(c, v);
    if (!known)
        return MOIRAI_EFAIL;
    *name = known->name;
    if (v->constant)
        return add_constant(c, v, known->name);
    if (!v->shaped || !onnx_type_bits(v->type))
        return moirai_error(MOIRAI_EINPUT, "tensor '%.200s' is of a type or shape that is not known", v->name);
    int rc = describe(c, &c->graph.input[c->graph.n_input], known->name, v, true);
    c->graph.n_input += !rc;
    return rc;
}

static int write_value(piece *c, char **name, const onnx_value *v)
{
    piece_value *made = new_value(c, v);
    if (!made)
        return MOIRAI_EFAIL;
    made->made = true;
    *name = made->name;
    return 0;
}

/* ---- nodes ---- */

static int add_node(piece *c, const onnx_node *n)
{
    static char nothing[] = "";
    Onnx__NodeProto *copy = onnx_take(&c->arena, 1, sizeof *copy);
    if (!copy)
        return MOIRAI_EFAIL;
    *copy = *n->proto;
    copy->name = copy->doc_string = NULL;
    copy->n_metadata_props = 0;
    copy->input = onnx_take(&c->arena, (size_t)n->n_in, sizeof *copy->input);
    copy->output = onnx_take(&c->arena, (size_t)n->n_out, sizeof *copy->output);
    if (!copy->input || !copy->output)
        return MOIRAI_EFAIL;
    int rc = 0;
    for (int32_t k = 0; k < n->n_in && !rc; k++) {
        copy->input[k] = nothing;
        rc = n->in[k] ? read_value(c, &copy->input[k], n->in[k]) : 0;
    }
    for (int32_t k = 0; k < n->n_captured && !rc; k++) {
        char *unused;
        rc = read_value(c, &unused, n->captured[k]);
    }
    for (int32_t k = 0; k < n->n_out && !rc; k++) {
        copy->output[k] = nothing;
        rc = n->out[k] ? write_value(c, &copy->output[k], n->out[k]) : 0;
    }
    c->graph.node[c->graph.n_node++] = copy;
    return rc;
}

/* What no member reads leaves the piece; outputs that nobody asked for do not. */
static int add_outputs(piece *c, const onnx_node *n)
{
    for (int32_t k = 0; k < n->n_out; k++) {
        const piece_value *v = n->out[k] ? find_value(c, n->out[k]) : NULL;
        if (!v || v->read || (k > 0 && !n->out[k]->needed))
            continue;
        int rc = describe(c, &c->graph.output[c->graph.n_output], v->name, n->out[k], false);
        if (rc)
            return rc;
        c->graph.n_output++;
    }
    return 0;
}

static const onnx_node *node_of(const onnx_network *from, int32_t op)
{
    return &from->im.root->node[from->op_node[op]];
}

static int allocate(piece *c, const int32_t *op, int32_t n)
{
    size_t n_in = 0, n_out = 0;
    for (int32_t i = 0; i < n; i++) {
        const onnx_node *node = node_of(c->from, op[i]);
        n_in += (size_t)(node->n_in + node->n_captured);
        n_out += (size_t)node->n_out;
        c->keep_names |= node->n_children > 0;
    }
    Onnx__GraphProto *g = &c->graph;
    onnx__graph_proto__init(g);
    g->name = "piece";
    g->node = onnx_take(&c->arena, (size_t)n, sizeof *g->node);
    g->input = onnx_take(&c->arena, n_in, sizeof *g->input);
    g->initializer = onnx_take(&c->arena, n_in, sizeof *g->initializer);
    g->output = onnx_take(&c->arena, n_out, sizeof *g->output);
    return g->node && g->input && g->initializer && g->output ? 0 : MOIRAI_EFAIL;
}

/* ---- packing ---- */

typedef struct bytes {
    uint8_t *data;
    size_t length, capacity;
} bytes;

static int to_bytes(void *to, const void *data, size_t length)
{
    bytes *b = to;
    if (util_grow(&b->data, &b->capacity, b->length + length, 1))
        return MOIRAI_EFAIL;
    memcpy(b->data + b->length, data, length);
    b->length += length;
    return 0;
}

/* Made-up weights are initializers of the piece. Any other tensor that names a file (in a graph inside, in a function)
 * would be looked for where the piece runs. */
static int refuse_external(void *data, Onnx__TensorProto *t, const Onnx__NodeProto *node)
{
    const piece *c = data;
    onnx_data d;
    for (size_t i = 0; i < c->graph.n_initializer; i++)
        if (c->graph.initializer[i] == t)
            return 0;
    int rc = onnx_tensor_data(&d, c->from->model, t);
    if (!rc && d.kind == ONNX_DATA_EXTERNAL)
        rc = moirai_error(MOIRAI_EINPUT, "external data in '%.200s': such an operator is no piece", d.location);
    return rc ? onnx_tensor_prefix(rc, t, node) : 0;
}

static int pack(bytes *out, const piece *c)
{
    const onnx_model *model = c->from->model;
    Onnx__ModelProto m;
    onnx__model_proto__init(&m);
    m.has_ir_version = model->proto->has_ir_version;
    m.ir_version = model->proto->ir_version;
    m.opset_import = model->proto->opset_import;
    m.n_opset_import = model->proto->n_opset_import;
    m.functions = model->proto->functions;
    m.n_functions = model->proto->n_functions;
    m.graph = (Onnx__GraphProto *)&c->graph;
    int rc = onnx_tensors_each(&m, refuse_external, (void *)c);
    if (rc)
        return rc;
    size_t length = onnx__model_proto__get_packed_size(&m);
    uint8_t *slim = util_alloc(length, 1);
    if (!slim)
        return MOIRAI_EFAIL;
    onnx__model_proto__pack(&m, slim);
    rc = onnx_wire_expand(&onnx__model_proto__descriptor, slim, length, model->slim.cut, model->slim.n_cuts,
                          model->file, to_bytes, out);
    free(slim);
    return rc;
}

int onnx_piece_make(uint8_t **data, size_t *length, const onnx_network *from, const int32_t *op, int32_t n)
{
    piece c = {.from = from};
    bytes packed = {0};
    int rc = allocate(&c, op, n);
    for (int32_t i = 0; i < n && !rc; i++)
        rc = add_node(&c, node_of(from, op[i]));
    for (int32_t i = 0; i < n && !rc; i++)
        rc = add_outputs(&c, node_of(from, op[i]));
    rc = rc ? rc : pack(&packed, &c);
    free(c.value);
    onnx_arena_free(&c.arena);
    if (rc) {
        free(packed.data);
        packed = (bytes){0};
    }
    *data = packed.data;
    *length = packed.length;
    return rc;
}
