/* Plans for many requests: by hand, on random problems, in files, and what the checker sees. */
#include <moirai/moirai.h>

#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "util/util.h"

static moirai_rate_options options(int32_t in_flight)
{
    moirai_rate_options o;
    moirai_rate_options_init(&o);
    o.in_flight = in_flight;
    o.budget.threads = 1;
    o.budget.effort = 0.05;
    o.gap = 0;
    return o;
}

static moirai_plan *place(const moirai_problem *p, int32_t in_flight)
{
    moirai_rate_options o = options(in_flight);
    moirai_plan *plan;
    assert_ok(moirai_rate_place(&plan, p, &o));
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    assert_ok(moirai_rate_check(p, plan, NULL, NULL));
    return plan;
}

/* ---- by hand ---- */

/* Two operators of 30 ns on either device, nothing to send: one each, 30 ns; one at a time 60. */
static void test_rate_stages_share_the_work(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 30,30 > t:0\nop b 30,30 t > u:0\n");
    moirai_plan *one = place(p, 1), *two = place(p, 2);
    assert_int_equal(one->rate->in_flight, 1);
    assert_int_equal(one->rate->period_ns, 60);
    assert_int_equal(one->rate->period_bound_ns, 60);
    assert_int_equal(two->rate->period_ns, 30);
    assert_int_equal(two->rate->period_bound_ns, 30);
    assert_int_equal(two->rate->alone_ns, 60);
    moirai_plan_free(one);
    moirai_plan_free(two);
    moirai_problem_free(p);
}

