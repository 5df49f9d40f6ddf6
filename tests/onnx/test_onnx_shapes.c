/* Shape and arithmetic rules, one operator at a time: what goes in, what must come out. */
#include "support/check.h"
#include "support/onnx_maker.h"

#include <moirai/onnx.h>

#include "onnx/onnx_import.h"

typedef struct shape_case {
    const char *type;
    const char *inputs;  /* "2x3" floats, "i:2x3" int64, "w:2x3" a weight, "{1,2}" and "=1" constants, "-" left out */
    const char *attrs;   /* "axis=1;axes=1,2;axes=1,;mode='linear'" */
    const char *outputs; /* "f:2x3 i:2x3 b:2x3": size of each; "f:" is a scalar; h: two bytes, u: one */
    int64_t flops;       /* -1: not checked */
} shape_case;

static const shape_case cases[] = {
    /* element by element */
    {"Relu", "2x3x5", "", "f:2x3x5", 30},
    {"Add", "2x3x5 5", "", "f:2x3x5", 30},
    {"Add", "7x1x5 3x1", "", "f:7x3x5", 105},
    {"Mul", "4x1 w:1x6", "", "f:4x6", 24},
    {"Sum", "2x3 2x1 1x3", "", "f:2x3", 12},
    {"Less", "2x3 3", "", "b:2x3", 6},
    {"Where", "b:2x1 2x3 =1", "", "f:2x3", 6},
    {"Cast", "2x3", "to=10", "h:2x3", 6},
    {"Clip", "2x3 - -", "", "f:2x3", 12},
    {"Softmax", "2x10", "axis=-1", "f:2x10", 100},
    {"Dropout", "2x3", "", "f:2x3", 0},
    {"Gelu", "2x3", "", "f:2x3", 48},
    {"QuantizeLinear", "2x3 w:1", "", "u:2x3", 12},
    {"LayerNormalization", "2x8x16 w:16 w:16", "axis=-1", "f:2x8x16", 2048},
    {"BatchNormalization", "1x4x5x5 w:4 w:4 w:4 w:4", "", "f:1x4x5x5", 200},
    {"InstanceNormalization", "1x4x5x5 w:4 w:4", "", "f:1x4x5x5", 800},
    /* reductions */
    {"ReduceMean", "2x3x5", "axes=1,2", "f:2x1x1", 30},
    {"ReduceSum", "2x3x5 {-1}", "keepdims=0", "f:2x3", 30},
    {"ReduceMax", "2x3x5", "keepdims=0", "f:", 30},
    {"ReduceSum", "2x3", "noop_with_empty_axes=1", "f:2x3", 6},
    {"ReduceL2", "2x3x5 {1}", "keepdims=0", "f:2x5", -1},
    {"ReduceLogSum", "2x3x5 {-2}", "", "f:2x1x5", -1},
    {"ArgMax", "2x3x5", "axis=1", "i:2x1x5", 30},
    {"TopK", "2x50 =5", "axis=-1", "f:2x5 i:2x5", 100},
    {"NonZero", "3x4", "", "i:2x12", 12},
    {"OneHot", "i:3 =7 w:2", "", "f:3x7", 0},
    {"CumSum", "3x4 =1", "", "f:3x4", 12},
    {"NonMaxSuppression", "1x100x4 1x80x100 =10", "", "i:800x3", 400},
    /* windows */
    {"Conv", "1x3x224x224 w:64x3x7x7", "strides=2,2;pads=3,3,3,3", "f:1x64x112x112", 236027904},
    {"Conv", "1x8x9x9 w:16x8x3x3 w:16", "", "f:1x16x7x7", 113680},
    {"Conv", "1x8x9x9 w:8x1x3x3", "group=8;auto_pad='SAME_UPPER';strides=2,2", "f:1x8x5x5", 3600},
    {"Conv", "1x8x9x9 w:8x8x3x3", "dilations=2,2", "f:1x8x5x5", 28800},
    {"Conv", "2x4x10 w:6x4x3", "pads=1,1", "f:2x6x10", 2880},
    {"ConvTranspose", "1x8x5x5 w:8x4x3x3", "strides=2,2;output_padding=1,1;pads=1,1,1,1", "f:1x4x10x10", 14400},
    {"ConvTranspose", "1x8x5x5 w:8x4x2x2", "strides=2,2", "f:1x4x10x10", 6400},
    {"MaxPool", "1x4x112x112", "kernel_shape=3,3;strides=2,2;pads=1,1,1,1", "f:1x4x56x56", 112896},
    {"MaxPool", "1x4x112x112", "kernel_shape=3,3;strides=2,2;ceil_mode=1", "f:1x4x56x56", 112896},
    {"AveragePool", "1x4x7x7", "kernel_shape=2,2;strides=2,2", "f:1x4x3x3", 144},
    {"GlobalAveragePool", "2x8x7x7", "", "f:2x8x1x1", 784},
    {"Resize", "1x4x8x8 - - {1,4,16,20}", "mode='linear'", "f:1x4x16x20", 10240},
    {"DepthToSpace", "1x16x2x3", "blocksize=2", "f:1x4x4x6", 0},
    {"SpaceToDepth", "1x4x4x6", "blocksize=2", "f:1x16x2x3", 0},
    {"RoiAlign", "1x8x20x20 5x4 i:5", "output_height=7;output_width=7", "f:5x8x7x7", -1},
    {"GridSample", "1x3x8x8 1x5x6x2", "", "f:1x3x5x6", -1},
    {"Resize", "1x1x2x4 - - {7,8}", "axes=2,3;keep_aspect_ratio_policy='not_larger'", "f:1x1x4x8", -1},
    {"Resize", "1x1x2x4 - - {7,8}", "axes=2,3;keep_aspect_ratio_policy='not_smaller'", "f:1x1x7x14", -1},
    {"AffineGrid", "2x2x3 {2,3,5,6}", "", "f:2x5x6x2", -1},
    {"CenterCropPad", "10x7x3 {20,10}", "axes=0,1", "f:20x10x3", 0},
    {"Col2Im", "1x5x5 {5,5} {1,5}", "", "f:1x1x5x5", -1},
    {"DeformConv", "1x1x3x3 w:1x1x2x2 1x8x2x2", "", "f:1x1x2x2", -1},
    {"SoftmaxCrossEntropyLoss", "3x5x2 i:3x2", "reduction='none'", "f:3x2", -1},
    {"SoftmaxCrossEntropyLoss", "3x5x2 i:3x2", "", "f: f:3x5x2", -1},
    /* signals */
    {"DFT", "1x10x10x2 - =1", "onesided=1", "f:1x6x10x2", -1},
    {"DFT", "1x6x10x2 - =1", "onesided=1;inverse=1", "f:1x10x10x1", -1},
    {"STFT", "1x128x1 =8 w:16", "", "f:1x15x9x2", -1},
    /* products */
    {"MatMul", "2x8x16 w:16x32", "", "f:2x8x32", 16384},
    {"MatMul", "2x12x8x16 2x12x16x8", "", "f:2x12x8x8", 49152},
    {"MatMul", "5 5x3", "", "f:3", 30},
    {"MatMul", "4x5 5", "", "f:4", 40},
    {"Gemm", "4x8 w:16x8 w:16", "transB=1", "f:4x16", 1088},
    {"Gemm", "8x4 w:8x16", "transA=1", "f:4x16", 1024},
    {"FusedMatMul", "2x4x8 2x16x8", "transB=1", "f:2x4x16", 2048},
    {"MatMulInteger", "u:4x8 u:8x16", "", "f:4x16", 1024},
    {"MatMulNBits", "2x8x64 w:32x2x16 w:64", "K=64;N=32", "f:2x8x32", 65536},
    {"Einsum", "2x3x4x8 2x3x5x8", "equation='bhid,bhjd->bhij'", "f:2x3x4x5", 1920},
    {"Einsum", "6x4 4x5", "equation='...i,ij'", "f:6x5", 240},
    {"Einsum", "4x4", "equation='ii->'", "f:", 4},
    {"DynamicQuantizeLSTM", "10x2x8 w:1x8x64 w:1x16x64", "hidden_size=16", "f:10x1x2x16", 61440},
    {"LSTM", "10x2x8 w:1x64x8 w:1x64x16", "hidden_size=16", "f:10x1x2x16", 61440},
    {"GRU", "10x2x8 w:2x48x8 w:2x48x16", "hidden_size=16;direction='bidirectional'", "f:10x2x2x16", 92160},
    {"Attention", "2x8x64 w:64x192 w:192", "num_heads=4", "f:2x8x64", -1},
    {"MultiHeadAttention", "2x8x64 2x10x64 2x10x64", "num_heads=4", "f:2x8x64", 40960},
    {"SkipLayerNormalization", "2x8x16 2x8x16 w:16 w:16", "", "f:2x8x16", 2304},
    /* layout */
    {"Reshape", "2x3x4 {0,-1}", "", "f:2x12", 0},
    {"Reshape", "2x3x4 {6,4}", "", "f:6x4", 0},
    {"Flatten", "2x3x4", "axis=2", "f:6x4", 0},
    {"Squeeze", "1x3x1 {0}", "", "f:3x1", 0},
    {"Squeeze", "1x3x1", "axes=2,", "f:1x3", 0},
    {"Unsqueeze", "3 {0,2}", "", "f:1x3x1", 0},
    {"Transpose", "2x3x5", "perm=2,0,1", "f:5x2x3", 0},
    {"Concat", "2x3 2x5 2x7", "axis=1", "f:2x15", 0},
    {"Split", "2x10 {3,7}", "axis=1", "f:2x3 f:2x7", 0},
    {"Split", "2x10", "axis=1;num_outputs=3", "f:2x4 f:2x4 f:2x2", 0},
    {"Slice", "10x20 {2} {8} {0} {3}", "", "f:2x20", 0},
    {"Slice", "10x20 {-1} {-11} {0} {-1}", "", "f:10x20", 0},
    {"Slice", "10x20", "starts=5,;ends=1000000,;axes=1,", "f:10x15", 0},
    {"Gather", "w:100x16 i:2x7", "", "f:2x7x16", 0},
    {"Gather", "4x5 =1", "axis=1", "f:4", 0},
    {"GatherElements", "4x5 i:4x2", "axis=1", "f:4x2", 0},
    {"GatherND", "4x5x6 i:3x2", "", "f:3x6", 0},
    {"ScatterND", "4x5 i:2x1 2x5", "", "f:4x5", 0},
    {"Expand", "3x1 {2,1,4}", "", "f:2x3x4", 0},
    {"Tile", "2x3 {2,4}", "", "f:4x12", 0},
    {"Pad", "1x3x4x4 {0,0,1,2,0,0,3,4}", "", "f:1x3x8x10", 0},
    {"Pad", "1x3x4x4", "pads=0,0,1,1,0,0,1,1", "f:1x3x6x6", 0},
    {"Trilu", "4x4", "", "f:4x4", 16},
    {"RandomNormal", "", "shape=3,4", "f:3x4", 120},
};

