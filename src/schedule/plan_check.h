/* Inside the checker of plans: its state. Private to plan_check*.c. */
#ifndef MOIRAI_SCHEDULE_PLAN_CHECK_H
#define MOIRAI_SCHEDULE_PLAN_CHECK_H

#include <moirai/plan.h>

#include "problem/device_set.h"

typedef struct schedule_span {
    int64_t start_ns, finish_ns;
    int32_t what;  /* operator, or the tensor of a transfer */
    int32_t where; /* device, or another resource */
} schedule_span;

/* A tensor on a device that has it. */
typedef struct schedule_life {
    int64_t first_ns, last_ns, bytes;
    int32_t device;
} schedule_life;

/* A stretch of time on a device: what is alive at its beginning, and what comes to life in it. */
typedef struct schedule_stretch {
    __int128 alive, more;
    bool open; /* whether the most at once may be in it */
} schedule_stretch;

/* Life of a tensor on each device that has it: [first, last). */
typedef struct schedule_lifetimes {
    int64_t first[MOIRAI_MAX_DEVICES], last[MOIRAI_MAX_DEVICES];
    device_set there;
} schedule_lifetimes;

typedef struct schedule_check {
    const moirai_problem *p;
    const moirai_plan *plan;
    moirai_report_fn report;
    void *data;
    int64_t n_bad;
    char first[512];
    int64_t end_ns;       /* the last finish of an operator */
    schedule_span *spans; /* of operators */
    /* Transfers by tensor, and those of one by device or, with flow edge, by reader, as every input looks for its own: where key_spare is,
     * which is needed later: what is written anew the kernel has to clear. */
    moirai_transfer *sent;
    int32_t *sent_off; /* by tensor */
    int32_t *group_op; /* first member met */
    int32_t *before;   /* per resource, devices or channels: the span before */
    bool peaks;        /* whether it matters what is alive at once */
    schedule_life *lives;
    int32_t n_lives;
    schedule_stretch *stretches; /* device by device */
    /* Room for sorting by time; before, transfers are sorted by tensor there. */
    uint64_t *key, *key_spare;
    int32_t *item, *item_spare;
} schedule_check;

/* Something is wrong, in one line. */
void schedule_check_bad(schedule_check *c, const char *format, ...) MOIRAI_PRINTF(2, 3);

#define SCHEDULE_AHEAD 16 /* so many are fetched before their turn: millions of readers and transfers are anywhere */

/* ---- plan_check_transfers.c ---- */
/* All transfers, and the lives of tensors where peaks matter; of a plan whose operators are right. */
void schedule_check_transfers(schedule_check *c);

/* ---- plan_check_memory.c ---- */
/* How many stretches a device has where there are so many lives at most. */
int32_t schedule_check_stretches(const moirai_problem *p, size_t lives);
/* The tensor is on a device from `first` on, and until `last`. */
static inline void schedule_check_meet(schedule_lifetimes *x, int32_t d, int64_t first, int64_t last)
{
    bool known = device_set_has(&x->there, d);
    x->first[d] = known && x->first[d] < first ? x->first[d] : first;
    x->last[d] = known && x->last[d] > last ? x->last[d] : last;
    device_set_add(&x->there, d);
}
void schedule_check_add_lives(schedule_check *c, int32_t t, const schedule_lifetimes *x);
/* Of a plan whose transfers are right. */
void schedule_check_memory(schedule_check *c);

#endif
