/* GETF: speed groups, its linear programme by hand, and its bound, which must hold whatever the solver says. */
#include <math.h>

#include "place/list/getf/getf_state.h"
#include "place/list/getf/getf.h"
#include "place/list/speed.h"
#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/small_problem.h"
#include "util/util.h"

#include <moirai/moirai.h>

static void need_solver(void)
{
    const char *why;
    if (!lp_whole_available(&why))
        skip();
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * (1 + fabs(b));
}

/* ---- groups ---- */

static void test_getf_gamma_is_at_least_two(void **state)
{
    (void)state;
    assert_true(near(place_getf_gamma(1), 2) && near(place_getf_gamma(2), 2) && near(place_getf_gamma(4), 2));
    assert_true(near(place_getf_gamma(3), log2(3) / log2(log2(3)))); /* 2.39 */
    assert_true(near(place_getf_gamma(8), 2));                       /* 3 / log2(3) is less */
    assert_true(near(place_getf_gamma(64), 6 / log2(6)));
}

static void test_getf_groups_by_speed_and_drops_the_slow(void **state)
{
    (void)state;
    place_getf_groups g;
    place_getf_group(&g, (double[]){1, 0.5, 0.3, 0.1}, 4); /* below 1/4 is dropped; [0.3, 0.6) and [0.6, 1.2) */
    assert_int_equal(g.kept, 7);
    assert_int_equal(g.n, 2);
    assert_int_equal(g.devices[0], 6);
    assert_int_equal(g.devices[1], 1);
    place_getf_group(&g, (double[]){0.25, 1, 0.25, 1}, 4); /* [0.25, 0.5), [0.5, 1) is empty, [1, 2) */
    assert_int_equal(g.n, 3);
    assert_int_equal(g.devices[0], 5);
    assert_int_equal(g.devices[1], 0);
    assert_int_equal(g.devices[2], 10);
    place_getf_group(&g, (double[]){1, 1, 1}, 3);
    assert_int_equal(g.n, 1);
    assert_int_equal(g.devices[0], 7);
}

/* Half of the mass from the fastest on; among those groups the largest total speed. */
static void test_getf_half_mass_rule(void **state)
{
    (void)state;
    place_getf_groups g;
    const double speed[] = {1, 0.4, 0.4, 0.4};
    place_getf_group(&g, speed, 4);
    assert_int_equal(g.n, 2);
    assert_int_equal(place_getf_choose(&g, speed, (double[]){0.6, 0.4, 0, 0}, 15), 1);
    assert_int_equal(place_getf_choose(&g, speed, (double[]){0.5, 0.5, 0, 0}, 15), 1);
    assert_int_equal(place_getf_choose(&g, speed, (double[]){0.4, 0.6, 0, 0}, 15), 0); /* 1.2 beats 1 */
    assert_int_equal(place_getf_choose(&g, speed, (double[]){0.4, 0.6, 0, 0}, 3),
                     1); /* of those that can run it: 0.4 */
    assert_int_equal(place_getf_choose(&g, speed, (double[]){0, 1, 0, 0}, 2), 0);
}

static void test_getf_speeds_are_means(void **state)
{
    (void)state;
    const small_op op[] = {{"a", "10,20,null", "", "", 0, NULL}, {"b", "30,20,40", "", "", 0, NULL}, {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 3, .op = op});
    double speed[3];
    int32_t order[3];
    place_speeds(p, speed);
    assert_true(near(speed[0], 30.0 / 40) && near(speed[1], 30.0 / 40) && near(speed[2], 20.0 / 40));
    place_fastest_first(p, order);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 1);
    assert_int_equal(order[2], 2);
    moirai_problem_free(p);
}

/* ---- the programme ---- */

static place_getf_result solve(const moirai_problem *p, bool plain, bool milp)
{
    place_getf_result g;
    assert_ok(place_getf_solve(&g, p, &(place_getf_task){.devices = ~(uint64_t)0, .plain = plain, .milp = milp}));
    assert_true(g.solved);
    return g;
}

static void expect(const small_op *op, double value, int64_t lower)
{
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 2, .op = op});
    for (int plain = 0; plain < 2; plain++) {
        place_getf_result g = solve(p, plain, false);
        if (!near(g.value_ns, value) || g.lower_ns != lower)
            fail_msg("value %.9g by hand %.9g, bound %lld by hand %lld", g.value_ns, value, (long long)g.lower_ns,
                     (long long)lower);
        place_getf_clear(&g);
    }
    moirai_problem_free(p);
}

