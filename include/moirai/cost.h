/* Cost models: the time of an operator on a device, behind one registry. */
#ifndef MOIRAI_COST_H
#define MOIRAI_COST_H

#include <moirai/cluster.h>
#include <moirai/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moirai_cost_model {
    const char *name;    /* "table", "roofline", "wave", "fitted", "auto" */
    const char *summary;
    /* Time of operator `op` on `device` in ns, or MOIRAI_UNKNOWN where this model has no answer. */
    int64_t (*op_ns)(const moirai_graph *g, int32_t op, const moirai_device *device);
} moirai_cost_model;

MOIRAI_API int moirai_cost_model_count(void);
MOIRAI_API const moirai_cost_model *moirai_cost_model_at(int index);
MOIRAI_API const moirai_cost_model *moirai_cost_model_find(const char *name);

/* What the times of a problem came from, for the user. */
typedef struct moirai_cost_report {
    int64_t n_by_model[8]; /* (operator, device) pairs by model index */
    int64_t n_fallback;    /* operators of which nothing was known: they got the launch cost and their traffic */
} moirai_cost_report;

/* time_ns[op * n_devices + device] for all pairs. `model` NULL or "auto": the best available for each.
 * `report` may be NULL. */
MOIRAI_API int moirai_cost_times(int64_t *time_ns, const moirai_graph *g, const moirai_cluster *c, const char *model,
                                 moirai_cost_report *report);

#ifdef __cplusplus
}
#endif
#endif
