/* How sizes follow from one operator to the next, and how well they are known. */
#include "support/check.h"
#include "support/onnx_maker.h"

#include <moirai/onnx.h>

typedef struct found {
    const char *name;
    int64_t bytes;
    moirai_onnx_known known;
    char type[16];
} found;

static void look(void *data, const moirai_onnx_tensor *t)
{
    found *f = data;
    if (strcmp(f->name, t->name))
        return;
    f->bytes = t->bytes;
    f->known = t->known;
    snprintf(f->type, sizeof f->type, "%s", t->type);
}

/* The model is taken. */
static moirai_graph *assert_tensor(wire *graph, const char *name, int64_t bytes, moirai_onnx_known known)
{
    wire model = {0};
    moirai_graph *g;
    found f = {.name = name, .bytes = -1};
    moirai_onnx_options o = {.tensor = look, .tensor_data = &f};
    make_model(&model, graph);
    assert_ok(moirai_onnx_parse(&g, model.data, model.length, "m", &o, NULL));
    wire_free(&model);
    if (f.bytes != bytes || f.known != known)
        fail_msg("%s has %lld bytes (%d), expected %lld (%d)", name, (long long)f.bytes, f.known, (long long)bytes,
                 known);
    return g;
}

/* Padding up to a whole number of strides, as networks that came from TensorFlow compute it. */
static void test_onnx_padding_computed_in_the_graph(void **state)
{
    (void)state;
    wire graph = {0}, to_float = {0}, to_int = {0}, to_int2 = {0}, axis = {0};
    const int64_t two = 2, four = 4, zero = 0, six = 6;
    make_input(&graph, "x", MAKE_FLOAT, "1x3x15x15");
    make_ints(&graph, "two", 1, &two, 0);
    make_ints(&graph, "four", 1, &four, 0);
    make_ints(&graph, "zero", 1, &zero, 1);
    make_ints(&graph, "six", 1, &six, 0);
    make_node(&graph, "Shape", "x", "shape", NULL);
    make_node(&graph, "Slice", "shape,two,four", "side", NULL);
    make_attr_int(&to_float, "to", 1);
    make_node(&graph, "Cast", "side", "real", &to_float);
    make_node(&graph, "Div", "real,two", "half", NULL);
    make_node(&graph, "Ceil", "half", "up", NULL);
    make_node(&graph, "Mul", "up,two", "whole", NULL);
    make_node(&graph, "Sub", "whole,real", "more", NULL);
    make_node(&graph, "Clip", "more,zero", "least", NULL);
    make_attr_int(&to_int, "to", 7);
    make_node(&graph, "Cast", "least", "end", &to_int);
    make_node(&graph, "ConstantOfShape", "six", "none", NULL);
    make_attr_int(&to_int2, "to", 7);
    make_node(&graph, "Cast", "none", "begin", &to_int2);
    make_attr_int(&axis, "axis", 0);
    make_node(&graph, "Concat", "begin,end", "pads", &axis);
    make_node(&graph, "Pad", "x,pads", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    moirai_graph_free(assert_tensor(&graph, "y", 4 * 3 * 16 * 16, MOIRAI_ONNX_SURE));
}

static void test_onnx_doubles_are_read(void **state)
{
    (void)state;
    wire graph = {0};
    enum { DOUBLE = 11 };
    make_input(&graph, "x", DOUBLE, "2x8");
    make_external(&graph, "w", DOUBLE, "8x8", NULL, NULL);
    make_node(&graph, "MatMul", "x,w", "y", NULL);
    make_output(&graph, "y", DOUBLE, NULL);
    moirai_graph *g = assert_tensor(&graph, "y", 128, MOIRAI_ONNX_SURE);
    assert_int_equal(g->element_bytes, 8);
    moirai_graph_free(g);
}

static void grouped(wire *graph)
{
    wire attrs = {0};
    make_attr_int(&attrs, "q_num_heads", 9);
    make_attr_int(&attrs, "kv_num_heads", 3);
    make_input(graph, "q", MAKE_FLOAT, "2x4x72");
    make_input(graph, "k", MAKE_FLOAT, "2x6x24");
    make_input(graph, "v", MAKE_FLOAT, "2x6x30");
    make_input(graph, "past", MAKE_FLOAT, "2x3x5x8");
    make_node(graph, "Attention", "q,k,v,,past,past", "y,key,value,scores", &attrs);
    make_output(graph, "y", MAKE_FLOAT, NULL);
}

/* Nine heads of queries, three of keys and values: a result has the queries' heads and the values' width. */
static void test_onnx_attention_with_grouped_keys(void **state)
{
    (void)state;
    wire graph = {0};
    grouped(&graph);
    moirai_graph_free(assert_tensor(&graph, "y", 4 * 2 * 4 * 9 * 10, MOIRAI_ONNX_SURE));
    grouped(&graph);
    moirai_graph_free(assert_tensor(&graph, "key", 4 * 2 * 3 * 11 * 8, MOIRAI_ONNX_SURE));
    grouped(&graph);
    moirai_graph_free(assert_tensor(&graph, "scores", 4 * 2 * 9 * 4 * 11, MOIRAI_ONNX_SURE));
}

static void test_onnx_sizes_that_data_decide_are_upper_bounds(void **state)
{
    (void)state;
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "3x4");
    make_node(&graph, "NonZero", "x", "where", NULL);
    make_node(&graph, "Transpose", "where", "turned", NULL);
    make_output(&graph, "turned", MAKE_INT64, NULL);
    moirai_graph_free(assert_tensor(&graph, "turned", 8 * 2 * 12, MOIRAI_ONNX_AT_MOST));
    /* the file knows better */
    make_input(&graph, "x", MAKE_FLOAT, "3x4");
    make_node(&graph, "NonZero", "x", "where", NULL);
    make_output(&graph, "where", MAKE_INT64, "2x5");
    moirai_graph_free(assert_tensor(&graph, "where", 80, MOIRAI_ONNX_SURE));
}

