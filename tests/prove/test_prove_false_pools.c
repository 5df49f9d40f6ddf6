/* Pools and windows: falsehoods that one wrong line of the verifier would believe, each small enough to check on paper.
 * What is accepted is put beside the optimum (support/false_certificate.h). */
#include "support/check.h"
#include "support/false_certificate.h"
#include "support/small_problem.h"
#include "support/tiny.h"

/* ---- pools ---- */

/* Every device has its time to sell. */
static void test_prove_false_pool_every_device_has_time(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        char text[128], proof[256];
        snprintf(text, sizeof text, "device A 9\ndevice B 9\ndevice C 9\ndevice D 9\nop x %s,%s,%s,%s\n",
                 k == 0 ? "5" : "-", k == 1 ? "5" : "-", k == 2 ? "5" : "-", k == 3 ? "5" : "-");
        snprintf(proof, sizeof proof,
                 "\"pool\": {\"length_ns\": 5, \"step_ns\": 1, \"bucket_ns\": 5, \"weights\": [%d, %d, %d, %d],"
                 " \"prices\": [1], \"flows\": []}",
                 k == 0, k == 1, k == 2, k == 3);
        moirai_problem *p = tiny_problem(text);
        false_certificate_rejected(p, false_certificate_pool(proof), "a pool's prices exclude nothing");
        moirai_problem_free(p);
    }
}

/* w has A from 0 to 9; x starts at 9, the last moment of its only step. */
static void test_prove_false_pool_steps_are_whole(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop w 9,- > a:0\nop x 1,-\nop after -,1 a\n");
    false_certificate_rejected(p,
                               false_certificate_pool("\"pool\": {\"length_ns\": 10, \"step_ns\": 10,"
                                                      " \"bucket_ns\": 9, \"weights\": [1, 0], \"prices\": "
                                                      "[1, 0], \"flows\": []}"),
                               "a pool's prices exclude nothing");
    moirai_problem_free(p);
}

/* w has A from 0 to 1, u from 1 to 6: its last start, before v, counts. */
static void test_prove_false_pool_producers_keep_their_last_step(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\ndevice C 9\nop w 1,-,- > a:0\nop u 5,-,- > b:0\n"
                                     "op after -,-,10 a\nop v -,5,- b\n");
    false_certificate_rejected(
        p,
        false_certificate_pool("\"pool\": {\"length_ns\": 11, \"step_ns\": 1, \"bucket_ns\": 1, \"weights\": "
                               "[1, 0, 0], \"prices\": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], \"flows\": []}"),
        "a pool's prices exclude nothing");
    moirai_problem_free(p);
}

/* i cannot run on A, because of q; j, which does not know that, may start at 6, and i at 15. So j's steps begin before
 * i's: i in its second step asks j for the third, not the fourth. B is taken from 15 to 25, and i runs behind that. */
static void test_prove_false_pool_rounds_distances_down(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("congestion none\ndevice A 9\ndevice B 9\ndevice C 9\ndevice D 9\nop s 1,-,-,- > s:14\n"
                     "op i 5,5,-,- s > p:1000 r:0\nop q -,1,-,- p\nop j -,-,5,- r\n"
                     "op w0 -,-,-,15 > a:0\nop w -,10,-,- a > b:0\nop w1 -,-,-,15 b\n");
    false_certificate_rejected(
        p,
        false_certificate_pool("\"pool\": {\"length_ns\": 40, \"step_ns\": 10, \"bucket_ns\": 5, \"weights\": [0, 1, "
                               "0, 0], \"prices\": [0, 0, 0, 1, 1, 0, 0, 0], \"flows\": []}"),
        "a pool's prices exclude nothing");
    moirai_problem_free(p);
}

/* ---- windows ---- */

/* A is taken from 0 to 10 and from 39 to 49, since chains of 53 go through these. u cannot be before 10, and v comes
 * 5 + `between` later: at 35 it meets the second, at 34 it just fits. The arc from u to v is what knows. */
