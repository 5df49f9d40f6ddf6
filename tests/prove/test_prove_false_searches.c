/* Search trees and static proofs: falsehoods that one wrong line of the verifier would believe, each small enough to
 * check on paper. What is accepted is put beside the optimum (support/false_certificate.h). */
#include "support/check.h"
#include "support/false_certificate.h"
#include "support/small_problem.h"
#include "support/tiny.h"

static const char *local(const moirai_problem *p, const char *name)
{
    static char text[4][16];
    static int at;
    at = (at + 1) % 4;
    snprintf(text[at], sizeof text[at], "%d", p->topo_rank[tiny_op(p, name)]);
    return text[at];
}

#define LONE "\"component_kind\": [0], \"trees\": [[]]"

/* ---- search trees ---- */

/* Whichever device the operator fits on: its node is looked at, and open. */
static void test_prove_false_search_every_device_is_looked_at(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) {
        char text[256];
        int at = snprintf(text, sizeof text, "device A 9\ndevice B 9\ndevice C 9\ndevice D 9\ndevice E 9\nop x ");
        for (int l = 0; l < 5; l++)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", l ? "," : "", l == k ? 50 : 100);
        snprintf(text + at, sizeof text - (size_t)at, "\n");
        moirai_problem *p = tiny_problem(text);
        const char *body =
            false_certificate_whole(LONE, "\"search\": {\"length_ns\": 50, \"tree\": [0, -1, -1, -1, -1, -1]}");
        if (k < 5)
            false_certificate_rejected(p, body, "a search leaves a case open");
        else
            assert_int_equal(false_certificate_proves(p, body), 100);
        moirai_problem_free(p);
    }
}

/* x goes first, since 5 follow it on B; whichever of the two orders is told first. */
static void test_prove_false_search_both_orders_are_looked_at(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop x 5,- > a:0\nop y 5,-\nop after -,5 a\n");
    const char *kinds = "\"component_kind\": [0, 1], \"trees\": [[0, 0, 1], []]";
    for (int turn = 0; turn < 2; turn++) {
        char proof[128];
        snprintf(proof, sizeof proof, "\"search\": {\"length_ns\": 10, \"tree\": [-2, %s, %s, -1, -1]}",
                 local(p, turn ? "x" : "y"), local(p, turn ? "y" : "x"));
        false_certificate_rejected(p, false_certificate_whole(kinds, proof), "a search leaves a case open");
    }
    moirai_problem_free(p);
}

/* A transfer of no time at 5, in the midst of one from 0 to 10 through the same ports. */
static void test_prove_false_search_no_time_holds_no_port(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("device A 9\ndevice B 9\nop a 5,- > p:0\nop c 0,- > q:10\nop b -,5 p\nop d -,0 q\n");
    const char *kinds = "\"component_kind\": [0, 1], \"trees\": [[0, 0, 1], [0, 0, 1]]";
    false_certificate_rejected(p, false_certificate_whole(kinds, "\"search\": {\"length_ns\": 10, \"tree\": [-1]}"),
                               "a search leaves a case open");
    assert_int_equal(
        false_certificate_proves(p, false_certificate_whole(kinds, "\"search\": {\"length_ns\": 9, \"tree\": [-1]}")),
        10);
    moirai_problem_free(p);
}

/* With x on A two transfers leave B one after the other, which takes 17; with x on B there is one of them, no order.
 * The node looked at before must not be remembered. */
static void test_prove_false_search_orders_what_takes_place(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("flow edge\ndevice A 9\ndevice B 9\nop in -,1 > s:6 t:10\nop x 1,1 s > a:0\n"
                                     "op y 5,- t > b:0\nop out -,1 a b\n");
    const char *kinds = "\"component_kind\": [0, 1], \"trees\": [[], []]";
    false_certificate_rejected(
        p,
        false_certificate_between(p, 1, 1, kinds,
                                  "\"search\": {\"length_ns\": 15, \"tree\": [1, -1, -2, 4, 5, -1, -1]}"),
        "a search puts tasks in order that need not be");
    assert_int_equal(false_certificate_proves(p, false_certificate_between(p, 1, 1, kinds,
                                                                           "\"search\": {\"length_ns\": 14, \"tree\": "
                                                                           "[1, -1, -1]}")),
                     17);
    moirai_problem_free(p);
}

/* l must be on C, j on B or C: one transfer, to C, serves both, and all is done in 20. */
static void test_prove_false_search_sends_to_where_readers_must_be(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("device A 9\ndevice B 9\ndevice C 9\nop i 0,-,- > s:10\nop j -,5,5 s\nop l -,-,5 s\n");
    const char *kinds = "\"component_kind\": [0], \"trees\": [[0, 0, 1, 0, 0, 2]]";
    false_certificate_rejected(p, false_certificate_whole(kinds, "\"search\": {\"length_ns\": 20, \"tree\": [-1]}"),
                               "a search leaves a case open");
    assert_int_equal(false_certificate_proves(
                         p, false_certificate_whole(kinds, "\"search\": {\"length_ns\": 19, \"tree\": [1, -1, -1]}")),
                     20);
    moirai_problem_free(p);
}

