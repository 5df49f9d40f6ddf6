/* The simulator of many requests in flight. Private. */
#ifndef MOIRAI_RATE_STREAM_H
#define MOIRAI_RATE_STREAM_H

#include "rate/stream/route.h"
#include "util/stop.h"

#define RATE_MOST_COPIES 64
#define RATE_STREAM_TASKS 600000 /* that are simulated usually, where no steady state comes */

typedef struct rate_stream_task {
    int32_t n_copies; /* at most RATE_MOST_COPIES */
    const rate_route *route[RATE_MOST_COPIES];
    int64_t share[RATE_MOST_COPIES]; /* whole parts of requests; read where slots are all 0 */
    int32_t slots[RATE_MOST_COPIES]; /* requests that a copy has in flight; of all copies, or of none */
    int32_t in_flight;
    int32_t pace;       /* 0: the oldest request goes first */
    int64_t most_tasks; /* operators and transfers that are simulated at most, after the first requests */
    util_stop stop;
} rate_stream_task;

typedef struct rate_outcome {
    int64_t period_ns;                   /* rounded up */
    int64_t latency_ns, mean_latency_ns; /* from entry to finish: the longest, the mean; of the steady state */
    bool steady;                         /* the state came back: the period is exact. Else a mean of the later half */
    int64_t requests, span_ns;           /* that the period was taken over, and how long they took */
    int64_t finished;                    /* requests, all that were simulated */
    double task_s; /* that the simulator took for one; also where it was stopped, 0 where it had not begun */
    int64_t of_copy[RATE_MOST_COPIES];         /* how many of them each copy had */
    int64_t tensor_bytes[MOIRAI_MASK_DEVICES]; /* of all requests, the most alive at once */
} rate_outcome;

/* How many requests a stream of the usual tasks simulates at most, those that are in flight in the end as halves. */
double rate_stream_requests(const moirai_problem *p, int32_t in_flight);
/* Whether a stream takes so many operators that not all that may be worth it can be simulated. */
bool rate_stream_is_long(const moirai_problem *p, int32_t in_flight);
/* Deterministic. MOIRAI_ELIMIT where the stop came before the period was known. O(requests * (V + E) log). */
int rate_stream(rate_outcome *out, const moirai_problem *p, const rate_stream_task *task);

#endif
