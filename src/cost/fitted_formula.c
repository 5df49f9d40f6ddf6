/* The fitted model's formulas: from an operator's shape and a device's figures to a time.
 *
 * What the measured times say, and what became of it:
 *
 * - A small kernel takes as long as its host needs to launch it, whatever the device: T = max(host, start + kernel),
 *   with a soft corner. Host and start are the runtime's: an eager framework's 26 to 60 us, TensorRT's 7 us; what a
 *   faster runtime saves of an addition, it saves of every class. A kernel of TensorRT is an eager one, faster by a
 *   factor of its class.
 * - Memory: what fits the L2 cache is read and written there, the rest at a share of what the memory delivers of its
 *   stated bandwidth, less on cards whose check bits travel with the data. In a network weights always come from memory.
 * - Softmax and norms also pay per row, a block's start and its work. An eager framework's kernels hold rows of up to
 *   1024 elements in registers; longer ones, and all in TensorRT, are loaded again from the cache, as fast as
 *   multiprocessors load: overlapped with memory (root of the sum of squares).
 * - Matrix products: tiles of 128 x 128 down to 32 x 32 handed out in waves; the fastest tiling wins, as a library would
 *   choose. What a wave goes to are units of a fixed rate, as many as make the device's: multiprocessors differ by their
 *   number of cores and clock, units don't, and the measured times are met as well. Tiles are at least 64 columns wide,
 *   128 on old chips (Pascal) in the library that an eager framework calls.
 *   What a tile does before and after its sums is hidden behind the next one. A library guesses which of its kernels
 *   is the best, and with smaller tiles reaches a smaller share of the rate; TensorRT tries them all. Few deep tiles are
 *   split along the depth. Memory is overlapped with arithmetic.
 * - Direct convolutions are never split along the depth, a step of it waits for the one before, and those of a few rows
 *   are streams of weights.
 * - Convolutions are the implicit product m = pixels, n = output channels, depth = input channels x kernel. Where the
 *   kernel is 3 x 3 they are Winograd's sixteen products of a ninth of the depth on a quarter of the pixels. TensorRT has
 *   one kernel for all of it: a multiprocessor takes a patch of 8 x 16 pixels by 32 channels, whole, and a wave of
 *   patches takes as long as one; measured on a V100, 55 us for 32 or 64 patches of 256 channels, 155 for 192, 305 for
 *   480. Libraries of eager frameworks transform filters and images first: that takes as long as some pixels more, and
 *   never less than a patch. In TensorRT they meet the limit of power twice, in networks as well. Groups and a channel each reuse a pixel a few times only: memory, and operations that the
 *   cache or the memory has to feed. Images are computed in whole tiles where their sides are known.
 * - Weights that the cache does not hold are read again by every row of tiles on old chips (Pascal), in the library that
 *   an eager framework calls.
 * - TensorRT joins tensors by a kernel each. Resizing, expanding and padding work out where each element comes from.
 * - Sums: rows that a block each adds up, or results that are handed out one after the other; neighbours that are loaded
 *   again, beside what memory streams.
 * - Ranking goes by the clock, whatever the number of multiprocessors: a row is one block's. Boxes against boxes go by
 *   compares, so many per byte, at the device's rate.
 * - Small cards can't keep their clock: energy per operation x rate above the board's power lowers it, and since voltage
 *   falls with the clock, by the square root of the excess only.
 * - Processors: the same sums without tiles, with shares of rate and bandwidth that were measured on one.
 *
 * More rate, bandwidth, cache or power never makes any of it slower. All coefficients are positive and have a meaning of
 * their own; the table gives the range that makes sense. O(1) per operator and device. */
#include <math.h>
#include "cost/fitted.h"
#include "util/util.h"

#define HEAD_OF(trt_host_ns, start_ns) \
    {"host_ns", 3e4, 1e3, 2e5}, {"start_ns", 14e3, 100, 4e5}, {"trt_host_ns", trt_host_ns, 1e3, 4e4}, \
        {"trt_start_ns", 4000, 100, start_ns}, \
    { \
        "trt_speed", 1, 0.3, 3 \
    }
