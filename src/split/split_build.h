/* Inside `split`: putting one sub-model together. Private to split_mark.c, split_constant.c, split_external.c and
 * split_model.c, which go forward in this order: what belongs where, the constants of a sub-model, their files, the
 * sub-model. */
#ifndef MOIRAI_SPLIT_SPLIT_BUILD_H
#define MOIRAI_SPLIT_SPLIT_BUILD_H

#include "onnx/onnx_network.h"
#include "split/split.h"
#include "split/split_weight.h"

/* A list of messages for the sub-model at hand. */
typedef struct split_list {
    void **item;
    size_t n, capacity;
} split_list;

/* What a tensor of the model said of its file before split_move_external. */
typedef struct split_moved {
    Onnx__TensorProto *tensor;
    Onnx__StringStringEntryProto **external_data;
    size_t n_external_data;
} split_moved;

typedef struct split_builder {
    split_plan *p;
    onnx_network *net;
    const char *folder;
    moirai_split_report *report;
    int32_t *node_segment; /* node -> segment that it belongs to, or -1: folded or unused */
    int32_t *node_rank;    /* node -> place in the scope's order */
    /* By number of the value, which is in its `stamp`: */
    bool *leaves;        /* another segment, or the user, gets it */
    bool *certain;       /* its shape was inferred, not guessed */
    int32_t *taken;      /* the last segment that took this constant in */
    int32_t *read;       /* the last segment that has it as an input */
    bool *open;          /* segment: has a node with graphs inside, see describe_type */
    int32_t *node_taken; /* folded node -> the last segment that took it in */
    /* Of the sub-model at hand: */
    int32_t segment;
    split_list nodes, initializers, sparse, inputs, outputs;
    int32_t *folded;
    size_t n_folded, folded_capacity;
    onnx_value **stack;
    size_t n_stack, stack_capacity;
    split_weights weights; /* of the device at hand */
    split_moved *moved;    /* tensors of the sub-model at hand that name the device's file */
    size_t n_moved, moved_capacity;
} split_builder;

static inline int split_list_add(split_list *l, void *item)
{
    int rc = util_grow(&l->item, &l->capacity, l->n + 1, sizeof *l->item);
    if (!rc)
        l->item[l->n++] = item;
    return rc;
}

/* ---- split_mark.c ---- */
int split_mark(split_builder *b);

/* ---- split_constant.c ---- */
/* Takes a constant, and all that it is computed from, into the sub-model at hand. */
int split_take_constant(split_builder *b, onnx_value *v);

/* ---- split_external.c ---- */
/* Every tensor of this sub-model that is in a file of the model's folder is copied to the device's own, and says so.
 * Tensors belong to the model: split_restore_external, in every case, once the sub-model is written. */
int split_move_external(split_builder *b, const Onnx__ModelProto *part);
void split_restore_external(split_builder *b);

#endif