static const char *shape_of(const char *token)
{
    return token[0] && token[1] == ':' ? token + 2 : token;
}

static int width_of(const char *token)
{
    switch (token[1] == ':' ? token[0] : 'f') {
    case 'i': return 8;
    case 'h': return 2;
    case 'b':
    case 'u': return 1;
    default: return 4;
    }
}

static int type_of(const char *token)
{
    static const int by_width[9] = {[1] = 2, [2] = MAKE_FLOAT16, [4] = MAKE_FLOAT, [8] = MAKE_INT64};
    return token[1] == ':' && token[0] == 'b' ? 9 : by_width[width_of(token)];
}

static int64_t bytes_of(const char *token)
{
    int64_t n = width_of(token);
    for (const char *at = shape_of(token); *at;) {
        char *end;
        n *= strtoll(at, &end, 10);
        at = *end ? end + 1 : end;
    }
    return n;
}

static int numbers(const char *text, int64_t *out)
{
    int n = 0;
    for (const char *at = text; *at && *at != '}' && *at != ';';) {
        char *end;
        out[n++] = strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    return n;
}

static void add_input(wire *graph, const char *name, const char *token)
{
    int64_t value[16];
    if (token[0] == '{' || token[0] == '=')
        make_ints(graph, name, numbers(token + 1, value), value, token[0] == '=');
    else if (token[0] == 'w')
        make_external(graph, name, MAKE_FLOAT, shape_of(token), NULL, NULL);
    else
        make_input(graph, name, type_of(token), shape_of(token));
}

static void add_attr(wire *attrs, char *text)
{
    int64_t value[16];
    char *equals = strchr(text, '='), *tail = text + strlen(text) - 1;
    *equals = '\0';
    if (equals[1] == '\'') {
        *tail = '\0';
        make_attr_text(attrs, text, equals + 2);
    } else if (strchr(equals + 1, ',')) {
        make_attr_ints(attrs, text, numbers(equals + 1, value), value);
    } else {
        make_attr_int(attrs, text, strtoll(equals + 1, NULL, 10));
    }
}

static void make_case(wire *model, const shape_case *c)
{
    char copy[256], names[64] = "", out_names[64] = "", name[8], *save;
    wire graph = {0}, attrs = {0};
    int n = 0;
    snprintf(copy, sizeof copy, "%s", c->inputs);
    for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save), n++) {
        snprintf(name, sizeof name, "i%d", n);
        if (n)
            strcat(names, ",");
        if (!strcmp(t, "-"))
            continue;
        strcat(names, name);
        add_input(&graph, name, t);
    }
    snprintf(copy, sizeof copy, "%s", c->attrs);
    for (char *t = strtok_r(copy, ";", &save); t; t = strtok_r(NULL, ";", &save))
        add_attr(&attrs, t);
    snprintf(copy, sizeof copy, "%s", c->outputs);
    n = 0;
    for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save), n++) {
        snprintf(name, sizeof name, "o%d", n);
        strcat(strcat(out_names, n ? "," : ""), name);
        make_output(&graph, name, type_of(t), NULL);
    }
    make_node_in(&graph, strcmp(c->type, "Attention") ? "" : "com.microsoft", c->type, names, out_names, &attrs);
    make_model(model, &graph);
}

