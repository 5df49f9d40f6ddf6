/* Memory that binds: prices on bytes, for bounds and for plans. */
#ifndef MOIRAI_MEMORY_H
#define MOIRAI_MEMORY_H

#include "place/moirai/compose.h"
#include "place/moirai/stop.h"

/* What is known of the pairs of a chain under prices on bytes. */
typedef struct moirai_memory_prices moirai_memory_prices;

int moirai_memory_new(moirai_memory_prices **out, moirai_chain *c);
void moirai_memory_free(moirai_memory_prices *m);

typedef struct moirai_memory_task {
    int64_t upper_ns;   /* of a plan that fits, or of any guess: steers the steps */
    int32_t rounds;
    int32_t buckets;    /* of the prices in time */
    moirai_stop stop;
} moirai_memory_task;

/* Raise the Lagrangian bound; returns the best in whole ns (also of earlier calls). Price changes are remembered. */
int moirai_memory_bound(int64_t *lower_ns, moirai_memory_prices *m, const moirai_memory_task *job);

typedef struct moirai_memory_search {
    int64_t evaluations;  /* per option of a pair */
    int32_t rounds;       /* of price changes */
    uint64_t seed;
    moirai_stop stop;
} moirai_memory_search;

/* The best composition that keeps to the memory: devices of the cuts and a plan for each block (both owned by m, valid
 * until the next call). *length_ns is INT64_MAX where none was found. */
int moirai_memory_plan(int64_t *length_ns, const int32_t **cut_device, const moirai_block_plan *const **block_plan,
                       moirai_memory_prices *m, const moirai_memory_search *job);

/* For certificates: go back to the best prices on bytes and solve their path, then read what proves it. */
int moirai_memory_settle(moirai_memory_prices *m, const moirai_memory_task *job);
const int64_t *moirai_memory_byte_prices(const moirai_memory_prices *m); /* per device, in units */
/* Every interior operator of the pair's block where its bytes are cheapest, in units. */
int64_t moirai_memory_cheapest_bytes(const moirai_memory_prices *m, int32_t pair);
typedef struct moirai_memory_leaf {
    const moirai_grid *grid; /* NULL: nothing was solved here */
    int64_t *price;          /* free() it; at any time they sum to at most the unit less `paid` */
    int64_t paid;            /* of each unit of length, by the pair's proven length */
    int64_t value;           /* what length up to the grid's plus bytes cost at least, in units; MOIRAI_PRICE_NONE: does not fit */
} moirai_memory_leaf;
int moirai_memory_evidence(moirai_memory_leaf *out, moirai_memory_prices *m, int32_t pair, int32_t sending, int64_t lower_ns);

/* Devices of the cuts in the last plan found. */
const int32_t *moirai_memory_path(const moirai_memory_prices *m);

#endif
