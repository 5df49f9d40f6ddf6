/* The fitted model's formulas: from an operator's shape and a device's figures to a time.
 *
 * What the measured times say, and what became of it:
 *
 * - A small kernel takes as long as its host needs to launch it, whatever the device: T = max(host, kernel), with a
 * soft corner. The floor is the host's (for an addition 26 us on three machines, 32 and 45 on two), so a fit must not
 * blame the device for it: see fit_solve.c.
 * - Streaming kernels (elementwise) are start + bytes / (share x bandwidth) with one share for all sizes: a straight
 * line over five decades, to 1 to 4 % on a device of its own.
 * - Softmax and norms also pay per row (a block of threads each), and more for rows that don't fit a block's registers.
 *   Blocks wait for memory while others compute: overlapped (root of the sum of squares).
 * - Matrix products: tiles of 128 x 128 down to 32 x 32 handed to SMs in waves; the fastest tiling wins, as a library
 * would choose. A tile costs its depth plus a constant (filling the pipeline, writing the result); smaller tiles reach
 * a smaller share of the rate; few deep tiles are split along the depth. Operands and results cross the memory bus at
 *   their own shares, overlapped with arithmetic (root of the sum of squares). Products with more columns than rows are
 *   slower on every GPU of the measurements: a share of their own.
 * - Small cards (75 W) can't run long products at their clock: energy per operation x operations / board power is a
 *   second limit. It needs a while to bite: weight t / (t + warm).
 * - Convolutions are the implicit product m = pixels, n = output channels, depth = input channels x kernel, or, where
 * the kernel is 3 x 3, Winograd's sixteen products of a ninth of the depth on a quarter of the pixels, which has to
 *   transform inputs, outputs and weights: the cheaper of the two, with a soft corner.
 *
 * All coefficients are positive and have a meaning of their own; the table gives the range that makes sense.
 * O(1) per operator and device. */
#include <math.h>
#include "cost/fitted.h"
#include "util/util.h"

enum { HOST, START, BANDWIDTH_SHARE, ROW_CYCLES, LONG_ROW };
static const cost_fitted_coefficient STREAM[] = {
    {"host_ns", 28e3, 1e3, 2e5}, {"start_ns", 14e3, 100, 1e5}, {"bandwidth_share", 0.8, 0.05, 1.5}};
static const cost_fitted_coefficient ROWS[] = {{"host_ns", 35e3, 1e3, 2e5},
                                               {"start_ns", 20e3, 100, 1e5},
                                               {"bandwidth_share", 0.6, 0.05, 3},
                                               {"row_cycles", 300, 1, 1e5},
                                               {"long_row_factor", 1.5, 0.5, 10}};

enum { RATE_SHARE = 2, HALF_TILE, TILE_DEPTH, OUT_SHARE, IN_SHARE, WARM, WINOGRAD, WIDE = WINOGRAD };
static const cost_fitted_coefficient PRODUCT[] = {
    {"host_ns", 50e3, 1e3, 2e5},      {"start_ns", 20e3, 100, 1e5},  {"rate_share", 0.75, 0.05, 3},
    {"half_tile_share", 0.9, 0.2, 1}, {"tile_depth", 30, 0.1, 2000}, {"out_share", 0.5, 0.02, 10},
    {"in_share", 0.8, 0.02, 10},      {"warm_ns", 2e6, 1e3, 1e9},    {"wide_share", 0.9, 0.2, 2}};
/* Here out_share is for inputs and results of Winograd's transforms, in_share for its weights. */
static const cost_fitted_coefficient CONV[] = {
    {"host_ns", 30e3, 1e3, 2e5},      {"start_ns", 5e4, 100, 8e4},   {"rate_share", 0.75, 0.05, 3},
    {"half_tile_share", 0.9, 0.2, 1}, {"tile_depth", 30, 0.1, 2000}, {"transform_share", 0.5, 0.02, 10},
    {"weight_share", 0.5, 0.02, 10},  {"warm_ns", 2e6, 1e3, 1e9},    {"winograd_share", 1, 0.05, 10}};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
/* Energy of an operation and all that goes with it at 12 nm: a V100's board power over its rate, 300 W / 15 TFLOPS. Not
 * fitted: only the two smallest cards meet this limit, and left to the times of one of them it misses the other by far.
 * docs/cost-models.md has the results with other values, which were known when this one was chosen. */
#define PJ_PER_FLOP 20
#define DIRECT_SHARE 0.8 /* of bandwidth, for a convolution without transforms: it is never what limits */

static const cost_fitted_coefficient *table(cost_class k, int *n)
{
    switch (k) {
    case COST_CLASS_SOFTMAX:
    case COST_CLASS_LN: *n = COUNT(ROWS); return ROWS;
    case COST_CLASS_LINEAR:
    case COST_CLASS_BMM: *n = COUNT(PRODUCT); return PRODUCT;
    case COST_CLASS_CONV: *n = COUNT(CONV); return CONV;
    default: *n = COUNT(STREAM); return STREAM;
    }
}

int cost_fitted_coefficient_count(cost_class k)
{
    int n;
    table(k, &n);
    return n;
}

const cost_fitted_coefficient *cost_fitted_coefficient_at(cost_class k, int index)
{
    int n;
    const cost_fitted_coefficient *t = table(k, &n);
    return index >= 0 && index < n ? t + index : NULL;
}

