/* Cost models: what each promises, on graphs small enough to do the sums by hand. */
#include "support/one_op.h"
#include "support/scale.h"

#include <math.h>

#include <moirai/fit.h>
#include <moirai/zoo.h>

#include "cost/cost.h"
#include "util/util.h"

/* The published problems were made with these formulas from rates rounded to two or three digits. */
static void test_cost_roofline_gives_the_published_times(void **state)
{
    (void)state;
    moirai_device_type rtx2080ti = {.bandwidth_gb_s = 616, .gflops_fp32 = 13450},
                       t4 = {.bandwidth_gb_s = 320, .gflops_fp32 = 8100};
    moirai_device_type p4 = {.bandwidth_gb_s = 192, .gflops_fp32 = 5500},
                       rtx3060ti = {.bandwidth_gb_s = 448, .gflops_fp32 = 16200};
    double flops = 2.0 * 2048 * 1024 * 64, bytes = 8388608 + 262144 + 524288;
    assert_int_equal(cost_round_ns(cost_roofline_ns(flops, bytes, &rtx2080ti)), 33511);
    assert_int_equal(cost_round_ns(cost_roofline_ns(flops, bytes, &t4)), 52343);
    assert_int_equal(cost_round_ns(cost_roofline_ns(flops, bytes, &p4)), 74723);
    assert_int_equal(cost_round_ns(cost_roofline_ns(flops, bytes, &rtx3060ti)), 32307);
    one ln = {"LayerNormalization", 8388608, 8388608, 8192, 0, 16777216};
    one bias = {"Add", 524288, 524288, 256, 0, 1048576};
    assert_int_equal(time_of_one(ln, "1x rtx2080ti", "roofline"), 41314);
    assert_int_equal(time_of_one(ln, "1x rtx3060ti", "roofline"), 54932);
    assert_int_equal(time_of_one(bias, "1x rtx2080ti", "roofline"), 7270);
    assert_int_equal(time_of_one(bias, "1x t4", "roofline"), 9369);
}

static void test_cost_table_goes_by_name_then_by_type(void **state)
{
    (void)state;
    one o = {"Relu", 4096, 4096, 0, -1, -1};
    moirai_cost_report report;
    moirai_graph *g = graph_of(&o, "RTX 2080 Ti", 777);
    assert_int_equal(time_of(g, "1x rtx2080ti", "table", NULL), 777);
    assert_int_equal(time_of(g, "1x rtx2080ti", "auto", &report), 777);
    assert_int_equal(report.n_by_model[0], 2);
    moirai_graph_free(g);

    moirai_cluster *c = cluster_of("2x rtx2080ti 100Gbps");
    g = graph_of(&o, c->device[1].name, 555);
    int64_t t[4];
    assert_int_equal(moirai_cost_times(t, g, c, "table", NULL), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), c->device[0].name));
    assert_ok(moirai_cost_times(t, g, c, "auto", NULL));
    int32_t op = moirai_graph_find(g, "op");
    assert_int_equal(t[op * 2 + 1], 555);
    assert_int_equal(t[op * 2], 555); /* scaled to its own type: the same */
    moirai_graph_free(g);
    moirai_cluster_free(c);
}

static void test_cost_unknown_model_is_a_usage_error(void **state)
{
    (void)state;
    one o = {"Relu", 4096, 4096, 0, -1, -1};
    moirai_graph *g = graph_of(&o, NULL, 0);
    moirai_cluster *c = cluster_of("1x t4");
    int64_t t[2];
    assert_int_equal(moirai_cost_times(t, g, c, "guess", NULL), MOIRAI_EUSAGE);
    assert_int_not_equal(moirai_cost_times(t, g, c, "fitted:/nowhere/at/all.json", NULL), 0);
    moirai_graph_free(g);
    moirai_cluster_free(c);
}

