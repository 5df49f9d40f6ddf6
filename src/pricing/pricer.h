/* Prices in time: the cheapest schedule of each component alone, and what that proves about a block. */
#ifndef MOIRAI_PRICING_PRICER_H
#define MOIRAI_PRICING_PRICER_H

#include <string.h>

#include "decompose/block.h"
#include "schedule/resources.h"
#include "util/stop.h"

/* ---- cases ---- */

/* How the block's shared entry tensor (flow tensor) is sent around: one case of a disjunction. */
typedef struct pricing_sending {
    bool fixed;         /* false: nothing is assumed, `receiver` is not used */
    bool open;          /* these are the first; others may receive it later */
    int8_t n_receivers; /* the devices that receive it, in the order of arrival */
    int8_t receiver[MOIRAI_MASK_DEVICES];
} pricing_sending;

static inline bool pricing_same_sending(const pricing_sending *a, const pricing_sending *b)
{
    return a->fixed == b->fixed && a->open == b->open && a->n_receivers == b->n_receivers &&
           !memcmp(a->receiver, b->receiver, (size_t)a->n_receivers);
}

/* Some device receives it: what prices leave open there is when, a matter of branches, not of buckets. */
static inline bool pricing_is_sent(const pricing_sending *how)
{
    return how->fixed && how->n_receivers > 0;
}

/* What a case of the branch and bound was divided on. */
typedef enum pricing_branch_on {
    PRICING_NO_BRANCH, /* nothing left to divide on */
    PRICING_NUMBER,    /* how many components of `kind` have their operator `op` (number within it) on `device` */
    PRICING_ARRIVAL,   /* when the shared entry tensor has arrived on `device` */
    PRICING_LENGTH,    /* how long the block takes (pair/priced/priced.h) */
    PRICING_RECEIVER   /* who is the next to receive the shared tensor, or nobody: a part for each */
} pricing_branch_on;

/* It lies between least and most. */
typedef struct pricing_branch {
    pricing_branch_on on;
    int32_t kind, op, device;
    int64_t least, most;
} pricing_branch;

/* A case: plans that send the shared tensor so, and keep to these ranges. */
typedef struct pricing_case {
    const pricing_sending *how;
    int32_t n_branches;
    const pricing_branch *branch;
    bool apart; /* equal devices are told apart, as prices on bytes do; else one may be priced for all */
} pricing_case;

/* ---- grids (grid.c) ---- */

/* A grid of steps and buckets over the time between the block's cuts. */
#define PRICING_MAX_BUCKETS 64
typedef struct pricing_grid {
    int64_t length_ns; /* T: the block is assumed to take no longer */
    int64_t step_ns;
    int32_t n_steps; /* floor(T / step) + 1 */
    int32_t n_buckets;
    int32_t bucket_step[PRICING_MAX_BUCKETS + 1]; /* bucket i covers steps bucket_step[i] .. bucket_step[i+1]-1 */
} pricing_grid;

/* Steps of step_ns up to T. Buckets are finer near the ends, where devices wait for their first input or have sent
 * their last output. */
void pricing_grid_init(pricing_grid *grid, int64_t length_ns, int64_t step_ns, int32_t buckets);
/* Moves the boundary next to `at_ns` there: prices can then tell before from after. Boundaries in the mask `kept` stay,
 * and this one is added to it. Nothing is done where all of them are kept. */
void pricing_grid_snap(pricing_grid *grid, uint64_t *kept, int64_t at_ns);
int64_t pricing_bucket_ns(const pricing_grid *grid, int32_t bucket); /* its length within [0, T] */

/* A task of a component's schedule: what it holds and when. */
typedef struct pricing_use {
    int32_t r1, r2; /* resources, -1: none */
    int64_t start_ns, ns;
    double part; /* of the task that this component pays for */
} pricing_use;

/* Adds the time of each bucket of resource r that the task takes, times its part, to `cell` [resource * n_buckets + bucket];
 * with `per_ns` (likewise), divided by that. */
void pricing_grid_spread(const pricing_grid *grid, int32_t r, const pricing_use *use, const double *per_ns,
                         double *cell);

/* Prices on a grid that are kept, cells and then branches: the proof behind a bound, or where the next solve begins. */
typedef struct pricing_duals {
    pricing_grid grid;
    int64_t *price;     /* NULL: none */
    int32_t n_branches; /* that have prices: the first so many of the case */
} pricing_duals;

