/* ONNX files as graphs (feature "onnx": needs protobuf-c). */
#ifndef MOIRAI_ONNX_H
#define MOIRAI_ONNX_H

#include <moirai/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the size of a tensor is known. */
typedef enum moirai_onnx_known {
    MOIRAI_ONNX_SURE,    /* the file says so, or it follows from the inputs' shapes */
    MOIRAI_ONNX_AT_MOST, /* data decide at run time (NonZero, ...): the most that it can be */
    MOIRAI_ONNX_GUESSED  /* nothing is known: as large as the operator's largest input */
} moirai_onnx_known;

/* A tensor of the network as it was read: inputs, weights, results, those that are folded away included. */
typedef struct moirai_onnx_tensor {
    const char *name, *type; /* "float", "int64", ...; texts live as long as the call */
    int32_t rank;
    const int64_t *dim;
    int64_t bytes;
    bool constant; /* known before the network runs */
    moirai_onnx_known known;
} moirai_onnx_tensor;
typedef void (*moirai_onnx_tensor_fn)(void *data, const moirai_onnx_tensor *tensor);

typedef struct moirai_onnx_options {
    const char *const *dims; /* "batch=8": sets every dimension of that name; "image:2=640": by input and axis */
    int n_dims;
    const char *const *shapes; /* "input:1x3x224x224" */
    int n_shapes;
    moirai_onnx_tensor_fn tensor; /* called for every tensor when all sizes are known; may be NULL */
    void *tensor_data;
} moirai_onnx_options;

/* An input of the network, as it was taken. */
typedef struct moirai_onnx_input {
    char name[128];
    char type[16];   /* "float", "int64", ... */
    char shape[160]; /* "batch=1x3x224x224": names of open dimensions with what they were taken as; "scalar" */
    int64_t bytes;
} moirai_onnx_input;
#define MOIRAI_ONNX_INPUTS 32 /* so many are shown */

/* What was met on the way, for the user. */
typedef struct moirai_onnx_report {
    int32_t n_nodes, n_folded;             /* nodes in the file; constant-only ones folded away */
    int32_t n_unused;                      /* nodes on which no output of the network depends: left out */
    int32_t n_unknown_ops;                 /* operators without a shape or cost rule */
    int32_t n_unknown_sizes;               /* tensors whose size could not be inferred: see docs/onnx.md */
    int32_t n_default_dims;                /* dimensions of inputs that neither file nor options give: see `assumed` */
    int64_t parameter_count, weight_bytes; /* of distinct weights that are used */
    char unknown_sizes[256];               /* names of the first of those tensors, "" if none */
    int32_t n_inputs;                      /* of the network; the first MOIRAI_ONNX_INPUTS are in `input` */
    moirai_onnx_input input[MOIRAI_ONNX_INPUTS];
    char first_unknown[128];    /* type of the first operator without a rule, "" if none */
    char first_default_dim[64]; /* name of the first such dimension, "" if none */
    char open_dims[512];        /* names of all of them, each once, "batch, sequence"; as many as there is room for */
    char unnamed_dims[256];     /* inputs with open dimensions that have no name */
    char assumed[1024];         /* what they were taken as, "batch=1, image:2=224": each as `dims` takes it */
} moirai_onnx_report;

/* Whether this library was built with ONNX. Without it every function of this header says so and fails. */
MOIRAI_API bool moirai_onnx_available(void);
/* The network in `path` as operators, with constant-only and unused ones left out. Weights are not read: the file is
 * mapped, external files need not exist. Fails with MOIRAI_EINPUT on malformed files and MOIRAI_EUSAGE on options that
 * name no dimension or input of the model. `options` and `report` may be NULL. O(nodes + edges). */
MOIRAI_API int moirai_onnx_read(moirai_graph **out, const char *path, const moirai_onnx_options *options,
                                moirai_onnx_report *report);
/* The same from memory; `data` need not outlive the call. */
MOIRAI_API int moirai_onnx_parse(moirai_graph **out, const void *data, size_t length, const char *label,
                                 const moirai_onnx_options *options, moirai_onnx_report *report);

/* A network of the zoo (all but swin) as a model that runs: the operators, names and connections of
 * moirai_zoo_graph, weights drawn from `seed`. Weights above 512 MiB go to "<path>.data" beside it.
 * O(weights). */
MOIRAI_API int moirai_onnx_write_zoo(const char *name, int element_bytes, uint64_t seed, const char *path);

#ifdef __cplusplus
}
#endif
#endif
