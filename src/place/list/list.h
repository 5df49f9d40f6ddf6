/* Common to the list schedulers: what has been placed so far, room in memory, and the plan at the end. Private. */
#ifndef MOIRAI_PLACE_LIST_LIST_H
#define MOIRAI_PLACE_LIST_LIST_H

#include "place/fit.h"
#include "problem/device_set.h"
#include "util/stop.h"

typedef struct place_list {
    const moirai_problem *p;
    place_units *u;
    moirai_sim *sim;
    int32_t *device; /* MOIRAI_NONE: not yet placed */
    int64_t *start_ns, *finish_ns;
    int64_t *arrival_ns; /* per possible transfer, numbered as moirai_task - n_ops; MOIRAI_UNKNOWN: not sent */
    int32_t *unit_device;
    int64_t room_bytes[MOIRAI_MAX_DEVICES];
    moirai_task *log; /* placed tasks in an order of precedence */
    int64_t *log_start_ns;
    int64_t n_log;
    bool overfull;  /* some unit had to go where it does not fit */
    int32_t *input; /* scratch: an operator's inputs by arrival */
} place_list;

int place_list_new(place_list **out, const moirai_problem *p);
void place_list_free(place_list *list);
/* Nothing placed. */
void place_list_clear(place_list *list);

/* Devices on which the operator may be placed now: those that can run it, its group's, those with room. Where no
 * device has room, all that can run it: the plan is repaired at the end. */
device_set place_list_devices(place_list *list, int32_t op);
void place_list_place_op(place_list *list, int32_t op, int32_t device, int64_t start_ns);
void place_list_place_transfer(place_list *list, int32_t slot, int64_t start_ns, int64_t ns);

/* Positions in p->op_in of the operator's inputs, earliest producers' finish first; they must all be placed. */
const int32_t *place_list_inputs(place_list *list, int32_t op);

/* Number of the transfer over an edge to a device. */
static inline int32_t place_list_edge_slot(const place_list *list, int32_t edge, int32_t device)
{
    const moirai_problem *p = list->p;
    return p->flow == MOIRAI_FLOW_EDGE ? edge : p->edge_tensor[edge] * p->n_devices + device;
}

/* The same for input j (position in p->op_in). */
static inline int32_t place_list_slot(const place_list *list, int32_t j, int32_t device)
{
    return place_list_edge_slot(list, list->p->op_in_edge[j], device);
}

/* Simulate the placed tasks in order of their starts; repair memory where needed. */
int place_list_plan(moirai_plan **out, place_list *list, const util_stop *stop);

/* Operators, the highest rank first, those of one rank as the problem's order has them. */
void place_list_by_rank(int32_t *order, const int64_t *rank, const moirai_problem *p);

/* MOIRAI_ELIMIT: the time was up when so many operators were placed. */
int place_list_late(const moirai_problem *p, int32_t n_placed);

#endif
