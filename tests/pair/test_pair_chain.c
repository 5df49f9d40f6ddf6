/* The chain of blocks: paths of devices through cuts, by hand. */
#include "pair/chain.h"
#include "pair/pair_refine.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"

static pair_chain *chain_of(const moirai_problem *p)
{
    pair_chain *c;
    assert_ok(pair_chain_new(&c, p));
    assert_ok(pair_chain_open_all(c, 1, &(util_stop){0}));
    return c;
}

/* a takes 5 on A; b 30 on A and 6 on B; c 4 on A and 20 on B; 7 ns between devices. To B and back costs 5 + 7 + 6 + 7
 * + 4. */
static const char there_and_back[] = "device A 9\ndevice B 9\nop a 5,- > s:7\nop b 30,6 s > t:7\nop c 4,20 t\n";

static void test_pair_chain_goes_the_shortest_path(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(there_and_back);
    pair_chain *c = chain_of(p);
    int32_t device[3];
    assert_int_equal(c->s->n_cuts, 3);
    assert_int_equal(pair_chain_path(c, PAIR_CHAIN_LOWER, device), 5 + 7 + 6 + 7 + 4);
    assert_int_equal(device[0], 0);
    assert_int_equal(device[1], 1);
    assert_int_equal(device[2], 0);
    /* Empty blocks have nothing to decide: their plans are as long as their bounds, and a certificate can carry them.
     */
    assert_int_equal(pair_chain_path(c, PAIR_CHAIN_UPPER, NULL), 29);
    assert_int_equal(pair_chain_path(c, PAIR_CHAIN_CERTIFIED, NULL), 29);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* Without time nothing is known, and the devices stay as they were. */
static void test_pair_chain_path_ends_with_the_time(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(there_and_back);
    pair_chain *c = chain_of(p);
    moirai_interrupt interrupt = {0};
    util_stop stop = {.interrupt = &interrupt};
    int32_t device[3] = {7, 7, 7};
    assert_int_equal(pair_chain_path_within(c, PAIR_CHAIN_LOWER, NULL, &stop), 29);
    moirai_interrupt_raise(&interrupt);
    assert_int_equal(pair_chain_path_within(c, PAIR_CHAIN_LOWER, device, &stop), 0);
    assert_int_equal(pair_chain_path_within(c, PAIR_CHAIN_UPPER, device, &stop), INT64_MAX);
    assert_int_equal(device[1], 7);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* Where every change of device costs 10 more, all of it on A is worth it: 39 against 29 + 20; at 4 it is not. */
static void test_pair_chain_steady_path_avoids_changes(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(there_and_back);
    pair_chain *c = chain_of(p);
    int32_t device[3];
    assert_int_equal(pair_chain_steady_path(c, 4, device), 29 + 8);
    assert_int_equal(device[1], 1);
    assert_int_equal(pair_chain_steady_path(c, 10, device), 39);
    assert_int_equal(device[1], 0);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* Tensors between two cuts go through one port, one after the other; or side by side. */
static void test_pair_chain_adds_up_what_is_sent(void **state)
{
    (void)state;
    static const struct {
        const char *congestion;
        int64_t ns;
    } list[] = {{"port", 5 + 7 + 8 + 6}, {"channel", 26}, {"none", 5 + 8 + 6}};
    for (size_t i = 0; i < 3; i++) {
        char text[128];
        snprintf(text, sizeof text, "congestion %s\ndevice A 9\ndevice B 9\nop a 5,- > s:7 t:8\nop b -,6 s t\n",
                 list[i].congestion);
        moirai_problem *p = tiny_problem(text);
        pair_chain *c = chain_of(p);
        assert_int_equal(pair_chain_path(c, PAIR_CHAIN_LOWER, NULL), list[i].ns);
        pair_chain_free(c);
        moirai_problem_free(p);
    }
}

static void test_pair_chain_masks_and_possible_pairs(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(there_and_back);
    pair_chain *c = chain_of(p);
    assert_int_equal(pair_chain_entry_mask(c, 0), 1); /* no cut: device 0 stands in */
    assert_int_equal(pair_chain_exit_mask(c, 0), 1);
    assert_int_equal(pair_chain_entry_mask(c, 2), 3);
    assert_int_equal(pair_chain_exit_mask(c, 3), 1);
    int32_t middle = c->s->block_class[1]; /* both blocks between cuts send 7 bytes: one class */
    assert_int_equal(c->s->block_class[2], middle);
    assert_true(pair_chain_possible(c, middle, 1, 0));                /* as the second block */
    assert_false(pair_chain_possible(c, c->s->block_class[0], 0, 1)); /* the first cut is on A */
    assert_true(pair_chain_at(c, middle, 1, 0)->open);
    assert_false(pair_chain_at(c, c->s->block_class[0], 0, 1)->open);
    assert_int_equal(pair_certified_ns(pair_chain_at(c, c->s->block_class[0], 0, 1)), 0);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* Two layers of three operators each, one class: its blocks take two times 200 by the first plans, two on A and one on
 * B. */
static void test_pair_chain_share_of_a_class(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(
        "device A 9\ndevice B 9\nop a 10,- > s:20\nop b 100,110 s > t:0\nop c 100,110 s > u:0\nop d 100,110 s > v:0\n"
        "op e 10,- t u v > w:20\nop f 100,110 w > x:0\nop g 100,110 w > y:0\nop h 100,110 w > z:0\nop i 10,- x y z\n");
    pair_chain *c = chain_of(p);
    int32_t layer = c->s->block_class[1];
    assert_int_equal(c->s->class_count[layer], 2);
    assert_true(pair_chain_share(c, layer, 800) == 0.5);
    assert_true(pair_chain_share(c, layer, 0) == 0);
    assert_int_equal(pair_chain_path(c, PAIR_CHAIN_UPPER, NULL), 3 * 10 + 2 * 200);
    assert_int_equal(pair_chain_path(c, PAIR_CHAIN_LOWER, NULL), 3 * 10 + 2 * 100);
    /* Refining one pair serves both blocks. */
    pair_refine_task job = {.level = 2, .need_ns = INT64_MAX, .improve = true, .effort = 1, .seed = 1};
    assert_ok(pair_refine(c->pair[pair_chain_index(c, layer, 0, 0)], &job));
    assert_int_equal(pair_chain_path(c, PAIR_CHAIN_UPPER, NULL), 3 * 10 + 2 * 200);
    assert_int_equal(pair_chain_path(c, PAIR_CHAIN_LOWER, NULL), 3 * 10 + 2 * 200);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* No plan of a pair: no path by plans. */
static void test_pair_chain_without_plans_has_no_path(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(TINY_TWO);
    pair_chain *c;
    assert_ok(pair_chain_new(&c, p));
    assert_true(pair_chain_path(c, PAIR_CHAIN_UPPER, NULL) == INT64_MAX);
    assert_int_equal(pair_chain_path(c, PAIR_CHAIN_LOWER, NULL),
                     12); /* the cuts, and what no block of the class can do without */
    pair_chain_free(c);
    moirai_problem_free(p);
}

static const char *const three_equals =
    "device A 9\ndevice B 9\ndevice C 9\ndevice D 9\nop a 5,8,8,8 > s:7\nop b 5,8,8,8 s > t:3\nop c 5,8,8,8 s > u:3\n"
    "op d 5,8,8,8 t u > w:7\nop e 5,8,8,8 w\n";

/* B, C and D differ in nothing: pairs with the same pattern of them are one. */
static void test_pair_chain_joins_equal_devices(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(three_equals);
    pair_chain *c;
    assert_ok(pair_chain_new(&c, p));
    int32_t middle = c->s->block_class[1];
    assert_int_equal(pair_chain_distinct(c), pair_chain_count(c));
    pair_chain_join_equals(c);
    assert_int_equal(pair_chain_index(c, middle, 3, 2), pair_chain_index(c, middle, 1, 2));
    assert_int_equal(pair_chain_index(c, middle, 3, 3), pair_chain_index(c, middle, 1, 1));
    assert_int_equal(pair_chain_index(c, middle, 0, 3), pair_chain_index(c, middle, 0, 1));
    assert_int_not_equal(pair_chain_index(c, middle, 1, 1), pair_chain_index(c, middle, 1, 2));
    assert_int_not_equal(pair_chain_index(c, middle, 0, 1), pair_chain_index(c, middle, 1, 0));
    assert_true(pair_chain_distinct(c) < pair_chain_count(c));
    int32_t device[4];
    pair_chain_exchange(c, middle, 3, 2, device); /* the pair is that of B and C */
    assert_true(device[0] == 0 && device[1] == 3 && device[2] == 2 && device[3] == 1);
    pair_chain_tell_apart(c);
    assert_int_not_equal(pair_chain_index(c, middle, 3, 2), pair_chain_index(c, middle, 1, 2));
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* Without an exit there is one device to exchange; the pair of B counts for D. */
static void test_pair_chain_joins_equal_devices_at_the_ends(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(three_equals);
    pair_chain *c;
    int32_t device[4];
    assert_ok(pair_chain_new(&c, p));
    pair_chain_join_equals(c);
    int32_t last = c->s->block_class[c->s->n_blocks - 1];
    assert_int_equal(pair_chain_index(c, last, 3, 0), pair_chain_index(c, last, 1, 0));
    pair_chain_exchange(c, last, 3, 0, device);
    assert_int_equal(device[1], 3);
    pair_chain_free(c);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_chain_goes_the_shortest_path),
        cmocka_unit_test(test_pair_chain_path_ends_with_the_time),
        cmocka_unit_test(test_pair_chain_steady_path_avoids_changes),
        cmocka_unit_test(test_pair_chain_adds_up_what_is_sent),
        cmocka_unit_test(test_pair_chain_masks_and_possible_pairs),
        cmocka_unit_test(test_pair_chain_share_of_a_class),
        cmocka_unit_test(test_pair_chain_without_plans_has_no_path),
        cmocka_unit_test(test_pair_chain_joins_equal_devices),
        cmocka_unit_test(test_pair_chain_joins_equal_devices_at_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
