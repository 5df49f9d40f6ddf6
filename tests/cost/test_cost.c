/* Cost models: what each promises, on graphs small enough to do the sums by hand. */
#include "support/check.h"
#include "support/scale.h"

#include <math.h>
#include <moirai/coarsen.h>
#include <moirai/cost.h>
#include <moirai/fit.h>
#include <moirai/zoo.h>
#include "cost/cost.h"
#include "util/util.h"

/* One operator with one input `x` of in_bytes (made by a free view) and one output. */
typedef struct one {
    const char *type;
    int64_t in, out, weights, flops, traffic;
} one;

static moirai_graph *graph_of(const one *o, const char *key, int64_t ns)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    assert_ok(moirai_graph_builder_new(&b, "test"));
    int32_t source = moirai_graph_builder_op(b, "source", "Reshape"), op = moirai_graph_builder_op(b, "op", o->type);
    assert_ok(moirai_graph_builder_output(b, source, "x", o->in));
    assert_ok(moirai_graph_builder_input(b, op, "x"));
    assert_ok(moirai_graph_builder_output(b, op, "y", o->out));
    assert_ok(moirai_graph_builder_cost(b, op, o->weights, 0, o->flops, o->traffic));
    if (key) {
        assert_ok(moirai_graph_builder_time(b, op, key, ns));
        assert_ok(moirai_graph_builder_time(b, source, key, 0));
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

static moirai_cluster *cluster_of(const char *description)
{
    moirai_cluster *c;
    assert_ok(moirai_cluster_synthetic(&c, description));
    return c;
}

/* Time of "op" on the first device. */
static int64_t time_of(const moirai_graph *g, const char *cluster, const char *model, moirai_cost_report *report)
{
    moirai_cluster *c = cluster_of(cluster);
    int64_t *t = calloc((size_t)g->n_ops * (size_t)c->n_devices, sizeof *t);
    assert_ok(moirai_cost_times(t, g, c, model, report));
    int64_t ns = t[moirai_graph_find(g, "op") * c->n_devices];
    free(t);
    moirai_cluster_free(c);
    return ns;
}

static int64_t time_of_one(one o, const char *cluster, const char *model)
{
    moirai_graph *g = graph_of(&o, NULL, 0);
    int64_t ns = time_of(g, cluster, model, NULL);
    moirai_graph_free(g);
    return ns;
}

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

/* Dimensions come back from sizes: 4096 x 1280 times 1280 x 3840 with bias, with and without flops; 3 x 3 convolution.
 */
static void test_cost_shape_recovers_dimensions(void **state)
{
    (void)state;
    one cases[] = {
        {"addmm", 20971520, 62914560, 19676160, -1, -1},
        {"addmm", 20971520, 62914560, 19676160, INT64_C(2) * 4096 * 1280 * 3840, -1},
        {"MatMul", 20971520, 62914560, 19660800, -1, -1},
        {"Conv", 4 * 8 * 64 * 56 * 56, 4 * 8 * 128 * 56 * 56, 4 * 128 * 64 * 9, INT64_C(2) * 8 * 56 * 56 * 128 * 64 * 9,
         -1},
        {"Conv", 4 * 8 * 64 * 56 * 56, 4 * 8 * 128 * 56 * 56, 4 * 128 * 64, INT64_C(2) * 8 * 56 * 56 * 128 * 64, -1},
    };
    double want[][3] = {
        {4096, 3840, 1280}, {4096, 3840, 1280}, {4096, 3840, 1280}, {8 * 56 * 56, 128, 576}, {8 * 56 * 56, 128, 64}};
    moirai_cluster *c = cluster_of("1x t4");
    for (int i = 0; i < 5; i++) {
        moirai_graph *g = graph_of(&cases[i], NULL, 0);
        moirai_cost_context *x;
        cost_shape s;
        assert_ok(cost_context_new(&x, g, c));
        cost_shape_of(&s, x, moirai_graph_find(g, "op"));
        assert_true(fabs(s.m - want[i][0]) < 1e-6 && fabs(s.n - want[i][1]) < 1e-6 &&
                    fabs(s.depth - want[i][2]) < 1e-6);
        assert_int_equal(s.k, i == 3 ? COST_CLASS_CONV : i == 4 ? COST_CLASS_DIRECT : COST_CLASS_LINEAR);
        cost_context_free(x);
        moirai_graph_free(g);
    }
    moirai_cluster_free(c);
}

/* On every model and device: a fused operator costs less than its members' sum, and at least its heaviest member less
 * the traffic that it no longer has. */
/* The scale of attention, a constant in a file, is no matrix: the product stays one of two tensors. */
static void test_cost_scalar_weight_makes_no_linear(void **state)
{
    (void)state;
    one plain = {"MatMul", 2048, 4096, 0, 2 * 32 * 32 * 16, 2048 + 2048 + 4096}, scaled = plain;
    scaled.weights += 4;
    scaled.traffic += 4;
    int64_t without = time_of_one(plain, "1x v100", "fitted"), with = time_of_one(scaled, "1x v100", "fitted");
    assert_in_range(with, without, without + without / 100);
}

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

/* ---- one scale ---- */

/* One operator of every class, small and large. */
static const one EVERY_CLASS[] = {
    {"Add", 1 << 12, 1 << 12, 0, -1, 3 << 12},
    {"Add", 1 << 26, 1 << 26, 0, -1, INT64_C(3) << 26},
    {"Mul", 1 << 22, 1 << 22, 0, -1, -1},
    {"Div", 1 << 24, 1 << 24, 0, -1, INT64_C(3) << 24},
    {"Pow", 1 << 24, 1 << 24, 0, -1, -1},
    {"Relu", 1 << 20, 1 << 20, 0, -1, -1},
    {"Tanh", 1 << 27, 1 << 27, 0, -1, -1},
    {"Gelu", 1 << 25, 1 << 25, 0, -1, -1},
    {"Softmax", 1 << 16, 1 << 16, 0, -1, -1},
    {"Softmax", 1 << 27, 1 << 27, 0, -1, -1},
    {"LayerNormalization", 1 << 25, 1 << 25, 8192, -1, -1},
    {"Gemm", 4 * 4096, 4 * 1000, 4 * 4096 * 1000, INT64_C(2) * 4096 * 1000, -1},
    {"Gemm", 4 * 128 * 4096, 4 * 128 * 128, 4 * 4096 * 128, INT64_C(2) * 128 * 4096 * 128, -1},
    {"Gemm", 20971520, 62914560, 19660800, INT64_C(2) * 4096 * 1280 * 3840, -1},
    {"MatMul", 1 << 22, 1 << 24, 0, INT64_C(2) * 64 * (1 << 22), 3 << 22},
    {"Conv", 4 * 8 * 64 * 56 * 56, 4 * 8 * 128 * 56 * 56, 4 * 128 * 64 * 9, INT64_C(2) * 8 * 56 * 56 * 128 * 64 * 9,
     -1},
    {"Conv", 4 * 64 * 7 * 7, 4 * 512 * 7 * 7, 4 * 512 * 64, INT64_C(2) * 49 * 512 * 64, -1},
    {"Gather", 1 << 20, 1 << 20, 1 << 22, -1, -1},
    {"Reshape", 1 << 20, 1 << 20, 0, -1, -1},
    {"Mystery", 1 << 22, 1 << 22, 0, 1 << 30, -1},
};
#define N_CLASSES_TRIED ((int)(sizeof EVERY_CLASS / sizeof *EVERY_CLASS))

/* At least as good in every figure that the formulas read, and of one kind: a small operator is done on a processor
 * before a GPU has started. */
static bool is_better(const moirai_device_type *a, const moirai_device_type *b)
{
    double power_a = a->watt > 0 ? a->watt / (UTIL_MIN(a->process_nm, 12) * a->gflops_fp32) : INFINITY,
           power_b = b->watt > 0 ? b->watt / (UTIL_MIN(b->process_nm, 12) * b->gflops_fp32) : INFINITY;
    return a->processor == b->processor && (a->process_nm < 14 || b->process_nm >= 14) && a->l2_mb >= b->l2_mb &&
           power_a >= power_b && a->gflops_fp32 >= b->gflops_fp32 && a->bandwidth_gb_s >= b->bandwidth_gb_s &&
           a->bandwidth_gb_s * a->delivered >= b->bandwidth_gb_s * b->delivered &&
           UTIL_MAX(a->gflops_fp32, a->gflops_tf32) >= UTIL_MAX(b->gflops_fp32, b->gflops_tf32) &&
           UTIL_MAX(a->gflops_fp32, a->gflops_fp16) >= UTIL_MAX(b->gflops_fp32, b->gflops_fp16);
}

/* One pair: `share` of all (operator, number type), others for the next pair, so that all are tried in the end. */
static void try_pair(moirai_graph *const *g, const char *text, int pair, int share)
{
    moirai_cluster *c = cluster_of(text);
    for (int k = 0; k < share; k++) {
        int i = (pair * share + k) % (2 * N_CLASSES_TRIED);
        moirai_cost_options o = {.runtime = (moirai_runtime)((pair + i) % MOIRAI_RUNTIMES),
                                 .tf32 = (pair + i) % 3 == 0};
        moirai_cost_report report;
        int64_t t[4];
        g[i / 2]->element_bytes = i % 2 ? 2 : 4;
        assert_ok(moirai_cost_times_with(t, g[i / 2], c, &o, &report));
        int32_t op = moirai_graph_find(g[i / 2], "op");
        if (t[op * 2] > t[op * 2 + 1])
            fail_msg("%s: %s: %lld > %lld ns", text, EVERY_CLASS[i / 2].type, (long long)t[op * 2],
                     (long long)t[op * 2 + 1]);
        assert_int_equal(report.n_mixed, 0);
    }
    moirai_cluster_free(c);
}

/* A device that is the better one in every figure is never slower, whatever the operator, its number type and the
 * runtime. */
static void test_cost_better_device_is_never_slower(void **state)
{
    (void)state;
    int n = moirai_device_type_count(), n_pairs = 0;
    moirai_graph *g[N_CLASSES_TRIED];
    for (int i = 0; i < N_CLASSES_TRIED; i++)
        g[i] = graph_of(&EVERY_CLASS[i], NULL, 0);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            const moirai_device_type *better = moirai_device_type_at(a), *worse = moirai_device_type_at(b);
            char text[160];
            if (a == b || !is_better(better, worse))
                continue;
            snprintf(text, sizeof text, "1x %s, 1x %s, 100Gbps", better->name, worse->name);
            try_pair(g, text, n_pairs++, TEST_SHARE(TEST_SHARE(2 * N_CLASSES_TRIED)));
        }
    assert_true(n_pairs > 1000);
    for (int i = 0; i < N_CLASSES_TRIED; i++)
        moirai_graph_free(g[i]);
}

