/* Inside the exact search: its tables, a node's state, and what the files of this folder share. */
#ifndef MOIRAI_EXACT_SEARCH_H
#define MOIRAI_EXACT_SEARCH_H

#include "place/exact/exact.h"
#include "util/util.h"

/* A task is an operator i or the transfer n_ops + slot; slots are numbered as in moirai_task. */
typedef struct moirai_exact_arc {
    int32_t before, after; /* `after` starts no sooner than `before` finishes */
} moirai_exact_arc;

/* A task on one machine (a device, a port, a channel): release, length, tail. `task` leads back to where they are kept.
 */
typedef struct moirai_exact_job {
    int64_t r, p, q;
    int32_t task;
} moirai_exact_job;

/* What a node knows. All of it is valid for every plan of the node that is faster than the search's `below_ns`. */
typedef struct moirai_exact_state {
    uint64_t *dom;          /* per operator: devices left */
    int64_t *head, *tail;   /* [op * K + device]: start no sooner than head, tail after the finish at least */
    int64_t *xhead, *xtail; /* per slot: the same of a transfer, should it take place */
    int32_t *price;         /* per resource: the multipliers of the share bound */
    int64_t lb_ns;
    int32_t n_arcs; /* of search.arc, those that hold here */
    int32_t n_open; /* operators with more than one device left */
} moirai_exact_state;

/* An automorphism of the graph: exchanges operators pairwise and changes nothing that a makespan depends on. */
typedef struct moirai_exact_mirror {
    int32_t n; /* operators moved; image[moved[j]] is where it goes */
    int32_t *moved;
    int32_t *image; /* per operator */
} moirai_exact_mirror;

typedef struct moirai_exact_search {
    const moirai_problem *p;
    const moirai_exact_options *o;
    int32_t n, K, X, n_tasks;
    bool edge, peak;
    int64_t below_ns, ceiling_ns; /* wanted: less than this; the caller's (or the horizon) at the beginning */
    int64_t horizon_ns;           /* more than any plan needs */
    double start_s;

    int32_t *unit_off, *unit_op, *unit; /* operators that must share a device: groups, and every free operator alone */
    int32_t n_units;
    int64_t *traffic_ns; /* per operator: its tensors, in and out, at their slowest */
    int32_t *dead_ends;  /* per operator: children that failed at once; kept over restarts */
    bool *same_device;   /* [a * K + b]: exchanging a and b changes nothing */
    moirai_exact_mirror *mirror;
    int32_t n_mirrors;

    moirai_exact_state **stack; /* one state per depth; they never move */
    size_t stack_capacity;
    int32_t stack_n;
    size_t stack_bytes;
    moirai_exact_arc *arc;
    size_t arc_capacity;

    /* Working memory of propagation. */
    moirai_exact_job *job, *job_spare;
    int32_t *active; /* slots that are sure to be sent */
    int32_t n_active;
    int32_t *slot_from, *slot_to; /* of active slots: device, or -1 while open */
    int64_t *slot_ns;             /* of active slots: least length */
    int64_t *free_bytes;          /* per device: not taken by operators fixed there */
    int32_t *machine_count;
    struct moirai_exact_life *life;
    struct moirai_exact_share *share;
    int32_t n_prices, *price_best;
    int32_t *task, *cover;

    int64_t nodes;
    bool stopped, failed; /* a limit was reached; out of memory */
    int64_t open_lb_ns;   /* least bound of what was left unsearched */
    moirai_exact_result *r;
} moirai_exact_search;

/* exact_setup.c */
int moirai_exact_search_new(moirai_exact_search *s, const moirai_problem *p, const moirai_exact_options *o,
                            moirai_exact_result *r);
void moirai_exact_search_free(moirai_exact_search *s);
/* The root's state, with nothing known. */
void moirai_exact_root(moirai_exact_search *s);
/* The state of one level deeper, a copy of the level above; NULL if out of memory. */
moirai_exact_state *moirai_exact_push(moirai_exact_search *s, int32_t depth);

/* exact_mirror.c */
int moirai_exact_mirrors_find(moirai_exact_search *s);

/* exact_machine.c: the least makespan of one machine with heads, lengths and tails, interruption allowed. */
int64_t moirai_exact_preemptive(moirai_exact_job *job, int32_t n);
/* All machines of the state: bounds into st->lb_ns, orders that are forced, devices that are ruled out. False: no plan
 * below s->below_ns is left. *changed is set where something moved. */
bool moirai_exact_machines(moirai_exact_search *s, moirai_exact_state *st, bool *changed);
/* Machines are numbered: devices, then ports (send, receive) or channels. The count also fills s->machine_count with
 * (at least) the number of jobs of each. */
