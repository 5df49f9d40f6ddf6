/* The analysis against what can be counted by hand on random plans. */
#include "support/analysed.h"
#include "support/check.h"
#include "support/scale.h"
#include "support/tiny.h"

#include <inttypes.h>
#include <moirai/moirai.h>
#include <unistd.h>

/* When tensor t is on device d, looked up the slow way. */
static int64_t there_at(const analysed *s, int32_t t, int32_t reader, int32_t d)
{
    int32_t producer = s->p->tensor_producer[t];
    if (s->plan->op_device[producer] == d)
        return s->plan->op_finish_ns[producer];
    for (int32_t x = 0; x < s->plan->n_transfers; x++) {
        const moirai_transfer *y = &s->plan->transfer[x];
        if (y->tensor == t && y->to == d && (y->reader == MOIRAI_NONE || y->reader == reader))
            return y->finish_ns;
    }
    fail_msg("a tensor that is read never comes");
    return -1;
}

/* Nanoseconds of [from, to) in which operator or transfer `task` could not start, counted one by one where short. */
static int64_t taken(const analysed *s, int32_t task, int64_t from, int64_t to)
{
    int32_t n_ops = s->plan->n_ops;
    int64_t sum = 0, at = from;
    while (at < to) { /* to the next moment at which something changes */
        int64_t next = to;
        bool busy = false;
        for (int32_t j = 0; j < n_ops + s->plan->n_transfers; j++) {
            bool op = j < n_ops;
            const moirai_transfer *y = op ? NULL : &s->plan->transfer[j - n_ops],
                                  *mine = task < n_ops ? NULL : &s->plan->transfer[task - n_ops];
            if (op != (task < n_ops) || j == task)
                continue;
            if (op && s->plan->op_device[j] != s->plan->op_device[task])
                continue;
            if (!op && s->p->congestion == MOIRAI_CONGESTION_NONE)
                continue;
            if (!op && s->p->congestion == MOIRAI_CONGESTION_PORT && y->from != mine->from && y->to != mine->to)
                continue;
            if (!op && s->p->congestion == MOIRAI_CONGESTION_CHANNEL && (y->from != mine->from || y->to != mine->to))
                continue;
            int64_t a = op ? s->plan->op_start_ns[j] : y->start_ns, b = op ? s->plan->op_finish_ns[j] : y->finish_ns;
            if (a <= at && at < b) {
                busy = true;
                next = b < next ? b : next;
            } else if (a > at && a < next && b > a) {
                next = a;
            }
        }
        sum += busy ? next - at : 0;
        at = next;
    }
    return sum;
}

static void test_analysis_delays_are_what_counting_gives(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(120); seed++) {
        analysed s;
        if (!analysed_draw(&s, seed))
            continue;
        for (int32_t i = 0; i < s.p->n_ops; i++) {
            int64_t ready = 0;
            for (int32_t j = s.p->op_in_off[i]; j < s.p->op_in_off[i + 1]; j++) {
                int64_t there = there_at(&s, s.p->op_in[j], i, s.plan->op_device[i]);
                ready = there > ready ? there : ready;
            }
            assert_true(s.a->delay[i].ready_ns == ready);
        }
        for (int32_t task = 0; task < s.a->n_ops + s.a->n_transfers; task++) {
            const moirai_delay *d = &s.a->delay[task];
            int64_t start = moirai_task_start(s.a, task);
            assert_true(d->busy_ns == taken(&s, task, d->ready_ns, start));
            assert_true(d->held_ns == start - d->ready_ns - d->busy_ns && d->held_ns >= 0);
            assert_true((d->behind != MOIRAI_NONE) == (d->busy_ns > 0));
        }
        analysed_close(&s);
    }
}

static void test_analysis_path_fills_the_makespan(void **state)
{
    (void)state;
    int64_t seen[MOIRAI_SHARES] = {0};
    for (uint64_t seed = 1; seed <= TEST_SHARE(200); seed++) {
        analysed s;
        if (!analysed_draw(&s, seed))
            continue;
        const moirai_analysis *a = s.a;
        int64_t sum = 0, now = 0;
        for (int k = 0; k < MOIRAI_SHARES; k++) {
            sum += a->share_ns[k];
            seen[k] += a->share_ns[k];
        }
        assert_true(sum == s.plan->makespan_ns);
        for (int32_t i = 0; i < a->n_steps; i++) { /* each step begins where the one before ended */
            const moirai_delay *d = &a->delay[a->step[i]];
            int32_t before = i ? a->step[i - 1] : MOIRAI_NONE;
            assert_true(before == d->cause ? d->ready_ns == now : before == d->behind && d->busy_ns > 0);
            assert_true(moirai_task_start(a, a->step[i]) >= now);
            assert_true(a->on_path[a->step[i]]);
            now = moirai_task_finish(a, a->step[i]);
        }
        assert_true(now == s.plan->makespan_ns);
        analysed_close(&s);
    }
    for (int k = 0; k < MOIRAI_SHARES; k++)
        assert_true(seen[k] > 0);
}

/* B runs `long` first, and `last` waits for it: along inputs, the path waits 70 of 100 ns for a device that never rests.
 * Shown is the one that says what keeps it busy. */
