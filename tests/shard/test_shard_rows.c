/* Cuts by rows: which rows pieces read, where padding is, and that nothing breaks. */
#include "support/check.h"
#include "support/folder.h"
#include "support/onnx_maker.h"

#include <moirai/moirai.h>
#include "onnx/onnx_model.h"
#include "shard/shard.h"

static const int64_t ones[] = {1, 1, 1, 1};

/* Eighty rows: a convolution that looks one row up and down, Relu, a pool of two rows, one more convolution. */
static void image_model(wire *model)
{
    wire graph = {0}, pads = {0}, pool = {0}, same = {0};
    const int64_t two[] = {2, 2};
    make_input(&graph, "x", MAKE_FLOAT, "1x2x80x4");
    make_weights(&graph, "K", "3x2x3x3");
    make_weights(&graph, "L", "2x3x3x3");
    make_attr_ints(&pads, "pads", 4, ones);
    make_node(&graph, "Conv", "x,K", "k", &pads);
    make_node(&graph, "Relu", "k", "r", NULL);
    make_attr_ints(&pool, "kernel_shape", 2, two);
    make_attr_ints(&pool, "strides", 2, two);
    make_node(&graph, "MaxPool", "r", "p", &pool);
    make_attr_text(&same, "auto_pad", "SAME_UPPER");
    make_node(&graph, "Conv", "p,L", "y", &same);
    make_output(&graph, "y", MAKE_FLOAT, "1x2x40x2");
    make_model(model, &graph);
}

static moirai_shards *open_image(void)
{
    moirai_shards *s = NULL;
    wire model = {0};
    image_model(&model);
    put_file(in_folder("m.onnx"), model.data, model.length);
    wire_free(&model);
    assert_ok(moirai_shards_open(&s, in_folder("m.onnx"), NULL));
    return s;
}

static void assert_span(shard_span got, int64_t begin, int64_t end)
{
    assert_int_equal(got.begin, begin);
    assert_int_equal(got.end, end);
}

static void test_shard_rows_needed_are_those_under_windows(void **state)
{
    (void)state;
    shard_map conv = {.stride = 2, .extent = 5, .pad = 2};
    assert_span(shard_map_needs(&conv, (shard_span){0, 3}, 20), 0, 7);
    assert_span(shard_map_needs(&conv, (shard_span){3, 5}, 20), 4, 11);
    assert_span(shard_map_needs(&conv, (shard_span){8, 10}, 20), 14, 20);
    shard_map nothing = {.stride = 1, .extent = 1, .pad = 3}; /* padding alone */
    shard_span none = shard_map_needs(&nothing, (shard_span){0, 3}, 20);
    assert_true(none.begin >= none.end);
    shard_map linear = {.scale = 2, .reach = 1};
    assert_span(shard_map_needs(&linear, (shard_span){3, 6}, 8), 0, 4);
    assert_span(shard_map_needs(&linear, (shard_span){14, 16}, 8), 6, 8);
}

/* Row i of the input makes rows 3 i - 1 and 3 i of the output; 3 i + 1 is empty. */
static void test_shard_rows_of_a_transposed_convolution(void **state)
{
    (void)state;
    shard_map spread = {.stride = 3, .extent = 2, .pad = 1, .spread = true};
    assert_span(shard_map_needs(&spread, (shard_span){0, 1}, 5), 0, 1);
    assert_span(shard_map_needs(&spread, (shard_span){2, 4}, 5), 1, 2);
    assert_span(shard_map_needs(&spread, (shard_span){4, 5}, 5), 1, 2); /* the gap: of the row before it */
    assert_span(shard_map_needs(&spread, (shard_span){4, 9}, 5), 1, 4);
}