/* Sending takes 100 ns, y is three times as slow: a copy on each, 1 / (1/60 + 1/180) = 45 ns, three of four requests on x. */
static void test_rate_replicas_send_nothing(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 30,90 > t:100\nop b 30,90 t > u:0\n");
    moirai_plan *plan = place(p, 2);
    assert_int_equal(plan->rate->period_ns, 45);
    assert_int_equal(plan->rate->n_copies, 2);
    int64_t x = plan->rate->copy[plan->op_device[0]].share_ppm;
    assert_in_range(x, 749999, 750001);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* The same where x has room for one of the operators alone: no copy there. */
static void test_rate_weights_of_all_copies_fit(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 5\ndevice y 5\nop a 30,90 mem=4 > t:100\nop b 30,90 mem=4 t > u:0\n");
    moirai_plan *plan = place(p, 4);
    assert_int_equal(plan->rate->n_copies, 1);
    assert_int_equal(plan->rate->period_ns, 100); /* a on x, t sent in 100 ns, b on y in 90 */
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* y has room for both: with them there for 1 of 19 requests, t and y take 100 * 18 / 19 = 94.7 ns. x has room for one. */
static void test_rate_mixtures_share_what_memory_is_left(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 5\ndevice y 9\nop a 30,90 mem=4 > t:100\nop b 30,90 mem=4 t > u:0\n");
    moirai_plan *plan = place(p, 4);
    assert_int_equal(plan->rate->n_copies, 2);
    assert_int_equal(plan->rate->period_ns, 95);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* A chain of two stages needs three requests in flight for 10 ns; t is held twice on x then. Room for one: one at a time on x or y. */
static void test_rate_peak_memory_limits_requests(void **state)
{
    (void)state;
    static const char text[] = "memory peak\ndevice x %s\ndevice y %s\nop a 10,20 > t:4\nop b 20,10 t > u:0\n";
    char tight[200], loose[200];
    snprintf(tight, sizeof tight, text, "4", "4");
    snprintf(loose, sizeof loose, text, "40", "40");
    moirai_problem *small = tiny_problem(tight), *large = tiny_problem(loose);
    moirai_plan *a = place(small, 8), *b = place(large, 8);
    assert_int_equal(b->rate->period_ns, 10);
    assert_true(a->rate->period_ns > 10);
    moirai_plan_free(a);
    moirai_plan_free(b);
    moirai_problem_free(small);
    moirai_problem_free(large);
}

static void test_rate_latency_has_a_limit(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 10,10 > t:4\nop b 7,7 t > u:0\n");
    moirai_rate_options o = options(8);
    moirai_plan *plan;
    o.latency_limit_ns = 17; /* all on one device, one request at a time on each */
    assert_ok(moirai_rate_place(&plan, p, &o));
    assert_int_equal(plan->rate->latency_ns, 17);
    assert_int_equal(plan->rate->period_ns, 9); /* 17 / 2 */
    moirai_plan_free(plan);
    o.latency_limit_ns = 16;
    assert_int_equal(moirai_rate_place(&plan, p, &o), MOIRAI_EINFEASIBLE);
    assert_null(plan);
    assert_non_null(strstr(moirai_error_message(), "one request alone takes"));
    moirai_problem_free(p);
}

/* Two copies would take turns, 17 / 2; one alone is as slow as a, though its devices work together. */
static void test_rate_copies_have_a_limit(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 10,10 > t:4\nop b 7,7 t > u:0\n");
    moirai_rate_options o = options(8);
    moirai_plan *plan;
    o.copies = 1;
    assert_ok(moirai_rate_place(&plan, p, &o));
    assert_int_equal(plan->rate->n_copies, 1);
    assert_int_equal(plan->rate->period_ns, 10);
    moirai_plan_free(plan);
    o.copies = 2;
    assert_ok(moirai_rate_place(&plan, p, &o));
    assert_int_equal(plan->rate->period_ns, 9);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* One request is fastest on one device, and so each takes 17; a row of stages has a period of 10, and its largest load is the least; two copies have one of 17 / 2. */
static void test_rate_plans_of_a_kind(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        int64_t period_ns;
        int32_t n_copies;
    } expected[] = {{"latency", 17, 1}, {"stages", 10, 1}, {"replicas", 9, 2}, {"loads", 10, 1}};
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 10,10 > t:4\nop b 7,7 t > u:0\n");
    moirai_rate_options o = options(8);
    moirai_plan *plan;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        o.kind = expected[i].kind;
        assert_ok(moirai_rate_place(&plan, p, &o));
        assert_int_equal(plan->rate->period_ns, expected[i].period_ns);
        assert_int_equal(plan->rate->n_copies, expected[i].n_copies);
        moirai_plan_free(plan);
    }
    o.kind = "replicas";
    o.copies = 1; /* of two devices */
    assert_int_equal(moirai_rate_place(&plan, p, &o), MOIRAI_EINFEASIBLE);
    o.kind = "fast";
    assert_int_equal(moirai_rate_place(&plan, p, &o), MOIRAI_EUSAGE);
    moirai_problem_free(p);
}

/* A transfer of 4 ns holds both devices: apart, x needs 10 + 4; together, 17 on one; two copies share nothing. */
static void test_rate_transfers_hold_devices(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion device\ndevice x 9\ndevice y 9\nop a 10,10 > t:4\nop b 7,7 t > u:0\n");
    moirai_rate_options o = options(8);
    moirai_plan *plan;
    o.copies = 1;
    assert_ok(moirai_rate_place(&plan, p, &o));
    assert_int_equal(plan->rate->period_ns, 14);
    assert_true(plan->rate->period_bound_ns > 9 && plan->rate->period_bound_ns <= 14); /* of one copy; of any, 9 */
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_rate_options_out_of_range(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\nop a 1 > t:0\n");
    moirai_plan *plan;
    moirai_rate_options o = options(-1);
    assert_int_equal(moirai_rate_place(&plan, p, &o), MOIRAI_EUSAGE);
    o = options(MOIRAI_MOST_IN_FLIGHT + 1);
    assert_int_equal(moirai_rate_place(&plan, p, &o), MOIRAI_EUSAGE);
    o = options(1);
    o.latency_limit_ns = -1;
    assert_int_equal(moirai_rate_place(&plan, p, &o), MOIRAI_EUSAGE);
    o = options(1);
    o.copies = -1;
    assert_int_equal(moirai_rate_place(&plan, p, &o), MOIRAI_EUSAGE);
    o = options(1);
    o.gap = 2;
    assert_int_equal(moirai_rate_place(&plan, p, &o), MOIRAI_EUSAGE);
    moirai_problem_free(p);
}

/* ---- at random ---- */

/* A plan for more requests is no slower, none is below its bound, one at a time is the latency plan's; files give back what they got. */
static void check_problem(const moirai_problem *p, uint64_t seed, int *n_copies)
{
    moirai_rate_options o = options(5);
    moirai_plan *curve[12], *again;
    int n = 0, rc = moirai_rate_curve(curve, &n, p, &o);
    if (rc == MOIRAI_EINFEASIBLE)
        return;
    assert_ok(rc);
    assert_int_equal(n, 4);
    for (int i = 0; i < n; i++) {
        const moirai_rate *r = curve[i]->rate;
        if (r->period_ns < r->period_bound_ns || r->period_ns > r->alone_ns ||
            (i > 0 && r->period_ns > curve[i - 1]->rate->period_ns))
            fail_msg("seed %llu: %d in flight: period %lld, bound %lld, alone %lld", (unsigned long long)seed,
                     r->in_flight, (long long)r->period_ns, (long long)r->period_bound_ns, (long long)r->alone_ns);
        char *path = temporary_path("rate.json");
        assert_ok(moirai_plan_write(curve[i], p, path));
        assert_ok(moirai_plan_read(&again, p, path));
        assert_ok(moirai_rate_check(p, again, NULL, NULL));
        assert_int_equal(again->rate->n_copies, r->n_copies);
        assert_int_equal(again->rate->period_bound_ns, r->period_bound_ns);
        for (int32_t c = 0; c < r->n_copies; c++) {
            assert_int_equal(again->rate->copy[c].share_ppm, r->copy[c].share_ppm);
            assert_int_equal(again->rate->copy[c].slots, r->copy[c].slots);
            assert_memory_equal(again->rate->copy[c].op_device, r->copy[c].op_device,
                                sizeof(int32_t) * (size_t)p->n_ops);
        }
        *n_copies += r->n_copies > 1;
        moirai_plan_free(again);
    }
    for (int i = 0; i < n; i++)
        moirai_plan_free(curve[i]);
}

static void test_rate_plans_of_random_problems(void **state)
{
    (void)state;
    int n_copies = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(60); seed++) {
        random_spec spec = random_spec_draw(seed, 12);
        if (seed % 4 == 0)
            spec.congestion = MOIRAI_CONGESTION_DEVICE;
        moirai_problem *p = random_problem(&spec);
        if (p)
            check_problem(p, seed, &n_copies);
        moirai_problem_free(p);
    }
    assert_true(n_copies > TEST_SHARE(24)); /* several copies were among them */
}

static void test_rate_is_the_same_with_any_threads(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(6); seed++) {
        random_spec spec = random_spec_draw(seed, 30);
        moirai_problem *p = random_problem(&spec);
        moirai_plan *one, *many;
        moirai_rate_options o = options(6);
        if (!p || moirai_rate_place(&one, p, &o)) {
            moirai_problem_free(p);
            continue;
        }
        o.budget.threads = 3;
        assert_ok(moirai_rate_place(&many, p, &o));
        assert_int_equal(one->rate->period_ns, many->rate->period_ns);
        assert_int_equal(one->rate->n_copies, many->rate->n_copies);
        for (int32_t c = 0; c < one->rate->n_copies; c++)
            assert_memory_equal(one->rate->copy[c].op_device, many->rate->copy[c].op_device,
                                sizeof(int32_t) * (size_t)p->n_ops);
        assert_schedules_equal(one, many);
        moirai_plan_free(one);
        moirai_plan_free(many);
        moirai_problem_free(p);
    }
}

/* ---- the checker ---- */

static void assert_broken(const moirai_problem *p, const moirai_plan *plan, const char *part)
{
    int rc = moirai_rate_check(p, plan, NULL, NULL);
    if (rc != MOIRAI_EFAIL)
        fail_msg("nothing says '%s'", part);
    if (!strstr(moirai_error_message(), part))
        fail_msg("'%s' does not say '%s'", moirai_error_message(), part);
}

static void test_rate_checker_sees_faults(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 30,90 > t:100\nop b 30,90 t > u:0\n");
    moirai_plan *plan = place(p, 2);
    moirai_rate *r = plan->rate;
    r->period_ns = 44;
    r->period_bound_ns = 0;
    assert_broken(p, plan, "has 45 ns to do for every request, the period is 44 ns");
    r->period_ns = 45;
    r->period_bound_ns = 46;
    assert_broken(p, plan, "the bound of 46 ns is above the period of 45 ns");
    r->period_bound_ns = 45;
    r->latency_ns--;
    assert_broken(p, plan, "the latency is 179 ns, simulated 180 ns");
    r->latency_ns++;
    r->copy[1].share_ppm += 5000;
    assert_broken(p, plan, "shares of copies sum to 1.005000");
    r->copy[1].share_ppm -= 5000;
    r->copy[0].slots = 1;
    r->copy[1].slots = 0;
    assert_broken(p, plan, "1 of 2 copies have slots");
    r->copy[1].slots = 2;
    assert_broken(p, plan, "copies have 3 slots together, 2 requests are in flight");
    r->copy[1].slots = 1;
    r->copy[1].op_device[0] = 7;
    assert_broken(p, plan, "copy 1: operator 'a' can't run on its device");
    r->copy[1].op_device[0] = r->copy[1].op_device[1];
    assert_ok(moirai_rate_check(p, plan, NULL, NULL));
    moirai_rate_figures figures;
    r->copy[0].slots = r->copy[1].slots = r->copy[0].share_ppm = r->copy[1].share_ppm =
        0; /* whoever simulates without a check */
    assert_int_equal(moirai_rate_simulate(&figures, p, plan), MOIRAI_EFAIL);
    assert_non_null(strstr(moirai_error_message(), "shares of copies sum to 0.000000"));
    moirai_rate_figures_clear(&figures);
    r->copy[0].share_ppm = r->copy[1].share_ppm = 500000;
    r->period_bound_ns = 44;
    r->period_certified_ns = 45;
    assert_broken(p, plan, "45 ns are said to be certified, the bound is 44 ns");
    p->device_memory_bytes[0] = -1;
    r->period_certified_ns = 44;
    assert_broken(p, plan, "device 'x' holds 0 bytes of all copies");
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_stages_share_the_work),
        cmocka_unit_test(test_rate_replicas_send_nothing),
        cmocka_unit_test(test_rate_weights_of_all_copies_fit),
        cmocka_unit_test(test_rate_mixtures_share_what_memory_is_left),
        cmocka_unit_test(test_rate_peak_memory_limits_requests),
        cmocka_unit_test(test_rate_latency_has_a_limit),
        cmocka_unit_test(test_rate_options_out_of_range),
        cmocka_unit_test(test_rate_copies_have_a_limit),
        cmocka_unit_test(test_rate_plans_of_a_kind),
        cmocka_unit_test(test_rate_transfers_hold_devices),
        cmocka_unit_test(test_rate_plans_of_random_problems),
        cmocka_unit_test(test_rate_is_the_same_with_any_threads),
        cmocka_unit_test(test_rate_checker_sees_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