static void test_analysis_path_explains_a_busy_device(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 100\n"
                                     "device B 100\n"
                                     "op a 5,- > x:5\n"
                                     "op long -,80 > y:0\n"
                                     "op last -,20 x > z:0\n");
    moirai_plan *plan = tiny_place(p, "m-topo");
    moirai_analysis *a;
    assert_int_equal(plan->makespan_ns, 100);
    assert_ok(moirai_analysis_new(&a, p, plan, NULL));
    assert_int_equal(a->share_ns[MOIRAI_SHARE_COMPUTE], 100);
    assert_int_equal(a->share_ns[MOIRAI_SHARE_DEVICE], 0);
    assert_int_equal(a->n_steps, 2);
    assert_int_equal(a->step[0], tiny_op(p, "long"));
    moirai_analysis_free(a);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* The line of the verdict that begins so; fails the test where there is none. */
static const char *verdict_line(const moirai_analysis *a, const char *begin)
{
    for (int i = 0; i < a->n_verdict; i++)
        if (!strncmp(a->verdict[i], begin, strlen(begin)))
            return a->verdict[i];
    fail_msg("no line of the verdict begins with '%s'", begin);
    return "";
}

static void assert_limit(const char *problem, const char *expected)
{
    moirai_problem *p = tiny_problem(problem);
    moirai_plan *plan = tiny_place(p, "m-topo");
    moirai_analysis *a;
    assert_ok(moirai_analysis_new(&a, p, plan, NULL));
    assert_string_equal(verdict_line(a, "limited by"), expected);
    moirai_analysis_free(a);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* A chain that waits for a device is not only a chain, and a device that is busy is not all where the path is elsewhere. */
static void test_analysis_limit_tells_all_of_it(void **state)
{
    (void)state;
    assert_limit("device A 100\n"
                 "device B 100\n"
                 "op o 40,- > w:0\n"
                 "op a -,10 > x:0\n"
                 "op b 40,- x > y:0\n"
                 "op c -,60 y > z:0\n",
                 "limited by a chain of operators, each waiting for the one before: computing is 79 % of the critical "
                 "path, most of it on B (50 %); 21 % of it waits for a device that runs others, mostly A");
    assert_limit(
        "device A 100\n"
        "device B 100\n"
        "device C 100\n"
        "op o 95,-,- > w:0\n"
        "op b -,50,- > x:0\n"
        "op c -,-,50 x > y:0\n",
        "limited by the work on A, which is busy 95 % of the time, and by a chain of operators elsewhere: 0 % of "
        "the critical path is on A");
}

static void test_analysis_memory_is_the_plans(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(120); seed++) {
        analysed s;
        if (!analysed_draw(&s, seed))
            continue;
        for (int32_t k = 0; k < s.p->n_devices; k++) {
            assert_true(s.a->resident_bytes[k] == s.plan->device_memory_bytes[k]);
            assert_true(s.a->peak_bytes[k] == s.plan->device_peak_bytes[k]);
            assert_true(s.a->busy_ns[k] == s.plan->device_busy_ns[k]);
            for (int32_t j = s.a->memory_off[k]; j + 1 < s.a->memory_off[k + 1]; j++)
                assert_true(s.a->memory_ns[j] < s.a->memory_ns[j + 1]);
        }
        analysed_close(&s);
    }
}

static void test_analysis_refuses_a_wrong_plan(void **state)
{
    (void)state;
    analysed s;
    moirai_analysis *a;
    assert_true(analysed_draw(&s, 2) && s.plan->n_ops > 0);
    s.plan->op_finish_ns[0]++;
    assert_int_equal(moirai_analysis_new(&a, s.p, s.plan, NULL), MOIRAI_EFAIL);
    assert_null(a);
    assert_non_null(strstr(moirai_error_message(), "breaks the rules"));
    analysed_close(&s);
}

/* Moving an operator is what simulating the moved plan gives. */
static void test_explain_op_is_a_simulation(void **state)
{
    (void)state;
    int moved = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(40); seed++) {
        analysed s;
        moirai_elsewhere where[MOIRAI_MAX_DEVICES];
        char text[600];
        if (!analysed_draw(&s, seed * 4 + 1) || !s.p->n_ops)
            continue;
        for (int32_t op = 0; op < s.p->n_ops; op += 5) {
            assert_ok(moirai_explain_op(where, s.a, op));
            for (int32_t d = 0; d < s.p->n_devices; d++) {
                assert_true((where[d].makespan_ns >= 0) == (s.p->op_devices[op] >> d & 1));
                moirai_plan *copy, *again;
                if (where[d].makespan_ns < 0 || s.p->op_group[op] != MOIRAI_NONE || s.p->memory == MOIRAI_MEMORY_PEAK ||
                    d == s.plan->op_device[op])
                    continue;
                assert_ok(moirai_plan_copy(&copy, s.plan));
                copy->op_device[op] = d;
                assert_ok(moirai_plan_tighten(&again, s.p, copy));
                assert_true(again->makespan_ns == where[d].makespan_ns);
                moirai_plan_free(copy);
                moirai_plan_free(again);
                moved++;
            }
            moirai_explain_op_text(text, sizeof text, s.a, op, where);
            assert_non_null(strstr(text, s.p->op_name[op]));
        }
        analysed_close(&s);
    }
    assert_true(moved > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_analysis_delays_are_what_counting_gives),
        cmocka_unit_test(test_analysis_path_fills_the_makespan),
        cmocka_unit_test(test_analysis_path_explains_a_busy_device),
        cmocka_unit_test(test_analysis_limit_tells_all_of_it),
        cmocka_unit_test(test_analysis_memory_is_the_plans),
        cmocka_unit_test(test_analysis_refuses_a_wrong_plan),
        cmocka_unit_test(test_explain_op_is_a_simulation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