#define HEAD_UP_TO(start_ns) HEAD_OF(6800, start_ns)
#define HEAD HEAD_UP_TO(6e4) /* of several kernels, some of them */
enum { BANDWIDTH_SHARE = COST_KERNEL, ROW_FLOPS, ROW_LOADS, PART_NS = ROW_FLOPS, ELEMENT_FLOPS };
enum { ROW_CLOCKS = ROW_FLOPS, WINDOW, SUM_FLOPS };
static const cost_fitted_coefficient STREAM[] = {HEAD, {"bandwidth_share", 0.8, 0.05, 1.5}};
static const cost_fitted_coefficient MOVE[] = {
    HEAD, {"bandwidth_share", 0.8, 0.05, 1.5}, {"part_ns", 3e3, 100, 2e4}, {"element_flops", 150, 1, 1000}};
static const cost_fitted_coefficient SUM[] = {HEAD,
                                              {"bandwidth_share", 0.8, 0.05, 1.5},
                                              {"row_clocks", 500, 1, 1e5},
                                              {"window_bytes_per_clock", 8, 0.5, 1000},
                                              {"sum_flops", 300, 1, 1e4}};
static const cost_fitted_coefficient ROWS[] = {
    HEAD, {"bandwidth_share", 0.6, 0.05, 3}, {"row_flops", 5e4, 100, 1e7}, {"loads_per_clock", 1.5, 0.5, 50}};
enum {
    RATE_SHARE = COST_KERNEL + 1,
    HALF_TILE,
    TILE_DEPTH,
    FILTER_PIXELS,
    PANEL_SHARE = TILE_DEPTH,
    LEAST_TILE = FILTER_PIXELS,
    PATCH_DEPTH,
    FED_FLOPS = RATE_SHARE,
    WIDE_KERNEL,
    READS = RATE_SHARE,
    CLOCKS = COST_KERNEL,
    CLOCKS_PER_BYTE
};
static const cost_fitted_coefficient PRODUCT[] = {
    HEAD, {"bandwidth_share", 0.8, 0.4, 1.2}, {"rate_share", 0.8, 0.2, 1.5}, {"half_tile_share", 0.95, 0.5, 1}};
static const cost_fitted_coefficient DIRECT[] = {HEAD,
                                                 {"bandwidth_share", 0.8, 0.4, 1.2},
                                                 {"rate_share", 0.8, 0.2, 1.5},
                                                 {"half_tile_share", 0.95, 0.5, 1},
                                                 {"tile_depth", 30, 0.1, 2000},
                                                 {"least_tile", 2000, 500, 16000}};
static const cost_fitted_coefficient LINEAR[] = {HEAD,
                                                 {"bandwidth_share", 0.8, 0.4, 1.2},
                                                 {"rate_share", 0.8, 0.2, 1.5},
                                                 {"half_tile_share", 0.95, 0.5, 1},
                                                 {"panel_share", 0.5, 0.02, 50}};
static const cost_fitted_coefficient CONV[] = {HEAD,
                                               {"bandwidth_share", 0.8, 0.5, 1.2},
                                               {"rate_share", 0.7, 0.3, 3},
                                               {"half_tile_share", 0.95, 0.5, 1},
                                               {"tile_depth", 10, 0.1, 2000},
                                               {"filter_pixels", 300, 10, 1e4},
                                               {"patch_depth", 20, 0.1, 500}};
static const cost_fitted_coefficient GROUPED[] = {
    HEAD_UP_TO(1.5e4), {"bandwidth_share", 0.7, 0.05, 1.2}, {"reads", 10, 1, 100}};
static const cost_fitted_coefficient CHANNEL[] = {HEAD_UP_TO(1.5e4),
                                                  {"bandwidth_share", 0.7, 0.05, 1.2},
                                                  {"flops_per_byte", 3, 0.05, 200},
                                                  {"wide_flops_per_clock", 16, 1, 256}};
static const cost_fitted_coefficient RANK[] = {HEAD, {"clocks", 3e4, 100, 1e6}, {"clocks_per_byte", 0.7, 1e-3, 100}};
static const cost_fitted_coefficient BOXES[] = {HEAD_OF(2e4, 6e4), {"flops_per_byte", 3000, 1, 1e6}};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* Not fitted: only the two smallest cards of the measurements meet this limit, and left to the times of one of them it
 * misses the other by far. A V100's board power over its rate, at 12 nm; smaller processes save energy, and 16 nm need
 * no more of it but in what draws most, a network of 3 x 3 convolutions. */
