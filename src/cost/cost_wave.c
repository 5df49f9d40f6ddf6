/* `wave`: from a time measured on one device type to another (Habitat).
 *
 * An operator of arithmetic intensity I (flops per byte) on a target with ridge R (flops per byte at which arithmetic
 * and memory take equally long) scales with bandwidth to the power gamma and with cores x clock to the power 1 - gamma,
 * where
 *
 *     gamma = 1 - I / 2R  if I <= R,  else  R / 2I
 *
 * so 1 for pure traffic, 0.5 at the ridge, 0 for pure arithmetic. Habitat counts SMs, which have 64 cores on some GPUs
 * and 128 on others; cores are what computes. It knows nothing of another kernel being chosen on
 * the other device, nor of launch costs, which are the host's: that is what `scaled` is for.
 *
 * Of several measured types it starts from the one whose bandwidth is closest. O(time keys) per operator and device. */
#include <math.h>
#include "cost/cost.h"

double cost_wave_ns(double ns, double flops, double bytes, const moirai_device_type *from, const moirai_device_type *to)
{
    double ridge = to->gflops_fp32 / to->bandwidth_gb_s, intensity = bytes > 0   ? flops / bytes
                                                                     : flops > 0 ? INFINITY
                                                                                 : 0;
    double gamma = intensity <= ridge ? 1 - intensity / (2 * ridge) : ridge / (2 * intensity);
    double bandwidth = from->bandwidth_gb_s / to->bandwidth_gb_s;
    double arithmetic = from->clock_mhz * from->sm * from->cores_per_sm / (to->clock_mhz * to->sm * to->cores_per_sm);
    return ns * pow(bandwidth, gamma) * pow(arithmetic, 1 - gamma);
}

static bool known(const moirai_device_type *f)
{
    return f && f->bandwidth_gb_s > 0 && f->gflops_fp32 > 0 && f->sm > 0 && f->cores_per_sm > 0 && f->clock_mhz > 0;
}

int32_t cost_origin(const moirai_cost_context *x, int32_t op, const moirai_device_type *to)
{
    int32_t best = MOIRAI_NONE;
    double best_distance = INFINITY;
    const int64_t *row = x->g->time_ns + (int64_t)op * x->g->n_time_keys;
    for (int32_t k = 0; k < x->g->n_time_keys; k++) {
        if (row[k] < 0 || !known(x->key_type[k]))
            continue;
        double distance = fabs(log(x->key_type[k]->bandwidth_gb_s / to->bandwidth_gb_s));
        if (distance < best_distance) {
            best = k;
            best_distance = distance;
        }
    }
    return best;
}

static int64_t wave_ns(const moirai_cost_context *x, int32_t op, int32_t device)
{
    const moirai_device_type *to = &x->c->device[device].figures;
    int32_t from = known(to) ? cost_origin(x, op, to) : MOIRAI_NONE;
    if (from == MOIRAI_NONE)
        return MOIRAI_UNKNOWN;
    int64_t ns = x->g->time_ns[(int64_t)op * x->g->n_time_keys + from];
    return cost_round_ns(
        cost_wave_ns((double)ns, (double)cost_flops(x, op), (double)cost_traffic_bytes(x, op), x->key_type[from], to));
}

const moirai_cost_model cost_wave = {
    "wave", "a time measured on another device type, scaled by bandwidth, cores and clock (Habitat)", wave_ns};
