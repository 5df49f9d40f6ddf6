/* The search for good prices: column generation over the pricing of price.h. */
#ifndef MOIRAI_MASTER_H
#define MOIRAI_MASTER_H

#include "place/moirai/price.h"
#include "place/moirai/stop.h"

/* So many units of price make a nanosecond in the value form. */
#define MOIRAI_PRICE_UNIT (INT64_C(1) << 18)

/* Saturates: times of hours are all alike. */
static inline int64_t moirai_price_units(int64_t ns)
{
    const int64_t most = INT64_MAX / 16;
    return ns < most / MOIRAI_PRICE_UNIT ? ns * MOIRAI_PRICE_UNIT : most;
}

typedef enum moirai_price_form {
    MOIRAI_PRICE_LENGTH, /* is a block time of at most T impossible? */
    MOIRAI_PRICE_VALUE   /* how much is block time + memory price * bytes at least, for times from least_ns to T? */
} moirai_price_form;

/* A component's schedule that the last master used, and how often. */
typedef struct moirai_kept_pattern {
    int32_t kind;
    double count;
    const int8_t *device;  /* per operator of the component */
    const int64_t *start;
} moirai_kept_pattern;

typedef struct moirai_master_task {
    moirai_pricer *pricer;       /* of the block; lent for the solve */
    const moirai_sending *how;   /* the shared tensor is sent */
    moirai_price_form form;
    int64_t length_ns;           /* T */
    int64_t least_ns;            /* value form only */
    int32_t buckets;
    int32_t n_counts;
    const moirai_count *count;
    const int64_t *memory_price; /* per device, MOIRAI_PRICE_UNIT-ths of ns per byte; NULL: none (value form only) */
    int32_t max_rounds;
    bool converge;               /* length form: go on to find theta where it is below 1 */
    const moirai_grid *start_grid;   /* prices to begin with, cells and then counts, or NULL */
    const int64_t *start_price;
    int32_t n_start_counts;
    moirai_stop stop;
} moirai_master_task;

typedef struct moirai_master_result {
    bool proven;           /* length form: T is impossible */
    int64_t value;         /* value form: the bound in units; MOIRAI_PRICE_NONE: nothing fits into T */
    double theta;          /* length form: value of the last master; above 1 means impossible */
    double proven_part;    /* length form: cost over capacity at the best prices; about what part of T they exclude */
    int32_t rounds;
    const int64_t *price;        /* the prices that prove it, cells and then counts; valid until the next solve */
    const int64_t *count_price;  /* those of the counts */
} moirai_master_result;

/* A master keeps its columns from one solve to the next, whatever the sending: one per block and pair of devices. Grids
 * have `steps` steps. */
typedef struct moirai_master moirai_master;
int moirai_master_new(moirai_master **out, const moirai_block *b, int32_t entry_device, int32_t exit_device,
                      int32_t steps);
void moirai_master_free(moirai_master *m);
int moirai_master_solve(moirai_master_result *out, moirai_master *m, const moirai_master_task *job);
/* Value form: what prices found before are worth at other prices on bytes, without a search; in units. */
int64_t moirai_master_reprice(moirai_master *m, const moirai_master_task *job, const moirai_grid *grid,
                              const int64_t *price);
/* Value form, of the last solve: the mean block time of the mix, and its mean distance from it. */
double moirai_master_length(const moirai_master *m, double *spread_ns);
/* Of the last solve: the schedules that are in the mix, *n of them; free() it. NULL and 0: out of memory. */
moirai_kept_pattern *moirai_master_mix(const moirai_master *m, int32_t *n);
/* Of the last solve: the mean number of components of `kind` with operator `op` (within the component) on `device`. */
double moirai_master_count(const moirai_master *m, int32_t kind, int32_t op, int32_t device);
/* Of the last solve: how much time readers of the shared tensor take on a receiver before the mean of its arrivals:
 * work that no plan could have done by then. */
int64_t moirai_master_arrival(const moirai_master *m, int32_t send); /* the soonest that the case allows */
double moirai_master_early(const moirai_master *m, int32_t send, double *mean_arrival_ns);
const moirai_grid *moirai_master_grid(const moirai_master *m);

#endif
