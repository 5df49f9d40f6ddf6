/* Values: shapes with every size checked, and the numbers of small constants. */
#include "onnx/onnx_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool onnx_value_shape(onnx_value *v, int32_t type, int32_t rank, const int64_t *dim)
{
    if (rank < 0 || rank > ONNX_MAX_RANK)
        return false;
    type = type ? type : ONNX_FLOAT;
    int64_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        if (dim[i] < 0 || !util_mul64(&n, n, dim[i]) || n > ONNX_MAX_BYTES)
            return false;
    int bits = onnx_type_bits(type);
    int64_t bytes = (n * (bits ? bits : 64) + 7) / 8; /* strings: the size of a pointer */
    if (bytes > ONNX_MAX_BYTES)
        return false;
    if (!v)
        return true;
    v->type = type;
    v->rank = rank;
    for (int32_t i = 0; i < rank; i++)
        v->dim[i] = dim[i];
    v->elements = n;
    v->bytes = v->stored_bytes = bytes;
    v->shaped = true;
    return true;
}

bool onnx_value_like(onnx_value *v, int32_t type, const onnx_value *other)
{
    int64_t dim[ONNX_MAX_RANK];
    if (!other)
        return false;
    memcpy(dim, other->dim, sizeof dim);
    return onnx_value_shape(v, type, other->rank, dim);
}

static void *numbers(onnx_import *im, onnx_value *v, size_t size)
{
    size_t n = (size_t)v->elements;
    if (v->elements > ONNX_MAX_NUMBERS || n * size > im->numbers_left)
        return NULL;
    im->numbers_left -= n * size;
    v->n_numbers = (int32_t)n;
    return onnx_take(&im->arena, n, size);
}

int64_t *onnx_value_ints(onnx_import *im, onnx_value *v)
{
    v->reals = NULL;
    return v->ints = numbers(im, v, sizeof *v->ints);
}

double *onnx_value_reals(onnx_import *im, onnx_value *v)
{
    v->ints = NULL;
    return v->reals = numbers(im, v, sizeof *v->reals);
}

int64_t onnx_value_int(const onnx_value *v, int64_t i)
{
    if (v->ints)
        return v->ints[i];
    double r = v->reals[i];
    if (!(r > -9e18))
        return r != r ? 0 : INT64_MIN;
    return r < 9e18 ? (int64_t)r : INT64_MAX;
}

/* ---- numbers of a tensor ---- */

static double half_to_real(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double value = exponent ? 1024 + fraction : fraction;
    for (int e = exponent ? exponent : 1; e < 25; e++)
        value /= 2;
    for (int e = 25; e < exponent; e++)
        value *= 2;
    return h & 0x8000 ? -value : value;
}

static void raw_numbers(onnx_value *v, const uint8_t *at)
{
    int bytes = onnx_type_bits(v->type) / 8;
    for (int32_t i = 0; i < v->n_numbers; i++, at += bytes) {
        uint64_t word = 0;
        for (int b = 0; b < bytes; b++)
            word |= (uint64_t)at[b] << (8 * b);
        uint32_t low = (uint32_t)word;
        float single;
        if (v->type == ONNX_FLOAT) {
            memcpy(&single, &low, sizeof single);
            v->reals[i] = single;
        } else if (v->type == ONNX_FLOAT16) {
            v->reals[i] = half_to_real((uint16_t)word);
        } else if (v->type == ONNX_BFLOAT16) {
            low = (uint32_t)word << 16;
            memcpy(&single, &low, sizeof single);
            v->reals[i] = single;
        } else if (v->type == ONNX_DOUBLE) {
            memcpy(&v->reals[i], &word, sizeof word);
        } else if (v->type == 3) {
            v->ints[i] = (int8_t)word;
        } else if (v->type == 5) {
            v->ints[i] = (int16_t)word;
        } else if (v->type == 6) {
            v->ints[i] = (int32_t)low;
        } else {
            v->ints[i] = (int64_t)word;
        }
    }
}

