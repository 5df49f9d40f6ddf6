/* The engine of the placer `moirai`: an incumbent, and steps that improve it by turns.
 *
 * A step is one file step_*.c with data of its own and one engine_step; schedule.c has the table that says which step
 * comes when, for how long and on what condition. Adding a step is such a file, a name in util/methods.h and a row of the
 * table. Nothing else holds a share of the time. */
#ifndef MOIRAI_PLACE_MOIRAI_ENGINE_H
#define MOIRAI_PLACE_MOIRAI_ENGINE_H

#include "bound/intervals/interval_chain.h"
#include "place/moirai/blocks/blocks.h"
#include "place/moirai/incumbent/incumbent.h"
#include "relax/relax.h"

#define ENGINE_NEAR 0.15    /* between bound and plan */
#define ENGINE_EXACT_OPS 48 /* problems up to this size go to the exhaustive search as a whole */

/* Of more devices than a mask has those that can matter: an optimum of the problem is one on these alone, too, so that what is proven of them
 * holds for the problem. */
typedef struct engine_part {
    int32_t n, device[MOIRAI_MASK_DEVICES]; /* n 0: more than a mask has */
} engine_part;

typedef struct engine {
    incumbent in;
    char why[512];        /* what a heuristic said that found no plan that fits, or "" */
    int64_t certified_ns; /* of the bound, by the certificate that was written */
    double plain_s;       /* what the plain bounds took: a measure of the problem's size */
    bool copies;          /* layers repeat */
    int32_t again;        /* how often all was tried once more, each time with twice the effort and another seed */
    blocks *blocks;       /* NULL: none yet */
    blocks *layers;       /* between cuts that no edge jumps over; NULL: none yet */
    int64_t loads_ns;     /* proven by prices on loads so far */
    relax_answer
        loads; /* the best of these proofs, of the whole or of blocks in a row; where a certificate is wanted */
    int32_t whole_rounds;            /* of annealing the whole so far */
    double whole_pace;               /* of the last one: evaluations of each chain in a second; 0: not known */
    decompose_spine *spine;          /* NULL: not needed */
    struct engine *inner;            /* the search on the spine */
    bound_portfolio *portfolio;      /* chains of intervals; NULL: none yet */
    bound_interval_chain *intervals; /* the best of them; NULL: none that has raised the bound */
    pair_chain *one_block;           /* the whole as one, for its certificate; NULL: not needed */
    engine_part part;                /* of more devices than a mask has */
    int (*place)(moirai_plan **out, const moirai_problem *p, const moirai_place_options *o); /* what places it there */
} engine;

/* A row of the schedule. */
typedef struct engine_turn {
    const struct engine_step *step;
    double share;   /* of the time that is left */
    int32_t rounds; /* of annealing; attempts at each pair of intervals */
    int32_t size;   /* chains of intervals; levels of blocks; plans to begin with; 0: as the step thinks best */
    bool (*when)(const engine *x); /* NULL: always */
} engine_turn;

typedef struct engine_step {
    util_method method;
    bool without_plan; /* it may run before there is a plan */
    bool to_the_end;   /* and goes on where the gap is closed as far as was asked */
    int (*run)(engine *x, const engine_turn *turn);
} engine_step;

extern const engine_step step_starts, step_exact, step_blocks, step_layers, step_whole_anneal, step_intervals,
    step_interval_plans, step_loads_first, step_loads, step_part, step_paths;

/* NULL: out of memory. The time of the budget runs from here on. */
engine *engine_new(const moirai_problem *p, const moirai_place_options *o);
void engine_free(engine *x);
/* One turn, if it is due: counted and timed (incumbent_stat). */
int engine_take_turn(engine *x, const engine_turn *turn);
/* All turns of the schedule, until the gap is closed, all has been tried or the time is over. */
int engine_search(engine *x);
/* O(V K + tables of times). */
int engine_choose_part(engine_part *out, const moirai_problem *p);
/* The chain of blocks, made if it is not there. MOIRAI_ELIMIT: too many pairs. */
int engine_blocks(engine *x);
/* The whole as one block without cuts, open: what is proven of it can be certified like any other pair. *out is the
 * caller's, also on failure. */
int engine_whole_block(pair_chain **out, const moirai_problem *p);
/* The proof behind the bound, as far as it can be certified by `stop`, is written to the path of the options. */
int engine_certify(engine *x, const util_stop *stop);
/* The best proof by loads is kept for the certificate, unless it is too large for one: *answer is then what was kept
 * before. */
void engine_keep_loads(engine *x, relax_answer *answer);
/* Nothing fits: what came nearest, in whole bytes. */
int engine_explain(const engine *x, const char *how);

#endif
