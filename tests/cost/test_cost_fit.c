/* The fit: reads what people measure, finds what was there, and is where the shipped coefficients come from. */
#include "support/check.h"

#include <math.h>
#include <moirai/cost.h>
#include <moirai/fit.h>
#include <moirai/zoo.h>
#include "cost/fit.h"
#include "util/util.h"

static moirai_fit *fit_of(const char *text)
{
    moirai_fit *fit;
    assert_ok(moirai_fit_parse(&fit, text, strlen(text), "times.csv"));
    return fit;
}

static void test_fit_reads_columns_by_name(void **state)
{
    (void)state;
    moirai_fit *fit = fit_of("h,latency_ns,comment,op,b,device\n64,1000,x,add,32,T4\n8,2000,,ln,4,Tesla V100\r\n\n");
    assert_int_equal(moirai_fit_used(fit), 2);
    assert_int_equal(moirai_fit_device_count(fit), 2);
    assert_string_equal(moirai_fit_device_name(fit, 0), "t4");
    assert_string_equal(moirai_fit_device_name(fit, 1), "v100");
    assert_true(fit->sample[0].shape.bytes == 3 * 4 * 64 * 32);
    moirai_fit_free(fit);
}

static void test_fit_skips_and_counts_what_makes_no_sense(void **state)
{
    (void)state;
    moirai_fit *fit =
        fit_of("device,op,latency_ns,b,h\nt4,add,1000,4,4\nt4,add,-5,4,4\nt4,add,nan,4,4\nt4,add,inf,4,4\n"
               "t4,add,0,4,4\nt4,add,1000,0,4\nt4,add,1000,-4,4\nt4,add,1e300,4,4\nt4,frobnicate,1,1,1\n"
               "cpu,add,1000,4,4\nabacus,add,1,1,1\nt4,add\n,\nt4,add,12x,4,4\nt4,bmm,5,1,1\nt4,conv,5,1,1\n");
    assert_int_equal(moirai_fit_used(fit), 1);
    assert_int_equal(moirai_fit_skipped(fit), 15);
    assert_ok(moirai_fit_solve(fit, -1)); /* one sample, three coefficients: any answer, but an answer */
    assert_true(isfinite(moirai_fit_coefficient(fit, COST_CLASS_ADD, 0)));
    moirai_fit_free(fit);
}

static void test_fit_refuses_what_is_no_table(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "\n",
                                      "device,op\nt4,add\n",
                                      "a,b,c\n1,2,3\n",
                                      "device,op,latency_ns,b,h\n",
                                      "device,op,latency_ns,b,h\nt4,add,-1,4,4\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        moirai_fit *fit;
        assert_int_equal(moirai_fit_parse(&fit, bad[i], strlen(bad[i]), "times.csv"), MOIRAI_EINPUT);
        assert_null(fit);
        assert_non_null(strstr(moirai_error_message(), "times.csv"));
    }
    moirai_fit *fit;
    assert_int_equal(moirai_fit_parse(&fit, "device\0op", 9, "times.csv"), MOIRAI_EINPUT);
}

/* Times made by the formulas themselves, on hosts of different speed: the fit finds the bandwidth share and the launch
 * of the ordinary host, whatever the others do. */
static void test_fit_recovers_known_coefficients(void **state)
{
    (void)state;
    static const char *const types[] = {"p4", "t4", "v100", "a100"};
    static const double host[] = {1, 1, 1.8, 1};
    const double truth[] = {30000, 12000, 0.8};
    static const int index[] = {COST_HOST, COST_START, COST_KERNEL};
    char *text = malloc(1 << 20);
    size_t length = (size_t)sprintf(text, "device,op,latency_ns,b,h\n");
    util_rng r;
    util_rng_seed(&r, 11);
    for (int i = 0; i < 800; i++) {
        const moirai_device_type *f = moirai_device_type_find(types[i % 4]);
        cost_shape s = {.k = COST_CLASS_RELU};
        int b = 1 << util_rng_below(&r, 14), h = 1 + (int)util_rng_below(&r, 4000);
        double c[COST_FITTED_COEFFICIENTS] = {[COST_KERNEL] = truth[2]};
        cost_head head = {truth[0] * host[i % 4], truth[1] * host[i % 4], 1, COST_RUN_REPEATED, false};
        s.bytes = 8.0 * b * h;
        length +=
            (size_t)sprintf(text + length, "%s,relu,%.0f,%d,%d\n", types[i % 4],
                            cost_fitted_ns(c, &s, f, &head) * (i % 20 == 3 ? 3 : 1), b, h); /* and some outliers */
    }
    moirai_fit *fit = fit_of(text);
    assert_ok(moirai_fit_solve(fit, -1));
    for (int j = 0; j < 3; j++)
        assert_true(fabs(moirai_fit_coefficient(fit, COST_CLASS_RELU, index[j]) / truth[j] - 1) < 0.01);
    assert_true(moirai_fit_coefficient(fit, COST_CLASS_LN, 0) == cost_fitted_shipped.c[COST_CLASS_LN][0]);
    moirai_fit_free(fit);
    free(text);
}

