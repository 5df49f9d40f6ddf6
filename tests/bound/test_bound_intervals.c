/* Chains of intervals, and prices on loads where these begin: what they claim, and that they claim it where others can't. */
#include <moirai/moirai.h>

#include "bound/certificate.h"
#include "bound/intervals/interval_chain.h"
#include "exact/exact.h"
#include "schedule/paths.h"
#include "support/check.h"
#include "support/false_bound.h"
#include "support/random_layers.h"
#include "support/random_problem.h"
#include "util/util.h"

/* Whether a path leads from a to b. */
static bool precedes(const moirai_problem *p, int32_t a, int32_t b)
{
    bool seen[128] = {false};
    assert_true(p->n_ops <= 128);
    seen[a] = true;
    for (int32_t z = p->topo_rank[a]; z < p->n_ops; z++)
        for (int32_t i = p->topo[z], j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++)
            seen[i] |= seen[p->tensor_producer[p->op_in[j]]];
    return a != b && seen[b];
}

/* The chain's operators come one after the other; what floats lies between no two neighbours, the rest does. */
static void check_chain(const moirai_problem *p, const bool *on_chain, const bool *floating)
{
    int32_t before = -1, chain[128], n = 0;
    for (int32_t z = 0; z < p->n_ops; z++)
        if (on_chain[p->topo[z]]) {
            assert_true(before < 0 || precedes(p, before, p->topo[z]));
            assert_false(floating[p->topo[z]]);
            chain[n++] = before = p->topo[z];
        }
    for (int32_t i = 0; i < p->n_ops; i++) {
        bool inside = on_chain[i];
        for (int32_t j = 0; j <= n && !inside; j++)
            inside = (j == 0 || precedes(p, chain[j - 1], i)) && (j == n || precedes(p, i, chain[j]));
        assert_int_equal(inside, !floating[i]);
    }
}

static void test_intervals_hold_what_lies_between_neighbours_of_the_chain(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_spec spec = random_spec_draw(seed, 40);
        moirai_problem *p = random_problem(&spec);
        decompose_intervals *x;
        bool on_chain[128], floating[128];
        if (!p)
            continue;
        assert_ok(decompose_intervals_new(&x, p, 12));
        for (int32_t most = 0; most <= 12; most += 4) {
            decompose_interval_rule rule = {most, 0.3, 0.5, 0.5, seed};
            assert_ok(decompose_intervals_choose(x, &rule, on_chain, floating));
            check_chain(p, on_chain, floating);
        }
        decompose_intervals_free(x);
        moirai_problem_free(p);
    }
}

/* Blocks with a residual connection: between cuts alone the edge that jumps over `b` is lost. On one device everything
 * takes 3 x 40; to gain from the other device, the long way round has to pay for transfers of 30. */
