/* Leaves, copies, cases and bytes: falsehoods that one wrong line of the verifier would believe, each small enough to
 * check on paper. What is accepted is put beside the optimum (support/false_certificate.h). */
#include "support/check.h"
#include "support/false_certificate.h"
#include "support/small_problem.h"
#include "support/tiny.h"

#define PRICES(length, buckets, prices) \
    "\"length_ns\": " #length ", \"step_ns\": 1, \"buckets\": [" buckets "], \"prices\": [" prices "]"

/* ---- copies ---- */

/* x alone reads s, y and w both read t, all on B: 20 ns of A's port. y pays half of its transfer: no copy of x. */
static void test_prove_false_copies_share_alike(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop in 1,- > s:10 t:10\nop x -,0 s > a:0\n"
                                     "op y -,0 t > b:0\nop w -,0 t > c:0\nop out -,1 a b c\n");
    const char *leaf20 = "\"leaves\": [{" PRICES(20, "0, 21", "2, 0, 1") "}]",
               *leaf19 = "\"leaves\": [{" PRICES(19, "0, 20", "2, 0, 1") "}]",
               *alike = "\"component_kind\": [0, 1, 1], \"trees\": [[], []]";
    false_certificate_rejected(
        p, false_certificate_between(p, 0, 1, "\"component_kind\": [0, 0, 1], \"trees\": [[], []]", leaf20),
        "component 1 is not a copy of component 0");
    false_certificate_rejected(p, false_certificate_between(p, 0, 1, alike, leaf20),
                               "prices do not exclude a length of 20 ns");
    assert_int_equal(false_certificate_proves(p, false_certificate_between(p, 0, 1, alike, leaf19)), 22);
    moirai_problem_free(p);
}

/* Tensors that take as long from A, but not from B: 10 and 3 to A. */
static void test_prove_false_copies_have_one_table(void **state)
{
    (void)state;
    static const small_op op[] = {{"in", "1,null", "", "s:0", 0, NULL},
                                  {"x", "null,0", "s", "t:0[[0,5],[10,0]]", 0, NULL},
                                  {"y", "null,0", "s", "u:0[[0,5],[3,0]]", 0, NULL},
                                  {"out", "1,null", "t,u", "", 0, NULL},
                                  {NULL, NULL, NULL, NULL, 0, NULL}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 2, .congestion = "port", .op = op});
    const char *leaf13 = "\"leaves\": [{" PRICES(13, "0, 14", "3, 0, 1") "}]",
               *leaf12 = "\"leaves\": [{" PRICES(12, "0, 13", "3, 0, 1") "}]",
               *apart = "\"component_kind\": [0, 1], \"trees\": [[], []]";
    false_certificate_rejected(
        p, false_certificate_between(p, 0, 0, "\"component_kind\": [0, 0], \"trees\": [[]]", leaf13),
        "component 1 is not a copy of component 0");
    false_certificate_rejected(p, false_certificate_between(p, 0, 0, apart, leaf13),
                               "prices do not exclude a length of 13 ns");
    assert_int_equal(false_certificate_proves(p, false_certificate_between(p, 0, 0, apart, leaf12)), 15);
    moirai_problem_free(p);
}

/* Blocks that differ in bytes alone: at prices on bytes they cost something else. */
static void test_prove_false_copies_have_equal_bytes(void **state)
{
    (void)state;
    static const char text[] = "device A 10\ndevice B 100\nop in 1,1 > s:0\nop x 5,9 s mem=10 > t:0\nop mid 1,1 t > "
                               "u:0\nop y 5,9 u mem=%d > v:0\nop out 1,1 v\n";
    static const char body[] = "\"cuts\": [0, 2, 4], \"block_class\": [0, 1, 1, 2], \"classes\": [{}, {}, {}],"
                               " \"memory\": {\"unit\": 10, \"byte_prices\": [4, 0], \"pairs\": []}";
    char both[512];
    snprintf(both, sizeof both, text, 0);
    moirai_problem *p = tiny_problem(both);
    false_certificate_rejected(p, body, "block 2 is not a copy of the first block of class 1");
    moirai_problem_free(p);
    snprintf(both, sizeof both, text, 10);
    p = tiny_problem(both);
    /* 3 + 5 + 5 of time, and bytes where they are cheapest, on B. */
    assert_int_equal(false_certificate_proves(p, body), 13);
    moirai_problem_free(p);
}

