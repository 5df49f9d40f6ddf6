/* What the list schedulers stand on: busy times with gaps, insertion of operators and transfers, and what has room. */
#include "place/list/insert.h"
#include "support/check.h"
#include "support/tiny.h"
#include "util/util.h"

/* ---- timelines ---- */

static void test_place_timeline_finds_gaps(void **state)
{
    (void)state;
    place_timeline t = {0};
    assert_int_equal(place_timeline_next(&t, 3, 10), 3); /* nothing there */
    assert_ok(place_timeline_take(&t, 10, 5));           /* 10 .. 15 */
    assert_ok(place_timeline_take(&t, 20, 5));           /* 20 .. 25 */
    assert_int_equal(place_timeline_next(&t, 0, 10), 0); /* just before */
    assert_int_equal(place_timeline_next(&t, 1, 10), 25);
    assert_int_equal(place_timeline_next(&t, 0, 5), 0);
    assert_int_equal(place_timeline_next(&t, 6, 5), 15); /* between the two */
    assert_int_equal(place_timeline_next(&t, 16, 5), 25);
    assert_int_equal(place_timeline_next(&t, 12, 1), 15); /* from inside a block */
    assert_int_equal(place_timeline_next(&t, 99, 7), 99);
    place_timeline_clear(&t);
}

static void test_place_timeline_merges_what_touches(void **state)
{
    (void)state;
    place_timeline t = {0};
    assert_ok(place_timeline_take(&t, 10, 5));
    assert_ok(place_timeline_take(&t, 20, 5));
    assert_int_equal(t.n, 2);
    assert_ok(place_timeline_take(&t, 15, 2)); /* behind the first */
    assert_int_equal(t.n, 2);
    assert_ok(place_timeline_take(&t, 18, 2)); /* before the second */
    assert_int_equal(t.n, 2);
    assert_ok(place_timeline_take(&t, 17, 1)); /* and the hole */
    assert_int_equal(t.n, 1);
    assert_int_equal(t.block[0].start_ns, 10);
    assert_int_equal(t.block[0].finish_ns, 25);
    place_timeline_clear(&t);
    assert_int_equal(t.n, 0);
}

/* Against one flag per nanosecond. */
static void test_place_timeline_is_a_row_of_flags(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 3);
    for (int round = 0; round < 50; round++) {
        place_timeline t = {0};
        bool busy[400] = {false};
        for (int i = 0; i < 40; i++) {
            int64_t from = util_rng_below(&r, 200), ns = 1 + util_rng_below(&r, 12), at = from;
            for (int64_t k = 0; k < ns;)
                k = busy[at + k] ? (at = at + k + 1, 0) : k + 1;
            assert_int_equal(place_timeline_next(&t, from, ns), at);
            if (at + ns < 300) {
                assert_ok(place_timeline_take(&t, at, ns));
                memset(busy + at, true, (size_t)ns);
            }
        }
        for (size_t j = 1; j < t.n; j++)
            assert_true(t.block[j - 1].finish_ns < t.block[j].start_ns);
        place_timeline_clear(&t);
    }
}

/* ---- what is placed ---- */

static void test_place_list_rooms_and_groups(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 10\ndevice B 8\nop a 1,1 mem=6\nop b 1,1 mem=5 group=g\nop c 1,1 mem=3 "
                                     "group=g\nop d 1,- mem=1\nop e 1,1 mem=9\n");
    place_list *l;
    assert_ok(place_list_new(&l, p));
    assert_int_equal(place_list_devices(l, tiny_op(p, "a")).word[0], 3);
    place_list_place_op(l, tiny_op(p, "a"), 0, 0);
    assert_int_equal(l->room_bytes[0], 4);
    assert_int_equal(place_list_devices(l, tiny_op(p, "b")).word[0], 2); /* the group needs 8 at once */
    place_list_place_op(l, tiny_op(p, "b"), 1, 0);
    assert_int_equal(l->room_bytes[1], 0);
    assert_int_equal(place_list_devices(l, tiny_op(p, "c")).word[0], 2); /* where its group is, whatever the room */
    place_list_place_op(l, tiny_op(p, "c"), 1, 1);
    assert_int_equal(l->room_bytes[1], 0); /* paid for already */
    assert_int_equal(place_list_devices(l, tiny_op(p, "d")).word[0], 1);
    assert_false(l->overfull);
    assert_int_equal(place_list_devices(l, tiny_op(p, "e")).word[0], 3); /* no room anywhere: all, and it is noted */
    assert_true(l->overfull);
    place_list_clear(l);
    assert_int_equal(l->room_bytes[0], 10);
    assert_false(l->overfull);
    assert_int_equal(l->n_log, 0);
    place_list_free(l);
    moirai_problem_free(p);
}

