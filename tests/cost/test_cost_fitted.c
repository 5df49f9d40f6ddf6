/* What the fitted model knows: fusion, caches, power, tensor cores, launches. */
#include "support/one_op.h"

#include <moirai/coarsen.h>
#include <moirai/fit.h>
#include <moirai/zoo.h>

#include "cost/cost.h"

/* On every model and device: a fused operator costs less than its members' sum. */
static void test_cost_fused_is_cheaper_than_its_members(void **state)
{
    (void)state;
    static const char *const models[] = {"roofline", "fitted", "auto"};
    static const char *const networks[] = {"gpt3-tiny", "inception-tiny"};
    moirai_cluster *c = cluster_of("1x t4, 1x v100, 1x rtx2080ti, 100Gbps");
    moirai_rules *rules;
    assert_ok(moirai_rules_open(&rules, "onnxruntime"));
    for (int m = 0; m < 3; m++)
        for (int w = 0; w < 2; w++) {
            moirai_graph *g, *coarse;
            assert_ok(moirai_zoo_graph(&g, networks[w], 4));
            assert_ok(moirai_coarsen(&coarse, g, rules, NULL));
            int64_t *fine_t = calloc((size_t)g->n_ops * 3, sizeof *fine_t);
            int64_t *coarse_t = calloc((size_t)coarse->n_ops * 3, sizeof *coarse_t);
            assert_ok(moirai_cost_times(fine_t, g, c, models[m], NULL));
            assert_ok(moirai_cost_times(coarse_t, coarse, c, models[m], NULL));
            int n_fused = 0;
            for (int32_t i = 0; i < coarse->n_ops; i++) {
                int32_t from = coarse->op_member_off[i], to = coarse->op_member_off[i + 1];
                for (int d = 0; to - from > 1 && d < 3; d++) {
                    int64_t sum = 0;
                    for (int32_t e = from; e < to; e++)
                        sum += fine_t[moirai_graph_find(g, coarse->op_member[e]) * 3 + d];
                    assert_true(coarse_t[i * 3 + d] < sum);
                    n_fused++;
                }
            }
            assert_true(n_fused > 0);
            free(fine_t);
            free(coarse_t);
            moirai_graph_free(coarse);
            moirai_graph_free(g);
        }
    moirai_rules_free(rules);
    moirai_cluster_free(c);
}

/* What fits the cache costs less per byte; a card of 72 W does not keep its clock in a network, but for a short product
 * alone; boxes against boxes take far longer than a copy. */
static void test_cost_cache_power_and_sorting(void **state)
{
    (void)state;
    const moirai_device_type *l4 = moirai_device_type_find("l4");
    moirai_device_type small = *l4, strong = *l4;
    cost_shape relu = {.k = COST_CLASS_RELU, .bytes = 2e7, .out_bytes = 1e7};
    cost_shape product = {
        .k = COST_CLASS_LINEAR, .bytes = 2e7, .flops = 4e9, .b = 1, .m = 1024, .n = 1024, .depth = 2000};
    small.l2_mb = 4;
    strong.watt = 700;
    for (int tensorrt = 0; tensorrt < 2; tensorrt++) {
        const double *c = cost_fitted_shipped.c[COST_CLASS_RELU], *p = cost_fitted_shipped.c[COST_CLASS_LINEAR];
        cost_head h = cost_head_measured(c, tensorrt), cool = cost_head_measured(p, true), network = cool;
        network.run = COST_RUN_NETWORK;
        assert_true(cost_fitted_ns(c, &relu, &small, &h) > 1.3 * cost_fitted_ns(c, &relu, l4, &h));
        assert_true(cost_fitted_ns(p, &product, l4, &network) > 1.5 * cost_fitted_ns(p, &product, l4, &cool));
        assert_true(cost_fitted_ns(p, &product, l4, &network) > 1.5 * cost_fitted_ns(p, &product, &strong, &network));
    }
    one copy = {"Pad", 6400000, 10000, 0, -1, -1}, nms = copy, topk = copy;
    nms.type = "NonMaxSuppression";
    topk.type = "TopK";
    assert_true(time_of_one(nms, "1x v100", "auto") > 20 * time_of_one(copy, "1x v100", "auto"));
    assert_true(time_of_one(topk, "1x v100", "auto") > 2 * time_of_one(copy, "1x v100", "auto"));
}

/* Weights that the cache does not hold are read again on old chips, by an eager framework's library and not by
 * TensorRT's; what TensorRT joins starts a kernel each. */
static void test_cost_panels_and_parts(void **state)
{
    (void)state;
    const double *c = cost_fitted_shipped.c[COST_CLASS_LINEAR], *p = cost_fitted_shipped.c[COST_CLASS_MEMORY];
    moirai_device_type old = *moirai_device_type_find("p100"), young = old;
    young.process_nm = 12;
    cost_shape large = {
        .k = COST_CLASS_LINEAR, .bytes = 1.2e9, .weight_bytes = 1e9, .b = 1, .m = 2048, .n = 16384, .depth = 16384};
    cost_shape small = {
        .k = COST_CLASS_LINEAR, .bytes = 1.2e7, .weight_bytes = 4e6, .b = 1, .m = 2048, .n = 1024, .depth = 1024};
    cost_shape join = {.k = COST_CLASS_MEMORY, .bytes = 1e5, .parts = 2}, five = join;
    five.parts = 5;
    cost_head eager = cost_head_measured(c, false), tensorrt = cost_head_measured(c, true);
    assert_true(cost_fitted_ns(c, &large, &old, &eager) > 1.3 * cost_fitted_ns(c, &large, &young, &eager));
    assert_true(cost_fitted_ns(c, &small, &old, &eager) < 1.05 * cost_fitted_ns(c, &small, &young, &eager));
    assert_true(cost_fitted_ns(c, &large, &old, &tensorrt) == cost_fitted_ns(c, &large, &young, &tensorrt));
    cost_head joins = cost_head_measured(p, true), one_kernel = cost_head_measured(p, false);
    assert_true(cost_fitted_ns(p, &five, &old, &joins) > 1.4 * cost_fitted_ns(p, &join, &old, &joins));
    assert_true(cost_fitted_ns(p, &five, &old, &one_kernel) == cost_fitted_ns(p, &join, &old, &one_kernel));
    assert_true(cost_class_is_join("Concat") && cost_class_is_join("Relu+cat") && !cost_class_is_join("concatenated"));
}

