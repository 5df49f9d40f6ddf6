/* A plan: a device and a start for every operator, a start for every transfer (model.md, "Plan"). */
#ifndef MOIRAI_PLAN_H
#define MOIRAI_PLAN_H

#include <moirai/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_transfer {
    int32_t tensor;
    int32_t reader; /* flow edge: the consumer; MOIRAI_NONE with flow tensor */
    int32_t from, to;
    int64_t start_ns, finish_ns;
} moirai_transfer;

/* What certificates have no proof for, as bits: what may account for a bound that is certified in part only. */
typedef enum moirai_uncertified {
    MOIRAI_UNCERTIFIED_SEARCH = 1,   /* searched by rules that leave no tree behind, or beyond what trees may take */
    MOIRAI_UNCERTIFIED_GROUPS = 2,   /* operators that must share a device */
    MOIRAI_UNCERTIFIED_MEMORY = 4,   /* memory that binds within searches */
    MOIRAI_UNCERTIFIED_WEIGHTS = 8,  /* weights that several operators share */
    MOIRAI_UNCERTIFIED_PEAK = 16,    /* lives of tensors (memory mode peak) */
    MOIRAI_UNCERTIFIED_LIMIT = 32,   /* the verifier was stopped before it was done */
    MOIRAI_UNCERTIFIED_REJECTED = 64 /* the verifier rejects what was written: a fault of moirai's */
} moirai_uncertified;
#define MOIRAI_UNCERTIFIED_BITS 7

/* What a step of a search has taken and gained, all its calls together. */
typedef struct moirai_search_step {
    char *name; /* as --set off=NAME has it */
    int32_t calls;
    int64_t cpu_ns; /* processor time of the process meanwhile; MOIRAI_UNKNOWN where the plan was read from a file */
    int64_t plan_gain_ns, bound_gain_ns; /* how much shorter the plan and how much higher the bound was afterwards */
} moirai_search_step;

/* Which steps a plan and its bound come from. All of it is NULL or 0 where nothing is known, as for plans by hand. */
typedef struct moirai_plan_origin {
    char *plan_by;            /* the step that found the plan; NULL: the placer has none */
    char *bound_by;           /* the step, bound or placer that has proven lower_bound_ns */
    int32_t n_steps;          /* those that were called, */
    moirai_search_step *step; /* in the order in which `moirai help place` names them */
    int64_t starts_ns;        /* the shortest plan of the quick heuristics that a search begins with; 0: none */
    int64_t rival_ns;         /* where the second best of the last hot annealing's runs has ended by itself; 0: none */
    int32_t tries, stale;     /* plans that steps have offered, and how many since one was shorter by 0.05 % */
} moirai_plan_origin;

/* One of several copies of the network that work at the same time: which requests it has, and where its operators run. */
typedef struct moirai_copy {
    int64_t share_ppm; /* of a million requests, by its rate in the simulation; all copies have a million together */
    int32_t
        slots; /* requests that it has in flight; who finishes one takes the next. 0, in all copies: turns by share, the
                           next request goes to the copy that is furthest behind its own */
    int32_t *op_device; /* of every operator */
} moirai_copy;

/* What a plan is for where many requests are in flight (docs/rate.md). */
typedef struct moirai_rate {
    int32_t in_flight;           /* requests at most */
    int64_t period_ns;           /* simulated time between two finished requests in the long run, rounded up */
    int64_t period_bound_ns;     /* proven: no plan with so many in flight has less; MOIRAI_UNKNOWN where nothing is */
    int64_t period_certified_ns; /* what the verifier found proven in the certificate; MOIRAI_UNKNOWN without one */
    int64_t latency_ns;          /* from entry to finish, of the slowest request of the steady state */
    int64_t alone_ns;  /* the period of one request at a time, by the best plan of one request; MOIRAI_UNKNOWN */
    int32_t n_copies;  /* at least 1 */
    moirai_copy *copy; /* the first has the plan's own devices */
    int32_t pace;      /* requests that enter while one goes its way, as its operators are due; 0: oldest first */
} moirai_rate;

