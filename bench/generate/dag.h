/* A task graph on its way to a problem: operators with a kind and relative work, tensors with relative sizes. Private
 * to the generator.
 *
 * Relative numbers are whole thousandths, so that a problem is the same on every machine. The first failure (memory)
 * sticks, as in the library's graph builder. */
#ifndef MOIRAI_GENERATE_DAG_H
#define MOIRAI_GENERATE_DAG_H

#include <moirai/problem.h>

#include "util/util.h"

enum { GENERATE_KINDS = 4, GENERATE_SIZES = 32 };

typedef struct generate_op {
    int32_t kind;   /* 0 .. GENERATE_KINDS - 1 */
    int32_t work;   /* thousandths of the mean */
    int32_t output; /* the tensor that all its readers share, or MOIRAI_NONE */
} generate_op;

typedef struct generate_read {
    int32_t tensor, reader;
} generate_read;

typedef struct generate_dag {
    util_rng rng;
    bool shared; /* an operator has one output, which its readers share; else one for each of them */
    bool even;   /* operators of a kind have the same work */
    bool heavy;  /* some operators have several times the work of others */
    generate_op *op;
    size_t n_ops, op_room;
    int32_t *tensor_producer, *tensor_size; /* sizes: thousandths of the mean, of GENERATE_SIZES values */
    size_t n_tensors, producer_room, size_room;
    generate_read *read;
    size_t n_reads, read_room;
    int result;
} generate_dag;

/* Draws: 0 .. n-1, and from..to, both included. */
int32_t generate_draw(generate_dag *d, int32_t n);
int32_t generate_between(generate_dag *d, int32_t from, int32_t to);

/* A new operator, whose work is drawn around `work` thousandths; its number. */
int32_t generate_add(generate_dag *d, int32_t kind, int32_t work);
/* The same with any kind and mean work. */
int32_t generate_any(generate_dag *d);
/* Operator `to` reads what `from` writes: its shared output, or a tensor of its own. Once per pair. */
void generate_edge(generate_dag *d, int32_t from, int32_t to);

/* A family: fills a graph of about n operators. */
typedef void generate_family_fn(generate_dag *d, int32_t n);
generate_family_fn generate_fork_join, generate_phases, generate_shuffle, generate_chains, generate_side_by_side;
generate_family_fn generate_layered, generate_sparse, generate_series_parallel;
generate_family_fn generate_cholesky, generate_lu, generate_gauss, generate_fft;
generate_family_fn generate_wavefront, generate_stencil, generate_ladders, generate_cells;
generate_family_fn generate_in_tree, generate_out_tree;
generate_family_fn generate_montage, generate_epigenomics;

/* What the parts of a name ask for. */
typedef struct generate_setting {
    const char *name; /* all of it */
    int32_t n_ops, n_devices;
    enum { GENERATE_RELATED, GENERATE_BY_KINDS, GENERATE_UNRELATED } times;
    int32_t transfer; /* thousandths of the mean time of an operator */
} generate_setting;

/* The graph with times, links and memory as a problem. */
int generate_settle(moirai_problem **out, generate_dag *d, const generate_setting *s);
void generate_dag_free(generate_dag *d);

#endif
