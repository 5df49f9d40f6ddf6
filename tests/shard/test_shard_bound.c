/* The all-cuts bound is true: no plan of any cut of the family beats it, whatever devices and links there are. */
#include "support/check.h"
#include "support/folder.h"
#include "support/onnx_maker.h"

#include <stdio.h>

#include <moirai/moirai.h>
#include "util/util.h"

/* Blocks x + Relu(x U) D in a row, with norms between them, of so many columns. */
static moirai_shards *open_blocks(int blocks, int width, int hidden)
{
    wire graph = {0}, model = {0};
    moirai_shards *s = NULL;
    char shape[64], from[32] = "x", names[128], out[32];
    snprintf(shape, sizeof shape, "4x%d", width);
    make_input(&graph, "x", MAKE_FLOAT, shape);
    for (int i = 0; i < blocks; i++) {
        char up[16], down[16], sizes[32];
        snprintf(up, sizeof up, "U%d", i);
        snprintf(down, sizeof down, "D%d", i);
        snprintf(sizes, sizeof sizes, "%dx%d", width, hidden);
        make_weights(&graph, up, sizes);
        snprintf(sizes, sizeof sizes, "%dx%d", hidden, width);
        make_weights(&graph, down, sizes);
        snprintf(names, sizeof names, "%s,%s", from, up);
        snprintf(out, sizeof out, "u%d", i);
        make_node(&graph, "MatMul", names, out, NULL);
        snprintf(names, sizeof names, "r%d", i);
        make_node(&graph, "Relu", out, names, NULL);
        snprintf(out, sizeof out, "d%d", i);
        snprintf(names, sizeof names, "r%d,%s", i, down);
        make_node(&graph, "MatMul", names, out, NULL);
        snprintf(names, sizeof names, "%s,d%d", from, i);
        snprintf(out, sizeof out, "a%d", i);
        make_node(&graph, "Add", names, out, NULL);
        snprintf(from, sizeof from, "y%d", i);
        make_node(&graph, "Tanh", out, from, NULL);
    }
    make_output(&graph, from, MAKE_FLOAT, shape);
    make_model(&model, &graph);
    put_file(in_folder("m.onnx"), model.data, model.length);
    wire_free(&model);
    assert_ok(moirai_shards_open(&s, in_folder("m.onnx"), NULL));
    return s;
}

static moirai_cluster *random_cluster(util_rng *r)
{
    static const char *const types[] = {"v100", "p100", "t4", "cpu-8-neon", "cpu-4-neon"};
    char text[256];
    int n = 2 + (int)(util_rng_next(r) % 3), used = 0;
    moirai_cluster *c;
    for (int i = 0; i < n; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s1x %s 16GB", i ? ", " : "",
                         types[util_rng_next(r) % 5]);
    snprintf(text + used, sizeof text - (size_t)used, ", %dGbps %dus", 1 + (int)(util_rng_next(r) % 400),
             (int)(util_rng_next(r) % 4));
    assert_ok(moirai_cluster_open(&c, text));
    return c;
}

/* Each strip whole, or in two to four pieces of whole tiles. */
static void random_cut(char *out, size_t size, const moirai_shards *s, util_rng *r, int64_t tile)
{
    static const char *const sums[] = {"chain", "star", "tree"};
    size_t used = 0;
    *out = 0;
    for (int32_t i = 0; i < moirai_shards_count(s); i++) {
        moirai_shard_strip x = moirai_shards_strip(s, i);
        int64_t left = x.units / tile, pieces = 1 + (int64_t)(util_rng_next(r) % 4);
        if (x.alternative)
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s: ", x.name);
        for (; pieces > 1 && left > pieces; pieces--) {
            int64_t part = 1 + (int64_t)(util_rng_next(r) % (uint64_t)(left - pieces + 1));
            used += (size_t)snprintf(out + used, size - used, "%lld,", (long long)(part * tile));
            left -= part;
        }
        if (left * tile == x.units)
            used += (size_t)snprintf(out + used, size - used, "whole; ");
        else
            used += (size_t)snprintf(out + used, size - used, "%lld %s; ", (long long)(left * tile),
                                     sums[util_rng_next(r) % 3]);
    }
}

