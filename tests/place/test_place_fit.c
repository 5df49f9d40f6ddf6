/* Fitting into memory, the plain placers' own rules, and the starts that all searches share, on problems worked out by
 * hand. */
#include "place/fit.h"
#include "place/starts.h"
#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/tiny.h"
#include "support/tiny_block.h"

/* ---- units and assignments ---- */

static void test_place_units_are_groups(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("device A 9\ndevice B 9\nop a 1,1 mem=1 group=g\nop b 1,1 mem=2\nop c 1,- mem=4 group=g\n");
    place_units *u;
    assert_ok(place_units_new(&u, p));
    assert_int_equal(u->n, 2);
    int32_t g = u->of_op[tiny_op(p, "a")];
    assert_int_equal(u->of_op[tiny_op(p, "c")], g);
    assert_int_equal(u->bytes[g], 5);
    assert_int_equal(u->devices[g], 1); /* what all members can */
    assert_int_equal(u->off[g + 1] - u->off[g], 2);
    place_units_free(u);
    moirai_problem_free(p);
}

static int fit(const char *text, const char *from, char *to)
{
    moirai_problem *p = tiny_problem(text);
    place_units *u;
    int32_t device[16];
    assert_ok(place_units_new(&u, p));
    for (int32_t i = 0; i < p->n_ops; i++)
        device[i] = from[i] == '-' ? MOIRAI_NONE : from[i] - 'A';
    int rc = place_fit_assignment(p, u, p->device_memory_bytes, device);
    for (int32_t i = 0; i < p->n_ops; i++)
        to[i] = (char)('A' + device[i]);
    to[p->n_ops] = '\0';
    place_units_free(u);
    moirai_problem_free(p);
    return rc;
}

/* What fits is left alone; what does not gives up the least harm per byte: here the one that B runs as fast. */
static void test_place_fit_moves_as_little_as_possible(void **state)
{
    (void)state;
    char to[17];
    assert_ok(fit("device A 30\ndevice B 30\nop a 1,9 mem=10\nop b 1,9 mem=10\nop c 1,1 mem=10\n", "AAA", to));
    assert_string_equal(to, "AAA");
    assert_ok(fit("device A 20\ndevice B 30\nop a 1,9 mem=10\nop b 1,9 mem=10\nop c 1,1 mem=10\n", "AAA", to));
    assert_string_equal(to, "AAB");
    assert_ok(
        fit("device A 20\ndevice B 30\nop a 1,9 mem=10 group=g\nop b 1,9 mem=10 group=g\nop c 1,2 mem=5\n", "AAA", to));
    assert_string_equal(to, "AAB"); /* the group would have to go as a whole */
    assert_ok(fit("device A 20\ndevice B 30\nop a 1,9 mem=10\nop b 1,9 mem=10\n", "A-", to));
    assert_true(to[1] == 'A' || to[1] == 'B'); /* who has no place gets one */
}

/* 7 + 3 and 6 + 4 into 10 and 10: moving one at a time does not get there, packing does; 7 + 7 + 6 never fit. */
static void test_place_fit_packs_where_moving_is_not_enough(void **state)
{
    (void)state;
    char to[17];
    assert_ok(
        fit("device A 10\ndevice B 10\nop a 1,1 mem=7\nop b 1,1 mem=6\nop c 1,1 mem=4\nop d 1,1 mem=3\n", "AABB", to));
    assert_true((to[0] == to[3]) && (to[1] == to[2]) && to[0] != to[1]);
    assert_int_equal(fit("device A 10\ndevice B 10\nop a 1,1 mem=7\nop b 1,1 mem=7\nop c 1,1 mem=6\n", "AAB", to),
                     MOIRAI_EINFEASIBLE);
    assert_int_equal(fit("device A 10\ndevice B 10\nop a 1,- mem=7\nop b 1,- mem=7\n", "AA", to), MOIRAI_EINFEASIBLE);
}