static void check_case(const shape_case *c)
{
    wire model = {0};
    moirai_graph *g;
    moirai_onnx_report r;
    char copy[256], *save;
    make_case(&model, c);
    assert_ok(moirai_onnx_parse(&g, model.data, model.length, c->type, NULL, &r));
    assert_int_equal(g->n_ops, 1);
    if (r.n_unknown_ops || r.n_unknown_sizes)
        fail_msg("%s (%s; %s): no rule, or it could not tell", c->type, c->inputs, c->attrs);
    snprintf(copy, sizeof copy, "%s", c->outputs);
    int32_t o = 0;
    for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save), o++)
        if (g->tensor_bytes[g->op_out[o]] != bytes_of(t))
            fail_msg("%s (%s; %s): output %d has %lld bytes, expected %s", c->type, c->inputs, c->attrs, o,
                     (long long)g->tensor_bytes[g->op_out[o]], t);
    if (c->flops >= 0 && g->op_flops[0] != c->flops)
        fail_msg("%s (%s; %s): %lld flops, expected %lld", c->type, c->inputs, c->attrs, (long long)g->op_flops[0],
                 (long long)c->flops);
    moirai_graph_free(g);
    wire_free(&model);
}

static void test_onnx_shapes_of_every_family(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}

/* A rule that meets nonsense falls back; it never fails and never invents a negative size. */
static void test_onnx_shapes_that_make_no_sense_fall_back(void **state)
{
    (void)state;
    static const shape_case nonsense[] = {
        {"Conv", "1x3x4x4 w:8x3x7x7", "", "", 0},
        {"Conv", "1x3x4x4 w:8x3x3x3", "strides=0,0", "", 0},
        {"Conv", "1x3x4x4 w:8x3x3x3", "dilations=9223372036854775807,1", "", 0},
        {"Concat", "2x3 2x3", "axis=7", "", 0},
        {"Transpose", "2x3", "perm=0,5", "", 0},
        {"Reshape", "2x3 {-5,-7}", "", "", 0},
        {"Slice", "10x20 {2} {8} {9}", "", "", 0},
        {"Pad", "2x3 {9223372036854775807,0,9223372036854775807,0}", "", "", 0},
        {"Tile", "2x3 {9223372036854775807,9223372036854775807}", "", "", 0},
        {"Expand", "2x3 {-1,5}", "", "", 0},
        {"Einsum", "2x3 4x5", "equation='ij,jk->ik'", "", 0},
        {"Split", "2x10 {-9223372036854775807,7}", "axis=1", "", 0},
        {"TopK", "2x50 =-5", "", "", 0},
        {"Unsqueeze", "2 {0,0}", "", "", 0},
        {"Gather", "2x3 i:1", "axis=2", "", 0},
    };
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        shape_case c = nonsense[i];
        c.outputs = "f:1";
        wire model = {0};
        moirai_graph *g;
        moirai_onnx_report r;
        make_case(&model, &c);
        assert_ok(moirai_onnx_parse(&g, model.data, model.length, c.type, NULL, &r));
        if (!r.n_unknown_sizes)
            fail_msg("%s (%s; %s) was believed", c.type, c.inputs, c.attrs);
        assert_true(g->tensor_bytes[g->op_out[0]] > 0);
        moirai_graph_free(g);
        wire_free(&model);
    }
}