static int64_t makespan(const moirai_shards *s, const char *cut, const moirai_shard_choose_options *o)
{
    moirai_graph *g, *coarse;
    moirai_problem *p;
    moirai_plan *plan;
    moirai_place_options how;
    moirai_place_options_init(&how);
    how.budget.effort = 0.001;
    how.budget.threads = 1;
    assert_ok(moirai_shards_graph(&g, s, cut, MOIRAI_SHARD_CHAIN, NULL));
    assert_ok(moirai_coarsen(&coarse, g, o->rules, NULL));
    assert_ok(moirai_problem_new(&p, coarse, o->cluster, &o->problem));
    assert_ok(moirai_place(&plan, p, "moirai", &how));
    int64_t ns = plan->makespan_ns;
    moirai_plan_free(plan);
    moirai_problem_free(p);
    moirai_graph_free(coarse);
    moirai_graph_free(g);
    return ns;
}

static void test_shard_all_cuts_bound_is_never_beaten(void **state)
{
    (void)state;
    util_rng r;
    moirai_rules *rules;
    util_rng_seed(&r, 11);
    assert_ok(moirai_rules_open(&rules, "onnxruntime"));
    for (int round = 0; round < 6; round++) {
        int hidden = 8 + (int)(util_rng_next(&r) % 24);
        moirai_shards *s = open_blocks(1 + round % 3, 64 << round, hidden);
        moirai_shard_choose_options o = {
            .cluster = random_cluster(&r), .rules = rules, .problem.runtime = MOIRAI_RUNTIME_ORT};
        moirai_shard_choice choice;
        moirai_budget_init(&o.budget);
        o.budget.threads = 1;
        assert_ok(moirai_shards_choose(&choice, s, &o));
        assert_true(choice.least_ns > 0 && choice.least_ns <= choice.cut_ns && choice.least_ns <= choice.whole_ns);
        for (int i = 0; i < 6; i++) {
            char cut[1024];
            random_cut(cut, sizeof cut, s, &r, 1);
            int64_t ns = makespan(s, cut, &o);
            if (ns < choice.least_ns)
                fail_msg("round %d: '%s' takes %lld, the bound is %lld", round, cut, (long long)ns,
                         (long long)choice.least_ns);
        }
        moirai_shard_choice_free(&choice);
        moirai_cluster_free((moirai_cluster *)o.cluster);
        moirai_shards_free(s);
    }
    moirai_rules_free(rules);
}

/* By hand: two equal devices, one block of two products of a millisecond each, pieces that take their shares: no cut can
 * take less than a millisecond, and the bound says almost that. */
static void test_shard_all_cuts_bound_is_the_work_shared_out(void **state)
{
    (void)state;
    moirai_shards *s = open_blocks(1, 64, 16);
    moirai_graph *whole;
    moirai_rules *rules;
    moirai_shard_choice choice;
    static const char text[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"c\", \"devices\": ["
        "{\"name\": \"A\", \"memory\": \"1GB\"}, {\"name\": \"B\", \"memory\": \"1GB\"}], "
        "\"links\": [{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"800Gbps\", \"both\": true}]}";
    moirai_cluster *c;
    int64_t column[8];
    assert_ok(moirai_cluster_parse(&c, text, strlen(text), "c"));
    assert_ok(moirai_rules_open(&rules, "none"));
    assert_ok(moirai_shards_graph(&whole, s, "*mlp: whole", MOIRAI_SHARD_CHAIN, NULL));
    for (int32_t op = 0; op < whole->n_ops; op++)
        column[op] = !strcmp(whole->op_type[op], "MatMul") ? 1000000 : 0;
    assert_ok(moirai_graph_times_set(whole, "A", column));
    assert_ok(moirai_graph_times_set(whole, "B", column));
    moirai_shard_choose_options o = {
        .cluster = c, .rules = rules, .measured = (const moirai_graph *const *)&whole, .n_measured = 1};
    moirai_budget_init(&o.budget);
    assert_ok(moirai_shards_choose(&choice, s, &o));
    assert_in_range(choice.least_ns, 990000, 1000000);
    moirai_shard_choice_free(&choice);
    moirai_graph_free(whole);
    moirai_rules_free(rules);
    moirai_cluster_free(c);
    moirai_shards_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_all_cuts_bound_is_never_beaten),
        cmocka_unit_test(test_shard_all_cuts_bound_is_the_work_shared_out),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
