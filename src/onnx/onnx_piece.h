/* Operators of a network as models of their own, to be measured one by one. */
#ifndef MOIRAI_ONNX_ONNX_PIECE_H
#define MOIRAI_ONNX_ONNX_PIECE_H

#include <stddef.h>
#include <stdint.h>

typedef struct onnx_network onnx_network; /* onnx_network.h */

#define ONNX_PIECE_WEIGHTS "moirai-weights-" /* and the TensorProto.DataType in decimal */

/* The operators `op` of the network's graph (in an order in which they can run) as one model in *data, which the caller
 * frees. Equal operators give equal bytes: tensors are named by their place, weights are not in it but external, at
 * offset 0 of the file ONNX_PIECE_WEIGHTS <type>; constants that decide on shapes keep their numbers. O(size of the
 * piece). */
int onnx_piece_make(uint8_t **data, size_t *length, const onnx_network *from, const int32_t *op, int32_t n);

#endif
