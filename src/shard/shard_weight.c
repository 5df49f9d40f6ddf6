/* Slices of weights.
 *
 * Wherever the numbers of a tensor are (in the mapped model, in a file beside it, in one of protobuf's typed lists), a
 * slice copies the bytes of its units and no others. Slices of one tensor that are the same are one: weights that layers
 * share stay shared. */
#include "shard/shard_build.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "onnx/onnx_message.h"
#include "onnx/onnx_tensors.h"

static void put_number(uint8_t *to, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(number >> (8 * i));
}

/* Varints of a packed list. */
static int unpack(uint8_t *to, const onnx_data *d, int64_t elements, size_t size)
{
    size_t at = 0;
    for (int64_t i = 0; i < elements; i++) {
        uint64_t value = 0;
        int shift = 0;
        do {
            if (at >= d->length || shift > 63)
                return moirai_error(MOIRAI_EINPUT, "its numbers end early");
            value |= (uint64_t)(d->bytes[at] & 0x7f) << shift;
            shift += 7;
        } while (d->bytes[at++] & 0x80);
        put_number(to + (size_t)i * size, value, size);
    }
    return 0;
}

static int from_lists(uint8_t *to, const Onnx__TensorProto *t, int64_t elements, size_t size)
{
    for (size_t i = 0; i < (size_t)elements; i++) {
        uint64_t word = 0;
        if (i < t->n_float_data)
            memcpy(&word, &t->float_data[i], sizeof t->float_data[i]);
        else if (i < t->n_double_data)
            memcpy(&word, &t->double_data[i], sizeof t->double_data[i]);
        else if (i < t->n_int32_data)
            word = (uint64_t)(int64_t)t->int32_data[i];
        else if (i < t->n_int64_data)
            word = (uint64_t)t->int64_data[i];
        else if (i < t->n_uint64_data)
            word = t->uint64_data[i];
        else
            return moirai_error(MOIRAI_EINPUT, "its numbers end early");
        put_number(to + i * size, word, size);
    }
    return 0;
}

static int map_external(shard_numbers *x, const shard_builder *b, const onnx_data *d, int64_t bytes)
{
    int fd, rc = onnx_external_open(&fd, b->s->label, d, bytes);
    if (rc)
        return rc;
    int64_t page = sysconf(_SC_PAGESIZE), skip = d->external_offset % page;
    x->map_length = (size_t)(bytes + skip);
    void *map = mmap(NULL, x->map_length, PROT_READ, MAP_PRIVATE, fd, (off_t)(d->external_offset - skip));
    close(fd);
    if (map == MAP_FAILED)
        return moirai_error(MOIRAI_EFAIL, "external data in '%.200s': can't map", d->location);
    x->map = map;
    x->bytes = (const uint8_t *)map + skip;
    return 0;
}

int shard_numbers_of(shard_numbers *x, const shard_builder *b, const Onnx__TensorProto *t, int64_t bytes)
{
    onnx_data d;
    *x = (shard_numbers){0};
    int rc = onnx_tensor_data(&d, b->s->net->model, t);
    if (rc)
        return rc;
    size_t size = (size_t)onnx_type_bits(t->data_type) / 8;
    if (d.kind == ONNX_DATA_EXTERNAL)
        return map_external(x, b, &d, bytes);
    if (d.kind == ONNX_DATA_RAW || (d.kind == ONNX_DATA_PACKED && (d.field == 4 || d.field == 10))) {
        x->bytes = d.bytes;
        return (int64_t)d.length >= bytes ? 0 : moirai_error(MOIRAI_EINPUT, "its numbers end early");
    }
    if (!(x->owned = util_alloc((size_t)bytes, 1)))
        return MOIRAI_EFAIL;
    x->bytes = x->owned;
    int64_t elements = bytes / (int64_t)size;
    return d.kind == ONNX_DATA_PACKED ? unpack(x->owned, &d, elements, size) : from_lists(x->owned, t, elements, size);
}

void shard_numbers_free(shard_numbers *x)
{
    if (x->map)
        munmap(x->map, x->map_length);
    free(x->owned);
    *x = (shard_numbers){0};
}

/* ---- slices ---- */

typedef struct slice {
    const onnx_value *v;
    shard_layout at;
    int64_t units, first, size;
    int64_t rows, row, element; /* rows before the axis; bytes of a row, of one element of the axis */
} slice;

