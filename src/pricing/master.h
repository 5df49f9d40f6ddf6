/* The search for good prices: column generation over the pricing of pricer.h. */
#ifndef MOIRAI_PRICING_MASTER_H
#define MOIRAI_PRICING_MASTER_H

#include "pricing/pricer.h"
#include "util/stop.h"

/* A time in units of price, of which `unit` make a nanosecond (decompose_cuts). Saturates: plans that are longer than
 * any good one are all alike. */
static inline int64_t pricing_units(int64_t unit, int64_t ns)
{
    const int64_t most = INT64_MAX / 16;
    return ns < most / unit ? ns * unit : most;
}

/* A component's schedule that the last master used, and how often. */
typedef struct pricing_chosen_column {
    int32_t kind;
    double times;         /* how often it is chosen */
    const int8_t *device; /* per operator of the component */
    const int64_t *start;
} pricing_chosen_column;

typedef struct pricing_master_task {
    pricing_pricer *pricer; /* of the block; lent for the solve */
    pricing_case at;
    int64_t least_ns, length_ns; /* block times: T is the longest */
    int32_t buckets;
    const int64_t *memory_price; /* per device, units per byte; NULL: none */
    int32_t max_rounds;
    int64_t ceiling;            /* in units: more need not be proven; 0: not known */
    double open;                /* near enough: this part of what the LP leaves open below the ceiling */
    const pricing_duals *start; /* prices to begin with; NULL, or without prices: those of the last solve */
    util_stop stop;
} pricing_master_task;

typedef struct pricing_master_result {
    int64_t value; /* block time + memory price * bytes at least, in units; PRICING_NONE: nothing fits into T */
    int32_t rounds;
    const int64_t *price; /* the prices that prove it, cells and then branches; valid until the next solve */
} pricing_master_result;

/* A master keeps its columns from one solve to the next, whatever the sending: one per block and pair of devices. Grids
 * have `steps` steps. */
typedef struct pricing_master pricing_master;
int pricing_master_new(pricing_master **out, const decompose_block *b, int32_t steps);
void pricing_master_free(pricing_master *m);
int pricing_master_solve(pricing_master_result *out, pricing_master *m, const pricing_master_task *job);
/* What prices found before are worth at other prices on bytes, without a search; in units. */
int64_t pricing_master_reprice(pricing_master *m, const pricing_master_task *job, const pricing_grid *grid,
                               const int64_t *price);
/* Of the last solve: the mean block time of the LP solution, and its mean distance from it. */
double pricing_master_length(const pricing_master *m, double *spread_ns);
/* Of the last solve: the schedules that are in the LP solution, *n of them; free() it. NULL and 0: out of memory. */
pricing_chosen_column *pricing_master_solution(const pricing_master *m, int32_t *n);
/* Of the last solve: the mean number of components of `kind` with operator `op` (within the component) on `device`. */
double pricing_master_number(const pricing_master *m, int32_t kind, int32_t op, int32_t device);
/* Of the last solve: how much time readers of the shared tensor take on a receiver before the mean of its arrivals:
 * work that no plan could have done by then. */
double pricing_master_early(const pricing_master *m, int32_t send, double *mean_arrival_ns);
const pricing_grid *pricing_master_grid(const pricing_master *m);

#endif
