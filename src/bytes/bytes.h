/* Memory that binds: prices on bytes, for bounds and for plans. */
#ifndef MOIRAI_BYTES_BYTES_H
#define MOIRAI_BYTES_BYTES_H

#include "util/stop.h"
#include "pair/priced/priced.h"

/* What is known of the pairs of a chain under prices on bytes. */
typedef struct bytes_prices bytes_prices;

/* Of the pairs that are open by now; MOIRAI_ELIMIT where they are too many. */
int bytes_prices_new(bytes_prices **out, pair_chain *c);
void bytes_prices_free(bytes_prices *m);

typedef struct bytes_bound_task {
    int64_t upper_ns; /* of a plan that fits, or of any guess: steers the steps */
    int32_t rounds;
    int32_t buckets; /* of the prices in time */
    int32_t solves;  /* per pair and round */
    int32_t threads;
    util_stop stop;
} bytes_bound_task;

/* Raise the Lagrangian bound; returns the best in whole ns (also of earlier calls). Price changes are remembered. */
int bytes_bound(int64_t *lower_ns, bytes_prices *m, const bytes_bound_task *job);

typedef struct bytes_plan_task {
    int64_t evaluations; /* per block plan of a pair */
    int64_t upper_ns;    /* as above */
    int32_t rounds;      /* of price changes */
    int32_t searches;    /* for new block plans, in every third of the first rounds */
    uint64_t seed;
    int32_t threads;
    util_stop stop;
} bytes_plan_task;

/* The best composition that keeps to the memory: devices of the cuts and a plan for each block (both owned by m, valid
 * until the next call). *length_ns is INT64_MAX where none was found. */
int bytes_plan_find(int64_t *length_ns, const int32_t **cut_device, const pair_plan *const **block_plan,
                    bytes_prices *m, const bytes_plan_task *job);

/* For certificates: go back to the best prices on bytes and solve their path, then read what proves it. */
int bytes_settle(bytes_prices *m, const bytes_bound_task *job);
const int64_t *bytes_prices_per_byte(const bytes_prices *m); /* per device, in units */
/* What is known of a pair at these prices (priced.h). */
pair_priced *bytes_priced_at(bytes_prices *m, int32_t pair);
/* The bound in whole ns, were the pairs worth `value` (per pair, in units) at these prices. O(blocks * K^2). */
int64_t bytes_proven_ns(bytes_prices *m, const int64_t *value);

#endif