/* ---- prices ---- */

/* Three readers of one transfer of 10 pay 3 each: rounded up, or by halves, they would pay more than it costs. */
static void test_prove_false_shares_round_down(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop in 1,- > s:10\nop x -,0 s > a:0\nop y -,0 s > b:0\n"
                                     "op z -,0 s > c:0\nop out -,1 a b c\n");
    const char *kinds = "\"component_kind\": [0, 0, 0], \"trees\": [[]]";
    false_certificate_rejected(
        p, false_certificate_between(p, 0, 1, kinds, "\"leaves\": [{" PRICES(10, "0, 11", "2, 0, 1") "}]"),
        "prices do not exclude a length of 10 ns");
    assert_int_equal(
        false_certificate_proves(
            p, false_certificate_between(p, 0, 1, kinds, "\"leaves\": [{" PRICES(8, "0, 9", "2, 0, 1") "}]")),
        12); /* 9 is proven by the prices, 10 by the longest path */
    moirai_problem_free(p);
}

/* A runs z from 0 to 5, x from 5 to 20 and y from 20 to 30. At 1 and then 3 per ns in the first and third ten, x is
 * cheapest if it ends with the second: 5, inside a step of ten, where neither end of the step is as cheap. */
static const char kink[] = "congestion none\ndevice A 9\ndevice B 9\ndevice C 9\nop z 5,-,- > a:0\nop x 15,-,-\n"
                           "op before -,20,- > b:0\nop after -,-,25 a\nop y 10,-,- b\n";

static void test_prove_false_costs_bend_within_a_step(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(kink);
    const char *kinds = "\"component_kind\": [0, 1, 2], \"trees\": [[0, 0, 1], [], [0, 0, 1]]",
               *leaf = "\"leaves\": [{\"length_ns\": 30, \"step_ns\": 10, \"buckets\": [0, 1, 2, 4],"
                       " \"prices\": [0, 0, 1, 0, 2, 3]}]";
    false_certificate_rejected(p, false_certificate_whole(kinds, leaf), "prices do not exclude a length of 30 ns");
    moirai_problem_free(p);
}

/* u2 takes 2 and its way to B 3, in steps of 2: two whole steps in all, and v can start in the third, at 5. */
static void test_prove_false_waits_round_down(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop u1 0,- > a:0\nop u2 2,- > b:3\nop v -,1 a b\n");
    false_certificate_rejected(
        p,
        false_certificate_whole("\"component_kind\": [0], \"trees\": [[0, 0, 2, 1, 0, 2]]",
                                "\"leaves\": [{\"length_ns\": 6, \"step_ns\": 2, \"buckets\": [0, 4], \"prices\": "
                                "[]}]"),
        "prices do not exclude a length of 6 ns");
    moirai_problem_free(p);
}

/* Prices so large that what an operator pays looks like "never". */
static void test_prove_false_prices_do_not_grow_into_never(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion none\ndevice A 9\ndevice B 9\nop in 1,- > s:3\nop x 10,10 s > t:3\n"
                                     "op y 10,10 s > u:3\nop out 1,- t u\n");
    const char *kinds = "\"component_kind\": [0, 0], \"trees\": [[]]";
    false_certificate_rejected(p,
                               false_certificate_between(p, 0, 0, kinds,
                                                         "\"leaves\": [{" PRICES(16, "0, 17",
                                                                                 "0, 0, 288230376151711744, 1, 0, "
                                                                                 "288230376151711744") "}]"),
                               "prices is 288230376151711744, out of range");
    moirai_problem_free(p);
}