typedef struct moirai_plan {
    char *problem; /* name */
    char *placer;
    uint64_t seed;
    uint64_t
        problem_digest; /* of the problem that it was read as a plan of (moirai_problem_digest); 0: the file has none */
    int64_t makespan_ns;
    int64_t lower_bound_ns;     /* MOIRAI_UNKNOWN where nothing is proven */
    int64_t certified_bound_ns; /* what the verifier proves from the certificate written with it; else MOIRAI_UNKNOWN */
    int64_t generation_ns;
    int32_t n_ops;
    int32_t *op_device;
    int64_t *op_start_ns, *op_finish_ns;
    int32_t n_transfers;
    moirai_transfer *transfer; /* sorted by (start, from, to, tensor, reader) */
    int32_t n_devices;
    int64_t *device_busy_ns, *device_memory_bytes;
    int64_t *device_peak_bytes; /* MOIRAI_UNKNOWN: a file does not say, or the search was interrupted (docs/model.md) */
    uint32_t uncertified; /* bits of moirai_uncertified; 0 where all of the bound is certified, or nothing was asked */
    int64_t solver_bound_ns; /* what a solver says in floating point, proven by nobody; MOIRAI_UNKNOWN without one */
    moirai_plan_origin origin;
    moirai_rate *
        rate; /* made for many requests in flight; all above is then of one request, alone, on the first copy. Or NULL */
} moirai_plan;

/* Frees all of it. NULL is fine. */
MOIRAI_API void moirai_plan_free(moirai_plan *plan);
/* A plan of its own with the same content; *out is the caller's. MOIRAI_EFAIL: out of memory. */
MOIRAI_API int moirai_plan_copy(moirai_plan **out, const moirai_plan *plan);
/* (makespan - bound) / makespan, 0 for an empty plan, -1 where nothing is proven. */
MOIRAI_API double moirai_plan_gap(const moirai_plan *plan);
/* Whether the plan is as short as its proven bound. */
MOIRAI_API bool moirai_plan_is_optimal(const moirai_plan *plan);
/* "optimal (certified)" where the verifier has proven that none is shorter, "optimal (searched)" where a search or a
 * bound has, without leaving all of the proof behind, else "feasible", or "feasible (optimal by its solver's word)" where
 * a solver in floating point says so. Static. */
MOIRAI_API const char *moirai_plan_verdict(const moirai_plan *plan);
/* Where a search leaves a gap of more than a tenth, which side is likely the weak one, by what it has seen: "bound",
 * "plan", or "open" where that says neither (docs/engine.md). NULL where the gap is small, nothing is proven or nothing
 * was searched. Static. An estimate: nothing of it is proven. */
MOIRAI_API const char *moirai_plan_weak_side(const moirai_plan *plan);
/* The same in a sentence with its reasons, at most `size` bytes; "" where there is nothing to say. */
MOIRAI_API void moirai_plan_weak_text(const moirai_plan *plan, char *out, size_t size);
/* A bit of moirai_uncertified in words, such as "groups". Static; NULL for anything else. */
MOIRAI_API const char *moirai_uncertified_text(uint32_t bit);

/* Names are resolved against `p`: a plan whose names are not there is MOIRAI_EINPUT. A plan that says that it was made
 * for a problem of other content keeps its decisions, but not its lower bound, which says nothing about `p`; with
 * another number of operators it is MOIRAI_EINPUT. */
MOIRAI_API int moirai_plan_read(moirai_plan **out, const moirai_problem *p, const char *path);
/* The same from memory; `label` stands for the path in messages. */
MOIRAI_API int moirai_plan_parse(moirai_plan **out, const moirai_problem *p, const char *json, size_t length,
                                 const char *label);
/* Writes a plan file, atomically; names come from `p`, of which it must be a plan. */
MOIRAI_API int moirai_plan_write(const moirai_plan *plan, const moirai_problem *p, const char *path);

/* Gets one line per violation. */
typedef void (*moirai_report_fn)(void *data, const char *line);
/* Every violation of model.md as one line to `report` (may be NULL); returns 0 if there is none, MOIRAI_EFAIL with the
 * first one as message otherwise. Written against model.md, shares no code with the simulator. O((V+E) log(V+E)). */
MOIRAI_API int moirai_plan_check(const moirai_problem *p, const moirai_plan *plan, moirai_report_fn report, void *data);

#ifdef __cplusplus
}
#endif
#endif
