/* `scaled`: a time measured on other device types times the ratio that the fitted model sees between them.
 *
 * What the fitted model gets wrong about an operator (a shape that suits the library, a kernel that it does not know),
 * it mostly gets wrong on all devices alike, and in the ratio that cancels. Of several measured types it takes the
 * geometric mean of the predictions. O(time keys) per operator and device. */
#include <math.h>
#include "cost/cost.h"

static int64_t scaled_ns(const moirai_cost_context *x, int32_t op, int32_t device)
{
    const moirai_device_type *to = &x->c->device[device].figures;
    const int64_t *row = x->g->time_ns + (int64_t)op * x->g->n_time_keys;
    if (!cost_fitted_applies(to))
        return MOIRAI_UNKNOWN;
    double target = cost_fitted_op(x, op, to, 0), sum = 0;
    int n = 0;
    for (int32_t k = 0; k < x->g->n_time_keys; k++) {
        if (row[k] < 0 || !x->key_type[k] || !cost_fitted_applies(x->key_type[k]))
            continue;
        if (row[k] == 0)
            return 0; /* what is free on one GPU is free on another */
        sum += log((double)row[k] * target / cost_fitted_op(x, op, x->key_type[k], 0));
        n++;
    }
    return n ? cost_round_ns(exp(sum / n)) : MOIRAI_UNKNOWN;
}

const moirai_cost_model cost_scaled = {
    "scaled", "times measured on other GPUs, scaled by the ratio of the fitted model's", scaled_ns};
