/* An ONNX file, opened and understood: its messages, what was inferred of them, and its graph.
 *
 * What needs more of a model than its graph (pieces to measure, sub-models to run) starts here and goes on from it. */
#ifndef MOIRAI_ONNX_ONNX_NETWORK_H
#define MOIRAI_ONNX_ONNX_NETWORK_H

#include "onnx/onnx_import.h"

typedef struct onnx_network {
    const char *label; /* the file; borrowed */
    onnx_model *model;
    onnx_import im;
    moirai_onnx_report report;
    moirai_graph *graph; /* what moirai_onnx_read gives; a caller may take it and set NULL */
    int32_t *op_node;    /* [operator of the graph] node of the root scope */
} onnx_network;

/* The file must not change while it is open. Messages name it. */
int onnx_network_open(onnx_network **out, const char *path, const moirai_onnx_options *options);
/* `data` is borrowed and must outlive the network. */
int onnx_network_parse(onnx_network **out, const void *data, size_t length, const char *label,
                       const moirai_onnx_options *options);
void onnx_network_free(onnx_network *net);

#endif
