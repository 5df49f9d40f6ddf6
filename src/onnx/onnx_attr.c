/* Attributes of nodes by name. */
#include <string.h>

#include "onnx/onnx_model.h"

const Onnx__AttributeProto *onnx_attr(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name && !strcmp(node->attribute[i]->name, name))
            return node->attribute[i];
    return NULL;
}

int64_t onnx_attr_int(const Onnx__NodeProto *node, const char *name, int64_t missing)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);
    return a && a->has_i ? a->i : missing;
}

bool onnx_attr_is(const Onnx__NodeProto *node, const char *name, const char *text, bool missing)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);
    if (!a || !a->has_s)
        return missing;
    return a->s.len == strlen(text) && !memcmp(a->s.data, text, a->s.len);
}
