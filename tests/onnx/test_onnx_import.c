/* What becomes of a model: operators, folding, weights, subgraphs, options, and the figures of known networks. */
#include "support/check.h"
#include "support/onnx_networks.h"
#include "util/util.h"

#include <moirai/onnx.h>

static moirai_graph *parse(wire *graph, const moirai_onnx_options *options, moirai_onnx_report *report)
{
    wire model = {0};
    moirai_graph *g = NULL;
    make_model(&model, graph);
    assert_ok(moirai_onnx_parse(&g, model.data, model.length, "model", options, report));
    wire_free(&model);
    return g;
}

static void refuse(wire *graph, const moirai_onnx_options *options, int result, const char *message)
{
    wire model = {0};
    moirai_graph *g = NULL;
    make_model(&model, graph);
    assert_int_equal(moirai_onnx_parse(&g, model.data, model.length, "model.onnx", options, NULL), result);
    assert_null(g);
    if (!strstr(moirai_error_message(), message) || strncmp(moirai_error_message(), "model.onnx: ", 12))
        fail_msg("\"%s\" does not start with the file or does not say \"%s\"", moirai_error_message(), message);
    wire_free(&model);
}

static int64_t bytes_of(const moirai_graph *g, const char *tensor)
{
    for (int32_t t = 0; t < g->n_tensors; t++)
        if (!strcmp(g->tensor_name[t], tensor))
            return g->tensor_bytes[t];
    fail_msg("no tensor '%s'", tensor);
    return -1;
}

/* Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as exporters flatten; nothing but the Reshape remains. */
static void test_onnx_shape_arithmetic_is_folded_away(void **state)
{
    (void)state;
    wire graph = {0}, attrs = {0};
    int64_t zero = 0, minus_one = -1;
    moirai_onnx_report r;
    make_input(&graph, "x", MAKE_FLOAT, "6x4x5");
    make_ints(&graph, "zero", 1, &zero, 1);
    make_ints(&graph, "axes", 1, &zero, 0);
    make_ints(&graph, "rest", 1, &minus_one, 0);
    make_node(&graph, "Relu", "x", "y", NULL);
    make_node(&graph, "Shape", "y", "s", NULL);
    make_node(&graph, "Gather", "s,zero", "b", NULL);
    make_node(&graph, "Unsqueeze", "b,axes", "b1", NULL);
    make_attr_int(&attrs, "axis", 0);
    make_node(&graph, "Concat", "b1,rest", "target", &attrs);
    make_node(&graph, "Reshape", "y,target", "z", NULL);
    make_output(&graph, "z", MAKE_FLOAT, NULL);
    moirai_graph *g = parse(&graph, NULL, &r);
    assert_int_equal(g->n_ops, 2);
    assert_int_equal(r.n_nodes, 6);
    assert_int_equal(r.n_folded, 4);
    assert_int_equal(bytes_of(g, "z"), 480);
    assert_string_equal(g->op_name[1], "Reshape_5");
    assert_int_equal(g->op_traffic_bytes[1], 0);
    moirai_graph_free(g);
}

/* Arithmetic of every kind, checked through the length of a Range. */
static void test_onnx_constants_compute_as_the_operators_say(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        int64_t a, b, result;
    } cases[] = {
        {"Add", 7, 5, 12}, {"Sub", 7, 5, 2}, {"Mul", 7, 5, 35}, {"Div", 7, 2, 3},   {"Mod", -7, 5, 3},
        {"Pow", 2, 5, 32}, {"Max", 7, 5, 7}, {"Min", 7, 5, 5},  {"Div", -7, -2, 3}, {"Mod", 7, -5, -3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wire graph = {0};
        int64_t zero = 0, one = 1, sign = cases[i].result < 0 ? -1 : 1;
        make_ints(&graph, "a", 1, &cases[i].a, 1);
        make_ints(&graph, "b", 1, &cases[i].b, 1);
        make_ints(&graph, "zero", 1, &zero, 1);
        make_ints(&graph, "step", 1, sign < 0 ? &sign : &one, 1);
        make_input(&graph, "x", MAKE_INT64, "1");
        make_node(&graph, cases[i].type, "a,b", "n", NULL);
        make_node(&graph, "Range", "zero,n,step", "range", NULL);
        make_node(&graph, "Add", "x,range", "y", NULL);
        make_output(&graph, "y", MAKE_INT64, NULL);
        moirai_graph *g = parse(&graph, NULL, NULL);
        assert_int_equal(g->n_ops, 1);
        assert_int_equal(bytes_of(g, "y"), 8 * sign * cases[i].result);
        moirai_graph_free(g);
    }
}

