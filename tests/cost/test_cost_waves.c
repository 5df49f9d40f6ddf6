/* What the fitted formulas know of kernels that hand out blocks: whole patches in waves, ends of tiles, sorting blocks,
 * operands that multiprocessors load. Times in us were measured in TensorRT on P4, T4 and V100. */
#include "support/one_op.h"

#include <math.h>

#include "cost/cost.h"

static const char *const TYPES[] = {"p4", "t4", "v100"};

static double ns_on(const cost_shape *s, const moirai_device_type *f)
{
    const double *c = cost_fitted_shipped.c[s->k];
    cost_head h = cost_head_measured(c, true);
    return cost_fitted_ns(c, s, f, &h);
}

/* Within a quarter of what was measured on each of the three. */
static void assert_near(const cost_shape *s, const double us[3])
{
    for (int i = 0; i < 3; i++) {
        double ns = ns_on(s, moirai_device_type_find(TYPES[i]));
        if (!(ns > 0.75e3 * us[i] && ns < 1.25e3 * us[i]))
            fail_msg("%s: %.1f us, measured %.1f", TYPES[i], ns / 1e3, us[i]);
    }
}

static cost_shape convolution(double side, double n)
{
    cost_shape s = {.k = COST_CLASS_CONV, .b = 1, .m = 4 * side * side, .n = n, .depth = 2304, .side = side};
    s.weight_bytes = 4 * n * s.depth;
    s.out_bytes = 4 * s.m * n;
    s.bytes = s.weight_bytes + s.out_bytes + 4 * s.m * 256;
    s.flops = 2 * s.m * n * s.depth;
    return s;
}

/* Four images of 256 channels: 64, 192 and 480 patches are 1, 3 and 6 waves on a V100's 80 multiprocessors, and 32 take as
 * long as 64; 80 output channels are three patches wide, not two tiles. */
static void test_cost_waves_patches_of_winograd(void **state)
{
    (void)state;
    static const double side[] = {10, 20, 40}, us[][3] = {{154, 120, 56}, {391, 327, 155}, {948, 830, 305}};
    for (int i = 0; i < 3; i++) {
        cost_shape s = convolution(side[i], 256);
        assert_near(&s, us[i]);
    }
    static const double narrow_us[] = {367, 337, 156};
    cost_shape narrow = convolution(40, 80), few = convolution(5, 80), many = convolution(10, 256);
    assert_near(&narrow, narrow_us);
    const moirai_device_type *v100 = moirai_device_type_find("v100");
    assert_true(ns_on(&many, v100) < 1.05 * ns_on(&few, v100));
}

/* Products of little depth: what a tile does before and after its sums is hidden behind the next one. */
static void test_cost_waves_ends_of_tiles(void **state)
{
    (void)state;
    static const double us[] = {635, 370, 157};
    cost_shape s = {
        .k = COST_CLASS_BMM, .b = 4, .m = 2048, .n = 2048, .depth = 64, .bytes = 71303168, .out_bytes = 67108864};
    s.flops = 2 * s.b * s.m * s.n * s.depth;
    assert_near(&s, us);
}

/* TensorRT's softmax loads its rows again, as fast as multiprocessors load; an eager framework's keeps up to 1,024
 * elements in registers. */
static void test_cost_waves_rows_are_loaded_again(void **state)
{
    (void)state;
    const double *c = cost_fitted_shipped.c[COST_CLASS_SOFTMAX];
    const moirai_device_type *v100 = moirai_device_type_find("v100");
    moirai_device_type half = *v100;
    half.sm /= 2;
    for (int i = 0; i < 4; i++) {
        double row = i / 2 ? 512 : 2048;
        cost_shape s = {.k = COST_CLASS_SOFTMAX, .element_bytes = 4, .rows = 1e8 / row, .row = row, .bytes = 8e8};
        s.out_bytes = s.bytes / 2;
        cost_head h = cost_head_measured(c, i % 2);
        double slower = cost_fitted_ns(c, &s, &half, &h) / cost_fitted_ns(c, &s, v100, &h);
        assert_true(h.tensorrt || row > 1024 ? slower > 1.05 : slower == 1);
    }
}

/* The first 1,000 of 4 x 1,400 and of 4 x 7,400: a block each, so that half the multiprocessors take as long, and half the
 * clock twice. */
static void test_cost_waves_ranks_go_by_the_clock(void **state)
{
    (void)state;
    static const double small_us[] = {27.5, 21, 18.8}, large_us[] = {80, 61, 53};
    cost_shape s = {.k = COST_CLASS_SORT, .bytes = 54400, .out_bytes = 32000}, large = s;
    large.bytes = 150400;
    assert_near(&s, small_us);
    assert_near(&large, large_us);
    moirai_device_type half = *moirai_device_type_find("v100"), slow = half;
    half.sm /= 2, half.gflops_fp32 /= 2;
    slow.clock_mhz /= 2;
    assert_true(ns_on(&large, &half) == ns_on(&large, moirai_device_type_find("v100")));
    assert_true(ns_on(&large, &slow) > 1.8 * ns_on(&large, &half));
}