/* Calls for every run of bytes, in order. */
static int each_run(const slice *x, const uint8_t *from, int (*put)(void *, const void *, size_t), void *data)
{
    int64_t unit = x->at.inner * x->element;
    int rc = 0;
    for (int64_t r = 0; r < x->rows && !rc; r++)
        for (int64_t o = 0; o < x->at.outer && !rc; o++)
            rc = put(data, from + r * x->row + (o * x->units + x->first) * unit, (size_t)(x->size * unit));
    return rc;
}

static int to_memory(void *data, const void *bytes, size_t length)
{
    uint8_t **at = data;
    memcpy(*at, bytes, length);
    *at += length;
    return 0;
}

static int to_file(void *data, const void *bytes, size_t length)
{
    return shard_data_put(data, bytes, length);
}

static int fill(shard_builder *b, Onnx__TensorProto *t, const slice *x, int64_t bytes)
{
    shard_numbers from;
    if (b->dry)
        return shard_data_name(b, t, 0, bytes);
    int rc = shard_numbers_of(&from, b, x->v->tensor, x->v->bytes);
    if (!rc && b->data.stream) {
        rc = shard_data_begin(&b->data);
        int64_t offset = b->data.offset;
        rc = rc ? rc : each_run(x, from.bytes, to_file, &b->data);
        rc = rc ? rc : shard_data_name(b, t, offset, bytes);
    } else if (!rc) {
        uint8_t *room = onnx_take(&b->arena, (size_t)bytes, 1), *at = room;
        rc = room ? each_run(x, from.bytes, to_memory, &at) : MOIRAI_EFAIL;
        t->has_raw_data = 1;
        t->raw_data = (ProtobufCBinaryData){(size_t)bytes, room};
    }
    shard_numbers_free(&from);
    return rc ? moirai_error_prefix(rc, "%s: tensor '%.200s'", b->s->label, x->v->name) : 0;
}

static int make(shard_builder *b, const slice *x, const char *name)
{
    const onnx_value *v = x->v;
    Onnx__TensorProto *t = onnx_take(&b->arena, 1, sizeof *t);
    int64_t *dims = onnx_take(&b->arena, (size_t)v->rank, sizeof *dims);
    if (!t || !dims)
        return MOIRAI_EFAIL;
    onnx__tensor_proto__init(t);
    memcpy(dims, v->dim, (size_t)v->rank * sizeof *dims);
    dims[x->at.axis] = shard_length(x->at, x->size);
    t->name = (char *)name;
    t->n_dims = (size_t)v->rank;
    t->dims = dims;
    t->has_data_type = 1;
    t->data_type = v->tensor->data_type;
    int64_t bytes = x->rows * dims[x->at.axis] * x->element;
    b->report->cut_bytes = onnx_add(b->report->cut_bytes, bytes);
    int rc = fill(b, t, x, bytes);
    return rc ? rc : shard_list_add(&b->initializers, t);
}

const char *shard_slice_weight(shard_builder *b, const onnx_value *v, shard_layout at, int64_t units, int64_t first,
                               int64_t size)
{
    slice x = {.v = v, .at = at, .units = units, .first = first, .size = size, .rows = 1};
    x.element = onnx_type_bits(v->type) / 8;
    for (int32_t i = 0; i < v->rank; i++)
        if (i < at.axis)
            x.rows *= v->dim[i];
        else if (i > at.axis)
            x.element *= v->dim[i];
    x.row = x.element * v->dim[at.axis];
    char *key = onnx_text(&b->arena, "%s|%d|%lld|%lld|%lld|%lld", v->name, at.axis, (long long)at.outer,
                          (long long)at.inner, (long long)first, (long long)size);
    if (!key)
        return NULL;
    int32_t known = util_names_put(b->slices, key, (int32_t)b->slice.n);
    if (known < 0 || (size_t)known < b->slice.n)
        return known < 0 ? NULL : b->slice.item[known];
    char *wanted = onnx_text(&b->arena, "%s.%lld-%lldof%lld", v->name, (long long)first + 1, (long long)(first + size),
                             (long long)units);
    const char *name = wanted ? shard_unique(b, wanted) : NULL;
    return name && !shard_list_add(&b->slice, (char *)name) && !make(b, &x, name) ? name : NULL;
}
