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
    MOIRAI_RUNTIME_UNSET,    /* each model's own: the fit's (an eager framework), 5 us for the roofline */
    MOIRAI_RUNTIME_EAGER,    /* eager PyTorch: the launches of the measurements behind the fit, 26.6 us */
    MOIRAI_RUNTIME_ORT,      /* ONNX Runtime, or any C++ loop over kernels: 5 us */
    MOIRAI_RUNTIME_GRAPH,    /* compiled, replayed as CUDA graphs: 1 us */
    MOIRAI_RUNTIME_TENSORRT, /* TensorRT, with its own kernels: 6.8 us */
    MOIRAI_RUNTIMES
} moirai_runtime;

/* Its name: "unset", "eager", "ort", "graph", "tensorrt". Static. */
MOIRAI_API const char *moirai_runtime_name(moirai_runtime r);
/* The runtime of that name; NULL is MOIRAI_RUNTIME_UNSET. MOIRAI_EUSAGE for anything else. */
MOIRAI_API int moirai_runtime_parse(moirai_runtime *out, const char *text);
/* What an operator's launch costs; 0 where it is the model's own. */
MOIRAI_API int64_t moirai_runtime_launch_ns(moirai_runtime r);
/* What a segment of a plan costs a device beside its operators (a sub-model of its own to start and to wait for), which
 * every cut brings; `processor`: the device is one, not an accelerator. 0 for MOIRAI_RUNTIME_UNSET. `plan`, `split` and
 * `run` take it from here. */
MOIRAI_API int64_t moirai_runtime_segment_ns(moirai_runtime r, bool processor);

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
    moirai_runtime
        runtime[MOIRAI_MAX_DEVICES]; /* whose launches most times of that device have: the one asked for, else
                                                   the model's; MOIRAI_RUNTIME_UNSET: measured, so not known */
} moirai_cost_report;

/* "auto" takes, for an operator, measured times first; for all devices that have none the first of scaled, fitted,
 * roofline, wave that knows them all: one scale, and a device's times are the same whatever stands beside it. With
 * fitted and roofline a device that is at least as good as another of its kind in every figure (rates, bandwidth,
 * cache, power for its process, launch) never takes longer than that one.
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

/* How sure the times are: with 80 % a pair's real time lies between time / spread and time x spread, by errors on GPUs
 * that the fit had not seen (docs/cost-models.md); 1 for measured times. spread[op * n_devices + device].
 * O(operators x devices). */
MOIRAI_API int moirai_cost_spread(double *spread, const moirai_graph *g, const moirai_cluster *c);
/* Times as they might be: each of `time_ns`, as moirai_cost_times gave them, times a random factor by its error. All
 * operators of a class share one part of it on all devices of a type, the rest is each operator's own; measured times
 * stay as they are, and so do times below 1 (none, MOIRAI_NEVER). The same seed gives the same times.
 * O(operators x devices). */
MOIRAI_API int moirai_cost_perturb(int64_t *time_ns, const moirai_graph *g, const moirai_cluster *c, uint64_t seed);
/* The class of kernels that each operator belongs to, by type and shape, by which errors are kept: "conv", "linear", ...,
 * "unknown". name[op]; the texts are static. O(operators + inputs). */
MOIRAI_API int moirai_cost_classes(const char **name, const moirai_graph *g, const moirai_cluster *c);

#ifdef __cplusplus
}
#endif
#endif
