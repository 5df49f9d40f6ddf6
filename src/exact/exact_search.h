/* Inside the exact search: its tables, a node's state, and what the files of this folder share. */
#ifndef MOIRAI_EXACT_EXACT_SEARCH_H
#define MOIRAI_EXACT_EXACT_SEARCH_H

#include "exact/exact.h"
#include "util/util.h"

/* A task is an operator i or the transfer n_ops + slot; slots are numbered as in moirai_task. */
typedef struct exact_arc {
    int32_t before, after; /* `after` starts no sooner than `before` finishes */
} exact_arc;

/* A task on one machine (a device, a port, a channel): release, length, tail. `task` leads back to where they are kept.
 */
typedef struct exact_job {
    int64_t r, p, q;
    int32_t task;
} exact_job;

/* What a node knows. All of it is valid for every plan of the node that is faster than the search's `below_ns`. */
typedef struct exact_state {
    uint64_t *dom;          /* per operator: devices left */
    int64_t *head, *tail;   /* [op * K + device]: start no sooner than head, tail after the finish at least */
    int64_t *xhead, *xtail; /* per slot: the same of a transfer, should it take place */
    uint8_t *
        stale; /* per operator: EXACT_STALE_HEAD, EXACT_STALE_TAIL, where a neighbour has moved since it was looked at */
    int64_t lb_ns;           /* from here on a node begins as a copy of the one above (exact_state.c) */
    int32_t n_arcs;          /* of search.arc, those that hold here */
    int32_t n_open;          /* operators with more than one device left */
    uint64_t stale_devices;  /* devices of which a task has moved since they were looked at, */
    int64_t looked_below_ns; /* for plans below this */
} exact_state;

enum { EXACT_STALE_HEAD = 1, EXACT_STALE_TAIL = 2 };

/* An automorphism of the graph: exchanges operators pairwise and changes nothing that a makespan depends on. */
typedef struct exact_mirror {
    int32_t n; /* operators moved; image[moved[j]] is where it goes */
    int32_t *moved;
    int32_t *image; /* per operator */
} exact_mirror;

typedef struct exact_mode {
    bool edge, peak, memory_binds;
    bool plain; /* rules that a certificate can repeat, and a tree */
} exact_mode;

/* Operators that must share a device: groups, and every free operator alone. */
typedef struct exact_units {
    int32_t n, *off, *op;
    int32_t *of; /* per operator */
} exact_units;

typedef struct exact_symmetry {
    bool *same_device; /* [a * K + b]: exchanging a and b changes nothing */
    exact_mirror *mirror;
    int32_t n_mirrors;
} exact_symmetry;

typedef struct exact_stack {
    exact_state **state; /* one per depth; they never move */
    size_t capacity, bytes;
    int32_t n;
    exact_arc *arc;
    size_t arc_capacity;
} exact_stack;

/* Transfers that are sure to be sent. */
typedef struct exact_slots {
    int32_t *active, n_active;
    int32_t *from, *to; /* of active slots: device, or -1 while open */
    int64_t *ns;        /* of active slots: least length */
} exact_slots;

/* Working memory of propagation. */
typedef struct exact_work {
    exact_job *job, *job_spare;
    int64_t *free_bytes; /* per device: not taken by operators fixed there */
    int32_t *machine_count;
    struct exact_life *life;
    int32_t *task, *cover;
} exact_work;

/* How far it has come. */
typedef struct exact_run {
    double start_s;
    int64_t ceiling_ns, horizon_ns; /* below_ns at the beginning: the caller's, or more than any plan needs */
    int64_t nodes;
    size_t tree_capacity;
    bool stopped, failed; /* a limit was reached; out of memory */
    int64_t open_lb_ns;   /* least bound of what was left unsearched */
} exact_run;

typedef struct exact_search {
    const moirai_problem *p;
    const exact_options *o;
    exact_result *r;
    int32_t n, K, X;
    int64_t below_ns; /* wanted: less than this */
    exact_mode mode;
    exact_units unit;
    int32_t *dead_ends; /* per operator: children that failed at once; kept over restarts */
    exact_symmetry symmetry;
    exact_stack stack;
    exact_slots slot;
    exact_work work;
    exact_run run;
    util_memory memory;
} exact_search;

/* exact_setup.c */
int exact_search_new(exact_search *s, const moirai_problem *p, const exact_options *o, exact_result *r);
void exact_search_free(exact_search *s);
/* The root's state, with nothing known. */
void exact_root(exact_search *s);
/* The state of one level deeper, a copy of the level above; NULL if out of memory. */
exact_state *exact_push(exact_search *s, int32_t depth);

/* exact_mirror.c */
int exact_mirrors_find(exact_search *s);

