/* N requests in flight, event by event, in whole nanoseconds.
 *
 * A closed loop: N requests enter at time 0, and each that finishes lets the next one in. A device that is free takes, of what is ready, the oldest
 * request's operator of least rank; a free pair of ports (a free channel) the oldest request's transfer whose most urgent reader has the least rank
 * (stream_start.c).
 *
 * **Pace.** With the oldest first, young requests go on where devices have nothing better to do, all of them as far as they come: they gather in front of one device, then of another, and
 * meanwhile the rest waits. With a pace the operator goes first that is due first: that of request n which starts at the part s of one request alone is due at n + pace * s. Requests
 * are then spread evenly along the network, and every device has some of them before it: few less than N in flight are a pace at which a plan reaches its load.
 *
 * Both orders are total and nothing waits on purpose, so there is no deadlock (route.c) and the same stream on every machine.
 * Operators and transfers that take no time run the moment they can, as in the simulator of one request (schedule/sim_dispatch.c).
 *
 * **Copies.** With slots, each copy keeps so many requests in flight, and who finishes one takes the next. Without, the next request goes to the copy that is
 * furthest behind its share; ties to the first.
 *
 * The period is exact where a state comes back (stream_state.c), and otherwise the mean over the later half of what `most_tasks` allows. */
#include "rate/stream/stream.h"

#include <stdlib.h>
#include <string.h>

#include "rate/stream/stream_state.h"
#include "util/util.h"

#define LEAST_ROUNDS 12 /* of N requests, before a mean is taken, */
#define FEW_ROUNDS 4    /* or so many, where these would have more operators than MANY_OPS */
#define MANY_OPS 3000000.0
#define RANK_BITS 24 /* of a key */
#define LOOK_TASKS 1000

