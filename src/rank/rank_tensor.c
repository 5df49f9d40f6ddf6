/* Shapes, values, random numbers and comparison of tensors. */
#include "rank/rank_tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/hash.h"
#include "util/util.h"

#define MOST_BYTES (1ll << 50)

static const char *const type_names[] = {"",       "float32", "uint8",     "int8",       "uint16",  "int16",
                                         "int32",  "int64",   "string",    "bool",       "float16", "float64",
                                         "uint32", "uint64",  "complex64", "complex128", "bfloat16"};
enum { N_TYPES = sizeof type_names / sizeof *type_names };

const char *rank_type_name(int64_t type)
{
    return type > 0 && type < N_TYPES ? type_names[type] : "other";
}

int rank_type_of_name(int64_t *out, const char *name)
{
    for (int i = 1; i < N_TYPES; i++)
        if (!strcmp(type_names[i], name)) {
            *out = i;
            return 0;
        }
    return moirai_error(MOIRAI_EINPUT, "type \"%s\" is not known", name);
}

void rank_shape_text(char *out, size_t size, const rank_shape *s)
{
    int used = snprintf(out, size, "%s ", rank_type_name(s->type));
    for (int64_t i = 0; i < s->rank && used >= 0 && (size_t)used < size; i++)
        used += snprintf(out + used, size - (size_t)used, "%s%lld", i ? "x" : "", (long long)s->dim[i]);
    if (!s->rank && used >= 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, "scalar");
}

int rank_shape_bytes(size_t *out, const rank_shape *s)
{
    int64_t n = (int64_t)rank_ort_element_bytes((ONNXTensorElementDataType)s->type);
    if (!n)
        return moirai_error(MOIRAI_EINPUT, "tensors of type %s can't be moved between devices",
                            rank_type_name(s->type));
    if (s->rank < 0 || s->rank > RANK_MAX_DIMS)
        return moirai_error(MOIRAI_EINPUT, "a tensor of %lld dimensions", (long long)s->rank);
    for (int64_t i = 0; i < s->rank; i++)
        if (s->dim[i] < 0 || !util_mul64(&n, n, s->dim[i]) || n > MOST_BYTES)
            return moirai_error(MOIRAI_EINPUT, "dimension %lld of a tensor is %lld", (long long)i,
                                (long long)s->dim[i]);
    *out = (size_t)n;
    return 0;
}

int rank_value_new(OrtValue **out, void **data, const rank_ort *ort, const rank_shape *s)
{
    size_t bytes;
    *out = NULL;
    int rc = rank_shape_bytes(&bytes, s);
    rc = rc ? rc
            : rank_ort_check(ort,
                             ort->api->CreateTensorAsOrtValue(ort->allocator, s->dim, (size_t)s->rank,
                                                              (ONNXTensorElementDataType)s->type, out),
                             "tensor");
    rc = rc ? rc : rank_ort_check(ort, ort->api->GetTensorMutableData(*out, data), "tensor");
    if (rc && *out) {
        ort->api->ReleaseValue(*out);
        *out = NULL;
    }
    return rc;
}

int rank_value_over(OrtValue **out, const rank_ort *ort, void *memory, size_t bytes, const rank_shape *s)
{
    *out = NULL;
    return rank_ort_check(ort,
                          ort->api->CreateTensorWithDataAsOrtValue(ort->cpu, memory, bytes, s->dim, (size_t)s->rank,
                                                                   (ONNXTensorElementDataType)s->type, out),
                          "tensor in shared memory");
}

static int look(rank_shape *s, void **data, const rank_ort *ort, OrtValue *value)
{
    const OrtApi *api = ort->api;
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t rank = 0;
    int is_tensor = 0;
    int rc = rank_ort_check(ort, api->IsTensor(value, &is_tensor), "value");
    if (!rc && !is_tensor)
        rc = moirai_error(MOIRAI_EINPUT, "not a tensor: it can't be moved between devices");
    rc = rc ? rc : rank_ort_check(ort, api->GetTensorTypeAndShape(value, &info), "tensor");
    rc = rc ? rc : rank_ort_check(ort, api->GetTensorElementType(info, &type), "tensor");
    rc = rc ? rc : rank_ort_check(ort, api->GetDimensionsCount(info, &rank), "tensor");
    if (!rc && rank > RANK_MAX_DIMS)
        rc = moirai_error(MOIRAI_EINPUT, "a tensor of %zu dimensions", rank);
    rc = rc ? rc : rank_ort_check(ort, api->GetDimensions(info, s->dim, rank), "tensor");
    s->type = type;
    s->rank = (int64_t)rank;
    if (info)
        api->ReleaseTensorTypeAndShapeInfo(info);
    return rc ? rc : rank_ort_check(ort, api->GetTensorMutableData(value, data), "tensor");
}

