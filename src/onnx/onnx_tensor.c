/* Where the numbers of a tensor are, and whether there are as many as its dimensions say. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/onnx_model.h"
#include "util/util.h"

#define MAX_TENSOR_BYTES (1ll << 50)

int onnx_type_bits(int32_t elem_type)
{
    /* UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64
     * COMPLEX128 BFLOAT16 FLOAT8 x4 UINT4 INT4 FLOAT4 FLOAT8E8M0 UINT2 INT2 */
    static const int bits[] = {0,  32,  8,  8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64,
                               64, 128, 16, 8, 8,  8,  8,  4,  4, 4, 8,  2,  2};
    return elem_type >= 0 && elem_type < (int32_t)(sizeof bits / sizeof *bits) ? bits[elem_type] : 0;
}

bool onnx_type_is_float(int32_t t)
{
    return t == 1 || t == 10 || t == 11 || (t >= 14 && t <= 20) || t == 23;
}

static int read_size(int64_t *out, const char *location, const char *key, const char *text)
{
    char *end = NULL;
    errno = 0;
    long long value = text && *text ? strtoll(text, &end, 10) : 0;
    if (!text || !*text || errno || *end || value < 0)
        return moirai_error(MOIRAI_EINPUT, "external data in '%.200s': %s \"%.32s\" is not a size", location, key,
                            text ? text : "");
    *out = value;
    return 0;
}

static const Onnx__StringStringEntryProto *entry(const Onnx__TensorProto *t, const char *key)
{
    for (size_t i = t->n_external_data; i > 0; i--) /* as ONNX Runtime reads them, the last one counts */
        if (t->external_data[i - 1]->key && !strcmp(t->external_data[i - 1]->key, key))
            return t->external_data[i - 1];
    return NULL;
}

static int external(onnx_data *out, const Onnx__TensorProto *t)
{
    const Onnx__StringStringEntryProto *location = entry(t, "location"), *offset = entry(t, "offset"),
                                       *length = entry(t, "length");
    out->kind = ONNX_DATA_EXTERNAL;
    out->external_length = -1;
    if (!location || !location->value)
        return moirai_error(MOIRAI_EINPUT, "external data: no location");
    out->location = location->value;
    int rc = offset ? read_size(&out->external_offset, out->location, "offset", offset->value) : 0;
    rc = rc || !length ? rc : read_size(&out->external_length, out->location, "length", length->value);
    int64_t end;
    if (!rc && !util_add64(&end, out->external_offset, out->external_length))
        rc = moirai_error(MOIRAI_EINPUT, "external data in '%.200s': offset %lld and length %lld overflow",
                          out->location, (long long)out->external_offset, (long long)out->external_length);
    return rc;
}

static const onnx_cut *find_cut(const onnx_model *m, const Onnx__TensorProto *t)
{
    for (size_t i = 0; i < t->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *f = &t->base.unknown_fields[i];
        if (f->tag != ONNX_CUT_FIELD || f->len != 8)
            continue;
        uint64_t index = 0;
        for (int b = 0; b < 8; b++)
            index |= (uint64_t)f->data[b] << (8 * b);
        return index < m->slim.n_cuts ? &m->slim.cut[index] : NULL;
    }
    return NULL;
}

int onnx_tensor_data(onnx_data *out, const onnx_model *model, const Onnx__TensorProto *t)
{
    *out = (onnx_data){0};
    if (t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return external(out, t);
    const onnx_cut *cut = find_cut(model, t);
    if (cut) {
        *out = (onnx_data){.kind = cut->field == 9 ? ONNX_DATA_RAW : ONNX_DATA_PACKED,
                           .bytes = model->file + cut->offset,
                           .length = cut->length,
                           .field = cut->field};
    } else if (t->has_raw_data && t->raw_data.len) {
        *out = (onnx_data){.kind = ONNX_DATA_RAW, .bytes = t->raw_data.data, .length = t->raw_data.len, .field = 9};
    } else if (t->n_float_data || t->n_int32_data || t->n_int64_data || t->n_double_data || t->n_uint64_data ||
               t->n_string_data) {
        out->kind = ONNX_DATA_TYPED;
    }
    return 0;
}

static int shape_size(const Onnx__TensorProto *t, int64_t *elements, int64_t *bytes)
{
    int64_t n = 1;
    for (size_t i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0)
            return moirai_error(MOIRAI_EINPUT, "dimension %zu is %lld", i, (long long)t->dims[i]);
        if (!util_mul64(&n, n, t->dims[i]) || n > MAX_TENSOR_BYTES)
            return moirai_error(MOIRAI_EINPUT, "its dimensions make more than 2^50 elements");
    }
    int element_bits = onnx_type_bits(t->data_type);
    int64_t bits = n * (element_bits ? element_bits : 64);
    *elements = n;
    *bytes = bits / 8 + (bits % 8 != 0);
    if (*bytes > MAX_TENSOR_BYTES)
        return moirai_error(MOIRAI_EINPUT, "its dimensions make more than 2^50 bytes");
    return 0;
}

/* The least and the most bytes that `elements` can take in a packed field of the wire format. */
static bool packed_fits(const onnx_data *d, int64_t elements, int element_bits)
{
    if (d->field == 4)
        return (int64_t)d->length / 4 >= elements;
    if (d->field == 10)
        return (int64_t)d->length / 8 >= elements;
    /* Varints of one to ten bytes; elements under a byte may be packed several to one. */
    return (int64_t)d->length >= (element_bits && element_bits < 8 ? elements / 8 : elements);
}

int onnx_tensor_size(const onnx_model *model, const Onnx__TensorProto *t, int64_t *elements, int64_t *bytes)
{
    onnx_data d;
    int rc = shape_size(t, elements, bytes);
    rc = rc ? rc : onnx_tensor_data(&d, model, t);
    if (rc)
        return rc;
    int64_t held = 0;
    int bits = onnx_type_bits(t->data_type);
    switch (d.kind) {
    case ONNX_DATA_EXTERNAL: held = d.external_length < 0 ? *bytes : d.external_length; break;
    case ONNX_DATA_RAW: held = (int64_t)d.length; break;
    case ONNX_DATA_PACKED: held = packed_fits(&d, *elements, bits) ? *bytes : (int64_t)d.length; break;
    case ONNX_DATA_TYPED:
        held = (int64_t)(t->n_float_data + t->n_int32_data + t->n_int64_data + t->n_double_data + t->n_uint64_data +
                         t->n_string_data);
        held = held >= (bits && bits < 8 ? *elements / 8 : *elements) ? *bytes : held;
        break;
    case ONNX_DATA_NONE: break;
    }
    if (held < *bytes)
        return moirai_error(MOIRAI_EINPUT, "its dimensions make %lld bytes, the file has %lld", (long long)*bytes,
                            (long long)held);
    return 0;
}
