/* `roofline`: a launch, then the slower of arithmetic and memory traffic.
 *
 *     launch + max(flops / (0.70 fp32 rate), traffic / (0.75 memory bandwidth)),    rounded to the nearest nanosecond
 *
 * The two shares are what large, well-shaped kernels reach of the data sheet's figures; small and odd ones reach less,
 * which is what the fitted model is for. The constants are part of the contract: published problems were made with them. */
#include "cost/cost.h"

#define LAUNCH_NS 5000.0
#define SHARE_OF_RATE 0.70
#define SHARE_OF_BANDWIDTH 0.75

double cost_roofline_ns(double flops, double bytes, const moirai_device_type *f)
{
    double arithmetic_ns = flops > 0 ? flops / (SHARE_OF_RATE * f->gflops_fp32) : 0;
    return LAUNCH_NS + UTIL_MAX(arithmetic_ns, bytes / (SHARE_OF_BANDWIDTH * f->bandwidth_gb_s));
}

static int64_t roofline_ns(const moirai_cost_context *x, int32_t op, int32_t device)
{
    const moirai_device_type *f = &x->c->device[device].figures;
    double flops = (double)cost_flops(x, op), bytes = (double)cost_traffic_bytes(x, op);
    if ((flops > 0 && !(f->gflops_fp32 > 0)) || !(f->bandwidth_gb_s > 0))
        return MOIRAI_UNKNOWN;
    return cost_round_ns(cost_roofline_ns(flops, bytes, f));
}

const moirai_cost_model cost_roofline = {
    "roofline", "launch + the slower of arithmetic and memory traffic, from the device's figures", roofline_ns};
