/* Operators cut out of a network: equal ones are equal bytes, and each piece is a model of the same operator. */
#include "support/check.h"
#include "support/onnx_maker.h"

#include <moirai/coarsen.h>
#include <moirai/onnx.h>
#include "onnx/onnx_network.h"
#include "onnx/onnx_piece.h"

typedef struct open_network {
    onnx_network *network;
    const moirai_graph *graph;
    char *path;
} open_network;

static open_network open_zoo(const char *name)
{
    open_network n = {.path = temporary_path("piece.onnx")};
    assert_ok(moirai_onnx_write_zoo(name, 4, 1, n.path));
    assert_ok(onnx_network_open(&n.network, n.path, NULL));
    n.graph = n.network->graph;
    return n;
}

static open_network open_made(wire *model)
{
    open_network n = {.path = temporary_path("piece.onnx")};
    FILE *f = fopen(n.path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model->data, 1, model->length, f), model->length);
    fclose(f);
    wire_free(model);
    assert_ok(onnx_network_open(&n.network, n.path, NULL));
    n.graph = n.network->graph;
    return n;
}

static void close_network(open_network *n)
{
    onnx_network_free(n->network);
    remove(n->path);
}

typedef struct bytes {
    uint8_t *data;
    size_t length;
} bytes;

static bytes cut(const open_network *n, const char *op)
{
    bytes b;
    int32_t number = moirai_graph_find(n->graph, op);
    assert_true(number >= 0);
    assert_ok(onnx_piece_make(&b.data, &b.length, n->network, &number, 1));
    return b;
}

