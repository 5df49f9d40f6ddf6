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

typedef enum pricing_form {
    PRICING_LENGTH_FORM, /* is a block time of at most T impossible? */
    PRICING_PRICED_FORM  /* how much is block time + memory price * bytes at least, for times from least_ns to T? */
} pricing_form;

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
    pricing_form form;
    int64_t length_ns; /* T */
    int64_t least_ns;  /* priced form only */
    int32_t buckets;
    const int64_t *memory_price; /* per device, units per byte; NULL: none (priced form only) */
    int32_t max_rounds;
    int64_t ceiling;            /* priced form, in units: more need not be proven; 0: not known */
    bool converge;              /* length form: go on to find theta where it is below 1 */
    double open;                /* near enough: this part of what the LP leaves open below length or ceiling */
    const pricing_duals *start; /* prices to begin with; NULL, or without prices: those of the last solve */
    util_stop stop;
} pricing_master_task;

typedef struct pricing_master_result {
    bool proven;        /* length form: T is impossible */
    int64_t value;      /* priced form: the bound in units; PRICING_NONE: nothing fits into T */
    double theta;       /* length form: value of the last master; above 1 means impossible */
    double proven_part; /* length form: cost over capacity at the best prices; about what part of T they exclude */
    int32_t rounds;
    const int64_t *price; /* the prices that prove it, cells and then branches; valid until the next solve */
} pricing_master_result;

/* A master keeps its columns from one solve to the next, whatever the sending: one per block and pair of devices. Grids
 * have `steps` steps. */
typedef struct pricing_master pricing_master;
int pricing_master_new(pricing_master **out, const decompose_block *b, int32_t steps);
void pricing_master_free(pricing_master *m);
int pricing_master_solve(pricing_master_result *out, pricing_master *m, const pricing_master_task *job);
/* Priced form: what prices found before are worth at other prices on bytes, without a search; in units. */
int64_t pricing_master_reprice(pricing_master *m, const pricing_master_task *job, const pricing_grid *grid,
                               const int64_t *price);
/* Priced form, of the last solve: the mean block time of the LP solution, and its mean distance from it. */
double pricing_master_length(const pricing_master *m, double *spread_ns);
/* Of the last solve: the schedules that are in the LP solution, *n of them; free() it. NULL and 0: out of memory. */
pricing_chosen_column *pricing_master_solution(const pricing_master *m, int32_t *n);
/* Of the last solve: the mean number of components of `kind` with operator `op` (within the component) on `device`. */
double pricing_master_number(const pricing_master *m, int32_t kind, int32_t op, int32_t device);
/* When the shared tensor arrives by this send: the soonest and the latest that the case allows. */
int64_t pricing_master_arrival(const pricing_master *m, int32_t send);
int64_t pricing_master_arrived(const pricing_master *m, int32_t send);
/* Of the last solve: how much time readers of the shared tensor take on a receiver before the mean of its arrivals:
 * work that no plan could have done by then. */
double pricing_master_early(const pricing_master *m, int32_t send, double *mean_arrival_ns);
const pricing_grid *pricing_master_grid(const pricing_master *m);

#endif