/* Small problems: an assignment is found just where one exists. */
static void test_place_fit_is_complete_on_small_problems(void **state)
{
    (void)state;
    int fits = 0, not = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        random_spec spec = random_spec_draw(seed, 7);
        spec.memory = MOIRAI_MEMORY_STATIC;
        spec.tight = true;
        moirai_problem *p = random_problem(&spec);
        if (!p)
            continue;
        place_units *u;
        int32_t device[16];
        for (int32_t i = 0; i < p->n_ops; i++)
            device[i] = MOIRAI_NONE;
        assert_ok(place_units_new(&u, p));
        int rc = place_fit_assignment(p, u, p->device_memory_bytes, device);
        int64_t best = brute_force(p, 2000000, NULL);
        if (best != BRUTE_GAVE_UP) {
            assert_int_equal(rc, best == BRUTE_INFEASIBLE ? MOIRAI_EINFEASIBLE : MOIRAI_OK);
            fits += rc == MOIRAI_OK;
            not += rc != MOIRAI_OK;
        }
        place_units_free(u);
        moirai_problem_free(p);
    }
    assert_true(fits > 20 && not > 5);
}

/* Peak memory: a wide front does not fit, so the schedule waits. Two tensors of 8 at once need 16; one after the
 * other 8. */
static void test_place_fit_schedule_waits_for_memory(void **state)
{
    (void)state;
    static const char text[] = "memory peak\ndevice A %d\nop a 2 > s:8\nop c 2 > t:8\nop b 3 s > u:0\nop d 3 t > v:0\n";
    static const int sizes[] = {7, 8, 16};
    for (size_t i = 0; i < 3; i++) {
        char problem[256];
        int bytes = sizes[i];
        snprintf(problem, sizeof problem, text, bytes);
        moirai_problem *p = tiny_problem(problem);
        moirai_sim *sim;
        moirai_plan *plan;
        int64_t excess = -1;
        int32_t device[4] = {0};
        assert_ok(moirai_sim_new(&sim, p));
        assert_ok(place_fit_schedule(&plan, &excess, sim, p, device, NULL));
        if (bytes < 8) {
            assert_null(plan);
            assert_int_equal(excess, 1);
        } else {
            assert_non_null(plan);
            assert_ok(moirai_plan_check(p, plan, NULL, NULL));
        }
        moirai_plan_free(plan);
        moirai_sim_free(sim);
        moirai_problem_free(p);
    }
}

static void test_place_fit_plan_says_what_is_short(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("memory peak\ndevice A 7\nop a 2 > s:8\nop b 3 s\n");
    moirai_sim *sim;
    place_units *u;
    moirai_plan *plan = NULL;
    int32_t device[2] = {0};
    assert_ok(moirai_sim_new(&sim, p));
    assert_ok(place_units_new(&u, p));
    assert_int_equal(place_fit_plan(&plan, sim, p, u, device, NULL, NULL, 0, NULL), MOIRAI_EINFEASIBLE);
    assert_non_null(strstr(moirai_error_message(), "device 'A'"));
    assert_non_null(strstr(moirai_error_message(), "1 B short"));
    assert_null(strstr(moirai_error_message(), "time"));
    /* Without time one try is made, and that it was one is said. */
    moirai_interrupt interrupt = {0};
    moirai_interrupt_raise(&interrupt);
    util_stop stop = {.interrupt = &interrupt};
    assert_int_equal(place_fit_plan(&plan, sim, p, u, device, NULL, NULL, 0, &stop), MOIRAI_EINFEASIBLE);
    assert_non_null(strstr(moirai_error_message(), "1 B short of the peak in the best try when the time was up"));
    place_units_free(u);
    moirai_sim_free(sim);
    moirai_problem_free(p);
}

/* ---- the plain placers ---- */