static void test_getf_programme_by_hand(void **state)
{
    (void)state;
    need_solver();
    /* Three alike on two devices: 15 each. */
    const small_op loose[] = {
        {"a", "10,10", "", "", 0, NULL}, {"b", "10,10", "", "", 0, NULL}, {"c", "10,10", "", "", 0, NULL}, {0}};
    expect(loose, 15, 15);
    /* A chain on one fast device; transfers are not seen. */
    const small_op chain[] = {{"a", "10,20", "", "x:500", 0, NULL}, {"b", "10,20", "x", "", 0, NULL}, {0}};
    expect(chain, 20, 20);
    /* Specialists: each where it is quick. */
    const small_op special[] = {{"a", "10,100", "", "", 0, NULL}, {"b", "100,10", "", "", 0, NULL}, {0}};
    expect(special, 10, 10);
    /* Work for 30 on A or 60 on B: A does 2/3 of it. */
    const small_op two_to_one[] = {
        {"a", "10,20", "", "", 0, NULL}, {"b", "10,20", "", "", 0, NULL}, {"c", "10,20", "", "", 0, NULL}, {0}};
    expect(two_to_one, 20, 20);
    /* Path and load at once: b and c are a's and can only use A (30 in all), then d anywhere: path 10 + 10 + 20 is less
     * than load, but A's load of 40 can give d to B, which takes 25 and then ends at 10 + 10 + 25 if nothing of it is
     * on A. With share s of d on A: load 30 + 20 s, path 20 + 20 s + 25 (1 - s) = 45 - 5 s; equal at s = 3/5: 42.
     * Neither bound alone says it: 40 and 40 or less. */
    const small_op both[] = {{"a", "10,null", "", "x:0", 0, NULL},
                             {"b", "10,null", "x", "y:0", 0, NULL},
                             {"c", "10,null", "x", "", 0, NULL},
                             {"d", "20,25", "y", "", 0, NULL},
                             {0}};
    expect(both, 42, 42);
    /* A fraction of a nanosecond is rounded up: makespans are whole. */
    const small_op fraction[] = {
        {"a", "5,5", "", "", 0, NULL}, {"b", "5,5", "", "", 0, NULL}, {"c", "5,5", "", "", 0, NULL}, {0}};
    expect(fraction, 7.5, 8);
}

/* Heads of a layer share their variables, and the value stays. */
static void test_getf_colours_keep_the_value(void **state)
{
    (void)state;
    need_solver();
    moirai_problem *p = zoo_problem("gpt3-mini", "inter-server", MOIRAI_FLOW_TENSOR);
    place_colours c;
    assert_ok(place_colours_find(&c, p, false));
    assert_true(c.n * 4 < p->n_ops);
    place_colours_clear(&c);
    place_getf_result a = solve(p, false, false), b = solve(p, true, false);
    assert_true(near(a.value_ns, b.value_ns));
    place_getf_clear(&a);
    place_getf_clear(&b);
    moirai_problem_free(p);
}

/* Colours are equitable: same times, as many edges from and to every colour. */
static void test_getf_colours_are_equitable(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(200); seed++) {
        random_spec spec = random_spec_draw(seed, 30);
        spec.scale = 1; /* small numbers: many equals */
        moirai_problem *p = random_problem(&spec);
        place_colours c;
        if (!p)
            continue;
        assert_ok(place_colours_find(&c, p, false));
        int *count = calloc((size_t)p->n_ops * (size_t)c.n * 2, sizeof *count);
        for (int32_t e = 0; e < p->n_edges; e++) {
            int32_t from = p->tensor_producer[p->edge_tensor[e]], to = p->edge_reader[e];
            count[from * c.n + c.of[to]]++;
            count[(p->n_ops + to) * c.n + c.of[from]]++;
        }
        for (int32_t i = 0; i < p->n_ops; i++) {
            int32_t j = c.op[c.of[i]];
            assert_memory_equal(&p->op_time_ns[i * p->n_devices], &p->op_time_ns[j * p->n_devices],
                                (size_t)p->n_devices * sizeof *p->op_time_ns);
            assert_memory_equal(&count[i * c.n], &count[j * c.n], (size_t)c.n * sizeof *count);
            assert_memory_equal(&count[(p->n_ops + i) * c.n], &count[(p->n_ops + j) * c.n],
                                (size_t)c.n * sizeof *count);
        }
        free(count);
        place_colours_clear(&c);
        moirai_problem_free(p);
    }
}

