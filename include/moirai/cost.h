/* Cost models: the time of an operator on a device, behind one registry. */
#ifndef MOIRAI_COST_H
#define MOIRAI_COST_H

#include <moirai/cluster.h>
#include <moirai/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A graph on a cluster, with what the models look up again and again. Private: see src/cost/cost.h. */
typedef struct moirai_cost_context moirai_cost_context;

typedef struct moirai_cost_model {
    const char *name;    /* "table", "roofline", "wave", "fitted", "scaled", "auto" */
    const char *summary; /* one line for the documentation */
    /* Time of operator `op` on device number `device` in ns, or MOIRAI_UNKNOWN where this model has no answer. */
    int64_t (*op_ns)(const moirai_cost_context *x, int32_t op, int32_t device);
} moirai_cost_model;

/* How many cost models there are. */
MOIRAI_API int moirai_cost_model_count(void);
/* The model of that number, 0 to moirai_cost_model_count() - 1, in the order in which "auto" trusts them. Static. */
MOIRAI_API const moirai_cost_model *moirai_cost_model_at(int index);
/* The model of that name, or NULL. */
MOIRAI_API const moirai_cost_model *moirai_cost_model_find(const char *name);

/* What the times of a problem came from, for the user. */
typedef struct moirai_cost_report {
    int64_t n_by_model[8]; /* (operator, device) pairs by model index; "auto" itself never appears */
    int64_t n_fallback;    /* operators of a type that no model knows: they got a launch and their traffic */
    char first_fallback[128]; /* type of the first of them, "" if none */
} moirai_cost_report;

/* time_ns[op * n_devices + device] for all pairs, never below 0. `model` NULL or "auto": the best available for each;
 * "fitted:FILE": the fitted model with the coefficients that `moirai fit -o FILE` wrote.
 * `report` may be NULL. MOIRAI_EUSAGE: no such model. MOIRAI_EINPUT: the model has no answer for a pair, which the
 * message names (with "auto": a device whose type and figures are unknown and that was not measured).
 * O(operators x devices). */
MOIRAI_API int moirai_cost_times(int64_t *time_ns, const moirai_graph *g, const moirai_cluster *c, const char *model,
                                 moirai_cost_report *report);

#ifdef __cplusplus
}
#endif
#endif
