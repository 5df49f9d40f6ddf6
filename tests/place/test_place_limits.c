/* Limits are kept, counted in work instead of seconds.
 *
 * The clock is ours: it goes on by what the placer does, a simulation by its operators, a linear programme by its
 * columns, a look at the clock by a little. A phase that does not look at the limit goes on working, so it is late by
 * this clock on any machine, however busy that is; the prices of work are set so that a second of it is about one of a
 * real machine. What works without calling anything that is priced here does not count: bench/bench_promises measures
 * seconds. */
#include "lp/simplex.h"
#include "place/list/lp_whole.h"
#include "pricing/pricer.h"
#include "place/list/etf_queue.h"
#include "place/list/insert.h"
#include "place/placers.h"
#include "place/moirai/whole/whole_sim.h"
#include "relax/messages.h"
#include "support/check.h"
#include "support/scale.h"
#include "support/shapes.h"
#include "util/util.h"

#include <moirai/moirai.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define LIMIT_S 0.2
#define PROMISE_S (1.05 * LIMIT_S + 0.1) /* stricter than the 0.3 s of real time */
#define ANSWER_S 0.1

static double now_s, raise_at_s;
static int64_t n_dispatched;
static moirai_interrupt interrupt;

static void work(double us)
{
    now_s += 1e-6 * us;
    if (raise_at_s > 0 && now_s > raise_at_s)
        moirai_interrupt_raise(&interrupt);
}

double util_seconds(void) /* instead of util/clock.c */
{
    work(50);
    return now_s;
}

double util_cpu_seconds(void)
{
    return now_s;
}

/* What the linker puts before the functions of these names (tests/CMakeLists.txt). */
int64_t __real_moirai_sim_replay(moirai_sim *, const int32_t *, const moirai_task *, int64_t);
int64_t __wrap_moirai_sim_replay(moirai_sim *, const int32_t *, const moirai_task *, int64_t);
int64_t __real_moirai_sim_dispatch(moirai_sim *, const int32_t *, const int64_t *);
int64_t __wrap_moirai_sim_dispatch(moirai_sim *, const int32_t *, const int64_t *);
int __real_moirai_sim_new(moirai_sim **, const moirai_problem *);
int __wrap_moirai_sim_new(moirai_sim **, const moirai_problem *);
int __real_moirai_plan_check(const moirai_problem *, const moirai_plan *, moirai_report_fn, void *);
int __wrap_moirai_plan_check(const moirai_problem *, const moirai_plan *, moirai_report_fn, void *);
int64_t __real_place_insert_try(place_insert *, int32_t, int32_t, int64_t);
int64_t __wrap_place_insert_try(place_insert *, int32_t, int32_t, int64_t);
int __real_place_queue_push(place_queue *, place_entry);
int __wrap_place_queue_push(place_queue *, place_entry);
int64_t __real_place_whole_try(place_whole *, int64_t);
int64_t __wrap_place_whole_try(place_whole *, int64_t);
int64_t __real_pricing_pricer_cost(pricing_pricer *, const pricing_prices *, pricing_column_fn, void *);
int64_t __wrap_pricing_pricer_cost(pricing_pricer *, const pricing_prices *, pricing_column_fn, void *);
int __real_pricing_simplex_solve(pricing_simplex *, const util_stop *, double *, double *, double *);
int __wrap_pricing_simplex_solve(pricing_simplex *, const util_stop *, double *, double *, double *);
void __real_relax_set_costs(relax_state *);
void __wrap_relax_set_costs(relax_state *);
bool __real_relax_sweep(relax_state *, const util_stop *);
bool __wrap_relax_sweep(relax_state *, const util_stop *);

int64_t __wrap_moirai_sim_replay(moirai_sim *sim, const int32_t *device, const moirai_task *order, int64_t n)
{
    work(0.05 * (double)n);
    return __real_moirai_sim_replay(sim, device, order, n);
}

int64_t __wrap_moirai_sim_dispatch(moirai_sim *sim, const int32_t *device, const int64_t *priority)
{
    int64_t ns = __real_moirai_sim_dispatch(sim, device, priority);
    n_dispatched++;
    const moirai_task *order;
    work(0.2 * (double)(ns < 0 ? 1 : moirai_sim_order(sim, &order)));
    return ns;
}

