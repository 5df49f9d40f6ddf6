/* Prices in time: the cheapest schedule of each component alone, and what that proves about a block. */
#ifndef MOIRAI_PRICING_PRICER_H
#define MOIRAI_PRICING_PRICER_H

#include "pricing/branch.h"
#include "pricing/grid.h"
#include "util/stop.h"

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

/* Whether equal devices may be priced as one where prices are equal (from the start: yes). Not for prices on bytes. */
void pricing_pricer_join(pricing_pricer *w, bool join);
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
} pricing_prices;

/* From now on pricings end early when `stop` says so (NULL: never), with a cost that proves nothing. */
void pricing_pricer_limit(pricing_pricer *w, const util_stop *stop);

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
