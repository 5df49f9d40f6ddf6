/* Inside `shard`: strips of a model, what each operator in them does with a cut, and the model that pieces make.
 *
 * A cut divides an axis of a tensor into units that are never divided: heads, columns, channels. The axis may hold several
 * runs of all units (queries, keys and values in one product: three runs of 12 heads of 64), so that its length is
 * outer x units x inner. A piece has the units [first, first + size) of every run. All tensors of a strip have the same
 * number of units; only axis, outer and inner differ. */
#ifndef MOIRAI_SHARD_SHARD_H
#define MOIRAI_SHARD_SHARD_H

#include <moirai/shard.h>

#include "onnx/onnx_network.h"

typedef struct shard_layout {
    int32_t axis;
    int64_t outer, inner; /* the axis has outer x units x inner elements */
} shard_layout;

typedef enum shard_state {
    SHARD_WHOLE,  /* every piece has all of it */
    SHARD_CUT,    /* every piece has its units */
    SHARD_PARTIAL /* an output: every piece has a summand of all of it */
} shard_state;

/* An input or output of an operator in a strip. */
typedef struct shard_port {
    shard_state state;
    bool once; /* an input that only the first piece has: a bias of what is summed up */
    shard_layout at;
    int32_t part; /* of a strip of rows: number of the value among its parts, + 1; 0: a weight, or whole */
} shard_port;

typedef struct shard_member {
    int32_t node;
    shard_port *port; /* inputs, then outputs */
} shard_member;

typedef struct shard_part {
    int32_t value; /* by number */
    shard_layout at;
    bool sliced; /* made whole outside of the strip: pieces take slices of it */
    bool leaves; /* of rows: read outside of the strip, or by nobody */
} shard_part;

/* Rows [begin, end) of a tensor. */
typedef struct shard_span {
    int64_t begin, end;
} shard_span;

/* Which rows of its input an operator needs for a row r of its output; shard_rows_rules.c. */
typedef struct shard_map {
    int64_t stride, extent, pad; /* [r stride - pad, r stride - pad + extent) */
    int64_t scale, reach;        /* scale > 0: r / scale instead, and `reach` rows on either side */
    bool spread;                 /* the other way round: an input row makes `extent` rows of the output */
} shard_map;

typedef struct shard_strip {
    const char *name, *kind, *unit;
    int64_t units;
    int32_t n_members, n_parts;
    shard_member *member; /* in topological order */
    shard_part *part;     /* values that are cut */
    shard_map *map;       /* [member] of a strip of rows; else NULL */
    int64_t flops, weight_bytes;
    int32_t n_ops, n_sums, n_joins;
    int32_t class_number;
    bool alternative;
    uint64_t signature;
} shard_strip;

typedef struct shard_use {
    int32_t node, port;
} shard_use;

/* What growth needs for every tensor and operator; zero between two strips. */
typedef struct shard_work {
    int32_t *part_of;   /* [value] part + 1 */
    int32_t *member_of; /* [node] member + 1 */
    int32_t *mark, *stack;
    int32_t stamp;
    int64_t looks; /* operators that questions of dependence may still visit */
} shard_work;

struct moirai_shards {
    onnx_network *net;
    shard_work work;
    const char **text; /* dimensions and shapes that it was opened with */
    moirai_onnx_options options;
    char *label;
    onnx_arena arena;
    int32_t n_values, n_nodes;
    int32_t *node_rank; /* node -> place in topological order */
    int32_t *use_off;   /* value -> its readers */
    shard_use *use;
    bool *leaves;         /* value: an output of the network, or read inside of a node's subgraph */
    const char **op_name; /* [node] NULL: no operator of the graph */
    int32_t *taken;       /* [node] the strip that has it, + 1 */
    shard_strip *strip;
    size_t n_strips, strips_capacity;
    moirai_shard_refusal *refusal;
    size_t n_refusals, refusals_capacity;
};

/* ---- shard_rules.c ---- */
typedef struct shard_choice {
    int64_t outer, inner; /* factors: of runs, of elements of a unit */
} shard_choice;
#define SHARD_CHOICES 6

typedef enum shard_answer {
    SHARD_NO,   /* this operator can't be cut so; `why` says why */
    SHARD_YES,  /* `port` says what all its tensors are */
    SHARD_OTHER /* other units would do: `choice` */
} shard_answer;

/* A question: this input or output of the operator is cut so; what of the others? */
typedef struct shard_ask {
    onnx_node *n;
    int64_t units;
    int32_t from; /* input number, or n_in + output number */
    shard_layout at;
    shard_port *port; /* n_in + n_out */
    shard_choice choice[SHARD_CHOICES];
    int n_choices;
    const char *why;
} shard_ask;
shard_answer shard_relate(shard_ask *a);
bool shard_is(const onnx_node *n, const char *type); /* of ONNX's or com.microsoft's own */

