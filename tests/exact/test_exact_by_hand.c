/* The exact search from inside: what a node knows of small problems, rule by rule, and answers that were worked out on
 * paper. */
#include "exact/exact_search.h"
#include "schedule/plan_order.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"

/* ---- answers ---- */

static exact_result solve(const moirai_problem *p, int64_t below_ns)
{
    exact_options o;
    exact_result r;
    exact_options_init(&o);
    o.below_ns = below_ns;
    assert_ok(exact_solve(p, &o, &r));
    return r;
}

static void has_optimum(const char *text, int64_t makespan_ns)
{
    moirai_problem *p = tiny_problem(text);
    moirai_plan *plan;
    exact_result r = solve(p, MOIRAI_UNKNOWN);
    assert_true(r.found && r.complete);
    assert_int_equal(r.makespan_ns, makespan_ns);
    assert_int_equal(r.lower_bound_ns, makespan_ns);
    assert_ok(exact_plan(&plan, p, &r));
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    assert_int_equal(plan->makespan_ns, makespan_ns);
    moirai_plan_free(plan);
    exact_result_clear(&r);
    r = solve(p, makespan_ns); /* nothing is faster */
    assert_true(!r.found && r.complete);
    assert_int_equal(r.lower_bound_ns, makespan_ns);
    exact_result_clear(&r);
    r = solve(p, makespan_ns + 1);
    assert_true(r.found);
    exact_result_clear(&r);
    moirai_problem_free(p);
}

static void test_exact_optima_by_hand(void **state)
{
    (void)state;
    has_optimum(TINY_TWO, 18);
    has_optimum(TINY_THREE, 220);
    has_optimum(TINY_TIGHT, 40);
    has_optimum("device A 9\nop a 3\nop b 4\nop c 5\n", 12);                  /* one device: the sum */
    has_optimum("device A 9\ndevice B 9\nop a 3,3\nop b 4,4\nop c 5,5\n", 7); /* 3 + 4 beside 5 */
    has_optimum("device A 9\nop a 0 > s:5\nop b 0 s\n", 0);
}

/* One tensor of 4 for two readers on B: once with flow tensor, twice with edge; ports make the two take turns. */
static void test_exact_modes_by_hand(void **state)
{
    (void)state;
    static const char readers[] = "device A 9\ndevice B 9\nop a 1,- > s:4\nop b -,10 s\nop c -,10 s\n";
    char text[256];
    snprintf(text, sizeof text, "flow tensor\n%s", readers);
    has_optimum(text, 1 + 4 + 20);
    snprintf(text, sizeof text, "flow edge\n%s", readers);
    has_optimum(text, 1 + 4 + 20); /* the second arrives while the first reader works */
    static const char fan[] = "device A 9\ndevice B 9\ndevice C 9\nop a 1,-,- > s:9 t:9\nop b -,2,- s\nop c -,-,2 t\n";
    snprintf(text, sizeof text, "congestion port\n%s", fan);
    has_optimum(text, 1 + 18 + 2);
    snprintf(text, sizeof text, "congestion channel\n%s", fan);
    has_optimum(text, 1 + 9 + 2);
    snprintf(text, sizeof text, "congestion none\n%s", fan);
    has_optimum(text, 1 + 9 + 2);
}

/* Peak memory: the two large tensors can't be alive together on A, so their makers run one after the other's reader. */
static void test_exact_memory_by_hand(void **state)
{
    (void)state;
    static const char text[] = "memory peak\ndevice A %d\nop a 2 > s:8\nop b 3 s > u:0\nop c 2 > t:8\nop d 3 t > v:0\n";
    char tight[256], wide[256];
    snprintf(wide, sizeof wide, text, 16);
    snprintf(tight, sizeof tight, text, 8);
    has_optimum(wide, 10);
    has_optimum(tight, 10); /* in the order a b c d */
    char none[256];
    snprintf(none, sizeof none, text, 7);
    moirai_problem *p = tiny_problem(none);
    exact_result r = solve(p, MOIRAI_UNKNOWN);
    assert_true(!r.found && r.complete);
    assert_true(r.lower_bound_ns == INT64_MAX);
    exact_result_clear(&r);
    moirai_problem_free(p);
}

