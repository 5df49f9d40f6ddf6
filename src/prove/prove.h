/* What the files of the verifier share: blocks between cuts, their components, and leaves with prices; the judges of
 * other kinds of proof are declared in prove_read.h. Private to this folder, which includes nothing of the library but
 * src/util. Which statement each of them checks: the table at the end of docs/theory.md. */
#ifndef MOIRAI_PROVE_PROVE_H
#define MOIRAI_PROVE_PROVE_H

#include "prove/prove_problem.h"

/* ---- prove_block.c ---- */

/* Operators between two cuts, and the cuts. */
typedef struct prove_block {
    const prove_problem *p;
    int32_t n, entry, exit; /* local numbers; entry 0 and exit n-1, or PROVE_NONE */
    int32_t *op;            /* local -> operator, ascending */
    int32_t n_edges;
    prove_edge *edge; /* between local numbers, by from, output, to */
    int32_t n_kinds;
    struct prove_kind *kind; /* as the certificate says, checked; NULL where it says nothing */
    int32_t shared;          /* an edge of the entry's tensor whose receivers are listed, or PROVE_NONE */
    util_memory memory;
} prove_block;

/* Components of a block, which are connected without its cuts, that are copies of each other. */
typedef struct prove_kind {
    prove_block one;      /* the first of them between the cuts; readers of tensors are those of the whole block */
    int32_t first, count; /* its number, and how many there are */
    int32_t *order, *above,
        *edge; /* its spanning tree: operators, parents first; of each its parent, and the edge to it */
} prove_kind;

/* Of operators op[0 .. n), ascending (NULL: the first n); the first is the entry, the last the exit, if so said. To be freed also after
 * a failure. */
int prove_block_new(prove_block *b, const prove_problem *p, int32_t n, const int32_t *op, bool entry, bool exit);
void prove_block_free(prove_block *b);
/* Behind the last edge of the packet that begins with edge `first`: what one transfer to a device serves, the edges of a
 * tensor, or with flow edge a single one. */
int32_t prove_packet_end(const prove_block *b, int32_t first);
/* Whether `to` reads what `from` makes. */
bool prove_reads(const prove_block *b, int32_t from, int32_t to);
/* Copies of each other, operator by operator and edge by edge, cuts aside. */
bool prove_same_block(const prove_block *x, const prove_block *y);
/* Longest paths between the cuts with transfers, [a * K + z]: entry on a and exit on z, 0 where there is none; and all of an empty
 * block. O(E K^3). */
int prove_paths(int64_t *ns, const prove_block *b);
/* Longest paths to the start of each operator on each device or, backwards, from its finish on, [local * K + device], where
 * operator i may be on the devices may[i] (NULL: on all that have a time); beginning with what is there. */
void prove_reach(const prove_block *b, const uint64_t *may, int64_t *path, bool forwards);
/* The greatest over operators of the least over their devices of head + time + tail (NULL: none). */
int64_t prove_longest(const prove_block *b, const uint64_t *may, const int64_t *head, const int64_t *tail);

/* Which components of the block are copies of each other, as the certificate numbers them; one number each. */
int prove_kinds(prove_block *b, const int32_t *kind, size_t n);
/* A spanning tree of a kind: three numbers for each edge, the places of two operators among those of the component, and
 * between them the output. */
int prove_span(prove_block *b, int32_t kind, const int32_t *number, size_t n);
/* Leaves may list who receives this output of the entry. */
int prove_share(prove_block *b, int32_t output);

static inline bool prove_is_cut(const prove_block *b, int32_t i)
{
    return i == b->entry || i == b->exit;
}

/* How many operators are between the cuts, and which of the local numbers is the first of them. */
static inline int32_t prove_interior(const prove_block *b)
{
    return b->n - (b->entry >= 0) - (b->exit >= 0);
}

static inline int32_t prove_first(const prove_block *b)
{
    return b->entry >= 0;
}

/* Time of a local operator, of which the cuts have none. */
static inline int64_t prove_op_ns(const prove_block *b, int32_t i, int32_t k)
{
    return prove_is_cut(b, i) ? 0 : b->p->time[(int64_t)b->op[i] * b->p->K + k];
}

static inline int64_t prove_edge_ns(const prove_block *b, int32_t e, int32_t k, int32_t l)
{
    return b->edge[e].ns[k * b->p->K + l];
}

/* Devices of a local operator where the cuts are on a and z. */
static inline uint64_t prove_allowed(const prove_block *b, int32_t i, int32_t a, int32_t z)
{
    if (i == b->entry)
        return UINT64_C(1) << a;
    return i == b->exit ? UINT64_C(1) << z : b->p->may[b->op[i]];
}

/* Whether edge e carries output `output` of the entry. */
static inline bool prove_is_sent(const prove_block *b, int32_t e, int32_t output)
{
    return b->entry >= 0 && b->edge[e].from == b->entry && b->edge[e].output == output;
}

/* The first such edge, or PROVE_NONE. */
static inline int32_t prove_first_sent(const prove_block *b, int32_t output)
{
    for (int32_t e = 0; e < b->n_edges; e++)
        if (prove_is_sent(b, e, output))
            return e;
    return PROVE_NONE;
}

/* Whether it carries the tensor whose receivers leaves list. */
static inline bool prove_is_shared(const prove_block *b, int32_t e)
{
    return b->shared >= 0 && prove_is_sent(b, e, b->edge[b->shared].output);
}

/* Things that serve one task at a time: devices, then send and receive ports, or channels. */
static inline int32_t prove_resources(const prove_problem *p)
{
    return p->congestion == PROVE_PORT ? 3 * p->K : p->congestion == PROVE_CHANNEL ? p->K + p->K * p->K : p->K;
}

/* Resources that one task holds; -1: none. */
typedef struct prove_held {
    int32_t r[2];
} prove_held;

/* What a transfer between two devices holds; where an end is open (-1), what it holds for certain. */
static inline prove_held prove_held_by(const prove_problem *p, int32_t from, int32_t to)
{
    if (p->congestion == PROVE_PORT)
        return (prove_held){{from < 0 ? -1 : p->K + from, to < 0 ? -1 : 2 * p->K + to}};
    bool channel = p->congestion == PROVE_CHANNEL && from >= 0 && to >= 0;
    return (prove_held){{channel ? p->K + from * p->K + to : -1, -1}};
}

/* ---- leaves ---- */

/* How many components of `kind` have operator `op` (its place among theirs) on `device`; kind PROVE_ARRIVAL:
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
    int32_t n_receivers, receiver[PROVE_MASK_DEVICES]; /* in order of arrival */
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

#define PROVE_TOO_LATE ((__int128)1 << 125) /* cost of what does not fit into the length */
/* The least that all tasks together pay within the leaf's length. */
int prove_least_cost(__int128 *sum, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf);
/* What the leaf's branches are worth at their prices, at the most. */
__int128 prove_branch_term(const prove_leaf *leaf);
/* *holds: the leaf's prices exclude its length between a and z. */
int prove_prices(bool *holds, const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf);
/* The leaves' cases leave nothing out; false also where the time is up. `equals`: cases may be left out that are images of others by an exchange of equal
 * devices; not where bytes have prices, which equal devices need not share. */
bool prove_cover(const prove_block *b, int32_t a, int32_t z, const prove_leaf *leaf, int32_t n, bool equals);

/* least[k]: the least device that can be exchanged with k without changing anything between the cuts of the block:
 * times of operators, where they may run, transfers. */
void prove_equal_devices(const prove_block *b, int32_t *least);

#endif