/* i writes two tensors for B: the short one goes first, since 90 follow it. They are two transfers, each with its own
 * time and tail. */
static void test_prove_false_search_two_tensors_are_two_transfers(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\ndevice C 9\nop i 0,-,- > s:10 t:1\nop j -,0,- s\n"
                                     "op l -,90,- t\n");
    const char *kinds = "\"component_kind\": [0], \"trees\": [[0, 0, 1, 0, 1, 2]]";
    false_certificate_rejected(p, false_certificate_whole(kinds, "\"search\": {\"length_ns\": 91, \"tree\": [-1]}"),
                               "a search leaves a case open");
    assert_int_equal(
        false_certificate_proves(p, false_certificate_whole(kinds, "\"search\": {\"length_ns\": 90, \"tree\": [-1]}")),
        91);
    moirai_problem_free(p);
}

/* i may be on A or B, from where the way to C takes 50 and 1: C receives for 1 at least, and then for 10. */
static void test_prove_false_search_transfers_take_their_least_time(void **state)
{
    (void)state;
    static const small_op op[] = {
        {"i", "0,0,null,null", "", "s:0[[0,50,50,50],[50,0,1,50],[50,50,0,50],[50,50,50,0]]", 0, NULL},
        {"l", "null,null,null,0", "", "t:10", 0, NULL},
        {"j", "null,null,0,null", "s", "", 0, NULL},
        {"m", "null,null,0,null", "t", "", 0, NULL},
        {NULL, NULL, NULL, NULL, 0, NULL}};
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 4, .congestion = "port", .op = op});
    const char *kinds = "\"component_kind\": [0, 1], \"trees\": [[0, 0, 1], [0, 0, 1]]";
    false_certificate_rejected(p, false_certificate_whole(kinds, "\"search\": {\"length_ns\": 55, \"tree\": [-1]}"),
                               "a search leaves a case open");
    assert_int_equal(false_certificate_proves(p, false_certificate_whole(kinds, "\"search\": {\"length_ns\": 10, "
                                                                                "\"tree\": [-1]}")),
                     11);
    moirai_problem_free(p);
}

/* ---- static proofs ---- */

/* A row of loads says T >= h + q even where nothing is counted: no more than is proven may be put there. */
static void test_prove_false_static_rows_ask_for_what_is_proven(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\nop x 10\n");
    /* no edges: (end) of x has place 0, the load row 1 */
    false_certificate_rejected(p,
                               false_certificate_whole(LONE, "\"static\": [{\"upper_ns\": 99, \"loads\": [0, 0, 11, 0],"
                                                             " \"duals\": [1, 4194304]}]"),
                               "a load row for more than is proven");
    assert_int_equal(false_certificate_proves(
                         p, false_certificate_whole(LONE, "\"static\": [{\"upper_ns\": 99, \"loads\": [0, 0, 10, 0],"
                                                          " \"duals\": [1, 4194304]}]")),
                     10);
    moirai_problem_free(p);
}

/* Inequalities are added, never taken away. */
static void test_prove_false_static_inequalities_are_added(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\nop x 10\n");
    for (int row = 0; row < 2; row++) {
        char proof[128];
        snprintf(proof, sizeof proof, "\"static\": [{\"upper_ns\": 99, \"loads\": [0, 0, 0, 0], \"duals\": [%d, -1]}]",
                 row);
        false_certificate_rejected(p, false_certificate_whole(LONE, proof), "a negative multiplier of an inequality");
    }
    moirai_problem_free(p);
}

/* The tensor goes to B for j, which takes no time; l, with 90 behind it, stays on A. Only what all readers there have
 * behind them follows a transfer. */
static void test_prove_false_static_a_transfer_has_its_least_tail(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop i 0,- > s:10\nop j -,0 s\nop l 90,90 s\n");
    /* 2 edges, 3 operators, 2 devices: (share) of i -> j from A to B has place 9, the load row 21 */
    assert_int_equal(
        false_certificate_proves(p, false_certificate_whole("\"component_kind\": [0], \"trees\": [[0, 0, 1, 0, 0, 2]]",
                                                            "\"static\": [{\"upper_ns\": 100, \"loads\": [1, 0, 0, 90],"
                                                            " \"duals\": [9, 41943040, 21, 4194304]}]")),
        90);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_false_search_every_device_is_looked_at),
        cmocka_unit_test(test_prove_false_search_both_orders_are_looked_at),
        cmocka_unit_test(test_prove_false_search_no_time_holds_no_port),
        cmocka_unit_test(test_prove_false_search_orders_what_takes_place),
        cmocka_unit_test(test_prove_false_search_sends_to_where_readers_must_be),
        cmocka_unit_test(test_prove_false_search_two_tensors_are_two_transfers),
        cmocka_unit_test(test_prove_false_search_transfers_take_their_least_time),
        cmocka_unit_test(test_prove_false_static_rows_ask_for_what_is_proven),
        cmocka_unit_test(test_prove_false_static_inequalities_are_added),
        cmocka_unit_test(test_prove_false_static_a_transfer_has_its_least_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