static void test_fit_writes_what_the_cost_model_reads(void **state)
{
    (void)state;
    char *path = temporary_path("coefficients.json"), model[4200];
    moirai_fit *fit =
        fit_of("device,op,latency_ns,b,h\nt4,gelu,100000,4,4\nt4,gelu,100000,5,4\nt4,gelu,900000,4096,8192\n");
    moirai_graph *g;
    moirai_cluster *c;
    assert_ok(moirai_fit_solve(fit, -1));
    assert_ok(moirai_fit_write(fit, path));
    assert_ok(moirai_zoo_graph(&g, "gpt3-tiny", 4));
    assert_ok(moirai_cluster_synthetic(&c, "1x t4"));
    int64_t *shipped = calloc((size_t)g->n_ops, sizeof *shipped), *own = calloc((size_t)g->n_ops, sizeof *own);
    snprintf(model, sizeof model, "fitted:%s", path);
    assert_ok(moirai_cost_times(shipped, g, c, "fitted", NULL));
    assert_ok(moirai_cost_times(own, g, c, model, NULL));
    int n_gelu = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        bool gelu = cost_class_of(g->op_type[i]) == COST_CLASS_GELU;
        assert_true(gelu ? own[i] > 2 * shipped[i] : own[i] == shipped[i]);
        n_gelu += gelu;
    }
    assert_true(n_gelu > 0);
    const char *empty = "{\"format\": \"moirai-coefficients\", \"version\": 1, \"classes\": {}}";
    assert_ok(util_file_write(path, empty, strlen(empty)));
    assert_int_equal(moirai_cost_times(own, g, c, model, NULL), MOIRAI_EINPUT);
    free(shipped);
    free(own);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    moirai_fit_free(fit);
}

/* A layer of 300 numbers in and 9000 out, as frameworks write it: the sum goes over n, the result has k columns. */
static void test_fit_columns_of_products(void **state)
{
    (void)state;
    moirai_fit *fit = fit_of("device,op,latency_ns,b,m,n,k\nv100,linear,400000,1,500,300,9000\n"
                             "v100,bmm,150000,40,150,100,400\n");
    const cost_shape *linear = &fit->sample[0].shape, *bmm = &fit->sample[1].shape;
    assert_true(linear->m == 500 && linear->n == 9000 && linear->depth == 300);
    assert_true(linear->out_bytes == 4.0 * 500 * 9000 && linear->weight_bytes == 4.0 * 300 * 9000);
    assert_true(bmm->b == 40 && bmm->m == 150 && bmm->n == 400 && bmm->depth == 100);
    assert_true(bmm->out_bytes == 4.0 * 40 * 150 * 400 && bmm->weight_bytes == 0);
    moirai_fit_free(fit);
}

/* A table of times as someone would measure them: the shipped formulas with an error of up to `noise`, for an
 * elementwise, a row and a matrix class, on eight GPUs; free() it. */
static char *measured(double noise, uint64_t seed)
{
    static const char *const types[] = {"p4", "p100", "v100", "t4", "a100", "l4", "h100", "rtx2080ti"};
    char *table = malloc(1 << 20);
    size_t length = (size_t)sprintf(table, "device,op,latency_ns,b,m,n,k,h\n");
    util_rng r;
    util_rng_seed(&r, seed);
    for (int i = 0; i < 4800; i++) {
        const moirai_device_type *f = moirai_device_type_find(types[i % 8]);
        double wrong = 1 + noise * (2 * util_rng_real(&r) - 1);
        int b = 1 + (int)util_rng_below(&r, 1 << util_rng_below(&r, 13)), h = 1 + (int)util_rng_below(&r, 3000);
        int m = 1 + (int)util_rng_below(&r, 512), n = 1 + (int)util_rng_below(&r, 512),
            k = 1 + (int)util_rng_below(&r, 512);
        char line[128];
        moirai_fit *one;
        if (!f)
            continue;
        const char *op = i / 8 % 3 == 0 ? "add" : i / 8 % 3 == 1 ? "softmax" : "bmm";
        b = i / 8 % 3 == 2 ? 1 + b % 64 : b;
        /* The reader knows what shape a line means: the formula is asked about just that. */
        int at = snprintf(line, sizeof line, "device,op,latency_ns,b,m,n,k,h\n%s,%s,1,%d,%d,%d,%d,%d\n", types[i % 8],
                          op, b, m, n, k, h);
        assert_ok(moirai_fit_parse(&one, line, (size_t)at, "line"));
        const cost_shape *s = &one->sample[0].shape;
        cost_head head = cost_head_measured(cost_fitted_shipped.c[s->k], false);
        double ns = cost_fitted_ns(cost_fitted_shipped.c[s->k], s, f, &head) * wrong;
        length += (size_t)sprintf(table + length, "%s,%s,%.0f,%d,%d,%d,%d,%d\n", types[i % 8], op, ns, b, m, n, k, h);
        moirai_fit_free(one);
    }
    return table;
}

