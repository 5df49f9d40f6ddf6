/* Tensors in ONNX's TensorProto files. */
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_model.h"
#include "rank/rank_tensor.h"
#include "util/util.h"

/* Typed fields hold several types each: float_data also complex, int32_data everything up to 32 bits. */
static int pb_number(void *to, size_t i, const Onnx__TensorProto *t)
{
    size_t size = rank_ort_element_bytes((ONNXTensorElementDataType)t->data_type);
    unsigned char *at = (unsigned char *)to + i * size;
    if (t->data_type == 1 && i < t->n_float_data)
        memcpy(at, &t->float_data[i], size);
    else if (t->data_type == 11 && i < t->n_double_data)
        memcpy(at, &t->double_data[i], size);
    else if (t->data_type == 7 && i < t->n_int64_data)
        memcpy(at, &t->int64_data[i], size);
    else if ((t->data_type == 12 || t->data_type == 13) && i < t->n_uint64_data)
        memcpy(at, &t->uint64_data[i], size);
    else if (size <= 4 && t->data_type != 1 && i < t->n_int32_data)
        memcpy(at, &t->int32_data[i], size);
    else
        return -1;
    return 0;
}

static int pb_tensor(OrtValue **out, rank_shape *s, const rank_ort *ort, const Onnx__TensorProto *t)
{
    void *to;
    size_t bytes;
    *s = (rank_shape){.type = t->data_type, .rank = (int64_t)t->n_dims};
    for (size_t i = 0; i < t->n_dims && i < RANK_MAX_DIMS; i++)
        s->dim[i] = t->dims[i];
    int rc = rank_shape_bytes(&bytes, s);
    rc = rc ? rc : rank_value_new(out, &to, ort, s);
    if (rc)
        return rc;
    size_t size = rank_ort_element_bytes((ONNXTensorElementDataType)s->type);
    if (t->has_raw_data && t->raw_data.len == bytes) {
        memcpy(to, t->raw_data.data, bytes);
        return 0;
    }
    for (size_t i = 0; i < bytes / size; i++)
        if (pb_number(to, i, t))
            return moirai_error(MOIRAI_EINPUT, "it has fewer numbers than its shape");
    return 0;
}

int rank_pb_read(OrtValue **out, rank_shape *s, char **name, const rank_ort *ort, const char *path)
{
    char *data;
    size_t length;
    *out = NULL;
    int rc = util_file_read(&data, &length, path);
    if (rc)
        return rc;
    Onnx__TensorProto *t = onnx__tensor_proto__unpack(NULL, length, (const uint8_t *)data);
    free(data);
    rc = t ? pb_tensor(out, s, ort, t) : moirai_error(MOIRAI_EINPUT, "not a TensorProto");
    if (!rc && name && !(*name = util_strdup(t->name ? t->name : "")))
        rc = MOIRAI_EFAIL;
    if (t)
        onnx__tensor_proto__free_unpacked(t, NULL);
    if (rc && *out) {
        ort->api->ReleaseValue(*out);
        *out = NULL;
    }
    return rc ? moirai_error_prefix(rc, "%s", path) : 0;
}