int rank_value_look(rank_shape *s, void **data, size_t *bytes, const rank_ort *ort, OrtValue *value, const char *name)
{
    memset(s, 0, sizeof *s);
    int rc = look(s, data, ort, value);
    rc = rc ? rc : rank_shape_bytes(bytes, s);
    return rc ? moirai_error_prefix(rc, "tensor '%s'", name) : 0;
}

/* ---- numbers ---- */

/* Between -1 and 1 in eighths: exact in every type. */
static uint16_t small_half(int eighths)
{
    uint16_t sign = eighths < 0 ? 0x8000 : 0, e = 15;
    int m = eighths < 0 ? -eighths : eighths;
    if (!m)
        return sign;
    while (m < 8) {
        m *= 2;
        e--;
    }
    return (uint16_t)(sign | (unsigned)e << 10 | (unsigned)(m - 8) << 7);
}

static void put(void *data, size_t i, int64_t type, int eighths, int bit)
{
    float f = (float)eighths / 8;
    double d = f;
    uint16_t half = small_half(eighths);
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    size_t size = rank_ort_element_bytes((ONNXTensorElementDataType)type);
    unsigned char *at = (unsigned char *)data + i * size;
    switch (type) {
    case 1: memcpy(at, &f, 4); break;
    case 10: memcpy(at, &half, 2); break;
    case 11: memcpy(at, &d, 8); break;
    case 16:
        half = (uint16_t)(bits >> 16);
        memcpy(at, &half, 2);
        break;
    default:
        memset(at, 0, size);
        at[0] = (unsigned char)bit;
        break; /* whole numbers, little endian */
    }
}

void rank_random(void *data, size_t bytes, const rank_shape *s, uint64_t seed, const char *name)
{
    util_rng rng;
    size_t size = rank_ort_element_bytes((ONNXTensorElementDataType)s->type);
    util_rng_seed(&rng, seed ^ util_hash(name, strlen(name)));
    for (size_t i = 0; size && i < bytes / size; i++) {
        uint64_t r = util_rng_next(&rng);
        put(data, i, s->type, (int)(r % 17) - 8, (int)(r >> 32 & 1));
    }
}

/* ---- comparison ---- */

static double of_half(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double x = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -x : x;
}

static double number(const void *data, int64_t i, int64_t type)
{
    const unsigned char *at =
        (const unsigned char *)data + (size_t)i * rank_ort_element_bytes((ONNXTensorElementDataType)type);
    float f;
    double d;
    uint16_t h;
    uint32_t bits;
    switch (type) {
    case 1: memcpy(&f, at, 4); return f;
    case 10: memcpy(&h, at, 2); return of_half(h);
    case 11: memcpy(&d, at, 8); return d;
    case 16:
        memcpy(&h, at, 2);
        bits = (uint32_t)h << 16;
        memcpy(&f, &bits, 4);
        return f;
    case 3: return (signed char)*at;
    case 5: {
        int16_t v;
        memcpy(&v, at, 2);
        return v;
    }
    case 4: memcpy(&h, at, 2); return h;
    case 6: {
        int32_t v;
        memcpy(&v, at, 4);
        return v;
    }
    case 7: {
        int64_t v;
        memcpy(&v, at, 8);
        return (double)v;
    }
    case 12: memcpy(&bits, at, 4); return bits;
    case 13: {
        uint64_t v;
        memcpy(&v, at, 8);
        return (double)v;
    }
    default: return *at;
    }
}

void rank_compare(rank_difference *d, const rank_shape *s, const void *got, const void *expected, double atol,
                  double rtol)
{
    size_t bytes = 0, size = rank_ort_element_bytes((ONNXTensorElementDataType)s->type);
    bool real = s->type == 1 || s->type == 10 || s->type == 11 || s->type == 16;
    *d = (rank_difference){0};
    if (rank_shape_bytes(&bytes, s))
        return;
    d->n = (int64_t)(bytes / size);
    for (int64_t i = 0; i < d->n; i++) {
        size_t at = (size_t)i * size;
        if (!memcmp((const char *)got + at, (const char *)expected + at, size))
            continue;
        double a = number(got, i, s->type), b = number(expected, i, s->type);
        if ((isnan(a) && isnan(b)) || a == b)
            continue;
        double gap = isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
        d->n_bad += !real || !(gap <= atol + rtol * fabs(b));
        if (gap > d->largest) {
            d->largest = gap;
            d->worst = i;
            d->got = a;
            d->expected = b;
        }
    }
}
