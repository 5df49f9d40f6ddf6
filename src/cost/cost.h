/* What the cost models share. Private to this room. */
#ifndef MOIRAI_COST_COST_H
#define MOIRAI_COST_COST_H

#include <moirai/cost.h>
#include "util/util.h"
#include "cost/fitted.h"

struct moirai_cost_context {
    const moirai_graph *g;
    const moirai_cluster *c;
    const cost_fitted_set *set;        /* coefficients of the fitted model; not owned */
    uint8_t *op_class;                   /* [op], a cost_class */
    cost_shape *shape;                   /* [op], worked out once for all devices */
    int32_t *name_key, *type_key;        /* [device] -> time key of its name / of its type, MOIRAI_NONE */
    const moirai_device_type **key_type; /* [time key] -> the type whose times these are, NULL if unknown */
};

int cost_context_new(moirai_cost_context **out, const moirai_graph *g, const moirai_cluster *c);
void cost_context_free(moirai_cost_context *x);

/* Bytes of device memory that the operator must move at least: as the graph states them, else what it reads and
 * writes (tensors and weights). Operators that only look at memory in another way move nothing. */
int64_t cost_traffic_bytes(const moirai_cost_context *x, int32_t op);
/* As the graph states them, else estimated from sizes; 0 where it can't be told. */
int64_t cost_flops(const moirai_cost_context *x, int32_t op);

/* All that the fitted formulas read, for cost_context_new; then it is in x->shape. The class is the refined one: a scalar operand, weights or not, kernel size. */
void cost_shape_of(cost_shape *out, const moirai_cost_context *x, int32_t op);

/* The formulas themselves, in ns. */
double cost_roofline_ns(double flops, double bytes, const moirai_device_type *f);
double cost_wave_ns(double ns, double flops, double bytes, const moirai_device_type *from, const moirai_device_type *to);
bool cost_fitted_applies(const moirai_device_type *f); /* a GPU with all figures known */
double cost_fitted_op(const moirai_cost_context *x, int32_t op, const moirai_device_type *f);
/* The time key from which wave scaling to `to` starts, MOIRAI_NONE if nothing was measured. */
int32_t cost_origin(const moirai_cost_context *x, int32_t op, const moirai_device_type *to);

/* The best of all models for one pair; *model gets its index. MOIRAI_UNKNOWN where there is none. */
int64_t cost_best(const moirai_cost_context *x, int32_t op, int32_t device, int *model);

/* Nearest whole nanosecond, clamped to what placers can sum up safely; MOIRAI_UNKNOWN for NaN. */
int64_t cost_round_ns(double ns);

extern const moirai_cost_model cost_table, cost_roofline, cost_wave, cost_fitted,
    cost_scaled, cost_auto;

#endif