static moirai_problem *taken_twice(int between)
{
    char text[512];
    snprintf(text, sizeof text,
             "congestion none\ndevice A 9\ndevice B 9\ndevice C 9\ndevice D 9\nop u 5,-,-,- > a:0\n"
             "op w 10,-,-,- > b:0\nop z0 -,-,-,39 > c:0\nop m -,%d,-,- a > d:0\nop w1 -,-,43,- b\n"
             "op z 10,-,-,- c > e:0\nop v 5,-,-,- d\nop z1 -,-,-,4 e\n",
             between);
    return tiny_problem(text);
}

static const char taken_twice_body[] =
    "\"cuts\": [], \"block_class\": [0], \"classes\": [{}], \"windows\": {\"intervals\": [{\"entry\": 0, \"exit\": 6}],"
    " \"pool\": {\"length_ns\": 53, \"step_ns\": 1, \"bucket_ns\": 1, \"weights\": [1, 0, 0, 0], \"prices\": ["
    "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
    "0,"
    " 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0], \"flows\": [5, 10, 1]}}";

static void test_prove_false_windows_arcs_are_as_long_as_proven(void **state)
{
    (void)state;
    moirai_problem *p = taken_twice(20);
    assert_int_equal(false_certificate_proves(p, taken_twice_body), 54);
    moirai_problem_free(p);
    p = taken_twice(19);
    false_certificate_rejected(p, taken_twice_body, "windows: a pool's prices exclude nothing");
    moirai_problem_free(p);
}

/* Three times u before m before v, the u and v on E one after the other: 40. The u take 5 there, 15 on A: were the arcs
 * those of A, all three would have to start at 0, on two devices. */
static void test_prove_false_windows_arcs_see_every_device(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion none\ndevice A 9\ndevice B 9\ndevice C 9\ndevice D 9\ndevice E 9\n"
                                     "op u1 15,-,-,-,5 > a:0\nop u2 15,-,-,-,5 > b:0\nop u3 15,-,-,-,5 > c:0\n"
                                     "op m1 -,20,-,-,- a > d:0\nop m2 -,-,20,-,- b > e:0\nop m3 -,-,-,20,- c > f:0\n"
                                     "op v1 -,-,-,-,5 d\nop v2 -,-,-,-,5 e\nop v3 -,-,-,-,5 f\n");
    static const char body[] =
        "\"cuts\": [], \"block_class\": [0], \"classes\": [{}], \"windows\": {\"intervals\": [{\"entry\": 0, \"exit\": "
        "6}, {\"entry\": 1, \"exit\": 7}, {\"entry\": 2, \"exit\": 8}], \"pool\": {\"length_ns\": 40, \"step_ns\": 1, "
        "\"bucket_ns\": 5, \"weights\": [1, 0, 0, 0, 1], \"prices\": [1, 0, 0, 0, 0, 0, 0, 0], \"flows\": []}}";
    false_certificate_rejected(p, body, "windows: a pool's prices exclude nothing");
    moirai_problem_free(p);
}

/* v is fast on one device, whichever that is. */
static void test_prove_false_windows_tails_see_every_device(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        char text[128];
        snprintf(text, sizeof text, "device A 9\ndevice B 9\ndevice C 9\nop u 1,1,1 > a:0\nop v %d,%d,%d a\n",
                 k == 0 ? 1 : 100, k == 1 ? 1 : 100, k == 2 ? 1 : 100);
        moirai_problem *p = tiny_problem(text);
        assert_int_equal(false_certificate_proves(p, "\"cuts\": [], \"block_class\": [0], \"classes\": [{}], "
                                                     "\"windows\": {\"intervals\": [{\"entry\": 0, \"exit\": 1}, "
                                                     "{\"entry\": 0}, {\"exit\": 1}]}"),
                         2);
        moirai_problem_free(p);
    }
}

/* ---- what is sent, and where ---- */

/* A to B takes 1 and B to A 50; i runs on A behind w, which has A from 0 to 5, and j on B. And the other way round: j
 * on B before w, which has B from 55 to 60. */
