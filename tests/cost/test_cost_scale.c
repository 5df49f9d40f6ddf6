/* One scale for all devices: a better one is never slower, and others beside it change nothing. */
#include "support/one_op.h"
#include "support/scale.h"

#include <math.h>

#include "util/util.h"

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
    {"MatMul", 1 << 24, 1 << 20, 0, INT64_C(2) * 1024 * (1 << 20), -1},
    {"Conv", 4 * 8 * 64 * 56 * 56, 4 * 8 * 128 * 56 * 56, 4 * 128 * 64 * 9, INT64_C(2) * 8 * 56 * 56 * 128 * 64 * 9,
     -1},
    {"Conv", 4 * 64 * 7 * 7, 4 * 512 * 7 * 7, 4 * 512 * 64, INT64_C(2) * 49 * 512 * 64, -1},
    {"Conv", 4 * 256 * 100, 4 * 256 * 100, 4 * 256 * 2304, INT64_C(2) * 100 * 256 * 2304, -1},
    {"Conv", 4 * 512 * 16384, 4 * 512 * 16384, 4 * 512 * 4608, INT64_C(2) * 16384 * 512 * 4608, -1},
    {"Conv", 4 * 768 * 896, 4 * 768 * 896, 4 * 768 * 49, INT64_C(2) * 768 * 896 * 49, -1},
    {"ReduceSum", 1 << 24, 1 << 23, 0, -1, -1},
    {"ReduceMean", 17950464, 40704, 0, -1, -1},
    {"AveragePool", 1 << 24, 1 << 24, 0, -1, -1},
    {"TopK", 118400, 32000, 0, -1, -1},
    {"NonMaxSuppression", 1 << 16, 1 << 10, 0, -1, -1},
    {"Gather", 1 << 20, 1 << 20, 1 << 22, -1, -1},
    {"Reshape", 1 << 20, 1 << 20, 0, -1, -1},
    {"Mystery", 1 << 22, 1 << 22, 0, 1 << 30, -1},
};
#define N_CLASSES_TRIED ((int)(sizeof EVERY_CLASS / sizeof *EVERY_CLASS))

static double power(const moirai_device_type *f, double most_nm)
{
    return f->watt > 0 ? f->watt / (UTIL_MIN(f->process_nm, most_nm) * f->gflops_fp32) : INFINITY;
}

/* Of a rate, all of it and, of GPUs, that of each multiprocessor, by which a patch is computed. */
static bool is_faster(const moirai_device_type *a, double rate_a, const moirai_device_type *b, double rate_b)
{
    return rate_a >= rate_b && (a->processor || rate_a * b->sm >= rate_b * a->sm);
}

/* At least as good in every figure that the formulas read, and of one kind: a small operator is done on a processor
 * before a GPU has started. */
static bool is_better(const moirai_device_type *a, const moirai_device_type *b)
{
    return a->processor == b->processor && (a->process_nm < 14 || b->process_nm >= 14) && a->l2_mb >= b->l2_mb &&
           power(a, 12) >= power(b, 12) && power(a, 16) >= power(b, 16) &&
           (a->processor || (a->sm >= b->sm && a->clock_mhz >= b->clock_mhz)) &&
           a->bandwidth_gb_s >= b->bandwidth_gb_s &&
           a->bandwidth_gb_s * a->delivered >= b->bandwidth_gb_s * b->delivered &&
           is_faster(a, a->gflops_fp32, b, b->gflops_fp32) &&
           is_faster(a, UTIL_MAX(a->gflops_fp32, a->gflops_tf32), b, UTIL_MAX(b->gflops_fp32, b->gflops_tf32)) &&
           is_faster(a, UTIL_MAX(a->gflops_fp32, a->gflops_fp16), b, UTIL_MAX(b->gflops_fp32, b->gflops_fp16));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_better_device_is_never_slower),
        cmocka_unit_test(test_cost_devices_of_a_plan_share_one_model),
        cmocka_unit_test(test_cost_a_device_has_one_time),
        cmocka_unit_test(test_cost_wide_vectors_make_no_gpu),
        cmocka_unit_test(test_cost_processors_are_as_slow_as_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