static bool equal(bytes a, bytes b)
{
    return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

static void test_piece_of_equal_operators_is_equal(void **state)
{
    (void)state;
    open_network n = open_zoo("gpt3-tiny");
    bytes q = cut(&n, "L0/h0/q"), k = cut(&n, "L0/h0/k"), other = cut(&n, "L1/h1/v"), fc = cut(&n, "L0/fc1");
    assert_true(equal(q, k));
    assert_true(equal(q, other));
    assert_false(equal(q, fc));
    free(q.data);
    free(k.data);
    free(other.data);
    free(fc.data);
    close_network(&n);
}

/* Read back by the importer, a piece is one operator with the same arithmetic, traffic and output. */
static void test_piece_is_the_same_operator(void **state)
{
    (void)state;
    static const char *const networks[] = {"gpt3-tiny", "inception-tiny"};
    for (int k = 0; k < 2; k++) {
        open_network n = open_zoo(networks[k]);
        const moirai_graph *g = n.graph;
        for (int32_t i = 0; i < g->n_ops; i++) {
            bytes b = cut(&n, g->op_name[i]);
            moirai_graph *p;
            assert_ok(moirai_onnx_parse(&p, b.data, b.length, "piece", NULL, NULL));
            assert_int_equal(p->n_ops, 1);
            assert_string_equal(p->op_type[0], g->op_type[i]);
            assert_int_equal(p->op_flops[0], g->op_flops[i]);
            assert_int_equal(p->op_traffic_bytes[0], g->op_traffic_bytes[i]);
            assert_int_equal(p->op_weight_bytes[0], g->op_weight_bytes[i]);
            assert_int_equal(p->tensor_bytes[p->op_out[0]], g->tensor_bytes[g->op_out[g->op_out_off[i]]]);
            moirai_graph_free(p);
            free(b.data);
        }
        close_network(&n);
    }
}

static void test_piece_of_fused_operators_is_one_model(void **state)
{
    (void)state;
    open_network n = open_zoo("gpt3-tiny");
    moirai_rules *rules;
    moirai_graph *coarse;
    int fused = 0;
    assert_ok(moirai_rules_open(&rules, "onnxruntime"));
    assert_ok(moirai_coarsen(&coarse, n.graph, rules, NULL));
    for (int32_t i = 0; i < coarse->n_ops; i++) {
        int32_t op[32], members = coarse->op_member_off[i + 1] - coarse->op_member_off[i];
        if (members < 2)
            continue;
        assert_true(members <= 32);
        for (int32_t k = 0; k < members; k++)
            op[k] = moirai_graph_find(n.graph, coarse->op_member[coarse->op_member_off[i] + k]);
        bytes b;
        moirai_graph *p;
        assert_ok(onnx_piece_make(&b.data, &b.length, n.network, op, members));
        assert_ok(moirai_onnx_parse(&p, b.data, b.length, "piece", NULL, NULL));
        assert_int_equal(p->n_ops, members);
        assert_int_equal(p->tensor_bytes[p->op_out[p->op_out_off[members - 1]]],
                         coarse->tensor_bytes[coarse->op_out[coarse->op_out_off[i]]]);
        moirai_graph_free(p);
        free(b.data);
        fused++;
    }
    assert_true(fused > 0);
    moirai_graph_free(coarse);
    moirai_rules_free(rules);
    close_network(&n);
}

/* Weights leave, whatever their size; a shape stays, or the operator could not run. */
static void test_piece_keeps_shapes_and_no_weights(void **state)
{
    (void)state;
    wire graph = {0}, model = {0};
    const int64_t shape[] = {6, 4};
    make_input(&graph, "x", MAKE_FLOAT, "2x3x4");
    make_ints(&graph, "s", 2, shape, 0);
    make_weights(&graph, "w", "4x1000");
    make_node(&graph, "Reshape", "x,s", "y", NULL);
    make_node(&graph, "MatMul", "y,w", "z", NULL);
    make_output(&graph, "z", MAKE_FLOAT, NULL);
    make_model(&model, &graph);
    open_network n = open_made(&model);
    bytes reshape = cut(&n, "Reshape_0"), matmul = cut(&n, "MatMul_1");
    Onnx__ModelProto *r = onnx__model_proto__unpack(NULL, reshape.length, reshape.data),
                     *m = onnx__model_proto__unpack(NULL, matmul.length, matmul.data);
    assert_non_null(r);
    assert_non_null(m);
    assert_int_equal(r->graph->n_initializer, 1);
    assert_int_equal(r->graph->initializer[0]->raw_data.len, 16);
    assert_int_equal(r->graph->initializer[0]->raw_data.data[0], 6);
    assert_int_equal(r->graph->initializer[0]->raw_data.data[8], 4);
    assert_int_equal(m->graph->n_initializer, 1);
    assert_int_equal(m->graph->initializer[0]->n_external_data, 2);
    assert_true(matmul.length < 1000); /* of 16,000 bytes of weights */
    onnx__model_proto__free_unpacked(r, NULL);
    onnx__model_proto__free_unpacked(m, NULL);
    free(reshape.data);
    free(matmul.data);
    close_network(&n);
}

/* A shape that is computed from another tensor's shape is a number by then. */
static void test_piece_gets_folded_numbers(void **state)
{
    (void)state;
    wire graph = {0}, model = {0};
    make_input(&graph, "x", MAKE_FLOAT, "6x4");
    make_input(&graph, "like", MAKE_FLOAT, "2x12");
    make_node(&graph, "Shape", "like", "s", NULL);
    make_node(&graph, "Reshape", "x,s", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    make_model(&model, &graph);
    open_network n = open_made(&model);
    bytes b = cut(&n, "Reshape_1");
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, b.length, b.data);
    assert_non_null(m);
    assert_int_equal(m->graph->n_input, 1);
    assert_int_equal(m->graph->n_initializer, 1);
    assert_int_equal(m->graph->initializer[0]->raw_data.data[0], 2);
    assert_int_equal(m->graph->initializer[0]->raw_data.data[8], 12);
    onnx__model_proto__free_unpacked(m, NULL);
    free(b.data);
    close_network(&n);
}

static void test_piece_of_a_broken_file_is_an_error(void **state)
{
    (void)state;
    onnx_network *p;
    char *path = temporary_path("broken.onnx");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs("not a model", f);
    fclose(f);
    assert_int_equal(onnx_network_open(&p, path, NULL), MOIRAI_EINPUT);
    assert_null(p);
    assert_int_equal(onnx_network_open(&p, "/nowhere/at/all.onnx", NULL), MOIRAI_EINPUT);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_piece_of_equal_operators_is_equal),
        cmocka_unit_test(test_piece_is_the_same_operator),
        cmocka_unit_test(test_piece_of_fused_operators_is_one_model),
        cmocka_unit_test(test_piece_keeps_shapes_and_no_weights),
        cmocka_unit_test(test_piece_gets_folded_numbers),
        cmocka_unit_test(test_piece_of_a_broken_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
