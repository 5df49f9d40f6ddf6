/* Inside the simulator of many requests: its state and its queues. Private. */
#ifndef MOIRAI_RATE_STREAM_STATE_H
#define MOIRAI_RATE_STREAM_STATE_H

#include "rate/stream/stream.h"

typedef struct rate_item {
    uint64_t key;
    int32_t slot, what; /* an operator's or a transfer's number in its route */
} rate_item;

typedef struct rate_heap {
    rate_item *item;
    int32_t n;
    size_t capacity;
} rate_heap;

/* The least (key, what, slot) first. MOIRAI_EFAIL: out of memory. */
int rate_heap_push(rate_heap *h, rate_item item);
rate_item rate_heap_pop(rate_heap *h);

typedef struct rate_request {
    int64_t number, entered_ns;
    int32_t copy, ops; /* that have not finished */
    uint64_t done;     /* names the set of tasks that have */
    int32_t *missing;  /* per operator */
    int32_t *left;     /* per buffer: uses to come; -1: nothing has been sent there yet */
} rate_request;

typedef struct rate_finish {
    int64_t time_ns, latency_ns;
    int32_t copy;
    uint64_t state; /* of all that is in flight; 0: more finished at this moment */
} rate_finish;

typedef struct rate_sim {
    const moirai_problem *p;
    const rate_stream_task *task;
    int64_t now_ns;
    bool failed; /* memory ran out */
    rate_request *slot;
    int32_t *order;          /* slots in flight, the oldest request first */
    int32_t n_order, n_over; /* n_over: of them, those that have finished */
    int32_t *spare;          /* working memory: per slot */
    int64_t entered;         /* requests so far */
    int64_t entered_of[RATE_MOST_COPIES];
    rate_finish *finish;
    int64_t n_finished;
    size_t finish_capacity;
    int64_t tasks, next_look; /* tasks that have finished; how many there are when the budget is looked at again */

    rate_heap ready[MOIRAI_MASK_DEVICES];
    rate_item running[MOIRAI_MASK_DEVICES];
    int64_t until_ns[MOIRAI_MASK_DEVICES];
    uint64_t busy, queued;               /* devices that run an operator, and those with operators before them */
    rate_heap *waiting;                  /* per ordered pair of devices */
    uint64_t waits[MOIRAI_MASK_DEVICES]; /* per sender: receivers for which something waits */
    uint64_t senders;                    /* for whom anything waits */
    bool stirred;                        /* a transfer has ended or come since all that could start had started */
    uint64_t sending, receiving, channel_busy[MOIRAI_MASK_DEVICES];
    uint64_t held;    /* devices of transfers under way, where these hold them */
    rate_heap flying; /* by time of arrival */
    rate_heap done;   /* a stack: operators whose finish has not been told yet */

    int64_t live[MOIRAI_MASK_DEVICES], most_live[MOIRAI_MASK_DEVICES];
    uint64_t grown; /* devices that hold more than before */

    int64_t *seen; /* table: finish + 1 by its state */
    size_t seen_size;
} rate_sim;

static inline const rate_route *rate_sim_route(const rate_sim *x, int32_t slot)
{
    return x->task->route[x->slot[slot].copy];
}

/* An operator's outputs, from its start; its inputs, at its finish; a buffer elsewhere, from the first departure; what was sent, at its arrival; results, when the request ends (stream_memory.c). */
void rate_hold_outputs(rate_sim *x, const rate_op *op);
void rate_release_inputs(rate_sim *x, int32_t slot, const rate_op *op);
void rate_hold_there(rate_sim *x, int32_t slot, const rate_send *s);
void rate_release_sent(rate_sim *x, int32_t slot, const rate_send *s);
void rate_release_results(rate_sim *x, int32_t slot);

static inline void rate_fail_if(rate_sim *x, int rc)
{
    x->failed |= rc != 0;
}

/* Starts all that can start now (stream_start.c). */
void rate_start(rate_sim *x);

/* What the state was when it was the same before: its finish, or -1. It is kept for later. */
int64_t rate_state_before(rate_sim *x);

#endif