static void test_onnx_nodes_that_no_output_needs_are_left_out(void **state)
{
    (void)state;
    wire graph = {0};
    moirai_onnx_report r;
    make_input(&graph, "x", MAKE_FLOAT, "4");
    make_node(&graph, "Relu", "x", "y", NULL);
    make_node(&graph, "Sigmoid", "y", "nobody", NULL);
    make_node(&graph, "Exp", "nobody", "reads", NULL);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    moirai_graph *g = parse(&graph, NULL, &r);
    assert_int_equal(g->n_ops, 1);
    assert_int_equal(r.n_unused, 2);
    moirai_graph_free(g);
}

/* Shared weights count for each reader and once in the report; renamed and transposed ones stay weights. */
static void test_onnx_shared_and_derived_weights(void **state)
{
    (void)state;
    wire graph = {0};
    moirai_onnx_report r;
    make_input(&graph, "x", MAKE_FLOAT, "2x8");
    make_external(&graph, "w", MAKE_FLOAT, "8x8", "0", "256");
    make_node(&graph, "Identity", "w", "alias", NULL);
    make_node(&graph, "Transpose", "w", "turned", NULL);
    make_node(&graph, "MatMul", "x,w", "a", NULL);
    make_node(&graph, "MatMul", "a,alias", "b", NULL);
    make_node(&graph, "MatMul", "b,turned", "c", NULL);
    make_output(&graph, "c", MAKE_FLOAT, NULL);
    moirai_graph *g = parse(&graph, NULL, &r);
    assert_int_equal(g->n_ops, 3);
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(g->op_weight_bytes[i], 256);
        assert_int_equal(g->op_traffic_bytes[i], 256 + 64 + 64);
    }
    assert_int_equal(r.parameter_count, 64);
    assert_int_equal(r.weight_bytes, 256);
    moirai_graph_free(g);
}

static void test_onnx_repeated_and_optional_inputs(void **state)
{
    (void)state;
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "2x8");
    make_node(&graph, "Relu", "x", "y", NULL);
    make_node(&graph, "Mul", "y,y", "z", NULL);
    make_node(&graph, "Clip", "z,,", "c", NULL);
    make_output(&graph, "c", MAKE_FLOAT, NULL);
    moirai_graph *g = parse(&graph, NULL, NULL);
    assert_int_equal(g->n_ops, 3);
    assert_int_equal(g->op_in_off[2] - g->op_in_off[1], 2);
    assert_int_equal(g->op_traffic_bytes[1], 128); /* read once, written once */
    assert_int_equal(g->op_in_off[3] - g->op_in_off[2], 1);
    moirai_graph_free(g);
}

static void branch(wire *graph, const char *output, int times)
{
    char from[32] = "outer", to[32];
    for (int i = 0; i < times; i++) {
        snprintf(to, sizeof to, "%s%d", output, i);
        make_node(graph, "Relu", from, to, NULL);
        snprintf(from, sizeof from, "%s", to);
    }
    make_output(graph, from, MAKE_FLOAT, NULL);
}

static void test_onnx_if_is_one_operator_that_reads_what_it_captures(void **state)
{
    (void)state;
    wire graph = {0}, yes = {0}, no = {0}, attrs = {0};
    moirai_onnx_report r;
    make_input(&graph, "x", MAKE_FLOAT, "4x5");
    make_input(&graph, "condition", 9, "");
    make_node(&graph, "Sigmoid", "x", "outer", NULL);
    branch(&yes, "t", 1);
    branch(&no, "e", 3);
    make_attr_graph(&attrs, "then_branch", &yes);
    make_attr_graph(&attrs, "else_branch", &no);
    make_node(&graph, "If", "condition", "y", &attrs);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    moirai_graph *g = parse(&graph, NULL, &r);
    assert_int_equal(g->n_ops, 2);
    assert_int_equal(r.n_unknown_ops + r.n_unknown_sizes, 0);
    assert_int_equal(g->op_flops[1], 60); /* the dearer branch */
    assert_int_equal(bytes_of(g, "y"), 80);
    assert_int_equal(g->op_in_off[2] - g->op_in_off[1], 2);
    assert_string_equal(g->tensor_name[g->op_in[g->op_in_off[1] + 1]], "outer");
    moirai_graph_free(g);
}

