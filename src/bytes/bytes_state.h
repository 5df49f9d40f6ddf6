/* The state shared by bytes_bound.c (bounds), block_plans.c (plans of a pair) and bytes_plan.c (plans of the whole). */
#ifndef MOIRAI_BYTES_BYTES_STATE_H
#define MOIRAI_BYTES_BYTES_STATE_H

#include <string.h>

#include "bytes/bytes.h"
#include "util/pool.h"
#include "util/util.h"
#include "pair/priced/priced.h"

#define BYTES_BLOCK_PLANS 48
#define BYTES_LEAST_PART 0.02 /* of a path in the LP solution: its pairs are refined */

typedef struct bytes_block_plan {
    pair_plan plan;
    int64_t bytes[MOIRAI_MASK_DEVICES];
} bytes_block_plan;

/* A pair under prices on bytes. */
typedef struct bytes_pair {
    pair_priced priced;
    bytes_block_plan plans[BYTES_BLOCK_PLANS];
    int32_t n_plans;
    int64_t own_length_ns; /* of the pair's own plan when own_bytes was taken */
    int64_t own_bytes[MOIRAI_MASK_DEVICES];
    int64_t searched; /* stamp of the prices at which block plans were last searched for */
} bytes_pair;

/* A path: the devices of the cuts and what happens in between. */
typedef struct bytes_path {
    double time_ns, use[MOIRAI_MASK_DEVICES]; /* bytes */
    double jump_ns;  /* of the time: what edges over blocks are late, which no bound sees; plans only */
    int32_t *device; /* of the cuts */
    int8_t *pick;    /* block plan of each block; in bytes_prices.plans only */
    double dual_ns[MOIRAI_MASK_DEVICES]; /* paths of the bound: the prices at which its pairs' values were taken */
    int64_t refined;                     /* and the refinements of pairs by then; -1: a path of plans */
    bool twin;                           /* of plans: the same devices are there as a path of the bound */
    double part;                         /* of the last LP solution */
} bytes_path;

/* Paths met so far; every combination of them that fits on average bounds what prices can reach. */
typedef struct bytes_master {
    bytes_path *path;
    size_t n, capacity;
} bytes_master;

/* Of the dynamic programme. */
typedef struct bytes_scratch {
    int8_t *from;
    int64_t *pair_cost; /* per pair, at the present prices; INT64_MAX: none */
    int8_t *plan_pick;  /* per pair: the block plan behind it */
} bytes_scratch;

/* The prices at hand. */
typedef struct bytes_now {
    int64_t price[MOIRAI_MASK_DEVICES]; /* per byte, in units */
    int64_t stamp;                      /* another one for other prices */
    bool centre;                        /* these are those of the best bound */
} bytes_now;

/* The best bound, and the way to prices that are better still. */
typedef struct bytes_search {
    double best_dual_ns[MOIRAI_MASK_DEVICES]; /* of the whole capacity, in ns: price * capacity at the best bound */
    int64_t best_ns;
    double step;     /* from the best prices towards those of the LP solution: part of the way that is trusted */
    int64_t refined; /* how often pairs of the bound's path were refined */
} bytes_search;

/* A path of plans: devices of the cuts, block plan of each block. */
typedef struct bytes_choice {
    int32_t *device;
    int8_t *picked;
} bytes_choice;

/* What edges over a block are late, about (jumps.c). */
typedef struct bytes_jumps {
    int64_t *ns;  /* [(row * K + entry) * K + exit] */
    int32_t *row; /* per block: its row, which may be its class's */
    bool counted; /* by the dynamic programme */
} bytes_jumps;

struct bytes_prices {
    pair_chain *c;
    int32_t K;
    bytes_pair *pair;      /* parallel to c->pair */
    int64_t largest_bytes; /* of an operator */
    bytes_now now;
    bytes_search search;
    bytes_master plans; /* paths of plans met so far */
    bytes_master cuts;  /* these, and paths of the bound */
    size_t n_plans_taken;
    bytes_choice at;      /* the present path */
    bytes_choice last;    /* the plan that was found last */
    bytes_choice best;    /* the shortest of all calls, by what blocks and jumps add up to */
    int64_t best_plan_ns; /* 0: none yet */
    const pair_plan **plan;
    bytes_jumps jump;
    bytes_scratch work;
    util_memory memory; /* of the arrays above */
};

/* The path as a column, with copies of the devices of its cuts and, unless NULL, of the plans of its blocks. */
int bytes_master_add(bytes_master *x, const bytes_prices *m, bytes_path path, const int32_t *device,
                     const int8_t *pick);
