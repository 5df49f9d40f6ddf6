/* What each shipped rule fuses in networks as exporters write them, counted on paper. */
#include <moirai/coarsen.h>
#include <moirai/onnx.h>
#include "support/check.h"
#include "support/onnx_networks.h"
#include "util/util.h"

typedef struct golden {
    const char *rule; /* NULL: how many operators are left */
    int64_t count;
} golden;

/* `expected` lists all rules that fuse anything, then NULL and the operators left. */
static void check_counts(void (*make)(wire *model), const char *set, const golden *expected)
{
    char *path = temporary_path("network.onnx");
    wire model = {0};
    moirai_graph *g, *c;
    moirai_rules *r;
    int64_t count[64], fused = 0;

    make(&model);
    assert_ok(util_file_write(path, (const char *)model.data, model.length));
    wire_free(&model);
    assert_ok(moirai_onnx_read(&g, path, NULL, NULL));
    remove(path);
    assert_ok(moirai_rules_open(&r, set));
    assert_true(moirai_rules_count(r) <= 64);
    assert_ok(moirai_coarsen(&c, g, r, count));
    for (int i = 0; i < moirai_rules_count(r); i++)
        fused += count[i];
    for (; expected->rule; expected++) {
        int i = 0;

        while (i < moirai_rules_count(r) && strcmp(moirai_rules_text(r, i), expected->rule))
            i++;
        assert_true(i < moirai_rules_count(r));
        assert_int_equal(count[i], expected->count);
        fused -= expected->count;
    }
    assert_int_equal(fused, 0);
    assert_int_equal(c->n_ops, expected->count);
    moirai_rules_free(r);
    moirai_graph_free(c);
    moirai_graph_free(g);
}

/* 53 convolutions, 16 residual adds, 49 activations. The exporter has folded batch norms away: nothing for eigen. */
static void test_onnx_coarsen_resnet50(void **state)
{
    (void)state;
    check_counts(make_resnet50, "eigen", (const golden[]){{NULL, 122}});
    check_counts(make_resnet50, "onnxruntime",
                 (const golden[]){{"conv bn? act", 33}, {"conv bn? add relu", 16}, {NULL, 122 - 33 - 2 * 16}});
}

static void test_onnx_coarsen_vgg16(void **state)
{
    (void)state;
    check_counts(make_vgg16, "eigen", (const golden[]){{NULL, 37}});
    check_counts(make_vgg16, "onnxruntime",
                 (const golden[]){{"conv bn? act", 13}, {"matmul bias? act", 2}, {NULL, 37 - 13 - 2}});
}

/* Twelve layers: three projections, the attention, two norms with residual and bias, fc1, gelu; one more norm before.
 */
static void test_onnx_coarsen_bert_base(void **state)
{
    (void)state;
    check_counts(make_bert_base, "onnxruntime",
                 (const golden[]){{"matmul bias", 12},
                                  {"matmul bias? reshape transpose", 36},
                                  {"matmul scale? mask? softmax dropout? matmul transpose reshape", 12},
                                  {"bias? add ln", 25},
                                  {"div erf bias mul scale", 12},
                                  {NULL, 414 - 12 - 3 * 36 - 6 * 12 - (2 * 24 + 1) - 4 * 12}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx_coarsen_resnet50),
        cmocka_unit_test(test_onnx_coarsen_vgg16),
        cmocka_unit_test(test_onnx_coarsen_bert_base),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