/* A loop of five trips whose body multiplies by an outer weight and stacks the results. */
static void test_onnx_loop_costs_its_trips(void **state)
{
    (void)state;
    wire graph = {0}, body = {0}, attrs = {0};
    int64_t trips = 5;
    make_input(&graph, "x", MAKE_FLOAT, "2x8");
    make_ints(&graph, "trips", 1, &trips, 1);
    make_external(&graph, "w", MAKE_FLOAT, "8x8", NULL, NULL);
    make_input(&body, "i", MAKE_INT64, "");
    make_input(&body, "go", 9, "");
    make_input(&body, "state", MAKE_FLOAT, "axb");
    make_node(&body, "Identity", "go", "go_out", NULL);
    make_node(&body, "MatMul", "state,w", "next", NULL);
    make_node(&body, "Relu", "next", "seen", NULL);
    make_output(&body, "go_out", 9, "");
    make_output(&body, "next", MAKE_FLOAT, NULL);
    make_output(&body, "seen", MAKE_FLOAT, NULL);
    make_attr_graph(&attrs, "body", &body);
    make_node(&graph, "Loop", "trips,,x", "last,all", &attrs);
    make_output(&graph, "last", MAKE_FLOAT, NULL);
    make_output(&graph, "all", MAKE_FLOAT, NULL);
    moirai_graph *g = parse(&graph, NULL, NULL);
    assert_int_equal(g->n_ops, 1);
    assert_int_equal(bytes_of(g, "last"), 64);
    assert_int_equal(bytes_of(g, "all"), 5 * 64);
    assert_int_equal(g->op_flops[0], 5 * (2 * 2 * 8 * 8 + 16));
    assert_int_equal(g->op_weight_bytes[0], 256 + 8);
    moirai_graph_free(g);
}

static void test_onnx_unknown_operators_get_the_fallback_and_are_counted(void **state)
{
    (void)state;
    wire graph = {0};
    moirai_onnx_report r;
    make_input(&graph, "x", MAKE_FLOAT, "4x5");
    make_node_in(&graph, "my.company", "Frobnicate", "x", "y", NULL);
    make_node_in(&graph, "my.company", "Relu", "y", "z", NULL);
    make_node(&graph, "Relu", "z", "out", NULL);
    make_output(&graph, "out", MAKE_FLOAT, NULL);
    moirai_graph *g = parse(&graph, NULL, &r);
    assert_int_equal(r.n_unknown_ops, 2);
    assert_int_equal(r.n_unknown_sizes, 2);
    assert_string_equal(r.first_unknown, "Frobnicate");
    assert_int_equal(g->op_flops[0], MOIRAI_UNKNOWN);
    assert_int_equal(g->op_traffic_bytes[0], 160);
    assert_int_equal(bytes_of(g, "out"), 80);
    moirai_graph_free(g);
}

static void symbolic(wire *graph)
{
    make_input(graph, "x:0", MAKE_FLOAT, "batchx3xside");
    make_node(graph, "Relu", "x:0", "y", NULL);
    make_output(graph, "y", MAKE_FLOAT, NULL);
}

/* A cache of length 0 is how decoders begin: what they compute is not empty. */
static void test_onnx_a_dimension_of_0_may_be_an_empty_cache(void **state)
{
    (void)state;
    wire graph = {0}, attrs = {0};
    moirai_onnx_report r;
    make_input(&graph, "past", MAKE_FLOAT, "1xlongx4");
    make_input(&graph, "x", MAKE_FLOAT, "1x1x4");
    make_input(&graph, "other", MAKE_FLOAT, "1xlongx?");
    make_attr_int(&attrs, "axis", 1);
    make_node(&graph, "Concat", "past,x", "y", &attrs);
    make_node(&graph, "Relu", "other", "z", NULL);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    make_output(&graph, "z", MAKE_FLOAT, NULL);
    moirai_graph *g = parse(&graph, &(moirai_onnx_options){.dims = (const char *[]){"long=0"}, .n_dims = 1}, &r);
    assert_int_equal(bytes_of(g, "y"), 16);
    moirai_graph_free(g);
}

