/* Models that have one tensor of the caller's in a place of every kind. */
#ifndef MOIRAI_TEST_TENSOR_PLACES_H
#define MOIRAI_TEST_TENSOR_PLACES_H

#include "support/onnx_maker.h"

int tensor_place_count(void);
const char *tensor_place_name(int place);
/* A model from x (float 2x2) by two operators, Relu_0 and Neg_1, to y, with `tensor` in that place. Takes the tensor, which
 * should be float 2x2. */
void make_model_with(wire *model, wire *tensor, int place);

#endif
