/* The rule sets that come with the library, in the language of rule files (docs/coarsening.md). */
#include <string.h>

#include "coarsen/rules.h"

/* The paper's Table I. */
static const char eigen[] = "conv bn\n"
                            "conv bn relu\n"
                            "conv bn add relu\n";

/* Shaped after what ONNX Runtime's graph optimizers and its fused kernels put together. */
static const char onnxruntime[] = "# convolutions: batch norm, residual add and activation go into the kernel\n"
                                  "conv bn? act\n"
                                  "conv bn\n"
                                  "conv bn? add relu\n"
                                  "# matrix products: bias, activation, the move of heads\n"
                                  "matmul bias? act\n"
                                  "matmul bias\n"
                                  "matmul bias? reshape transpose\n"
                                  "matmul bias? transpose\n"
                                  "# attention, from the scores to the heads' result\n"
                                  "matmul scale? mask? softmax dropout? matmul\n"
                                  "matmul scale? mask? softmax dropout? matmul transpose reshape\n"
                                  "matmul scale? mask? reshape mask reshape softmax dropout? matmul transpose reshape\n"
                                  "# windows cut out of an image and put back: a copy between two views\n"
                                  "reshape transpose reshape\n"
                                  "# norms: with the residual before them, and spelt out\n"
                                  "bias? add ln\n"
                                  "reducemean sub\n"
                                  "pow reducemean bias sqrt div mul bias\n"
                                  "# activations spelt out: gelu by erf, gelu by tanh, silu, hard swish\n"
                                  "div erf bias mul scale\n"
                                  "div erf bias scale mul\n"
                                  "pow scale add scale tanh bias mul\n"
                                  "sigmoid|hardsigmoid mul\n";

const char *coarsen_rules_shipped(const char *name)
{
    if (!strcmp(name, "eigen"))
        return eigen;
    if (!strcmp(name, "onnxruntime"))
        return onnxruntime;
    return strcmp(name, "none") ? NULL : "";
}