static void test_cost_wave_is_exact_at_the_ends(void **state)
{
    (void)state;
    const moirai_device_type *t4 = moirai_device_type_find("t4"), *v100 = moirai_device_type_find("v100");
    assert_true(fabs(cost_wave_ns(1000, 0, 1e6, t4, v100) - 1000 * 320.0 / 900) < 1e-6);
    assert_true(fabs(cost_wave_ns(1000, 1e12, 0, t4, v100) - 1000 * (1590.0 * 40) / (1530 * 80)) < 1e-6);
    double ridge = v100->gflops_fp32 / v100->bandwidth_gb_s;
    assert_true(fabs(cost_wave_ns(1000, ridge, 1, t4, v100) - 1000 * sqrt(320.0 / 900 * 1590 * 40 / (1530 * 80))) <
                1e-6);
    assert_true(fabs(cost_wave_ns(1000, 1e9, 1e6, v100, v100) - 1000) < 1e-9);
    /* 40 SMs of 64 cores are as many as 20 of 128. */
    const moirai_device_type *p4 = moirai_device_type_find("p4");
    assert_true(fabs(cost_wave_ns(1000, 1e12, 0, t4, p4) - 1000 * 1590.0 / 1113) < 1e-6);
}

/* What was measured anywhere is scaled from there, on a device alone as beside others; else the fit says it, of
 * processors, too. */
static void test_cost_auto_asks_scaled_where_measured_and_fitted_elsewhere(void **state)
{
    (void)state;
    one o = {"Relu", 1 << 24, 1 << 24, 0, -1, -1};
    moirai_cost_report report;
    moirai_graph *g = graph_of(&o, "t4", 1000000); /* ten times as slow as it should be */
    int64_t ns = time_of(g, "1x v100", "auto", &report), fitted = time_of(g, "1x v100", "fitted", NULL), both[4];
    assert_int_equal(report.n_by_model[4], 2);
    assert_string_equal(moirai_cost_model_at(4)->name, "scaled");
    assert_true(ns > 2 * fitted);
    moirai_cluster *c = cluster_of("1x v100, 1x t4, 1Gbps");
    assert_ok(moirai_cost_times(both, g, c, "auto", &report));
    moirai_cluster_free(c);
    assert_int_equal(report.n_by_model[4], 2);
    assert_int_equal(both[moirai_graph_find(g, "op") * 2 + 1], 1000000);
    assert_int_equal(both[moirai_graph_find(g, "op") * 2], ns);
    assert_int_equal(time_of(g, "1x v100", "wave", NULL), 355556);
    moirai_graph_free(g);
    g = graph_of(&o, NULL, 0);
    time_of(g, "1x v100", "auto", &report);
    assert_int_equal(report.n_by_model[3], 2);
    time_of(g, "1x cpu", "auto", &report);
    assert_int_equal(report.n_by_model[3], 2);
    moirai_graph_free(g);
}

static void test_cost_unknown_types_fall_back_and_are_counted(void **state)
{
    (void)state;
    one o = {"com.example.Mystery", 1 << 20, 1 << 20, 0, -1, -1};
    moirai_cost_report report;
    moirai_graph *g = graph_of(&o, NULL, 0);
    assert_int_equal(time_of(g, "1x t4", "roofline", &report), 5000 + 8738); /* 2 MiB at 240 GB/s */
    assert_int_equal(report.n_fallback, 1);
    assert_string_equal(report.first_fallback, "com.example.Mystery");
    assert_true(time_of(g, "1x t4", "auto", &report) > 0);
    assert_int_equal(report.n_fallback, 1);
    moirai_graph_free(g);
    g = graph_of(&o, "t4", 1234); /* measured: nothing to fall back to */
    time_of(g, "1x t4", "auto", &report);
    assert_int_equal(report.n_fallback, 0);
    moirai_graph_free(g);
}

