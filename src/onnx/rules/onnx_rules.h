/* Shape, folding and arithmetic rules by family; the table in onnx_rules.c says which operator uses which.
 * A shape rule returns false where it can't tell (a shape that is computed at run time, attributes that make no
 * sense): the importer then falls back. Inputs, where there, always have a shape. */
#ifndef MOIRAI_ONNX_RULES_ONNX_RULES_H
#define MOIRAI_ONNX_RULES_ONNX_RULES_H

#include "onnx/onnx_import.h"

typedef struct onnx_list {
    const int64_t *item;
    int64_t n;
} onnx_list;

/* ---- onnx_rule_util.c ---- */
/* Attribute `name`, or else the numbers of input `input` (-1: none). False: neither is there, or not constant. */
bool onnx_list_of(onnx_node *n, const char *name, int32_t input, onnx_list *out);
/* The only number of input `input`, where that is a constant. */
bool onnx_number_of(const onnx_node *n, int32_t input, int64_t *out);
/* Is input or attribute given at all, be it constant or not? */
bool onnx_given(const onnx_node *n, const char *name, int32_t input);
bool onnx_axis(int64_t *axis, int32_t rank); /* negative counts from the end; false: out of range */
bool onnx_broadcast(int32_t *rank, int64_t *dim, const onnx_value *v);
int64_t onnx_product(const int64_t *dim, int32_t begin, int32_t end); /* saturating */

static inline int64_t onnx_clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* clang-format off */
#define ONNX_SHAPE_RULES(X) \
    X(same) X(broadcast) X(compare) X(where) X(cast) X(cast_like) X(bool_same) X(dropout) X(quantize) X(dequantize) \
    X(dynamic_quantize) X(qlinear_binary) X(batch_norm) X(layer_norm) X(skip_norm) X(reduce) X(arg) X(top_k) \
    X(non_zero) X(unique) X(compress) X(one_hot) X(nms) X(conv) X(conv_transpose) X(pool) X(global_pool) X(resize) \
    X(depth_to_space) X(space_to_depth) X(roi) X(unpool) X(grid_sample) X(conv_integer) X(qlinear_conv) X(matmul) \
    X(matmul_integer) X(qlinear_matmul) X(gemm) X(einsum) X(rnn) X(matmul_nbits) X(det) X(attention) X(multi_head) \
    X(embed_norm) X(reshape) X(flatten) X(squeeze) X(unsqueeze) X(transpose) X(concat) X(split) X(slice) X(gather) \
    X(gather_nd) X(like_index) X(expand) X(tile) X(pad) X(shape) X(size) X(constant_of_shape) X(range) X(constant) \
    X(eye) X(random) X(dft) X(stft) X(window) X(mel_weights) X(affine_grid) X(center_crop_pad) X(col2im) X(loss) \
    X(multinomial) X(sequence_construct) X(sequence_empty) X(sequence_insert) X(sequence_erase) X(sequence_at) \
    X(split_to_sequence) X(concat_from_sequence) X(has_element)
#define ONNX_FOLD_RULES(X) \
    X(unary) X(binary) X(where) X(copy) X(cast) X(shape) X(size) X(gather) X(concat) X(slice) X(expand) X(range) \
    X(fill) X(reduce) X(transpose) X(split) X(variadic) X(clip) X(pad) X(tile) X(sequence_length)
#define ONNX_FLOP_RULES(X) \
    X(conv) X(conv_transpose) X(pool) X(input) X(norm) X(matmul) X(gemm) X(einsum) X(rnn) X(attention) X(multi_head) \
    X(qlinear_conv) X(qlinear_matmul) X(variadic) X(resize) X(lrn) X(matmul_nbits) X(dft)
/* clang-format on */

#define ONNX_DECLARE(name) bool onnx_shape_##name(onnx_node *n);
ONNX_SHAPE_RULES(ONNX_DECLARE)
#undef ONNX_DECLARE
#define ONNX_DECLARE(name) void onnx_fold_##name(onnx_node *n);
ONNX_FOLD_RULES(ONNX_DECLARE)
#undef ONNX_DECLARE
#define ONNX_DECLARE(name) int64_t onnx_flops_##name(const onnx_node *n);
ONNX_FLOP_RULES(ONNX_DECLARE)
#undef ONNX_DECLARE

#endif