static void typed_numbers(onnx_value *v, const Onnx__TensorProto *t)
{
    for (int32_t i = 0; i < v->n_numbers; i++) {
        size_t k = (size_t)i;
        if (v->reals)
            v->reals[i] = k < t->n_float_data    ? (double)t->float_data[k]
                          : k < t->n_double_data ? t->double_data[k]
                          : k < t->n_int32_data  ? half_to_real((uint16_t)t->int32_data[k])
                                                 : 0;
        else
            v->ints[i] = k < t->n_int64_data    ? t->int64_data[k]
                         : k < t->n_int32_data  ? t->int32_data[k]
                         : k < t->n_uint64_data ? (int64_t)t->uint64_data[k]
                                                : 0;
    }
}

/* Of types that shape arithmetic uses; anything else stays a constant without numbers. */
static int keep_numbers(onnx_import *im, onnx_value *v, const Onnx__TensorProto *t)
{
    onnx_data d;
    int rc = onnx_tensor_data(&d, im->model, t);
    bool typed_bfloat = v->type == ONNX_BFLOAT16 && d.kind == ONNX_DATA_TYPED;
    bool real = onnx_is_real(v->type) && !typed_bfloat;
    bool integer = (v->type >= 2 && v->type <= 7) || v->type == ONNX_BOOL || v->type == 12 || v->type == 13;
    if (rc || v->elements > ONNX_MAX_NUMBERS || (!real && !integer) ||
        (d.kind != ONNX_DATA_RAW && d.kind != ONNX_DATA_TYPED && v->elements))
        return rc;
    if (real ? !onnx_value_reals(im, v) : !onnx_value_ints(im, v))
        return 0;
    if (d.kind == ONNX_DATA_RAW)
        raw_numbers(v, d.bytes);
    else
        typed_numbers(v, t);
    return 0;
}

int onnx_value_from_tensor(onnx_import *im, onnx_value *v, const Onnx__TensorProto *t)
{
    int64_t elements, bytes, dim[ONNX_MAX_RANK];
    int rc = onnx_tensor_size(im->model, t, &elements, &bytes);
    if (rc)
        return rc;
    bool fits = t->n_dims <= ONNX_MAX_RANK;
    if (fits && t->n_dims)
        memcpy(dim, t->dims, t->n_dims * sizeof *dim);
    /* A rank that no rule handles keeps its size: sizes are what we are after. */
    if (!onnx_value_shape(v, t->data_type, fits ? (int32_t)t->n_dims : 1, fits ? dim : &elements))
        return moirai_error(MOIRAI_EINPUT, "its size makes no sense");
    v->constant = true;
    v->tensor = t;
    return keep_numbers(im, v, t);
}

/* ---- declared types ---- */

/* All open dimensions for the user: names for --dim, each once; inputs with unnamed ones for --shape. */
static void note_open(moirai_onnx_report *r, const char *name, const char *input)
{
    bool named = name && *name;
    char *list = named ? r->open_dims : r->unnamed_dims;
    size_t size = named ? sizeof r->open_dims : sizeof r->unnamed_dims, used = strlen(list), length;
    const char *word = named ? name : input;
    if (!r->n_default_dims++)
        snprintf(r->first_default_dim, sizeof r->first_default_dim, "%s", named ? name : "unnamed");
    length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ','))
            return;
    if (used + length + 3 < size)
        snprintf(list + used, size - used, "%s%s", used ? ", " : "", word);
}

static bool resolve_dim(onnx_import *im, const Onnx__TensorShapeProto__Dimension *d, const onnx_value *v, size_t axis,
                        bool defaults, int64_t *out)
{
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0) {
        *out = d->dim_value;
        return true;
    }
    const char *name = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM ? d->dim_param : NULL;
    name = name && onnx_is_dim_name(name) ? name : "";
    *out = 1;
    if (!defaults)
        return *name && onnx_open_named(im, name, out);
    char *key = onnx_open_key(im, "", v->name, axis);
    if ((*name && onnx_options_dim(im, name, out)) || (key && onnx_options_dim(im, key, out)))
        return true;
    onnx_open_named(im, *name || !key ? name : key, out);
    note_open(im->report, name, v->name);
    return true;
}

static bool is_sequence(const Onnx__TypeProto *t)
{
    while (t && t->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE)
        t = t->optional_type->elem_type;
    return t && t->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
}