static void test_exact_groups_and_devices(void **state)
{
    (void)state;
    has_optimum("device A 9\ndevice B 9\nop a 5,5 group=g\nop b 5,5 group=g\nop c 5,5\n", 10);
    has_optimum("device A 9\ndevice B 9\nop a 5,5\nop b 5,5\nop c -,5\n", 10);
    has_optimum("device A 9\ndevice B 9\nop a 5,- group=g\nop b 5,1 group=g\n", 10);
}

static void test_exact_starts_and_stops(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(TINY_THREE);
    moirai_plan *start = tiny_place(p, "single");
    exact_options o;
    exact_result r;
    exact_options_init(&o);
    o.start = start;
    o.node_limit = 1;
    assert_ok(exact_solve(p, &o, &r));
    assert_true(r.found && r.makespan_ns <= start->makespan_ns);
    assert_true(r.lower_bound_ns <= 220 && r.lower_bound_ns >= 120);
    exact_result_clear(&r);
    o.node_limit = 0;
    moirai_interrupt now = {0};
    moirai_interrupt_raise(&now);
    o.stop.interrupt = &now;
    assert_ok(exact_solve(p, &o, &r));
    assert_true(r.found && r.lower_bound_ns <= 220);
    exact_result_clear(&r);
    moirai_plan_free(start);
    moirai_problem_free(p);
}

/* ---- one node ---- */

typedef struct fixture {
    moirai_problem *p;
    exact_options o;
    exact_result r;
    exact_search s;
    exact_state *st;
} fixture;

static void open_search(fixture *f, const char *text, int64_t below_ns)
{
    memset(f, 0, sizeof *f);
    f->p = tiny_problem(text);
    exact_options_init(&f->o);
    f->o.below_ns = below_ns;
    assert_ok(exact_search_new(&f->s, f->p, &f->o, &f->r));
    exact_root(&f->s);
    f->st = f->s.stack.state[0];
    f->s.below_ns = below_ns;
}

static void close_search(fixture *f)
{
    exact_search_free(&f->s);
    exact_result_clear(&f->r);
    moirai_problem_free(f->p);
}

static int64_t head(const fixture *f, const char *op, int32_t k)
{
    return f->st->head[(int64_t)tiny_op(f->p, op) * f->s.K + k];
}

static int64_t tail(const fixture *f, const char *op, int32_t k)
{
    return f->st->tail[(int64_t)tiny_op(f->p, op) * f->s.K + k];
}

/* a on A takes 5; b 30 there, or 6 on B after 7 on the way. */
static void test_exact_heads_and_tails_of_a_chain(void **state)
{
    (void)state;
    fixture f;
    open_search(&f, "device A 9\ndevice B 9\nop a 5,- > s:7\nop b 30,6 s\n", 100);
    assert_true(exact_propagate(&f.s, f.st));
    assert_int_equal(head(&f, "a", 0), 0);
    assert_int_equal(head(&f, "b", 0), 5);
    assert_int_equal(head(&f, "b", 1), 12);
    assert_int_equal(tail(&f, "b", 1), 0);
    assert_int_equal(tail(&f, "a", 0), 13);
    assert_int_equal(f.st->lb_ns, 18);
    close_search(&f);
}

/* Below 35 b can't be on A, and below 18 nothing is left. */
static void test_exact_devices_are_ruled_out(void **state)
{
    (void)state;
    fixture f;
    open_search(&f, "device A 9\ndevice B 9\nop a 5,- > s:7\nop b 30,6 s\n", 35);
    assert_true(exact_propagate(&f.s, f.st));
    assert_int_equal(f.st->dom[tiny_op(f.p, "b")], 2);
    close_search(&f);
    open_search(&f, "device A 9\ndevice B 9\nop a 5,- > s:7\nop b 30,6 s\n", 18);
    assert_false(exact_propagate(&f.s, f.st));
    close_search(&f);
}

