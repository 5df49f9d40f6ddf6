/* Every tensor of a model, wherever it is, and the files that tensors name. */
#ifndef MOIRAI_ONNX_ONNX_TENSORS_H
#define MOIRAI_ONNX_ONNX_TENSORS_H

#include "onnx/onnx_model.h"

/* ---- onnx_tensors.c ---- */
/* `node`: the innermost node around the tensor, NULL for what belongs to a graph itself. Another result than 0 ends the
 * walk. The tensor may be changed. */
typedef int (*onnx_tensor_fn)(void *data, Onnx__TensorProto *tensor, const Onnx__NodeProto *node);

/* Calls `each` for every TensorProto below `model`: initializers, values of attributes, both halves of sparse ones, in
 * subgraphs and in functions, however deep. O(messages). */
int onnx_tensors_each(const Onnx__ModelProto *model, onnx_tensor_fn each, void *data);
/* Puts "tensor 'value' of node 'c' (Constant)" before the current message. */
int onnx_tensor_prefix(int rc, const Onnx__TensorProto *tensor, const Onnx__NodeProto *node);

/* ---- onnx_external.c ---- */
/* MOIRAI_EINPUT if a tensor of the model names a file that is not its own to read: outside of the model's folder, by a
 * link too, or no plain file; or a part of a file that is not in it. Files that are not there are fine: graphs need no
 * weights. `path` NULL: the model is in memory, only the names are judged. Messages do not name the model. */
int onnx_external_check(const onnx_model *model, const char *path);
/* The file of `d`, at its offset, which must hold `bytes` from there on. Fails where onnx_external_check does, and where
 * the file is not there. */
int onnx_external_open(int *fd, const char *model_path, const onnx_data *d, int64_t bytes);

#endif