static moirai_cluster *cluster_of_devices(const char *devices)
{
    char text[2000];
    moirai_cluster *c;
    snprintf(
        text, sizeof text,
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": [%s], \"links\": [{\"from\": \"A\", \"to\": "
        "\"B\", \"bandwidth\": \"100Gbps\", \"both\": true}]}",
        devices);
    assert_ok(moirai_cluster_parse(&c, text, strlen(text), "test"));
    return c;
}

/* A card given by two figures next to one with all: one model for both, and the large one wins. */
static void test_cost_devices_of_a_plan_share_one_model(void **state)
{
    (void)state;
    one o = {"Relu", 1 << 22, 1 << 22, 0, -1, -1};
    moirai_graph *g = graph_of(&o, NULL, 0);
    moirai_cost_report report;
    int64_t t[4];
    moirai_cluster *c =
        cluster_of_devices("{\"name\": \"A\", \"type\": \"h100\"}, {\"name\": \"B\", \"memory\": \"2GB\", "
                           "\"type\": \"mine\", \"memory_bandwidth\": \"112GB/s\", \"gflops\": 1862}");
    assert_ok(moirai_cost_times(t, g, c, NULL, &report));
    assert_int_equal(report.n_by_model[3], 4);
    assert_int_equal(report.n_mixed, 0);
    assert_int_equal(report.launch_ns[0], report.launch_ns[1]);
    int32_t op = moirai_graph_find(g, "op");
    assert_true(t[op * 2] < t[op * 2 + 1]);
    moirai_cluster_free(c);
    moirai_graph_free(g);

    /* No model knows both: counted. Only A measured: counted, too. */
    one product = {"Gemm", 4096, 4096, 4096, 1 << 20, -1};
    g = graph_of(&product, NULL, 0);
    c = cluster_of_devices(
        "{\"name\": \"A\", \"type\": \"h100\"}, {\"name\": \"B\", \"type\": \"x\", \"memory\": \"2GB\"}");
    assert_int_equal(moirai_cost_times(t, g, c, NULL, NULL), MOIRAI_EINPUT);
    moirai_cluster_free(c);
    moirai_graph_free(g);
    g = graph_of(&product, "A", 777);
    c = cluster_of_devices("{\"name\": \"A\", \"type\": \"nobody's\", \"memory\": \"2GB\"}, {\"name\": \"B\", "
                           "\"memory\": \"2GB\", \"type\": \"mine\", "
                           "\"memory_bandwidth\": \"112GB/s\", \"gflops\": 1862}");
    assert_ok(moirai_cost_times(t, g, c, NULL, &report));
    assert_int_equal(report.n_two_scales, 2);
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

/* Alone, or beside any other device: the same time, of every class. */
static void test_cost_a_device_has_one_time(void **state)
{
    (void)state;
    static const char *const device[] = {"h100", "v100", "t4", "a100", "gtx1050", "cpu", "cpu-64-avx512", "cpu-64-amx"};
    for (int i = 0; i < N_CLASSES_TRIED; i++) {
        moirai_graph *g = graph_of(&EVERY_CLASS[i], NULL, 0);
        for (int a = 0; a < 8; a++)
            for (int b = 0; b < 8; b++) {
                char alone[40], beside[80];
                snprintf(alone, sizeof alone, "1x %s", device[a]);
                snprintf(beside, sizeof beside, "1x %s, 1x %s, 100Gbps", device[a], device[b]);
                assert_int_equal(time_of(g, alone, "auto", NULL), time_of(g, beside, "auto", NULL));
            }
        moirai_graph_free(g);
    }
}

/* Wide vectors make no GPU: more of them are never slower, and the GPU beside them stays as it is. */
static void test_cost_wide_vectors_make_no_gpu(void **state)
{
    (void)state;
    for (int i = 0; i < N_CLASSES_TRIED; i++) {
        moirai_graph *g = graph_of(&EVERY_CLASS[i], NULL, 0);
        moirai_cluster *c = cluster_of("1x cpu-64-avx2, 1x cpu-64-avx512, 1x cpu-64-amx, 1x cpu-64-sse4, 100Gbps");
        int64_t t[8];
        const int64_t *row = t + 4 * moirai_graph_find(g, "op");
        assert_ok(moirai_cost_times(t, g, c, NULL, NULL));
        assert_true(row[3] >= row[0] && row[0] >= row[1] && row[1] >= row[2]);
        moirai_cluster_free(c);
        moirai_graph_free(g);
    }
}

/* A detector's convolutions on a processor: a channel each and few channels are slow there. Shares of one core's 160
 * GFLOPS and 25.6 GB/s, measured (docs/cost-models.md); the roofline has 0.7 and 0.75 of all. */
static void test_cost_processors_are_as_slow_as_measured(void **state)
{
    (void)state;
    const double whole = 4 * 96 * 112 * 112;
    one depthwise = {"Conv", (int64_t)whole, (int64_t)whole, 4 * 96 * 9, INT64_C(2) * 96 * 112 * 112 * 9, -1};
    one conv = {"Conv", 4 * 64 * 56 * 56, 4 * 64 * 56 * 56, 4 * 64 * 64 * 9, INT64_C(2) * 64 * 56 * 56 * 64 * 9, -1};
    assert_in_range(time_of_one(depthwise, "1x cpu-1-avx512", "auto"), 1300000, 4000000); /* 2.5 ms */
    assert_in_range(time_of_one(conv, "1x cpu-1-avx512", "auto"), 1700000, 4300000);      /* 2.2 ms */
    assert_true(time_of_one(depthwise, "1x cpu-1-avx512", "auto") >
                3 * time_of_one(depthwise, "1x cpu-1-avx512", "roofline"));
}

/* 1024 x 257 weights: 1024 columns of 256 and a bias, not 1028 of 256; groups and a channel each by their sizes. */
static void test_cost_shape_tells_kinds_of_convolution(void **state)
{
    (void)state;
    const struct {
        one o;
        cost_class k;
        double b, m, n, depth;
    } cases[] = {
        {{"Conv", 4 * 6400 * 256, 4 * 6400 * 1024, 4 * 1024 * 257, INT64_C(2) * 6400 * 1024 * 256, -1},
         COST_CLASS_DIRECT,
         1,
         6400,
         1024,
         256},
        {{"Conv", 4 * 12544 * 96, 4 * 12544 * 96, 4 * 96 * 10, INT64_C(2) * 12544 * 96 * 9, -1},
         COST_CLASS_DEPTHWISE,
         1,
         12544,
         96,
         9},
        {{"Conv", 4 * 896 * 768, 4 * 896 * 768, 4 * 768 * 50, INT64_C(2) * 896 * 768 * 49, -1},
         COST_CLASS_DEPTHWISE,
         1,
         896,
         768,
         49}, /* 49 to 768 is close to 1 to 16, which a 1 x 1 of stride 4 would have */
        {{"Conv", 4 * 12544 * 128, 4 * 12544 * 128, 4 * 128 * 37, INT64_C(2) * 12544 * 128 * 36, -1},
         COST_CLASS_GROUPED,
         32,
         12544,
         4,
         36},
        {{"Conv", 4 * 12544 * 256, 4 * 3136 * 512, 4 * 512 * 257, INT64_C(2) * 3136 * 512 * 256, -1},
         COST_CLASS_DIRECT,
         1,
         3136,
         512,
         256}, /* 1 x 1, stride 2 */
        {{"Conv", 4 * 16900 * 512, 4 * 4356 * 1024, 4 * 1024 * 513, INT64_C(2) * 4356 * 1024 * 512, -1},
         COST_CLASS_DIRECT,
         1,
         4356,
         1024,
         512}, /* 1 x 1, stride 2, sides of 65 and 33: no groups */
        {{"Conv", 4 * 9216 * 128, 4 * 9216 * 128, 4 * 128 * 37, INT64_C(2) * 9216 * 128 * 36, -1},
         COST_CLASS_GROUPED,
         32,
         9216,
         4,
         36}, /* 48 x 48, of which nine parts are whole as well */
        {{"Conv", 4 * 12544 * 64, 4 * 3136 * 128, 4 * 128 * 577, INT64_C(2) * 3136 * 128 * 576, -1},
         COST_CLASS_DIRECT,
         1,
         3136,
         128,
         576}, /* 3 x 3, stride 2 */
    };
    moirai_cluster *c = cluster_of("1x t4");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        moirai_graph *g = graph_of(&cases[i].o, NULL, 0);
        moirai_cost_context *x;
        assert_ok(cost_context_new(&x, g, c));
        const cost_shape *s = &x->shape[moirai_graph_find(g, "op")];
        assert_int_equal(s->k, cases[i].k);
        assert_true(s->b == cases[i].b && fabs(s->m - cases[i].m) < 1e-6 && fabs(s->n - cases[i].n) < 1e-6);
        assert_true(fabs(s->depth - cases[i].depth) < 1e-6);
        cost_context_free(x);
        moirai_graph_free(g);
    }
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
    for (int i = 0; i < 4000; i++) {
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
        cmocka_unit_test(test_cost_shape_recovers_dimensions),
        cmocka_unit_test(test_cost_scalar_weight_makes_no_linear),
        cmocka_unit_test(test_cost_fused_is_cheaper_than_its_members),
        cmocka_unit_test(test_cost_fp16_streams_in_half_the_time),
        cmocka_unit_test(test_cost_better_device_is_never_slower),
        cmocka_unit_test(test_cost_devices_of_a_plan_share_one_model),
        cmocka_unit_test(test_cost_a_device_has_one_time),
        cmocka_unit_test(test_cost_wide_vectors_make_no_gpu),
        cmocka_unit_test(test_cost_processors_are_as_slow_as_measured),
        cmocka_unit_test(test_cost_shape_tells_kinds_of_convolution),
        cmocka_unit_test(test_cost_cache_power_and_sorting),
        cmocka_unit_test(test_cost_panels_and_parts),
        cmocka_unit_test(test_cost_launches_are_the_runtimes),
        cmocka_unit_test(test_cost_fp16_products_use_tensor_cores),
        cmocka_unit_test(test_cost_survives_odd_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
