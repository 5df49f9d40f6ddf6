/* Threads, budgets and interrupts: the outcome never depends on the threads, and nothing goes on after it was told to
 * stop. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "support/check.h"
#include "util/pool.h"
#include "util/stop.h"

typedef struct work {
    int32_t n;
    atomic_int done[1000];
    int32_t fails_from; /* jobs from here on fail, each with a message of its own */
    atomic_int running, most;
} work;

static int job(void *data, int32_t i)
{
    work *w = data;
    int now = atomic_fetch_add(&w->running, 1) + 1, most = atomic_load(&w->most);
    while (now > most && !atomic_compare_exchange_weak(&w->most, &most, now))
        continue;
    atomic_fetch_add(&w->done[i], 1);
    atomic_fetch_sub(&w->running, 1);
    return i >= w->fails_from ? moirai_error(i % 2 ? MOIRAI_EINPUT : MOIRAI_EFAIL, "job %d failed", i) : 0;
}

static void test_util_pool_runs_every_job_once(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 7, 0, 200};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        work w = {.n = 1000, .fails_from = INT32_MAX};
        assert_ok(util_pool_run(job, &w, w.n, threads[t]));
        for (int32_t i = 0; i < w.n; i++)
            assert_int_equal(atomic_load(&w.done[i]), 1);
        assert_true(threads[t] == 0 || atomic_load(&w.most) <= threads[t]);
    }
}

static void test_util_pool_of_nothing(void **state)
{
    (void)state;
    work w = {.fails_from = 0};
    assert_ok(util_pool_run(job, &w, 0, 4));
}

/* Whoever fails first in time, the first by number is told, with its message, in the thread that asked. */
static void test_util_pool_tells_the_first_failure_by_number(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 8; threads *= 2)
        for (int32_t from = 17; from <= 18; from++) {
            work w = {.fails_from = from};
            char says[32];
            snprintf(says, sizeof says, "job %d failed", from);
            assert_int_equal(util_pool_run(job, &w, 300, threads), from % 2 ? MOIRAI_EINPUT : MOIRAI_EFAIL);
            assert_string_equal(moirai_error_message(), says);
        }
}

/* ---- budgets ---- */

static void test_util_budget_defaults_and_checks(void **state)
{
    (void)state;
    moirai_budget b;
    moirai_budget_init(&b);
    assert_true(b.effort == 1 && b.time_limit_s == 0 && b.threads == 0 && b.seed == 1 && !b.interrupt && !b.progress);
    assert_ok(moirai_budget_check(&b));
    b.effort = -1;
    assert_int_equal(moirai_budget_check(&b), MOIRAI_EUSAGE);
    b.effort = NAN;
    assert_int_equal(moirai_budget_check(&b), MOIRAI_EUSAGE);
    b.effort = 2e6;
    assert_int_equal(moirai_budget_check(&b), MOIRAI_EUSAGE);
    assert_non_null(strstr(moirai_error_message(), "2e+06"));
    moirai_budget_init(&b);
    b.time_limit_s = -0.5;
    assert_int_equal(moirai_budget_check(&b), MOIRAI_EUSAGE);
    assert_non_null(strstr(moirai_error_message(), "-0.5"));
    moirai_budget_init(&b);
    b.threads = -1;
    assert_int_equal(moirai_budget_check(&b), MOIRAI_EUSAGE);
}

static void *raise_it(void *data)
{
    moirai_interrupt_raise(data);
    return NULL;
}

static void test_util_stop_by_interrupt(void **state)
{
    (void)state;
    moirai_interrupt interrupt = {0};
    moirai_budget b;
    moirai_budget_init(&b);
    b.interrupt = &interrupt;
    util_stop stop = util_stop_of(&b), never = {0};
    assert_false(util_stopped(&never));
    assert_false(moirai_interrupt_raised(NULL));
    assert_false(util_stopped(&stop));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, raise_it, &interrupt), 0);
    pthread_join(thread, NULL);
    assert_true(moirai_interrupt_raised(&interrupt));
    assert_true(util_stopped(&stop));
}

/* Deadlines far away and long gone: no test waits for a clock. */
static void test_util_stop_by_time(void **state)
{
    (void)state;
    moirai_budget b;
    moirai_budget_init(&b);
    b.time_limit_s = 1000;
    util_stop stop = util_stop_of(&b), gone = {.deadline = 1e-9}, open = {0};
    assert_false(util_stopped(&stop));
    assert_true(util_stop_left_s(&stop) > 900 && util_stop_left_s(&stop) <= 1000);
    assert_true(util_stopped(&gone));
    assert_true(util_stop_left_s(&gone) == 0);
    assert_true(isinf(util_stop_left_s(&open)));
    util_stop sooner = util_stop_within(&stop, 10), later = util_stop_within(&stop, 5000),
              first = util_stop_within(&open, 10);
    assert_true(util_stop_left_s(&sooner) <= 10);
    assert_true(later.deadline == stop.deadline);
    assert_true(util_stop_left_s(&first) <= 10 && first.deadline > 0);
}

static void quiet(void *data, const moirai_progress *news)
{
    (void)data;
    (void)news;
}

/* A part of the work gets the time that is left, the same effort, and no progress; 0 would mean without end. */
static void test_util_stop_rest_of_a_budget(void **state)
{
    (void)state;
    moirai_interrupt interrupt = {0};
    int data;
    moirai_budget b = {
        .effort = 0.5, .time_limit_s = 1000, .threads = 3, .seed = 9, .progress = quiet, .progress_data = &data};
    b.interrupt = &interrupt;
    util_stop stop = util_stop_of(&b), gone = {.deadline = 1e-9}, open = {0};
    moirai_budget rest = util_stop_rest(&stop, &b), none = util_stop_rest(&gone, &b), all = util_stop_rest(&open, &b);
    assert_true(rest.effort == 0.5 && rest.threads == 3 && rest.seed == 9 && !rest.progress && !rest.progress_data);
    assert_ptr_equal(rest.interrupt, &interrupt);
    assert_true(rest.time_limit_s > 900 && rest.time_limit_s <= 1000);
    assert_true(none.time_limit_s > 0 && none.time_limit_s < 0.1);
    assert_true(all.time_limit_s == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_util_pool_runs_every_job_once),
        cmocka_unit_test(test_util_pool_of_nothing),
        cmocka_unit_test(test_util_pool_tells_the_first_failure_by_number),
        cmocka_unit_test(test_util_budget_defaults_and_checks),
        cmocka_unit_test(test_util_stop_by_interrupt),
        cmocka_unit_test(test_util_stop_by_time),
        cmocka_unit_test(test_util_stop_rest_of_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
