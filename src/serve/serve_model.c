/* Types and tensors of a served model. */
#include "serve/serve_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/error.h>
#include "util/util.h"

#define MOST_BYTES (INT64_C(1) << 40)

static const serve_type types[] = {{"FP32", "float32", 1, 4},  {"UINT8", "uint8", 2, 1},    {"INT8", "int8", 3, 1},
                                   {"UINT16", "uint16", 4, 2}, {"INT16", "int16", 5, 2},    {"INT32", "int32", 6, 4},
                                   {"INT64", "int64", 7, 8},   {"BOOL", "bool", 9, 1},      {"FP16", "float16", 10, 2},
                                   {"FP64", "float64", 11, 8}, {"UINT32", "uint32", 12, 4}, {"UINT64", "uint64", 13, 8},
                                   {"BF16", "bfloat16", 16, 2}};
enum { N_TYPES = sizeof types / sizeof *types };

const serve_type *serve_type_of_onnx(int64_t onnx)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].onnx == onnx)
            return &types[i];
    return NULL;
}

const serve_type *serve_type_of_plain(const char *plain)
{
    for (int i = 0; plain && i < N_TYPES; i++)
        if (!strcmp(types[i].plain, plain))
            return &types[i];
    return NULL;
}

void serve_shape_text(char *out, size_t size, const int64_t *dim, int64_t rank)
{
    size_t used = (size_t)snprintf(out, size, "[");
    for (int64_t i = 0; i < rank && used + 24 < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%lld", i ? "," : "", (long long)dim[i]);
    snprintf(out + used, size - used, "]");
}

int serve_tensor_set(serve_tensor *t, const char *name, const serve_type *type, int64_t rank, const int64_t *dim)
{
    int64_t n = 1, bytes = 0;
    if (!type)
        return moirai_error(MOIRAI_EINPUT, "tensor '%s' has a type that can't be served (numbers and booleans can)",
                            name);
    if (rank < 0 || rank > SERVE_MOST_DIMS)
        return moirai_error(MOIRAI_EINPUT, "tensor '%s': its shape is not known", name);
    for (int64_t i = 0; i < rank; i++)
        if (dim[i] < 0 || !util_mul64(&n, n, dim[i]) || n > MOST_BYTES)
            return moirai_error(MOIRAI_EINPUT, "tensor '%s': dimension %lld is %lld", name, (long long)i,
                                (long long)dim[i]);
    bytes = n * (int64_t)type->bytes;
    char *own = t->name ? t->name : util_strdup(name);
    if (!own)
        return MOIRAI_EFAIL;
    *t = (serve_tensor){.name = own, .type = type, .rank = rank, .elements = n, .bytes = (size_t)bytes};
    for (int64_t i = 0; i < rank; i++) /* a scalar has no `dim` to copy */
        t->dim[i] = dim[i];
    return 0;
}

int serve_model_new(serve_model **out, const char *name, int n_inputs, int n_outputs)
{
    serve_model *m = *out = util_alloc(1, sizeof *m);
    if (!m)
        return MOIRAI_EFAIL;
    m->n_inputs = n_inputs;
    m->n_outputs = n_outputs;
    m->name = util_strdup(name);
    m->input = util_alloc((size_t)n_inputs, sizeof *m->input);
    m->output = util_alloc((size_t)n_outputs, sizeof *m->output);
    if (m->name && m->input && m->output)
        return 0;
    serve_model_free(m);
    *out = NULL;
    return MOIRAI_EFAIL;
}

void serve_model_sum(serve_model *m)
{
    m->in_bytes = m->out_bytes = 0;
    for (int i = 0; i < m->n_inputs; i++)
        m->in_bytes += m->input[i].bytes;
    for (int i = 0; i < m->n_outputs; i++)
        m->out_bytes += m->output[i].bytes;
}

void serve_model_free(serve_model *m)
{
    if (!m)
        return;
    for (int i = 0; m->input && i < m->n_inputs; i++)
        free(m->input[i].name);
    for (int i = 0; m->output && i < m->n_outputs; i++)
        free(m->output[i].name);
    free(m->name);
    free(m->input);
    free(m->output);
    free(m);
}

/* A number in JSON has at most 25 characters, with its comma, blanks and brackets 32. */
size_t serve_model_most_bytes(const serve_model *m)
{
    size_t most = 1 << 16;
    for (int i = 0; i < m->n_inputs; i++)
        most += 32 * (size_t)m->input[i].elements + m->input[i].bytes;
    return most;
}
