/* See onnx_message.h. */
#include "onnx/onnx_message.h"

#include <stdarg.h>
#include <stdio.h>

char *onnx_text(onnx_arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : onnx_take(a, (size_t)n + 1, 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

Onnx__StringStringEntryProto *onnx_entry(onnx_arena *a, const char *key, char *value)
{
    Onnx__StringStringEntryProto *e = value ? onnx_take(a, 1, sizeof *e) : NULL;
    if (!e)
        return NULL;
    onnx__string_string_entry_proto__init(e);
    e->key = (char *)key;
    e->value = value;
    return e;
}

static Onnx__TensorShapeProto *shape_of(onnx_arena *a, const onnx_value *v)
{
    Onnx__TensorShapeProto *s = onnx_take(a, 1, sizeof *s);
    Onnx__TensorShapeProto__Dimension *d = onnx_take(a, (size_t)v->rank, sizeof *d);
    Onnx__TensorShapeProto__Dimension **list = onnx_take(a, (size_t)v->rank, sizeof *list);
    if (!s || !d || !list)
        return NULL;
    onnx__tensor_shape_proto__init(s);
    for (int32_t i = 0; i < v->rank; i++) {
        onnx__tensor_shape_proto__dimension__init(&d[i]);
        d[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d[i].dim_value = v->dim[i];
        list[i] = &d[i];
    }
    s->dim = list;
    s->n_dim = (size_t)v->rank;
    return s;
}

Onnx__TypeProto *onnx_tensor_type(onnx_arena *a, const onnx_value *v, bool shape)
{
    Onnx__TypeProto *type = onnx_take(a, 1, sizeof *type);
    Onnx__TypeProto__Tensor *t = onnx_take(a, 1, sizeof *t);
    if (!type || !t)
        return NULL;
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(t);
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = t;
    t->has_elem_type = 1;
    t->elem_type = v->type;
    if (shape && !(t->shape = shape_of(a, v)))
        return NULL;
    return type;
}

Onnx__ValueInfoProto *onnx_value_info(onnx_arena *a, const char *name, const Onnx__TypeProto *type)
{
    Onnx__ValueInfoProto *info = onnx_take(a, 1, sizeof *info);
    if (!info)
        return NULL;
    onnx__value_info_proto__init(info);
    info->name = (char *)name;
    info->type = (Onnx__TypeProto *)type;
    return info;
}