/* The tensors that a sequence or an optional is made of. */
static const Onnx__TypeProto *inner_type(const Onnx__TypeProto *t)
{
    while (t) {
        if (t->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE)
            t = t->sequence_type->elem_type;
        else if (t->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE)
            t = t->optional_type->elem_type;
        else
            break;
    }
    return t;
}

int onnx_value_from_type(onnx_import *im, onnx_value *v, const Onnx__TypeProto *t, bool defaults, bool *set)
{
    const Onnx__TypeProto *whole = t;
    *set = false;
    t = inner_type(t);
    if (!t || t->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return 0;
    v->type = t->tensor_type->elem_type;
    const Onnx__TensorShapeProto *s = t->tensor_type->shape;
    if (!s)
        return 0;
    /* How many items a sequence has is known to nobody before it is there. */
    bool sequence = is_sequence(whole);
    if (sequence && !defaults)
        return 0;
    if (s->n_dim + sequence > ONNX_MAX_RANK)
        return defaults ? moirai_error(MOIRAI_EINPUT, "has %zu dimensions, at most %d are supported", s->n_dim,
                                       ONNX_MAX_RANK)
                        : 0;
    int64_t dim[ONNX_MAX_RANK] = {1};
    for (size_t i = 0; i < s->n_dim; i++)
        if (!resolve_dim(im, s->dim[i], v, i, defaults, &dim[i + sequence]))
            return 0;
    *set = onnx_value_shape(v, v->type, (int32_t)s->n_dim + sequence, dim);
    v->known = sequence ? MOIRAI_ONNX_GUESSED : v->known;
    if (!*set && defaults)
        return moirai_error(MOIRAI_EINPUT, "its dimensions make more than 2^50 bytes");
    return 0;
}

const Onnx__TensorShapeProto *onnx_value_declared(const onnx_value *v)
{
    const Onnx__TypeProto *t = inner_type(v->declared);
    return t && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? t->tensor_type->shape : NULL;
}

static bool is_fixed(const Onnx__TensorShapeProto__Dimension *d)
{
    return d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0;
}

int onnx_value_agrees(const onnx_value *v, int32_t rank, const int64_t *dim, const char *option)
{
    const Onnx__TensorShapeProto *s = onnx_value_declared(v);
    if (!s)
        return 0;
    if (s->n_dim != (size_t)rank)
        return moirai_error(MOIRAI_EUSAGE, "shape \"%s\": %d dimensions, the model declares %zu", option, rank,
                            s->n_dim);
    for (int32_t i = 0; i < rank; i++)
        if (is_fixed(s->dim[i]) && s->dim[i]->dim_value != dim[i])
            return moirai_error(MOIRAI_EUSAGE, "shape \"%s\": dimension %d is %lld, the model fixes it at %lld", option,
                                i + 1, (long long)dim[i], (long long)s->dim[i]->dim_value);
    return 0;
}

void onnx_value_show(const onnx_value *v, char *text, size_t size)
{
    const Onnx__TensorShapeProto *s = onnx_value_declared(v);
    size_t used = 0;
    snprintf(text, size, "%s", v->shaped && v->rank == 0 ? "scalar" : v->shaped ? "" : "?");
    for (int32_t i = 0; v->shaped && i < v->rank && used < size; i++) {
        const Onnx__TensorShapeProto__Dimension *d = s && s->n_dim == (size_t)v->rank ? s->dim[i] : NULL;
        bool named = d && d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && d->dim_param[0];
        int n = snprintf(text + used, size - used, "%s%.40s%s%lld", i ? "x" : "", named ? d->dim_param : "",
                         named ? "=" : "", (long long)v->dim[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

const char *onnx_type_name(int32_t type)
{
    static const char *const names[] = {"?",      "float",  "uint8",     "int8",       "uint16",  "int16",
                                        "int32",  "int64",  "text",      "bool",       "half",    "double",
                                        "uint32", "uint64", "complex64", "complex128", "bfloat16"};
    return type >= 0 && (size_t)type < sizeof names / sizeof *names ? names[type] : "small";
}