/* ---- the bound ---- */

static void test_getf_bound_never_exceeds_the_optimum(void **state)
{
    (void)state;
    need_solver();
    int known = 0, tight = 0, modes[12] = {0};
    for (uint64_t seed = 1; seed <= TEST_SHARE(4000); seed++) {
        random_spec spec = random_spec_draw(seed, seed % 2 ? 6 : 5);
        moirai_problem *p = random_problem(&spec);
        if (!p)
            continue;
        int64_t optimum = brute_force(p, 30000, NULL), path = moirai_bound_critical_path(p),
                load = moirai_bound_load(p);
        place_getf_result g = solve(p, seed % 3 == 0, false);
        if (optimum >= 0 && g.lower_ns > optimum)
            fail_msg("%s: bound %lld, optimum %lld", random_spec_text(&spec), (long long)g.lower_ns,
                     (long long)optimum);
        double weaker = (double)UTIL_MAX(path, load);
        if ((double)g.lower_ns < weaker * (1 - 1e-5) - 1 ||
            fabs((double)g.lower_ns - g.value_ns) > 1 + 1e-5 * g.value_ns)
            fail_msg("%s: bound %lld, value %.9g, path %lld, load %lld", random_spec_text(&spec), (long long)g.lower_ns,
                     g.value_ns, (long long)path, (long long)load);
        known += optimum >= 0;
        tight += optimum >= 0 && g.lower_ns == optimum;
        modes[((int)spec.flow * 3 + (int)spec.congestion) * 2 + (int)spec.memory] += optimum >= 0;
        place_getf_clear(&g);
        moirai_problem_free(p);
    }
    print_message("%d optima, %d reached\n", known, tight);
    assert_true(known > TEST_SHARE(2000));
    for (int i = 0; i < 12; i++)
        assert_true(modes[i] > TEST_SHARE(20));
}

/* The proof does not trust the solver: any numbers at all give a bound that holds. */
static void test_getf_proves_from_any_duals(void **state)
{
    (void)state;
    util_rng rng;
    util_rng_seed(&rng, 99);
    for (uint64_t seed = 1; seed <= TEST_SHARE(800); seed++) {
        random_spec spec = random_spec_draw(seed, 5);
        moirai_problem *p = random_problem(&spec);
        if (!p)
            continue;
        int64_t optimum = brute_force(p, 30000, NULL);
        place_getf_task task = {.devices = ~(uint64_t)0};
        place_getf_state s = {.p = p, .task = &task};
        assert_ok(place_getf_open(&s, seed % 2));
        double *dual = calloc((size_t)s.lp.n_rows + 1, sizeof *dual);
        for (int turn = 0; turn < 10 && optimum >= 0; turn++) {
            for (int32_t r = 0; r < s.lp.n_rows; r++)
                dual[r] = turn == 0   ? 0
                          : turn == 1 ? NAN
                          : turn == 2 ? HUGE_VAL
                                      : (util_rng_real(&rng) - 0.3) * (turn > 6 ? 1e6 : 1);
            int64_t lower;
            assert_ok(place_getf_prove(&lower, &s, dual));
            if (lower > optimum || lower < 0)
                fail_msg("%s, turn %d: bound %lld, optimum %lld", random_spec_text(&spec), turn, (long long)lower,
                         (long long)optimum);
        }
        free(dual);
        place_getf_close(&s);
        moirai_problem_free(p);
    }
}

/* ---- the placer ---- */