static void test_cost_launches_are_the_runtimes(void **state)
{
    (void)state;
    one tiny = {"Add", 64, 64, 0, -1, 192}, large = {"Add", 1 << 28, 1 << 28, 0, -1, INT64_C(3) << 28};
    static const char *const models[] = {"fitted", "roofline"};
    for (int m = 0; m < 2; m++) {
        int64_t t[MOIRAI_RUNTIMES][4], l[MOIRAI_RUNTIMES][4];
        moirai_graph *g = graph_of(&tiny, NULL, 0), *h = graph_of(&large, NULL, 0);
        moirai_cluster *c = cluster_of("1x v100");
        int32_t op = moirai_graph_find(g, "op");
        for (int r = 0; r < MOIRAI_RUNTIMES; r++) {
            moirai_cost_options o = {.model = models[m], .runtime = (moirai_runtime)r};
            moirai_cost_report report;
            assert_ok(moirai_cost_times_with(t[r], g, c, &o, &report));
            assert_ok(moirai_cost_times_with(l[r], h, c, &o, NULL));
            if (r) {
                assert_int_equal(report.launch_ns[0], moirai_runtime_launch_ns((moirai_runtime)r));
                assert_in_range(t[r][op], report.launch_ns[0], report.launch_ns[0] + 10);
            }
        }
        int64_t like = t[m ? MOIRAI_RUNTIME_ORT : MOIRAI_RUNTIME_EAGER][op];
        assert_in_range(t[0][op], like - like / 100, like + like / 100); /* the fit's own, to a part in a hundred */
        assert_true(l[MOIRAI_RUNTIME_EAGER][op] < l[MOIRAI_RUNTIME_GRAPH][op] + 27000); /* work stays work */
        /* A device's own goes before. */
        c->device[0].launch_us = 3;
        assert_ok(
            moirai_cost_times_with(t[0], g, c, &(moirai_cost_options){models[m], MOIRAI_RUNTIME_EAGER, false}, NULL));
        assert_in_range(t[0][op], 3000, 3010);
        moirai_graph_free(g);
        moirai_graph_free(h);
        moirai_cluster_free(c);
    }
    moirai_runtime r;
    assert_ok(moirai_runtime_parse(&r, "graph"));
    assert_int_equal(r, MOIRAI_RUNTIME_GRAPH);
    assert_int_equal(moirai_runtime_parse(&r, "tpu"), MOIRAI_EUSAGE);
}

/* A large product in fp16 runs at the tensor cores' rate, and not where there are none. */
static void test_cost_fp16_products_use_tensor_cores(void **state)
{
    (void)state;
    one o = {"Gemm", INT64_C(4) << 24, INT64_C(4) << 24, INT64_C(4) << 24, INT64_C(2) << 36, -1};
    static const char *const models[] = {"roofline", "fitted"};
    for (int m = 0; m < 2; m++) {
        moirai_graph *g = graph_of(&o, NULL, 0);
        int64_t full = time_of(g, "1x v100", models[m], NULL), without = time_of(g, "1x m1", models[m], NULL);
        moirai_cluster *c = cluster_of("1x a100");
        int64_t plain[2], tf32[2];
        int32_t op = moirai_graph_find(g, "op");
        assert_ok(moirai_cost_times_with(plain, g, c, &(moirai_cost_options){.model = models[m]}, NULL));
        assert_ok(moirai_cost_times_with(tf32, g, c, &(moirai_cost_options){.model = models[m], .tf32 = true}, NULL));
        assert_true(plain[op] > 5 * tf32[op]);
        g->element_bytes = 2;
        assert_true(full > 5 * time_of(g, "1x v100", models[m], NULL));
        int64_t half = time_of(g, "1x m1", models[m], NULL);
        assert_true(llabs(half - without) < without / 10);
        moirai_cluster_free(c);
        moirai_graph_free(g);
    }
}

static void test_cost_fp16_streams_in_half_the_time(void **state)
{
    (void)state;
    int64_t full = time_of_one((one){"Relu", 1 << 28, 1 << 28, 0, -1, -1}, "1x v100", "fitted");
    int64_t half = time_of_one((one){"Relu", 1 << 27, 1 << 27, 0, -1, -1}, "1x v100", "fitted");
    assert_true(half * 2 > full && half * 18 < full * 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_fused_is_cheaper_than_its_members),
        cmocka_unit_test(test_cost_fp16_streams_in_half_the_time),
        cmocka_unit_test(test_cost_cache_power_and_sorting),
        cmocka_unit_test(test_cost_panels_and_parts),
        cmocka_unit_test(test_cost_launches_are_the_runtimes),
        cmocka_unit_test(test_cost_fp16_products_use_tensor_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