/* A guess goes on through operators that keep shapes; what the file declares at the end is better. */
static void test_onnx_what_follows_from_a_guess_is_a_guess(void **state)
{
    (void)state;
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "3x4");
    make_input(&graph, "axes", MAKE_INT64, "1");
    make_node(&graph, "ReduceSum", "x,axes", "a", NULL);
    make_node(&graph, "Sqrt", "a", "b", NULL);
    make_node(&graph, "Relu", "b", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "3x1");
    moirai_graph_free(assert_tensor(&graph, "y", 12, MOIRAI_ONNX_SURE));
}

static void test_onnx_an_empty_list_of_axes_is_a_list(void **state)
{
    (void)state;
    wire graph = {0};
    const int64_t none[1] = {0};
    make_input(&graph, "x", MAKE_FLOAT, "3x4");
    make_ints(&graph, "axes", 0, none, 0);
    make_node(&graph, "ReduceSum", "x,axes", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    moirai_graph_free(assert_tensor(&graph, "y", 4, MOIRAI_ONNX_SURE));
}

static void test_onnx_sequences_are_cut_and_joined(void **state)
{
    (void)state;
    wire graph = {0}, cut = {0}, join = {0};
    const int64_t five = 5, one = 1;
    make_input(&graph, "x", MAKE_FLOAT, "4x10x3");
    make_ints(&graph, "five", 1, &five, 1);
    make_ints(&graph, "one", 1, &one, 1);
    make_attr_int(&cut, "axis", 1);
    make_node(&graph, "SplitToSequence", "x,five", "parts", &cut);
    make_node(&graph, "SequenceAt", "parts,one", "part", NULL);
    make_node(&graph, "SequenceInsert", "parts,part", "more", NULL);
    make_attr_int(&join, "axis", 1);
    make_node(&graph, "ConcatFromSequence", "more", "y", &join);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    moirai_graph_free(assert_tensor(&graph, "y", 4 * 4 * 15 * 3, MOIRAI_ONNX_SURE));
}

/* x, over and over, `trips` times (an input where -1) */
static void loop(wire *graph, int64_t trips)
{
    wire body = {0}, attrs = {0};
    make_input(graph, "x", MAKE_FLOAT, "2x8");
    if (trips < 0)
        make_input(graph, "trips", MAKE_INT64, "");
    else
        make_ints(graph, "trips", 1, &trips, 1);
    make_external(graph, "w", MAKE_FLOAT, "8x8", NULL, NULL);
    make_input(&body, "i", MAKE_INT64, "");
    make_input(&body, "go", 9, "");
    make_input(&body, "state", MAKE_FLOAT, "2x8");
    make_node(&body, "Identity", "go", "on", NULL);
    make_node(&body, "MatMul", "state,w", "next", NULL);
    make_output(&body, "on", 9, "");
    make_output(&body, "next", MAKE_FLOAT, "2x8");
    make_attr_graph(&attrs, "body", &body);
    make_node(graph, "Loop", "trips,,x", "y", &attrs);
    make_output(graph, "y", MAKE_FLOAT, NULL);
}

/* As often as data want: nobody knows what that costs; INT64_MAX turns mean "while". */
static void test_onnx_a_loop_without_a_count_has_no_cost(void **state)
{
    (void)state;
    const int64_t trips[] = {-1, INT64_MAX, 5};
    for (int i = 0; i < 3; i++) {
        wire graph = {0};
        loop(&graph, trips[i]);
        moirai_graph *g = assert_tensor(&graph, "y", 64, MOIRAI_ONNX_SURE);
        assert_int_equal(g->op_flops[0], trips[i] == 5 ? 5 * 256 : MOIRAI_UNKNOWN);
        assert_int_equal(g->op_traffic_bytes[0] == MOIRAI_UNKNOWN, trips[i] != 5);
        moirai_graph_free(g);
    }
}

/* What a Scan carries keeps its size, what it makes is stacked once for each slice that it scans. */
static void test_onnx_a_scan_stacks_what_it_makes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t bytes;
    } expected[] = {{"sum", 4 * 8}, {"all", 4 * 5 * 8}};
    for (int i = 0; i < 2; i++) {
        wire graph = {0}, body = {0}, attrs = {0};
        make_input(&graph, "start", MAKE_FLOAT, "8");
        make_input(&graph, "x", MAKE_FLOAT, "5x8");
        make_input(&body, "before", MAKE_FLOAT, "8");
        make_input(&body, "slice", MAKE_FLOAT, "8");
        make_node(&body, "Add", "before,slice", "after", NULL);
        make_node(&body, "Relu", "after", "made", NULL);
        make_output(&body, "after", MAKE_FLOAT, "8");
        make_output(&body, "made", MAKE_FLOAT, "8");
        make_attr_graph(&attrs, "body", &body);
        make_attr_int(&attrs, "num_scan_inputs", 1);
        make_node(&graph, "Scan", "start,x", "sum,all", &attrs);
        make_output(&graph, "sum", MAKE_FLOAT, NULL);
        make_output(&graph, "all", MAKE_FLOAT, NULL);
        moirai_graph_free(assert_tensor(&graph, expected[i].name, expected[i].bytes, MOIRAI_ONNX_SURE));
    }
}