/* Producers that are fixed on A share it: one of them ends at 6, and its tensor takes 4 or 5 more. */
static void test_exact_producers_share_a_device(void **state)
{
    (void)state;
    fixture f;
    open_search(&f, "congestion none\ndevice A 9\ndevice B 9\nop a 3,- > s:4\nop b 3,- > t:5\nop c -,2 s t\n", 100);
    assert_true(exact_propagate(&f.s, f.st));
    assert_int_equal(head(&f, "c", 1), 3 + 3 + 4);
    close_search(&f);
}

/* Three of 5 on one device take 15; a device that is tried and does not fit is out. */
static void test_exact_machines_bound_devices(void **state)
{
    (void)state;
    fixture f;
    open_search(&f, "device A 9\ndevice B 9\nop a 5,-\nop b 5,-\nop c 5,6\n", 100);
    assert_true(exact_propagate(&f.s, f.st));
    assert_true(f.st->lb_ns >= 10);
    close_search(&f);
    open_search(&f, "device A 9\ndevice B 9\nop a 5,-\nop b 5,-\nop c 5,6\n", 15);
    assert_true(exact_propagate(&f.s, f.st));
    assert_int_equal(f.st->dom[tiny_op(f.p, "c")], 2); /* on A it would be 15 */
    close_search(&f);
}

/* Jackson's rule: the first job runs until the second, more urgent one is there: 3 + 9 and then 6 + 7. */
static void test_exact_preemptive_by_hand(void **state)
{
    (void)state;
    exact_job two[] = {{0, 4, 7, 0}, {1, 2, 9, 1}}, idle[] = {{10, 3, 0, 0}, {0, 2, 1, 1}}, one[] = {{2, 3, 4, 0}};
    assert_int_equal(exact_preemptive(two, 2), 13);
    assert_int_equal(exact_preemptive(idle, 2), 13);
    assert_int_equal(exact_preemptive(one, 1), 9);
    assert_int_equal(exact_preemptive(one, 0), 0);
}

static void test_exact_restrict_moves_the_whole_group(void **state)
{
    (void)state;
    fixture f;
    bool changed = false;
    open_search(&f, "device A 9\ndevice B 9\nop a 5,5 group=g\nop b 5,5 group=g\nop c 5,5\n", 100);
    assert_int_equal(f.s.unit.n, 2);
    assert_int_equal(f.s.unit.of[tiny_op(f.p, "a")], f.s.unit.of[tiny_op(f.p, "b")]);
    assert_true(exact_restrict(&f.s, f.st, tiny_op(f.p, "a"), 2, &changed));
    assert_true(changed);
    assert_int_equal(f.st->dom[tiny_op(f.p, "b")], 2);
    assert_int_equal(f.st->dom[tiny_op(f.p, "c")], 3);
    assert_false(exact_restrict(&f.s, f.st, tiny_op(f.p, "b"), 1, &changed)); /* nothing is left */
    close_search(&f);
}

/* A holds one of the two: once a is there, b is not. */
static void test_exact_memory_rules_out_full_devices(void **state)
{
    (void)state;
    fixture f;
    bool changed = false;
    open_search(&f, TINY_TIGHT, 1000);
    assert_true(exact_restrict(&f.s, f.st, tiny_op(f.p, "a"), 1, &changed));
    changed = false;
    assert_true(exact_memory(&f.s, f.st, &changed));
    assert_true(changed);
    assert_int_equal(f.st->dom[tiny_op(f.p, "b")], 2);
    close_search(&f);
}

/* ---- symmetry ---- */