static void test_onnx_symbolic_dimensions_and_shapes_are_set_by_options(void **state)
{
    (void)state;
    const char *dims[] = {"batch=8"}, *shapes[] = {"x:0:2x3x7"}, *wrong_dims[] = {"bach=8"}, *bad[] = {"batch=8x"};
    const char *wrong_shapes[] = {"y:2x3x7"}, *bad_shapes[] = {"x:0:2x3x"};
    moirai_onnx_report r;
    wire graph = {0};
    symbolic(&graph);
    moirai_graph *g = parse(&graph, NULL, &r);
    assert_int_equal(bytes_of(g, "y"), 4 * 3 * 128);
    assert_int_equal(r.n_default_dims, 2);
    assert_string_equal(r.first_default_dim, "batch");
    assert_string_equal(r.open_dims, "batch, side");
    assert_string_equal(r.unnamed_dims, "");
    moirai_graph_free(g);
    symbolic(&graph);
    g = parse(&graph, &(moirai_onnx_options){.dims = dims, .n_dims = 1}, &r);
    assert_int_equal(bytes_of(g, "y"), 4 * 8 * 3 * 128);
    assert_string_equal(r.first_default_dim, "side");
    moirai_graph_free(g);
    symbolic(&graph);
    g = parse(&graph, &(moirai_onnx_options){.shapes = shapes, .n_shapes = 1}, &r);
    assert_int_equal(bytes_of(g, "y"), 168);
    assert_int_equal(r.n_default_dims, 0);
    moirai_graph_free(g);
    symbolic(&graph);
    refuse(&graph, &(moirai_onnx_options){.dims = wrong_dims, .n_dims = 1}, MOIRAI_EUSAGE, "bach=8");
    symbolic(&graph);
    refuse(&graph, &(moirai_onnx_options){.dims = (const char *[]){"batch=0"}, .n_dims = 1}, MOIRAI_EINPUT,
           "output 'y' is empty, as are all: a dimension of 0");
    symbolic(&graph);
    refuse(&graph, &(moirai_onnx_options){.dims = bad, .n_dims = 1}, MOIRAI_EUSAGE, "batch=8x");
    symbolic(&graph);
    refuse(&graph, &(moirai_onnx_options){.shapes = wrong_shapes, .n_shapes = 1}, MOIRAI_EUSAGE, "no such input");
    symbolic(&graph);
    refuse(&graph, &(moirai_onnx_options){.shapes = bad_shapes, .n_shapes = 1}, MOIRAI_EUSAGE, "expected");
}

static void test_onnx_element_bytes_are_the_weights_main_type(void **state)
{
    (void)state;
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT16, "2x8");
    make_external(&graph, "w", MAKE_FLOAT16, "8x8", NULL, NULL);
    make_node(&graph, "MatMul", "x,w", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT16, NULL);
    moirai_graph *g = parse(&graph, NULL, NULL);
    assert_int_equal(g->element_bytes, 2);
    assert_int_equal(g->op_weight_bytes[0], 128);
    moirai_graph_free(g);
}

static void test_onnx_names_are_unique(void **state)
{
    (void)state;
    wire graph = {0}, node = {0};
    const char *names[] = {"Relu_1", "", "same", "same"};
    char from[8] = "x", to[8];
    make_input(&graph, "x", MAKE_FLOAT, "4");
    for (int i = 0; i < 4; i++) {
        snprintf(to, sizeof to, "t%d", i);
        wire_text(&node, 1, from);
        wire_text(&node, 2, to);
        wire_text(&node, 3, names[i]);
        wire_text(&node, 4, "Relu");
        wire_message(&graph, 1, &node);
        memcpy(from, to, sizeof from);
    }
    make_output(&graph, "t3", MAKE_FLOAT, NULL);
    moirai_graph *g = parse(&graph, NULL, NULL);
    assert_string_equal(g->op_name[0], "Relu_1");
    assert_string_equal(g->op_name[1], "Relu_1_2");
    assert_string_equal(g->op_name[2], "same");
    assert_string_equal(g->op_name[3], "Relu_3");
    moirai_graph_free(g);
}