static void test_prove_false_pool_transfers_have_a_direction(void **state)
{
    (void)state;
    static const small_op late[] = {{"w", "5,null,null", "", "a:0", 0, NULL},
                                    {"i", "5,null,null", "", "s:0[[0,1,1],[50,0,50],[1,1,0]]", 0, NULL},
                                    {"after", "null,null,55", "a", "", 0, NULL},
                                    {"j", "null,4,null", "s", "", 0, NULL},
                                    {NULL, NULL, NULL, NULL, 0, NULL}};
    static const small_op early[] = {{"before", "null,null,55", "", "a:0[[0,0,0],[0,0,0],[0,0,0]]", 0, NULL},
                                     {"i", "4,null,null", "", "s:0[[0,1,1],[50,0,50],[1,1,0]]", 0, NULL},
                                     {"w", "null,5,null", "a", "", 0, NULL},
                                     {"j", "null,5,null", "s", "", 0, NULL},
                                     {NULL, NULL, NULL, NULL, 0, NULL}};
    static const char proof[] = "\"pool\": {\"length_ns\": 60, \"step_ns\": 1, \"bucket_ns\": 5, \"weights\": [%s],"
                                " \"prices\": [%s], \"flows\": []}";
    char text[256];
    moirai_problem *p = small_problem(&(small_spec){.n_devices = 3, .op = late});
    snprintf(text, sizeof text, proof, "1, 0, 0", "1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0");
    false_certificate_rejected(p, false_certificate_pool(text), "a pool's prices exclude nothing");
    moirai_problem_free(p);
    p = small_problem(&(small_spec){.n_devices = 3, .op = early});
    snprintf(text, sizeof text, proof, "0, 1, 0", "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1");
    false_certificate_rejected(p, false_certificate_pool(text), "a pool's prices exclude nothing");
    moirai_problem_free(p);
}

/* A runs z from 0 to 10, x from 10 to 25 and y from 25 to 30. At 3, 0 and 1 per ns x is cheapest if it begins with the
 * second ten. */
static void test_prove_false_pool_costs_bend_at_the_start(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion none\ndevice A 9\ndevice B 9\ndevice C 9\nop z 10,-,- > a:0\n"
                                     "op x 15,-,-\nop before -,25,- > b:0\nop after -,-,20 a\nop y 5,-,- b\n");
    false_certificate_rejected(
        p,
        false_certificate_pool("\"pool\": {\"length_ns\": 30, \"step_ns\": 20, \"bucket_ns\": 10, \"weights\": "
                               "[1, 0, 0], \"prices\": [3, 0, 1], \"flows\": []}"),
        "a pool's prices exclude nothing");
    moirai_problem_free(p);
}

/* 10 ns at 2^62 come to a negative number, if nobody looks. */
static void test_prove_false_pool_prices_do_not_wrap(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\nop x 1\n");
    false_certificate_rejected(p,
                               false_certificate_pool("\"pool\": {\"length_ns\": 10, \"step_ns\": 1,"
                                                      " \"bucket_ns\": 10, \"weights\": [1], \"prices\": "
                                                      "[4611686018427387904], \"flows\": []}"),
                               "a pool's prices are too large");
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_false_pool_every_device_has_time),
        cmocka_unit_test(test_prove_false_pool_steps_are_whole),
        cmocka_unit_test(test_prove_false_pool_producers_keep_their_last_step),
        cmocka_unit_test(test_prove_false_pool_rounds_distances_down),
        cmocka_unit_test(test_prove_false_windows_arcs_are_as_long_as_proven),
        cmocka_unit_test(test_prove_false_windows_arcs_see_every_device),
        cmocka_unit_test(test_prove_false_windows_tails_see_every_device),
        cmocka_unit_test(test_prove_false_pool_transfers_have_a_direction),
        cmocka_unit_test(test_prove_false_pool_costs_bend_at_the_start),
        cmocka_unit_test(test_prove_false_pool_prices_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
