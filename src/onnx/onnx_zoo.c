/* Networks of the zoo as ONNX models with random weights: something to run where no real model is at hand.
 *
 * The zoo walks its network and names operators, what they read and write, their weights and attributes; each becomes a
 * node, an initializer or an attribute of a message tree, which is then packed. Operators and tensors keep the names
 * that they have in the zoo's graph, so that a plan of one is a plan of the other. A weight is named after its operator
 * and its place among the inputs: "L0/fc1.w1".
 *
 * Weights are uniform around 0 with the variance that keeps activations from growing, so that
 * results can be compared to many digits. They are the same on every machine. Up to
 * MOST_INLINE_BYTES they are part of the file (protobuf's limit is 2 GiB); beyond, of a file beside it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <moirai/onnx.h>
#include <moirai/zoo.h>
#include "onnx/onnx_model.h"
#include "util/util.h"
#include "zoo/zoo_net.h"

#define MOST_INLINE_BYTES ((int64_t)512 << 20)
enum { OPSET = 20, IR_VERSION = 9, FLOAT32 = 1, FLOAT16 = 10, ALIGNMENT = 4096 };

typedef struct writer {
    zoo_sink sink; /* first: the walk's callbacks get this */
    Onnx__ModelProto *model;
    Onnx__NodeProto *node; /* the operator being described */
    int element_bytes;
    util_rng rng;
    FILE *data; /* external weights, NULL: inline */
    const char *location;
    int64_t offset;
} writer;

/* Room for one more in a list of n; the lists of protobuf's structs have no capacity: full at powers of two. */
static int list_grow(void *list, size_t n, size_t size)
{
    size_t capacity = n;

    return n & (n - 1) ? 0 : util_grow(list, &capacity, n ? 2 * n : 1, size);
}

/* A fresh message at the end of a list of them, or NULL. protobuf-c's free_unpacked frees it with its parent. */
#define APPEND(list, n, type, init) \
    (list_grow(&(list), (n), sizeof *(list))     ? NULL \
     : ((list)[n] = util_alloc(1, sizeof(type))) ? (init((list)[n]), (list)[(n)++]) \
                                                 : NULL)

static int string_set(char **field, const char *text)
{
    *field = util_strdup(text);
    return *field ? 0 : MOIRAI_EFAIL;
}

static int string_append(char ***list, size_t *n, const char *text)
{
    if (list_grow(list, *n, sizeof **list) || string_set(&(*list)[*n], text))
        return MOIRAI_EFAIL;
    (*n)++;
    return 0;
}

static int32_t type_of(const writer *w)
{
    return w->element_bytes == 4 ? FLOAT32 : FLOAT16;
}

/* ---- numbers ---- */

/* Nearest half of a float well inside its range, which all weights here are. */
static uint16_t half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t exponent = (int32_t)(bits >> 23 & 255) - 127 + 15;
    uint32_t sign = bits >> 16 & 0x8000, mantissa = bits & 0x7fffff;

    if (exponent <= 0) /* smaller than 2^-14: 0 is near enough for a random weight */
        return (uint16_t)sign;
    mantissa += 0xfff + (mantissa >> 13 & 1);
    return (uint16_t)(sign + ((uint32_t)exponent << 10) + (mantissa >> 13));
}

static void numbers_draw(writer *w, const zoo_weight *weight, uint8_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double u = weight->spread > 0 ? 2 * util_rng_real(&w->rng) - 1 : 0;
        float x = (float)(weight->middle + weight->spread * u);
        uint16_t h = half(x);

        memcpy(out + i * w->element_bytes, w->element_bytes == 4 ? (const void *)&x : (const void *)&h,
               (size_t)w->element_bytes);
    }
}

/* ---- external data ---- */

static int entry_add(Onnx__TensorProto *t, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = APPEND(t->external_data, t->n_external_data, Onnx__StringStringEntryProto,
                                             onnx__string_string_entry_proto__init);

    return !e || string_set(&e->key, key) || string_set(&e->value, value) ? MOIRAI_EFAIL : 0;
}

/* Numbers that a model maps from the file begin at a page. */
static int data_put(writer *w, Onnx__TensorProto *t, const uint8_t *bytes, int64_t length)
{
    static const uint8_t zeros[ALIGNMENT];
    int64_t gap = (ALIGNMENT - w->offset % ALIGNMENT) % ALIGNMENT;
    char offset[32], size[32];

    w->offset += gap;
    snprintf(offset, sizeof offset, "%lld", (long long)w->offset);
    snprintf(size, sizeof size, "%lld", (long long)length);
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (entry_add(t, "location", w->location) || entry_add(t, "offset", offset) || entry_add(t, "length", size))
        return MOIRAI_EFAIL;
    w->offset += length;
    if (fwrite(zeros, 1, (size_t)gap, w->data) != (size_t)gap ||
        fwrite(bytes, 1, (size_t)length, w->data) != (size_t)length)
        return moirai_error(MOIRAI_EFAIL, "%s: can't write: %s", w->location, strerror(errno));
    return 0;
}