/* Where all sizes are known, inputs that can't go together are an error of the model, and no plan of it makes sense. */
static void test_onnx_shapes_that_clash_are_refused(void **state)
{
    (void)state;
    static const struct {
        shape_case c;
        const char *shapes;
    } clash[] = {{{"MatMul", "1x8 9x8", "", "f:1x8", 0}, "(MatMul): inputs of shapes 1x8 and 9x8 do not"},
                 {{"MatMul", "2x4x8 3x8x4", "", "f:1", 0}, "2x4x8 and 3x8x4"},
                 {{"Gemm", "2x3 4x5", "", "f:2x5", 0}, "(Gemm): inputs of shapes 2x3 and 4x5"},
                 {{"Add", "2x3 2x4", "", "f:2x3", 0}, "(Add): inputs of shapes 2x3 and 2x4"}};
    for (size_t i = 0; i < sizeof clash / sizeof *clash; i++) {
        wire model = {0};
        moirai_graph *g;
        make_case(&model, &clash[i].c);
        assert_int_equal(moirai_onnx_parse(&g, model.data, model.length, "m", NULL, NULL), MOIRAI_EINPUT);
        if (!strstr(moirai_error_message(), clash[i].shapes))
            fail_msg("\"%s\" does not say \"%s\"", moirai_error_message(), clash[i].shapes);
        wire_free(&model);
    }
    /* An open dimension is only taken as 1: it accuses nobody. */
    wire graph = {0}, model = {0};
    moirai_graph *g;
    make_input(&graph, "x", MAKE_FLOAT, "batchx7");
    make_weights(&graph, "w", "2x8");
    make_node(&graph, "MatMul", "x,w", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "1x8");
    make_model(&model, &graph);
    assert_ok(moirai_onnx_parse(&g, model.data, model.length, "m", NULL, NULL));
    moirai_graph_free(g);
    wire_free(&model);
}

static void test_onnx_rules_are_found_by_their_names(void **state)
{
    (void)state;
    for (int i = 0; i < onnx_rule_count(); i++) { /* by bisection: one row out of order hides others */
        const onnx_rule *rule = onnx_rule_at(i);
        assert_ptr_equal(onnx_rule_find("", rule->type), rule);
        assert_ptr_equal(onnx_rule_find("com.microsoft", rule->type), rule);
        assert_null(onnx_rule_find("somebody.else", rule->type));
    }
    assert_null(onnx_rule_find("", ""));
    assert_null(onnx_rule_find("", "Convolution"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx_shapes_of_every_family),
        cmocka_unit_test(test_onnx_shapes_that_make_no_sense_fall_back),
        cmocka_unit_test(test_onnx_shapes_that_clash_are_refused),
        cmocka_unit_test(test_onnx_rules_are_found_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