static void test_cost_types_are_sorted_and_found(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        cost_class k;
    } CASES[] = {
        {"MatMul", COST_CLASS_BMM},
        {"Gemm", COST_CLASS_LINEAR},
        {"addmm", COST_CLASS_LINEAR},
        {"Conv", COST_CLASS_CONV},
        {"xor", COST_CLASS_ADD},
        {"abs", COST_CLASS_ADDU},
        {"layer_norm", COST_CLASS_LN},
        {"ln", COST_CLASS_LN},
        {"LayerNormalization", COST_CLASS_LN},
        {"Reshape", COST_CLASS_VIEW},
        {"where", COST_CLASS_ADD},
        {"Softmax", COST_CLASS_SOFTMAX},
        {"", COST_CLASS_UNKNOWN},
        {"+", COST_CLASS_UNKNOWN},
        {"Conv+BatchNormalization+Relu", COST_CLASS_CONV},
        {"Add+Relu", COST_CLASS_ADD},
        {"Mul+Softmax", COST_CLASS_SOFTMAX},
        {"Transpose+MatMul", COST_CLASS_BMM},
        {"Mystery+Relu", COST_CLASS_RELU},
        {"GatherND", COST_CLASS_MEMORY},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(cost_class_of(CASES[i].type), CASES[i].k);
    assert_null(cost_class_unsorted());
}

/* Every operator of the zoo has a known class. */
static void test_cost_zoo_needs_no_fallback(void **state)
{
    (void)state;
    for (int i = 0; i < moirai_zoo_count(); i++) {
        if (moirai_zoo_at(i)->n_ops > 5000)
            continue;
        moirai_graph *g;
        moirai_cost_report report;
        assert_ok(moirai_zoo_graph(&g, moirai_zoo_at(i)->name, 4));
        moirai_cluster *c = cluster_of("1x v100, 1x t4, 100Gbps");
        int64_t *t = calloc((size_t)g->n_ops * 2, sizeof *t);
        assert_ok(moirai_cost_times(t, g, c, NULL, &report));
        assert_int_equal(report.n_fallback, 0);
        for (int32_t k = 0; k < 2 * g->n_ops; k++)
            assert_true(t[k] >= 0 && t[k] < INT64_C(100000000000));
        free(t);
        moirai_cluster_free(c);
        moirai_graph_free(g);
    }
}

/* Odd numbers of every kind: any answer from 0 up to the clamp, no crash. */
static void test_cost_survives_odd_numbers(void **state)
{
    (void)state;
    static const char *const types[] = {
        "MatMul", "Gemm", "Conv", "Softmax", "LayerNormalization", "Add", "Reshape", "?", "Gather", "Conv+Relu", ""};
    static const int64_t numbers[] = {0, 1, 3, 4096, INT64_MAX / 8, INT64_MAX / 2, INT64_MAX, -1};
    util_rng r;
    util_rng_seed(&r, 7);
    moirai_cluster *c = cluster_of("1x t4, 1x cpu, 100Gbps");
    for (int i = 0; i < TEST_AGAIN(1000, 4000); i++) {
        int64_t n[5];
        for (int j = 0; j < 5; j++)
            n[j] = numbers[util_rng_below(&r, j < 3 ? 7 : 8)];
        one o = {types[util_rng_below(&r, 10)], n[0], n[1], n[2], n[3], n[4]};
        moirai_graph *g = graph_of(&o, util_rng_below(&r, 2) ? "v100" : NULL, numbers[util_rng_below(&r, 7)]);
        for (int m = 0; m < moirai_cost_model_count(); m++) {
            int64_t t[4];
            if (!moirai_cost_times(t, g, c, moirai_cost_model_at(m)->name, NULL))
                for (int k = 0; k < 4; k++)
                    assert_true(t[k] >= 0);
        }
        moirai_graph_free(g);
    }
    moirai_cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_roofline_gives_the_published_times),
        cmocka_unit_test(test_cost_table_goes_by_name_then_by_type),
        cmocka_unit_test(test_cost_unknown_model_is_a_usage_error),
        cmocka_unit_test(test_cost_wave_is_exact_at_the_ends),
        cmocka_unit_test(test_cost_auto_asks_scaled_where_measured_and_fitted_elsewhere),
        cmocka_unit_test(test_cost_unknown_types_fall_back_and_are_counted),
        cmocka_unit_test(test_cost_types_are_sorted_and_found),
        cmocka_unit_test(test_cost_zoo_needs_no_fallback),
        cmocka_unit_test(test_cost_survives_odd_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
