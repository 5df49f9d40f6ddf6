/* The search for the best rate: what its parts share. Private. */
#ifndef MOIRAI_RATE_SEARCH_H
#define MOIRAI_RATE_SEARCH_H

#include <moirai/rate.h>

#include "place/fit.h"
#include "rate/candidate.h"
#include "rate/least/least.h"
#include "relax/relax.h"

/* Plans that mixtures were made of: the next one begins with them. */
typedef struct rate_columns {
    int32_t n, **device; /* owned */
    rate_least *least;   /* finds those that are missing, exactly; NULL: tables would be too large */
} rate_columns;

typedef struct rate_search {
    const moirai_problem *p;
    const moirai_rate_options *o;
    util_stop end;           /* of all, */
    util_stop stop;          /* and of the search for plans, earlier by what a stream takes */
    double task_s;           /* that the simulator takes for a task of a stream, as measured last, */
    int32_t timed_in_flight; /* with so many requests in flight; 0: not yet */
    double begun;
    relax_view v;
    place_units *units;
    int32_t in_flight;
    uint64_t all_devices;
    moirai_plan *latency; /* the plan of one request */
    relax_answer relaxed; /* bound by prices, its proof, devices that balance loads */
    double *weight;       /* of resources, by the bound's prices: the largest is 1; NULL: there are none */
    double *eased;        /* the same, where ports are full before devices are */
    int64_t one_copy_ns;  /* a bound of plans of one copy, where no others are allowed; 0: none */
    int64_t bound_ns;     /* of the period */
    int64_t certified_ns; /* of it, by the certificate that was asked for; MOIRAI_UNKNOWN: none was */
    rate_candidate **candidate;
    int32_t n_candidates;
    size_t capacity;
    rate_candidate *best; /* one of them, or NULL */
    uint64_t seed;        /* of the next random part */
    double steps_per_s;   /* of annealing, all threads together; 0: there is no limit of time */
    rate_columns columns; /* of the last mixture */
} rate_search;

#define RATE_BOUND_ROUNDS 120.0 /* of prices, times the effort */

/* The bounds, the plan of one request, stages; x has the problem, the options, in_flight and its end. Close it in every case (bounds.c). */
int rate_search_open(rate_search *x);
/* The bound for the requests in flight of now. */
void rate_set_bound(rate_search *x);
/* All rounds. Without x->best afterwards nothing keeps the limit of latency. */
int rate_search_run(rate_search *x);
/* The best for another number of requests, of the plans that were found, until x->end. */
int rate_search_again(rate_search *x, int32_t in_flight);
void rate_search_close(rate_search *x);
/* Writes the proof of the relaxation's part of the bound where the options want it; the number is the verifier's (certify.c). */
int rate_certify(rate_search *x);

/* Takes the candidate, also where that fails; one that is there already, or has too many copies, is freed. */
int rate_search_add(rate_search *x, rate_candidate *c);
/* The same for one copy on these devices. */
int rate_search_add_devices(rate_search *x, const char *origin, const int32_t *device);
/* Simulates all candidates that may still be better than the best, as far as there is time (jury.c). */
int rate_search_judge(rate_search *x);
/* The same of the least loads in what is left of the time, with fewer requests in flight where no stream fits otherwise; where plans are compared by loads, of the least load that fits alone. There is x->best afterwards, if anything fits with one. */
int rate_search_judge_last(rate_search *x);
/* Learns what a stream takes, by the beginning of one. */
int rate_search_time_streams(rate_search *x);
/* Sets x->stop before x->end by what a stream takes. */
void rate_search_reserve(rate_search *x);
/* Plans are compared by their largest loads, not by the period that a stream has. */
bool rate_by_loads(const rate_search *x);
double rate_search_threads(const rate_search *x);
/* Steps of an annealing run. */
int64_t rate_search_steps(const rate_search *x, double part);

/* Copies on groups of devices of their own: from one on each device, groups are joined as long as rates add up to more (groups.c). */
int rate_add_groups(rate_search *x, double part);
/* Mixtures of the plans so far, and of new ones, by their shares (mix.c). */
int rate_add_mixtures(rate_search *x, double part);
void rate_columns_clear(rate_columns *c);
/* Rows of stages, the best cuts of several orders (orders.c). */
int rate_add_stages(rate_search *x);
/* Plans of one copy: annealed from several starts at several prices of sending (one_copy.c). */
int rate_add_annealed(rate_search *x, double part, int32_t round);
/* The best plan of one copy, changed by moves that the simulator judges (polish.c). */
int rate_add_polished(rate_search *x, double part);

#endif
