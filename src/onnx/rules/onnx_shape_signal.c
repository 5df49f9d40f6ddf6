/* Shapes of operators on signals: transforms, windows, filter banks. */
#include "onnx/rules/onnx_shape.h"

#include <string.h>

/* A transform of `length` values along an axis has so many results, and the inverse takes as many. */
SHAPE(dft)
{
    NEED(0);
    const onnx_value *x = n->in[0];
    int64_t axis = onnx_attr_int(n->proto, "axis", n->import->opset >= 20 ? -2 : 1), dim[ONNX_MAX_RANK], length;
    bool one_sided = onnx_attr_int(n->proto, "onesided", 0), inverse = onnx_attr_int(n->proto, "inverse", 0);
    if (onnx_given(n, NULL, 2) && !onnx_number_of(n, 2, &axis))
        return false;
    if (x->rank < 2 || !onnx_axis(&axis, x->rank))
        return false;
    memcpy(dim, x->dim, sizeof dim);
    length = one_sided && inverse ? onnx_mul(2, dim[axis] - 1) : dim[axis];
    if (onnx_given(n, NULL, 1) && !onnx_number_of(n, 1, &length))
        return false;
    dim[axis] = one_sided && !inverse ? length / 2 + 1 : length;
    dim[x->rank - 1] = one_sided && inverse ? 1 : 2;
    return onnx_value_shape(onnx_out(n, 0), x->type, x->rank, dim);
}

/* (signal, step, window, length): batch x frames x frequencies x 2 */
SHAPE(stft)
{
    NEED(0);
    const onnx_value *x = n->in[0], *window = onnx_in(n, 2);
    int64_t step, length = window && window->rank == 1 ? window->dim[0] : -1;
    if (x->rank < 2 || !onnx_number_of(n, 1, &step) || step < 1)
        return false;
    if (onnx_given(n, NULL, 3) && !onnx_number_of(n, 3, &length))
        return false;
    if (length < 1 || length > x->dim[1])
        return false;
    int64_t frequencies = onnx_attr_int(n->proto, "onesided", 1) ? length / 2 + 1 : length;
    int64_t dim[4] = {x->dim[0], (x->dim[1] - length) / step + 1, frequencies, 2};
    return onnx_value_shape(onnx_out(n, 0), x->type, 4, dim);
}

/* HannWindow and its kin: as many numbers as their input says. */
SHAPE(window)
{
    int64_t length, type = onnx_attr_int(n->proto, "output_datatype", ONNX_FLOAT);
    return onnx_number_of(n, 0, &length) && type > 0 && type < 64 &&
           onnx_value_shape(onnx_out(n, 0), (int32_t)type, 1, &length);
}

/* (bands, transform's length, rate, least, most) */
SHAPE(mel_weights)
{
    int64_t bands, length, type = onnx_attr_int(n->proto, "output_datatype", ONNX_FLOAT);
    if (!onnx_number_of(n, 0, &bands) || !onnx_number_of(n, 1, &length) || type < 1 || type > 63 || length < 0)
        return false;
    int64_t dim[2] = {length / 2 + 1, bands};
    return onnx_value_shape(onnx_out(n, 0), (int32_t)type, 2, dim);
}
