/* The simulator on schedules drawn by hand: who goes first on devices, ports and channels, what is alive when; plain
 * bounds; orders. */
#include "schedule/plan_order.h"
#include "schedule/sim.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"

typedef struct fixture {
    moirai_problem *p;
    moirai_sim *sim;
} fixture;

static void open_sim(fixture *f, const char *text)
{
    f->p = tiny_problem(text);
    assert_ok(moirai_sim_new(&f->sim, f->p));
}

static void close_sim(fixture *f)
{
    moirai_sim_free(f->sim);
    moirai_problem_free(f->p);
}

/* Dispatches with devices as letters in the problem's order, "ABA"; priorities by name order where given. */
static int64_t dispatch(fixture *f, const char *devices, const int64_t *priority)
{
    int32_t device[32];
    for (int32_t i = 0; i < f->p->n_ops; i++)
        device[i] = devices[i] - 'A';
    return moirai_sim_dispatch(f->sim, device, priority);
}

static int64_t start(const fixture *f, const char *op)
{
    return moirai_sim_op_start(f->sim)[tiny_op(f->p, op)];
}

/* ---- dispatch ---- */

static void test_schedule_dispatch_takes_the_most_urgent(void **state)
{
    (void)state;
    fixture f;
    int64_t first_b[] = {1, 9}, equal[] = {5, 5};
    open_sim(&f, "device A 9\nop a 3\nop b 4\n");
    assert_int_equal(dispatch(&f, "AA", first_b), 7);
    assert_int_equal(start(&f, "b"), 0);
    assert_int_equal(start(&f, "a"), 4);
    assert_int_equal(dispatch(&f, "AA", equal), 7); /* ties by topological rank */
    assert_int_equal(start(&f, "a"), 0);
    close_sim(&f);
}

/* Without priorities the longest remaining path goes first: b leads to 20 more. */
static void test_schedule_dispatch_by_upward_ranks(void **state)
{
    (void)state;
    fixture f;
    open_sim(&f, "device A 9\nop a 5 > s:0\nop b 5 > t:0\nop c 1 s\nop d 20 t\n");
    assert_int_equal(dispatch(&f, "AAAA", NULL), 31);
    assert_int_equal(start(&f, "b"), 0);
    close_sim(&f);
}

/* One tensor to two readers on B: once or twice through the port. */
static void test_schedule_flow_decides_how_often_it_is_sent(void **state)
{
    (void)state;
    fixture f;
    open_sim(&f, "flow tensor\ndevice A 9\ndevice B 9\nop a 1,1 > s:10\nop b 2,2 s\nop c 2,2 s\n");
    assert_int_equal(dispatch(&f, "ABB", NULL), 1 + 10 + 4);
    close_sim(&f);
    open_sim(&f, "flow edge\ndevice A 9\ndevice B 9\nop a 1,1 > s:10\nop b 2,2 s\nop c 2,2 s\n");
    assert_int_equal(dispatch(&f, "ABB", NULL), 1 + 20 + 2);
    close_sim(&f);
}

/* Two tensors leave A, for B and C: a port sends one at a time, the urgent one first. */
static void test_schedule_congestion_by_hand(void **state)
{
    (void)state;
    static const char fan[] =
        "device A 9\ndevice B 9\ndevice C 9\nop a 1,1,1 > s:10 t:10\nop b 2,2,2 s\nop c 50,50,50 t\n";
    char text[256];
    fixture f;
    snprintf(text, sizeof text, "congestion port\n%s", fan);
    open_sim(&f, text);
    assert_int_equal(dispatch(&f, "ABC", NULL), 1 + 10 + 50); /* t first: c takes long */
    assert_int_equal(start(&f, "c"), 11);
    assert_int_equal(start(&f, "b"), 21);
    close_sim(&f);
    snprintf(text, sizeof text, "congestion channel\n%s", fan);
    open_sim(&f, text);
    dispatch(&f, "ABC", NULL);
    assert_int_equal(start(&f, "b"), 11);
    assert_int_equal(start(&f, "c"), 11);
    dispatch(&f, "ABB", NULL); /* one channel for both now */
    assert_int_equal(start(&f, "b") == 11 || start(&f, "c") == 11, 1);
    assert_int_equal(start(&f, "b") != start(&f, "c"), 1);
    close_sim(&f);
    snprintf(text, sizeof text, "congestion none\n%s", fan);
    open_sim(&f, text);
    assert_int_equal(dispatch(&f, "ABB", NULL), 11 + 52);
    close_sim(&f);
    snprintf(text, sizeof text, "congestion device\n%s", fan);
    open_sim(&f, text);
    assert_int_equal(dispatch(&f, "ABC", NULL), 1 + 10 + 50); /* t first, as with ports */
    assert_int_equal(start(&f, "b"), 21);
    assert_int_equal(dispatch(&f, "ABA", NULL), 1 + 50 + 10 + 2); /* c on A is more urgent than sending s from there */
    assert_int_equal(dispatch(&f, "AAC", NULL), 1 + 10 + 50);     /* b waits until t has left A */
    assert_int_equal(start(&f, "b"), 11);
    close_sim(&f);
}