static const char residual[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"residual\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\","
    "\"devices\":[{\"name\":\"x\",\"memory_bytes\":1000},{\"name\":\"y\",\"memory_bytes\":1000}],"
    "\"channels\":[{\"from\":\"x\",\"to\":\"y\",\"bytes_per_second\":1000000000,\"latency_ns\":0},"
    "{\"from\":\"y\",\"to\":\"x\",\"bytes_per_second\":1000000000,\"latency_ns\":0}],\"ops\":["
    "{\"name\":\"a\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,90],\"inputs\":[],\"outputs\":[{\"name\":\"ta\","
    "\"bytes\":30}]},"
    "{\"name\":\"b\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[90,10],\"inputs\":[\"ta\"],\"outputs\":[{\"name\":"
    "\"tb\",\"bytes\":1}]},"
    "{\"name\":\"c\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[40,10],\"inputs\":[\"tb\",\"ta\"],\"outputs\":[{"
    "\"name\":\"tc\",\"bytes\":30}]},"
    "{\"name\":\"d\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,90],\"inputs\":[\"tc\"],\"outputs\":[{\"name\":"
    "\"td\",\"bytes\":1}]}]}";

static int64_t bound_of(const moirai_problem *p, const char *name)
{
    moirai_budget budget;
    int64_t lower;
    moirai_budget_init(&budget);
    assert_ok(moirai_bound_find(name)->find(&lower, p, &budget));
    return lower;
}

static void test_intervals_see_edges_that_jump_over_a_cut(void **state)
{
    (void)state;
    moirai_problem *p;
    assert_ok(moirai_problem_parse(&p, residual, strlen(residual), "residual"));
    int64_t optimum = false_bound_optimum(p);
    assert_int_equal(bound_of(p, "intervals"), optimum);
    assert_true(bound_of(p, "blocks") <= optimum);
    moirai_problem_free(p);
}

/* Eight experts between a router and a sum that adds them up one after the other: one component, most of whose edges
 * are in no spanning tree. */
static moirai_problem *experts(void)
{
    static char json[8192];
    int n = snprintf(
        json, sizeof json,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"experts\",\"flow\":\"tensor\",\"congestion\":\"port\","
        "\"memory\":\"static\",\"devices\":[{\"name\":\"x\",\"memory_bytes\":1000},{\"name\":\"y\",\"memory_bytes\":"
        "1000}],"
        "\"channels\":[{\"from\":\"x\",\"to\":\"y\",\"bytes_per_second\":1000000000,\"latency_ns\":0},"
        "{\"from\":\"y\",\"to\":\"x\",\"bytes_per_second\":1000000000,\"latency_ns\":0}],\"ops\":["
        "{\"name\":\"r\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[50,50],\"inputs\":[],\"outputs\":[{\"name\":"
        "\"tr\",\"bytes\":20}]}");
    for (int i = 0; i < 8; i++) {
        n +=
            snprintf(json + n, sizeof json - (size_t)n,
                     ",{\"name\":\"e%d\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[1000,1000],\"inputs\":[\"tr\"],"
                     "\"outputs\":[{\"name\":\"ex%d\",\"bytes\":20}]}",
                     i, i);
        n += snprintf(json + n, sizeof json - (size_t)n,
                      ",{\"name\":\"s%d\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,10],\"inputs\":[\"ex%d\"",
                      i, i);
        n += i ? snprintf(json + n, sizeof json - (size_t)n, ",\"tsum%d\"", i - 1) : 0;
        n += snprintf(json + n, sizeof json - (size_t)n, "],\"outputs\":[{\"name\":\"tsum%d\",\"bytes\":20}]}", i);
    }
    n += snprintf(json + n, sizeof json - (size_t)n, "]}");
    moirai_problem *p;
    assert_ok(moirai_problem_parse(&p, json, (size_t)n, "experts"));
    return p;
}

/* Eight times 1000 on two devices, behind 50 and before 10: prices on loads see nearly all of it; nothing is above the
 * plan that shares them out evenly. */
static void test_prices_on_loads_see_parallel_work_of_one_component(void **state)
{
    (void)state;
    moirai_problem *p = experts();
    moirai_place_options o;
    moirai_plan *plan;
    moirai_place_options_init(&o);
    o.budget.effort = 0.3;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    int64_t lower = bound_of(p, "loads");
    assert_true(lower >= 4060);
    assert_true(lower <= plan->makespan_ns);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* What a chain has found of its intervals is known to one that has them, too. */
static void test_chains_share_what_they_know(void **state)
{
    (void)state;
    int32_t raised = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        random_spec spec = random_spec_draw(seed * 31, 24);
        moirai_problem *p = random_problem(&spec);
        decompose_interval_rule rule = {(int32_t)(seed % 8), 0.3, 0.5, 0.5, seed};
        bound_interval_task job = {.goal_ns = INT64_MAX, .tries = 1, .effort = 0.05, .threads = 1, .seed = seed};
        decompose_intervals *all;
        bound_interval_chain *x, *twin;
        bound_interval_list known = {0};
        int64_t lower;
        if (!p)
            continue;
        assert_ok(decompose_intervals_new(&all, p, 8));
        assert_ok(bound_interval_chain_new(&x, p, all, &rule));
        assert_ok(bound_interval_chain_new(&twin, p, all, &rule));
        assert_ok(bound_interval_chain_raise(&lower, x, &job));
        assert_ok(bound_interval_chain_share(x, &known));
        assert_ok(bound_interval_chain_open(twin, &job));
        raised += pair_chain_path(twin->c, PAIR_CHAIN_LOWER, NULL) < lower;
        assert_ok(bound_interval_chain_share(twin, &known));
        assert_int_equal(pair_chain_path(twin->c, PAIR_CHAIN_LOWER, NULL), lower);
        bound_interval_list_clear(&known);
        bound_interval_chain_free(x);
        bound_interval_chain_free(twin);
        decompose_intervals_free(all);
        moirai_problem_free(p);
    }
    assert_true(raised > 3);
}

/* Rounds of a portfolio go on where the last one has ended: what is proven never falls, never passes the optimum, and is the
 * same on any number of threads. Where all rules have had their turn and nothing is left to search, intervals get larger. */
static void test_rounds_of_a_portfolio_rise_up_to_the_optimum(void **state)
{
    (void)state;
    int32_t rises = 0, larger = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        moirai_problem *p = random_layers(seed * 3, 10);
        int64_t optimum = p ? false_bound_optimum(p) : -1, last = 0;
        bound_portfolio *c[2];
        for (int i = 0; i < 2 && optimum >= 0; i++)
            assert_ok(bound_portfolio_new(&c[i], p));
        for (int32_t round = 0; round < 3 && optimum >= 0; round++) {
            int64_t lower[2];
            for (int i = 0; i < 2; i++) {
                bound_interval_task job = {.goal_ns = INT64_MAX,
                                           .chains = round < 2 ? 1 + 2 * round : 0,
                                           .tries = 1 + round,
                                           .effort = 1e-9 + 0.02 * round,
                                           .threads = 1 + 2 * i,
                                           .seed = seed};
                assert_ok(bound_portfolio_raise(&lower[i], c[i], &job));
            }
            assert_int_equal(lower[0], lower[1]);
            assert_true(lower[0] >= last && lower[0] <= optimum);
            rises += round > 0 && lower[0] > last;
            last = lower[0];
        }
        larger += optimum >= 0 && c[0]->coarser > 0;
        for (int i = 0; i < 2 && optimum >= 0; i++)
            bound_portfolio_free(c[i]);
        moirai_problem_free(p);
    }
    assert_true(rises > 0 && larger > 0);
}

static void test_no_bound_of_random_problems_is_above_the_optimum(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 80; seed++) {
        random_spec spec = random_spec_draw(seed * 17, 9);
        moirai_problem *p = seed % 2 ? random_problem(&spec) : random_layers(seed, 10);
        int64_t optimum = p ? false_bound_optimum(p) : -1;
        if (optimum >= 0) {
            assert_true(bound_of(p, "loads") <= optimum);
            assert_true(bound_of(p, "intervals") <= optimum);
        }
        moirai_problem_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals_hold_what_lies_between_neighbours_of_the_chain),
        cmocka_unit_test(test_intervals_see_edges_that_jump_over_a_cut),
        cmocka_unit_test(test_prices_on_loads_see_parallel_work_of_one_component),
        cmocka_unit_test(test_chains_share_what_they_know),
        cmocka_unit_test(test_rounds_of_a_portfolio_rise_up_to_the_optimum),
        cmocka_unit_test(test_no_bound_of_random_problems_is_above_the_optimum),
    };
    return cmocka_run_group_tests_name("intervals", tests, NULL, NULL);
}