static void test_getf_milp_uses_whole_operators(void **state)
{
    (void)state;
    need_solver();
    for (uint64_t seed = 300; seed < 300 + TEST_SHARE(30); seed++) {
        random_spec spec = random_spec_draw(seed, 10);
        moirai_problem *p = random_problem(&spec);
        if (!p)
            continue;
        place_getf_result g = solve(p, false, true);
        assert_true(g.milp_found);
        for (int32_t i = 0; i < p->n_ops; i++) {
            double sum = 0;
            for (int32_t k = 0; k < p->n_devices; k++) {
                double x = g.share[i * p->n_devices + k];
                assert_true(fabs(x - round(x)) < 1e-5);
                assert_true(p->op_devices[i] >> k & 1 || x == 0);
                sum += x;
            }
            assert_true(near(sum, 1));
        }
        place_getf_clear(&g);
        moirai_setting milp = {"mode", "milp"};
        moirai_place_options o;
        moirai_place_options_init(&o);
        o.setting = &milp;
        o.n_settings = 1;
        moirai_plan *plan, *again;
        int rc = moirai_place(&plan, p, "getf", &o);
        if (rc == 0) {
            assert_ok(moirai_place(&again, p, "getf", &o));
            assert_memory_equal(plan->op_device, again->op_device, (size_t)p->n_ops * sizeof *plan->op_device);
            moirai_plan_free(again);
        } else {
            assert_int_equal(rc, MOIRAI_EINFEASIBLE);
        }
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
}

/* B is less than half as fast: the programme gives most of the work to A, and the chain stays there. */
static void test_getf_keeps_operators_in_their_group(void **state)
{
    (void)state;
    need_solver();
    const small_op op[] = {
        {"a", "10,25", "", "x:0", 0, NULL}, {"b", "10,25", "x", "y:0", 0, NULL}, {"c", "10,25", "y", "", 0, NULL}, {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 2, .op = op});
    moirai_plan *plan;
    assert_ok(moirai_place(&plan, p, "getf", NULL));
    assert_int_equal(plan->makespan_ns, 30);
    assert_int_equal(plan->lower_bound_ns, 30);
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(plan->op_device[i], 0);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* The fast device is full after two: the third goes to the other group, whichever comes first in the list of devices.
 */
static void test_getf_leaves_a_group_without_room(void **state)
{
    (void)state;
    need_solver();
    for (int swapped = 0; swapped < 2; swapped++) {
        const char *times = swapped ? "25,10" : "10,25";
        const small_op op[] = {
            {"a", times, "", "x:0", 5, NULL}, {"b", times, "x", "y:0", 5, NULL}, {"c", times, "y", "", 5, NULL}, {0}};
        moirai_problem *p = small_problem(&(small_spec){.n_devices = 2, .memory = 10, .op = op});
        moirai_plan *plan;
        assert_ok(moirai_place(&plan, p, "getf", NULL));
        assert_int_equal(plan->makespan_ns, 45);
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
}

/* B has a third of A's speed, below 1/2: it is dropped, and the programme without it says 40. Three on A and one on B
 * take 30: its value is no bound then. */
static void test_getf_claims_no_bound_where_it_dropped_a_device(void **state)
{
    (void)state;
    need_solver();
    const small_op op[] = {{"a", "10,30", "", "", 0, NULL},
                           {"b", "10,30", "", "", 0, NULL},
                           {"c", "10,30", "", "", 0, NULL},
                           {"d", "10,30", "", "", 0, NULL},
                           {0}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 2, .op = op});
    moirai_plan *plan;
    assert_ok(moirai_place(&plan, p, "getf", NULL));
    assert_int_equal(plan->makespan_ns, 40); /* B is never used, */
    assert_true(plan->lower_bound_ns <= 30); /* though three on A and one on B take 30 */
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_getf_gamma_is_at_least_two),
        cmocka_unit_test(test_getf_groups_by_speed_and_drops_the_slow),
        cmocka_unit_test(test_getf_half_mass_rule),
        cmocka_unit_test(test_getf_speeds_are_means),
        cmocka_unit_test(test_getf_programme_by_hand),
        cmocka_unit_test(test_getf_colours_keep_the_value),
        cmocka_unit_test(test_getf_colours_are_equitable),
        cmocka_unit_test(test_getf_bound_never_exceeds_the_optimum),
        cmocka_unit_test(test_getf_proves_from_any_duals),
        cmocka_unit_test(test_getf_milp_uses_whole_operators),
        cmocka_unit_test(test_getf_keeps_operators_in_their_group),
        cmocka_unit_test(test_getf_leaves_a_group_without_room),
        cmocka_unit_test(test_getf_claims_no_bound_where_it_dropped_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