/* A random number of a task: a set of tasks is known by the sum of its own. */
static uint64_t name_of(int64_t task)
{
    uint64_t z = ((uint64_t)task + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t key_of(const rate_sim *x, int32_t slot, int32_t rank, int32_t place)
{
    uint64_t due = (uint64_t)x->slot[slot].number * RATE_WHOLE + (uint64_t)x->task->pace * (uint64_t)place;
    return due << RANK_BITS | (uint64_t)UTIL_MIN(rank, (1 << RANK_BITS) - 1);
}

/* ---- what follows from a finish ---- */

static void op_ready(rate_sim *x, int32_t slot, int32_t which)
{
    const rate_route *r = rate_sim_route(x, slot);
    const rate_op *op = &r->op[which];
    __builtin_prefetch(&r->local[op->local]); /* what its start will ask for */
    __builtin_prefetch(&r->send[op->send]);
    rate_item item = {key_of(x, slot, op->rank, op->place), slot, which};
    if (op->ns > 0) {
        rate_fail_if(x, rate_heap_push(&x->ready[op->device], item));
        x->queued |= UINT64_C(1) << op->device;
    } else {
        rate_hold_outputs(x, op);
        rate_fail_if(x, rate_heap_push(&x->done, item));
    }
}

static void op_gets_input(rate_sim *x, int32_t slot, int32_t op)
{
    if (rate_sim_route(x, slot)->op[op].inputs == 1 || --x->slot[slot].missing[op] == 0)
        op_ready(x, slot, op);
}

static void arrive(rate_sim *x, int32_t slot, int32_t which)
{
    const rate_route *r = rate_sim_route(x, slot);
    const rate_send *s = &r->send[which];
    x->slot[slot].done += name_of((int64_t)x->p->n_ops + which);
    x->tasks++;
    rate_release_sent(x, slot, s);
    for (int32_t i = s->first; i < s->end; i++)
        op_gets_input(x, slot, r->reader[i]);
}

static void send_ready(rate_sim *x, int32_t slot, int32_t which)
{
    const rate_send *s = &rate_sim_route(x, slot)->send[which];
    if (s->ns == 0) {
        rate_hold_there(x, slot, s);
        arrive(x, slot, which);
    } else if (x->p->congestion == MOIRAI_CONGESTION_NONE) {
        rate_hold_there(x, slot, s);
        rate_fail_if(x, rate_heap_push(&x->flying, (rate_item){(uint64_t)(x->now_ns + s->ns), slot, which}));
    } else {
        rate_heap *queue = &x->waiting[s->from * x->p->n_devices + s->to];
        rate_fail_if(x, rate_heap_push(queue, (rate_item){key_of(x, slot, s->rank, s->place), slot, which}));
        x->waits[s->from] |= UINT64_C(1) << s->to;
        x->senders |= UINT64_C(1) << s->from;
        x->stirred = true;
    }
}

static void op_done(rate_sim *x, int32_t slot, int32_t which)
{
    const rate_route *r = rate_sim_route(x, slot);
    const rate_op *op = &r->op[which];
    x->slot[slot].done += name_of(which);
    x->n_over += --x->slot[slot].ops == 0;
    x->tasks++;
    rate_release_inputs(x, slot, op);
    for (int32_t i = 0; i < op->n_local; i++)
        op_gets_input(x, slot, r->local[op->local + i]);
    for (int32_t i = 0; i < op->n_sends; i++)
        send_ready(x, slot, op->send + i);
}

static void settle(rate_sim *x)
{
    while (x->done.n > 0 && !x->failed) {
        rate_item item = rate_heap_pop(&x->done);
        op_done(x, item.slot, item.what);
    }
}

/* ---- requests ---- */

/* The copy that is furthest behind its share. */
static int32_t next_copy(const rate_sim *x)
{
    const rate_stream_task *task = x->task;
    int64_t all = 0, most = INT64_MIN;
    int32_t best = 0;
    for (int32_t c = 0; c < task->n_copies; c++)
        all += task->share[c];
    for (int32_t c = 0; c < task->n_copies; c++) {
        int64_t behind = (x->entered + 1) * task->share[c] - x->entered_of[c] * all;
        if (behind > most) {
            most = behind;
            best = c;
        }
    }
    return best;
}

static void enter(rate_sim *x, int32_t slot, int32_t copy)
{
    const moirai_problem *p = x->p;
    const rate_route *r = x->task->route[copy];
    rate_request *q = &x->slot[slot];
    q->number = x->entered++;
    q->entered_ns = x->now_ns;
    q->copy = copy;
    q->ops = p->n_ops;
    x->n_over += p->n_ops == 0;
    q->done = 0;
    x->entered_of[copy]++;
    x->order[x->n_order++] = slot;
    memcpy(q->missing, r->missing, sizeof *q->missing * (size_t)p->n_ops);
    memcpy(q->left, r->left, sizeof *q->left * (size_t)r->n_buffers);
    for (int32_t i = 0; i < p->n_ops; i++)
        if (r->missing[i] == 0)
            op_ready(x, slot, i);
}

/* Takes out of flight what has finished, the oldest first, and lets as many in. Returns whether anything had. */
static bool change_guests(rate_sim *x)
{
    int32_t *free_slot = x->spare, n_free = 0, kept = 0;
    if (x->n_over == 0)
        return false;
    x->n_over = 0;
    for (int32_t i = 0; i < x->n_order; i++) {
        int32_t slot = x->order[i];
        rate_request *q = &x->slot[slot];
        if (q->ops > 0) {
            x->order[kept++] = slot;
            continue;
        }
        if (util_grow(&x->finish, &x->finish_capacity, (size_t)x->n_finished + 1, sizeof *x->finish)) {
            x->failed = true;
            return true;
        }
        x->finish[x->n_finished++] =
            (rate_finish){.time_ns = x->now_ns, .latency_ns = x->now_ns - q->entered_ns, .copy = q->copy};
        rate_release_results(x, slot);
        free_slot[n_free++] = slot;
    }
    x->n_order = kept;
    for (int32_t i = 0; i < n_free; i++)
        enter(x, free_slot[i], x->task->slots[0] ? x->slot[free_slot[i]].copy : next_copy(x));
    return true;
}

/* ---- the clock ---- */

static void take_finishes(rate_sim *x)
{
    int64_t next = x->flying.n > 0 ? (int64_t)x->flying.item[0].key : INT64_MAX;
    for (uint64_t on = x->busy; on; on &= on - 1)
        next = UTIL_MIN(next, x->until_ns[__builtin_ctzll(on)]);
    x->now_ns = next;
    for (uint64_t on = x->busy; on; on &= on - 1) {
        int32_t k = __builtin_ctzll(on);
        if (x->until_ns[k] != next)
            continue;
        x->busy &= ~(UINT64_C(1) << k);
        op_done(x, x->running[k].slot, x->running[k].what);
    }
    while (x->flying.n > 0 && (int64_t)x->flying.item[0].key == next && !x->failed) {
        rate_item item = rate_heap_pop(&x->flying);
        const rate_send *s = &rate_sim_route(x, item.slot)->send[item.what];
        x->sending &= ~(UINT64_C(1) << s->from);
        x->receiving &= ~(UINT64_C(1) << s->to);
        x->channel_busy[s->from] &= ~(UINT64_C(1) << s->to);
        x->held &= ~(UINT64_C(1) << s->from | UINT64_C(1) << s->to);
        x->stirred = true;
        arrive(x, item.slot, item.what);
    }
    settle(x);
}

/* All that was simulated between two finishes. */
static void judge(rate_outcome *out, const rate_sim *x, int64_t first, int64_t last)
{
    int64_t span = x->finish[last].time_ns - x->finish[first].time_ns;
    double sum = 0;
    out->requests = last - first;
    out->span_ns = span;
    out->finished = x->n_finished;
    out->period_ns = (span + out->requests - 1) / out->requests;
    for (int64_t i = first + 1; i <= last; i++) {
        out->latency_ns = UTIL_MAX(out->latency_ns, x->finish[i].latency_ns);
        sum += (double)x->finish[i].latency_ns;
        out->of_copy[x->finish[i].copy]++;
    }
    out->mean_latency_ns = (int64_t)(sum / (double)out->requests + 0.5);
    memcpy(out->tensor_bytes, x->most_live, sizeof out->tensor_bytes);
}

/* Whether the budget is used up; it is looked at every thousand tasks, some tenths of a millisecond. */
static bool late(rate_sim *x)
{
    if (x->tasks < x->next_look)
        return false;
    x->next_look = x->tasks + LOOK_TASKS;
    return util_stopped(&x->task->stop);
}

/* That must have finished before a mean is taken. */
static int64_t least_requests(const moirai_problem *p, int32_t in_flight)
{
    double rounds = MANY_OPS / ((double)in_flight * UTIL_MAX(p->n_ops, 1));
    return (int64_t)UTIL_MAX(UTIL_MIN(rounds, LEAST_ROUNDS), FEW_ROUNDS) * in_flight;
}

/* What a few requests took says nothing of the long run. */
static int no_time(void)
{
    return moirai_error(MOIRAI_ELIMIT, "no time to simulate requests");
}

static int run(rate_outcome *out, rate_sim *x)
{
    const rate_stream_task *task = x->task;
    int64_t least = least_requests(x->p, task->in_flight);
    settle(x);
    for (;;) {
        bool any = false;
        while (!x->failed && change_guests(x)) { /* more than once where requests take no time at all */
            any = true;
            settle(x);
            if (x->n_finished > least && x->finish[x->n_finished - 1 - least].time_ns == x->now_ns) {
                out->steady = true;
                judge(out, x, x->n_finished - 1 - least, x->n_finished - 1);
                return 0;
            }
        }
        if (x->failed)
            return MOIRAI_EFAIL;
        int64_t before = any ? rate_state_before(x) : -1;
        if (before >= 0) {
            out->steady = true;
            judge(out, x, before, x->n_finished - 1);
            return 0;
        }
        if (x->n_finished > least && x->tasks > task->most_tasks)
            break;
        if (late(x))
            return no_time();
        rate_start(x);
        take_finishes(x);
    }
    judge(out, x, (x->n_finished - 1) / 2, x->n_finished - 1);
    return 0;
}

static int open_sim(rate_sim *x)
{
    const moirai_problem *p = x->p;
    int32_t N = x->task->in_flight, buffers = 0;
    for (int32_t c = 0; c < x->task->n_copies; c++)
        buffers = UTIL_MAX(buffers, x->task->route[c]->n_buffers);
    x->slot = util_alloc((size_t)N, sizeof *x->slot);
    x->order = util_alloc((size_t)N, sizeof *x->order);
    x->spare = util_alloc((size_t)N, sizeof *x->spare);
    x->waiting = util_alloc((size_t)p->n_devices * (size_t)p->n_devices, sizeof *x->waiting);
    if (!x->slot || !x->order || !x->spare || !x->waiting)
        return MOIRAI_EFAIL;
    for (int32_t i = 0; i < N; i++) {
        x->slot[i].missing = util_alloc((size_t)p->n_ops, sizeof *x->slot[i].missing);
        x->slot[i].left = util_alloc((size_t)buffers, sizeof *x->slot[i].left);
        if (!x->slot[i].missing || !x->slot[i].left)
            return MOIRAI_EFAIL;
    }
    for (int32_t i = 0, c = 0, of_copy = 0; i < N; i++) {
        if (p->n_ops >= LOOK_TASKS && util_stopped(&x->task->stop))
            return no_time();
        if (x->task->slots[0] == 0) {
            enter(x, i, next_copy(x));
            continue;
        }
        while (of_copy == x->task->slots[c])
            c++, of_copy = 0;
        enter(x, i, c);
        of_copy++;
    }
    return x->failed ? MOIRAI_EFAIL : 0;
}

static void close_sim(rate_sim *x)
{
    for (int32_t i = 0; x->slot && i < x->task->in_flight; i++) {
        free(x->slot[i].missing);
        free(x->slot[i].left);
    }
    for (int32_t k = 0; k < x->p->n_devices; k++)
        free(x->ready[k].item);
    for (int32_t i = 0; x->waiting && i < x->p->n_devices * x->p->n_devices; i++)
        free(x->waiting[i].item);
    void *all[] = {x->slot, x->order, x->spare, x->waiting, x->finish, x->flying.item, x->done.item, x->seen};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(x);
}

double rate_stream_requests(const moirai_problem *p, int32_t in_flight)
{
    double usual = (double)RATE_STREAM_TASKS / UTIL_MAX(p->n_ops, 1);
    return UTIL_MAX(usual, (double)least_requests(p, in_flight)) + in_flight / 2.0;
}

bool rate_stream_is_long(const moirai_problem *p, int32_t in_flight)
{
    return (double)p->n_ops * in_flight * LEAST_ROUNDS > MANY_OPS;
}

int rate_stream(rate_outcome *out, const moirai_problem *p, const rate_stream_task *task)
{
    *out = (rate_outcome){0};
    rate_sim *x = util_alloc(1, sizeof *x);
    if (!x)
        return MOIRAI_EFAIL;
    x->p = p;
    x->task = task;
    double begun = util_seconds();
    int rc = open_sim(x);
    rc = rc ? rc : run(out, x);
    if (x->tasks > 0)
        out->task_s = (util_seconds() - begun) / (double)x->tasks;
    close_sim(x);
    return rc;
}
