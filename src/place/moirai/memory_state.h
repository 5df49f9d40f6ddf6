/* The state shared by memory.c (bounds), memory_option.c (plans of a pair) and memory_plan.c (plans of the whole). */
#ifndef MOIRAI_MEMORY_STATE_H
#define MOIRAI_MEMORY_STATE_H

#include "place/moirai/memory.h"
#include "place/moirai/pool.h"
#include "place/moirai/value.h"

#define MOIRAI_MEMORY_OPTIONS 48

typedef struct moirai_memory_option {
    moirai_block_plan plan;
    int64_t bytes[MOIRAI_MAX_DEVICES];
} moirai_memory_option;

/* A pair under prices on bytes. */
typedef struct moirai_memory_view {
    moirai_value value;
    moirai_memory_option option[MOIRAI_MEMORY_OPTIONS];
    int32_t n_options;
    int64_t own_length_ns; /* of the pair's own plan when own_bytes was taken */
    int64_t own_bytes[MOIRAI_MAX_DEVICES];
    int32_t n_from_twin; /* options of the twin's pair that were looked at */
    int64_t searched;    /* stamp of the prices at which options were last searched for */
} moirai_memory_view;

/* A path: the devices of the cuts and what happens in between. */
typedef struct moirai_memory_route {
    double time_ns, use[MOIRAI_MAX_DEVICES]; /* bytes */
    int8_t *device;                          /* of the cuts; plans only */
    int8_t *pick;                            /* option of each block */
} moirai_memory_route;

/* Paths met so far; every mix of them that fits on average bounds what prices can reach. */
typedef struct moirai_memory_mixer {
    moirai_memory_route *route;
    size_t n, capacity;
    double *part; /* of each path in the last mix */
    size_t part_capacity;
} moirai_memory_mixer;

struct moirai_memory_prices {
    moirai_chain *c;
    int32_t K;
    int32_t *twin; /* per class: one of the same shape and of about the same work that occurs more often, -1: none */
    moirai_memory_view *view; /* parallel to c->pair */
    int64_t stamp;
    int64_t price[MOIRAI_MAX_DEVICES];     /* per byte, in units */
    double best_worth[MOIRAI_MAX_DEVICES]; /* of the whole capacity, in ns: price * capacity at the best bound */
    int64_t best_ns;
    moirai_memory_mixer plans; /* paths of plans met so far */
    moirai_memory_mixer cuts;  /* these, and paths of the bound */
    size_t n_plans_taken;
    int32_t *device;      /* of the present path */
    int32_t *plan_device; /* of the best plan */
    const moirai_block_plan **plan;
    int8_t *from;       /* scratch of the dynamic programme */
    int64_t *pair_cost; /* per pair, at the present prices; INT64_MAX: none */
    int8_t *option_pick;
    int8_t *picked; /* option per block of the present path */
};

int moirai_memory_add_route(moirai_memory_mixer *x, const moirai_memory_route *route);
void moirai_memory_mixer_free(moirai_memory_mixer *x);
/* The fastest mix of paths whose mean bytes fit into `room` of every device, and the worth of the devices' memory in
 * it. */
int moirai_memory_mix(const moirai_memory_prices *m, moirai_memory_mixer *x, double room, double dear_ns,
                      double *worth);

/* Prices per byte from worths of whole devices. */
void moirai_memory_set_worth(moirai_memory_prices *m, const double *worth);
/* The cheapest way through blocks first .. last by m->pair_cost and cuts at `price`, between devices entry and exit (0
 * where there is no cut). Devices of the cuts in between go to m->device. INT64_MAX: there is none. O(blocks * K^2). */
int64_t moirai_memory_cheapest_way(moirai_memory_prices *m, int32_t first, int32_t last, int32_t entry, int32_t exit,
                                   const int64_t *price);
/* The cheapest path by what is known of the pairs' values at the present prices, in units; into m->device. */
int64_t moirai_memory_bound_path(moirai_memory_prices *m);
/* What the pair's cheapest plan costs at `price`, INT64_MAX: there is none; *pick gets which it is. */
int64_t moirai_memory_option_cost(const moirai_memory_prices *m, int64_t pair, const int64_t *price, int8_t *pick);
/* Length and bytes of an option; -1 is the pair's own plan. */
const int64_t *moirai_memory_option_at(const moirai_memory_prices *m, int64_t pair, int32_t pick, int64_t *length_ns);
/* The same pair of devices of the class's twin, -1: none. */
int64_t moirai_memory_twin(const moirai_memory_prices *m, int64_t pair);
/* Sets `twin` (twins.c). */
int moirai_memory_find_twins(moirai_memory_prices *m);

/* Pairs to be worked on; job i is about pair[first + i]. */
typedef struct moirai_memory_batch {
    int32_t *pair, n;
    int32_t first; /* of those at work */
} moirai_memory_batch;

/* Runs the job for every pair, those without a twin before the others: what has a twin begins where that has ended.
 * `data` holds the batch. */
int moirai_memory_run_batch(const moirai_memory_prices *m, moirai_memory_batch *x, moirai_job_fn job, void *data,
                            int threads);
/* Look for a plan of the pair that is cheap at the present prices; changes this pair alone, and reads its twin's. */
int moirai_memory_add_option(moirai_memory_prices *m, int32_t pair, const moirai_memory_search *job);
/* Number of the pair that the present path takes through a block. */
int64_t moirai_memory_pair_of(const moirai_memory_prices *m, int32_t block);

#endif
