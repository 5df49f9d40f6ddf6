/* What the cost models share. Private to this room. */
#ifndef MOIRAI_COST_COST_H
#define MOIRAI_COST_COST_H

#include <moirai/cost.h>
#include "util/util.h"
#include "cost/fitted.h"

struct moirai_cost_context {
    const moirai_graph *g;
    const moirai_cluster *c;
    const cost_fitted_set *set;          /* coefficients of the fitted model; not owned */
    bool tf32;                           /* fp32 products at the tf32 rate */
    moirai_runtime runtime;              /* the one asked for */
    double *launch_ns;                   /* [device] what starting an operator costs there; 0: the model's own */
    uint8_t *op_class;                   /* [op], a cost_class */
    cost_shape *shape;                   /* [op], worked out once for all devices */
    int32_t *name_key, *type_key;        /* [device] -> time key of its name / of its type, MOIRAI_NONE */
    const moirai_device_type **key_type; /* [time key] -> the type whose times these are, NULL if unknown */
};

int cost_context_new(moirai_cost_context **out, const moirai_graph *g, const moirai_cluster *c);
void cost_context_free(moirai_cost_context *x);

/* Who makes the first of the operator's inputs that another makes; MOIRAI_NONE: nobody. */
int32_t cost_first_producer(const moirai_graph *g, int32_t op);

/* Bytes of device memory that the operator must move at least: as the graph states them, else what it reads and
 * writes (tensors and weights). Operators that only look at memory in another way move nothing. */
int64_t cost_traffic_bytes(const moirai_cost_context *x, int32_t op);
/* As the graph states them, else estimated from sizes; 0 where it can't be told. */
int64_t cost_flops(const moirai_cost_context *x, int32_t op);

/* All that the fitted formulas read, for cost_context_new; then it is in x->shape. The class is the refined one: a
 * scalar operand, weights or not, kernel size. */
void cost_shape_of(cost_shape *out, const moirai_cost_context *x, int32_t op);

/* Of convolutions that look like Winograd's, those whose place in the network tells that they are dilated become direct
 * ones; for cost_context_new, once all shapes are known. */
void cost_find_dilated(moirai_cost_context *x);

/* Sides of the images that are convolved, where the network tells how many images there are; likewise. */
void cost_find_sides(moirai_cost_context *x);

/* The rate in GFLOPS at which operators of a class compute: products of fp16 numbers run on tensor cores, where there
 * are. */
double cost_rate(const moirai_cost_context *x, cost_class k, const moirai_device_type *f);

#define COST_ROOFLINE_LAUNCH_NS 5000.0

/* The formulas themselves, in ns. */
double cost_roofline_ns(double flops, double bytes, const moirai_device_type *f);
/* The same without its launch, with arithmetic at `rate`. */
double cost_roofline_work_ns(double flops, double bytes, double rate, const moirai_device_type *f);
double cost_wave_ns(double ns, double flops, double bytes, const moirai_device_type *from,
                    const moirai_device_type *to);
bool cost_fitted_applies(const moirai_device_type *f); /* a device whose bandwidth and rate are known */
/* With launches as they were when the fit's times were measured where `launch_ns` is 0. */
double cost_fitted_op(const moirai_cost_context *x, int32_t op, const moirai_device_type *f, double launch_ns);
/* What passes before the operator's kernel works on that device of the plan. */
double cost_fitted_start_ns(const moirai_cost_context *x, int32_t op, int32_t device);
/* The launch of the fit's times for the runtime at hand: that of an addition. */
double cost_fitted_launch_ns(const moirai_cost_context *x);
/* The time key from which wave scaling to `to` starts, MOIRAI_NONE if nothing was measured. */
int32_t cost_origin(const moirai_cost_context *x, int32_t op, const moirai_device_type *to);

/* What `auto` asks, best first: by the errors in docs/cost-models.md. The first one's times are measured. */
#define COST_BEST_FIRST 5
extern const moirai_cost_model *const cost_best_first[COST_BEST_FIRST];

/* ---- one scale per plan (cost_scale.c) ---- */
/* Times of an operator on all devices, row[device], and who gave them, used[device]. `mixed`: no one model knew all the
 * devices that were not measured. The device without any answer, or MOIRAI_NONE. */
int32_t cost_scale_op(int64_t *row, const moirai_cost_model **used, bool *mixed, const moirai_cost_context *x,
                      int32_t op, const moirai_cost_model *model);

/* Nearest whole nanosecond, clamped to what placers can sum up safely; MOIRAI_UNKNOWN for NaN. */
int64_t cost_round_ns(double ns);

extern const moirai_cost_model cost_table, cost_roofline, cost_wave, cost_fitted, cost_scaled, cost_auto;

#endif