#define PJ_PER_FLOP 20
#define PJ_PROCESS_NM 12
#define PJ_PASCAL_NM 16
#define WARM_NS 2e6 /* a kernel of this length, repeated, is half of the way to the clock that power allows */
/* The cache: tensors of up to this share of it stay, with a soft edge; its bandwidth is this share of the geometric mean
 * of rate and bandwidth (P4, P100, V100, T4 in published microbenchmarks: 0.57 to 0.93). */
#define CACHE_SHARE 0.85
#define CACHE_SPEED 0.65
/* Chips that read panels of weights again, and how many caches of weights are held. */
#define OLD_NM 14
#define PANELS_HELD 12
#define SMALLEST_TILE 32
/* Columns of the narrowest tile of a product that libraries have; on old chips an eager framework's have no narrower one
 * than this. */
#define LEAST_COLUMNS 64
#define OLD_COLUMNS 128
/* Tiles of an image in pixels: of Winograd's larger transformation, and of a channel each. */
#define WINOGRAD_TILE 4
#define CHANNEL_TILE 8
/* What a multiprocessor takes at a time of Winograd's fused kernel: pixels by output channels. */
#define PATCH_HIGH 8
#define PATCH_WIDE 16
#define PATCH_CHANNELS 32
#define WIDE_TAPS 25      /* 3 x 3 and 5 x 5 have kernels of their own */
#define TILE_COLUMNS 64   /* groups up to so many channels fill one tile, and leave the rest of it idle */
#define REGISTER_ROW 1024 /* longer rows of softmax and norms don't fit a block's registers */
#define BLOCK_SUMS 32     /* shorter ones, so many to a block: a warp each writes a sector of results at least */
#define BLOCK_ROW 128     /* rows longer than this are summed by a block each */
#define USUAL_GHZ 1.5
#define BLOCK_NS (1 / USUAL_GHZ) /* blocks are started one after the other, one a clock */
#define SORT_FLOPS 1000          /* a byte, on a processor */
#define USUAL_CORES 64           /* of a multiprocessor, where that is not stated */
#define UNIT_GFLOPS 180          /* 64 cores at 1.4 GHz; tensor cores are so many more of them */