/* ---- cases ---- */

/* x and y run on B or C, which are equal but for the exit on B: y must be there, its result is large. The best plan
 * sends the tensor to C first, for x, and then to B: 110. Both on B take 111, and with B first and x on C it is 120. */
static void test_prove_false_cuts_tell_devices_apart(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\ndevice C 9\nop in 1,-,- > s:10\nop x -,100,100 s > a:0\n"
                                     "op y -,1,1 s > b:1000\nop out -,1,- a b\n");
    const char *kinds = "\"component_kind\": [0, 1], \"trees\": [[], []], \"shared\": 0";
#define LEAF(receivers) "{\"receivers\": [" receivers "], " PRICES(110, "0, 10, 111", "1, 1, 1") "}"
    false_certificate_rejected(
        p, false_certificate_between(p, 0, 1, kinds, "\"leaves\": [" LEAF("") ", " LEAF("1") ", " LEAF("1, 2") "]"),
        "the leaves leave cases out");
    assert_int_equal(
        false_certificate_proves(p, false_certificate_between(p, 0, 1, kinds,
                                                              "\"leaves\": [" LEAF("") ", " LEAF("1") ", " LEAF(
                                                                  "1, 2") ", " LEAF("2") ", {\"receivers\": [2, 1]}]")),
        112); /* the last one leaves the longest path: 10 + 100 */
#undef LEAF
    moirai_problem_free(p);
}

/* The exit reads the entry's tensor itself: its device receives it, although no operator in between is there. */
static void test_prove_false_the_exit_receives(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop in 1,- > s:10\nop x 1,- s > t:0\nop out -,1 s t\n");
    const char *kinds = "\"component_kind\": [0], \"trees\": [[]], \"shared\": 0";
    false_certificate_rejected(
        p,
        false_certificate_between(p, 0, 1, kinds, "\"leaves\": [{\"receivers\": [], " PRICES(500, "0, 501", "") "}]"),
        "the leaves leave cases out");
    assert_int_equal(
        false_certificate_proves(p, false_certificate_between(p, 0, 1, kinds,
                                                              "\"leaves\": [{\"receivers\": [], " PRICES(
                                                                  500, "0, 501", "") "}, {\"receivers\": [1]}]")),
        12);
    moirai_problem_free(p);
}

/* ---- equal devices ---- */

/* The cuts on one device, or on two equal ones: that is not the same. */
static void test_prove_false_images_keep_cuts_together(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop in 1,1 > s:10\nop x 1,1 s > t:10\nop out 1,1 t\n");
    assert_int_equal(false_certificate_proves(
                         p, false_certificate_between(p, 0, 0, "\"component_kind\": [0], \"trees\": [[]]", "\"k\": 0")),
                     3);
    moirai_problem_free(p);
}

/* B and C send alike, but receive in 10 and in 1; the other way round as well. */
static void test_prove_false_equal_devices_send_and_receive_alike(void **state)
{
    (void)state;
    static const small_op to[] = {{"in", "1,null,null", "", "s:0[[0,10,1],[1,0,100],[1,100,0]]", 0, NULL},
                                  {"x", "null,1,1", "s", "t:0[[0,10,1],[1,0,100],[1,100,0]]", 0, NULL},
                                  {"out", "null,1,1", "t", "", 0, NULL},
                                  {NULL, NULL, NULL, NULL, 0, NULL}};
    static const small_op from[] = {{"in", "null,1,1", "", "s:0[[0,1,1],[10,0,100],[1,100,0]]", 0, NULL},
                                    {"x", "null,1,1", "s", "t:0[[0,1,1],[10,0,100],[1,100,0]]", 0, NULL},
                                    {"out", "1,null,null", "t", "", 0, NULL},
                                    {NULL, NULL, NULL, NULL, 0, NULL}};
    for (int i = 0; i < 2; i++) {
        moirai_problem *p = small_problem(&(small_spec){.n_devices = 3, .op = i ? from : to});
        assert_int_equal(
            false_certificate_proves(
                p, false_certificate_between(p, 0, 0, "\"component_kind\": [0], \"trees\": [[]]", "\"k\": 0")),
            4);
        moirai_problem_free(p);
    }
}

