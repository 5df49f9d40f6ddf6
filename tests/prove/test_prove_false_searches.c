/* Search trees: falsehoods that one wrong line of the verifier would believe, each small enough to
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
