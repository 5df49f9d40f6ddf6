/* Search trees written by hand, small enough to check on paper: what each number means to the verifier, and
 * that changes are noticed, in the right words. */
#include <moirai/moirai.h>

#include "support/check.h"
#include "support/tiny.h"
#include "support/proving.h"

static int prove(moirai_proof *proof, const moirai_problem *p, const char *text)
{
    return proving_text(proof, p, text, strlen(text), "c.json");
}

static void rejects(const moirai_problem *p, const char *text, const char *says)
{
    moirai_proof proof;
    assert_int_equal(prove(&proof, p, text), MOIRAI_EVERIFY);
    if (!strstr(moirai_error_message(), says))
        fail_msg("it says '%s', not '%s'", moirai_error_message(), says);
}

/* Three equal operators between two cuts on A: 100 on A, 110 on B, the way to B takes 20 and back 5. Within 199 one of
 * them is on A and two are not, or none is: two on B end at 240 at least. */
static const char three[] = "device A 100\n"
                            "device B 100\n"
                            "op in 10,- > t:20\n"
                            "op x 100,110 t > u:5\n"
                            "op y 100,110 t > v:5\n"
                            "op z 100,110 t > w:5\n"
                            "op out 10,- u v w\n";

static const char *three_proof(int64_t length_ns, const char *tree)
{
    static char text[2000];
    snprintf(text, sizeof text,
             "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", \"operators\": 5,"
             " \"cuts\": [0, 4], \"block_class\": [0, 1, 2], \"classes\": [{}, {\"component_kind\": [0, 0, 0],"
             " \"trees\": [[]], \"pairs\": [{\"entry\": 0, \"exit\": 0, \"lower_ns\": %lld,"
             " \"search\": {\"length_ns\": %lld, \"tree\": [%s]}}]}, {}],"
             " \"lower_bound_ns\": 9223372036854775807, \"certified_bound_ns\": %lld}",
             (long long)length_ns + 1, (long long)length_ns, tree, (long long)length_ns + 21);
    return text;
}

static void test_prove_search_by_devices(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(three);
    moirai_proof proof;
    assert_ok(prove(&proof, p, three_proof(199, "1, -1, -1")));
    assert_int_equal(proof.proven_ns, 10 + 200 + 10);
    assert_int_equal(proof.searched, 3);
    /* More than is needed: what lies below a closed node is skipped, where it is a tree. */
    assert_ok(prove(&proof, p, three_proof(199, "1, 2, -1, 3, -1, -1, -2, 0, 0, -1, -1")));
    /* Other operators and shorter lengths do as well. */
    assert_ok(prove(&proof, p, three_proof(199, "3, -1, -1")));
    assert_ok(prove(&proof, p, three_proof(150, "2, -1, -1")));
    moirai_problem_free(p);
}

static void test_prove_search_rejects_what_is_no_proof(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(three);
    rejects(p, three_proof(200, "1, -1, -1"), "class 1: between devices 0 and 0: a search leaves a case open");
    rejects(p, three_proof(200, "1, 2, 3, -1, -1, 3, -1, -1, 2, 3, -1, -1, 3, -1, -1"), "a search leaves a case open");
    rejects(p, three_proof(199, "-1"), "a search leaves a case open");
    rejects(p, three_proof(199, ""), "a search ends before its time");
    rejects(p, three_proof(199, "1, -1"), "a search ends before its time");
    rejects(p, three_proof(199, "-2, 1"), "a search ends before its time");
    rejects(p, three_proof(199, "1, -1, -1, -1"), "a search goes on behind its end");
    rejects(p, three_proof(199, "5, -1, -1"), "a search divides by no operator");
    rejects(p, three_proof(199, "-3"), "search: tree is -3, out of range");
    rejects(p, three_proof(199, "1, -1, 2147483648"), "search: tree is 2147483648, out of range");
    rejects(p, three_proof(-1, "1, -1, -1"), "search: length_ns is -1, out of range");
    rejects(p, three_proof(INT64_MAX / 8 + 1, "1, -1, -1"), "search: length_ns is 1152921504606846976, out of range");
    /* Two operators that may be on two devices need no order; nor does anything with itself, or with nothing. */
    rejects(p, three_proof(199, "-2, 1, 2, -1, -1"), "a search puts tasks in order that need not be");
    rejects(p, three_proof(199, "-2, 1, 1, -1, -1"), "a search puts tasks in order that need not be");
    rejects(p, three_proof(199, "-2, 0, 99, -1, -1"), "a search puts tasks in order that need not be");
    moirai_problem_free(p);
}