/* ---- bytes ---- */

/* Room that is left on any device is taken off, on the last as well: x runs where there is room, in 5. */
static void test_prove_false_all_room_counts(void **state)
{
    (void)state;
    for (int free = 0; free < 4; free++) {
        char text[256];
        snprintf(text, sizeof text, "device A %d\ndevice B %d\ndevice C %d\ndevice D %d\nop x 5,5,5,5 mem=10\n",
                 free == 0 ? 100 : 0, free == 1 ? 100 : 0, free == 2 ? 100 : 0, free == 3 ? 100 : 0);
        moirai_problem *p = tiny_problem(text);
        assert_int_equal(false_certificate_proves(p,
                                                  "\"cuts\": [], \"block_class\": [0], \"classes\": [{}], \"memory\":"
                                                  " {\"unit\": 1, \"byte_prices\": [1, 1, 1, 1], \"pairs\": []}"),
                         5);
        moirai_problem_free(p);
    }
}

/* x takes 5, and there is room: a case of just that length has plans. */
static void test_prove_false_a_case_of_one_length_has_plans(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\nop in 1 > s:0\nop x 5 s > t:0\nop out 1 t\n");
    assert_int_equal(
        false_certificate_proves(p, "\"cuts\": [0, 2], \"block_class\": [0, 1, 2], \"classes\": [{}, {"
                                    "\"component_kind\": [0], \"trees\": [[]], \"pairs\": []}, {}], \"memory\":"
                                    " {\"unit\": 1, \"byte_prices\": [0], \"pairs\": [{\"class\": 1, \"entry\": 0,"
                                    " \"exit\": 0, \"leaves\": [{\"counts\": [-2, 0, 0, 0, 5]}, {\"counts\": [-2, 0,"
                                    " 0, 6, 9223372036854775807]}]}]}"),
        7);
    moirai_problem_free(p);
}

/* Without prices in time the least length is what counts, not the length up to which prices go. */
static void test_prove_false_the_least_length_counts(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\nop in 1 > s:0\nop x 5 s > t:0\nop out 1 t\n");
    assert_int_equal(
        false_certificate_proves(p, "\"cuts\": [0, 2], \"block_class\": [0, 1, 2], \"classes\": [{}, {"
                                    "\"component_kind\": [0], \"trees\": [[]], \"pairs\": []}, {}], \"memory\":"
                                    " {\"unit\": 1, \"byte_prices\": [0], \"pairs\": [{\"class\": 1, \"entry\": 0,"
                                    " \"exit\": 0, \"leaves\": [{\"counts\": [-2, 0, 0, 0, 50], " PRICES(
                                        50, "0, 51", "") "}, {\"counts\": [-2, 0, 0, 51, 9223372036854775807]}]}]}"),
        7);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_false_copies_share_alike),
        cmocka_unit_test(test_prove_false_copies_have_one_table),
        cmocka_unit_test(test_prove_false_copies_have_equal_bytes),
        cmocka_unit_test(test_prove_false_shares_round_down),
        cmocka_unit_test(test_prove_false_costs_bend_within_a_step),
        cmocka_unit_test(test_prove_false_waits_round_down),
        cmocka_unit_test(test_prove_false_prices_do_not_grow_into_never),
        cmocka_unit_test(test_prove_false_cuts_tell_devices_apart),
        cmocka_unit_test(test_prove_false_the_exit_receives),
        cmocka_unit_test(test_prove_false_images_keep_cuts_together),
        cmocka_unit_test(test_prove_false_equal_devices_send_and_receive_alike),
        cmocka_unit_test(test_prove_false_all_room_counts),
        cmocka_unit_test(test_prove_false_a_case_of_one_length_has_plans),
        cmocka_unit_test(test_prove_false_the_least_length_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
