/* Operator classes: types as exporters spell them -> the few kinds of kernel that cost models tell apart. */
#ifndef MOIRAI_COST_CLASS_H
#define MOIRAI_COST_CLASS_H

/* The first sixteen are those of the measured times, by the names used there. */
typedef enum moirai_cost_class {
    MOIRAI_CLASS_ADD, MOIRAI_CLASS_ADDU, MOIRAI_CLASS_MUL, MOIRAI_CLASS_MULU, MOIRAI_CLASS_DIV, MOIRAI_CLASS_DIVU,
    MOIRAI_CLASS_POW, MOIRAI_CLASS_POWU, MOIRAI_CLASS_RELU, MOIRAI_CLASS_TANH, MOIRAI_CLASS_GELU,
    MOIRAI_CLASS_SOFTMAX, MOIRAI_CLASS_LN, MOIRAI_CLASS_LINEAR, MOIRAI_CLASS_BMM, MOIRAI_CLASS_CONV,
    MOIRAI_CLASS_MEMORY, /* kernels that only move data: copies, gathers, pooling, reductions */
    MOIRAI_CLASS_VIEW,   /* no kernel at all: another look at the same memory */
    MOIRAI_CLASS_UNKNOWN,
    MOIRAI_CLASS_COUNT
} moirai_cost_class;

#define MOIRAI_CLASS_MEASURED 16 /* classes with measured times */

/* The class of a type. A fused type ("Conv+BatchNormalization+Relu") has the class of its heaviest member: the
 * first matrix product or convolution, else the first of the heaviest kind among the rest. Case and '_', '-', ' ' do
 * not matter. */
moirai_cost_class moirai_cost_class_of(const char *type);
const char *moirai_cost_class_name(moirai_cost_class k);
/* The class of a name in the measured times ("addu"), MOIRAI_CLASS_UNKNOWN if none. */
moirai_cost_class moirai_cost_class_find(const char *name);
/* The first type of the table that is out of order, NULL if it is sorted: for the tests. */
const char *moirai_cost_class_unsorted(void);

#endif