static void test_schedule_refuses_devices_that_are_not_allowed(void **state)
{
    (void)state;
    fixture f;
    open_sim(&f, "device A 9\ndevice B 9\nop a 1,- group=g\nop b 1,1 group=g\nop c 1,1\n");
    assert_int_equal(dispatch(&f, "AAB", NULL), 1 + 1);
    assert_int_equal(dispatch(&f, "BAB", NULL), -1);
    assert_int_equal(dispatch(&f, "ABB", NULL), -1); /* a group on two devices */
    close_sim(&f);
}

/* ---- replay ---- */

/* Orders as given: b before a on A, although a is more urgent; the transfer where it stands. */
static void test_schedule_replay_follows_the_order(void **state)
{
    (void)state;
    fixture f;
    open_sim(&f, "device A 9\ndevice B 9\nop a 5,5 > s:4\nop b 7,7\nop c 2,2 s\n");
    int32_t device[] = {0, 0, 1};
    moirai_task send = f.p->n_ops + 0 * 2 + 1; /* tensor 0 to device 1 */
    moirai_task order[] = {1, 0, send, 2}, lazy[] = {1, 0, 2};
    assert_int_equal(moirai_sim_replay(f.sim, device, order, 4), 7 + 5 + 4 + 2);
    assert_int_equal(moirai_sim_replay(f.sim, device, lazy, 3), 18); /* what is missing is sent before its reader */
    const moirai_task *back;
    assert_int_equal(moirai_sim_order(f.sim, &back), 4);
    assert_true(back[0] == 1 && back[1] == 0 && back[2] == send && back[3] == 2);
    device[2] = 0;
    assert_int_equal(moirai_sim_replay(f.sim, device, order, 4), 14); /* not needed: skipped */
    close_sim(&f);
}

