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

/* What will run the plan: starting an operator costs what its runtime needs, whatever the device. */
typedef enum moirai_runtime {
    MOIRAI_RUNTIME_UNSET, /* each model's own: the fit's (an eager framework), 5 us for the roofline */
    MOIRAI_RUNTIME_EAGER, /* eager PyTorch: the launches of the measurements behind the fit, 26.6 us */
    MOIRAI_RUNTIME_ORT,   /* ONNX Runtime, or any C++ loop over kernels: 5 us */
    MOIRAI_RUNTIME_GRAPH, /* CUDA graphs, TensorRT: 1 us */
    MOIRAI_RUNTIMES
} moirai_runtime;

/* Its name: "unset", "eager", "ort", "graph". Static. */
MOIRAI_API const char *moirai_runtime_name(moirai_runtime r);
/* The runtime of that name; NULL is MOIRAI_RUNTIME_UNSET. MOIRAI_EUSAGE for anything else. */
MOIRAI_API int moirai_runtime_parse(moirai_runtime *out, const char *text);
/* What an operator's launch costs; 0 where it is the model's own. */
MOIRAI_API int64_t moirai_runtime_launch_ns(moirai_runtime r);

typedef struct moirai_cost_options {
    const char *model;      /* as in moirai_cost_times; NULL: "auto" */
    moirai_runtime runtime; /* for what fitted and roofline say; a device's own launch_us goes before it */
    bool tf32;              /* fp32 products at the tf32 rate of devices that have one */
} moirai_cost_options;

/* What the times of a problem came from, for the user. */
typedef struct moirai_cost_report {
    int64_t n_by_model[8];    /* (operator, device) pairs by model index; "auto" itself never appears */
    int64_t n_fallback;       /* operators of a type that no model knows: they got a launch and their traffic */
    char first_fallback[128]; /* type of the first of them, "" if none */
    int64_t n_mixed;          /* operators for which no one model knows all devices: their times are not on one scale */
    int64_t n_two_scales;     /* operators measured on some devices and, on others, not even scaled from those times */
    int64_t launch_ns[MOIRAI_MAX_DEVICES]; /* of an operator, in most times of that device; 0: measured, so not known */
    int64_t mean_launch_ns[MOIRAI_MAX_DEVICES]; /* over the graph's operators: some classes take several launches' time
                                                   to start */
    int32_t unfitted_device; /* the first device that fitted does not know, so that all devices, GPUs that it does know
                                among them, were costed by the roofline; else MOIRAI_NONE */
} moirai_cost_report;

/* "auto" takes, for an operator, measured times first; for all devices that have none the first of scaled, wave,
 * fitted, roofline that knows them all: one scale. With every model but "table" a device that is at least as good as
 * another one in every figure (fp32 rate, rate of products, bandwidth, launch) never takes longer than that one.
 * time_ns[op * n_devices + device] for all pairs, never below 0. `model` NULL or "auto": the best available for each;
 * "fitted:FILE": the fitted model with the coefficients that `moirai fit -o FILE` wrote.
 * `report` may be NULL. MOIRAI_EUSAGE: no such model. MOIRAI_EINPUT: the model has no answer for a pair, which the
 * message names (with "auto": a device whose type and figures are unknown and that was not measured).
 * O(operators x devices). */
MOIRAI_API int moirai_cost_times(int64_t *time_ns, const moirai_graph *g, const moirai_cluster *c, const char *model,
                                 moirai_cost_report *report);
/* The same with all options; `o` NULL is {0}. */
MOIRAI_API int moirai_cost_times_with(int64_t *time_ns, const moirai_graph *g, const moirai_cluster *c,
                                      const moirai_cost_options *o, moirai_cost_report *report);

#ifdef __cplusplus
}
#endif
#endif
