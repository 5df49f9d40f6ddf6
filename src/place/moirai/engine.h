/* The engine of the placer `moirai`: what it knows, and the steps that share it. */
#ifndef MOIRAI_PLACE_MOIRAI_ENGINE_H
#define MOIRAI_PLACE_MOIRAI_ENGINE_H

#include <moirai/placer.h>

#include "bound/certificate.h"
#include "bound/intervals/interval_chain.h"
#include "pair/pair_refine.h"
#include "place/moirai/whole_cross.h"

#define ENGINE_BATCH 4           /* pairs that are refined side by side, whatever the number of threads */
#define ENGINE_MEMORY_BUCKETS 14 /* of the prices in time where memory binds */

typedef struct engine {
    const moirai_problem *p;
    const moirai_place_options *o;
    double begun;
    util_stop stop;
    pair_chain *c;
    moirai_sim *sim;
    moirai_plan *best;
    int64_t lower_ns;
    int64_t certified_ns; /* of it, by the certificate that was written */
    int32_t *cut_device;  /* of the bound's path */
    int32_t *plan_device; /* of the plans' path */
    int32_t *op_device;
    moirai_task *order;
    int64_t *weight;     /* per pair: how much of the gap hangs on it */
    int64_t *times;      /* per pair: how often the bound's path uses it */
    int64_t *plan_times; /* and how often the plan's does */
    int32_t n_large;     /* classes above SMALL_SHARE */
    double *share;       /* per class: of the makespan, against the largest; before the first level */
    pair_refine_task batch[ENGINE_BATCH];
    int32_t n_batch;
    double effort;  /* that of the budget; doubled whenever it is used up and there is a time limit with time left */
    int32_t passes; /* how often it was doubled */
    int64_t *index; /* scratch: pairs of a path */
    const int64_t *opened; /* pairs whose first level is due */
    int32_t top_level;     /* of refinement, by the effort */
    int32_t batches_left;
    char why[512];     /* what a heuristic said that found no plan that fits, or "" */
    bool memory_binds; /* the fastest chain does not fit */
    bytes_prices *memory;
    bool layers_differ;   /* blocks are no copies of each other, and of a size for programmes */
    bool programmes;      /* blocks are raised by programmes before prices */
    bool keep_programmes; /* for their cases */
    bool begun_by_programmes;
    int32_t again;          /* how often all was tried once more, each time with twice the effort and another seed */
    int32_t whole_rounds;   /* of annealing so far */
    int32_t copy_rounds;    /* of annealing layers that repeat */
    int32_t patience;       /* of annealing by windows: doubled where it gains nothing; 0: 1 */
    bool hot_due;           /* the next of them is to be a hot one */
    place_states states;    /* that these have ended with */
    double whole_pace;      /* of the last one: evaluations of each chain in a second; 0: not known */
    bound_contest *contest; /* chains of intervals; NULL: none yet */
    bound_interval_chain *intervals; /* the best of them; NULL: none that has raised the bound */
    bound_windows windows;           /* heads and tails from all intervals; head NULL: none */
    pair_chain *pool;                /* the whole as one block, raised by the pool of all devices; NULL: not raised */
    int64_t work;
    decompose_spine *spine; /* NULL: not needed */
    struct engine *inner;   /* the search on the spine */
    struct engine *outer;   /* of whose spine this is the search */
} engine;

/* ---- engine.c: what is known ---- */

