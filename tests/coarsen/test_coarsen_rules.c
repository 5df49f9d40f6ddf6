/* The language of rule files. */
#include "coarsen/rules.h"
#include "support/check.h"

static moirai_rules *parse(const char *text)
{
    moirai_rules *r = NULL;

    assert_ok(moirai_rules_parse(&r, text, "test"));
    return r;
}

/* The rule that these canonical types spell, MOIRAI_NONE if none. */
static int spelt(const moirai_rules *r, const char *types)
{
    char word[COARSEN_TYPE_LENGTH];
    int32_t node = 0;

    for (int n; sscanf(types, " %63s%n", word, &n) == 1; types += n) {
        node = coarsen_rules_step(r, node, util_names_get(r->symbols, word));
        if (node == MOIRAI_NONE)
            return MOIRAI_NONE;
    }
    return r->node[node].rule;
}

static void test_coarsen_rules_lines_and_comments(void **state)
{
    moirai_rules *r = parse("# the paper's table\nconv bn\n\n  conv\tbn   relu # three\r\nconv bn add relu");

    (void)state;
    assert_int_equal(moirai_rules_count(r), 3);
    assert_string_equal(moirai_rules_text(r, 1), "conv bn relu");
    assert_null(moirai_rules_text(r, 3));
    assert_null(moirai_rules_text(r, -1));
    assert_int_equal(spelt(r, "conv bn"), 0);
    assert_int_equal(spelt(r, "conv bn relu"), 1);
    assert_int_equal(spelt(r, "conv bn add1 relu"), 2);
    assert_int_equal(spelt(r, "conv bn add relu"), 2);
    assert_int_equal(spelt(r, "conv bn add"), MOIRAI_NONE);
    assert_int_equal(spelt(r, "bn relu"), MOIRAI_NONE);
    assert_int_equal(r->longest, 4);
    moirai_rules_free(r);
}

static void test_coarsen_rules_alternatives_and_optional_items(void **state)
{
    moirai_rules *r = parse("conv bn? relu|clip\nmatmul bias? softmax? bias?\nconv relu");

    (void)state;
    assert_int_equal(spelt(r, "conv relu"), 0); /* the first line owns it */
    assert_int_equal(spelt(r, "conv bn clip"), 0);
    assert_int_equal(spelt(r, "conv bn"), MOIRAI_NONE);
    assert_int_equal(spelt(r, "conv"), MOIRAI_NONE);
    assert_int_equal(spelt(r, "matmul"), MOIRAI_NONE); /* one operator is no fusion */
    assert_int_equal(spelt(r, "matmul softmax"), 1);
    assert_int_equal(spelt(r, "matmul add1"), 1);
    assert_int_equal(spelt(r, "matmul add1 add1"), 1);
    assert_int_equal(spelt(r, "matmul add1 softmax add1"), 1);
    assert_int_equal(spelt(r, "matmul add softmax"), MOIRAI_NONE);
    moirai_rules_free(r);
}

static void test_coarsen_rules_words_have_their_meaning(void **state)
{
    static const char *const alias[][2] = {
        {"AddMM", "matmul"},
        {"baddbmm", "matmul"},
        {"batch_norm", "bn"},
        {"BatchNorm1d", "bn"},
        {"BatchNorm2d", "bn"},
        {"BatchNorm3d", "bn"},
        {"BatchNormalization", "bn"},
        {"bmm", "matmul"},
        {"cat", "concat"},
        {"clamp", "clip"},
        {"Conv", "conv"},
        {"conv1d", "conv"},
        {"Conv2D", "conv"},
        {"conv3d", "conv"},
        {"convolution", "conv"},
        {"dense", "matmul"},
        {"FastGelu", "gelu"},
        {"FullyConnected", "matmul"},
        {"FusedBatchNorm", "bn"},
        {"Gemm", "matmul"},
        {"layer_norm", "ln"},
        {"LayerNormalization", "ln"},
        {"Linear", "matmul"},
        {"permute", "transpose"},
        {"QuickGelu", "gelu"},
        {"ReLU6", "clip"},
        {"RMSNormalization", "rmsnorm"},
        {"SimplifiedLayerNormalization", "rmsnorm"},
        {"swish", "silu"},
        {"truediv", "div"},
        {"view", "reshape"},
        {"Add", "add"},
        {"Unheard-Of", "unheardof"},
    };
    static const char *const group[][2] = {
        {"add", "add add1"},
        {"bias", "add1"},
        {"div", "div div1"},
        {"mask", "add add1 where"},
        {"mul", "mul mul1"},
        {"scale", "div1 mul1"},
        {"relu", "relu"},
        {"act", "clip elu gelu hardsigmoid hardswish leakyrelu mish relu selu sigmoid silu softplus tanh"},
    };
    char out[COARSEN_TYPE_LENGTH];

    (void)state;
    for (size_t i = 0; i < sizeof alias / sizeof *alias; i++) {
        coarsen_type_canonical(out, alias[i][0], strlen(alias[i][0]), false);
        assert_string_equal(out, alias[i][1]);
    }
    for (size_t i = 0; i < sizeof group / sizeof *group; i++)
        assert_string_equal(coarsen_type_alternatives(group[i][0]), group[i][1]);
    coarsen_type_canonical(out, "Add", 3, true);
    assert_string_equal(out, "add1");
    coarsen_type_canonical(out, "Relu", 4, true);
    assert_string_equal(out, "relu");
}

