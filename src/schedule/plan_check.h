/* Inside the checker of plans: its state. Private to plan_check.c and plan_check_memory.c. */
#ifndef MOIRAI_SCHEDULE_PLAN_CHECK_H
#define MOIRAI_SCHEDULE_PLAN_CHECK_H

#include <moirai/plan.h>

typedef struct schedule_span {
    int64_t start_ns, finish_ns;
    int32_t what;  /* operator, or n_ops and the index of a transfer */
    int32_t where; /* resource */
} schedule_span;

/* A transfer by its destination device or, with flow edge, its reader: every input looks for its own. */
typedef struct schedule_sent {
    int32_t key, transfer;
} schedule_sent;

/* A tensor on a device that has it. */
typedef struct schedule_life {
    int64_t bytes;
    int32_t device;
} schedule_life;

typedef struct schedule_check {
    const moirai_problem *p;
    const moirai_plan *plan;
    moirai_report_fn report;
    void *data;
    int64_t n_bad;
    char first[512];
    schedule_sent *sorted; /* by (tensor, key) */
    int32_t *sorted_off;   /* by tensor, into `sorted` */
    schedule_span *spans;
    schedule_life *lives;
    int32_t *group_op; /* first member met */
    int32_t *before;   /* per resource, devices or channels: the span before */
    /* Room for sorting spans by start, and the ends of lives by time. */
    uint64_t *key, *key_spare;
    int32_t *item, *item_spare;
} schedule_check;

/* Something is wrong, in one line. */
void schedule_check_bad(schedule_check *c, const char *format, ...) MOIRAI_PRINTF(2, 3);
/* Index of the transfer of a tensor to a device (flow tensor) or reader (flow edge), or MOIRAI_NONE. */
int32_t schedule_check_find(const schedule_check *c, int32_t tensor, int32_t key);

#define SCHEDULE_AHEAD 16 /* so many are fetched before their turn: millions of readers and transfers are anywhere */

/* The reader of an edge that comes soon: its device, and its time of those. */
static inline void schedule_check_fetch_reader(const schedule_check *c, int32_t edge, const int64_t *op_ns)
{
    if (edge + SCHEDULE_AHEAD >= c->p->n_edges)
        return;
    int32_t reader = c->p->edge_reader[edge + SCHEDULE_AHEAD];
    __builtin_prefetch(&c->plan->op_device[reader]);
    __builtin_prefetch(&op_ns[reader]);
}

/* A transfer that comes soon, of those in `sorted`. */
static inline void schedule_check_fetch_transfer(const schedule_check *c, int32_t s)
{
    if (s + SCHEDULE_AHEAD < c->plan->n_transfers)
        __builtin_prefetch(&c->plan->transfer[c->sorted[s + SCHEDULE_AHEAD].transfer]);
}

/* ---- plan_check_memory.c ---- */
void schedule_check_memory(schedule_check *c, int64_t makespan_ns);

#endif
