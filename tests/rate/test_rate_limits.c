/* A time limit is kept by the search for the best rate, counted in work instead of seconds.
 *
 * The clock is ours: it goes on with every event of a stream, and elsewhere with every look at it. So a stream that does not look at the limit, or one more than there is time for, is late by
 * this clock on any machine. What neither simulates streams nor looks at the clock does not count: bench/bench_promises has mode "rate" and measures processor time. */
#include <moirai/moirai.h>

#include "rate/stream/stream_state.h"
#include "support/check.h"
#include "support/scale.h"
#include "support/shapes.h"
#include "support/tiny.h"
#include "util/util.h"

#define OPS 4200 /* with 64 requests in flight a stream of these is a long one */
#define POP_S 2e-7
#define LOOK_S 5e-5

static double now_s;
static bool in_stream;
static int n_streams;

double util_seconds(void) /* instead of util/clock.c */
{
    now_s += in_stream ? 0 : LOOK_S;
    return 1000 + now_s;
}

double util_cpu_seconds(void)
{
    return now_s;
}

/* What the linker puts before the functions of these names (tests/CMakeLists.txt). */
rate_item __real_rate_heap_pop(rate_heap *);
rate_item __wrap_rate_heap_pop(rate_heap *);
int __real_rate_stream(rate_outcome *, const moirai_problem *, const rate_stream_task *);
int __wrap_rate_stream(rate_outcome *, const moirai_problem *, const rate_stream_task *);

rate_item __wrap_rate_heap_pop(rate_heap *h)
{
    now_s += POP_S;
    return __real_rate_heap_pop(h);
}

int __wrap_rate_stream(rate_outcome *out, const moirai_problem *p, const rate_stream_task *task)
{
    n_streams++;
    in_stream = true;
    int rc = __real_rate_stream(out, p, task);
    in_stream = false;
    return rc;
}

static moirai_rate_options options(double limit_s, const char *kind, int32_t copies)
{
    moirai_rate_options o;
    moirai_rate_options_init(&o);
    o.budget.time_limit_s = limit_s;
    o.budget.threads = 1;
    o.gap = 0;
    o.in_flight = 64;
    o.copies = copies;
    o.kind = kind;
    return o;
}

static moirai_problem *network(void)
{
    moirai_problem *p;
    assert_ok(shape_problem(&p, "transformer", OPS, 4));
    return p;
}

static void keep_to(double limit_s, double begun_s)
{
    if (now_s - begun_s > 1.05 * limit_s + 0.1) /* stricter than the 0.3 s of real time */
        fail_msg("limit %g s: %.2f s", limit_s, now_s - begun_s);
}

/* Less than one stream, a few, and many; with every kind of plan there is an answer, and it is right. */
static void test_rate_keeps_its_limit(void **state)
{
    (void)state;
    static const char *const kind[] = {NULL, NULL, "stages", "replicas", "loads"};
    static const double limit_s[] = {0.02, 0.3, 1};
    moirai_problem *p = network();
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
        for (size_t l = 0; l < sizeof limit_s / sizeof *limit_s; l++) {
            moirai_rate_options o = options(limit_s[l], kind[k], k == 1);
            moirai_plan *plan = NULL;
            double begun_s = now_s;
            assert_ok(moirai_rate_place(&plan, p, &o));
            keep_to(limit_s[l], begun_s);
            if (l == 2) /* time enough for streams of all requests, and so for plans of many */
                assert_true(plan->rate->in_flight > 1);
            assert_ok(moirai_rate_check(p, plan, NULL, NULL));
            moirai_plan_free(plan);
        }
    moirai_problem_free(p);
}

/* What was simulated is not simulated again to be handed out: all figures come with the plan, and are those of a new simulation. */
static void test_rate_figures_come_with_the_plan(void **state)
{
    (void)state;
    moirai_problem *p = network();
    moirai_rate_options o = options(2, NULL, 1);
    moirai_rate_figures f = {0}, again;
    moirai_plan *plan = NULL;
    o.figures = &f;
    assert_ok(moirai_rate_place(&plan, p, &o));
    int before = n_streams;
    assert_ok(moirai_rate_simulate(&again, p, plan));
    assert_int_equal(n_streams, before + 1);
    assert_int_equal(f.period_ns, again.period_ns);
    assert_int_equal(f.latency_ns, again.latency_ns);
    assert_int_equal(f.mean_latency_ns, again.mean_latency_ns);
    assert_int_equal(f.load_ns, again.load_ns);
    assert_int_equal(f.exact, again.exact);
    for (int32_t k = 0; k < p->n_devices; k++) {
        assert_int_equal(f.resource_load_ns[k], again.resource_load_ns[k]);
        assert_int_equal(f.device_peak_bytes[k], again.device_peak_bytes[k]);
    }
    moirai_rate_figures_clear(&f);
    moirai_rate_figures_clear(&again);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* All points of a curve have their part of the time: those of fewer requests, too, are more than one request at a time. */
static void test_rate_curve_within_a_limit(void **state)
{
    (void)state;
    moirai_problem *p = network();
    moirai_rate_options o = options(4, NULL, 1);
    moirai_rate_figures f = {0};
    moirai_plan *plan[12];
    int n;
    o.figures = &f;
    double begun_s = now_s;
    assert_ok(moirai_rate_curve(plan, &n, p, &o));
    keep_to(4, begun_s);
    assert_int_equal(n, 7);
    assert_int_equal(f.period_ns, plan[6]->rate->period_ns);
    for (int i = 1; i < n; i++)
        assert_true(plan[i]->rate->period_ns < plan[0]->rate->period_ns);
    for (int i = 0; i < n; i++)
        moirai_plan_free(plan[i]);
    moirai_rate_figures_clear(&f);
    moirai_problem_free(p);
}

/* Each operator on its faster device: loads of 2, and three transfers of 50 for each of the two requests in flight. All on one device has a period of 20, and the time to find that out. */
static void test_rate_least_load_stays_within_a_limit(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion none\ndevice x 9\ndevice y 9\nop a 1,9 > t:50\nop b 9,1 t > u:50\n"
                                     "op c 1,9 u > v:50\nop d 9,1 v > w:0\n");
    moirai_rate_options o = options(1, "loads", 1);
    moirai_rate_figures f = {0};
    moirai_plan *plan = NULL, *curve[12];
    int n;
    o.in_flight = 2;
    o.figures = &f;
    assert_ok(moirai_rate_place(&plan, p, &o));
    assert_int_equal(f.load_ns, 2);
    assert_int_equal(plan->rate->period_ns, 77);
    moirai_rate_figures_clear(&f);
    o.figures = NULL;
    assert_ok(moirai_rate_curve(curve, &n, p, &o));
    assert_int_equal(n, 2);
    assert_int_equal(curve[1]->rate->period_ns, 77);
    for (int i = 0; i < n; i++)
        moirai_plan_free(curve[i]);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_least_load_stays_within_a_limit),
        cmocka_unit_test(test_rate_figures_come_with_the_plan),
        cmocka_unit_test(test_rate_keeps_its_limit),
        cmocka_unit_test(test_rate_curve_within_a_limit),
    };
    return RUN_CASES_AGAIN(2, tests);
}
