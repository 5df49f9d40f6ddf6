/* Inside `shard`: the cut model while it is put together. Private to shard_weight.c, shard_data.c, shard_shape.c,
 * shard_piece.c, shard_join.c, shard_rows_build.c and shard_model.c, which go forward in this order. */
#ifndef MOIRAI_SHARD_SHARD_BUILD_H
#define MOIRAI_SHARD_SHARD_BUILD_H

#include <stdio.h>

#include "shard/shard.h"

typedef struct shard_list {
    void **item;
    size_t n, capacity;
} shard_list;

static inline int shard_list_add(shard_list *l, void *item)
{
    int rc = util_grow(&l->item, &l->capacity, l->n + 1, sizeof *l->item);
    if (!rc)
        l->item[l->n++] = item;
    return rc;
}

/* "<model>.data": slices, and what was in files before. */
typedef struct shard_data {
    FILE *stream; /* NULL: not open */
    char temporary[4096], path[4096];
    const char *name; /* as tensors call it */
    int64_t offset;
} shard_data;

typedef struct shard_moved {
    Onnx__TensorProto *tensor;
    Onnx__StringStringEntryProto **external_data;
    size_t n_external_data;
} shard_moved;

typedef struct shard_builder {
    const moirai_shards *s;
    const shard_cuts *cuts;
    moirai_shard_sum sum;
    moirai_shard_report *report;
    char *told; /* what is cut, as the grammar has it; owned */
    bool dry;   /* for a graph: no weight is read */
    onnx_arena arena;
    util_names *names;              /* of values, nodes and slices that there are: */
    shard_list nodes, initializers; /* pieces' own: slices, shapes */
    size_t n_whole;                 /* initializers that are the model's own; the first in the cut one */
    util_names *slices;             /* key of a slice -> number in `slice` */
    shard_list slice;               /* their names */
    shard_data data;
    shard_list moved;
} shard_builder;

/* ---- shard_weight.c ---- */
/* The numbers of a tensor in memory, as raw_data has them. shard_numbers_free in every case. */
typedef struct shard_numbers {
    const uint8_t *bytes;
    uint8_t *owned;
    void *map;
    size_t map_length;
} shard_numbers;
int shard_numbers_of(shard_numbers *out, const shard_builder *b, const Onnx__TensorProto *t, int64_t bytes);
void shard_numbers_free(shard_numbers *x);
/* The name of an initializer with units [first, first + size) of `v`; equal slices are one. */
const char *shard_slice_weight(shard_builder *b, const onnx_value *v, shard_layout at, int64_t units, int64_t first,
                               int64_t size);

/* ---- shard_data.c ---- */
int shard_data_open(shard_data *d, onnx_arena *arena, const char *model_path);
int shard_data_begin(shard_data *d);
int shard_data_put(shard_data *d, const void *bytes, size_t length);
int shard_data_name(shard_builder *b, Onnx__TensorProto *t, int64_t offset, int64_t bytes);
int shard_data_take_external(shard_builder *b, Onnx__ModelProto *model);
void shard_data_give_back(shard_builder *b);
int shard_data_close(shard_data *d, int rc);

/* ---- shard_piece.c ---- */
/* A name that nobody has, made of this one; NULL: out of memory. */
const char *shard_unique(shard_builder *b, const char *name);
/* What piece `k` of a cut is called: "(2 of 3, 5 of 12 heads)". */
const char *shard_piece_label(shard_builder *b, const shard_cut *cut, int32_t k);
/* "<value>.2of3" */
const char *shard_piece_name(shard_builder *b, const onnx_value *v, const shard_cut *cut, int32_t k);
/* Piece `k` of it is a tensor that there is already. */
int shard_piece_is(shard_builder *b, const onnx_value *v, const shard_cut *cut, int32_t k, const char *name);
Onnx__NodeProto *shard_node(shard_builder *b, const char *type, const char *name, size_t n_in, size_t n_out);
const char *shard_ints(shard_builder *b, const char *name, const int64_t *number, size_t n); /* an initializer */
Onnx__AttributeProto *shard_attr_int(shard_builder *b, const char *name, int64_t value);
Onnx__AttributeProto *shard_attr_ints(shard_builder *b, const char *name, const int64_t *number, size_t n);
/* The node's attribute of that name becomes this one. */
int shard_set_attr(shard_builder *b, Onnx__NodeProto *node, Onnx__AttributeProto *attr);
void shard_drop_attr(Onnx__NodeProto *node, const char *name); /* of a list that is the node's own */
/* The node's own name, or what its operator is called. */
const char *shard_name_of(const shard_builder *b, int32_t node);
int shard_pieces(shard_builder *b, const shard_cut *cut, const shard_member *m);

/* ---- shard_shape.c ---- shapes and sizes that a piece of an operator has instead of the operator's. */
int shard_reshape(shard_builder *b, const shard_cut *cut, const shard_member *m, int32_t k, Onnx__NodeProto *node);

/* ---- shard_join.c ---- */
int shard_joins(shard_builder *b, const shard_cut *cut, const shard_member *m);
/* Is the key of what is to be made new? From now on it is not. The key lives in the arena; NULL is MOIRAI_EFAIL. */
int shard_first_time(bool *first, shard_builder *b, char *key);
int shard_slices(shard_builder *b, const shard_cut *cut, const shard_member *m, const onnx_value *v, shard_layout at);

/* A Slice of `from` along an axis, [begin, end), into `to`. */
int shard_slice_node(shard_builder *b, const char *name, const char *from, int64_t axis, shard_span rows,
                     const char *to);
/* A Concat of n tensors. */
int shard_concat_node(shard_builder *b, const char *name, const char *const *from, int32_t n, int64_t axis,
                      const char *to);

/* ---- shard_rows_build.c ---- */
int shard_rows_pieces(shard_builder *b, const shard_cut *cut, int32_t member);

/* ---- shard_model.c ---- */
int shard_build(shard_builder *b, Onnx__ModelProto **out);
void shard_builder_free(shard_builder *b);

static inline int64_t shard_length(shard_layout at, int64_t size)
{
    return at.outer * size * at.inner;
}

#endif
