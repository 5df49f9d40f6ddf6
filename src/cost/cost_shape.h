/* The shape of an operator's work: what the fitted model's formulas read. */
#ifndef MOIRAI_COST_COST_SHAPE_H
#define MOIRAI_COST_COST_SHAPE_H

#include <stdbool.h>
#include <stdint.h>
#include "cost/cost_class.h"

typedef struct cost_shape {
    cost_class k;
    double element_bytes;
    double bytes; /* of device memory read and written at least, once each */
    double out_bytes;
    double weight_bytes;   /* of `bytes`, those of weights: in a network they come from memory each time */
    double flops;          /* matrix products and convolutions only; 0 elsewhere */
    double b, m, n, depth; /* b products of m x depth by depth x n; a convolution is its implicit product */
    double rate;           /* GFLOPS of products on the device at hand; 0: its fp32 rate */
    double parts;          /* tensors that are joined to one; 0: none are */
    double rows, row;      /* softmax, norms, sums: rows of `row` elements */
    double side;           /* of square images that are convolved; 0: not known */
    bool interleaved;      /* parts are joined, or the largest taken, element by element: not one run after the other */
    bool strided;          /* threads that each sum up a row of their own: what they read together lies apart */
    bool stretched;        /* a result whose elements each work out where they come from */
} cost_shape;

#endif