static void test_exact_sees_equal_devices_and_branches(void **state)
{
    (void)state;
    fixture f;
    open_search(&f,
                "device A 9\ndevice B 9\ndevice C 9\nop in 1,1,1 > s:1\nop x 5,5,6 s > t:1\nop y 5,5,6 s > u:1\nop out "
                "1,1,1 t u\n",
                100);
    assert_true(f.s.symmetry.same_device[0 * 3 + 1]);
    assert_false(f.s.symmetry.same_device[0 * 3 + 2]);
    assert_int_equal(f.s.symmetry.n_mirrors, 1);
    assert_int_equal(f.s.symmetry.mirror[0].n, 1); /* of each pair the one that comes first */
    assert_int_equal(f.s.symmetry.mirror[0].image[tiny_op(f.p, "x")], tiny_op(f.p, "y"));
    assert_int_equal(f.s.symmetry.mirror[0].image[tiny_op(f.p, "in")], tiny_op(f.p, "in"));
    close_search(&f);
    open_search(&f, "device A 9\ndevice B 8\nop in 1,1 > s:1\nop x 5,5 s > t:1\nop y 5,7 s > u:1\nop out 1,1 t u\n",
                100);
    assert_false(f.s.symmetry.same_device[1]);   /* other memory */
    assert_int_equal(f.s.symmetry.n_mirrors, 0); /* another time */
    close_search(&f);
}

/* Twelve equal operators on three equal devices: symmetry keeps the tree small. */
static void test_exact_symmetry_saves_nodes(void **state)
{
    (void)state;
    char text[512];
    int n = sprintf(text, "device A 9\ndevice B 9\ndevice C 9\n");
    for (int i = 0; i < 12; i++)
        n += sprintf(text + n, "op o%d 5,5,5\n", i);
    moirai_problem *p = tiny_problem(text);
    exact_result r = solve(p, MOIRAI_UNKNOWN);
    assert_true(r.complete && r.makespan_ns == 20);
    assert_true(r.nodes < 1000);
    exact_result_clear(&r);
    moirai_problem_free(p);
}

/* ---- results ---- */

static void test_exact_result_replays(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(TINY_THREE);
    moirai_sim *sim;
    moirai_plan *plan;
    moirai_task *order;
    int64_t n;
    exact_result r = solve(p, MOIRAI_UNKNOWN);
    assert_ok(moirai_sim_new(&sim, p));
    assert_ok(schedule_plan_order(&order, &n, p, r.plan));
    assert_int_equal(moirai_sim_replay(sim, r.plan->op_device, order, n), 220);
    free(order);
    assert_int_equal(r.plan->n_transfers, 1 + 1); /* s to B, one result back, which takes no time */
    exact_result_clear(&r);
    r = solve(p, 100);
    assert_false(r.found);
    assert_int_equal(exact_plan(&plan, p, &r), MOIRAI_EUSAGE);
    exact_result_clear(&r);
    moirai_sim_free(sim);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_optima_by_hand),
        cmocka_unit_test(test_exact_modes_by_hand),
        cmocka_unit_test(test_exact_memory_by_hand),
        cmocka_unit_test(test_exact_groups_and_devices),
        cmocka_unit_test(test_exact_starts_and_stops),
        cmocka_unit_test(test_exact_heads_and_tails_of_a_chain),
        cmocka_unit_test(test_exact_devices_are_ruled_out),
        cmocka_unit_test(test_exact_producers_share_a_device),
        cmocka_unit_test(test_exact_machines_bound_devices),
        cmocka_unit_test(test_exact_preemptive_by_hand),
        cmocka_unit_test(test_exact_restrict_moves_the_whole_group),
        cmocka_unit_test(test_exact_memory_rules_out_full_devices),
        cmocka_unit_test(test_exact_sees_equal_devices_and_branches),
        cmocka_unit_test(test_exact_symmetry_saves_nodes),
        cmocka_unit_test(test_exact_result_replays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
