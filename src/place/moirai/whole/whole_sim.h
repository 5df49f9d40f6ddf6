/* A schedule of the whole problem that small changes make again in little time. */
#ifndef MOIRAI_PLACE_MOIRAI_WHOLE_SIM_H
#define MOIRAI_PLACE_MOIRAI_WHOLE_SIM_H

#include <moirai/schedule.h>

#include "place/fit.h"
#include "util/util.h"

#define PLACE_WHOLE_STRIDE 8 /* positions of the order from one mark to the next */

typedef struct place_whole_slot {
    int64_t arrival_ns;
    int32_t by;     /* the reader that had it sent, MOIRAI_NONE: nobody yet */
    uint32_t trial; /* in which it was sent */
} place_whole_slot;

typedef struct place_whole_slot_log {
    int32_t slot;
    place_whole_slot old;
} place_whole_slot_log;

/* What does not change: inputs of operators, flat, and what follows their finish. */
typedef struct place_whole_input {
    int32_t *off, *producer, *slot, *class_; /* slot of device 0, class * K * K */
    int64_t *least_tail_ns;                  /* [op * K + device] */
    bool per_edge;                           /* flow edge */
} place_whole_input;

/* How late everything may be without lengthening the schedule; of the state at hand or of one shortly before. */
typedef struct place_whole_late {
    int64_t *start_ns, *finish_ns;   /* per operator */
    int64_t *mark_ns;                /* [mark * n_lines + line] */
    int64_t *need_ns, *slot_need_ns; /* working memory of the backward pass */
    int64_t makespan_ns;             /* that of the state they were found for */
    int32_t stale;                   /* states accepted since */
} place_whole_late;

typedef struct place_whole_moved {
    int32_t n; /* operators whose device changes */
    int32_t *op, *from;
} place_whole_moved;

/* The stretch of the order that changes, and how it was. */
typedef struct place_whole_cut {
    int32_t first, last;
    int32_t *order, *spare;
} place_whole_cut;

typedef struct place_whole_trial {
    uint32_t number;
    int32_t first, last; /* positions that it changes; first > last: none */
    place_whole_moved moved;
    place_whole_cut cut;
    int32_t *mark_of_op; /* working memory: which operators are to move; a number per use */
    int32_t mark_now;
    int32_t from_mark, to_mark; /* evaluated: from one mark to another */
    int32_t done;               /* positions evaluated: up to here */
    int32_t seen_until;         /* latest position whose operator may see a difference */
    int64_t makespan_ns;
    int64_t *line_ns, *mark_ns, *part_ns;
    int64_t *finish_log; /* [position]: how it was */
    place_whole_slot_log *slot_log;
    int64_t n_slot_log;
} place_whole_trial;

/* State at hand: `device` and `order`, and the times that follow from them. A trial changes both, evaluates, and is
 * then accepted or rejected. */
typedef struct place_whole {
    const moirai_problem *p;
    int32_t n, K;
    int32_t n_lines; /* devices, then ports or channels, if transfers hold such: when each is free */
    int32_t n_marks; /* marks lie before positions 0, STRIDE, ... and after the last */
    place_whole_input in;
    place_units *units; /* operators that share a device */

    int32_t *device, *order, *position;
    int64_t *finish_ns;     /* per operator */
    place_whole_slot *slot; /* per slot (sim.h): transfers that were sent */
    int64_t *bytes;         /* per device: memory of its operators */
    int64_t *mark_ns;       /* [mark * n_lines + line] */
    int64_t *part_ns;       /* [mark]: latest finish of the operators from there to the next mark */
    int64_t makespan_ns;

    place_whole_late late;
    place_whole_trial trial;
    util_memory memory; /* of all arrays */
} place_whole;

/* Whether a state of the problem takes no more memory than there should be; there are several at a time. */
bool place_whole_fits(const moirai_problem *p);
int place_whole_new(place_whole **out, const moirai_problem *p, const util_stop *stop);
void place_whole_free(place_whole *w);

/* Sets the state: `order` holds all operators in an order of precedence, devices are allowed ones. The makespan.
 * O(V+E). */
int64_t place_whole_set(place_whole *w, const int32_t *device, const int32_t *order);

/* n operators from position `first` on, where the order has them in another order. */
void place_whole_set_order(place_whole *w, int32_t first, int32_t n, const int32_t *op);

/* ---- one trial: changes, then place_whole_try, then accept or reject ---- */

void place_whole_begin(place_whole *w);
/* The operator and its group to another device; false (and no change) where it is not allowed, does not fit (static
 * bytes), or is there already. */
bool place_whole_move(place_whole *w, int32_t op, int32_t device);
/* At most once per trial. The operator goes to an earlier (later) position, and what precedes (follows) it on the way
 * goes with it. */
void place_whole_shift(place_whole *w, int32_t op, int32_t to);
/* The makespan, or INT64_MAX where it is above `limit_ns`. That may be a guess: what the change delays is compared with
 * how late it may be. */
int64_t place_whole_try(place_whole *w, int64_t limit_ns);
void place_whole_accept(place_whole *w);
void place_whole_reject(place_whole *w);

/* Whether the operator lies on a critical path of the state at hand, or did shortly before. */
static inline bool place_whole_critical(const place_whole *w, int32_t op)
{
    return w->finish_ns[op] - w->late.finish_ns[op] >= w->makespan_ns - w->late.makespan_ns;
}

/* The tasks of the state at hand in the order they were put down; room for V + E. */
int64_t place_whole_tasks(const place_whole *w, moirai_task *task);

#endif