void bytes_master_free(bytes_master *x);
/* The fastest combination of paths whose mean bytes fit into the part `fill` of every device, and the dual value of the devices'
 * memory in it. */
int bytes_master_solve(const bytes_prices *m, bytes_master *x, double fill, double overflow_ns, double *dual_ns);

/* The prices at hand, for pairs. */
static inline pair_priced_task bytes_task(const bytes_prices *m)
{
    return (pair_priced_task){.byte_price = m->now.price, .stamp = m->now.stamp, .centre = m->now.centre};
}
/* Prices per byte, in units, from dual values of whole devices (paths.c). */
void bytes_prices_at(const bytes_prices *m, const double *dual_ns, int64_t *price);
/* Sets the path's time: what is left of its cost without its bytes. */
void bytes_path_set_time(const bytes_prices *m, double cost, const int64_t *price, bytes_path *x);
/* Time and bytes of a path of the bound, at its own prices, by what is known of its pairs by now. */
int bytes_measure_again(bytes_prices *m, bytes_path *x, int32_t threads);
/* Makes these the prices at hand. */
void bytes_set_duals(bytes_prices *m, const double *dual_ns);
/* The cheapest way through blocks first .. last of the path at hand by m->work.pair_cost and cuts at the present prices;
 * what is before and behind stays. Devices of the cuts in between go to m->at.device. INT64_MAX: there is none. */
int64_t bytes_cheapest_path(bytes_prices *m, int32_t first, int32_t last);
/* The cheapest path by what is known of the pairs' values at the present prices, in units; into m->at.device. */
int64_t bytes_bound_path(bytes_prices *m, int32_t threads);
/* What the pair's cheapest plan costs at `price`, INT64_MAX: there is none; *pick gets which it is. */
int64_t bytes_block_plan_cost(const bytes_prices *m, int64_t pair, const int64_t *price, int8_t *pick);
/* Length and bytes of a block plan; -1 is the pair's own plan. */
const int64_t *bytes_block_plan_at(const bytes_prices *m, int64_t pair, int32_t pick, int64_t *length_ns);
/* Sets jump_ns (jumps.c): a row for each block, or for each class where these would take more than `most_bytes`. */
int bytes_find_jumps(bytes_prices *m, double most_bytes);

/* Refines the pairs of the path that are not refined at these prices, and, with `solution`, those of the last LP solution;
 * true in *any if there was one. */
int bytes_refine_path(bytes_prices *m, const bytes_bound_task *job, bool solution, bool *any);

/* Look for a plan of the pair that is cheap at the present prices; changes this pair alone. */
int bytes_block_plan_add(bytes_prices *m, int32_t pair, const bytes_plan_task *job);
/* Plans of the blocks first .. last that the path at hand takes: the cheapest at the present prices. */
void bytes_pick_plans(bytes_prices *m, int32_t first, int32_t last);
/* What each pair's cheapest plan costs; paths count what edges over their blocks are late, or do not. */
void bytes_price_plans(bytes_prices *m, bool jumps);
/* Time and bytes of blocks first .. last of the path at hand, with the cuts that end them; of all of it. */
bytes_path bytes_measure(const bytes_prices *m, int32_t first, int32_t last);
bytes_path bytes_measure_path(const bytes_prices *m);
/* Anneals the path at hand from so many parts of its time on (bytes_polish.c). A path that fits and is shorter than
 * *length_ns becomes the plan that was found last. */
void bytes_polish(bytes_prices *m, const double *dual_ns, double heat, const bytes_plan_task *job, int64_t *length_ns);
static inline int64_t bytes_pair_at(const bytes_prices *m, int32_t block, int32_t entry_device, int32_t exit_device)
{
    return ((int64_t)m->c->s->block_class[block] * m->K + entry_device) * m->K + exit_device;
}
/* One path of plans in place of another. */
static inline void bytes_choose(const bytes_prices *m, bytes_choice *to, const bytes_choice *from)
{
    memcpy(to->device, from->device, sizeof *to->device * (size_t)m->c->s->n_cuts);
    memcpy(to->picked, from->picked, sizeof *to->picked * (size_t)m->c->s->n_blocks);
}
/* What edges over a block are late where it changes the device, about (jumps.c). */
static inline int64_t bytes_late_ns(const bytes_prices *m, int32_t block, int32_t entry_device, int32_t exit_device)
{
    return m->jump.ns[((int64_t)m->jump.row[block] * m->K + entry_device) * m->K + exit_device];
}
/* Number of the pair that the present path takes through a block. */
static inline int64_t bytes_pair_of(const bytes_prices *m, int32_t block)
{
    return pair_chain_on_path(m->c, block, m->at.device);
}

#endif
