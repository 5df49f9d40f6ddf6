/* Plans for many requests: candidates, their loads, and what the simulator says of them. Private. */
#ifndef MOIRAI_RATE_CANDIDATE_H
#define MOIRAI_RATE_CANDIDATE_H

#include <moirai/rate.h>

#include "rate/stream/stream.h"
#include "relax/view.h"

#define RATE_NO_KIND (-1)

/* One copy of the network, or several with their shares. */
typedef struct rate_candidate {
    const char *origin; /* who made it. Static */
    int32_t n_copies;
    int32_t **device; /* per copy and operator */
    int64_t *share;   /* whole parts, read where slots are 0 */
    int32_t *slots;   /* or all of them requests in flight */
    moirai_plan
        *plan; /* of one request on the first copy; NULL: made by the longest remaining paths when it is judged */
    double send_price; /* at which it was annealed, */
    int32_t kind;      /* by a run of this kind (one_copy.c); RATE_NO_KIND: by none */
    bool alone;        /* one request at a time, whatever is allowed */
    int64_t
        load_ns; /* the largest; of several copies once it is judged, by their shares, with slots as these came out */
    bool judged, fits; /* fits: memory, and the limit of latency */
    int32_t in_flight; /* with which it was judged, */
    int32_t pace;      /* and this, */
    bool paced;        /* and at other paces as well */
    int32_t tried;     /* requests in flight of the largest stream that was begun; 0: none */
    rate_outcome outcome;
} rate_candidate;

/* A candidate of n copies with no devices yet. */
int rate_candidate_new(rate_candidate **out, const moirai_problem *p, const char *origin, int32_t n_copies);
/* Of one copy on these devices. */
int rate_candidate_of(rate_candidate **out, const moirai_problem *p, const char *origin, const int32_t *device);
void rate_candidate_free(rate_candidate *c);

/* Loads of all resources (relax/view.h) per request, with of_copy[c] of `all` requests on copy c; rounded up. `load_ns` has
 * v->n_resources. Returns the largest. MOIRAI_EFAIL (negative): out of memory. */
int64_t rate_loads(int64_t *load_ns, const relax_view *v, const rate_candidate *c, const int64_t *of_copy, int64_t all);

/* Bytes that each device holds whatever is in flight: what any copy puts there, once. MOIRAI_EFAIL: out of memory. */
int rate_static_bytes(int64_t *bytes, const moirai_problem *p, const rate_candidate *c);

typedef struct rate_judge_task {
    const relax_view *v;
    int32_t in_flight;        /* at most */
    int64_t latency_limit_ns; /* INT64_MAX: none */
    int64_t most_tasks;
    util_stop stop;
} rate_judge_task;

/* Of the load: a stream that takes no longer has nothing to gain but less load, which annealing finds sooner. */
#define RATE_NO_WAITING 1e-3

/* Simulates it with as many requests in flight as are allowed, or half of them, a quarter ... until memory and latency are kept; at a pace, and, where they wait, with the oldest first. */
int rate_judge(rate_candidate *c, const rate_judge_task *task);
/* Simulates it with just so many, at its pace, whether it fits or not. */
int rate_judge_as_is(rate_candidate *c, const rate_judge_task *task);
/* Whether requests of a judged candidate wait for more than its load. */
bool rate_waits(const rate_candidate *c);
/* Simulates a judged one, in which requests wait, at other paces: the best of them stays. */
int rate_judge_paces(rate_candidate *c, const rate_judge_task *task);
/* Whether a is better than b: what fits, the period, the latency, fewer copies. b may be NULL. */
bool rate_better(const rate_candidate *a, const rate_candidate *b);

/* moirai_rate_check of a plan that `simulated` was written down as: where the simulator would be asked the very same, what it said stands, and it is not asked again. The
 * figures are filled unless they are NULL, and the caller's. */
int rate_check_written(const moirai_problem *p, const moirai_plan *plan, const rate_candidate *simulated,
                       moirai_rate_figures *figures);

/* MOIRAI_EUSAGE where there are more devices than rates are found for. */
int rate_check_devices(const moirai_problem *p);

#endif
