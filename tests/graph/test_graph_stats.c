/* Statistics of graphs against their definitions. */
#include "support/check.h"

#include <moirai/stats.h>

#include "util/util.h"

/* Operators o0 .. o(n-1), an edge from i to j > i with probability `density`. */
static moirai_graph *random_graph(util_rng *rng, int32_t n, double density)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    char name[16];
    assert_ok(moirai_graph_builder_new(&b, "random"));
    for (int32_t j = 0; j < n; j++) {
        snprintf(name, sizeof name, "o%d", j);
        int32_t op = moirai_graph_builder_op(b, name, j % 3 ? "A" : "B");
        assert_int_equal(op, j);
        for (int32_t i = 0; i < j; i++) {
            snprintf(name, sizeof name, "t%d", i);
            if (util_rng_real(rng) < density)
                assert_ok(moirai_graph_builder_input(b, op, name));
        }
        snprintf(name, sizeof name, "t%d", j);
        assert_ok(moirai_graph_builder_output(b, op, name, 1 + util_rng_below(rng, 100)));
        assert_ok(moirai_graph_builder_cost(b, op, 10, 0, j % 5 ? 100 : MOIRAI_UNKNOWN, 7));
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

#define MOST 40
typedef struct truth {
    bool reach[MOST][MOST];
    int level[MOST];
} truth;

static void find_truth(truth *t, const moirai_graph *g)
{
    memset(t, 0, sizeof *t);
    for (int32_t r = 0; r < g->n_ops; r++) {
        int32_t j = g->topo[r];
        for (int32_t e = g->op_in_off[j]; e < g->op_in_off[j + 1]; e++) {
            int32_t i = g->tensor_producer[g->op_in[e]];
            t->reach[i][j] = true;
            t->level[j] = UTIL_MAX(t->level[j], t->level[i] + 1);
            for (int32_t k = 0; k < g->n_ops; k++)
                t->reach[k][j] |= t->reach[k][i];
        }
    }
}

static void check_random(const moirai_graph *g)
{
    truth t;
    moirai_graph_stats s;
    int32_t ops[MOST], count[MOST] = {0}, n_cuts = 0, depth = 0, width = 0;
    find_truth(&t, g);
    assert_ok(moirai_graph_stats_get(&s, g));
    int32_t n = moirai_graph_cut_points(g, ops);
    for (int32_t r = 0; r < g->n_ops; r++) {
        int32_t i = g->topo[r];
        bool cut = true;
        for (int32_t k = 0; k < g->n_ops; k++)
            cut &= k == i || t.reach[i][k] || t.reach[k][i];
        if (cut) {
            assert_true(n_cuts < n);
            assert_int_equal(ops[n_cuts++], i);
        }
        depth = UTIL_MAX(depth, t.level[i] + 1);
        count[t.level[i]]++;
        width = UTIL_MAX(width, count[t.level[i]]);
    }
    assert_int_equal(n_cuts, n);
    assert_int_equal(s.n_cut_points, n);
    assert_int_equal(s.depth, depth);
    assert_int_equal(s.width, width);
}

static void test_stats_match_their_definitions_on_random_graphs(void **state)
{
    (void)state;
    util_rng rng;
    util_rng_seed(&rng, 3);
    for (int round = 0; round < 400; round++) {
        int32_t n = 1 + (int32_t)util_rng_below(&rng, MOST);
        moirai_graph *g = random_graph(&rng, n, util_rng_real(&rng) * util_rng_real(&rng));
        check_random(g);
        moirai_graph_free(g);
    }
}

/* a -> {b, c} -> d, one tensor read twice by d. */
static void test_stats_of_a_diamond(void **state)
{
    (void)state;
    moirai_graph_builder *b;
    moirai_graph *g;
    moirai_graph_stats s;
    moirai_type_stats *types;
    int32_t n;
    static const char *io[4][4] = {
        {"a", "", "", "ta"}, {"b", "ta", "", "tb"}, {"c", "ta", "", "tc"}, {"d", "tb", "tc", "td"}};
    static const int64_t bytes[] = {100, 30, 20, 7};
    assert_ok(moirai_graph_builder_new(&b, "diamond"));
    for (int i = 0; i < 4; i++) {
        int32_t op = moirai_graph_builder_op(b, io[i][0], i ? "Big" : "Small");
        for (int k = 1; k < 3; k++)
            if (*io[i][k])
                assert_ok(moirai_graph_builder_input(b, op, io[i][k]));
        if (i == 3)
            assert_ok(moirai_graph_builder_input(b, op, "tc"));
        assert_ok(moirai_graph_builder_output(b, op, io[i][3], bytes[i]));
        assert_ok(moirai_graph_builder_cost(b, op, 5, 0, i == 1 ? MOIRAI_UNKNOWN : 10, 1));
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    assert_ok(moirai_graph_stats_get(&s, g));
    assert_int_equal(s.n_edges, 4);
    assert_int_equal(s.n_sources, 1);
    assert_int_equal(s.n_sinks, 1);
    assert_int_equal(s.n_cut_points, 2);
    assert_int_equal(s.depth, 3);
    assert_int_equal(s.width, 2);
    assert_int_equal(s.flops, 30);
    assert_int_equal(s.n_unknown_flops, 1);
    assert_int_equal(s.weight_bytes, 20);
    assert_int_equal(s.activation_bytes, 157);
    assert_int_equal(s.peak_activation_bytes, 150); /* a, b and c together; then a goes */
    assert_ok(moirai_graph_types(&types, &n, g));
    assert_int_equal(n, 2);
    assert_string_equal(types[0].type, "Big");
    assert_int_equal(types[0].n_ops, 3);
    assert_int_equal(types[0].flops, 20);
    assert_int_equal(types[1].activation_bytes, 100);
    free(types);
    moirai_graph_free(g);
}

static void test_stats_of_an_empty_graph(void **state)
{
    (void)state;
    moirai_graph_builder *b;
    moirai_graph *g;
    moirai_graph_stats s;
    assert_ok(moirai_graph_builder_new(&b, "empty"));
    assert_ok(moirai_graph_builder_finish(&g, b));
    assert_ok(moirai_graph_stats_get(&s, g));
    assert_int_equal(s.depth + s.width + s.n_cut_points + s.n_types, 0);
    moirai_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats_match_their_definitions_on_random_graphs),
        cmocka_unit_test(test_stats_of_a_diamond),
        cmocka_unit_test(test_stats_of_an_empty_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