/* Times that the shipped coefficients predict lead back to them: to what they predict within a part in a thousand. */
static void test_fit_of_predicted_times_is_what_is_shipped(void **state)
{
    (void)state;
    static const cost_class classes[] = {COST_CLASS_ADD, COST_CLASS_SOFTMAX, COST_CLASS_BMM};
    char *table = measured(0, 3);
    moirai_fit *fit = fit_of(table);
    assert_int_equal(moirai_fit_skipped(fit), 0);
    assert_true(moirai_fit_device_count(fit) >= 6);
    for (int i = 0; i < 3; i++) {
        double c[COST_FITTED_COEFFICIENTS] = {0}, wrong = 0;
        int n = 0;
        assert_true(cost_fit_class(c, classes[i], fit->sample, fit->n, NULL));
        for (size_t j = 0; j < fit->n; j++)
            if (fit->sample[j].shape.k == classes[i]) {
                cost_head head = cost_head_measured(c, false);
                double ns = cost_fitted_ns(c, &fit->sample[j].shape, fit->sample[j].type, &head);
                wrong += fabs(ns / fit->sample[j].ns - 1);
                n++;
            }
        assert_true(n > 1000);
        assert_true(wrong / n < 0.01);
    }
    moirai_fit_free(fit);
    free(table);
}

/* A GPU that was left out is predicted almost as well as the noise allows, since the formulas know it by its figures.
 */
static void test_fit_predicts_a_gpu_that_it_has_not_seen(void **state)
{
    (void)state;
    char *table = measured(0.1, 4);
    moirai_fit *fit = fit_of(table);
    for (int d = 0; d < moirai_fit_device_count(fit); d++) {
        moirai_fit_error e;
        assert_true(cost_fit_class(fit->set.c[COST_CLASS_ADD], COST_CLASS_ADD, fit->sample, fit->n, fit->device[d]));
        moirai_fit_measure(&e, fit, COST_CLASS_ADD, d);
        assert_true(e.n > 100);
        assert_true(e.fitted > 0.03 && e.fitted < 0.08); /* the mean of the noise is 0.05 */
        assert_true(e.fitted < e.roofline);
    }
    moirai_fit_free(fit);
    free(table);
}

/* A V100 in a host that launches half as fast as others: its figures can't tell, its fastest addition does. */
static void test_fit_launch_known_predicts_a_slow_host(void **state)
{
    (void)state;
    const moirai_device_type *f = moirai_device_type_find("v100");
    char table[8000];
    size_t length = (size_t)sprintf(table, "device,op,latency_ns,b,h\n");
    for (int i = 0; i < 40; i++) {
        const char *op = i % 2 ? "add" : "tanh";
        double elements = 64.0 * (1 << i / 3);
        cost_shape s = {.k = i % 2 ? COST_CLASS_ADD : COST_CLASS_TANH, .bytes = 4 * elements * (i % 2 ? 3 : 2)};
        cost_head head = cost_head_measured(cost_fitted_shipped.c[s.k], false);
        head.host_ns *= 2;
        head.start_ns *= 2;
        length += (size_t)sprintf(table + length, "v100,%s,%.0f,%d,64\n", op,
                                  cost_fitted_ns(cost_fitted_shipped.c[s.k], &s, f, &head), 1 << i / 3);
    }
    moirai_fit *fit = fit_of(table);
    static const cost_class classes[] = {COST_CLASS_ADD, COST_CLASS_TANH};
    for (int k = 0; k < 2; k++) {
        moirai_fit_error e;
        moirai_fit_measure(&e, fit, (int)classes[k], 0);
        assert_int_equal(e.n, 20);
        assert_true(e.fitted > 0.4 && e.fitted_launch < 0.01);
    }
    moirai_fit_free(fit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit_reads_columns_by_name),
        cmocka_unit_test(test_fit_skips_and_counts_what_makes_no_sense),
        cmocka_unit_test(test_fit_refuses_what_is_no_table),
        cmocka_unit_test(test_fit_recovers_known_coefficients),
        cmocka_unit_test(test_fit_writes_what_the_cost_model_reads),
        cmocka_unit_test(test_fit_columns_of_products),
        cmocka_unit_test(test_fit_of_predicted_times_is_what_is_shipped),
        cmocka_unit_test(test_fit_predicts_a_gpu_that_it_has_not_seen),
        cmocka_unit_test(test_fit_launch_known_predicts_a_slow_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