static void test_place_list_inputs_by_arrival(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\nop a 9 > s:1\nop b 2 > t:1\nop c 5 > u:1\nop d 1 s t u\n");
    place_list *l;
    assert_ok(place_list_new(&l, p));
    for (int32_t i = 0; i < 3; i++)
        place_list_place_op(l, i, 0, 0);
    const int32_t *input = place_list_inputs(l, 3);
    assert_string_equal(p->tensor_name[p->op_in[input[0]]], "t");
    assert_string_equal(p->tensor_name[p->op_in[input[1]]], "u");
    assert_string_equal(p->tensor_name[p->op_in[input[2]]], "s");
    place_list_free(l);
    moirai_problem_free(p);
}

/* ---- insertion ---- */

/* a and b on A end at 5 and 8; c reads both. On B s can go 5 .. 9, t 9 .. 15 through one port, 8 .. 14 otherwise. */
static void insert_on_b(const char *congestion, int64_t start_ns)
{
    char text[256];
    snprintf(text, sizeof text, "congestion %s\ndevice A 9\ndevice B 9\nop a 5,5 > s:4\nop b 3,3 > t:6\nop c 2,2 s t\n",
             congestion);
    moirai_problem *p = tiny_problem(text);
    place_insert *x;
    assert_ok(place_insert_new(&x, p));
    assert_int_equal(place_insert_try(x, 0, 0, INT64_MAX), 0);
    place_insert_keep(x);
    assert_ok(place_insert_commit(x, 0, 0, 0));
    assert_int_equal(place_insert_try(x, 1, 0, INT64_MAX), 5);
    place_insert_keep(x);
    assert_ok(place_insert_commit(x, 1, 0, 5));
    assert_int_equal(place_insert_try(x, 2, 0, INT64_MAX), 8);
    assert_int_equal(place_insert_try(x, 2, 1, INT64_MAX), start_ns);
    assert_true(place_insert_try(x, 2, 1, start_ns + 2) == INT64_MAX); /* no sooner than the limit */
    assert_int_equal(place_insert_try(x, 2, 1, start_ns + 3), start_ns);
    place_insert_keep(x);
    assert_ok(place_insert_commit(x, 2, 1, start_ns));
    moirai_plan *plan;
    assert_ok(place_list_plan(&plan, x->list, NULL));
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    assert_int_equal(plan->makespan_ns, start_ns + 2);
    moirai_plan_free(plan);
    place_insert_clear(x);
    assert_int_equal(place_insert_try(x, 1, 0, INT64_MAX), 0); /* all is free again */
    place_insert_free(x);
    moirai_problem_free(p);
}

static void test_place_insert_sends_through_ports_and_channels(void **state)
{
    (void)state;
    insert_on_b("port", 15);
    insert_on_b("channel", 15);
    insert_on_b("none", 14);
}

/* A short operator goes into the gap that a longer one leaves while it waits. */
static void test_place_insert_fills_gaps(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop a 5,- > s:10\nop b -,4 s\nop c 3,3\nop d 20,20\n");
    place_insert *x;
    assert_ok(place_insert_new(&x, p));
    place_insert_try(x, 0, 0, INT64_MAX);
    place_insert_keep(x);
    assert_ok(place_insert_commit(x, 0, 0, 0));
    assert_int_equal(place_insert_try(x, 1, 1, INT64_MAX), 15);
    place_insert_keep(x);
    assert_ok(place_insert_commit(x, 1, 1, 15));
    assert_int_equal(place_insert_try(x, 2, 1, INT64_MAX), 0);  /* before b */
    assert_int_equal(place_insert_try(x, 3, 1, INT64_MAX), 19); /* too long for that */
    place_insert_free(x);
    moirai_problem_free(p);
}

/* With flow tensor a tensor that is there is not sent again; with flow edge each reader has its own. */
static void test_place_insert_sends_a_tensor_once(void **state)
{
    (void)state;
    for (int edge = 0; edge < 2; edge++) {
        char text[256];
        snprintf(text, sizeof text, "flow %s\ndevice A 9\ndevice B 9\nop a 5,- > s:10\nop b -,1 s\nop c -,1 s\n",
                 edge ? "edge" : "tensor");
        moirai_problem *p = tiny_problem(text);
        place_insert *x;
        assert_ok(place_insert_new(&x, p));
        for (int32_t i = 0; i < 2; i++) {
            int64_t at = place_insert_try(x, i, i, INT64_MAX);
            place_insert_keep(x);
            assert_ok(place_insert_commit(x, i, i, at));
        }
        assert_int_equal(place_insert_try(x, 2, 1, INT64_MAX), edge ? 25 : 16);
        place_insert_free(x);
        moirai_problem_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_timeline_finds_gaps),
        cmocka_unit_test(test_place_timeline_merges_what_touches),
        cmocka_unit_test(test_place_timeline_is_a_row_of_flags),
        cmocka_unit_test(test_place_list_rooms_and_groups),
        cmocka_unit_test(test_place_list_inputs_by_arrival),
        cmocka_unit_test(test_place_insert_sends_through_ports_and_channels),
        cmocka_unit_test(test_place_insert_fills_gaps),
        cmocka_unit_test(test_place_insert_sends_a_tensor_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
