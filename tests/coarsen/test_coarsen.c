/* GCOF: what model.md promises of it, and the paper's own example. */
#include <moirai/coarsen.h>
#include <moirai/zoo.h>
#include "support/check.h"
#include "util/util.h"

static moirai_rules *parse(const char *text)
{
    moirai_rules *r = NULL;

    assert_ok(moirai_rules_parse(&r, text, "test"));
    return r;
}

/* "name type input input ...": one operator per line, one output of the operator's name and 10 bytes. */
static moirai_graph *graph(const char *text)
{
    char line[256], name[32], word[32], type[32];
    moirai_graph_builder *b;
    moirai_graph *g = NULL;

    assert_ok(moirai_graph_builder_new(&b, "test"));
    for (int n; sscanf(text, " %255[^\n]%n", line, &n) == 1; text += n) {
        const char *rest = line;
        int used;
        int32_t op;

        assert_int_equal(sscanf(rest, "%31s %31s%n", name, type, &used), 2);
        op = moirai_graph_builder_op(b, name, type);
        assert_true(op >= 0);
        assert_ok(moirai_graph_builder_output(b, op, name, 10));
        assert_ok(moirai_graph_builder_cost(b, op, 0, 0, 1, 0));
        for (rest += used; sscanf(rest, "%31s%n", word, &used) == 1; rest += used)
            assert_ok(moirai_graph_builder_input(b, op, word));
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

static moirai_graph *coarsen(const moirai_graph *g, const char *rules, int64_t *count)
{
    moirai_rules *r = parse(rules);
    moirai_graph *c = NULL;

    assert_ok(moirai_coarsen(&c, g, r, count));
    moirai_rules_free(r);
    return c;
}

/* The members of the operator `name`, joined by spaces; "" if it was not fused, NULL if it is not there. */
static const char *members(const moirai_graph *c, const char *name)
{
    static char text[8][512];
    static int turn;
    int32_t op = moirai_graph_find(c, name);
    char *out = text[turn++ % 8];

    if (op == MOIRAI_NONE)
        return NULL;
    *out = 0;
    for (int32_t e = c->op_member_off[op]; e < c->op_member_off[op + 1]; e++) {
        strcat(out, *out ? " " : "");
        strcat(out, c->op_member[e]);
    }
    return out;
}

#define assert_fused(c, name, list) \
    do { \
        const char *found = members(c, name); \
        assert_non_null(found); \
        assert_string_equal(found, list); \
    } while (0)

/* The example of the paper's text: a root `add` with two branches; on the upper one two more pairs of add and relu, on
 * the lower one conv1 bn conv2 bn, which ends in the last add of the upper. */
static const char example[] = "add0 Add\n"
                              "relu0 Relu add0\n"
                              "add1 Add relu0\n"
                              "relu1 Relu add1\n"
                              "conv1 Conv add0\n"
                              "bn1 BatchNormalization conv1\n"
                              "conv2 Conv bn1\n"
                              "bn2 BatchNormalization conv2\n"
                              "add2 Add relu1 bn2\n"
                              "relu2 Relu add2\n";

static void test_coarsen_example_of_the_paper(void **state)
{
    moirai_graph *g = graph(example), *c;
    int64_t count[3];

    (void)state;
    /* "the first pair of add, relu should not be fused": multi-outputs. The other two pairs may be bound: with the pair
     * as a rule of its own, just those two are fused. */
    c = coarsen(g, "add relu", count);
    assert_int_equal(count[0], 2);
    assert_fused(c, "add0", "");
    assert_fused(c, "relu1", "add1 relu1");
    assert_fused(c, "relu2", "add2 relu2");
    moirai_graph_free(c);
    /* "fuses conv1 and bn, which comply with rule r1 and the direct connection. Likewise, conv2 and bn" */
    c = coarsen(g, "conv bn", count);
    assert_int_equal(count[0], 2);
    assert_fused(c, "bn1", "conv1 bn1");
    assert_fused(c, "bn2", "conv2 bn2");
    moirai_graph_free(c);
    /* "merges conv2 o bn and add o relu at the end of the upper branch in accordance with rule r3 and multi-inputs
     * connection"; "unbind releases ... the second add, relu pair" */
    c = coarsen(g, "conv bn\nconv bn relu\nconv bn add relu", count);
    assert_int_equal(count[0], 1);
    assert_int_equal(count[1], 0);
    assert_int_equal(count[2], 1);
    assert_int_equal(c->n_ops, 6);
    assert_fused(c, "bn1", "conv1 bn1");
    assert_fused(c, "relu2", "conv2 bn2 add2 relu2");
    assert_string_equal(c->op_type[moirai_graph_find(c, "relu2")], "Conv+BatchNormalization+Add+Relu");
    assert_fused(c, "add0", "");
    assert_fused(c, "relu0", "");
    assert_fused(c, "add1", "");
    assert_fused(c, "relu1", "");
    moirai_graph_free(c);
    moirai_graph_free(g);
}

static void test_coarsen_longer_matches_win(void **state)
{
    moirai_graph *g = graph("a A\nb B a\nc C b\nd D c\ne E d\n"), *c;

    (void)state;
    c = coarsen(g, "A B\nB C D E", NULL); /* though A B comes first */
    assert_fused(c, "a", "");
    assert_fused(c, "e", "b c d e");
    moirai_graph_free(c);
    c = coarsen(g, "A B C\nC D E\nD E", NULL); /* equals: upstream first, and what is left over is used */
    assert_fused(c, "c", "a b c");
    assert_fused(c, "e", "d e");
    moirai_graph_free(c);
    c = coarsen(g, "A B C D E F", NULL); /* a part of a rule is released */
    assert_int_equal(c->n_ops, 5);
    moirai_graph_free(c);
    moirai_graph_free(g);
}

static void test_coarsen_equal_branches_by_input(void **state)
{
    moirai_graph *g = graph("z Conv\ny Conv\nadd Add y z\nr Relu add\n"), *c;

    (void)state;
    c = coarsen(g, "conv add relu", NULL);
    assert_fused(c, "r", "y add r"); /* the first input of the add, whatever the names and places */
    assert_fused(c, "z", "");
    moirai_graph_free(c);
    moirai_graph_free(g);
}

/* An earlier end upstream wins over a branch through an earlier input: a3 ends x, b2 starts after it. */
static void test_coarsen_upstream_before_input(void **state)
{
    moirai_graph *g = graph("p A\nq A\nr A q\nx A p r\ny A x\n"), *c;

    (void)state;
    c = coarsen(g, "a a a", NULL);
    assert_fused(c, "x", "q r x");
    assert_fused(c, "p", "");
    assert_fused(c, "y", "");
    moirai_graph_free(c);
    moirai_graph_free(g);
}

static void test_coarsen_bias_is_an_add_of_one_tensor(void **state)
{
    moirai_graph *g = graph("m MatMul x\nb Add m w\nn MatMul b\nr Add n b\ns Add r r\nt Mul s\nu Softmax t\n"), *c;

    (void)state;
    c = coarsen(g, "matmul bias", NULL);
    assert_fused(c, "b", "m b"); /* w is a weight: nobody produces it */
    assert_fused(c, "r", "");
    moirai_graph_free(c);
    c = coarsen(g, "matmul add bias\nscale softmax", NULL); /* r + r reads one tensor twice: no bias */
    assert_fused(c, "s", "");
    assert_fused(c, "u", "t u");
    moirai_graph_free(c);
    moirai_graph_free(g);
}

static moirai_graph *costed_graph(void)
{
    moirai_graph_builder *b;
    moirai_graph *g = NULL;
    int32_t conv, bn, relu;

    assert_ok(moirai_graph_builder_new(&b, "costs"));
    moirai_graph_builder_element_bytes(b, 2);
    conv = moirai_graph_builder_op(b, "conv", "Conv");
    bn = moirai_graph_builder_op(b, "bn", "BatchNormalization");
    relu = moirai_graph_builder_op(b, "relu", "Relu");
    assert_ok(moirai_graph_builder_input(b, conv, "input"));
    assert_ok(moirai_graph_builder_output(b, conv, "c", 3000000));
    assert_ok(moirai_graph_builder_input(b, bn, "c"));
    assert_ok(moirai_graph_builder_input(b, bn, "scale"));
    assert_ok(moirai_graph_builder_output(b, bn, "b", 3000000));
    assert_ok(moirai_graph_builder_output(b, bn, "b_stats", 64)); /* nobody reads it */
    assert_ok(moirai_graph_builder_input(b, relu, "b"));
    assert_ok(moirai_graph_builder_input(b, relu, "scale"));
    assert_ok(moirai_graph_builder_output(b, relu, "r", 3000000));
    assert_ok(moirai_graph_builder_cost(b, conv, 500, 70, 9000, 4000500));
    assert_ok(moirai_graph_builder_cost(b, bn, 40, 90, 80, 6000104));
    assert_ok(moirai_graph_builder_cost(b, relu, 0, 0, 20, 6000000));
    for (int i = 0; i < 3; i++) {
        assert_ok(moirai_graph_builder_time(b, i, "v100", 20000 + 1000 * i));
        assert_ok(moirai_graph_builder_time(b, i, "nobody's", 20000 + 1000 * i));
    }
    assert_ok(moirai_graph_builder_time(b, conv, "t4", 50000));
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

static int64_t time_of(const moirai_graph *g, int32_t op, const char *key)
{
    for (int32_t k = 0; k < g->n_time_keys; k++)
        if (!strcmp(g->time_key[k], key))
            return g->time_ns[(int64_t)op * g->n_time_keys + k];
    return MOIRAI_UNKNOWN;
}

static void test_coarsen_costs_of_a_fused_operator(void **state)
{
    moirai_graph *g = costed_graph(), *c = coarsen(g, "conv bn relu", NULL);
    double gb_s = moirai_device_type_find("v100")->bandwidth_gb_s;

    (void)state;
    assert_int_equal(c->n_ops, 1);
    assert_int_equal(c->element_bytes, 2);
    assert_int_equal(c->op_weight_bytes[0], 540);
    assert_int_equal(c->op_workspace_bytes[0], 90);
    assert_int_equal(c->op_flops[0], 9100);
    assert_int_equal(c->op_traffic_bytes[0], 16000604 - 2 * 6000000);
    assert_int_equal(c->op_in_off[1], 2); /* "input" and, once, "scale" */
    assert_int_equal(c->op_out_off[1], 2);
    assert_string_equal(c->tensor_name[c->op_out[0]], "b_stats");
    assert_string_equal(c->tensor_name[c->op_out[1]], "r");
    /* 63 us less two launches of 5 us, less 12 MB at three quarters of the bandwidth */
    assert_int_equal(time_of(c, 0, "v100"), UTIL_MAX(22000, 63000 - (int64_t)(10000 + 12e6 / (0.75 * gb_s))));
    assert_int_equal(time_of(c, 0, "nobody's"), 63000);
    assert_int_equal(time_of(c, 0, "t4"), MOIRAI_UNKNOWN); /* not all members were measured */
    moirai_graph_free(c);
    moirai_graph_free(g);
}

/* Conv and Relu of 8 bytes each; `flops` and `traffic` of either, the convolution with 1 byte of weights. */
static moirai_graph *conv_relu(const int64_t flops[2], const int64_t traffic[2])
{
    moirai_graph_builder *b;
    moirai_graph *g;

    assert_ok(moirai_graph_builder_new(&b, "unknown"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(moirai_graph_builder_op(b, i ? "r" : "c", i ? "Relu" : "Conv"), i);
        assert_ok(moirai_graph_builder_output(b, i, i ? "r" : "c", 8));
        assert_ok(moirai_graph_builder_cost(b, i, !i, 1, flops[i], traffic[i]));
    }
    assert_ok(moirai_graph_builder_input(b, 1, "c"));
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

/* A member that states no flops or no traffic takes away nobody else's; a product's own are missed where they are
 * missing. */
static void test_coarsen_keeps_what_some_members_state(void **state)
{
    const int64_t no = MOIRAI_UNKNOWN;
    const struct {
        int64_t flops[2], traffic[2], fused_flops, fused_traffic;
    } cases[] = {
        {{5000, no}, {100, no}, 5000, 100}, /* Relu: 8 read, 8 written; 16 between the two saved */
        {{5000, 7}, {no, 16}, 5007, 9},     /* Conv: 8 written, 1 of weights; then 16 saved, and 9 cross the boundary */
        {{no, 7}, {no, no}, no, no},
        {{no, no}, {no, no}, no, no},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        moirai_graph *g = conv_relu(cases[i].flops, cases[i].traffic), *c = coarsen(g, "conv relu", NULL);

        assert_int_equal(c->op_flops[0], cases[i].fused_flops);
        assert_int_equal(c->op_traffic_bytes[0], cases[i].fused_traffic);
        moirai_graph_free(c);
        moirai_graph_free(g);
    }
}

static void test_coarsen_sums_beyond_int64_are_refused(void **state)
{
    moirai_graph_builder *b;
    moirai_graph *g, *c = (void *)1;
    moirai_rules *r = parse("conv relu");

    (void)state;
    assert_ok(moirai_graph_builder_new(&b, "huge"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(moirai_graph_builder_op(b, i ? "r" : "c", i ? "Relu" : "Conv"), i);
        assert_ok(moirai_graph_builder_output(b, i, i ? "r" : "c", 8));
        assert_ok(moirai_graph_builder_cost(b, i, 0, 0, INT64_MAX, 0));
    }
    assert_ok(moirai_graph_builder_input(b, 1, "c"));
    assert_ok(moirai_graph_builder_finish(&g, b));
    assert_int_equal(moirai_coarsen(&c, g, r, NULL), MOIRAI_EINPUT);
    assert_null(c);
    assert_non_null(strstr(moirai_error_message(), "flops"));
    moirai_rules_free(r);
    moirai_graph_free(g);
}

static void test_coarsen_members_are_flat(void **state)
{
    moirai_graph *g = graph("a A\nb B a\nc C b\n"), *once = coarsen(g, "a b", NULL), *twice;

    (void)state;
    assert_int_equal(once->n_ops, 2);
    twice = coarsen(once, "b c", NULL); /* a fused type spells no rule */
    assert_int_equal(twice->n_ops, 2);
    assert_fused(twice, "b", "a b");
    moirai_graph_free(twice);
    moirai_graph_free(once);
    moirai_graph_free(g);
}

static void test_coarsen_none_copies(void **state)
{
    moirai_graph *g, *c;
    moirai_rules *r;

    (void)state;
    assert_ok(moirai_zoo_graph(&g, "inception-tiny", 4));
    assert_ok(moirai_rules_open(&r, "none"));
    assert_ok(moirai_coarsen(&c, g, r, NULL));
    assert_graphs_equal(g, c);
    moirai_rules_free(r);
    moirai_graph_free(c);
    moirai_graph_free(g);
    g = costed_graph();
    c = coarsen(g, "", NULL);
    assert_graphs_equal(g, c);
    moirai_graph_free(c);
    moirai_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coarsen_example_of_the_paper),
        cmocka_unit_test(test_coarsen_longer_matches_win),
        cmocka_unit_test(test_coarsen_equal_branches_by_input),
        cmocka_unit_test(test_coarsen_upstream_before_input),
        cmocka_unit_test(test_coarsen_bias_is_an_add_of_one_tensor),
        cmocka_unit_test(test_coarsen_costs_of_a_fused_operator),
        cmocka_unit_test(test_coarsen_keeps_what_some_members_state),
        cmocka_unit_test(test_coarsen_sums_beyond_int64_are_refused),
        cmocka_unit_test(test_coarsen_members_are_flat),
        cmocka_unit_test(test_coarsen_none_copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
