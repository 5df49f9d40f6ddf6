/* What all folding rules do: ask for numbers, make room, take them from where they are. Private to onnx_fold*.c. */
#ifndef MOIRAI_ONNX_RULES_ONNX_FOLD_H
#define MOIRAI_ONNX_RULES_ONNX_FOLD_H

#include "onnx/rules/onnx_rules.h"

#define FOLD(name) void onnx_fold_##name(onnx_node *n)

static inline bool onnx_fold_ready(const onnx_node *n, int32_t inputs)
{
    if (!onnx_out(n, 0) || n->out[0]->elements > ONNX_MAX_NUMBERS)
        return false;
    for (int32_t i = 0; i < inputs; i++)
        if (!onnx_has_numbers(onnx_in(n, i)))
            return false;
    return true;
}

/* Room for the output's numbers in its own kind; false if it gets none. */
static inline bool onnx_fold_room(onnx_node *n, onnx_value *v)
{
    return onnx_is_real(v->type) ? onnx_value_reals(n->import, v) != NULL : onnx_value_ints(n->import, v) != NULL;
}

static inline void onnx_fold_drop(onnx_value *v)
{
    v->ints = NULL;
    v->reals = NULL;
    v->n_numbers = 0;
}

static inline void onnx_fold_put(onnx_value *out, int64_t i, const onnx_value *from, int64_t k)
{
    if (out->reals)
        out->reals[i] = onnx_real(from, k);
    else
        out->ints[i] = onnx_value_int(from, k);
}

/* Position in `v` of element `i` of a value of shape (rank, dim) that v broadcasts to. */
static inline int64_t onnx_fold_source(const onnx_value *v, int32_t rank, const int64_t *dim, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int32_t a = rank - 1; a >= 0; a--) {
        int64_t k = i % dim[a];
        int32_t own = a - (rank - v->rank);
        i /= dim[a];
        if (own < 0)
            continue;
        at += v->dim[own] == 1 ? 0 : k * stride;
        stride *= v->dim[own];
    }
    return at;
}

static inline int64_t onnx_fold_source_of(const onnx_value *v, const onnx_value *out, int64_t i)
{
    return onnx_fold_source(v, out->rank, out->dim, i);
}

#endif