/* NULL: out of memory. The time of the budget runs from here on. */
engine *engine_new(const moirai_problem *p, const moirai_place_options *o);
void engine_free(engine *x);
/* The chain of blocks and working memory: what everything but the starts needs. */
int engine_prepare(engine *x);
bool engine_stopped(const engine *x);
/* Stops after this part of the time that is left; without a limit there stays none. */
util_stop engine_part(const engine *x, double part);
/* News for the log; `letter` says who found the plan, ' ' nobody. Silent within a search on a spine. */
void engine_tell(engine *x, char letter, const char *note);
/* A proven bound; one of a spine is one of the whole. INT64_MAX and what is no better are passed over. */
void engine_take_bound(engine *x, int64_t lower_ns);
/* Takes ownership of plan and keeps it if it is the best. One of a spine becomes one of the whole as well. */
int engine_offer(engine *x, moirai_plan *plan, char letter);
/* Offers the simulator's last run if it is of use; notes where it does not fit the memory. */
int engine_take_simulated(engine *x, int64_t makespan_ns, char letter);
/* How far the best plan can be from the optimum, as a share of it; 1 without a plan. */
double engine_gap(const engine *x);

/* Goes on with twice the effort: true where there is a time limit, time left and a gap to close. */
bool engine_grow(engine *x);

/* ---- blocks.c ---- */
/* Refines pairs of the chain and composes their plans until the gap is closed, the effort used up or the time over. */
int engine_improve_blocks(engine *x);

/* The best chain of block plans as one plan; kept if it fits and is better. The path of the best plan stays in
 * plan_device. */
int engine_compose(engine *x);
/* Pairs to begin with: all of them where they are few. */
int engine_open_pairs(engine *x);

/* ---- programmes.c ---- */
/* Whether most operators, of the spine where there is one, are in blocks of a size for programmes that are no copies of
 * each other. O(V + E) besides the spine. */
int engine_layers_differ(bool *yes, const engine *x);
/* One static programme for each class of blocks. x->programmes: they are of use, and pairs get theirs before prices. */
int engine_begin_with_programmes(engine *x);
/* Whether the pair should have one; and it. */
bool engine_wants_programme(const engine *x, const pair_state *y);
int engine_raise_static(const engine *x, pair_state *y);
/* Plans for the pairs of the plan's path, cases for those of the bound's, plans again. */
int engine_refine_by_programmes(engine *x);
/* Whether cases of its programme may raise the pair; twice as many as it has. */
bool engine_wants_cases(const engine *x, const pair_state *y);
int engine_raise_cases(const engine *x, pair_state *y);

/* ---- copies.c ---- */
/* Anneals the blocks of layers that repeat, each once, and composes them, in this part of the time that is left; it can
 * be gone on with. *any: there are such. */
int engine_anneal_copies(engine *x, bool *any, double part);
/* Where the best plan has been found layer by layer: what one layer has found for all of them. */
int engine_share_copies(engine *x);

/* ---- copies_share.c ---- */
/* Pairs of the class take what the best plan's layers and each other's plans are better at; nothing is composed. */
int engine_share_class(engine *x, int32_t class_);

/* ---- whole.c ---- */
/* Anneals the whole problem from the best plan, in at most so many rounds and this part of the time that is left. */
int engine_anneal_whole(engine *x, int32_t rounds, double part);
/* Raises the bound by the static programme of the whole where that is small, in this part of the time that is left. */
int engine_raise_by_programme(engine *x, double part);
/* Raises the bound by the pool of all devices over the whole, in this part of the time that is left. */
int engine_raise_by_pool(engine *x, double part);
/* What the pool is asked for: more than the bound, up to the plan, in this part of the time that is left. */
pair_pool_task engine_pool_task(const engine *x, double part);
/* The same within the windows that chains of intervals have left, where they were raised. */
int engine_raise_by_windows(engine *x, double part);
/* The part of the operators in components of blocks that are too large for prices and for the search; O(V + E). */
int engine_weakness(double *part, const engine *x);
/* Raises the bound by chains of intervals, in this part of the time that is left. */
int engine_raise_by_intervals(engine *x, int32_t chains, int32_t tries, double part);

/* ---- interval_plans.c ---- */
/* Plans from chains of intervals, in this part of the time that is left. */
int engine_compose_intervals(engine *x, double part);

/* ---- within_memory.c ---- */
/* Where memory binds: plans and bound at prices on bytes, each at what the other has found, until the gap is closed or
 * stays. */
int engine_improve_within_memory(engine *x);

#endif