/* Sorted by start, a schedule replays to itself or better: here the gap before c closes. */
static void test_schedule_tighten_closes_gaps(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\nop a 5 > s:0\nop b 7 s\n");
    moirai_plan *plan = tiny_place(p, "single"), *tight;
    plan->op_start_ns[1] += 100;
    plan->op_finish_ns[1] += 100;
    plan->makespan_ns += 100;
    assert_ok(moirai_plan_tighten(&tight, p, plan));
    assert_int_equal(tight->makespan_ns, 12);
    assert_ok(moirai_plan_check(p, tight, NULL, NULL));
    moirai_plan_free(tight);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* With a window of one operator nothing overlaps: fewer tensors are alive, and it takes longer. */
static void test_schedule_windows_trade_time_for_memory(void **state)
{
    (void)state;
    fixture f;
    int32_t device[] = {0, 1, 0, 1}, order[] = {0, 1, 2, 3};
    open_sim(&f, "memory peak\ndevice A 99\ndevice B 99\nop a 5,5 > s:8\nop b 5,5 > t:8\nop c 5,5 s\nop d 5,5 t\n");
    int64_t wide = schedule_sim_replay_window(f.sim, device, order, 4),
            narrow = schedule_sim_replay_window(f.sim, device, order, 1);
    assert_int_equal(wide, 10);
    assert_true(narrow >= wide && narrow <= 20);
    close_sim(&f);
}

/* ---- memory ---- */

/* s (8 bytes) lives from 0 to 7, t (4) from 5 to 10, u (2, an output) from 7 to the end: 12 at most, besides 3 of
 * weights. */
static void test_schedule_memory_by_hand(void **state)
{
    (void)state;
    fixture f;
    int64_t need[1];
    int32_t device;
    open_sim(&f, "memory peak\ndevice A 14\nop a 5 mem=3 > s:8\nop b 2 s > t:4\nop c 3 t > u:2\n");
    assert_int_equal(dispatch(&f, "AAA", NULL), 10);
    schedule_sim_need(f.sim, need, true);
    assert_int_equal(need[0], 3 + 12);
    schedule_sim_need(f.sim, need, false);
    assert_int_equal(need[0], 3);
    assert_int_equal(moirai_sim_memory_excess(f.sim, &device), 1);
    assert_int_equal(device, 0);
    close_sim(&f);
    open_sim(&f, "memory static\ndevice A 14\nop a 5 mem=3 > s:8\nop b 2 s > t:4\nop c 3 t > u:2\n");
    dispatch(&f, "AAA", NULL);
    assert_int_equal(moirai_sim_memory_excess(f.sim, NULL), 0);
    close_sim(&f);
}

/* On its way a tensor is in both places: on A until it has left, on B from when it sets out. */
static void test_schedule_memory_of_a_transfer(void **state)
{
    (void)state;
    fixture f;
    int64_t need[2];
    open_sim(&f, "memory peak\ndevice A 99\ndevice B 99\nop a 5,5 > s:8\nop b 2,2 s\nop c 50,50 > t:3\n");
    dispatch(&f, "ABA", NULL);
    schedule_sim_need(f.sim, need, true);
    assert_int_equal(need[0], 8 + 3); /* c begins as a ends: s leaves meanwhile */
    assert_int_equal(need[1], 8);
    close_sim(&f);
}

/* ---- plans ---- */

static void test_schedule_plan_of_a_simulation(void **state)
{
    (void)state;
    fixture f;
    moirai_plan *plan;
    open_sim(&f, "device A 9\ndevice B 9\nop a 5,5 > s:4 mem=1\nop b 7,7 s mem=2\n");
    dispatch(&f, "AB", NULL);
    assert_ok(moirai_sim_plan(&plan, f.sim));
    assert_int_equal(plan->makespan_ns, 16);
    assert_int_equal(plan->n_transfers, 1);
    assert_true(plan->transfer[0].start_ns == 5 && plan->transfer[0].finish_ns == 9 && plan->transfer[0].from == 0 &&
                plan->transfer[0].to == 1);
    assert_int_equal(plan->transfer[0].reader, MOIRAI_NONE);
    assert_true(plan->device_busy_ns[0] == 5 && plan->device_busy_ns[1] == 7);
    assert_true(plan->device_memory_bytes[0] == 1 && plan->device_peak_bytes[1] == 2 + 4);
    assert_int_equal(plan->lower_bound_ns, MOIRAI_UNKNOWN);
    moirai_plan_free(plan);
    close_sim(&f);
}

/* ---- orders ---- */

/* By start; what takes no time first; producers before what they send before readers. */
static void test_schedule_tasks_in_order(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop a 0,0 > s:0\nop b 0,0 s > t:0\nop c 5,5 t\n");
    schedule_timed_task x[] = {schedule_timed_op(p, 2, 0, 5), schedule_timed_op(p, 1, 0, 0),
                               schedule_timed_transfer(p, 0, 0, 0, 100), schedule_timed_op(p, 0, 0, 0),
                               schedule_timed_op(p, 0, -1, -1)};
    schedule_timed_sort(x, 5);
    assert_int_equal(x[0].start_ns, -1);
    assert_int_equal(x[1].task, 0);
    assert_int_equal(x[2].task, 100);
    assert_int_equal(x[3].task, 1);
    assert_int_equal(x[4].task, 2);
    moirai_problem_free(p);
}

/* ---- plain bounds ---- */

static void test_schedule_plain_bounds_by_hand(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop a 5,9 > s:99\nop b 7,3 s\nop c 4,4\n");
    assert_int_equal(moirai_bound_critical_path(p), 5 + 3); /* the least times, transfers free */
    assert_true(moirai_bound_load(p) >= 6);                 /* 5 + 3 + 4 of work on two devices */
    moirai_problem_free(p);
    p = tiny_problem("device A 9\ndevice B 9\nop a 10,-\nop b 10,-\nop c 10,10\n");
    assert_int_equal(moirai_bound_load(p), 20); /* a and b have no choice */
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule_dispatch_takes_the_most_urgent),
        cmocka_unit_test(test_schedule_dispatch_by_upward_ranks),
        cmocka_unit_test(test_schedule_flow_decides_how_often_it_is_sent),
        cmocka_unit_test(test_schedule_congestion_by_hand),
        cmocka_unit_test(test_schedule_refuses_devices_that_are_not_allowed),
        cmocka_unit_test(test_schedule_replay_follows_the_order),
        cmocka_unit_test(test_schedule_tighten_closes_gaps),
        cmocka_unit_test(test_schedule_windows_trade_time_for_memory),
        cmocka_unit_test(test_schedule_memory_by_hand),
        cmocka_unit_test(test_schedule_memory_of_a_transfer),
        cmocka_unit_test(test_schedule_plan_of_a_simulation),
        cmocka_unit_test(test_schedule_tasks_in_order),
        cmocka_unit_test(test_schedule_plain_bounds_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
