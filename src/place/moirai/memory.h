/* Memory that binds: prices on bytes, for bounds and for plans. */
#ifndef MOIRAI_MEMORY_H
#define MOIRAI_MEMORY_H

#include "place/moirai/compose.h"
#include "place/moirai/stop.h"
#include "place/moirai/value.h"

/* What is known of the pairs of a chain under prices on bytes. */
typedef struct moirai_memory_prices moirai_memory_prices;

int moirai_memory_new(moirai_memory_prices **out, moirai_chain *c);
void moirai_memory_free(moirai_memory_prices *m);

typedef struct moirai_memory_task {
    int64_t upper_ns; /* of a plan that fits, or of any guess: steers the steps */
    int32_t rounds;
    int32_t buckets; /* of the prices in time */
    int32_t looks;   /* per pair and round */
    int32_t threads;
    moirai_stop stop;
} moirai_memory_task;

/* Raise the Lagrangian bound; returns the best in whole ns (also of earlier calls). Price changes are remembered. */
int moirai_memory_bound(int64_t *lower_ns, moirai_memory_prices *m, const moirai_memory_task *job);

typedef struct moirai_memory_search {
    int64_t evaluations; /* per option of a pair */
    int64_t upper_ns;    /* as above */
    int32_t rounds;      /* of price changes */
    int32_t searches;    /* for new options, in every third of the first rounds */
    uint64_t seed;
    int32_t threads;
    moirai_stop stop;
} moirai_memory_search;

/* The best composition that keeps to the memory: devices of the cuts and a plan for each block (both owned by m, valid
 * until the next call). *length_ns is INT64_MAX where none was found. */
int moirai_memory_plan(int64_t *length_ns, const int32_t **cut_device, const moirai_block_plan *const **block_plan,
                       moirai_memory_prices *m, const moirai_memory_search *job);

/* For certificates: go back to the best prices on bytes and solve their path, then read what proves it. */
int moirai_memory_settle(moirai_memory_prices *m, const moirai_memory_task *job);
const int64_t *moirai_memory_byte_prices(const moirai_memory_prices *m); /* per device, in units */
/* What is known of a pair at these prices (value.h). */
moirai_value *moirai_memory_value(moirai_memory_prices *m, int32_t pair);
/* The bound in whole ns, were the pairs worth `value` (per pair, in units) at these prices. O(blocks * K^2). */
int64_t moirai_memory_proven_ns(moirai_memory_prices *m, const int64_t *value);

#endif
