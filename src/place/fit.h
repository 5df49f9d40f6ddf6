/* Memory for all placers: what must stay together, assignments that fit, schedules that fit. Private. */
#ifndef MOIRAI_PLACE_FIT_H
#define MOIRAI_PLACE_FIT_H

#include <moirai/placer.h>

#include "util/stop.h"

/* What is placed as one: a keep-together group, or an operator outside any. */
typedef struct place_units {
    int32_t n;
    int32_t *of_op;    /* operator -> unit */
    int32_t *off, *op; /* unit -> operators, CSR */
    int64_t *bytes;    /* memory_bytes of all members */
    int32_t words;     /* of a set of devices */
    uint64_t *devices; /* that can run all members: a set per unit, as moirai_problem has them */
    util_memory memory;
} place_units;

static inline bool place_unit_may(const place_units *u, int32_t unit, int32_t device)
{
    return u->devices[(int64_t)unit * u->words + device / 64] >> device % 64 & 1;
}

/* How many devices can run it, and the n-th of them, from 0 on. */
int32_t place_unit_count(const place_units *u, int32_t unit);
int32_t place_unit_device(const place_units *u, int32_t unit, int32_t n);

int place_units_new(place_units **out, const moirai_problem *p);
void place_units_free(place_units *u);
/* off and op, from n and of_op: each unit's operators in their order. */
void place_units_list(place_units *u, int32_t n_ops);

/* Move as little as possible until the operators' own bytes and the weights that they share fit `capacity` (per
 * device). op_device holds allowed devices, groups undivided, or MOIRAI_NONE for units that have none yet.
 * MOIRAI_EINFEASIBLE where nothing is found; op_device is then unspecified. O(E K log V) plus, where moving is not
 * enough, a bounded search. */
int place_fit_assignment(const moirai_problem *p, const place_units *u, const int64_t *capacity, int32_t *op_device);

/* Operators from which on a simulation takes a tenth of a second and more: fewer are tried. */
#define PLACE_FIT_LARGE 100000

/* The fastest schedule found for just these devices that fits the memory; *out is NULL, and *excess_bytes what the best
 * try lacked, where none does, or none did by the time `stop` (NULL: none) came; -1 where that was before the end of the first. */
int place_fit_schedule(moirai_plan **out, int64_t *excess_bytes, moirai_sim *sim, const moirai_problem *p,
                       int32_t *op_device, const util_stop *stop);

/* What device k needs at least if all operators are on it, in whatever order: their own bytes, shared weights once, and with memory mode
 * peak what an operator that takes time reads and writes, all of which is there while it runs. O(V + E). */
int64_t place_fit_least_bytes(const moirai_problem *p, int32_t k);

/* A plan for these devices that fits, with the problem's memory mode. Simulates `order` (n_order tasks) where given,
 * else dispatches by `priority` (NULL: upward ranks). Where that does not fit: other orders, waiting, other devices.
 * op_device changes where operators had to move. MOIRAI_EINFEASIBLE says which device is short of how many bytes, also where `stop` (NULL: none) came
 * before all was tried; MOIRAI_ELIMIT where the simulator obeys it (schedule_sim_obey) and ended nothing before. */
int place_fit_plan(moirai_plan **out, moirai_sim *sim, const moirai_problem *p, const place_units *u,
                   int32_t *op_device, const int64_t *priority, const moirai_task *order, int64_t n_order,
                   const util_stop *stop);
/* The same by upward ranks, from devices that stay as they are. */
int place_fit_devices(moirai_plan **out, const moirai_problem *p, const int32_t *op_device, const util_stop *stop);

#endif