static void test_coarsen_rules_shipped_sets(void **state)
{
    moirai_rules *r;

    (void)state;
    assert_ok(moirai_rules_open(&r, "eigen"));
    assert_int_equal(moirai_rules_count(r), 3);
    moirai_rules_free(r);
    assert_ok(moirai_rules_open(&r, "onnxruntime"));
    assert_true(moirai_rules_count(r) > 10);
    assert_int_not_equal(spelt(r, "matmul mul1 add1 softmax matmul"), MOIRAI_NONE);
    moirai_rules_free(r);
    assert_ok(moirai_rules_open(&r, "none"));
    assert_int_equal(moirai_rules_count(r), 0);
    moirai_rules_free(r);
}

static void assert_refused(const char *text, const char *part)
{
    moirai_rules *r = (void *)1;

    assert_int_equal(moirai_rules_parse(&r, text, "my.rules"), MOIRAI_EINPUT);
    assert_null(r);
    if (!strstr(moirai_error_message(), part))
        fail_msg("'%s' is not in: %s", part, moirai_error_message());
}

static void test_coarsen_rules_bad_files(void **state)
{
    char text[4096] = "";
    moirai_rules *r;

    (void)state;
    assert_refused("conv bn\nrelu\n", "my.rules:2: 'relu': a rule fuses two");
    assert_refused("conv?", "fuses two");
    assert_refused("conv b*", "'b*'");
    assert_refused("conv |relu", "''");
    assert_refused("conv relu||clip", "''");
    assert_refused("conv ?", "''");
    assert_refused("conv _", "'_'");
    assert_refused("conv bn??", "'bn?'");
    assert_refused("conv anameofmorethansixtylettersisnotwhatanybodywouldcallanoperatorofanetwork", "1 to");
    for (int i = 0; i < 65; i++)
        strcat(text, "a ");
    assert_refused(text, "65 types");
    strcpy(text, "# unfolds to 16^16 lists\n");
    for (int i = 0; i < 16; i++)
        strcat(text, "a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p ");
    assert_refused(text, "my.rules:2: the rules unfold");
    assert_int_equal(moirai_rules_open(&r, "no-such-file.rules"), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "no-such-file.rules"));
}

/* A line of optional items stands for 2^60 lists but few distinct ones: it must stay cheap. */
static void test_coarsen_rules_optional_items_share_nodes(void **state)
{
    char text[256] = "";
    moirai_rules *r;

    (void)state;
    for (int i = 0; i < 60; i++)
        strcat(text, "a? ");
    r = parse(text);
    assert_int_equal(r->n_nodes, 61);
    assert_int_equal(r->longest, 60);
    moirai_rules_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coarsen_rules_lines_and_comments),
        cmocka_unit_test(test_coarsen_rules_alternatives_and_optional_items),
        cmocka_unit_test(test_coarsen_rules_words_have_their_meaning),
        cmocka_unit_test(test_coarsen_rules_shipped_sets),
        cmocka_unit_test(test_coarsen_rules_bad_files),
        cmocka_unit_test(test_coarsen_rules_optional_items_share_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