int __wrap_moirai_sim_new(moirai_sim **out, const moirai_problem *p)
{
    work(0.2 * p->n_ops);
    return __real_moirai_sim_new(out, p);
}

int __wrap_moirai_plan_check(const moirai_problem *p, const moirai_plan *plan, moirai_report_fn report, void *data)
{
    work(0.3 * (p->n_ops + plan->n_transfers));
    return __real_moirai_plan_check(p, plan, report, data);
}

int64_t __wrap_place_insert_try(place_insert *x, int32_t op, int32_t k, int64_t limit_ns)
{
    work(0.3);
    return __real_place_insert_try(x, op, k, limit_ns);
}

int __wrap_place_queue_push(place_queue *q, place_entry x)
{
    work(0.1);
    return __real_place_queue_push(q, x);
}

int64_t __wrap_place_whole_try(place_whole *w, int64_t limit_ns)
{
    work(2);
    return __real_place_whole_try(w, limit_ns);
}

int64_t __wrap_pricing_pricer_cost(pricing_pricer *w, const pricing_prices *prices, pricing_column_fn column,
                                   void *data)
{
    work(200);
    return __real_pricing_pricer_cost(w, prices, column, data);
}

int __wrap_pricing_simplex_solve(pricing_simplex *lp, const util_stop *stop, double *objective, double *dual,
                                 double *primal)
{
    work(500);
    return __real_pricing_simplex_solve(lp, stop, objective, dual, primal);
}

/* Every edge between every two devices, forwards and backwards. */
static double sweep_us(const relax_state *s)
{
    return 2e-3 * (double)s->n_messages * s->v->K;
}

void __wrap_relax_set_costs(relax_state *s)
{
    work(sweep_us(s) / 2);
    __real_relax_set_costs(s);
}

bool __wrap_relax_sweep(relax_state *s, const util_stop *stop)
{
    bool whole = __real_relax_sweep(s, stop);
    work(whole ? sweep_us(s) : 0); /* one that ends early does so at once: this clock does not go on within it */
    return whole;
}

/* Time taken by our clock, until the limit or from the interrupt on. */
static double placing_s(const moirai_problem *p, const char *placer, bool interrupted)
{
    moirai_place_options o;
    moirai_plan *plan = NULL;
    moirai_place_options_init(&o);
    o.gap = 0;
    o.budget.threads = 1; /* the clock is one thread's */
    o.budget.interrupt = &interrupt;
    o.budget.time_limit_s = interrupted ? 0 : LIMIT_S;
    interrupt = (moirai_interrupt){0};
    now_s = 1;
    raise_at_s = interrupted ? now_s + LIMIT_S / 4 : 0;
    assert_ok(moirai_place(&plan, p, placer, &o));
    assert_ok(__real_moirai_plan_check(p, plan, NULL, NULL));
    moirai_plan_free(plan);
    return now_s - (interrupted ? raise_at_s : 1);
}

static void check_cell(const char *shape, int32_t n, int devices, const char *placer)
{
    moirai_problem *p;
    assert_ok(shape_problem(&p, shape, n, devices));
    double taken = placing_s(p, placer, false), answer = placing_s(p, placer, true);
    print_message("%-12s %6d operators, %2d devices, %s: %.3f s of %.2f, answer %.3f s\n", shape, n, devices, placer,
                  taken, LIMIT_S, answer > 0 ? answer : 0);
    if (taken > PROMISE_S)
        fail_msg("%s of %d operators on %d devices: %s took %.3f s of %.2f", shape, n, devices, placer, taken, LIMIT_S);
    if (answer > ANSWER_S)
        fail_msg("%s of %d operators on %d devices: %s answered after %.3f s", shape, n, devices, placer, answer);
    moirai_problem_free(p);
}

static void test_limits_of_small_problems(void **state)
{
    (void)state;
    for (int s = 0; s < TEST_SHARE(SHAPES); s++)
        for (int k = 4; k <= 64; k *= 16)
            check_cell(shape_name[s], 100, k, "moirai");
}

