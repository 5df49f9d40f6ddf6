#include "support/onnx_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(wire *w, const void *data, size_t length)
{
    if (w->length + length > w->capacity) {
        w->capacity = 2 * (w->length + length) + 64;
        w->data = realloc(w->data, w->capacity);
        if (!w->data)
            abort();
    }
    if (length)
        memcpy(w->data + w->length, data, length);
    w->length += length;
}

static void varint(wire *w, uint64_t value)
{
    uint8_t byte;
    for (; value >= 0x80; value >>= 7) {
        byte = (uint8_t)(value | 0x80);
        append(w, &byte, 1);
    }
    byte = (uint8_t)value;
    append(w, &byte, 1);
}

void wire_free(wire *w)
{
    free(w->data);
    *w = (wire){0};
}

void wire_number(wire *w, uint32_t field, int64_t value)
{
    varint(w, (uint64_t)field << 3);
    varint(w, (uint64_t)value);
}

void wire_head(wire *w, uint32_t field, uint64_t length)
{
    varint(w, (uint64_t)field << 3 | 2);
    varint(w, length);
}

void wire_bytes(wire *w, uint32_t field, const void *data, size_t length)
{
    wire_head(w, field, length);
    append(w, data, length);
}

void wire_text(wire *w, uint32_t field, const char *text)
{
    wire_bytes(w, field, text, strlen(text));
}

void wire_message(wire *w, uint32_t field, wire *child)
{
    wire_bytes(w, field, child->data, child->length);
    wire_free(child);
}

/* ---- tensors ---- */

/* Calls for each 'x'-separated part. */
static const char *next_part(const char *shape, char *part, size_t size)
{
    size_t n = strcspn(shape, "x");
    snprintf(part, size, "%.*s", (int)n, shape);
    return shape[n] ? shape + n + 1 : shape + n;
}

static void value_info(wire *graph, uint32_t field, const char *name, int type, const char *shape)
{
    wire info = {0}, proto = {0}, tensor = {0}, dims = {0};
    char part[64], *end;
    for (const char *at = shape ? shape : ""; *at;) {
        wire dim = {0};
        at = next_part(at, part, sizeof part);
        long long value = strtoll(part, &end, 10);
        if (*end)
            wire_text(&dim, 2, part);
        else
            wire_number(&dim, 1, value);
        wire_message(&dims, 1, &dim);
    }
    wire_number(&tensor, 1, type);
    if (shape)
        wire_message(&tensor, 2, &dims);
    wire_message(&proto, 1, &tensor);
    wire_text(&info, 1, name);
    wire_message(&info, 2, &proto);
    wire_message(graph, field, &info);
}

void make_input(wire *graph, const char *name, int type, const char *shape)
{
    value_info(graph, 11, name, type, shape);
}

void make_output(wire *graph, const char *name, int type, const char *shape)
{
    value_info(graph, 12, name, type, shape);
}

void make_tensor(wire *tensor, const char *name, int type, const char *shape)
{
    char part[64];
    for (const char *at = shape; *at;) {
        at = next_part(at, part, sizeof part);
        wire_number(tensor, 1, strtoll(part, NULL, 10));
    }
    wire_number(tensor, 2, type);
    wire_text(tensor, 8, name);
}

static void entry(wire *tensor, const char *key, const char *value)
{
    wire e = {0};
    if (!value)
        return;
    wire_text(&e, 1, key);
    wire_text(&e, 2, value);
    wire_message(tensor, 13, &e);
}

void make_external_tensor(wire *tensor, const char *name, int type, const char *shape, const char *location,
                          const char *offset, const char *length)
{
    make_tensor(tensor, name, type, shape);
    entry(tensor, "location", location);
    entry(tensor, "offset", offset);
    entry(tensor, "length", length);
    wire_number(tensor, 14, 1);
}