static void places(const char *text, const char *placer, const char *devices, int64_t makespan_ns)
{
    moirai_problem *p = tiny_problem(text);
    moirai_plan *plan = tiny_place(p, placer);
    if (devices)
        assert_string_equal(tiny_devices(p, plan), devices);
    assert_int_equal(plan->makespan_ns, makespan_ns);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_place_single_takes_the_best_device(void **state)
{
    (void)state;
    places("device A 9\ndevice B 9\nop a 5,4 > s:1\nop b 5,4 s\n", "single", "BB", 8);
    places("device A 9\ndevice B 9\nop a 5,4 > s:1\nop b 5,- s\n", "single", "AA", 10);
    places(TINY_TIGHT, "single", "BB", 60); /* A has no room */
}

/* Operators in topological order, cap = 20 / 2 + 5: three fill A, the last goes on to B and none goes back. */
static void test_place_m_topo_fills_in_order(void **state)
{
    (void)state;
    places("device A 20\ndevice B 20\nop a 1,1 mem=5 > s:0\nop b 1,1 mem=5 s > t:0\nop c 1,1 mem=5 t > u:0\nop d 1,1 "
           "mem=5 u\n",
           "m-topo", "AAAB", 4);
    places("device A 11\ndevice B 20\nop a 1,1 mem=5 > s:0\nop b 1,1 mem=5 s > t:0\nop c 1,1 mem=5 t > u:0\nop d 1,1 "
           "mem=5 u\n",
           "m-topo", "AABB", 4);
}

/* Earliest start first: both are free at 0, a comes first and takes its faster device, b the other. */
static void test_place_m_etf_starts_what_can_start(void **state)
{
    (void)state;
    places("device A 9\ndevice B 9\nop a 3,5\nop b 4,4\n", "m-etf", "AB", 4);
    /* c could start on B at once if its input were there; on A it starts as soon as a ends. */
    places("device A 9\ndevice B 9\nop a 3,9 > s:9\nop c 4,4 s\n", "m-etf", "AA", 7);
}

/* Upward ranks: the long branch goes first, to the fast device; the short one fills in where it ends soonest. */
static void test_place_heft_by_hand(void **state)
{
    (void)state;
    places("device A 9\ndevice B 9\nop in 1,1 > s:1\nop long 10,20 s > t:1\nop short 3,4 s > u:1\nop out 1,1 t u\n",
           "heft", NULL, 12);
    /* A transfer that costs more than it gains is not made. */
    places("device A 9\ndevice B 9\nop a 5,- > s:100\nop b 9,1 s\n", "heft", "AA", 14);
    places("device A 9\ndevice B 9\nop a 5,- > s:2\nop b 9,1 s\n", "heft", "AB", 8);
}

static void test_place_random_follows_its_seed(void **state)
{
    (void)state;
    moirai_problem *p = zoo_problem("gpt3-tiny", "inter-server", MOIRAI_FLOW_TENSOR);
    moirai_place_options o;
    moirai_plan *plan[3];
    moirai_place_options_init(&o);
    for (int i = 0; i < 3; i++) {
        o.budget.seed = i < 2 ? 5 : 6;
        assert_ok(moirai_place(&plan[i], p, "random", &o));
    }
    size_t bytes = sizeof *plan[0]->op_device * (size_t)p->n_ops;
    assert_memory_equal(plan[0]->op_device, plan[1]->op_device, bytes);
    assert_true(memcmp(plan[0]->op_device, plan[2]->op_device, bytes) != 0);
    for (int i = 0; i < 3; i++)
        moirai_plan_free(plan[i]);
    moirai_problem_free(p);
}

/* ---- starts ---- */

typedef struct offers {
    char letters[16];
    int n, stop_after;
    int64_t makespan_ns[16];
} offers;

static int take(void *data, moirai_plan *plan, char letter)
{
    offers *x = data;
    x->makespan_ns[x->n] = plan->makespan_ns;
    x->letters[x->n++] = letter;
    moirai_plan_free(plan);
    return x->n == x->stop_after ? MOIRAI_ELIMIT : MOIRAI_OK;
}

static void test_place_starts_offer_every_heuristic(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(TINY_TIGHT);
    moirai_plan *start = tiny_place(p, "single");
    moirai_place_options o;
    offers x = {0};
    moirai_place_options_init(&o);
    util_stop stop = {0};
    place_starts_task task = {.stop = &stop, .p = p, .o = &o, .offer = take, .data = &x};
    assert_ok(place_starts(&task));
    assert_string_equal(x.letters, "1HETRQCPG");
    assert_int_equal(x.makespan_ns[0], 60);
    o.start = start;
    x = (offers){0};
    assert_ok(place_starts(&task));
    assert_string_equal(x.letters, "S1HETRQCPG"); /* the user's own first */
    assert_int_equal(x.makespan_ns[0], 60);
    x = (offers){.stop_after = 2};
    assert_int_equal(place_starts(&task), MOIRAI_ELIMIT);
    assert_int_equal(x.n, 2);
    task.first = true;
    x = (offers){0};
    assert_ok(place_starts(&task));
    assert_string_equal(x.letters, "S");
    o.start = NULL;
    x = (offers){0};
    assert_ok(place_starts(&task));
    assert_string_equal(x.letters, "1");
    task.first = false;
    o.start = start;
    moirai_interrupt now = {0};
    moirai_interrupt_raise(&now);
    stop.interrupt = &now;
    task.has_plan = true; /* then the user's own alone is looked at */
    x = (offers){0};
    assert_ok(place_starts(&task));
    assert_string_equal(x.letters, "S");
    task.has_plan = false;
    x = (offers){0};
    assert_ok(place_starts(&task)); /* one plan, however little time there is */
    assert_int_equal(x.n, 1);
    moirai_plan_free(start);
    moirai_problem_free(p);
}

/* A start that does not fit is mended: both on A, where one has room. */
static void test_place_starts_mend_what_does_not_fit(void **state)
{
    (void)state;
    moirai_problem *wide = tiny_problem("device A 99\ndevice B 100\nop a 10,30 mem=10 > s:0\nop b 10,30 s mem=10\n"),
                   *p = tiny_problem(TINY_TIGHT);
    moirai_plan *start = tiny_place(wide, "single");
    moirai_place_options o;
    offers x = {.stop_after = 1};
    moirai_place_options_init(&o);
    o.start = start;
    assert_string_equal(tiny_devices(wide, start), "AA");
    util_stop stop = {0};
    place_starts_task task = {.stop = &stop, .p = p, .o = &o, .offer = take, .data = &x};
    assert_int_equal(place_starts(&task), MOIRAI_ELIMIT);
    assert_int_equal(x.letters[0], 'S');
    assert_int_equal(x.makespan_ns[0], 40);
    moirai_plan_free(start);
    moirai_problem_free(wide);
    moirai_problem_free(p);
}

static void test_place_starts_say_why_nothing_fits(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop a 1,1 mem=6\nop b 1,1 mem=6\nop c 1,1 mem=6\n");
    moirai_place_options o;
    offers x = {0};
    moirai_place_options_init(&o);
    util_stop stop = {0};
    place_starts_task task = {.stop = &stop, .p = p, .o = &o, .offer = take, .data = &x};
    assert_ok(place_starts(&task));
    assert_int_equal(x.n, 0);
    assert_true(strlen(task.why) > 10);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_units_are_groups),
        cmocka_unit_test(test_place_fit_moves_as_little_as_possible),
        cmocka_unit_test(test_place_fit_packs_where_moving_is_not_enough),
        cmocka_unit_test(test_place_fit_is_complete_on_small_problems),
        cmocka_unit_test(test_place_fit_schedule_waits_for_memory),
        cmocka_unit_test(test_place_fit_plan_says_what_is_short),
        cmocka_unit_test(test_place_single_takes_the_best_device),
        cmocka_unit_test(test_place_m_topo_fills_in_order),
        cmocka_unit_test(test_place_m_etf_starts_what_can_start),
        cmocka_unit_test(test_place_heft_by_hand),
        cmocka_unit_test(test_place_random_follows_its_seed),
        cmocka_unit_test(test_place_starts_offer_every_heuristic),
        cmocka_unit_test(test_place_starts_mend_what_does_not_fit),
        cmocka_unit_test(test_place_starts_say_why_nothing_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
