/* A second simulator of many requests in flight: no queues, no counts, everything looked for again at every moment. */
#ifndef MOIRAI_TEST_SLOW_STREAM_H
#define MOIRAI_TEST_SLOW_STREAM_H

#include <moirai/plan.h>

#define SLOW_COPIES 4

typedef struct slow_task {
    const moirai_problem *p;
    int n_copies;
    const int32_t *device[SLOW_COPIES];
    const int32_t *rank[SLOW_COPIES];  /* of operators, the order within a request */
    const int32_t *place[SLOW_COPIES]; /* by rank: where in a request it is, in parts of `whole` */
    int pace, whole;                   /* pace 0: the oldest goes first */
    int share[SLOW_COPIES];            /* read where slots[0] is 0 */
    int slots[SLOW_COPIES];
    int in_flight;
    int n_requests; /* to finish */
} slow_task;

/* When each of them finished, in the order of finishing, and how long it was in flight; `bytes` per device: most bytes of tensors at once. */
void slow_stream(const slow_task *t, int64_t *finish_ns, int64_t *latency_ns, int64_t *bytes);

#endif