/* As deep as the enemy likes: dividing by one operator again and again. */
static void test_prove_search_ends_however_deep(void **state)
{
    (void)state;
    enum { N = 100000 };
    moirai_problem *p = tiny_problem(three);
    moirai_proof proof;
    char *text = malloc(3 * N + 1000), *at;
    assert_non_null(text);
    strcpy(text, three_proof(0, "@"));
    at = strchr(text, '@');
    char *rest = strdup(at + 1);
    assert_non_null(rest);
    for (int i = 0; i < N; i++, at += 2)
        memcpy(at, "0,", 2);
    sprintf(at, "-1%s", rest);
    int rc = prove(&proof, p, text);
    assert_true(rc == 0 || rc == MOIRAI_EVERIFY); /* the entry has one device: below a closed node all is skipped */
    free(rest);
    free(text);
    moirai_problem_free(p);
}

/* x, y and z share A: 5, 5 and 4. x and y can start at 1; 3 follow x, 4 follow y and 1 follows z. One machine with
 * interruptions would be done at 15, and no two of the three are in an order by themselves; the best order takes 16. */
static const char machine[] = "congestion none\n"
                              "device A 100\n"
                              "device B 100\n"
                              "device C 100\n"
                              "device D 100\n"
                              "device E 100\n"
                              "device F 100\n"
                              "op z 4,-,-,-,-,- > z:0\n"
                              "op before_x -,1,-,-,-,- > a:0\n"
                              "op before_y -,-,1,-,-,- > b:0\n"
                              "op x 5,-,-,-,-,- a > x:0\n"
                              "op y 5,-,-,-,-,- b > y:0\n"
                              "op after_z -,-,-,-,-,1 z\n"
                              "op after_x -,-,-,3,-,- x\n"
                              "op after_y -,-,-,-,4,- y\n";

static const char *machine_proof(const moirai_problem *p, int64_t length_ns, const char *first, const char *second)
{
    static char text[2000];
    snprintf(text, sizeof text,
             "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", \"operators\": 8,"
             " \"cuts\": [], \"block_class\": [0], \"classes\": [{\"component_kind\": [0, 1, 2],"
             " \"trees\": [[0, 0, 1], [0, 0, 1, 1, 0, 2], [0, 0, 1, 1, 0, 2]], \"pairs\": [{\"entry\": 0, \"exit\": 0,"
             " \"lower_ns\": %lld, \"search\": {\"length_ns\": %lld, \"tree\": [-2, %d, %d, -1, -1]}}]}],"
             " \"lower_bound_ns\": 9223372036854775807, \"certified_bound_ns\": %lld}",
             (long long)length_ns + 1, (long long)length_ns, p->topo_rank[tiny_op(p, first)],
             p->topo_rank[tiny_op(p, second)], (long long)length_ns + 1);
    return text;
}

static void test_prove_search_by_order(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(machine);
    moirai_proof proof;
    assert_ok(prove(&proof, p, machine_proof(p, 15, "x", "y")));
    assert_int_equal(proof.proven_ns, 16);
    rejects(p, machine_proof(p, 16, "x", "y"), "a search leaves a case open"); /* it can be done in 16 */
    rejects(p, machine_proof(p, 15, "before_x", "x"), "a search puts tasks in order that need not be");
    moirai_problem_free(p);
}

/* ---- another problem ---- */

/* A proof that holds, holds, whatever it was made for. */
static void test_prove_believes_no_digest(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(three);
    const char *good = three_proof(199, "1, -1, -1"), *at = strstr(good, "\"operators\"");
    char text[2000];
    moirai_proof proof;
    snprintf(text, sizeof text, "%.*s\"problem_digest\": \"0\", %s", (int)(at - good), good, at);
    assert_ok(prove(&proof, p, text));
    assert_string_equal(proof.problem_digest, "0");
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_search_by_devices),
        cmocka_unit_test(test_prove_search_rejects_what_is_no_proof),
        cmocka_unit_test(test_prove_search_ends_however_deep),
        cmocka_unit_test(test_prove_search_by_order),
        cmocka_unit_test(test_prove_believes_no_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
