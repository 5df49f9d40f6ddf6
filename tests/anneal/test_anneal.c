/* The one loop of annealing: what it accepts, where it ends, and that it finds a valley behind a ridge. */
#include "anneal/anneal.h"
#include "support/check.h"

#include <math.h>

/* A walk on 0 .. 99 over a landscape; steps of one or two. */
typedef struct walk {
    util_rng rng;
    double (*height)(int32_t at);
    int32_t at, before, best;
    int64_t judged, renewed, worse; /* worse: accepted although higher */
    int64_t enough;                 /* judgements; 0: no end */
    double most_above;
} walk;

static double ridge(int32_t at)
{
    return at < 50 ? fabs(at - 20.0) + 10 : fabs(at - 80.0); /* 10 at 20, 39 before 50, 0 at 80 */
}

static double flat(int32_t at)
{
    (void)at;
    return 0;
}

static void renew(void *data)
{
    ((walk *)data)->renewed++;
}

static void move(void *data)
{
    walk *x = data;
    int32_t by = (int32_t)util_rng_below(&x->rng, 5) - 2;
    x->before = x->at;
    x->at = UTIL_MIN(UTIL_MAX(x->at + by, 0), 99);
}

static bool judge(void *data, double above)
{
    walk *x = data;
    double rise = x->height(x->at) - x->height(x->before);
    assert_true(above >= 0);
    x->most_above = fmax(x->most_above, above);
    x->judged++;
    if (rise > above)
        x->at = x->before;
    else
        x->worse += rise > 0;
    if (x->height(x->at) < x->height(x->best))
        x->best = x->at;
    return x->judged != x->enough;
}

static anneal_task task_of(walk *x, double hot, double cold, int64_t steps)
{
    static const util_stop never = {0};
    return (anneal_task){.hot = hot,
                         .cold = cold,
                         .steps = steps,
                         .stride = 10,
                         .rng = &x->rng,
                         .stop = &never,
                         .data = x,
                         .renew = renew,
                         .move = move,
                         .judge = judge};
}

static void test_anneal_crosses_a_ridge_when_hot(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        walk hot = {.height = ridge, .at = 20, .best = 20}, cold = hot;
        util_rng_seed(&hot.rng, seed);
        util_rng_seed(&cold.rng, seed);
        anneal_task warm = task_of(&hot, 30, 0.01, 100000), chill = task_of(&cold, 0.01, 0.01, 100000);
        anneal_run(&warm);
        anneal_run(&chill);
        assert_int_equal(hot.best, 80);
        assert_int_equal(cold.best, 20);           /* the ridge is 29 high */
        assert_true(hot.at == 20 || hot.at == 80); /* cold at the end: at the bottom of a valley */
    }
}

/* Thresholds are exponential with the temperature as mean, so that a rise is accepted with exp(-rise / temperature). */
static void test_anneal_thresholds_follow_the_temperature(void **state)
{
    (void)state;
    walk x = {.height = ridge, .at = 20, .best = 20};
    util_rng_seed(&x.rng, 1);
    anneal_task task = task_of(&x, 1, 1, 100000);
    anneal_run(&task);
    assert_int_equal(x.judged, 100000);
    assert_int_equal(x.renewed, 10000); /* once a stride */
    assert_true(x.most_above > 8 && x.most_above < 25);
    assert_true(x.worse > 5000);
}

static void test_anneal_ends_where_it_is_told(void **state)
{
    (void)state;
    moirai_interrupt interrupt = {0};
    util_stop stop = {.interrupt = &interrupt};
    walk x = {.height = flat, .enough = 7};
    util_rng_seed(&x.rng, 1);
    anneal_task task = task_of(&x, 1, 0.1, 1000);
    anneal_run(&task);
    assert_int_equal(x.judged, 7);
    task.steps = 0;
    anneal_run(&task);
    assert_int_equal(x.judged, 7);
    task.steps = 1000;
    task.stop = &stop;
    moirai_interrupt_raise(&interrupt);
    anneal_run(&task);
    assert_int_equal(x.judged, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anneal_crosses_a_ridge_when_hot),
        cmocka_unit_test(test_anneal_thresholds_follow_the_temperature),
        cmocka_unit_test(test_anneal_ends_where_it_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