static void test_shard_rows_are_one_strip_with_a_halo(void **state)
{
    (void)state;
    moirai_shards *s = open_image();
    int32_t at = moirai_shards_count(s) - 1;
    moirai_shard_strip x = moirai_shards_strip(s, at);
    assert_string_equal(x.kind, "rows");
    assert_string_equal(x.unit, "rows");
    assert_int_equal(x.units, 40);
    assert_int_equal(x.n_ops, 4);
    assert_true(x.alternative);
    shard_cuts cuts;
    onnx_arena arena = {0};
    assert_ok(shard_cuts_read(&cuts, s, "*rows: 16,24", &arena));
    assert_int_equal(cuts.n, 1);
    /* y: [0,16) and [16,40); p one row beyond; k and r twice that; x one more. */
    const shard_cut *cut = &cuts.cut[0];
    assert_span(cut->rows.made[3 * 2], 0, 16);
    assert_span(cut->rows.made[3 * 2 + 1], 16, 40);
    assert_span(cut->rows.made[2 * 2], 0, 17);
    assert_span(cut->rows.made[2 * 2 + 1], 15, 40);
    assert_span(cut->rows.made[0], 0, 34);
    assert_span(cut->rows.made[1], 30, 80);
    int part = shard_rows_part(&s->strip[at], s->net->im.root->node[0].in[0]->stamp);
    assert_span(cut->rows.have[part * 2], 0, 35);
    assert_span(cut->rows.have[part * 2 + 1], 29, 80);
    onnx_arena_free(&arena);
    moirai_shards_free(s);
}

/* Of the node that makes this tensor. */
static void assert_pads(const onnx_model *m, const char *output, const int64_t *expected)
{
    for (size_t i = 0; i < m->proto->graph->n_node; i++) {
        const Onnx__NodeProto *n = m->proto->graph->node[i];
        if (strcmp(n->output[0], output))
            continue;
        const Onnx__AttributeProto *pads = onnx_attr(n, "pads");
        assert_non_null(pads);
        assert_int_equal(pads->n_ints, 4);
        assert_memory_equal(pads->ints, expected, 4 * sizeof *expected);
        assert_null(onnx_attr(n, "auto_pad"));
        return;
    }
    fail_msg("nothing makes '%s'", output);
}

static void test_shard_rows_are_padded_where_the_image_ends(void **state)
{
    (void)state;
    onnx_model *m;
    moirai_shards *s = open_image();
    assert_ok(moirai_shards_write(s, "*rows: 16,8,16", MOIRAI_SHARD_CHAIN, in_folder("c.onnx"), NULL));
    assert_ok(onnx_model_open(&m, in_folder("c.onnx")));
    assert_pads(m, "k.1of3", (const int64_t[]){1, 1, 0, 1});
    assert_pads(m, "k.2of3", (const int64_t[]){0, 1, 0, 1});
    assert_pads(m, "k.3of3", (const int64_t[]){0, 1, 1, 1});
    assert_pads(m, "y.1of3", (const int64_t[]){1, 1, 0, 1});
    assert_pads(m, "y.2of3", (const int64_t[]){0, 1, 0, 1});
    assert_pads(m, "y.3of3", (const int64_t[]){0, 1, 1, 1});
    onnx_model_free(m);
    moirai_shards_free(s);
}

/* Bytes of a model changed at random: it is refused, or cut or not, and nothing breaks. */
static void test_shard_rows_of_mangled_models_break_nothing(void **state)
{
    (void)state;
    wire model = {0};
    uint64_t random = 5;
    int opened = 0, cut = 0;
    image_model(&model);
    for (int i = 0; i < 3000; i++) {
        uint8_t was[4];
        size_t at[4];
        moirai_shards *s = NULL;
        moirai_graph *g = NULL;
        for (int k = 0; k < 4; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            at[k] = (size_t)(random >> 33) % model.length;
            was[k] = model.data[at[k]];
            if (k < i % 5)
                model.data[at[k]] = (uint8_t)(random >> 20);
        }
        put_file(in_folder("m.onnx"), model.data, model.length);
        if (!moirai_shards_open(&s, in_folder("m.onnx"), NULL)) {
            opened++;
            cut += !moirai_shards_graph(&g, s, "*rows: 2", MOIRAI_SHARD_TREE, NULL);
        }
        moirai_graph_free(g);
        moirai_shards_free(s);
        for (int k = 3; k >= 0; k--)
            model.data[at[k]] = was[k];
    }
    wire_free(&model);
    assert_true(opened > 300 && cut > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_rows_needed_are_those_under_windows),
        cmocka_unit_test(test_shard_rows_of_a_transposed_convolution),
        cmocka_unit_test(test_shard_rows_are_one_strip_with_a_halo),
        cmocka_unit_test(test_shard_rows_are_padded_where_the_image_ends),
        cmocka_unit_test(test_shard_rows_of_mangled_models_break_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
