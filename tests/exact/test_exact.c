/* The exact search against the exhaustive one, in all modes; its bounds when it is stopped; its use on blocks. */
#include "exact/exact_search.h"
#include "schedule/plan_order.h"
#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "util/util.h"

#include <moirai/placer.h>

#define BRUTE_NODES 200000

static moirai_problem *make(const random_spec *spec)
{
    moirai_problem *p = random_problem(spec);
    if (p == NULL)
        fail_msg("%s: %s", random_spec_text(spec), moirai_error_message());
    return p;
}

static exact_result solve(const moirai_problem *p, const exact_options *o)
{
    exact_result r;
    assert_ok(exact_solve(p, o, &r));
    return r;
}

static exact_options any(void)
{
    exact_options o;
    exact_options_init(&o);
    return o;
}

/* The optimum, BRUTE_INFEASIBLE, or a failed test; complete and without limits. */
static int64_t optimum_of(const moirai_problem *p, const random_spec *spec)
{
    exact_options o = any();
    exact_result r = solve(p, &o);
    if (!r.complete || (r.found && r.lower_bound_ns != r.makespan_ns) || (!r.found && r.lower_bound_ns != INT64_MAX))
        fail_msg("%s: complete %d, found %d, makespan %lld, bound %lld", random_spec_text(spec), r.complete, r.found,
                 (long long)r.makespan_ns, (long long)r.lower_bound_ns);
    int64_t optimum = r.found ? r.makespan_ns : BRUTE_INFEASIBLE;
    exact_result_clear(&r);
    return optimum;
}

static void assert_plan_holds(const moirai_problem *p, const random_spec *spec, int64_t optimum)
{
    exact_options o = any();
    exact_result r = solve(p, &o);
    moirai_plan *plan;
    assert_ok(exact_plan(&plan, p, &r));
    if (moirai_plan_check(p, plan, NULL, NULL) != 0 || plan->makespan_ns != optimum)
        fail_msg("%s: %s", random_spec_text(spec), moirai_error_message());
    moirai_sim *sim;
    assert_ok(moirai_sim_new(&sim, p));
    moirai_task *order;
    int64_t n;
    assert_ok(schedule_plan_order(&order, &n, p, plan));
    int64_t replayed = moirai_sim_replay(sim, plan->op_device, order, n);
    free(order);
    assert_true(replayed >= 0 && replayed <= optimum);
    moirai_sim_free(sim);
    moirai_plan_free(plan);
    exact_result_clear(&r);
}

static void compare(uint64_t first, uint64_t last, int most_ops, int least_known)
{
    int known = 0, infeasible = 0;
    for (uint64_t seed = first; seed < last; seed++) {
        random_spec spec = random_spec_draw(seed, most_ops);
        moirai_problem *p = make(&spec);
        int64_t truth = brute_force(p, BRUTE_NODES, NULL);
        if (truth != BRUTE_GAVE_UP) {
            int64_t found = optimum_of(p, &spec);
            if (found != truth)
                fail_msg("%s: exact %lld, all schedules %lld", random_spec_text(&spec), (long long)found,
                         (long long)truth);
            if (truth >= 0)
                assert_plan_holds(p, &spec, truth);
            known++;
            infeasible += truth == BRUTE_INFEASIBLE;
        }
        moirai_problem_free(p);
    }
    print_message("%d problems equal, %d of them infeasible\n", known, infeasible);
    assert_true(known >= least_known && infeasible > 0);
}

static void test_exact_equals_brute_force_on_five_operators(void **state)
{
    (void)state;
    compare(200000, 200000 + TEST_SHARE(800), 5, TEST_SHARE(750));
}

static void test_exact_equals_brute_force_on_seven_operators(void **state)
{
    (void)state;
    compare(300000, 300100, 7, 80);
}

