/* What a pair costs at prices on bytes: least over its plans of length plus the price of its bytes, from below. */
#ifndef MOIRAI_VALUE_H
#define MOIRAI_VALUE_H

#include "place/moirai/chain.h"

/* A case of a pair as in cases.h, in which the block's time, too, lies in a known range. */
typedef struct moirai_value_case {
    int32_t sending;
    int32_t n_counts;
    moirai_count *count;            /* questions of counts, arrivals and lengths, in the order they were asked */
    int64_t least_ns, most_ns;      /* the block's time; most_ns INT64_MAX: no end, and no prices */
    moirai_proof_prices prices;     /* on a grid of length most_ns or more; none: length and cheapest bytes alone */
    bool solved;                    /* the master was solved for the present prices on bytes */
    int64_t value;                  /* in units */
    double use[MOIRAI_MAX_DEVICES]; /* bytes on each device in the mix behind it */
    moirai_count split;             /* where to divide it */
} moirai_value_case;

/* So many cases are solved at once, each by a solver with columns of its own: the outcome does not depend on the
 * threads. */
#define MOIRAI_VALUE_SOLVERS 2

typedef struct moirai_value_solver {
    moirai_pricer *pricer;
    moirai_master *master;
} moirai_value_solver;

typedef struct moirai_value {
    moirai_pair *pair;
    int32_t entry_device, exit_device;
    moirai_value_solver solver[MOIRAI_VALUE_SOLVERS];
    moirai_value_case *cases;
    int32_t n_cases;
    size_t case_capacity;
    int64_t stamp;
    bool solved;   /* refined for the prices on bytes of `stamp` */
    int64_t value; /* the least over the cases */
    double use[MOIRAI_MAX_DEVICES];
} moirai_value;

typedef struct moirai_value_task {
    const int64_t *byte_price; /* per device, in units */
    int64_t stamp;             /* names the prices: changes when they do */
    int32_t buckets, looks;
    int threads; /* 0: one per core */
    moirai_stop stop;
} moirai_value_task;

void moirai_value_free(moirai_value *v);
/* At new prices, without a search: the prices in time found at earlier ones still hold. */
void moirai_value_update(moirai_value *v, const moirai_value_task *job);
/* Divide and solve the weakest cases, until they are worth `ceiling` (in units: what a plan of the pair costs) or the
 * looks are used up. */
int moirai_value_refine(moirai_value *v, const moirai_value_task *job, int64_t ceiling);
/* Cases and prices of a twin's pair (twins.c) in place of the own ones, if they prove more at these prices on bytes. */
int moirai_value_adopt(moirai_value *v, const moirai_value *from, const moirai_value_task *job);
/* Every interior operator's bytes where they are cheapest, in units; `use` (may be NULL) gets the bytes. */
int64_t moirai_value_cheapest_bytes(const moirai_block *b, const int64_t *byte_price, double *use);
/* The value of one case by exact pricing, were `proven_ns` the least length of the pair. */
int64_t moirai_value_of_case(moirai_value *v, const moirai_value_case *c, const int64_t *byte_price, int64_t proven_ns);
/* Better prices for a case with an end, by one of the solvers: its master's mix is then where good plans are. */
int moirai_value_solve_case(moirai_value *v, int32_t solver, moirai_value_case *c, const moirai_value_task *job);

#endif
