/* Near-cuts: what floats, what is left, and plans that have both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <moirai/moirai.h>

#include "place/moirai/incumbent/incumbent.h"
#include "decompose/cuts.h"
#include "support/check.h"
#include "support/false_bound.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "util/util.h"

static const util_stop never;

static bool floats(const decompose_spine *s, const char *name)
{
    int32_t op = moirai_problem_find_op(s->whole, name);
    assert_true(op >= 0);
    return s->floating[op];
}

/* The decoder's start floats beside the encoder, later keys and values beside the decoder; layers themselves do not. */
static void test_spine_of_an_encoder_decoder(void **state)
{
    (void)state;
    moirai_problem *p = zoo_problem("t5-small", "inter-server", MOIRAI_FLOW_TENSOR);
    decompose_spine *s;
    decompose_cuts *whole, *spine;
    assert_int_equal(decompose_spine_new(&s, p, &never), 0);
    assert_non_null(s);
    assert_true(floats(s, "dec0/ln1") && floats(s, "dec0/h3/qk"));
    assert_true(floats(s, "dec1/cross/h0/k") && floats(s, "dec5/cross/h7/v"));
    assert_false(floats(s, "dec0/cross/h0/k") || floats(s, "enc3/h0/k") || floats(s, "dec4/h0/k") ||
                 floats(s, "dec5/cross/h0/q"));
    assert_int_equal(decompose_cuts_new(&whole, p), 0);
    assert_int_equal(decompose_cuts_new(&spine, s->problem), 0);
    assert_true(spine->n_cuts > 10 * whole->n_cuts && spine->n_cuts > 100);
    decompose_cuts_free(whole);
    decompose_cuts_free(spine);
    decompose_spine_free(s);
    moirai_problem_free(p);
}

static void test_spine_is_not_for_networks_with_cuts(void **state)
{
    (void)state;
    static const char *const network[] = {"gpt3-330M", "alphafold2-87M", "inception-tiny"};
    for (size_t i = 0; i < sizeof network / sizeof *network; i++) {
        moirai_problem *p = zoo_problem(network[i], "intra-server", MOIRAI_FLOW_EDGE);
        decompose_spine *s;
        assert_int_equal(decompose_spine_new(&s, p, &never), 0);
        assert_null(s);
        moirai_problem_free(p);
    }
}

static moirai_plan *place(const moirai_problem *p, int threads, double effort)
{
    moirai_place_options o;
    moirai_plan *plan;
    moirai_place_options_init(&o);
    o.budget.effort = effort;
    o.budget.threads = threads;
    assert_int_equal(moirai_place(&plan, p, "moirai", &o), 0);
    assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), 0);
    return plan;
}

/* The bound is far above what the whole shows without cuts, and the plan is one of the whole; on any number of threads.
 */
static void test_spine_bounds_and_plans_an_encoder_decoder(void **state)
{
    (void)state;
    moirai_problem *p = zoo_problem("t5-tiny", "intra-server", MOIRAI_FLOW_TENSOR);
    moirai_plan *one = place(p, 1, 0.01), *two = place(p, 2, 0.01);
    assert_schedules_equal(one, two);
    assert_int_equal(one->lower_bound_ns, two->lower_bound_ns);
    int64_t plain = moirai_bound_critical_path(p), load = moirai_bound_load(p);
    plain = plain > load ? plain : load;
    assert_true(one->lower_bound_ns > plain);
    assert_true(one->lower_bound_ns <= one->makespan_ns);
    moirai_plan_free(one);
    moirai_plan_free(two);
    moirai_problem_free(p);
}

/* Draws what floats; false where nothing or everything would. */
static bool draw_floating(bool *floating, const moirai_problem *p, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        n += floating[i] = util_rng_below(&rng, 3) == 0;
    return n > 0 && n < p->n_ops;
}