static void test_limits_of_large_problems(void **state)
{
    (void)state;
    for (int s = SHAPES - TEST_SHARE(SHAPES); s < SHAPES; s++)
        for (int k = 4; k <= 64; k *= 16)
            check_cell(shape_name[s], TEST_SHARE(3000), k, "moirai");
}

static void test_limits_of_list_placers(void **state)
{
    (void)state;
    static const char *const placer[] = {"heft", "m-etf"};
    for (size_t i = 0; i < sizeof placer / sizeof *placer; i++)
        check_cell("layered", 3000, 16, placer[i]);
}

/* All are ready at once, and each is offered to every device before the first is placed. */
static void test_limits_of_operators_side_by_side(void **state)
{
    (void)state;
    moirai_problem *p;
    moirai_plan *plan = NULL;
    moirai_place_options o;
    assert_ok(shape_problem(&p, "side", 40000, 64));
    moirai_place_options_init(&o);
    o.budget.time_limit_s = LIMIT_S / 4;
    now_s = 1;
    raise_at_s = 0;
    assert_int_equal(moirai_place(&plan, p, "m-etf", &o), MOIRAI_ELIMIT);
    if (now_s - 1 > PROMISE_S / 2)
        fail_msg("the end of %.2f s was seen after %.3f s", LIMIT_S / 4, now_s - 1);
    moirai_problem_free(p);
}

/* One operator reads what no device has room for: ever other devices and orders are tried, but not longer than was asked for. */
static void test_limits_of_memory_that_is_short(void **state)
{
    (void)state;
    static const char *const placer[] = {"m-topo", "random", "moirai"};
    moirai_problem *p;
    int64_t bytes = 0;
    assert_ok(shape_problem(&p, "into-one", 20000, 32));
    p->memory = MOIRAI_MEMORY_PEAK;
    for (int32_t t = 0; t < p->n_tensors; t++)
        bytes += p->tensor_bytes[t];
    for (int32_t i = 0; i < p->n_ops; i++)
        p->op_memory_bytes[i] = 0;
    for (int32_t k = 0; k < p->n_devices; k++)
        p->device_memory_bytes[k] = bytes / 2;
    for (size_t i = 0; i < sizeof placer / sizeof *placer; i++) {
        moirai_plan *plan = NULL;
        moirai_place_options o;
        moirai_place_options_init(&o);
        o.budget.time_limit_s = LIMIT_S;
        o.budget.threads = 1;
        now_s = 1;
        raise_at_s = 0;
        assert_int_equal(moirai_place(&plan, p, placer[i], &o), MOIRAI_EINFEASIBLE);
        assert_non_null(strstr(moirai_error_message(), "short"));
        if (now_s - 1 > PROMISE_S)
            fail_msg("%s took %.3f s of %.2f", placer[i], now_s - 1, LIMIT_S);
    }
    moirai_problem_free(p);
}

/* A plan and its certificate within the limit, by our clock. */
static moirai_plan *certified_plan(double *taken_s, const moirai_problem *p, double limit_s)
{
    moirai_place_options o;
    moirai_plan *plan = NULL;
    char path[] = "/tmp/moirai-test-limits-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    moirai_place_options_init(&o);
    o.gap = 0;
    o.budget.threads = 1;
    o.budget.time_limit_s = limit_s;
    o.certificate_path = path;
    raise_at_s = 0;
    now_s = 1;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    *taken_s = now_s - 1;
    unlink(path);
    return plan;
}

/* The certificate is written and proven within the limit; where there is no time to write the problem for the verifier,
 * nothing is certified, and the plan says why. */
