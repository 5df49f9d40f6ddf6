/* Prices in time: the cheapest schedule of each component alone, and what that proves about a block. */
#ifndef MOIRAI_PRICE_H
#define MOIRAI_PRICE_H

#include "place/moirai/block.h"

/* Resources: device k is k. Congestion port: sender k is K + k, receiver k is 2K + k. Congestion channel: the channel
 * from a to b is K + a * K + b. Congestion none: devices only. */
int32_t moirai_resource_count(const moirai_problem *q);

/* How the block's shared entry tensor (flow tensor) is sent around: one case of a disjunction. */
typedef struct moirai_sending {
    bool fixed;            /* false: nothing is assumed, `receiver` is not used */
    int8_t n_receivers;    /* the devices that receive it, in the order of arrival */
    int8_t receiver[MOIRAI_MAX_DEVICES];
} moirai_sending;

/* What a case assumes to lie between least and most: how many components of a kind have their operator `op` (number
 * within the component) on `device`; kind MOIRAI_ARRIVAL: the time at which the shared entry tensor has arrived on
 * `device`; kind MOIRAI_LENGTH: the block's time (value.h). */
#define MOIRAI_ARRIVAL (-1)
#define MOIRAI_LENGTH (-2)
#define MOIRAI_NO_COUNT (-3)
typedef struct moirai_count {
    int32_t kind, op, device;
    int64_t least, most;
} moirai_count;

/* A grid of steps and buckets over the time between the block's cuts. */
#define MOIRAI_MAX_BUCKETS 64
typedef struct moirai_grid {
    int64_t length_ns; /* T: the block is assumed to take no longer */
    int64_t step_ns;
    int32_t n_steps;   /* floor(T / step) + 1 */
    int32_t n_buckets;
    int32_t bucket_step[MOIRAI_MAX_BUCKETS + 1]; /* bucket i covers steps bucket_step[i] .. bucket_step[i+1]-1 */
} moirai_grid;

/* Steps of step_ns up to T. Buckets are finer near the ends, where devices wait for their first input or have sent
 * their last output. */
void moirai_grid_init(moirai_grid *grid, int64_t length_ns, int64_t step_ns, int32_t buckets);
/* Moves the boundary next to `at_ns` there: prices can then tell before from after. */
void moirai_grid_snap(moirai_grid *grid, int64_t at_ns);
int64_t moirai_bucket_ns(const moirai_grid *grid, int32_t bucket); /* its length within [0, T] */

/* A task of a component's schedule: what it holds and when. */
typedef struct moirai_use {
    int32_t r1, r2;     /* resources, -1: none */
    int64_t start_ns, ns;
    double part;        /* of the task that this component pays for */
} moirai_use;

/* A schedule of one component: one column of the master LP. */
typedef struct moirai_pattern {
    int32_t kind;       /* of component; -1 - j: the j-th sending of the shared tensor */
    int32_t n_ops;      /* of the component */
    int8_t *device;     /* per operator of the component, in its order */
    int64_t *start;     /* likewise */
    int64_t finish_ns;  /* when its last task ends */
    int32_t n_uses;
    moirai_use *use;
} moirai_pattern;

/* Working memory for pricing one block on grids of up to `max_steps` steps. */
typedef struct moirai_pricer moirai_pricer;
int moirai_pricer_new(moirai_pricer **out, const moirai_block *b, int32_t max_steps);
void moirai_pricer_free(moirai_pricer *w);

/* The block's shared entry tensor, over whose receivers a sending decides, or MOIRAI_NONE. */
int32_t moirai_block_shared_tensor(const moirai_block *b);

/* An edge of a kind's spanning tree, in local numbers. */
typedef struct moirai_tree_edge {
    int32_t producer, tensor, reader;
} moirai_tree_edge;
/* The spanning tree that prices the kind (its operators less one edges, in `edge`); returns how many. */
int32_t moirai_pricer_tree(const moirai_pricer *w, int32_t kind, moirai_tree_edge *edge);

/* Set entry and exit device, case and grid. */
void moirai_pricer_set(moirai_pricer *w, int32_t entry_device, int32_t exit_device, const moirai_sending *how,
                       const moirai_grid *grid);

/* Prices: >= 0 per resource and bucket [resource * n_buckets + bucket]; any sign per count; per byte on a device. */
typedef struct moirai_prices {
    const int64_t *resource;
    const int64_t *memory;       /* per device, or NULL */
    int32_t n_counts;
    const moirai_count *count;
    const int64_t *count_price;  /* parallel to count */
} moirai_prices;

/* The cheapest cost of everything that must be scheduled, MOIRAI_PRICE_NONE or more where nothing fits into T at all.
 * `pattern`, if not NULL, is called with cheap schedules of each kind, the cheapest for each device of the
 * last operator (valid during the call). */
#define MOIRAI_PRICE_NONE (INT64_MAX / 4)
typedef void (*moirai_pattern_fn)(void *data, const moirai_pattern *pattern);
int64_t moirai_pricer_cost(moirai_pricer *w, const moirai_prices *prices, moirai_pattern_fn pattern, void *data);
/* Time of each cell [resource * n_buckets + bucket] that sends of the shared tensor hold whenever they start within
 * what the counts allow. */
void moirai_pricer_held(moirai_pricer *w, int32_t n_counts, const moirai_count *count, double *held_ns);
/* When the shared tensor is where, by the sending and what the counts ask for; every pricing does so by itself. */
void moirai_pricer_set_arrivals(moirai_pricer *w, int32_t n_counts, const moirai_count *count);
/* When it arrives at the soonest, -1: never; as last set. */
int64_t moirai_pricer_arrival(const moirai_pricer *w, int32_t device);
/* Whether a schedule of a component, or a send, found on some grid keeps to T and to the arrivals that the counts ask
 * for. */
bool moirai_pricer_fits(moirai_pricer *w, int32_t n_counts, const moirai_count *count, const moirai_pattern *pattern);
/* Prices in units of which `unit` make a nanosecond: the least over lengths L from least_ns to the grid's of unit * L
 * less what all resources are worth until L. With the cost of the schedules it is what the block costs at least, length
 * and bytes. */
int64_t moirai_price_length(const moirai_problem *q, const moirai_grid *grid, const moirai_prices *prices, int64_t unit,
                            int64_t least_ns);
/* The most that all schedules together may pay or be paid for the counts. */
int64_t moirai_price_counts(const moirai_prices *prices);
/* The most that all schedules together may cost: sum of price * length over resources and buckets, plus what the counts
 * allow. */
int64_t moirai_price_capacity(const moirai_problem *q, const moirai_grid *grid, const moirai_prices *prices);

#endif