/* As many numbers as begin, end and step give, and a window as long as it is told: lengths that others are made of. */
static void test_onnx_ranges_and_windows_have_their_length(void **state)
{
    (void)state;
    const int64_t number[] = {2, 11, 3, 16};
    static const char *const named[] = {"begin", "end", "step", "size"};
    for (int window = 0; window < 2; window++) {
        wire graph = {0}, to_float = {0};
        for (int i = 0; i < 4; i++)
            make_ints(&graph, named[i], 1, &number[i], 1);
        make_input(&graph, "x", MAKE_FLOAT, "1");
        if (window) {
            make_node(&graph, "HannWindow", "size", "line", NULL);
        } else {
            make_attr_int(&to_float, "to", MAKE_FLOAT);
            make_node(&graph, "Range", "begin,end,step", "whole", NULL);
            make_node(&graph, "Cast", "whole", "line", &to_float);
        }
        make_node(&graph, "Mul", "x,line", "y", NULL);
        make_output(&graph, "y", MAKE_FLOAT, NULL);
        moirai_graph_free(assert_tensor(&graph, "y", window ? 4 * 16 : 4 * 3, MOIRAI_ONNX_SURE));
    }
}

/* The numbers that a chosen branch makes are known behind it. */
static void test_onnx_a_chosen_branch_hands_its_numbers_on(void **state)
{
    (void)state;
    wire graph = {0}, yes = {0}, no = {0}, attrs = {0};
    const int64_t one = 1, six[2] = {6, 4};
    make_input(&graph, "x", MAKE_FLOAT, "24");
    make_ints(&graph, "true", 1, &one, 1);
    make_ints(&yes, "six", 2, six, 0);
    make_node(&yes, "Identity", "six", "a", NULL);
    make_output(&yes, "a", MAKE_INT64, "2");
    make_node(&no, "Shape", "x", "b", NULL);
    make_output(&no, "b", MAKE_INT64, "1");
    make_attr_graph(&attrs, "then_branch", &yes);
    make_attr_graph(&attrs, "else_branch", &no);
    make_node(&graph, "If", "true", "shape", &attrs);
    make_node(&graph, "Neg", "shape", "minus", NULL);
    make_node(&graph, "Neg", "minus", "plus", NULL);
    make_node(&graph, "Expand", "x0,plus", "y", NULL);
    make_input(&graph, "x0", MAKE_FLOAT, "1");
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    moirai_graph_free(assert_tensor(&graph, "y", 96, MOIRAI_ONNX_SURE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx_padding_computed_in_the_graph),
        cmocka_unit_test(test_onnx_doubles_are_read),
        cmocka_unit_test(test_onnx_attention_with_grouped_keys),
        cmocka_unit_test(test_onnx_sizes_that_data_decide_are_upper_bounds),
        cmocka_unit_test(test_onnx_what_follows_from_a_guess_is_a_guess),
        cmocka_unit_test(test_onnx_an_empty_list_of_axes_is_a_list),
        cmocka_unit_test(test_onnx_sequences_are_cut_and_joined),
        cmocka_unit_test(test_onnx_a_loop_without_a_count_has_no_cost),
        cmocka_unit_test(test_onnx_a_scan_stacks_what_it_makes),
        cmocka_unit_test(test_onnx_ranges_and_windows_have_their_length),
        cmocka_unit_test(test_onnx_a_chosen_branch_hands_its_numbers_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
