/* `roofline`: a launch, then the slower of arithmetic and memory traffic.
 *
 *     launch + max(flops / (0.70 rate), traffic / (0.75 memory bandwidth)),    rounded to the nearest nanosecond
 *
 * The launch is the runtime's, 5 us where none is named; the rate is that of fp32, or for products of fp16 that of
 * tensor cores. The two shares are what large, well-shaped kernels reach of the data sheet's figures; small and odd
 * ones reach less, which is what the fitted model is for. The constants are part of the contract: published problems
 * were made with them. */
#include "cost/cost.h"

#define SHARE_OF_RATE 0.70
#define SHARE_OF_BANDWIDTH 0.75

double cost_roofline_work_ns(double flops, double bytes, double rate, const moirai_device_type *f)
{
    double arithmetic_ns = flops > 0 ? flops / (SHARE_OF_RATE * rate) : 0;
    return UTIL_MAX(arithmetic_ns, bytes / (SHARE_OF_BANDWIDTH * f->bandwidth_gb_s));
}

double cost_roofline_ns(double flops, double bytes, const moirai_device_type *f)
{
    return COST_ROOFLINE_LAUNCH_NS + cost_roofline_work_ns(flops, bytes, f->gflops_fp32, f);
}

double cost_rate(const moirai_cost_context *x, cost_class k, const moirai_device_type *f)
{
    double rate = f->gflops_fp32;
    if (x->g->element_bytes == 8) /* half as many lanes: what processors and data-centre GPUs have */
        return rate / 2;
    if (k != COST_CLASS_LINEAR && k != COST_CLASS_BMM && k != COST_CLASS_CONV)
        return rate;
    if (x->g->element_bytes == 2)
        return UTIL_MAX(rate, f->gflops_fp16);
    return x->tf32 ? UTIL_MAX(rate, f->gflops_tf32) : rate;
}

static int64_t roofline_ns(const moirai_cost_context *x, int32_t op, int32_t device)
{
    const moirai_device_type *f = &x->c->device[device].figures;
    double flops = (double)cost_flops(x, op), bytes = (double)cost_traffic_bytes(x, op);
    if ((flops > 0 && !(f->gflops_fp32 > 0)) || !(f->bandwidth_gb_s > 0))
        return MOIRAI_UNKNOWN;
    double launch = x->launch_ns[device] > 0 ? x->launch_ns[device] : COST_ROOFLINE_LAUNCH_NS;
    double rate = cost_rate(x, (cost_class)x->op_class[op], f);
    return cost_round_ns(launch + cost_roofline_work_ns(flops, bytes, rate, f));
}

const moirai_cost_model cost_roofline = {
    "roofline", "launch + the slower of arithmetic and memory traffic, from the device's figures", roofline_ns};
