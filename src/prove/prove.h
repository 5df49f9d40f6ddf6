/* The verifier's own view of a problem: cuts, blocks, components, and one leaf of a proof. Private to this folder,
 * which includes nothing of src/place. */
#ifndef MOIRAI_PROVE_PROVE_H
#define MOIRAI_PROVE_PROVE_H

#include <moirai/prove.h>

/* Operators between cuts: block b lies after cut b-1 and before cut b. */
typedef struct prove_cuts {
    int32_t n_cuts, *cut;
    int32_t *block_off, *block_op; /* interior operators, in topological order */
    int32_t *local;                /* scratch per operator, -1 throughout between calls */
} prove_cuts;

/* A tensor's way to one reader inside a block, both ends in local numbers. */
typedef struct prove_edge {
    int32_t from, output, to;
    int32_t tensor;  /* of the problem */
    int32_t readers; /* of that tensor in this block */
    int32_t line;    /* edges of equal transfer times and readers have equal lines */
} prove_edge;

typedef struct prove_block {
    const moirai_problem *p;
    int32_t n, entry, exit; /* local numbers; entry 0 and exit n-1, or MOIRAI_NONE */
    int32_t *op;            /* local -> operator, in topological order */
    int32_t n_edges;
    prove_edge *edge;                 /* by from, output, to */
    int32_t n_edge_lines, *edge_line; /* an edge of each line */
    int32_t n_op_lines, *op_line, *line_op;
    int32_t n_components, *component; /* per local operator, MOIRAI_NONE for the cuts */
    int32_t *component_off, *component_op;
    int32_t n_kinds, *kind_component, *kind_count; /* as the certificate says, checked */
    int32_t *tree_off, *tree_edge;                 /* per kind: its spanning tree, numbers of edges */
    int32_t shared_tensor;                         /* the entry's tensor whose receivers are listed, or MOIRAI_NONE */
} prove_block;

int prove_cuts_new(prove_cuts *c, const moirai_problem *p, int32_t n_cuts, const int32_t *cut);
void prove_cuts_free(prove_cuts *c);

int prove_block_new(prove_block *b, const moirai_problem *p, prove_cuts *c, int32_t block);
void prove_block_free(prove_block *b);
/* Copies of each other, operator by operator and edge by edge, cuts aside. */
bool prove_same_block(const prove_block *x, const prove_block *y);
int prove_components(prove_block *b);
bool prove_same_component(const prove_block *b, int32_t c, int32_t d);

/* Longest path between the cuts with transfers, entry on a and exit on z; and all of an empty block. */
int prove_path_ns(int64_t *ns, const prove_block *b, int32_t a, int32_t z);

/* How many components of `kind` have operator `op` (place in the component) on `device`; kind PROVE_ARRIVAL:
 * when the shared tensor has arrived on `device`, in ns; kind PROVE_LENGTH: the time between the cuts, in ns. */
#define PROVE_ARRIVAL (-1)
#define PROVE_LENGTH (-2)
typedef struct prove_branch {
    int32_t kind, op, device;
    int64_t least, most;
} prove_branch;

/* A leaf claims: no schedule of the block that sends the shared tensor to these receivers and keeps to these branches is
 * done within length_ns, because under its prices all tasks together pay more than all resources earn until then. What
 * the keys mean, and why that proves it: docs/certificate.md. */
typedef struct prove_leaf {
    bool fixed; /* where the shared tensor goes is part of the case; else it may go anywhere */
    bool open;  /* receivers are the first ones; others may come later */
    int32_t n_receivers, receiver[MOIRAI_MAX_DEVICES]; /* in order of arrival */
    int32_t n_branches;
    prove_branch *branch;
    bool priced;                /* has prices; else another part of the certificate speaks for it */
    int64_t length_ns, step_ns; /* claimed; a step of the grid that starts are rounded down to */
    int32_t n_steps, n_buckets,
        *bucket;               /* steps within the length; first step of each bucket, and n_steps at the end */
    int64_t *price;            /* [resource * n_buckets + bucket] */
    int64_t *branch_price;     /* per branch */
    const int64_t *byte_price; /* per device, what a byte there pays; NULL: nothing */
} prove_leaf;

int32_t prove_resources(const moirai_problem *p);
/* The least that all tasks together pay within the leaf's length, *never: they do not fit at all, *usable: no value can
 * overflow. */
typedef struct prove_cost {
    bool usable, never;
    __int128 sum;
} prove_cost;
int prove_least_cost(prove_cost *out, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf);
/* What the leaf's branches are worth at their prices, at the most. */
__int128 prove_branch_term(const prove_leaf *leaf);
/* *holds: the leaf's prices exclude its length between a and z. */
int prove_prices(bool *holds, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf);
/* The leaves' cases leave nothing out. `equals`: cases may be left out that are images of others by an exchange of equal
 * devices; not where bytes have prices, which equal devices need not share. */
bool prove_cover(const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf, int32_t n, bool equals);

/* least[k]: the least device that can be exchanged with k without changing anything between the cuts of the block:
 * times of operators, where they may run, transfers. */
void prove_equal_devices(const prove_block *b, int32_t *least);

#endif
