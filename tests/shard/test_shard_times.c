/* Times of pieces from measured ones: a share where the whole alone was measured, a line where pieces were. */
#include "support/check.h"
#include "support/folder.h"
#include "support/onnx_maker.h"

#include <moirai/moirai.h>

/* y = Relu(x U) D, with U of 64x60 and D of 60x64 */
static moirai_shards *open_block(void)
{
    wire graph = {0}, model = {0};
    moirai_shards *s = NULL;
    make_input(&graph, "x", MAKE_FLOAT, "1x64");
    make_weights(&graph, "U", "64x60");
    make_weights(&graph, "D", "60x64");
    make_node(&graph, "MatMul", "x,U", "u", NULL);
    make_node(&graph, "Relu", "u", "r", NULL);
    make_node(&graph, "MatMul", "r,D", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "1x64");
    make_model(&model, &graph);
    put_file(in_folder("m.onnx"), model.data, model.length);
    wire_free(&model);
    assert_ok(moirai_shards_open(&s, in_folder("m.onnx"), NULL));
    return s;
}

static moirai_graph *cut_graph(const moirai_shards *s, const char *cut)
{
    moirai_graph *g = NULL;
    assert_ok(moirai_shards_graph(&g, s, cut, MOIRAI_SHARD_CHAIN, NULL));
    return g;
}

/* All operators take `ns`, but the first product's pieces: these take `product_ns`. */
static void measure(moirai_graph *g, int64_t product_ns, int64_t ns)
{
    int64_t column[64];
    assert_true(g->n_ops <= 64);
    for (int32_t op = 0; op < g->n_ops; op++)
        column[op] = !strncmp(g->op_name[op], "MatMul_0", 8) ? product_ns : ns;
    assert_ok(moirai_graph_times_set(g, "A", column));
}

static int64_t time_named(const moirai_graph *g, const char *name)
{
    int32_t op = moirai_graph_find(g, name);
    assert_int_not_equal(op, MOIRAI_NONE);
    return g->time_ns[op];
}

static void test_shard_times_are_shares_of_the_whole(void **state)
{
    (void)state;
    moirai_shards *s = open_block();
    moirai_graph *whole = cut_graph(s, "MatMul_0/mlp: whole"), *g = cut_graph(s, "MatMul_0/mlp: 20,40");
    measure(whole, 9000, 300);
    assert_ok(moirai_shards_times(g, (const moirai_graph *const *)&whole, 1));
    assert_int_equal(time_named(g, "MatMul_0 (1 of 2, 20 of 60 columns)"), 3000);
    assert_int_equal(time_named(g, "MatMul_0 (2 of 2, 40 of 60 columns)"), 6000);
    assert_int_equal(time_named(g, "Relu_1 (1 of 2, 20 of 60 columns)"), 100);
    assert_true(time_named(g, "MatMul_2 (sum)") > 0);
    moirai_graph_free(whole);
    moirai_graph_free(g);
    moirai_shards_free(s);
}

static void test_shard_times_follow_pieces_that_were_measured(void **state)
{
    (void)state;
    moirai_shards *s = open_block();
    moirai_graph *measured[2] = {cut_graph(s, "MatMul_0/mlp: whole"), cut_graph(s, "MatMul_0/mlp: 30,30")};
    moirai_graph *g = cut_graph(s, "MatMul_0/mlp: 3,12,45"), *same = cut_graph(s, "MatMul_0/mlp: 30,30");
    measure(measured[0], 10000, 300);
    measure(measured[1], 7000, 70);
    assert_ok(moirai_shards_times(g, (const moirai_graph *const *)measured, 2));
    /* Between a half and all; below a half along the same line; never faster per column than the least that was
     * measured, nor slower than that one. */
    assert_int_equal(time_named(g, "MatMul_0 (3 of 3, 45 of 60 columns)"), 8500);
    assert_int_equal(time_named(g, "MatMul_0 (2 of 3, 12 of 60 columns)"), 5200);
    assert_int_equal(time_named(g, "MatMul_0 (1 of 3, 3 of 60 columns)"), 4300);
    /* What was measured takes what it took. */
    assert_ok(moirai_shards_times(same, (const moirai_graph *const *)measured, 2));
    assert_int_equal(time_named(same, "MatMul_0 (1 of 2, 30 of 60 columns)"), 7000);
    assert_int_equal(time_named(same, "MatMul_2 (sum)"), 70);
    for (int i = 0; i < 2; i++)
        moirai_graph_free(measured[i]);
    moirai_graph_free(g);
    moirai_graph_free(same);
    moirai_shards_free(s);
}

/* Pieces that take as long as the whole are not chosen, those that take their share are. */
static void test_shard_choice_follows_what_was_measured(void **state)
{
    (void)state;
    moirai_shards *s = open_block();
    moirai_cluster *c;
    moirai_rules *rules;
    moirai_shard_choice choice;
    moirai_graph *measured[2] = {cut_graph(s, "MatMul_0/mlp: whole"), cut_graph(s, "MatMul_0/mlp: 30,30")};
    static const char text[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"c\", \"devices\": ["
        "{\"name\": \"A\", \"memory\": \"1GB\"}, {\"name\": \"B\", \"memory\": \"1GB\"}], "
        "\"links\": [{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"800Gbps\", \"both\": true}]}";
    assert_ok(moirai_cluster_parse(&c, text, strlen(text), "c"));
    assert_ok(moirai_rules_open(&rules, "none"));
    for (int i = 0; i < 2; i++) {
        int64_t column[64];
        for (int32_t op = 0; op < measured[i]->n_ops; op++)
            column[op] = strstr(measured[i]->op_type[op], "MatMul") ? 1000000 : 1000;
        assert_ok(moirai_graph_times_set(measured[i], "A", column));
        assert_ok(moirai_graph_times_set(measured[i], "B", column));
    }
    moirai_shard_choose_options o = {
        .cluster = c, .rules = rules, .measured = (const moirai_graph *const *)measured, .n_measured = 1};
    moirai_budget_init(&o.budget);
    assert_ok(moirai_shards_choose(&choice, s, &o));
    assert_true(!strncmp(choice.cut, "MatMul_0/mlp: ", 14));
    moirai_shard_choice_free(&choice);
    o.n_measured = 2;
    assert_ok(moirai_shards_choose(&choice, s, &o));
    assert_string_equal(choice.cut, "");
    moirai_shard_choice_free(&choice);
    for (int i = 0; i < 2; i++)
        moirai_graph_free(measured[i]);
    moirai_rules_free(rules);
    moirai_cluster_free(c);
    moirai_shards_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_times_are_shares_of_the_whole),
        cmocka_unit_test(test_shard_times_follow_pieces_that_were_measured),
        cmocka_unit_test(test_shard_choice_follows_what_was_measured),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