static void test_limits_hold_with_certificates(void **state)
{
    (void)state;
    double taken = 0;
    moirai_problem *p;
    for (int s = 0; s < 3; s += 2) { /* chain, layered */
        assert_ok(shape_problem(&p, shape_name[s], 3000, 16));
        moirai_plan *plan = certified_plan(&taken, p, LIMIT_S);
        if (taken > PROMISE_S)
            fail_msg("%s with a certificate took %.3f s of %.2f", shape_name[s], taken, LIMIT_S);
        moirai_plan_free(plan);
        plan = certified_plan(&taken, p, 20 * LIMIT_S);
        assert_true(plan->certified_bound_ns > 0 && !(plan->uncertified & MOIRAI_UNCERTIFIED_LIMIT));
        moirai_plan_free(plan);
        plan = certified_plan(&taken, p, LIMIT_S / 10);
        assert_int_equal(plan->certified_bound_ns, 0);
        assert_int_equal(plan->uncertified, MOIRAI_UNCERTIFIED_LIMIT);
        moirai_plan_free(plan);
        plan = certified_plan(&taken, p,
                              1e-5); /* over before the problem is written: what is left was none, that is, no limit */
        if (taken > PROMISE_S)
            fail_msg("%s with a certificate took %.3f s of 0.00001", shape_name[s], taken);
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
}

/* Where any of 100,000 operators may read any, with tight peak memory, m-topo makes the first plan. When the time is up, it is not dispatched; with
 * time for it, it is. */
static void test_limits_of_the_first_plan(void **state)
{
    (void)state;
    moirai_problem *p;
    assert_ok(shape_problem(&p, "one-block", 100000, 16));
    p->memory = MOIRAI_MEMORY_PEAK;
    for (int late = 0; late < 2; late++) {
        moirai_plan *plan = NULL;
        raise_at_s = 0;
        now_s = 1;
        util_stop stop = {.deadline = late ? 0.5 : 0};
        int64_t before = n_dispatched;
        assert_ok(place_m_topo_within(&plan, p, &stop, false));
        assert_int_equal(n_dispatched - before, !late);
        assert_ok(moirai_plan_check(p, plan, NULL, NULL));
        moirai_plan_free(plan);
    }
    moirai_problem_free(p);
}

static bool count_looks(void *data, double bound, int64_t nodes)
{
    (void)bound;
    (void)nodes;
    ++*(int32_t *)data;
    return true;
}

/* Presolve has used up a limit that is so short, and HiGHS goes on without one: our clock ends it after a few looks. */
static void test_limits_of_the_interior_point(void **state)
{
    (void)state;
    const char *why;
    enum { OPS = 4000, DEVICES = 4 };
    lp_whole lp = {0};
    lp_whole_answer answer = {0};
    util_rng rng;
    if (!lp_whole_available(&why))
        skip();
    util_rng_seed(&rng, 5);
    assert_ok(lp_whole_reserve(&lp, OPS * DEVICES + 1, OPS + DEVICES, 3 * OPS * DEVICES));
    for (int32_t c = 0; c < OPS * DEVICES; c++)
        lp_whole_column(&lp, 0, 0, 1);
    int32_t length = lp_whole_column(&lp, 1, 0, HUGE_VAL);
    for (int32_t i = 0; i < OPS; i++) {
        lp_whole_row(&lp, 1, 1);
        for (int32_t k = 0; k < DEVICES; k++)
            lp_whole_term(&lp, i * DEVICES + k, 1);
    }
    for (int32_t k = 0; k < DEVICES; k++) {
        lp_whole_row(&lp, 0, HUGE_VAL);
        lp_whole_term(&lp, length, 1);
        for (int32_t i = 0; i < OPS; i++)
            lp_whole_term(&lp, i * DEVICES + k, -1 - (double)util_rng_below(&rng, 1000));
    }
    raise_at_s = 0;
    now_s = 1;
    int32_t looks = 0;
    lp_whole_task task = {
        .method = LP_INTERIOR, .presolve = true, .stop = {.deadline = 1.0005}, .data = &looks, .keep_on = count_looks};
    assert_ok(lp_whole_solve(&answer, &lp, &task));
    assert_int_equal(answer.end, LP_STOPPED);
    assert_in_range(looks, 0, 10);
    free(answer.column);
    free(answer.row_dual);
    lp_whole_clear(&lp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_of_small_problems),       cmocka_unit_test(test_limits_of_large_problems),
        cmocka_unit_test(test_limits_of_list_placers),         cmocka_unit_test(test_limits_of_operators_side_by_side),
        cmocka_unit_test(test_limits_of_memory_that_is_short), cmocka_unit_test(test_limits_hold_with_certificates),
        cmocka_unit_test(test_limits_of_the_first_plan),       cmocka_unit_test(test_limits_of_the_interior_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
