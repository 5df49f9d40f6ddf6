/* Plans and bounds block by block: what is known of the chain of blocks, for the files that refine it.
 *
 * blocks.c has the search, batch.c chooses what is refined next, open.c opens pairs and gives them their first levels,
 * compose.c makes plans of the whole, within_memory.c goes on at prices on bytes where memory binds, layers.c
 * anneals large blocks each by itself. */
#ifndef MOIRAI_PLACE_MOIRAI_BLOCKS_H
#define MOIRAI_PLACE_MOIRAI_BLOCKS_H

#include "bytes/bytes.h"
#include "pair/pair_refine.h"
#include "place/moirai/incumbent/incumbent.h"

#define BLOCKS_BATCH 4           /* pairs that are refined side by side, whatever the number of threads */
#define BLOCKS_MEMORY_BUCKETS 14 /* of the prices in time where memory binds */

/* The pairs to refine next. */
typedef struct blocks_batch {
    pair_state *pair[BLOCKS_BATCH];
    pair_refine_task task[BLOCKS_BATCH];
    int32_t n;
    int64_t *weight; /* per pair: how much of the gap hangs on it */
    int64_t *times;  /* per pair: how often the bound's path uses it */
} blocks_batch;

typedef struct blocks {
    incumbent *in;
    pair_chain *c;
    moirai_sim *sim;
    int32_t *cut_device;   /* of the bound's path */
    int32_t *plan_device;  /* of the plans' path */
    int32_t *op_device;    /* of a composed plan */
    moirai_task *order;    /* and its order */
    int64_t *index;        /* scratch: pairs of a path */
    const int64_t *opened; /* pairs whose first level is due */
    double *share;         /* per class: of the makespan, against the largest; before the first level */
    int32_t n_large;       /* classes above SMALL_SHARE */
    bool many;             /* classes of blocks: the first levels of all their pairs take long */
    blocks_batch batch;
    int32_t top_level; /* of refinement, by the effort */
    int32_t batches_left;
    bytes_prices *memory; /* NULL: memory does not bind, as far as is known */
    int32_t layer_rounds; /* of annealing layers */
    int32_t *annealed;    /* per pair: runs so far */
    util_memory arrays;
} blocks;

/* The chain of blocks of the incumbent's problem between those cuts that `chosen` marks (per operator; NULL: all), and working memory.
 * MOIRAI_ELIMIT: too many pairs. */
int blocks_new(blocks **out, incumbent *in, const bool *chosen);
void blocks_free(blocks *x);

/* ---- blocks.c ---- */
/* Refines pairs of the chain and composes their plans until the gap is closed, the effort used up or the time over. */
int blocks_improve(blocks *x);

/* ---- batch.c ---- */
/* One batch; *done where nothing is left to refine, or no effort; *found: some plan is shorter. */
int blocks_refine_batch(blocks *x, bool *done, bool *found);
/* How often the path of `device` goes through each pair. */
void blocks_count_path(const blocks *x, int64_t *times, const int32_t *device);
/* plan_device is where the best plan has the cuts. */
void blocks_follow_best(blocks *x);
/* Goes on with twice the effort where there is time (incumbent_grow). */
bool blocks_grow(blocks *x);

/* ---- open.c ---- */
/* Pairs to begin with: all of them where they are few. */
int blocks_open_pairs(blocks *x);
/* What the blocks of each class take of the makespan, against the class that takes most. */
void blocks_set_shares(blocks *x);
/* First levels of all that is open. */
int blocks_first_levels(blocks *x);
/* The bound's path goes through pairs with a first level alone in the end; those it meets without get it. *any: there
 * were such. */
int blocks_open_bound_path(blocks *x, bool *any);

/* ---- compose.c ---- */
/* Devices of all operators and one order of all tasks, from a path of devices over the cuts and the pairs' plans; `block_plan`
 * (n_blocks, may be NULL) overrides the pair's plan of single blocks. `order` needs room for place_compose_capacity tasks;
 * returns how many were written. */
int64_t place_compose_capacity(const moirai_problem *p);
int64_t place_compose(const pair_chain *c, const int32_t *cut_device, const pair_plan *const *block_plan,
                      int32_t *op_device, moirai_task *order);
/* The best chain of block plans as one plan; kept if it fits and is better. The path of the best plan stays in
 * plan_device. */
int blocks_compose(blocks *x);
/* The bound by the chain's path of least bounds, which stays in cut_device. */
void blocks_raise_bound(blocks *x);

/* ---- within_memory.c ---- */
/* Where memory binds: plans and bound at prices on bytes, each at what the other has found, until the gap is closed or
 * stays. */
int blocks_improve_within_memory(blocks *x);

/* ---- layers.c ---- */
/* Whether most operators lie in large blocks, none of which has most of them; and whether they lie in copies of such. */
bool blocks_have_layers(const blocks *x);
bool blocks_repeat(const blocks *x);
/* Anneals large blocks, copies of each other once, and composes them, in this part of the time that is left; it can be
 * gone on with. */
int blocks_anneal_layers(blocks *x, double part);

#endif