int32_t moirai_exact_machine_count(moirai_exact_search *s);
int32_t moirai_exact_machine_jobs(const moirai_exact_search *s, const moirai_exact_state *st, int32_t machine,
                                  moirai_exact_job *job);

/* exact_window.c: heads and tails along the graph. */
void moirai_exact_heads(moirai_exact_search *s, moirai_exact_state *st, bool *changed);
void moirai_exact_tails(moirai_exact_search *s, moirai_exact_state *st, bool *changed);
/* Which transfers are sure, between which devices: fills s->active and its companions. */
void moirai_exact_activate(moirai_exact_search *s, const moirai_exact_state *st);
void moirai_exact_arcs(moirai_exact_search *s, moirai_exact_state *st, bool *changed);

/* exact_propagate.c: to (nearly) a fixed point. False: no plan below s->below_ns is left in this node. */
bool moirai_exact_propagate(moirai_exact_search *s, moirai_exact_state *st);
/* Take devices from operator `op` and all of its unit; false if none is left. */
bool moirai_exact_restrict(moirai_exact_search *s, moirai_exact_state *st, int32_t op, uint64_t keep, bool *changed);
/* All operators fixed: raise heads until every arc holds; false where that never ends (a cycle). */
bool moirai_exact_settle(moirai_exact_search *s, moirai_exact_state *st);

/* exact_share.c */
int moirai_exact_share_new(moirai_exact_search *s);
void moirai_exact_share_free(moirai_exact_search *s);
bool moirai_exact_share_out(moirai_exact_search *s, moirai_exact_state *st, bool *changed);

/* exact_memory.c */
bool moirai_exact_memory(moirai_exact_search *s, moirai_exact_state *st, bool *changed);
/* All operators fixed and settled: a set of tensors that are alive together and do not fit; 0 where all fits. */
typedef struct moirai_exact_life {
    int64_t begin, end, bytes;
    int32_t tensor;
} moirai_exact_life;
int32_t moirai_exact_overload(moirai_exact_search *s, const moirai_exact_state *st, int32_t *device, int32_t *tensor);
/* Append the arcs that make `second` be born on the device after `first` has died there (first == second: live for no
 * time); the number appended, 0 where it can't be, negative if out of memory. */
int32_t moirai_exact_part(moirai_exact_search *s, moirai_exact_state *st, int32_t device, int32_t first,
                          int32_t second);
int moirai_exact_arc_add(moirai_exact_search *s, moirai_exact_state *st, int32_t before, int32_t after);

/* exact_start.c: a first plan, where the caller has none. */
int moirai_exact_start(moirai_exact_search *s);
/* exact_branch.c: some operator is open; exact_order.c: all are fixed. */
void moirai_exact_branch(moirai_exact_search *s, int32_t depth);
void moirai_exact_order(moirai_exact_search *s, int32_t depth);
/* exact_solve.c: search the node at this depth. Where a limit stops it, what is left unsearched is in s->open_lb_ns. */
void moirai_exact_visit(moirai_exact_search *s, int32_t depth);
void moirai_exact_leave(moirai_exact_search *s, int64_t lb_ns); /* something of this bound stays unsearched */
void moirai_exact_found(moirai_exact_search *s, const moirai_exact_state *st);
/* exact_result.c: fill r->order. */
int moirai_exact_sort(const moirai_problem *p, moirai_exact_result *r);

#define EXACT_ONLY(mask) (((mask) & ((mask)-1)) == 0)
#define EXACT_FIRST(mask) ((int32_t)__builtin_ctzll(mask))

#define EXACT_NONE_NS INT64_MAX /* no value: larger than every time */

static inline int32_t exact_slot(const moirai_exact_search *s, int32_t edge, int32_t to)
{
    return s->edge ? edge : s->p->edge_tensor[edge] * s->K + to;
}
static inline int64_t *exact_head(const moirai_exact_search *s, const moirai_exact_state *st, int32_t task)
{
    return task < s->n ? &st->head[(int64_t)task * s->K + EXACT_FIRST(st->dom[task])] : &st->xhead[task - s->n];
}
static inline int64_t *exact_tail(const moirai_exact_search *s, const moirai_exact_state *st, int32_t task)
{
    return task < s->n ? &st->tail[(int64_t)task * s->K + EXACT_FIRST(st->dom[task])] : &st->xtail[task - s->n];
}
static inline int64_t exact_length(const moirai_exact_search *s, const moirai_exact_state *st, int32_t task)
{
    return task < s->n ? moirai_op_ns(s->p, task, EXACT_FIRST(st->dom[task])) : s->slot_ns[task - s->n];
}

#endif
