/* Operators of a network as models of their own, to be measured one by one. */
#ifndef MOIRAI_ONNX_ONNX_PIECE_H
#define MOIRAI_ONNX_ONNX_PIECE_H

#include <moirai/onnx.h>

/* A network that pieces are cut from. */
typedef struct onnx_pieces onnx_pieces;

/* `graph` gets what moirai_onnx_read gives; its operators are numbered alike here. The file must not change meanwhile.
 */
int onnx_pieces_open(onnx_pieces **out, moirai_graph **graph, const char *path,
                            const moirai_onnx_options *options, moirai_onnx_report *report);
void onnx_pieces_free(onnx_pieces *p);

#define ONNX_PIECE_WEIGHTS "moirai-weights-" /* and the TensorProto.DataType in decimal */

/* The operators `op` (in an order in which they can run) as one model in *data, which the caller frees. Equal operators
 * give equal bytes: tensors are named by their place, weights are not in it but external, at offset 0 of the file
 * ONNX_PIECE_WEIGHTS <type>; constants that decide on shapes keep their numbers. O(size of the piece). */
int onnx_piece_make(uint8_t **data, size_t *length, const onnx_pieces *p, const int32_t *op, int32_t n);

#endif
