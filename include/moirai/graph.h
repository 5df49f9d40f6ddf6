/* A network before it meets a cluster: operators, tensors, what they cost.
 *
 * Plain data in flat arrays; read the fields freely, change them only through the
 * functions here. Operators are numbered from 0 in the order in which they were added;
 * tensors: those that an operator writes first, by operator, then network inputs and weights
 * by first reader. Edges are stored in CSR form (offsets of length n+1). */
#ifndef MOIRAI_GRAPH_H
#define MOIRAI_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <moirai/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOIRAI_NONE (-1)    /* "no operator", "no tensor", "no device" */
#define MOIRAI_UNKNOWN (-1) /* a number that the file does not give */

typedef struct moirai_graph {
    char *name;
    int32_t element_bytes; /* 4 (fp32), 2 (fp16), 8 (fp64): the network's main type; cost models need it */
    bool from_onnx;        /* made from an ONNX file, which ONNX Runtime will run ("origin" in a graph file) */

    int32_t n_ops;
    const char **op_name;
    const char **op_type;
    int64_t *op_weight_bytes;    /* 0 where not given */
    int64_t *op_workspace_bytes; /* 0 where not given */
    int64_t *op_flops;           /* MOIRAI_UNKNOWN where not given */
    int64_t *op_traffic_bytes;   /* MOIRAI_UNKNOWN where not given */

    int32_t *op_in_off, *op_in;   /* operator -> tensors read, in file order, repeats kept */
    int32_t *op_out_off, *op_out; /* operator -> tensors written */
    int32_t *op_member_off;       /* operator -> names of what was fused into it */
    const char **op_member;

    int32_t n_tensors;
    const char **tensor_name;
    int64_t *tensor_bytes;                      /* 0 for tensors that nobody produces */
    int32_t *tensor_producer;                   /* MOIRAI_NONE: network input or weight */
    int32_t *tensor_reader_off, *tensor_reader; /* tensor -> distinct operators that read it, ascending */

    int32_t n_time_keys; /* device names or types for which measured times exist */
    const char **time_key;
    int64_t *time_ns; /* [op * n_time_keys + key], MOIRAI_UNKNOWN where not measured */

    /* Weights that several operators read, by name; a device that runs several of their readers holds them once. Their
     * bytes are part of the readers' op_weight_bytes. */
    int32_t n_weights;
    const char **weight_name;
    int64_t *weight_bytes;
    int32_t *op_weight_off, *op_weight; /* operator -> such weights that it reads, each once */

    /* How an ONNX model's open dimensions were set when this graph was made ("batch=8", "input:1x3x224x224"). Whatever
     * is made from the graph keeps them, so that running needs not be told again. */
    int32_t n_dims, n_shapes;
    const char **dim, **shape;
    /* Open dimensions that nobody set, and what they were taken as ("height=224", as --dim takes it). */
    int32_t n_assumed;
    const char **assumed;

    int32_t *topo;      /* a topological order: among the ready, the least number first */
    int32_t *topo_rank; /* inverse of topo */

    void *store; /* owns every string above */

    /* [time key]: all of the network there, run as one; MOIRAI_UNKNOWN where that was not measured. NULL: nowhere. */
    int64_t *time_whole_ns;
} moirai_graph;

/* ---- building ----
 * A builder takes operators in any order; tensors are joined by name. The first error sticks:
 * later calls and `finish` repeat it, so checking `finish` alone is enough. */
typedef struct moirai_graph_builder moirai_graph_builder;

/* A builder for a network of that name, which is copied. Give it to moirai_graph_builder_finish, or free it. */
MOIRAI_API int moirai_graph_builder_new(moirai_graph_builder **out, const char *name);
/* Frees a builder that will not be finished. NULL is fine. */
MOIRAI_API void moirai_graph_builder_free(moirai_graph_builder *b);
/* 4 (fp32, the default), 2 (fp16) or 8 (fp64). */
MOIRAI_API void moirai_graph_builder_element_bytes(moirai_graph_builder *b, int32_t bytes);
/* Says that the network is made from an ONNX file. */
MOIRAI_API void moirai_graph_builder_from_onnx(moirai_graph_builder *b, bool from_onnx);
/* Returns the operator's number (>= 0) or a negative result. Strings are copied. */
MOIRAI_API int32_t moirai_graph_builder_op(moirai_graph_builder *b, const char *name, const char *type);
/* Operator `op` reads this tensor, after those it reads already. A tensor that no operator writes is an input of the
 * network, or a weight. 0 or the builder's first error. */
