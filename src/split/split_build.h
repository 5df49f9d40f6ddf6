/* Inside `split`: putting one sub-model together. Private to split_model.c and split_weight.c. */
#ifndef MOIRAI_SPLIT_SPLIT_BUILD_H
#define MOIRAI_SPLIT_SPLIT_BUILD_H

#include <stdio.h>

#include "onnx/onnx_import.h"
#include "split/split.h"

/* A list of messages for the sub-model at hand. */
typedef struct message_list {
    void **item;
    size_t n, capacity;
} message_list;

/* External weights of one device, in one file. */
typedef struct weight_file {
    FILE *stream;
    char name[320]; /* in the folder */
    int64_t offset;
    util_names *known; /* "location:offset:length" -> number in `at` */
    int64_t *at;
    size_t n, capacity;
} weight_file;

typedef struct split_builder {
    split_plan *p;
    onnx_import *im;
    const moirai_graph *fine;
    const char *model_path, *folder;
    moirai_split_report *report;
    int32_t *op_node;      /* operator of `fine` -> node of the root scope */
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
    message_list nodes, initializers, sparse, inputs, outputs;
    int32_t *folded;
    size_t n_folded, folded_capacity;
    onnx_value **stack;
    size_t n_stack, stack_capacity;
    weight_file weights; /* of the device at hand */
} split_builder;

int split_list_add(message_list *l, void *item);
char *split_text(split_builder *b, const char *format, ...) MOIRAI_PRINTF(2, 3); /* in the arena, or NULL */

/* ---- split_weight.c ---- */
/* Takes a constant, and all that it is computed from, into the sub-model at hand. */
int split_take_constant(split_builder *b, onnx_value *v);
/* Ends the device's weight file, if there is one. */
int split_weights_close(split_builder *b);

#endif
