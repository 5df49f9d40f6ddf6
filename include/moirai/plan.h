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

typedef struct moirai_plan {
    char *problem; /* name */
    char *placer;
    uint64_t seed;
    uint64_t
        problem_digest; /* of the problem that it was read as a plan of (moirai_problem_digest); 0: the file has none */
    int64_t makespan_ns;
    int64_t lower_bound_ns;     /* MOIRAI_UNKNOWN where nothing is proven */
    int64_t certified_bound_ns; /* the part of it that a written certificate proves; MOIRAI_UNKNOWN without one */
    int64_t generation_ns;
    int32_t n_ops;
    int32_t *op_device;
    int64_t *op_start_ns, *op_finish_ns;
    int32_t n_transfers;
    moirai_transfer *transfer; /* sorted by (start, from, to, tensor, reader) */
    int32_t n_devices;
    int64_t *device_busy_ns, *device_memory_bytes, *device_peak_bytes;
} moirai_plan;

/* Frees all of it. NULL is fine. */
MOIRAI_API void moirai_plan_free(moirai_plan *plan);
/* A plan of its own with the same content; *out is the caller's. MOIRAI_EFAIL: out of memory. */
MOIRAI_API int moirai_plan_copy(moirai_plan **out, const moirai_plan *plan);
/* (makespan - bound) / makespan, 0 for an empty plan, -1 where nothing is proven. */
MOIRAI_API double moirai_plan_gap(const moirai_plan *plan);
/* Whether the plan is as short as its proven bound. */
MOIRAI_API bool moirai_plan_is_optimal(const moirai_plan *plan);

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
