/* What is proven of a class of blocks wherever its ends are. */
#include "exact/exact.h"
#include "pair/floors.h"
#include "pair/pair_refine.h"
#include "lp/lp.h"
#include "support/check.h"
#include "support/tiny.h"
#include "util/util.h"

static const util_stop never;

static pair_chain *chain_of(const moirai_problem *p)
{
    pair_chain *c;
    assert_ok(pair_chain_new(&c, p));
    assert_ok(pair_chain_open_all(c, 1, &never));
    return c;
}

static int64_t optimum(const pair_state *x)
{
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    assert_ok(exact_solve(&x->block.problem, &o, &found));
    assert_true(found.complete && found.found);
    int64_t result = found.makespan_ns;
    exact_result_clear(&found);
    return result;
}

/* Four operators of 10 between two cuts, on two devices: a path takes 10, sharing them out at least 20. */
static void test_pair_floor_is_below_every_pair_and_above_its_path(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop a 5,5 > s:1\nop b 10,10 s > t:1\nop c 10,10 s > u:1\n"
                                     "op d 10,10 s > v:1\nop e 10,10 s > w:1\nop f 5,5 t u v w\n");
    pair_chain *c = chain_of(p);
    int32_t class_ = c->s->block_class[1];
    int64_t floor_ns;
    assert_ok(pair_floors_class(&floor_ns, c, class_, &never));
    assert_true(floor_ns >= (pricing_lp_available() ? 20 : 10));
    for (int32_t i = 0; i < 4; i++)
        assert_true(floor_ns <= optimum(pair_chain_at(c, class_, i / 2, i % 2)));
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* Two blocks of one class, x and y on B alone. The first begins on A, 7 away, and takes 27; the second begins on B and
 * takes 20. What is said of the class holds for both. */
static void test_pair_floor_holds_for_all_blocks_of_a_class(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(
        "device A 9\ndevice B 9\nop a 5,- > s:7\nop b -,10 s > t:7\nop c -,10 s > u:7\nop d -,5 t u > v:7\n"
        "op e -,10 v > w:7\nop f -,10 v > x:7\nop g -,5 w x\n");
    pair_chain *c;
    int64_t floor_ns;
    assert_ok(pair_chain_new(&c, p));
    int32_t class_ = c->s->block_class[1];
    assert_int_equal(class_, c->s->block_class[2]);
    assert_ok(pair_open(c, class_, 0, 1)); /* alone, so that no shorter plan is known */
    assert_ok(pair_floors_class(&floor_ns, c, class_, &never));
    assert_ok(pair_open(c, class_, 1, 1));
    assert_int_equal(optimum(pair_chain_at(c, class_, 0, 1)), 27);
    assert_int_equal(optimum(pair_chain_at(c, class_, 1, 1)), 20);
    assert_true(floor_ns <= 20);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* A bound of the class counts for pairs that are open, for those that are not, and on paths; it is no proof of a pair. */
static void test_pair_floor_counts_for_pairs_but_not_as_proof(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop a 5,5 > s:1\nop b 10,10 s > t:1\nop c 10,10 s > u:1\n"
                                     "op d 10,10 s > v:1\nop e 10,10 s > w:1\nop f 5,5 t u v w\n");
    pair_chain *c;
    assert_ok(pair_chain_new(&c, p));
    int32_t class_ = c->s->block_class[1];
    c->raised_ns[class_] = 20;
    assert_int_equal(pair_chain_path(c, PAIR_CHAIN_LOWER, NULL), 5 + 20 + 5);
    assert_ok(pair_open(c, class_, 0, 0));
    assert_int_equal(pair_chain_at(c, class_, 0, 0)->lower_ns, 20);
    assert_int_equal(pair_chain_at(c, class_, 0, 0)->path_ns, 10);
    assert_int_equal(pair_certified_ns(pair_chain_at(c, class_, 0, 0)), 10);
    pair_chain_free(c);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_floor_is_below_every_pair_and_above_its_path),
        cmocka_unit_test(test_pair_floor_holds_for_all_blocks_of_a_class),
        cmocka_unit_test(test_pair_floor_counts_for_pairs_but_not_as_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