static void test_onnx_contradictions_are_refused(void **state)
{
    (void)state;
    wire graph = {0};
    make_node(&graph, "Relu", "b", "a", NULL);
    make_node(&graph, "Relu", "a", "b", NULL);
    refuse(&graph, NULL, MOIRAI_EINPUT, "cycle");
    make_node(&graph, "Relu", "ghost", "a", NULL);
    refuse(&graph, NULL, MOIRAI_EINPUT, "'ghost' is made by nobody");
    make_input(&graph, "x", MAKE_FLOAT, "4");
    make_node(&graph, "Relu", "x", "a", NULL);
    make_node(&graph, "Relu", "x", "a", NULL);
    refuse(&graph, NULL, MOIRAI_EINPUT, "'a': the name is taken");
    make_output(&graph, "ghost", MAKE_FLOAT, "4");
    refuse(&graph, NULL, MOIRAI_EINPUT, "output 'ghost'");
    wire unnamed = {0}, output = {0};
    wire_number(&unnamed, 1, 0);
    wire_number(&unnamed, 2, MAKE_FLOAT);
    wire_message(&graph, 5, &unnamed); /* and so it makes what has no name */
    wire_number(&output, 15, 0);
    wire_message(&graph, 12, &output);
    refuse(&graph, NULL, MOIRAI_EINPUT, "output 0 of graph '' has no name");
    make_external(&graph, "w", MAKE_FLOAT, "4x-3", NULL, NULL);
    refuse(&graph, NULL, MOIRAI_EINPUT, "dimension 1 is -3");
    make_external(&graph, "w", MAKE_FLOAT, "4294967296x4294967296x4", NULL, NULL);
    refuse(&graph, NULL, MOIRAI_EINPUT, "2^50");
    make_external(&graph, "w", MAKE_FLOAT, "4x4", "0", "60");
    refuse(&graph, NULL, MOIRAI_EINPUT, "make 64 bytes, the file has 60");
    make_external(&graph, "w", MAKE_FLOAT, "4x4", "-1", NULL);
    refuse(&graph, NULL, MOIRAI_EINPUT, "offset \"-1\"");
    make_external(&graph, "w", MAKE_FLOAT, "4x4", "9223372036854775807", "64");
    refuse(&graph, NULL, MOIRAI_EINPUT, "overflow");
    wire t = {0};
    make_tensor(&t, "w", MAKE_FLOAT, "1000000000000");
    wire_bytes(&t, 9, "1234", 4);
    wire_message(&graph, 5, &t);
    refuse(&graph, NULL, MOIRAI_EINPUT, "the file has 4");
    make_input(&graph, "x", MAKE_FLOAT, "4611686018427387904x4");
    refuse(&graph, NULL, MOIRAI_EINPUT, "2^50");
}

/* ---- known networks ---- */

/* Parameters as published, to the last one (ResNet-50's batch norms are folded: 26,560 biases instead of 53,120 scales
 * and shifts; BERT without its pooler; the scalars of its attention and GELU count, too); multiply-adds in billions;
 * operators. */
static void test_onnx_known_networks_have_their_known_figures(void **state)
{
    (void)state;
    static const struct {
        void (*make)(wire *model);
        int64_t parameters;
        double gigamacs;
        int32_t n_ops;
    } networks[] = {
        {make_resnet50, 25557032 - 53120 + 26560, 4.09, 53 + 49 + 16 + 4},
        {make_vgg16, 138357544, 15.47, 13 + 3 + 15 + 5 + 1},
        {make_bert_base, 108891648 + 12 * 4, 11.17, 6 + 12 * 34},
    };
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        char *path = temporary_path("known.onnx");
        wire model = {0};
        moirai_graph *g;
        moirai_onnx_report r;
        networks[i].make(&model);
        assert_ok(util_file_write(path, (const char *)model.data, model.length));
        wire_free(&model);
        assert_ok(moirai_onnx_read(&g, path, NULL, &r));
        remove(path);
        int64_t flops = 0;
        for (int32_t k = 0; k < g->n_ops; k++) {
            assert_true(g->op_flops[k] >= 0);
            flops += g->op_flops[k];
        }
        double macs = (double)flops / 2e9 / networks[i].gigamacs;
        assert_int_equal(r.n_unknown_ops, 0);
        assert_int_equal(r.n_unknown_sizes, 0);
        assert_int_equal(r.parameter_count, networks[i].parameters);
        assert_int_equal(g->n_ops, networks[i].n_ops);
        assert_true(macs > 0.98 && macs < 1.03);
        moirai_graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx_shape_arithmetic_is_folded_away),
        cmocka_unit_test(test_onnx_constants_compute_as_the_operators_say),
        cmocka_unit_test(test_onnx_nodes_that_no_output_needs_are_left_out),
        cmocka_unit_test(test_onnx_shared_and_derived_weights),
        cmocka_unit_test(test_onnx_repeated_and_optional_inputs),
        cmocka_unit_test(test_onnx_if_is_one_operator_that_reads_what_it_captures),
        cmocka_unit_test(test_onnx_loop_costs_its_trips),
        cmocka_unit_test(test_onnx_unknown_operators_get_the_fallback_and_are_counted),
        cmocka_unit_test(test_onnx_symbolic_dimensions_and_shapes_are_set_by_options),
        cmocka_unit_test(test_onnx_element_bytes_are_the_weights_main_type),
        cmocka_unit_test(test_onnx_a_dimension_of_0_may_be_an_empty_cache),
        cmocka_unit_test(test_onnx_names_are_unique),
        cmocka_unit_test(test_onnx_contradictions_are_refused),
        cmocka_unit_test(test_onnx_known_networks_have_their_known_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
