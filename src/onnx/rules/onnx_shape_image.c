/* Shapes of operators on images and their losses, where the size is an input of its own. */
#include "onnx/rules/onnx_shape.h"

#include <string.h>

/* (theta, size of the image N x C x ...): N x ... x coordinates */
SHAPE(affine_grid)
{
    NEED(0);
    onnx_list size;
    if (!onnx_list_of(n, NULL, 1, &size) || size.n < 4 || size.n > 5)
        return false;
    int64_t dim[5] = {size.item[0]};
    memcpy(dim + 1, size.item + 2, (size_t)(size.n - 2) * sizeof *dim);
    dim[size.n - 1] = size.n - 2;
    return onnx_set_out(n, n->in[0]->type, (int32_t)size.n, dim);
}

SHAPE(center_crop_pad)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    onnx_list size, axes = {0};
    bool given = onnx_list_of(n, "axes", -1, &axes);
    int64_t dim[ONNX_MAX_RANK];
    if (!onnx_list_of(n, NULL, 1, &size) || size.n > x->rank || (given && axes.n != size.n))
        return false;
    memcpy(dim, x->dim, sizeof dim);
    for (int64_t i = 0; i < size.n; i++) {
        int64_t axis = given ? axes.item[i] : i;
        if (!onnx_axis(&axis, x->rank))
            return false;
        dim[axis] = size.item[i];
    }
    return onnx_set_out(n, x->type, x->rank, dim);
}

/* (columns N x C*block x blocks, image, block): N x C x image */
SHAPE(col2im)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    onnx_list image, block;
    int64_t dim[ONNX_MAX_RANK], area = 1;
    if (x->rank != 3 || !onnx_list_of(n, NULL, 1, &image) || !onnx_list_of(n, NULL, 2, &block) ||
        image.n + 2 > ONNX_MAX_RANK)
        return false;
    for (int64_t i = 0; i < block.n; i++)
        area = onnx_mul(area, UTIL_MAX(block.item[i], (int64_t)1));
    dim[0] = x->dim[0];
    dim[1] = x->dim[1] / area;
    memcpy(dim + 2, image.item, (size_t)image.n * sizeof *dim);
    return onnx_set_out(n, x->type, (int32_t)image.n + 2, dim);
}

/* Losses: one number, or one for each label; the second result is the logarithm of the probabilities. */
SHAPE(loss)
{
    NEED(0);
    NEED(1);
    if (onnx_out(n, 1) && !onnx_value_like(onnx_out(n, 1), n->in[0]->type, n->in[0]))
        return false;
    if (onnx_attr_is(n->proto, "reduction", "none", false))
        return onnx_value_like(onnx_out(n, 0), n->in[0]->type, n->in[1]);
    return onnx_set_out(n, n->in[0]->type, 0, NULL);
}

SHAPE(multinomial)
{
    NEED(0);
    int64_t type = onnx_attr_int(n->proto, "dtype", ONNX_INT32);
    int64_t dim[2] = {n->in[0]->rank ? n->in[0]->dim[0] : 1, onnx_attr_int(n->proto, "sample_size", 1)};
    return type > 0 && type < 64 && onnx_set_out(n, (int32_t)type, 2, dim);
}
