/* One walk over all tensors of a model.
 *
 * Tensors hide in many places: a graph's initializers, attributes of nodes (a Constant's value), lists of them, the
 * values and indices of sparse ones, graphs inside attributes, functions and the defaults of their attributes, training
 * information. The walk lists none of these: it follows protobuf-c's own descriptors into every message, so that a place
 * which a later onnx.proto adds is walked as well. The scanner (onnx_wire.c) has bounded the nesting, and with it the
 * recursion here. */
#include "onnx/onnx_tensors.h"

#include <moirai/error.h>

typedef struct walk {
    onnx_tensor_fn each;
    void *data;
    const Onnx__NodeProto *node;
} walk;

static int visit(walk *w, ProtobufCMessage *message);

static int visit_field(walk *w, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *f)
{
    const char *base = (const char *)message;
    const void *quantifier = base + f->quantifier_offset;
    int rc = 0;
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        ProtobufCMessage **list = *(ProtobufCMessage * *const *)(const void *)(base + f->offset);
        for (size_t i = 0; i < *(const size_t *)quantifier && !rc; i++)
            rc = visit(w, list[i]);
        return rc;
    }
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && *(const uint32_t *)quantifier != f->id)
        return 0;
    ProtobufCMessage *one = *(ProtobufCMessage *const *)(const void *)(base + f->offset);
    return one ? visit(w, one) : 0;
}

static int visit(walk *w, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *d = message->descriptor;
    const Onnx__NodeProto *outer = w->node;
    if (d == &onnx__tensor_proto__descriptor)
        return w->each(w->data, (Onnx__TensorProto *)message, w->node);
    if (d == &onnx__type_proto__descriptor) /* there are many, and none holds a tensor */
        return 0;
    if (d == &onnx__node_proto__descriptor)
        w->node = (const Onnx__NodeProto *)message;
    int rc = 0;
    for (unsigned i = 0; i < d->n_fields && !rc; i++)
        if (d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            rc = visit_field(w, message, &d->fields[i]);
    w->node = outer;
    return rc;
}

int onnx_tensors_each(const Onnx__ModelProto *model, onnx_tensor_fn each, void *data)
{
    walk w = {.each = each, .data = data};
    return visit(&w, (ProtobufCMessage *)&model->base);
}

int onnx_tensor_prefix(int rc, const Onnx__TensorProto *tensor, const Onnx__NodeProto *node)
{
    const char *name = tensor->name ? tensor->name : "";
    if (!node)
        return moirai_error_prefix(rc, "tensor '%.200s'", name);
    const char *of = node->name && *node->name ? node->name : node->n_output ? node->output[0] : "";
    return moirai_error_prefix(rc, "tensor '%.200s' of node '%.200s' (%.60s)", name, of,
                               node->op_type ? node->op_type : "");
}