/* Memory peak with little room, where waiting decides; the switch that random specs rarely draw together. */
static void test_exact_equals_brute_force_where_peak_memory_is_tight(void **state)
{
    (void)state;
    int known = 0;
    for (uint64_t seed = 400000; seed < 400000 + TEST_SHARE(400); seed++) {
        random_spec spec = random_spec_draw(seed, 5);
        spec.memory = MOIRAI_MEMORY_PEAK;
        spec.tight = true;
        moirai_problem *p = make(&spec);
        int64_t truth = brute_force(p, BRUTE_NODES, NULL);
        if (truth != BRUTE_GAVE_UP) {
            int64_t found = optimum_of(p, &spec);
            if (found != truth)
                fail_msg("%s: exact %lld, all schedules %lld", random_spec_text(&spec), (long long)found,
                         (long long)truth);
            if (truth >= 0)
                assert_plan_holds(p, &spec, truth);
            known += truth >= 0;
        }
        moirai_problem_free(p);
    }
    print_message("%d problems equal\n", known);
    assert_true(known >= TEST_SHARE(100));
}

/* All devices equal, operators of two kinds only: symmetry is used, the optimum must not move. */
static void test_exact_symmetry_keeps_the_optimum(void **state)
{
    (void)state;
    int known = 0;
    for (uint64_t seed = 500000; seed < 500000 + TEST_SHARE(300); seed++) {
        random_spec spec = random_spec_draw(seed, 6);
        spec.nulls = spec.groups = spec.zeros = false;
        moirai_problem *p = make(&spec);
        int32_t K = p->n_devices;
        for (int32_t i = 0; i < p->n_ops; i++)
            for (int32_t k = 0; k < K; k++)
                p->op_time_ns[i * K + k] = 4 + 3 * (i % 2) + (seed % 3 == 0 ? k : 0);
        for (int32_t i = 0; i < p->n_ops; i++)
            p->op_memory_bytes[i] = 1;
        for (int32_t k = 0; k < K; k++)
            p->device_memory_bytes[k] = spec.memory == MOIRAI_MEMORY_PEAK ? 1000000 : (p->n_ops + K - 1) / K + 1;
        for (int64_t a = 0; a < (int64_t)p->n_classes * K * K; a++)
            p->class_transfer_ns[a] = a / K % K == a % K ? 0 : 2 + a / (K * K) % 2;
        int64_t truth = brute_force(p, BRUTE_NODES, NULL);
        if (truth != BRUTE_GAVE_UP) {
            assert_int_equal(optimum_of(p, &spec), truth);
            known++;
        }
        moirai_problem_free(p);
    }
    assert_true(known >= TEST_SHARE(200));
}

static void test_exact_bound_holds_wherever_it_stops(void **state)
{
    (void)state;
    int stopped = 0;
    for (uint64_t seed = 600000; seed < 600250; seed++) {
        random_spec spec = random_spec_draw(seed, 9);
        moirai_problem *p = make(&spec);
        int64_t optimum = optimum_of(p, &spec);
        for (int64_t limit = 1; limit < 200; limit = 3 * limit / 2 + 1) {
            exact_options o = any();
            o.node_limit = limit;
            exact_result r = solve(p, &o);
            assert_true(r.nodes <= limit);
            bool wrong = optimum >= 0 ? r.lower_bound_ns > optimum || (r.found && r.makespan_ns < optimum) : r.found;
            if (wrong || (r.complete && optimum >= 0 && r.makespan_ns != optimum))
                fail_msg("%s: %lld nodes: makespan %lld, bound %lld, optimum %lld", random_spec_text(&spec),
                         (long long)limit, (long long)r.makespan_ns, (long long)r.lower_bound_ns, (long long)optimum);
            stopped += !r.complete;
            exact_result_clear(&r);
        }
        moirai_problem_free(p);
    }
    print_message("%d stopped searches\n", stopped);
    assert_true(stopped > 100);
}