void make_external(wire *graph, const char *name, int type, const char *shape, const char *offset, const char *length)
{
    wire t = {0};
    make_external_tensor(&t, name, type, shape, "weights.bin", offset, length);
    wire_message(graph, 5, &t);
}

void make_weights(wire *graph, const char *name, const char *shape)
{
    wire t = {0};
    char part[64];
    size_t n = 1;
    make_tensor(&t, name, MAKE_FLOAT, shape);
    for (const char *at = shape; *at;) {
        at = next_part(at, part, sizeof part);
        n *= (size_t)strtoll(part, NULL, 10);
    }
    float *zeros = calloc(n + 1, sizeof *zeros);
    if (!zeros)
        abort();
    wire_bytes(&t, 9, zeros, n * sizeof *zeros);
    free(zeros);
    wire_message(graph, 5, &t);
}

void make_ints(wire *graph, const char *name, int n, const int64_t *value, int scalar)
{
    wire t = {0};
    char shape[32] = "";
    if (!scalar)
        snprintf(shape, sizeof shape, "%d", n);
    make_tensor(&t, name, MAKE_INT64, shape);
    wire_bytes(&t, 9, value, (size_t)n * sizeof *value); /* the tests run on little-endian machines only */
    wire_message(graph, 5, &t);
}

/* ---- nodes ---- */

static void attribute(wire *attrs, const char *name, int type, wire *a)
{
    wire_text(a, 1, name);
    wire_number(a, 20, type);
    wire_message(attrs, 5, a);
}

void make_attr_int(wire *attrs, const char *name, int64_t value)
{
    wire a = {0};
    wire_number(&a, 3, value);
    attribute(attrs, name, 2, &a);
}

void make_attr_ints(wire *attrs, const char *name, int n, const int64_t *value)
{
    wire a = {0};
    for (int i = 0; i < n; i++)
        wire_number(&a, 8, value[i]);
    attribute(attrs, name, 7, &a);
}

void make_attr_text(wire *attrs, const char *name, const char *value)
{
    wire a = {0};
    wire_text(&a, 4, value);
    attribute(attrs, name, 3, &a);
}

void make_attr_tensor(wire *attrs, const char *name, wire *tensor)
{
    wire a = {0};
    wire_message(&a, 5, tensor);
    attribute(attrs, name, 4, &a);
}

void make_attr_graph(wire *attrs, const char *name, wire *graph)
{
    wire a = {0};
    wire_message(&a, 6, graph);
    attribute(attrs, name, 5, &a);
}

static void names(wire *node, uint32_t field, const char *list)
{
    for (const char *at = list; list && *list;) {
        size_t n = strcspn(at, ",");
        wire_bytes(node, field, at, n);
        if (!at[n])
            break;
        at += n + 1;
    }
}

static void put_node(wire *to, uint32_t field, const char *domain, const char *type, const char *inputs,
                     const char *outputs, wire *attrs)
{
    wire node = {0};
    names(&node, 1, inputs);
    names(&node, 2, outputs);
    wire_text(&node, 4, type);
    if (attrs) {
        append(&node, attrs->data, attrs->length);
        wire_free(attrs);
    }
    if (*domain)
        wire_text(&node, 7, domain);
    wire_message(to, field, &node);
}

void make_node_in(wire *graph, const char *domain, const char *type, const char *inputs, const char *outputs,
                  wire *attrs)
{
    put_node(graph, 1, domain, type, inputs, outputs, attrs);
}

void make_function_node(wire *function, const char *type, const char *inputs, const char *outputs, wire *attrs)
{
    put_node(function, 7, "", type, inputs, outputs, attrs);
}

void make_node(wire *graph, const char *type, const char *inputs, const char *outputs, wire *attrs)
{
    make_node_in(graph, "", type, inputs, outputs, attrs);
}

void make_model(wire *model, wire *graph)
{
    wire opset = {0};
    wire_number(model, 1, 8);
    wire_number(&opset, 2, 17);
    wire_message(model, 7, graph);
    wire_message(model, 8, &opset);
}
