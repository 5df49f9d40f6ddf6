/* What the server and the first rank of a group say to each other, through a socket of this machine. Both are of one build:
 * numbers are as the machine has them.
 *
 *   rank 0 -> server   serve_hello, then serve_hello_tensor for each output: the group is loaded and waits
 *   server -> rank 0   serve_ask, then all inputs, one after the other in the order of the manifest
 *   rank 0 -> server   serve_reply, those of one copy of the plan in the order of asks, then busy time in ns (int64_t) of each rank, then all outputs or,
 *                      where it failed, a text
 *   rank 0 -> server   several times within --stall a serve_reply with the id SERVE_SIGN: the group is there. Or, `failed`: a
 *                      device hangs, `copy` is its rank or -1, and a text follows
 *
 * The server ends the group by shutting its side; rank 0 ends whatever is under way by closing. */
#ifndef MOIRAI_SERVE_SERVE_WIRE_H
#define MOIRAI_SERVE_SERVE_WIRE_H

#include <stdint.h>

#define SERVE_MAGIC INT64_C(0x6d6f697261693031) /* "moirai01" */
enum { SERVE_MOST_DIMS = 16, SERVE_SIGN = -1 };

typedef struct serve_hello {
    int64_t magic, n_ranks, n_outputs;
} serve_hello;

typedef struct serve_hello_tensor {
    int64_t type, rank, dim[SERVE_MOST_DIMS]; /* type: ONNX's TensorProto.DataType */
} serve_hello_tensor;

typedef struct serve_ask {
    int64_t magic, id, bytes; /* bytes: of what follows */
} serve_ask;

typedef struct serve_reply {
    int64_t magic, id, failed; /* failed: a moirai_result */
    int64_t bytes;             /* of outputs or text */
    int64_t copy;              /* of the plan, that computed it */
} serve_reply;

#endif