static void test_exact_below_is_exclusive(void **state)
{
    (void)state;
    for (uint64_t seed = 700000; seed < 700000 + TEST_SHARE(200); seed++) {
        random_spec spec = random_spec_draw(seed, 7);
        moirai_problem *p = make(&spec);
        int64_t optimum = optimum_of(p, &spec);
        exact_options o = any();
        if (optimum >= 0) {
            o.below_ns = optimum;
            exact_result r = solve(p, &o);
            assert_true(!r.found && r.complete && r.lower_bound_ns == optimum);
            exact_result_clear(&r);
            o.below_ns = optimum + 1;
            r = solve(p, &o);
            assert_true(r.found && r.complete && r.makespan_ns == optimum && r.lower_bound_ns == optimum);
            exact_result_clear(&r);
        }
        moirai_problem_free(p);
    }
}

/* A bound that the caller knows changes neither what is found nor what is proven. */
static void test_exact_takes_a_proven_bound(void **state)
{
    (void)state;
    for (uint64_t seed = 710000; seed < 710000 + TEST_SHARE(200); seed++) {
        random_spec spec = random_spec_draw(seed, 8);
        moirai_problem *p = make(&spec);
        int64_t optimum = optimum_of(p, &spec);
        for (int64_t above = -1; above <= 1 + optimum / 4 && optimum > 1; above += 1 + optimum / 8) {
            exact_options o = any();
            o.proven_ns = 1 + (int64_t)(seed % 7) * (optimum - 1) / 6;
            o.below_ns = optimum + above + 1;
            exact_result r = solve(p, &o);
            assert_true(r.complete && r.lower_bound_ns == optimum && r.found == (above >= 0));
            exact_result_clear(&r);
            o.node_limit = 3;
            r = solve(p, &o);
            assert_true(r.lower_bound_ns <= optimum && r.lower_bound_ns >= o.proven_ns);
            exact_result_clear(&r);
        }
        moirai_problem_free(p);
    }
}

static void test_exact_counts_the_same_nodes_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 900000; seed < 900040; seed++) {
        random_spec spec = random_spec_draw(seed, 10);
        moirai_problem *p = make(&spec);
        exact_options o = any();
        o.node_limit = 2000;
        exact_result a = solve(p, &o), b = solve(p, &o);
        assert_true(a.nodes == b.nodes && a.makespan_ns == b.makespan_ns && a.lower_bound_ns == b.lower_bound_ns);
        exact_result_clear(&a);
        exact_result_clear(&b);
        moirai_problem_free(p);
    }
}

/* Jackson's preemptive schedule is worth the largest min r + sum p + min q over subsets. */
static void test_exact_preemptive_equals_the_best_subset(void **state)
{
    (void)state;
    util_rng rng;
    util_rng_seed(&rng, 7);
    for (int round = 0; round < 3000; round++) {
        exact_job job[8];
        int32_t n = 1 + (int32_t)util_rng_below(&rng, 8);
        int64_t best = 0;
        for (int32_t a = 0; a < n; a++)
            job[a] = (exact_job){util_rng_below(&rng, 30), 1 + util_rng_below(&rng, 9), util_rng_below(&rng, 30), a};
        for (unsigned set = 1; set < 1u << n; set++) {
            int64_t r = INT64_MAX, p = 0, q = INT64_MAX;
            for (int32_t a = 0; a < n; a++) {
                if (!(set >> a & 1))
                    continue;
                r = UTIL_MIN(r, job[a].r);
                q = UTIL_MIN(q, job[a].q);
                p += job[a].p;
            }
            best = UTIL_MAX(best, r + p + q);
        }
        assert_int_equal(exact_preemptive(job, n), best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_equals_brute_force_on_five_operators),
        cmocka_unit_test(test_exact_equals_brute_force_on_seven_operators),
        cmocka_unit_test(test_exact_equals_brute_force_where_peak_memory_is_tight),
        cmocka_unit_test(test_exact_symmetry_keeps_the_optimum),
        cmocka_unit_test(test_exact_bound_holds_wherever_it_stops),
        cmocka_unit_test(test_exact_below_is_exclusive),
        cmocka_unit_test(test_exact_takes_a_proven_bound),
        cmocka_unit_test(test_exact_counts_the_same_nodes_twice),
        cmocka_unit_test(test_exact_preemptive_equals_the_best_subset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