static const cost_fitted_coefficient *table(cost_class k, int *n)
{
    switch (k) {
    case COST_CLASS_SOFTMAX:
    case COST_CLASS_LN: *n = COUNT(ROWS); return ROWS;
    case COST_CLASS_LINEAR: *n = COUNT(LINEAR); return LINEAR;
    case COST_CLASS_BMM: *n = COUNT(PRODUCT); return PRODUCT;
    case COST_CLASS_DIRECT: *n = COUNT(DIRECT); return DIRECT;
    case COST_CLASS_CONV: *n = COUNT(CONV); return CONV;
    case COST_CLASS_GROUPED: *n = COUNT(GROUPED); return GROUPED;
    case COST_CLASS_DEPTHWISE: *n = COUNT(CHANNEL); return CHANNEL;
    case COST_CLASS_SORT: *n = COUNT(RANK); return RANK;
    case COST_CLASS_NMS: *n = COUNT(BOXES); return BOXES;
    case COST_CLASS_MEMORY: *n = COUNT(MOVE); return MOVE;
    case COST_CLASS_REDUCE: *n = COUNT(SUM); return SUM;
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

/* ---- what passes before a kernel works ---- */

cost_head cost_head_measured(const double *c, bool tensorrt)
{
    if (tensorrt)
        return (cost_head){c[COST_TRT_HOST], c[COST_TRT_START], c[COST_TRT_SPEED], COST_RUN_COOL, true};
    return (cost_head){c[COST_HOST], c[COST_START], 1, COST_RUN_REPEATED, false};
}

/* Two launches were measured, an eager framework's and TensorRT's. Between them, between them; a faster one saves of
 * every class what it saves of an addition, a slower host is slower in proportion. */
cost_head cost_head_planned(const double *c, const double *add, double launch_ns, bool tensorrt)
{
    double slow = add[COST_HOST], fast = add[COST_TRT_HOST], launch = launch_ns;
    cost_head h = {.speed = tensorrt ? c[COST_TRT_SPEED] : 1, .run = COST_RUN_NETWORK, .tensorrt = tensorrt};
    if (!(launch > 0))
        launch = tensorrt ? fast : slow;
    if (launch >= slow || !(fast < slow)) {
        h.host_ns = c[COST_HOST] * launch / slow;
        h.start_ns = c[COST_START] * launch / slow;
    } else {
        double way = UTIL_MAX(launch - fast, 0) / (slow - fast), saved = UTIL_MAX(fast - launch, 0);
        h.host_ns = UTIL_MAX(c[COST_TRT_HOST] + way * (c[COST_HOST] - c[COST_TRT_HOST]) - saved, launch);
        h.start_ns = UTIL_MAX(c[COST_TRT_START] + way * (c[COST_START] - c[COST_TRT_START]) - saved, 0);
    }
    return h;
}

/* ---- kernels ---- */

/* max(a, b) with a soft corner, 6 % above it where both are equal; smooth, so that the fit sees a slope. */
static double soft_max(double a, double b)
{
    double hi = UTIL_MAX(a, b), r = hi > 0 ? UTIL_MIN(a, b) / hi : 0, r3 = r * r * r, r6 = r3 * r3;
    return hi * pow(1 + r6 * r6, 1.0 / 12);
}

static double rate_of(const cost_shape *s, const moirai_device_type *f)
{
    return s->rate > 0 ? s->rate : f->gflops_fp32;
}

/* The share of its clock that a device keeps, energy growing with its process up to `most_nm`. Tensor cores need less
 * energy by as much as they are faster: they were built for the same power. */
static double clock_share(const moirai_device_type *f, double most_nm)
{
    if (!(f->watt > 0 && f->process_nm > 0))
        return 1;
    double needs = f->gflops_fp32 * PJ_PER_FLOP * 1e-3 * UTIL_MIN(f->process_nm, most_nm) / PJ_PROCESS_NM;
    return needs > f->watt ? sqrt(f->watt / needs) : 1;
}

/* How often a kernel meets the limit of power: `cool`, `repeated` or in a `network`; measured kernels the more the longer
 * they are. */
typedef struct strain {
    int cool, repeated, network;
    double network_nm; /* up to which process energy grows in a network; alone, to 12 nm */
} strain;

static double at_clock(double ns, const moirai_device_type *f, cost_run run, const strain *s)
{
    int times = run == COST_RUN_COOL ? s->cool : run == COST_RUN_REPEATED ? s->repeated : s->network;
    double limit = ns, share = clock_share(f, run == COST_RUN_NETWORK ? s->network_nm : PJ_PROCESS_NM);
    for (int i = 0; i < times; i++)
        limit /= share;
    return run == COST_RUN_NETWORK ? limit : ns + (limit - ns) * limit / (limit + WARM_NS);
}

/* GB/s that the memory can deliver; kernels reach a share of it. */
static double delivered(const moirai_device_type *f)
{
    return f->bandwidth_gb_s * (f->delivered > 0 ? f->delivered : 1);
}

/* The part of tensors of `bytes` in all that stays in the cache. */
static double cached_share(double bytes, const moirai_device_type *f)
{
    if (!(f->l2_mb > 0))
        return 0;
    double r = bytes / (CACHE_SHARE * 1e6 * f->l2_mb);
    return 1 / (1 + r * r * r * r);
}

/* `bytes` of tensors that stay in the cache where they fit. */
static double memory_ns(double bytes, double share, const moirai_device_type *f)
{
    double slow = share * delivered(f), stays = cached_share(bytes, f);
    double fast = UTIL_MAX(CACHE_SPEED * sqrt(f->gflops_fp32 * f->bandwidth_gb_s), slow);
    return bytes * (stays / fast + (1 - stays) / slow);
}

static double operands_ns(const cost_shape *s, double share, const moirai_device_type *f, cost_run run)
{
    if (run != COST_RUN_NETWORK)
        return memory_ns(s->bytes, share, f);
    return memory_ns(s->bytes - s->weight_bytes, share, f) + s->weight_bytes / (share * delivered(f));
}

/* Multiprocessors x clock in GHz: what loads and stores of operands go by, whatever the number of cores. */
static double issue_rate(const moirai_device_type *f)
{
    return f->sm > 0 && f->clock_mhz > 0 ? f->sm * f->clock_mhz * 1e-3 : f->gflops_fp32 / (2 * USUAL_CORES);
}

static double rows_ns(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h)
{
    double stream = memory_ns(s->bytes, c[BANDWIDTH_SHARE], f);
    if (h->tensorrt || s->row > REGISTER_ROW)
        stream = hypot(stream, s->rows * s->row / (c[ROW_LOADS] * issue_rate(f)));
    if (s->k == COST_CLASS_SOFTMAX && !h->tensorrt) /* several short ones to a block */
        return stream;
    return hypot(stream, s->rows * (BLOCK_NS + c[ROW_FLOPS] / f->gflops_fp32));
}

/* How products are cut into tiles. `half`: the share of its rate that a tile of half the size reaches; `ends`: steps of
 * the depth that pass before and after its sums; `columns`: the least that a tile has. `least` elements of a tile that is
 * not split along its depth, and of which a step waits for the one before: however small, it takes as long as so many; 0:
 * tiles are split. */
typedef struct tiling {
    double half, ends, least;
    int columns;
} tiling;

/* b products of m x depth by depth x n, by the best tiling: ns at a rate of 1 GFLOPS per device, at all of it. */
static double tiles_ns(double b, double m, double n, double depth, const tiling *t, double rate)
{
    double units = UTIL_MAX(rate / UNIT_GFLOPS, 1), best = INFINITY, smaller_m = 1;
    for (int tm = 128; tm >= SMALLEST_TILE; tm /= 2, smaller_m /= t->half) {
        double smaller = smaller_m;
        for (int tn = 128; tn >= t->columns; tn /= 2, smaller /= t->half) {
            double tiles = b * ceil(m / tm) * ceil(n / tn);
            double split = t->least > 0 ? 1 : UTIL_MAX(1, UTIL_MIN(floor(units / tiles), ceil(depth / 256)));
            double waves = ceil(tiles * split / units), work = UTIL_MAX(tm * tn * smaller, t->least);
            best = UTIL_MIN(best, waves * work * (depth / split + t->ends));
        }
    }
    return best * 2 * units / rate;
}

/* Weights that the cache does not hold are read again by every row of tiles: only on chips of 14 nm and more, and only in
 * the library that an eager framework calls. */
static double panels_ns(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h)
{
    if (s->k != COST_CLASS_LINEAR || h->tensorrt || !(f->process_nm >= OLD_NM) || !(s->weight_bytes > 0))
        return 0;
    double held = PANELS_HELD * 1e6 * f->l2_mb / s->weight_bytes;
    return s->weight_bytes * ceil(s->m / 128) / (1 + held * held) / (c[PANEL_SHARE] * delivered(f));
}

/* Direct convolutions are not split along their depth, and write a tile before they begin the next one. */
static tiling tiling_of(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h)
{
    if (s->k == COST_CLASS_DIRECT)
        return (tiling){c[HALF_TILE], c[TILE_DEPTH], c[LEAST_TILE], SMALLEST_TILE};
    if (h->tensorrt)
        return (tiling){.half = 1, .columns = LEAST_COLUMNS};
    return (tiling){.half = c[HALF_TILE], .columns = f->process_nm >= OLD_NM ? OLD_COLUMNS : LEAST_COLUMNS};
}

static double product_ns(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h)
{
    static const strain meets = {.cool = 1, .repeated = 2, .network = 1, .network_nm = PJ_PROCESS_NM};
    /* Few rows (a layer behind a global pool) fill no tile: their weights are streamed by another kernel. */
    bool streams = s->k == COST_CLASS_DIRECT && s->m <= SMALLEST_TILE / 2.0;
    tiling t = tiling_of(c, s, f, h);
    double rate = streams ? 0 : tiles_ns(s->b, s->m, s->n, s->depth, &t, rate_of(s, f)) / c[RATE_SHARE];
    double memory = operands_ns(s, c[BANDWIDTH_SHARE], f, h->run) + panels_ns(c, s, f, h);
    return hypot(at_clock(rate, f, h->run, &meets), memory);
}

/* Pixels of whole tiles for each pixel of an image. */
static double whole_tiles(const cost_shape *s, double tile)
{
    double sides = s->side > 0 ? ceil(s->side / tile) * tile / s->side : 1;
    return sides * sides;
}

/* Multiprocessors, or as many units of the usual rate. */
static double processors(const cost_shape *s, const moirai_device_type *f)
{
    return f->sm > 0 ? f->sm : UTIL_MAX(rate_of(s, f) / UNIT_GFLOPS, 1);
}

/* What one multiprocessor takes for one patch of Winograd's fused kernel: 4 x 8 tiles of 2 x 2 pixels by 32 channels,
 * sixteen products, one input channel after the other. */
static double patch_ns(const double *c, const cost_shape *s, const moirai_device_type *f)
{
    double flops = 2.0 * 16 * (PATCH_HIGH * PATCH_WIDE / 4.0) * PATCH_CHANNELS;
    return flops * (s->depth / 9 + c[PATCH_DEPTH]) * processors(s, f) / rate_of(s, f) / c[RATE_SHARE];
}

/* TensorRT's kernel: whole patches, in waves. */
static double patches_ns(const double *c, const cost_shape *s, const moirai_device_type *f)
{
    double side = s->side > 0 ? s->side : sqrt(s->m);
    double patches = s->m / (side * side) * ceil(side / PATCH_HIGH) * ceil(side / PATCH_WIDE);
    return ceil(patches * ceil(s->n / PATCH_CHANNELS) / processors(s, f)) * patch_ns(c, s, f);
}

static double conv_ns(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h)
{
    static const strain meets = {.cool = 2, .repeated = 1, .network = 2, .network_nm = PJ_PASCAL_NM};
    double memory = operands_ns(s, c[BANDWIDTH_SHARE], f, h->run);
    if (h->tensorrt)
        return hypot(at_clock(patches_ns(c, s, f), f, h->run, &meets), memory);
    tiling t = {c[HALF_TILE], c[TILE_DEPTH], 0, SMALLEST_TILE};
    double filters = 2 * c[FILTER_PIXELS] * s->n * s->depth / rate_of(s, f);
    double tiles = s->m * whole_tiles(s, WINOGRAD_TILE) / 4;
    double winograd = (tiles_ns(16, tiles, s->n, s->depth / 9, &t, rate_of(s, f)) + filters) / c[RATE_SHARE];
    return soft_max(hypot(at_clock(winograd, f, h->run, &meets), memory), patch_ns(c, s, f));
}

/* Groups are first sorted by group, then multiplied: an output costs as much in a group of 4 channels as in one of 32,
 * since the rest of a tile is idle, and that goes by what the memory delivers. */
static double grouped_ns(const double *c, const cost_shape *s, const moirai_device_type *f, cost_run run)
{
    double tiles = UTIL_MAX(s->n / TILE_COLUMNS, 1);
    return s->out_bytes * tiles * c[READS] / delivered(f) + operands_ns(s, c[BANDWIDTH_SHARE], f, run);
}

/* A channel each streams while it computes, whole tiles of an image. Operations are fed by what holds the tensors, the
 * cache or the memory: so many for each byte that it delivers. Kernels larger than 5 x 5 load an operand for each
 * operation. With a stride, every other pixel of a row is read in vain. */
static double channel_ns(const double *c, const cost_shape *s, const moirai_device_type *f, cost_run run)
{
    double stated = f->delivered > 0 ? 1 / f->delivered : 1; /* check bits cost transfers, not operations */
    double in = s->bytes - s->weight_bytes - s->out_bytes, strides = sqrt(UTIL_MAX(in / s->out_bytes, 1));
    double flops = s->flops * strides * whole_tiles(s, CHANNEL_TILE);
    double fed = s->depth > WIDE_TAPS + 0.5 ? flops / (c[WIDE_KERNEL] * issue_rate(f))
                                            : flops / s->bytes * memory_ns(s->bytes, c[FED_FLOPS] * stated, f);
    return soft_max(fed, operands_ns(s, c[BANDWIDTH_SHARE], f, run));
}

/* TensorRT starts a kernel for each tensor that is joined; an eager framework and ONNX Runtime start one for all. Where
 * parts lie side by side element by element, each of its kernels touches the whole result: it is read and written once
 * for each part, unless the cache holds it. */
static double move_ns(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h)
{
    double ns = memory_ns(s->bytes, c[BANDWIDTH_SHARE], f);
    if (s->stretched)
        return soft_max(ns, s->out_bytes / s->element_bytes * c[ELEMENT_FLOPS] / f->gflops_fp32);
    if (h->tensorrt && s->interleaved)
        ns += (1 - cached_share(s->bytes, f)) * (2 * s->parts - 1) * s->out_bytes / (c[BANDWIDTH_SHARE] * delivered(f));
    return ns + (h->tensorrt ? s->parts * c[PART_NS] : 0);
}

/* Sums of neighbours read each element several times: beside its stream, what multiprocessors load. A long row is a
 * block's, whose start and end keep its multiprocessor for some clocks. Both at the clock that power allows, since memory
 * is never idle meanwhile: a T4 and a P4 fall behind by as much. A short row is a thread's, whose strides leave no gain from a cache, and results are handed out one after
 * the other. What the largest is of, TensorRT transposes first. */
static double sum_ns(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h)
{
    double stream = memory_ns(s->bytes, c[BANDWIDTH_SHARE], f), busy = issue_rate(f) * clock_share(f, PJ_PROCESS_NM);
    if (s->row < 1.5)
        return stream + s->bytes / (c[WINDOW] * busy);
    if (h->tensorrt && s->interleaved)
        return stream * 3;
    if (s->row > BLOCK_ROW)
        stream = hypot(stream, s->rows * c[ROW_CLOCKS] / busy);
    else if (s->strided)
        stream = s->bytes / (c[BANDWIDTH_SHARE] * delivered(f));
    return soft_max(stream, s->rows * (BLOCK_NS / BLOCK_SUMS + c[SUM_FLOPS] / f->gflops_fp32));
}

/* A row is sorted by one block, pass after pass, and by several kernels where a block does not hold it: one
 * multiprocessor works on it, however many there are, and it goes by the clock. */
static double rank_ns(const double *c, const cost_shape *s, const moirai_device_type *f)
{
    double ghz = f->clock_mhz > 0 ? f->clock_mhz * 1e-3 : USUAL_GHZ;
    return soft_max(c[CLOCKS], (s->bytes - s->out_bytes) * c[CLOCKS_PER_BYTE]) / ghz;
}

/* Shares of rate and bandwidth that a processor's kernels reach: ONNX Runtime's and PyTorch's on one core of a Xeon
 * with AVX-512 (docs/cost-models.md). */
static double processor_ns(const cost_shape *s, const moirai_device_type *f)
{
    double rate = 1, bandwidth = 0.5;
    switch (s->k) {
    case COST_CLASS_LINEAR:
    case COST_CLASS_BMM: rate = 0.6; break;
    case COST_CLASS_CONV:
    case COST_CLASS_DIRECT: rate = 0.45; break;
    case COST_CLASS_GROUPED: rate = 0.1; break;
    case COST_CLASS_DEPTHWISE: rate = 0.1, bandwidth = 0.15; break;
    case COST_CLASS_TANH:
    case COST_CLASS_GELU: bandwidth = 0.35; break;
    case COST_CLASS_SOFTMAX:
    case COST_CLASS_LN: bandwidth = 0.25; break;
    case COST_CLASS_MEMORY: bandwidth = 0.35; break;
    case COST_CLASS_REDUCE: bandwidth = 0.2; break;
    case COST_CLASS_SORT:
    case COST_CLASS_NMS: return s->bytes * SORT_FLOPS / f->gflops_fp32;
    default: break;
    }
    return hypot(s->flops / (rate * rate_of(s, f)), memory_ns(s->bytes, bandwidth, f));
}

static double kernel_ns(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h)
{
    if (f->processor)
        return processor_ns(s, f);
    switch (s->k) {
    case COST_CLASS_SOFTMAX:
    case COST_CLASS_LN: return rows_ns(c, s, f, h);
    case COST_CLASS_REDUCE: return sum_ns(c, s, f, h);
    case COST_CLASS_LINEAR:
    case COST_CLASS_BMM:
    case COST_CLASS_DIRECT: return product_ns(c, s, f, h);
    case COST_CLASS_CONV: return conv_ns(c, s, f, h);
    case COST_CLASS_GROUPED: return grouped_ns(c, s, f, h->run);
    case COST_CLASS_DEPTHWISE: return channel_ns(c, s, f, h->run);
    case COST_CLASS_SORT: return rank_ns(c, s, f);
    case COST_CLASS_NMS: return s->bytes * c[COST_KERNEL] / f->gflops_fp32;
    case COST_CLASS_MEMORY: return move_ns(c, s, f, h);
    default: return memory_ns(s->bytes, c[BANDWIDTH_SHARE], f);
    }
}

double cost_fitted_ns(const double *c, const cost_shape *s, const moirai_device_type *f, const cost_head *h)
{
    return soft_max(h->host_ns, h->start_ns + kernel_ns(c, s, f, h) / h->speed);
}
