/* Dimensions that a model leaves open: usual sizes, tried until one goes through, said; else the user is asked. */
#include "support/check.h"
#include "support/onnx_maker.h"

#include <moirai/onnx.h>

static int read_model(moirai_graph **g, wire *graph, const char *dim, moirai_onnx_report *r)
{
    wire model = {0};
    const char *dims[] = {dim};
    moirai_onnx_options o = {.dims = dims, .n_dims = dim ? 1 : 0};
    make_model(&model, graph);
    int rc = moirai_onnx_parse(g, model.data, model.length, "m", &o, r);
    wire_free(&model);
    return rc;
}

static void assert_assumes(wire *graph, const char *dim, const char *assumed)
{
    moirai_graph *g;
    moirai_onnx_report r;
    char text[512] = "";
    assert_ok(read_model(&g, graph, dim, &r));
    assert_string_equal(r.assumed, assumed);
    for (int32_t i = 0; i < g->n_assumed; i++)
        strcat(strcat(text, i ? ", " : ""), g->assumed[i]);
    assert_string_equal(text, assumed);
    moirai_graph_free(g);
}

static void image(wire *graph, const char *shape, const char *second, const char *third)
{
    wire attrs = {0};
    const int64_t strides[] = {2, 2};
    make_input(graph, "image", MAKE_FLOAT, shape);
    make_external(graph, "w", MAKE_FLOAT, "8x3x3x3", NULL, NULL);
    make_attr_ints(&attrs, "strides", 2, strides);
    make_node(graph, "Conv", "image,w", "a", &attrs);
    make_node(graph, second, "a", "b", NULL);
    make_node(graph, third, third[0] == 'C' ? "a,b" : "b", "y", NULL);
    make_output(graph, "y", MAKE_FLOAT, NULL);
}

static void test_onnx_open_images_are_as_large_as_usual(void **state)
{
    (void)state;
    wire graph = {0};
    image(&graph, "batchx3xheightxwidth", "Relu", "Relu");
    assert_assumes(&graph, NULL, "batch=1, height=224, width=224");
    image(&graph, "batchx3xheightxwidth", "Relu", "Relu");
    assert_assumes(&graph, "height=96", "batch=1, width=224");
    /* without names, and set by input and axis */
    image(&graph, "?x3x?x?", "Relu", "Relu");
    assert_assumes(&graph, NULL, "image:0=1, image:2=224, image:3=224");
    image(&graph, "?x3x?x?", "Relu", "Relu");
    assert_assumes(&graph, "image:3=96", "image:0=1, image:2=224");
}

static void test_onnx_open_images_of_detectors_are_larger(void **state)
{
    (void)state;
    wire graph = {0}, attrs = {0};
    const int64_t one[] = {1};
    make_input(&graph, "image", MAKE_FLOAT, "Nx3xHxW");
    make_ints(&graph, "scales", 1, one, 0);
    make_node(&graph, "Resize", "image,,scales", "a", NULL);
    make_attr_int(&attrs, "axis", 1);
    make_node(&graph, "Concat", "image,image", "b", &attrs);
    make_node(&graph, "Relu", "b", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    assert_assumes(&graph, NULL, "N=1, H=640, W=640");
}

/* 3 pixels high and wide, or nothing goes: a layer behind it wants 8 x 147 numbers. */
static void flat(wire *graph, const char *rows)
{
    make_input(graph, "image", MAKE_FLOAT, "batchx3xhxw");
    make_node(graph, "Flatten", "image", "a", NULL);
    make_external(graph, "w", MAKE_FLOAT, rows, NULL, NULL);
    make_node(graph, "MatMul", "a,w", "y", NULL);
    make_output(graph, "y", MAKE_FLOAT, NULL);
}

static void test_onnx_open_sizes_must_go_through_the_network(void **state)
{
    (void)state;
    wire graph = {0};
    moirai_graph *g;
    flat(&graph, "49152x10"); /* 3 x 128 x 128 */
    assert_assumes(&graph, NULL, "batch=1, h=128, w=128");
    flat(&graph, "147x10"); /* 3 x 7 x 7: nobody's usual size */
    assert_int_equal(read_model(&g, &graph, NULL, NULL), MOIRAI_EINPUT);
    assert_null(g);
    const char *said = moirai_error_message();
    assert_non_null(strstr(said, "input 'image' leaves dimensions open ('h', 'w')"));
    assert_non_null(strstr(said, "(MatMul): inputs of shapes 1x150528 and 147x10"));
    assert_non_null(strstr(said, "--dim 'h=N' --dim 'w=N'"));
}

static void test_onnx_open_texts_have_128_tokens(void **state)
{
    (void)state;
    wire graph = {0};
    make_input(&graph, "ids", MAKE_INT64, "batch_sizexsequence_length");
    make_input(&graph, "past_key_values.0", MAKE_FLOAT, "batch_sizex4xpast_sequence_lengthx8");
    make_input(&graph, "mask", MAKE_INT64, "batch_sizexpast_sequence_length + sequence_length");
    make_node(&graph, "Identity", "ids", "a", NULL);
    make_node(&graph, "Identity", "mask", "b", NULL);
    make_output(&graph, "a", MAKE_INT64, NULL);
    make_output(&graph, "b", MAKE_INT64, NULL);
    assert_assumes(&graph, NULL,
                   "batch_size=1, sequence_length=128, past_sequence_length=0, "
                   "past_sequence_length + sequence_length=128");
    make_input(&graph, "ids", MAKE_INT64, "batchx1"); /* one token at a time */
    make_input(&graph, "past", MAKE_FLOAT, "batchx4xlenx8");
    make_node(&graph, "Identity", "past", "b", NULL);
    make_output(&graph, "b", MAKE_FLOAT, NULL);
    assert_assumes(&graph, NULL, "batch=1, len=128");
}

/* "?" is no name: what can be written is said. */
static void test_onnx_open_a_question_mark_is_no_name(void **state)
{
    (void)state;
    wire graph = {0};
    moirai_graph *g;
    image(&graph, "?x3x?x?", "Relu", "Relu");
    assert_int_equal(read_model(&g, &graph, "?=48", NULL), MOIRAI_EUSAGE);
    assert_non_null(strstr(moirai_error_message(), "\"?=48\": no tensor of the model has a dimension of that name; "
                                                   "open are image:0, image:2, image:3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx_open_images_are_as_large_as_usual),
        cmocka_unit_test(test_onnx_open_images_of_detectors_are_larger),
        cmocka_unit_test(test_onnx_open_sizes_must_go_through_the_network),
        cmocka_unit_test(test_onnx_open_texts_have_128_tokens),
        cmocka_unit_test(test_onnx_open_a_question_mark_is_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