/* ---- the walk ---- */

static int value_describe(const writer *w, Onnx__ValueInfoProto *v, const char *name, int rank, const int64_t *dim)
{
    Onnx__TypeProto__Tensor *t = util_alloc(1, sizeof *t);

    v->type = util_alloc(1, sizeof *v->type);
    if (!t || !v->type || string_set(&v->name, name)) {
        free(t);
        free(v->type);
        v->type = NULL;
        return MOIRAI_EFAIL;
    }
    onnx__type_proto__init(v->type);
    onnx__type_proto__tensor__init(t);
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type->tensor_type = t;
    t->has_elem_type = 1;
    t->elem_type = type_of(w);
    if (!dim)
        return 0;
    t->shape = util_alloc(1, sizeof *t->shape);
    if (!t->shape)
        return MOIRAI_EFAIL;
    onnx__tensor_shape_proto__init(t->shape);
    for (int i = 0; i < rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = APPEND(t->shape->dim, t->shape->n_dim, Onnx__TensorShapeProto__Dimension,
                                                      onnx__tensor_shape_proto__dimension__init);
        if (!d)
            return MOIRAI_EFAIL;
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = dim[i];
    }
    return 0;
}

static int on_input(zoo_sink *s, const char *tensor, int rank, const int64_t *dim)
{
    writer *w = (writer *)s;
    Onnx__GraphProto *g = w->model->graph;
    Onnx__ValueInfoProto *v = APPEND(g->input, g->n_input, Onnx__ValueInfoProto, onnx__value_info_proto__init);

    return v ? value_describe(w, v, tensor, rank, dim) : MOIRAI_EFAIL;
}

static int on_op(zoo_sink *s, const char *type, const char *name)
{
    writer *w = (writer *)s;
    Onnx__GraphProto *g = w->model->graph;

    w->node = APPEND(g->node, g->n_node, Onnx__NodeProto, onnx__node_proto__init);
    return !w->node || string_set(&w->node->op_type, type) || string_set(&w->node->name, name) ? MOIRAI_EFAIL : 0;
}

static int on_read(zoo_sink *s, const char *tensor)
{
    writer *w = (writer *)s;

    return string_append(&w->node->input, &w->node->n_input, tensor);
}

static int on_write(zoo_sink *s, const char *tensor)
{
    writer *w = (writer *)s;

    return string_append(&w->node->output, &w->node->n_output, tensor);
}

static int on_weight(zoo_sink *s, const zoo_weight *weight)
{
    writer *w = (writer *)s;
    Onnx__GraphProto *g = w->model->graph;
    Onnx__TensorProto *t = APPEND(g->initializer, g->n_initializer, Onnx__TensorProto, onnx__tensor_proto__init);
    char name[ZOO_NAME + 32];
    int64_t n = 1;
    uint8_t *bytes;
    int rc;

    snprintf(name, sizeof name, "%s.w%zu", w->node->name, w->node->n_input);
    if (!t || string_set(&t->name, name) || string_append(&w->node->input, &w->node->n_input, name))
        return MOIRAI_EFAIL;
    t->dims = util_alloc((size_t)weight->rank, sizeof *t->dims);
    if (!t->dims)
        return MOIRAI_EFAIL;
    t->n_dims = (size_t)weight->rank;
    for (int i = 0; i < weight->rank; i++)
        n *= t->dims[i] = weight->dim[i];
    t->has_data_type = 1;
    t->data_type = type_of(w);
    bytes = util_alloc((size_t)n, (size_t)w->element_bytes);
    if (!bytes)
        return MOIRAI_EFAIL;
    numbers_draw(w, weight, bytes, n);
    if (w->data) {
        rc = data_put(w, t, bytes, n * w->element_bytes);
        free(bytes);
        return rc;
    }
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){(size_t)(n * w->element_bytes), bytes};
    return 0;
}