/* Means of rows of 441, a block each, and of neighbours: on T4 and P4 both go by a clock that power keeps down. */
static void test_cost_waves_sums_go_by_the_clock_that_power_allows(void **state)
{
    (void)state;
    static const double row_us[] = {210, 108, 33}, window_us[] = {401, 189, 75};
    cost_shape row = {
        .k = COST_CLASS_REDUCE, .element_bytes = 4, .bytes = 17991168, .out_bytes = 40704, .rows = 10176, .row = 441};
    cost_shape window = {.k = COST_CLASS_REDUCE,
                         .element_bytes = 4,
                         .bytes = 30105600,
                         .out_bytes = 15052800,
                         .rows = 3763200,
                         .row = 1};
    assert_near(&row, row_us);
    assert_near(&window, window_us);
    moirai_device_type strong = *moirai_device_type_find("t4");
    strong.watt *= 4;
    assert_true(ns_on(&row, &strong) < 0.95 * ns_on(&row, moirai_device_type_find("t4")));
}

/* Weights x values of 80 heads, 1024 x 1024 by 1024 x 64, under an eager framework: on P4 and P100 no tile has less than
 * 128 columns, and half of it is idle. TensorRT has narrower ones. */
static void test_cost_waves_narrow_products_on_old_chips(void **state)
{
    (void)state;
    static const char *const types[] = {"p4", "p100", "t4", "v100"};
    static const double us[] = {7978, 2700, 3179, 1025};
    const double *c = cost_fitted_shipped.c[COST_CLASS_BMM];
    cost_shape s = {.k = COST_CLASS_BMM, .b = 80, .m = 1024, .n = 64, .depth = 1024, .out_bytes = 20971520};
    s.bytes = 377487360, s.flops = 2.0 * 80 * 1024 * 1024 * 64;
    cost_head eager = cost_head_measured(c, false), tensorrt = cost_head_measured(c, true);
    for (int i = 0; i < 4; i++) {
        double ns = cost_fitted_ns(c, &s, moirai_device_type_find(types[i]), &eager);
        assert_true(ns > 0.75e3 * us[i] && ns < 1.25e3 * us[i]);
    }
    const moirai_device_type *p4 = moirai_device_type_find("p4");
    assert_true(cost_fitted_ns(c, &s, p4, &eager) > 1.3 * cost_fitted_ns(c, &s, p4, &tensorrt));
}

/* 7 x 7 of a channel each: a P4's multiprocessors have twice the cores and load no more. */
static void test_cost_waves_wide_kernels_of_a_channel(void **state)
{
    (void)state;
    static const double us[] = {206, 85, 41};
    cost_shape s = {.k = COST_CLASS_DEPTHWISE, .b = 1, .m = 896, .n = 768, .depth = 49, .side = 14.97};
    s.weight_bytes = 153600, s.out_bytes = 2752512, s.bytes = 5658624, s.flops = 2.0 * 896 * 768 * 49;
    assert_near(&s, us);
}

/* Flops of what is fused into a convolution leave its columns as they were: 512.06 are 512. */
static void test_cost_waves_columns_of_a_fused_operator(void **state)
{
    (void)state;
    moirai_cluster *c = cluster_of("1x t4");
    for (int fused = 0; fused < 3; fused++) {
        int64_t flops = INT64_C(2) * 16384 * 512 * 4608 + fused * INT64_C(16384) * 512;
        one o = {fused ? "Conv+Relu" : "Conv", 4 * 16384 * 512, 4 * 16384 * 512, 4 * 512 * 4609, flops, -1};
        moirai_graph *g = graph_of(&o, NULL, 0);
        moirai_cost_context *x;
        assert_ok(cost_context_new(&x, g, c));
        const cost_shape *s = &x->shape[moirai_graph_find(g, "op")];
        assert_true(s->k == COST_CLASS_CONV && s->n == 512 && s->m == 16384 && s->side == 64);
        cost_context_free(x);
        moirai_graph_free(g);
    }
    moirai_cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_waves_patches_of_winograd),
        cmocka_unit_test(test_cost_waves_ends_of_tiles),
        cmocka_unit_test(test_cost_waves_rows_are_loaded_again),
        cmocka_unit_test(test_cost_waves_ranks_go_by_the_clock),
        cmocka_unit_test(test_cost_waves_sums_go_by_the_clock_that_power_allows),
        cmocka_unit_test(test_cost_waves_narrow_products_on_old_chips),
        cmocka_unit_test(test_cost_waves_wide_kernels_of_a_channel),
        cmocka_unit_test(test_cost_waves_columns_of_a_fused_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