/* On random problems of all modes: the rest is a problem that reads back as it was written, and that of the spine. */
static void test_spine_problem_without_reads_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(300); seed++) {
        random_spec spec = random_spec_draw(seed, 14);
        moirai_problem *p = random_problem(&spec), *q, *again;
        bool gone[16];
        if (!p || !draw_floating(gone, p, seed)) {
            moirai_problem_free(p);
            continue;
        }
        decompose_spine *s;
        assert_int_equal(moirai_problem_without(&q, p, gone), 0);
        assert_int_equal(decompose_spine_from(&s, p, gone), 0);
        char *path = temporary_path("spine.json");
        assert_ok(moirai_problem_write(q, path));
        assert_ok(moirai_problem_read(&again, path));
        remove(path);
        assert_int_equal(again->n_ops, q->n_ops);
        assert_int_equal(again->n_edges, q->n_edges);
        assert_int_equal(again->n_groups, q->n_groups);
        assert_int_equal(s->problem->n_ops, q->n_ops);
        assert_int_equal(s->problem->n_edges, q->n_edges);
        for (int32_t i = 0; i < q->n_ops; i++) {
            assert_string_equal(again->op_name[i], q->op_name[i]);
            assert_string_equal(s->problem->op_name[i], q->op_name[i]);
            assert_int_equal(again->op_memory_bytes[i], q->op_memory_bytes[i]);
            assert_int_equal(s->problem->op_memory_bytes[i], q->op_memory_bytes[i]);
            assert_int_equal(s->problem->topo[i], q->topo[i]);
        }
        for (int32_t e = 0; e < q->n_edges; e++) {
            assert_int_equal(again->edge_tensor[e], q->edge_tensor[e]);
            assert_int_equal(again->edge_reader[e], q->edge_reader[e]);
            assert_int_equal(s->problem->edge_tensor[e], q->edge_tensor[e]);
            assert_int_equal(s->problem->edge_reader[e], q->edge_reader[e]);
            for (int32_t k = 0; k < q->n_devices * q->n_devices; k++)
                assert_int_equal(moirai_transfer_ns(again, q->edge_tensor[e], k / q->n_devices, k % q->n_devices),
                                 moirai_transfer_ns(q, q->edge_tensor[e], k / q->n_devices, k % q->n_devices));
        }
        decompose_spine_free(s);
        moirai_problem_free(again);
        moirai_problem_free(q);
        moirai_problem_free(p);
    }
}

/* The best plan of the spine is no longer than the best of the whole: what is proven of one holds for the other. */
static void test_spine_optimum_is_a_bound(void **state)
{
    (void)state;
    int compared = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(400); seed++) {
        random_spec spec = random_spec_draw(seed + 5000, 8);
        moirai_problem *p = random_problem(&spec);
        bool floating[16];
        decompose_spine *s = NULL;
        if (p && draw_floating(floating, p, seed)) {
            int64_t whole = false_bound_optimum(p);
            assert_int_equal(decompose_spine_from(&s, p, floating), 0);
            int64_t rest = false_bound_optimum(s->problem);
            if (whole >= 0) {
                assert_true(rest <= whole);
                compared++;
            }
        }
        decompose_spine_free(s);
        moirai_problem_free(p);
    }
    assert_true(compared > TEST_SHARE(100));
}

/* Floating work put beside any plan of the spine makes a plan that every rule of the model accepts, in every mode. */
static void test_spine_floating_work_makes_valid_plans(void **state)
{
    (void)state;
    int made = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(600); seed++) {
        random_spec spec = random_spec_draw(seed + 9000, 14);
        moirai_problem *p = random_problem(&spec);
        bool floating[16];
        decompose_spine *s = NULL;
        moirai_plan *plan = NULL, *whole = NULL;
        moirai_place_options o;
        moirai_place_options_init(&o);
        if (p && draw_floating(floating, p, seed)) {
            assert_int_equal(decompose_spine_from(&s, p, floating), 0);
            if (!moirai_place(&plan, s->problem, seed % 2 ? "heft" : "random", &o))
                assert_int_equal(place_floats_insert(&whole, s, plan, &never), 0);
        }
        if (whole) {
            assert_int_equal(moirai_plan_check(p, whole, NULL, NULL), 0);
            made++;
        }
        moirai_plan_free(plan);
        moirai_plan_free(whole);
        decompose_spine_free(s);
        moirai_problem_free(p);
    }
    assert_true(made > TEST_SHARE(300));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spine_of_an_encoder_decoder),
        cmocka_unit_test(test_spine_is_not_for_networks_with_cuts),
        cmocka_unit_test(test_spine_problem_without_reads_back),
        cmocka_unit_test(test_spine_optimum_is_a_bound),
        cmocka_unit_test(test_spine_floating_work_makes_valid_plans),
        cmocka_unit_test(test_spine_bounds_and_plans_an_encoder_decoder),
    };
    return RUN_CASES_AGAIN(5, tests);
}