static int on_attribute(zoo_sink *s, const char *name, int n, const int64_t *value)
{
    writer *w = (writer *)s;
    Onnx__AttributeProto *a =
        APPEND(w->node->attribute, w->node->n_attribute, Onnx__AttributeProto, onnx__attribute_proto__init);

    if (!a || string_set(&a->name, name))
        return MOIRAI_EFAIL;
    a->has_type = 1;
    a->type = n ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    a->has_i = !n;
    a->i = n ? 0 : *value;
    if (!n)
        return 0;
    a->ints = util_alloc((size_t)n, sizeof *a->ints);
    if (!a->ints)
        return MOIRAI_EFAIL;
    memcpy(a->ints, value, (size_t)n * sizeof *value);
    a->n_ints = (size_t)n;
    return 0;
}

/* ---- the file ---- */

static int model_begin(writer *w, const char *name)
{
    Onnx__ModelProto *m = util_alloc(1, sizeof *m);
    Onnx__OperatorSetIdProto *set;

    if (!m)
        return MOIRAI_EFAIL;
    w->model = m;
    onnx__model_proto__init(m);
    m->has_ir_version = 1;
    m->ir_version = IR_VERSION;
    m->graph = util_alloc(1, sizeof *m->graph);
    if (!m->graph)
        return MOIRAI_EFAIL;
    onnx__graph_proto__init(m->graph);
    set = APPEND(m->opset_import, m->n_opset_import, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto__init);
    if (!set || string_set(&m->producer_name, "moirai") || string_set(&m->graph->name, name))
        return MOIRAI_EFAIL;
    set->has_version = 1;
    set->version = OPSET;
    return 0;
}

/* The last operator of a network writes its result. */
static int model_end(writer *w)
{
    Onnx__GraphProto *g = w->model->graph;
    Onnx__ValueInfoProto *v = APPEND(g->output, g->n_output, Onnx__ValueInfoProto, onnx__value_info_proto__init);

    return v ? value_describe(w, v, w->node->output[w->node->n_output - 1], 0, NULL) : MOIRAI_EFAIL;
}

static int model_make(writer *w, const char *name)
{
    int rc = model_begin(w, name);

    rc = rc ? rc : zoo_walk(name, &w->sink);
    return rc ? rc : model_end(w);
}

static int model_write(writer *w, const char *name, const char *path)
{
    int rc = model_make(w, name);

    return rc ? rc : onnx_model_write(NULL, w->model, path);
}

/* Weights first, under a temporary name; both files take their places only when all is written. */
static int model_write_external(writer *w, const char *name, const char *path)
{
    char data[4096], temporary[4096 + 8];
    const char *slash;
    int rc;

    if ((size_t)snprintf(data, sizeof data, "%s.data", path) >= sizeof data)
        return moirai_error(MOIRAI_EUSAGE, "%s: the path is too long", path);
    snprintf(temporary, sizeof temporary, "%s.part", data);
    slash = strrchr(data, '/');
    w->location = slash ? slash + 1 : data;
    w->data = fopen(temporary, "wb");
    if (!w->data)
        return moirai_error(MOIRAI_EFAIL, "%s: can't write: %s", temporary, strerror(errno));
    rc = model_make(w, name);
    if (fclose(w->data) && !rc)
        rc = moirai_error(MOIRAI_EFAIL, "%s: can't write: %s", temporary, strerror(errno));
    if (!rc && rename(temporary, data))
        rc = moirai_error(MOIRAI_EFAIL, "%s: can't rename: %s", data, strerror(errno));
    if (rc)
        unlink(temporary);
    return rc ? rc : onnx_model_write(NULL, w->model, path);
}

static int weight_bytes(int64_t *out, const char *name, int element_bytes)
{
    moirai_graph *g;
    int rc = moirai_zoo_graph(&g, name, element_bytes);

    if (rc)
        return rc;
    *out = 0;
    for (int32_t i = 0; i < g->n_ops; i++)
        *out += g->op_weight_bytes[i];
    moirai_graph_free(g);
    return 0;
}

int moirai_onnx_write_zoo(const char *name, int element_bytes, uint64_t seed, const char *path)
{
    writer w = {.sink = {on_input, on_op, on_read, on_write, on_weight, on_attribute}, .element_bytes = element_bytes};
    int64_t bytes;
    int rc;

    if (!strcmp(path, "-"))
        return moirai_error(MOIRAI_EUSAGE,
                            "a model can't go to standard output: its weights may need a file beside it");
    rc = weight_bytes(&bytes, name, element_bytes);
    if (rc)
        return rc;
    util_rng_seed(&w.rng, seed);
    rc = bytes > MOST_INLINE_BYTES ? model_write_external(&w, name, path) : model_write(&w, name, path);
    if (w.model)
        onnx__model_proto__free_unpacked(w.model, NULL);
    return rc;
}