/* Energy per operation falls about with the process: 12 nm is the unit. */
static double power_of(const moirai_device_type *f)
{
    return f->watt > 0 && f->process_nm > 0 ? f->watt * 12 / f->process_nm : INFINITY;
}

static double rate_of(const cost_shape *s, const moirai_device_type *f)
{
    return s->rate > 0 ? s->rate : f->gflops_fp32;
}

/* max(a, b) with a soft corner, 6 % above it where both are equal; smooth, so that the fit sees a slope. */
static double soft_max(double a, double b)
{
    double hi = UTIL_MAX(a, b), r = UTIL_MIN(a, b) / hi, r3 = r * r * r, r6 = r3 * r3;
    return hi * pow(1 + r6 * r6, 1.0 / 12);
}

static double soft_min(double a, double b)
{
    double lo = UTIL_MIN(a, b), r = lo / UTIL_MAX(a, b);
    return lo / sqrt(sqrt(1 + r * r * r * r));
}

static double stream_ns(const double *c, const cost_shape *s, const moirai_device_type *f)
{
    return soft_max(c[HOST], c[START] + s->bytes / (c[BANDWIDTH_SHARE] * f->bandwidth_gb_s));
}

static double rows_ns(const double *c, const cost_shape *s, const moirai_device_type *f)
{
    double stream = s->bytes / (c[BANDWIDTH_SHARE] * f->bandwidth_gb_s);
    if (s->row > 1024)
        stream *= c[LONG_ROW];
    double rows = s->rows * c[ROW_CYCLES] * 1e3 / (f->sm * f->clock_mhz);
    return soft_max(c[HOST], c[START] + sqrt(stream * stream + rows * rows));
}

/* b products of m x depth by depth x n at this rate, by the best tiling. */
static double tiles_ns(double b, double m, double n, double depth, double rate, const double *c,
                       const moirai_device_type *f)
{
    double best = INFINITY, smaller_m = 1;
    for (int tm = 128; tm >= 32; tm /= 2, smaller_m /= c[HALF_TILE]) {
        double smaller = smaller_m;
        for (int tn = 128; tn >= 32; tn /= 2, smaller /= c[HALF_TILE]) {
            double tiles = b * ceil(m / tm) * ceil(n / tn);
            double split = UTIL_MAX(1, UTIL_MIN(floor(f->sm / tiles), ceil(depth / 256)));
            double waves = ceil(tiles * split / f->sm);
            best = UTIL_MIN(best, waves * tm * tn * (depth / split + c[TILE_DEPTH]) * smaller);
        }
    }
    return best * 2 * f->sm / rate;
}

/* Tensor cores need less energy by as much as they are faster: they were built for the same power. */
static double power_limited(double ns, double flops, const double *c, const cost_shape *s, const moirai_device_type *f)
{
    double limit = flops * PJ_PER_FLOP * 1e-3 / power_of(f) * (f->gflops_fp32 / rate_of(s, f));
    return limit > ns ? ns + (limit - ns) * limit / (limit + c[WARM]) : ns;
}

static double product_ns(const double *c, const cost_shape *s, const moirai_device_type *f)
{
    double rate = tiles_ns(s->b, s->m, s->n, s->depth, c[RATE_SHARE] * rate_of(s, f), c, f);
    rate = power_limited(rate, s->flops, c, s, f);
    if (s->n > s->m)
        rate /= c[WIDE];
    double bus = s->out_bytes / (c[OUT_SHARE] * f->bandwidth_gb_s) +
                 UTIL_MAX(s->bytes - s->out_bytes, 0) / (c[IN_SHARE] * f->bandwidth_gb_s);
    return soft_max(c[HOST], c[START] + sqrt(rate * rate + bus * bus));
}

static double conv_ns(const double *c, const cost_shape *s, const moirai_device_type *f)
{
    double weights = UTIL_MIN(s->n * s->depth * s->element_bytes, s->bytes), rest = s->bytes - weights;
    double direct = tiles_ns(1, s->m, s->n, s->depth, c[RATE_SHARE] * rate_of(s, f), c, f);
    direct = power_limited(direct, s->flops, c, s, f) + s->bytes / (DIRECT_SHARE * f->bandwidth_gb_s);
    if (!s->is_3x3)
        return soft_max(c[HOST], c[START] + direct);
    double winograd = tiles_ns(16, s->m / 4, s->n, s->depth / 9, c[WINOGRAD] * rate_of(s, f), c, f);
    winograd = power_limited(winograd, s->flops / 2.25, c, s, f) + rest / (c[OUT_SHARE] * f->bandwidth_gb_s) +
               weights / (c[IN_SHARE] * f->bandwidth_gb_s);
    return soft_max(c[HOST], c[START] + soft_min(direct, winograd));
}

double cost_fitted_ns(const double *c, const cost_shape *s, const moirai_device_type *f)
{
    switch (s->k) {
    case COST_CLASS_SOFTMAX:
    case COST_CLASS_LN: return rows_ns(c, s, f);
    case COST_CLASS_LINEAR:
    case COST_CLASS_BMM: return product_ns(c, s, f);
    case COST_CLASS_CONV: return conv_ns(c, s, f);
    default: return stream_ns(c, s, f);
    }
}