/* What rules have in common: */
typedef shard_answer (*shard_rule)(shard_ask *a);
shard_answer shard_no(shard_ask *a, const char *why);
void shard_set(shard_ask *a, int32_t port, int32_t axis, int64_t outer, int64_t inner);
static inline const onnx_value *shard_value(const onnx_node *n, int32_t port)
{
    return port < n->n_in ? n->in[port] : n->out[port - n->n_in];
}
/* ---- shard_rules_matrix.c, shard_rules_move.c ---- */
shard_answer shard_rule_matmul(shard_ask *a);
shard_answer shard_rule_gemm(shard_ask *a);
shard_answer shard_rule_conv(shard_ask *a);
shard_answer shard_rule_conv_transpose(shard_ask *a);
shard_answer shard_rule_transpose(shard_ask *a);
shard_answer shard_rule_reshape(shard_ask *a);
shard_answer shard_rule_concat(shard_ask *a);
shard_answer shard_rule_split(shard_ask *a);
shard_answer shard_rule_slice(shard_ask *a);
shard_answer shard_rule_gather(shard_ask *a);
shard_answer shard_rule_reduce(shard_ask *a);
shard_answer shard_rule_pad(shard_ask *a);
shard_answer shard_rule_resize(shard_ask *a);
/* The first element and the end of a Slice along `axis`, in elements; false: not known, or with another step than 1. */
bool shard_slice_range(onnx_node *n, int32_t axis, int64_t *start, int64_t *end, bool *touches);

/* ---- shard_grow.c ---- */
typedef struct shard_seed {
    int32_t node, value; /* an operator whose output is cut, or else a value that is sliced */
    shard_layout at;
    int64_t units;
    bool free_entry; /* inputs of the first operator may be sliced */
    bool batch;      /* samples: inputs of the network may be sliced, other strips do not matter */
} shard_seed;
/* The best strip that begins there, in the arena; n_members 0: none, and why. */
int shard_grow(moirai_shards *s, const shard_seed *seed, shard_strip *out, const char **why);

/* ---- shard_find.c ---- */
int shard_find(moirai_shards *s);
/* What strips of all kinds have: counts, a name, a class. */
void shard_count(const moirai_shards *s, shard_strip *x);
int shard_add_strip(moirai_shards *s, shard_strip *x, util_names *taken);
int shard_refuse(moirai_shards *s, int32_t node, const char *why);

/* ---- shard_cut.c ---- */
/* Rows that pieces of a strip of rows have, [part x pieces + piece], or make, [member x pieces + piece]. */
typedef struct shard_spans {
    shard_span *own;  /* a partition: what a piece answers for */
    shard_span *have; /* and what it has, the rows that others need included */
    shard_span *made;
} shard_spans;
typedef struct shard_cut {
    int32_t strip, n_pieces;
    int64_t *size, *first; /* [piece] in units */
    int sum;               /* a moirai_shard_sum, or -1: as the caller says */
    shard_spans rows;      /* of a strip of rows */
} shard_cut;
typedef struct shard_cuts {
    shard_cut *cut;
    int32_t n;
    int32_t *of_node; /* [node] its cut + 1 */
} shard_cuts;
/* Sizes that shares are rounded to are multiples of this, however many pieces `plan` makes. */
int64_t shard_tile(int64_t units);
int shard_cuts_read(shard_cuts *out, const moirai_shards *s, const char *text, onnx_arena *arena);

/* ---- shard_rows_rules.c ---- */
typedef struct shard_window { /* by spatial axis; pads as they are, whoever found them out */
    int32_t spatial;
    int64_t extent[ONNX_MAX_RANK], stride[ONNX_MAX_RANK], begin[ONNX_MAX_RANK], end[ONNX_MAX_RANK];
} shard_window;
bool shard_is_window(const onnx_node *n);                     /* a convolution or a pool */
const char *shard_window_read(onnx_node *n, shard_window *w); /* NULL, or why it can't be said */
/* As shard_relate, where the cut is into rows, with what an input's rows are to an output's. */
shard_answer shard_rows_relate(shard_ask *a, shard_map *map);
/* Rows of an input of `rows` rows that these of the output need; none where begin >= end. */
shard_span shard_map_needs(const shard_map *map, shard_span out, int64_t rows);

/* ---- shard_rows_span.c ---- */
int shard_rows_part(const shard_strip *x, int32_t value); /* its number among the parts, or -1 */
/* Rows of all pieces; the arrays are there. False: a piece would have no row of some tensor. */
bool shard_rows_spans(const moirai_shards *s, const shard_strip *x, shard_cut *cut);
int shard_rows_take(const moirai_shards *s, const shard_strip *x, shard_cut *cut, onnx_arena *arena);

/* ---- shard_rows_find.c ---- */
int shard_rows_find(moirai_shards *s, util_names *taken, bool *in_rows); /* in_rows[node]: it is in one */

/* ---- shard_build.h has the rest ---- */

#endif
