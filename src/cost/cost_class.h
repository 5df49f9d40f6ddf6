/* Operator classes: types as exporters spell them -> the few kinds of kernel that cost models tell apart. */
#ifndef MOIRAI_COST_COST_CLASS_H
#define MOIRAI_COST_COST_CLASS_H

#include <stdbool.h>

/* The first sixteen are those of tables of measured times, by the names used there. */
typedef enum cost_class {
    COST_CLASS_ADD,
    COST_CLASS_ADDU,
    COST_CLASS_MUL,
    COST_CLASS_MULU,
    COST_CLASS_DIV,
    COST_CLASS_DIVU,
    COST_CLASS_POW,
    COST_CLASS_POWU,
    COST_CLASS_RELU,
    COST_CLASS_TANH,
    COST_CLASS_GELU,
    COST_CLASS_SOFTMAX,
    COST_CLASS_LN,
    COST_CLASS_LINEAR,
    COST_CLASS_BMM,
    COST_CLASS_CONV,      /* 3 x 3 of stride 1, which may go by Winograd; others become one of the next three */
    COST_CLASS_DIRECT,    /* other convolutions: 1 x 1, strided, large kernels */
    COST_CLASS_GROUPED,   /* several products side by side, narrow ones */
    COST_CLASS_DEPTHWISE, /* a channel each */
    COST_CLASS_MEMORY,    /* kernels that only move data: copies, gathers, max pooling */
    COST_CLASS_REDUCE,    /* fewer numbers than were read, or neighbours summed up: sums, means, average pooling */
    COST_CLASS_SORT,      /* by rank: TopK */
    COST_CLASS_NMS,       /* boxes against boxes */
    COST_CLASS_VIEW,      /* no kernel at all: another look at the same memory */
    COST_CLASS_UNKNOWN,
    COST_CLASS_COUNT
} cost_class;

#define COST_CLASS_TABLE 16                 /* classes that a table of measured times may name */
#define COST_CLASS_MEASURED COST_CLASS_VIEW /* classes with coefficients */

/* The class of a type. A fused type ("Conv+BatchNormalization+Relu") has the class of its heaviest member: the
 * first matrix product or convolution, else the first of the heaviest kind among the rest. Case and '_', '-', ' ' do
 * not matter. */
cost_class cost_class_of(const char *type);
/* Joins its inputs to one tensor (Concat, cat, stack): a runtime may start a kernel for each. */
bool cost_class_is_join(const char *type);
/* Makes a larger tensor of a smaller one (Resize, Expand, Tile). */
bool cost_class_is_stretch(const char *type);
/* Puts a margin around a tensor. */
bool cost_class_is_pad(const char *type);
/* Reads as much of a table as it returns (Gather, embedding). */
bool cost_class_is_lookup(const char *type);
/* Returns places, not values (ArgMax, ArgMin). */
bool cost_class_is_rank(const char *type);
/* Sums up images or windows of them (GlobalAveragePool): kernels of their own. */
bool cost_class_is_pool(const char *type);
const char *cost_class_name(cost_class k);
/* A matrix product or a convolution: kernels whose flops decide. */
bool cost_class_is_product(cost_class k);
/* The class of a name in a table of measured times ("addu"), COST_CLASS_UNKNOWN if none. */
cost_class cost_class_find(const char *name);
/* The first type of the table that is out of order, NULL if it is sorted: for the tests. */
const char *cost_class_unsorted(void);

#endif