MOIRAI_API int moirai_graph_builder_input(moirai_graph_builder *b, int32_t op, const char *tensor);
/* Operator `op` writes this tensor of so many bytes (>= 0). A tensor has one producer. 0 or the first error. */
MOIRAI_API int moirai_graph_builder_output(moirai_graph_builder *b, int32_t op, const char *tensor, int64_t bytes);
/* What cost models need to know: weights and workspace in bytes (>= 0), arithmetic operations and bytes moved
 * (MOIRAI_UNKNOWN where not known). Replaces what was said before. 0 or the first error. */
MOIRAI_API int moirai_graph_builder_cost(moirai_graph_builder *b, int32_t op, int64_t weight_bytes,
                                         int64_t workspace_bytes, int64_t flops, int64_t traffic_bytes);
/* A measured time of the operator on a device, by the device's name or type. 0 or the first error. */
MOIRAI_API int moirai_graph_builder_time(moirai_graph_builder *b, int32_t op, const char *device, int64_t ns);
/* The operator was fused from, among others, the operator of this name. 0 or the first error. */
MOIRAI_API int moirai_graph_builder_member(moirai_graph_builder *b, int32_t op, const char *member);
/* A weight that other operators read as well, known by its name; part of the weight_bytes given to
 * moirai_graph_builder_cost. MOIRAI_EINPUT where the name was given with another size. Giving it twice to one operator
 * counts once. */
MOIRAI_API int moirai_graph_builder_shared_weight(moirai_graph_builder *b, int32_t op, const char *name, int64_t bytes);
/* How a dimension of the ONNX model was set ("batch=8"); kept for plans. 0 or the first error. */
MOIRAI_API int moirai_graph_builder_dim(moirai_graph_builder *b, const char *setting);
/* The same for the shape of an input. */
MOIRAI_API int moirai_graph_builder_shape(moirai_graph_builder *b, const char *setting);
/* What an open dimension that nobody set was taken as ("height=224"). 0 or the first error. */
MOIRAI_API int moirai_graph_builder_assumed(moirai_graph_builder *b, const char *setting);
/* Check names and acyclicity and hand over the graph; frees the builder in every case.
 * Fails with MOIRAI_EINPUT on two operators or tensors of one name, and on a cycle, whose
 * operators the message lists. O((V+E) log V). */
MOIRAI_API int moirai_graph_builder_finish(moirai_graph **out, moirai_graph_builder *b);

/* Frees all of it. NULL is fine. */
MOIRAI_API void moirai_graph_free(moirai_graph *g);

/* ---- files ---- `path` "-" is stdin/stdout; writers are atomic and replace `path`. */
/* A graph file. *out is the caller's; NULL on failure. MOIRAI_EINPUT names file, operator, key and value. O((V+E) log
 * V). */
MOIRAI_API int moirai_graph_read(moirai_graph **out, const char *path);
/* The same from memory; `label` stands for the path in messages. */
MOIRAI_API int moirai_graph_parse(moirai_graph **out, const char *json, size_t length, const char *label);
/* Writes a graph file; the same graph gives the same bytes. */
MOIRAI_API int moirai_graph_write(const moirai_graph *g, const char *path);

/* The times of all operators on one device (by name or type): replaces what is known of it. MOIRAI_UNKNOWN where an
 * operator was not measured. O(operators x names). */
MOIRAI_API int moirai_graph_times_set(moirai_graph *g, const char *device, const int64_t *time_ns);

/* What the whole network takes on a device, run as one; MOIRAI_UNKNOWN forgets it. A runtime fuses operators, and keeps
 * tensors in layouts of its own, so that this is not the sum of their times. O(operators x names). */
MOIRAI_API int moirai_graph_whole_set(moirai_graph *g, const char *device, int64_t ns);

/* Operator number of a name, or MOIRAI_NONE. O(1) expected. */
MOIRAI_API int32_t moirai_graph_find(const moirai_graph *g, const char *op_name);

#ifdef __cplusplus
}
#endif
#endif
