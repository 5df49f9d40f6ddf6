/* Dimensions of products and convolutions, found from the sizes of tensors. */
#include "support/one_op.h"

#include <math.h>

#include "cost/cost.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_shape_recovers_dimensions),
        cmocka_unit_test(test_cost_scalar_weight_makes_no_linear),
        cmocka_unit_test(test_cost_shape_tells_kinds_of_convolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