/* exact_machine.c: the least makespan of one machine with heads, lengths and tails, interruption allowed. */
int64_t exact_preemptive(exact_job *job, int32_t n);
/* All machines of the state: bounds into st->lb_ns, orders that are forced, devices that are ruled out. False: no plan
 * below s->below_ns is left. *changed is set where something moved. */
bool exact_machines(exact_search *s, exact_state *st, bool *changed);
/* Machines are numbered: devices, then ports (send, receive) or channels. The count also fills s->work.machine_count with
 * (at least) the number of jobs of each. */
int32_t exact_machine_count(exact_search *s);
int32_t exact_machine_jobs(const exact_search *s, const exact_state *st, int32_t machine, exact_job *job);

/* exact_window.c: heads and tails along the graph. */
void exact_heads(exact_search *s, exact_state *st, bool *changed);
void exact_tails(exact_search *s, exact_state *st, bool *changed);
/* Which transfers are sure, between which devices: fills s->slot.active and its companions. */
void exact_activate(exact_search *s, const exact_state *st);
void exact_arcs(exact_search *s, exact_state *st, bool *changed);
/* A task of which it is certain where it runs. */
void exact_raise_task(const exact_search *s, exact_state *st, int32_t task, int64_t head, int64_t tail, bool *changed);
/* The task's head, or what else its readers' heads hang on, has moved; its tail, or what else its producers' tails hang on. */
void exact_head_moved(const exact_search *s, exact_state *st, int32_t task);
void exact_tail_moved(const exact_search *s, exact_state *st, int32_t task);

/* exact_propagate.c: to (nearly) a fixed point. False: no plan below s->below_ns is left in this node. */
bool exact_propagate(exact_search *s, exact_state *st);
/* Take devices from operator `op` and all of its unit; false if none is left. */
bool exact_restrict(exact_search *s, exact_state *st, int32_t op, uint64_t keep, bool *changed);
/* All operators fixed: raise heads until every arc holds; false where that never ends (a cycle). */
bool exact_settle(exact_search *s, exact_state *st);

/* exact_memory.c: whether anything can be short of memory: not where every device has room for all. */
bool exact_memory_binds(const exact_search *s);
bool exact_memory(exact_search *s, exact_state *st, bool *changed);
/* All operators fixed and settled: a set of tensors that are alive together and do not fit; 0 where all fits. */
typedef struct exact_life {
    int64_t begin, end, bytes;
    int32_t tensor;
} exact_life;
int32_t exact_overload(exact_search *s, const exact_state *st, int32_t *device, int32_t *tensor);
/* Append the arcs that make `second` be born on the device after `first` has died there (first == second: live for no
 * time); the number appended, 0 where it can't be. */
int32_t exact_part(exact_search *s, exact_state *st, int32_t device, int32_t first, int32_t second);
/* Stops the search if out of memory. */
void exact_arc_add(exact_search *s, exact_state *st, int32_t before, int32_t after);

/* exact_branch.c: some operator is open; exact_order.c: all are fixed. */
void exact_branch(exact_search *s, int32_t depth);
void exact_order(exact_search *s, int32_t depth);
/* exact_solve.c: search the node at this depth. Where a limit stops it, what is left unsearched is in s->run.open_lb_ns. */
void exact_visit(exact_search *s, int32_t depth);
/* Writes a number of the tree down, where one is wanted. */
void exact_note(exact_search *s, int32_t number);
void exact_leave(exact_search *s, int64_t lb_ns); /* something of this bound stays unsearched */
void exact_found(exact_search *s, const exact_state *st);

#define EXACT_ONLY(mask) (((mask) & ((mask)-1)) == 0)
#define EXACT_FIRST(mask) ((int32_t)__builtin_ctzll(mask))

#define EXACT_NONE_NS INT64_MAX /* no value: larger than every time */

static inline bool exact_raise(int64_t *value, int64_t to, bool *changed)
{
    if (to <= *value)
        return false;
    *value = to;
    *changed = true;
    return true;
}
static inline int32_t exact_slot(const exact_search *s, int32_t edge, int32_t to)
{
    return s->mode.edge ? edge : s->p->edge_tensor[edge] * s->K + to;
}
static inline int64_t *exact_head(const exact_search *s, const exact_state *st, int32_t task)
{
    return task < s->n ? &st->head[(int64_t)task * s->K + EXACT_FIRST(st->dom[task])] : &st->xhead[task - s->n];
}
static inline int64_t *exact_tail(const exact_search *s, const exact_state *st, int32_t task)
{
    return task < s->n ? &st->tail[(int64_t)task * s->K + EXACT_FIRST(st->dom[task])] : &st->xtail[task - s->n];
}
static inline int64_t exact_length(const exact_search *s, const exact_state *st, int32_t task)
{
    return task < s->n ? moirai_op_ns(s->p, task, EXACT_FIRST(st->dom[task])) : s->slot.ns[task - s->n];
}

#endif