/* A copy of these in place of *to. MOIRAI_EFAIL: *to is as it was. */
int pricing_duals_set(pricing_duals *to, const moirai_problem *q, const pricing_duals *from);

/* ---- schedules of components ---- */

/* A schedule of one component: one column of the master LP. */
typedef struct pricing_column {
    int32_t kind;      /* of component; -1 - j: the j-th sending of the shared tensor */
    int32_t n_ops;     /* of the component */
    int8_t *device;    /* per operator of the component, in its order */
    int64_t *start;    /* likewise */
    int64_t finish_ns; /* when its last task ends */
    int32_t n_uses;
    pricing_use *use;
} pricing_column;

/* Working memory for pricing one block on grids of up to `max_steps` steps. */
typedef struct pricing_pricer pricing_pricer;
/* MOIRAI_ELIMIT: one pricing would take too long, or too much memory. */
int pricing_pricer_new(pricing_pricer **out, const decompose_block *b, int32_t max_steps);
void pricing_pricer_free(pricing_pricer *w);

/* An edge of a kind's spanning tree, in local numbers. */
typedef struct pricing_tree_edge {
    int32_t producer, tensor, reader;
} pricing_tree_edge;
/* The spanning tree that prices the kind (its operators less one edges, in `edge`); returns how many. */
int32_t pricing_pricer_tree(const pricing_pricer *w, int32_t kind, pricing_tree_edge *edge);

/* The resource that is priced for resource r in the case: r itself, or that of an equal device. */
int32_t pricing_pricer_stand_in(const pricing_pricer *w, int32_t r);
/* The number of resources that it stands for, itself included; 0: it has a stand-in. */
int32_t pricing_pricer_copies(const pricing_pricer *w, int32_t r);

/* The case and the grid of the pricings to come; both stay with the caller. When the shared tensor is where follows from
 * the sending and from what the branches ask for. */
void pricing_pricer_set(pricing_pricer *w, const pricing_case *at, const pricing_grid *grid);

/* Prices: >= 0 per resource and bucket [resource * n_buckets + bucket], then any sign per branch of the case; per byte on
 * a device. */
typedef struct pricing_prices {
    const int64_t *resource;
    const int64_t *memory; /* per device, or NULL */
    const util_stop *stop; /* where it comes first a pricing ends with a cost that proves nothing; NULL: never */
} pricing_prices;

/* The cheapest cost of everything that must be scheduled, PRICING_NONE or more where nothing fits into T at all.
 * `column`, if not NULL, is called with cheap schedules of each kind, the cheapest for each device of the
 * last operator (valid during the call). */
#define PRICING_NONE (INT64_MAX / 4)
typedef void (*pricing_column_fn)(void *data, const pricing_column *column);
int64_t pricing_pricer_cost(pricing_pricer *w, const pricing_prices *prices, pricing_column_fn column, void *data);
/* Time of each cell [resource * n_buckets + bucket] that sends of the shared tensor hold whenever they start within
 * what the case allows. */
void pricing_pricer_held(pricing_pricer *w, double *held_ns);
/* When it arrives at the soonest, -1: never; and at the latest. */
int64_t pricing_pricer_arrival(const pricing_pricer *w, int32_t device);
int64_t pricing_pricer_arrived(const pricing_pricer *w, int32_t device);
/* Whether a schedule of a component, or a send, found on some grid keeps to T and to the arrivals of the case. */
bool pricing_pricer_fits(const pricing_pricer *w, const pricing_column *column);
/* Prices in units of which `unit` make a nanosecond: the least over lengths L from least_ns to the grid's of unit * L
 * less what all resources are worth until L. With the cost of the schedules it is what the block costs at least, length
 * and bytes. */
int64_t pricing_length_term(const moirai_problem *q, const pricing_grid *grid, const int64_t *price, int64_t unit,
                            int64_t least_ns);
/* The most that all schedules together may pay or be paid for the branches. */
int64_t pricing_branch_term(const pricing_case *at, const int64_t *branch_price);
/* The most that all schedules together may cost: sum of price * length over resources and buckets. */
int64_t pricing_capacity(const moirai_problem *q, const pricing_grid *grid, const int64_t *price);

#endif
