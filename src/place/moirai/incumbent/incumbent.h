/* What a search knows: the best plan, the best bound, who found them, and what every step has taken and gained.
 *
 * Steps (step.h) share nothing else. A search on the spine of a problem (decompose/spine.h) has an incumbent of its own,
 * whose finds become finds of the outer one. */
#ifndef MOIRAI_PLACE_MOIRAI_INCUMBENT_H
#define MOIRAI_PLACE_MOIRAI_INCUMBENT_H

#include <moirai/placer.h>

#include "decompose/spine.h"
#include "util/stop.h"

/* What a step has taken and gained so far. */
typedef struct incumbent_stat {
    int32_t calls;
    double cpu_s; /* processor time */
    int64_t plan_gain_ns, bound_gain_ns;
} incumbent_stat;

typedef struct incumbent {
    const moirai_problem *p;
    const moirai_place_options *o;
    double begun;
    util_stop stop;
    moirai_plan *best;
    int64_t lower_ns;
    const char *at_work;            /* the step that has its turn, or the bound that is known without one */
    const char *plan_by, *bound_by; /* who found the two; NULL: nobody yet */
    incumbent_stat stat[UTIL_N_METHODS];
    int64_t starts_ns, rival_ns; /* as moirai_plan_origin has them */
    int32_t tries, stale;
    double effort;                /* that of the budget; doubled whenever it is used up and time is left */
    int32_t passes;               /* how often it was doubled */
    int64_t work;                 /* batches, evaluations and nodes, for the log */
    bool memory_binds;            /* the last plan that was simulated is too large */
    struct incumbent *outer;      /* of whose spine this is the search; NULL: of none */
    const decompose_spine *spine; /* that spine */
} incumbent;

/* The time of the budget runs from here on. */
void incumbent_begin(incumbent *x, const moirai_problem *p, const moirai_place_options *o);
void incumbent_clear(incumbent *x);
bool incumbent_stopped(const incumbent *x);
/* Whether the plan is within the gap that was asked for, or the time is over. */
bool incumbent_done(const incumbent *x);
/* Stops after this part of the time that is left; without a limit there stays none. */
util_stop incumbent_part(const incumbent *x, double part);
/* News for the log; `letter` says who found the plan, ' ' nobody. Silent within a search on a spine. */
void incumbent_tell(const incumbent *x, char letter, const char *note);
/* A proven bound; one of a spine is one of the whole. INT64_MAX and what is no better are passed over. */
void incumbent_take_bound(incumbent *x, int64_t lower_ns);
/* Takes ownership of plan and keeps it if it is the best. One of a spine becomes one of the whole as well. */
int incumbent_offer(incumbent *x, moirai_plan *plan, char letter);
/* The same of a plan to begin with (place/starts.h; `data` is the incumbent); notes the best of the heuristics'. */
int incumbent_offer_start(void *data, moirai_plan *plan, char letter);
/* Offers the simulator's last run, of this length (negative: none), if it is of use; notes where it does not fit the
 * memory. */
int incumbent_take_simulated(incumbent *x, moirai_sim *sim, int64_t makespan_ns, char letter);
/* How far the best plan can be from the optimum, as a share of it; 1 without a plan. */
double incumbent_gap(const incumbent *x);
/* Goes on with twice the effort: true where there is a time limit, time left and a gap to close. */
bool incumbent_grow(incumbent *x);

/* Which steps found the plan and the bound, and what each has taken and gained, into the plan. */
int incumbent_sign(const incumbent *x, moirai_plan *plan);

/* Floating work put beside a plan of the spine (floats.c): a plan of the whole; *out is NULL where none that fits the memory was
 * found. */
int place_floats_insert(moirai_plan **out, const decompose_spine *s, const moirai_plan *spine_plan,
                        const util_stop *stop);

/* Whether a method is switched off. */
#define incumbent_off(x, id) util_off(&(x)->stop, UTIL_METHOD_##id)

#endif
