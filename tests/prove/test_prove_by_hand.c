/* Certificates written by hand, with prices small enough to check on paper: what each key of a leaf means to the
 * verifier, and that every single change of it is noticed, in the right words. */
#include <moirai/prove.h>

#include "support/check.h"
#include "support/tiny.h"
#include "support/proving.h"

typedef struct change {
    const char *from, *to; /* `from` stands in the certificate once */
    const char *says;      /* part of the message; NULL: still accepted */
} change;

static char *changed(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at || strstr(at + 1, from))
        fail_msg("'%s' is not there just once", from);
    char *copy = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(copy);
    sprintf(copy, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return copy;
}

static moirai_proof accepts(const moirai_problem *p, const char *text)
{
    moirai_proof proof;
    assert_ok(proving_text(&proof, p, text, strlen(text), "c.json"));
    return proof;
}

static void rejects(const moirai_problem *p, const char *text, const char *says)
{
    moirai_proof proof;
    assert_int_equal(proving_text(&proof, p, text, strlen(text), "c.json"), MOIRAI_EVERIFY);
    if (!strstr(moirai_error_message(), says))
        fail_msg("it says '%s', not '%s'", moirai_error_message(), says);
}

static void judge(const moirai_problem *p, const char *text, const change *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *copy = changed(text, list[i].from, list[i].to);
        if (list[i].says)
            rejects(p, copy, list[i].says);
        else
            accepts(p, copy);
        free(copy);
    }
}
#define JUDGE(p, text, list) judge(p, text, list, sizeof(list) / sizeof *(list))

/* Two equal operators between two cuts on A. On A they take 10; the way to B and back takes 3 + 10 + 3. Within 15 ns
 * both must run on A, where each pays 10 at a price of 1 per ns, and there is time for 15: so 16 at least, and it can
 * be done. */
static const char two[] = "flow edge\n"
                          "congestion none\n"
                          "device A 100\n"
                          "device B 100\n"
                          "op in 1,- > s:3\n"
                          "op x 10,10 s > t:3\n"
                          "op y 10,10 s > u:3\n"
                          "op out 1,- t u\n";
static const char two_proof[] =
    "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", \"operators\": 4, \"cuts\": [0, 3],"
    " \"block_class\": [0, 1, 2], \"classes\": [{}, {\"component_kind\": [0, 0], \"trees\": [[]], \"pairs\": ["
    "{\"entry\": 0, \"exit\": 0, \"lower_ns\": 16, \"leaves\": ["
    "{\"length_ns\": 15, \"step_ns\": 1, \"buckets\": [0, 16], \"prices\": [0, 0, 1]}]}]}, {}],"
    " \"lower_bound_ns\": 18, \"certified_bound_ns\": 18}";

static void test_prove_by_hand_accepts_two_operators(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(two);
    moirai_proof proof = accepts(p, two_proof);
    assert_int_equal(proof.proven_ns, 1 + 16 + 1);
    assert_int_equal(proof.certified_ns, 18);
    assert_int_equal(proof.lower_bound_ns, 18);
    assert_int_equal(proof.cuts, 2);
    assert_int_equal(proof.classes, 3);
    assert_int_equal(proof.pairs, 1);
    assert_int_equal(proof.leaves, 1);
    assert_int_equal(proof.floating, 0);
    moirai_problem_free(p);
}

static void test_prove_by_hand_rejects_changed_claims(void **state)
{
    (void)state;
    static const change list[] = {
        {"\"lower_bound_ns\": 18, \"certified_bound_ns\": 18", "\"lower_bound_ns\": 19, \"certified_bound_ns\": 19",
         "c.json: 19 ns are claimed, 18 proven"},
        {"\"certified_bound_ns\": 18", "\"certified_bound_ns\": 19", "certified_bound_ns is above lower_bound_ns"},
        {"\"certified_bound_ns\": 18", "\"certified_bound_ns\": 17", NULL}, /* less may be claimed */
        {"\"certified_bound_ns\": 18", "\"certified_bound_ns\": 18.0", "certified_bound_ns is no whole number"},
        {"\"lower_bound_ns\": 18, ", "", "lower_bound_ns is missing"},
        {"\"operators\": 4", "\"operators\": 5", "a certificate for 5 operators, a problem with 4"},
        {"\"lower_ns\": 16", "\"lower_ns\": 17", "class 1: between devices 0 and 0: 17 ns are claimed, 16 proven"},
        {"\"lower_ns\": 16", "\"lower_ns\": -1", "lower_ns is -1, out of range"},
        {"\"entry\": 0", "\"entry\": 2", "entry or exit of a pair is out of range"},
        {"\"exit\": 0", "\"exit\": 2", "entry or exit of a pair is out of range"},
        {"\"leaves\"", "\"twigs\"", "16 ns are claimed, 10 proven"}, /* the longest path is left */
    };
    moirai_problem *p = tiny_problem(two);
    JUDGE(p, two_proof, list);
    moirai_problem_free(p);
}

static void test_prove_by_hand_rejects_changed_structure(void **state)
{
    (void)state;
    static const change list[] = {
        {"[0, 3]", "[0, 1]", "operator 'y' need not come before cut 1, operator 'x'"},
        {"[0, 3]", "[3, 0]", "cut 0, operator 'out', does not come after the cuts before it"},
        {"[0, 3]", "[0, 0]", "cut 1 is twice a cut"},
        {"[0, 3]", "[0, 4]", "cuts: number 1 is out of range"},
        {"\"cuts\": [0, 3]", "\"cuts\": 3", "cuts is no list of numbers"},
        {"[0, 1, 2]", "[0, 1]", "block_class has not one number per block"},
        {"[0, 1, 2]", "[0, 2, 1]", "classes are not numbered in order"},
        {"[0, 1, 2]", "[0, 0, 1]", "block 1 is not a copy of the first block of class 0"},
        {", {}]", "]", "classes has not one entry per class"},
        {"\"component_kind\": [0, 0], ", "", "component_kind is missing"},
        {"\"component_kind\": [0, 0]", "\"component_kind\": [0]",
         "class 1: component_kind has not one number per component"},
        {"\"component_kind\": [0, 0]", "\"component_kind\": [1, 0]", "kinds are not numbered in order"},
        {"\"component_kind\": [0, 0]", "\"component_kind\": [0, 1]", "trees has not one tree per kind"},
        {"[[]]", "[[], []]", "trees has not one tree per kind"},
        {"[[]]", "[[0, 0, 0]]", "a tree has too few or too many edges"},
        {"\"trees\": [[]]", "\"trees\": [[]], \"shared\": 0", "a shared tensor needs flow tensor and an entry"},
    };
    moirai_problem *p = tiny_problem(two);
    JUDGE(p, two_proof, list);
    moirai_problem_free(p);
}

static void test_prove_by_hand_rejects_changed_leaves(void **state)
{
    (void)state;
    static const change list[] = {
        {"\"length_ns\": 15", "\"length_ns\": 16", "a leaf's buckets do not cover its steps"},
        {"\"length_ns\": 15, \"step_ns\": 1, \"buckets\": [0, 16]",
         "\"length_ns\": 16, \"step_ns\": 1, \"buckets\": [0, 17]", "prices do not exclude a length of 16 ns"},
        {"\"length_ns\": 15, ", "", "length_ns is missing"},
        {"\"step_ns\": 1", "\"step_ns\": 0", "step_ns is 0, out of range"},
        {"\"step_ns\": 1", "\"step_ns\": 2", "buckets: number 1 is out of range"},
        {"[0, 16]", "[0]", "a leaf's buckets do not cover its steps"},
        {"[0, 16]", "[1, 16]", "a leaf's buckets do not cover its steps"},
        {"[0, 16]", "[0, 8, 8, 16]", "a leaf's buckets do not ascend"},
        {"[0, 0, 1]", "[0, 0, 0]", "prices do not exclude a length of 15 ns"},
        {"[0, 0, 1]", "[0, 0, 7]", NULL}, /* prices count against each other only */
        {"[0, 0, 1]", "[1, 0, 1]", "prices do not exclude a length of 15 ns"},
        {"[0, 0, 1]", "[0, 0, 1, 1, 0, 1]", "prices do not exclude a length of 15 ns"},
        {"[0, 0, 1]", "[0, 0]", "prices is no list of numbers, 3 each"},
        {"[0, 0, 1]", "[2, 0, 1]", "a price is on a resource or bucket that is not there, or is the second there"},
        {"[0, 0, 1]", "[0, 1, 1]", "a price is on a resource or bucket that is not there, or is the second there"},
        {"[0, 0, 1]", "[0, 0, 1, 0, 0, 1]",
         "a price is on a resource or bucket that is not there, or is the second there"},
        {"[0, 0, 1]", "[0, 0, -1]", "prices is -1, out of range"},
        {"[0, 0, 1]", "[0, 0, 1125899906842624]", NULL},
        {"[0, 0, 1]", "[0, 0, 1125899906842625]", "prices is 1125899906842625, out of range"}, /* sums could overflow */
        {"{\"length_ns\"", "{\"receivers\": [1], \"length_ns\"",
         "a leaf lists receivers of a tensor that is not there"},
        {"{\"length_ns\"", "{\"counts\": [0, 0, 1, 0], \"length_ns\"", "counts is no list of numbers, 5 each"},
        {"{\"length_ns\"", "{\"counts\": [1, 0, 0, 0, 2], \"length_ns\"",
         "a count is of a kind, operator or device that is not there"},
        {"{\"length_ns\"", "{\"counts\": [0, 1, 0, 0, 2], \"length_ns\"",
         "a count is of a kind, operator or device that is not there"},
        {"{\"length_ns\"", "{\"counts\": [0, 0, 2, 0, 2], \"length_ns\"",
         "a count is of a kind, operator or device that is not there"},
        {"{\"length_ns\"", "{\"counts\": [-1, 0, 1, 0, 9], \"length_ns\"",
         "a count is of a kind, operator or device that is not there"},
        {"{\"length_ns\"", "{\"counts\": [0, 0, 0, 0, 1], \"length_ns\"", "the leaves leave cases out"},
        {"{\"length_ns\"", "{\"counts\": [0, 0, 0, 0, 2], \"length_ns\"", NULL}, /* 0 to 2 is all there is */
        {"[0, 0, 1]", "[0, 0, 1], \"count_prices\": [1]", "more prices on counts than counts"},
        {"{\"length_ns\": 15, ",
         "{\"counts\": [-2, 0, 0, 0, 9223372036854775807], \"count_prices\": [1], \"length_ns\": 15, ",
         "a time has a price"},
        {"{\"length_ns\": 15, ", /* 2^32 is no 0 */
         "{\"counts\": [-2, 4294967296, 0, 0, 9223372036854775807], \"length_ns\": 15, ", "a count is of a kind"},
        {"\"leaves\": [{", "\"leaves\": [7, {", "leaves 0: no object"},
    };
    moirai_problem *p = tiny_problem(two);
    JUDGE(p, two_proof, list);
    moirai_problem_free(p);
}

/* With steps of 2 the way to B and back is 1 + 5 + 1 of them, rounded down, and the last transfer must begin by T - 3:
 * in step 6 it can from T = 15 on. So the prices exclude 13, where A has two times 10 to pay for, and no more. */
static void test_prove_by_hand_steps_round_down(void **state)
{
    (void)state;
    static const change list[] = {
        {"\"length_ns\": 13, \"step_ns\": 2, \"buckets\": [0, 7]",
         "\"length_ns\": 14, \"step_ns\": 2, \"buckets\": [0, 8]", NULL},
        {"\"length_ns\": 13, \"step_ns\": 2, \"buckets\": [0, 7]",
         "\"length_ns\": 15, \"step_ns\": 2, \"buckets\": [0, 8]", "prices do not exclude a length of 15 ns"},
    };
    moirai_problem *p = tiny_problem(two);
    char *a = changed(two_proof, "\"length_ns\": 15, \"step_ns\": 1, \"buckets\": [0, 16]",
                      "\"length_ns\": 13, \"step_ns\": 2, \"buckets\": [0, 7]");
    char *b = changed(a, "\"lower_ns\": 16", "\"lower_ns\": 14");
    char *c = changed(b, "\"lower_bound_ns\": 18, \"certified_bound_ns\": 18",
                      "\"lower_bound_ns\": 18, \"certified_bound_ns\": 16");
    assert_int_equal(accepts(p, c).proven_ns, 16);
    JUDGE(p, c, list);
    free(a);
    free(b);
    free(c);
    moirai_problem_free(p);
}

/* Copies must be copies: times, devices, edges. */
static void test_prove_by_hand_compares_components(void **state)
{
    (void)state;
    static const char *const from[] = {"op y 10,10", "op y 10,10", "u:3"};
    static const char *const to[] = {"op y 11,10", "op y 10,-", "u:4"};
    for (size_t i = 0; i < 3; i++) {
        char *text = changed(two, from[i], to[i]);
        moirai_problem *p = tiny_problem(text);
        rejects(p, two_proof, "component 1 is not a copy of component 0");
        moirai_problem_free(p);
        free(text);
    }
    char *text = changed(two, "op y 10,10 s", "op y 10,10");
    moirai_problem *p = tiny_problem(text);
    rejects(p, two_proof, "operator 'y' need not come before cut 0, operator 'in'");
    moirai_problem_free(p);
    free(text);
}

/* Whatever floats is left out, and the rest is numbered as before. */
static void test_prove_by_hand_floating_work_is_left_out(void **state)
{
    (void)state;
    static const change list[] = {
        {"\"floating\": [4]", "\"floating\": [4, 4]", "an operator floats twice"},
        {"\"floating\": [4]", "\"floating\": [5]", "floating"},
        {"\"floating\": [4]", "\"floating\": [0, 1, 2, 3, 4]", "all operators float"},
        {"\"floating\": [4]", "\"floating\": []", "operator 'loose' need not come before cut 0, operator 'in'"},
        {"\"floating\": [4]", "\"floating\": [3, 4]", "cuts: number 1 is out of range"},
    };
    char text[512];
    snprintf(text, sizeof text, "%sop loose 4,4\n", two);
    moirai_problem *p = tiny_problem(text);
    char *a = changed(two_proof, "\"operators\": 4", "\"operators\": 5, \"floating\": [4]");
    moirai_proof proof = accepts(p, a);
    assert_int_equal(proof.floating, 1);
    assert_int_equal(proof.proven_ns, 18);
    JUDGE(p, a, list);
    free(a);
    moirai_problem_free(p);
}

/* Three equal operators that read one tensor: 100 on A, 110 on B, the tensor takes 20 to B. Nobody receives it, and A
 * works for 300; or B has at most one of them, and A has two; or B has two at least. All exclude 199 (docs/formats.md).
 */
static const char three[] = "device A 100\n"
                            "device B 100\n"
                            "op in 10,- > s:20\n"
                            "op x 100,110 s > t:0\n"
                            "op y 100,110 s > u:0\n"
                            "op z 100,110 s > v:0\n"
                            "op out 10,- t u v\n";
static const char three_proof[] =
    "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", \"operators\": 5, \"cuts\": [0, 4],"
    " \"block_class\": [0, 1, 2], \"classes\": [{}, {\"component_kind\": [0, 0, 0], \"trees\": [[]], \"shared\": 0, "
    "\"pairs\": ["
    "{\"entry\": 0, \"exit\": 0, \"lower_ns\": 200, \"leaves\": ["
    "{\"receivers\": [], \"length_ns\": 199, \"step_ns\": 1, \"buckets\": [0, 200], \"prices\": [0, 0, 1]},\n"
    "{\"receivers\": [1], \"counts\": [0, 0, 1, 0, 1], \"length_ns\": 199, \"step_ns\": 1, \"buckets\": [0, 200],"
    " \"prices\": [0, 0, 1], \"count_prices\": [100]},\n" /* 3 * 100 > 199 + 100 * 1 */
    "{\"receivers\": [1], \"counts\": [0, 0, 1, 2, 3], \"length_ns\": 199, \"step_ns\": 1, \"buckets\": [0, 200],"
    " \"prices\": [1, 0, 1], \"count_prices\": [-110]}]}]}, {}]," /* 0 > 199 - 110 * 2 */
    " \"lower_bound_ns\": 220, \"certified_bound_ns\": 220}";

static void test_prove_by_hand_counts_and_receivers(void **state)
{
    (void)state;
    static const change list[] = {
        {"\"shared\": 0", "\"shared\": 1", "the shared tensor is not read in its block"},
        {"\"shared\": 0, ", "", "a leaf lists receivers of a tensor that is not there"},
        {"{\"receivers\": [], ", "{\"receivers\": [1], ", "the leaves leave cases out"},
        {"{\"receivers\": [], ", "{\"receivers\": [0], ", "a leaf's list of receivers has a wrong device"},
        {"{\"receivers\": [], ", "{\"receivers\": [2], ", "a leaf's list of receivers has a wrong device"},
        {"[0, 0, 1, 2, 3]", "[0, 0, 1, 3, 3]", "the leaves leave cases out"}, /* two on B are in none */
        {"[0, 0, 1, 2, 3]", "[0, 0, 0, 2, 3]", "the leaves leave cases out"}, /* another question */
        {"[0, 0, 1, 0, 1]", "[0, 0, 1, 0, 2]", "prices do not exclude a length of 199 ns"},
        {"[0, 0, 1, 2, 3]", "[0, 0, 1, 1, 3]", "prices do not exclude a length of 199 ns"},
        {"[100]", "[101]", "prices do not exclude a length of 199 ns"}, /* 3 * 100 on A, 199 + 101 */
        {"[100]", "[99]", "prices do not exclude a length of 199 ns"},  /* 3 * 99 on B, 199 + 99 */
        {"[-110]", "[-99]", "prices do not exclude a length of 199 ns"},
        {"\"prices\": [1, 0, 1]", "\"prices\": [0, 0, 1]", "prices do not exclude a length of 199 ns"},
    };
    moirai_problem *p = tiny_problem(three);
    moirai_proof proof = accepts(p, three_proof);
    assert_int_equal(proof.proven_ns, 220);
    assert_int_equal(proof.leaves, 3);
    JUDGE(p, three_proof, list);
    moirai_problem_free(p);
}

/* A leaf that assumes nothing stands for all cases; then each reader pays a third of the transfer, rounded down. At
 * price 1 on both devices three operators pay 300 at least, and there are 2 T: so 150. A price of 3 on B's receiver
 * makes B dearer by 3 * 20 / 3, but adds to what there is. */
static void test_prove_by_hand_a_leaf_without_case_stands_for_all(void **state)
{
    (void)state;
    static const change list[] = {
        {"\"length_ns\": 149, \"step_ns\": 1, \"buckets\": [0, 150]",
         "\"length_ns\": 150, \"step_ns\": 1, \"buckets\": [0, 151]", "prices do not exclude a length of 150 ns"},
        {"1, 0, 1]", "1, 0, 1, 5, 0, 3]", "prices do not exclude a length of 149 ns"},
    };
    static const char proof[] =
        "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", \"operators\": 5, \"cuts\": [0, "
        "4],"
        " \"block_class\": [0, 1, 2], \"classes\": [{}, {\"component_kind\": [0, 0, 0], \"trees\": [[]], \"pairs\": ["
        "{\"entry\": 0, \"exit\": 0, \"lower_ns\": 150, \"leaves\": ["
        "{\"length_ns\": 149, \"step_ns\": 1, \"buckets\": [0, 150], \"prices\": [0, 0, 1, 1, 0, 1]}]}]}, {}],"
        " \"lower_bound_ns\": 200, \"certified_bound_ns\": 170}";
    moirai_problem *p = tiny_problem(three);
    assert_int_equal(accepts(p, proof).proven_ns, 170);
    JUDGE(p, proof, list);
    moirai_problem_free(p);
}

/* The reader can run on B alone: 20 there, 10 of work, 5 back. If the tensor has not arrived before 26, it takes 41. */
static const char far[] = "device A 100\n"
                          "device B 100\n"
                          "op in 1,- > s:20\n"
                          "op x -,10 s > t:5\n"
                          "op y -,10 s > u:5\n"
                          "op out 1,- t u\n";
static const char far_proof[] =
    "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", \"operators\": 4, \"cuts\": [0, 3],"
    " \"block_class\": [0, 1, 2], \"classes\": [{}, {\"component_kind\": [0, 0], \"trees\": [[]], \"shared\": 0, "
    "\"pairs\": ["
    "{\"entry\": 0, \"exit\": 0, \"lower_ns\": 35, \"leaves\": [{\"receivers\": []},\n"
    "{\"receivers\": [1], \"counts\": [-1, 0, 1, 0, 25]},\n"
    "{\"receivers\": [1], \"counts\": [-1, 0, 1, 26, 9223372036854775807], \"length_ns\": 40, \"step_ns\": 1, "
    "\"buckets\": [0, 41],"
    " \"prices\": []}]}]}, {}], \"lower_bound_ns\": 37, \"certified_bound_ns\": 37}";

static void test_prove_by_hand_arrivals(void **state)
{
    (void)state;
    static const change list[] = {
        {"\"length_ns\": 40, \"step_ns\": 1, \"buckets\": [0, 41]",
         "\"length_ns\": 41, \"step_ns\": 1, \"buckets\": [0, 42]", "prices do not exclude a length of 41 ns"},
        {"26, 9223372036854775807", "25, 9223372036854775807", "prices do not exclude a length of 40 ns"},
        {"26, 9223372036854775807", "27, 9223372036854775807", "the leaves leave cases out"},
        {"26, 9223372036854775807", "26, 99", "the leaves leave cases out"},
        {"1, 0, 25]", "1, 0, 24]", "the leaves leave cases out"},
        {"1, 0, 25]", "0, 0, 25]", "the leaves leave cases out"},
        /* It takes 20 to send it: arrived by 19 it never is, whatever the length. */
        {"[-1, 0, 1, 0, 25]},\n{\"receivers\": [1], \"counts\": [-1, 0, 1, 26,",
         "[-1, 0, 1, 0, 19], \"length_ns\": 500, \"step_ns\": 1, \"buckets\": [0, 501], \"prices\": []},"
         "{\"receivers\": [1], \"counts\": [-1, 0, 1, 20,",
         "prices do not exclude a length of 40 ns"}, /* of the second leaf: the first holds */
        {"[-1, 0, 1, 0, 25]}",
         "[-1, 0, 1, 0, 25], \"length_ns\": 34, \"step_ns\": 1, \"buckets\": [0, 35], \"prices\": []}", NULL},
        /* The first case is impossible in itself: readers can run on B alone. */
        {"{\"receivers\": []}",
         "{\"receivers\": [], \"length_ns\": 900, \"step_ns\": 1, \"buckets\": [0, 901], \"prices\": []}", NULL},
    };
    moirai_problem *p = tiny_problem(far);
    moirai_proof proof = accepts(p, far_proof);
    assert_int_equal(proof.proven_ns, 37);
    assert_int_equal(proof.leaves, 3);
    JUDGE(p, far_proof, list);
    moirai_problem_free(p);
}

/* Three tensors of 10 go the same way: 30 on a channel, a send port or a receive port, by the resource's number. */
static void test_prove_by_hand_resources_of_transfers(void **state)
{
    (void)state;
    static const char proof[] =
        "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", \"operators\": 5, \"cuts\": [0, "
        "4],"
        " \"block_class\": [0, 1, 2], \"classes\": [{}, {\"component_kind\": [0, 1, 2], \"trees\": [[], [], []], "
        "\"pairs\": ["
        "{\"entry\": 0, \"exit\": 1, \"lower_ns\": 30, \"leaves\": ["
        "{\"length_ns\": 29, \"step_ns\": 1, \"buckets\": [0, 30], \"prices\": [R, 0, 1]}]}]}, {}],"
        " \"lower_bound_ns\": 32, \"certified_bound_ns\": 32}";
    static const struct {
        const char *congestion, *good[2], *bad[2];
    } list[] = {
        {"port", {"[2, 0, 1]", "[5, 0, 1]"}, {"[3, 0, 1]", "[4, 0, 1]"}},    /* sender A, receiver B; not B, not A */
        {"channel", {"[3, 0, 1]", "[3, 0, 9]"}, {"[2, 0, 1]", "[4, 0, 1]"}}, /* 2 + 0 * 2 + 1: A to B */
    };
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        snprintf(
            text, sizeof text,
            "congestion %s\ndevice A 9\ndevice B 9\nop in 1,- > r:10 s:10 t:10\nop x -,1 r > u:0\nop y -,1 s > v:0\n"
            "op z -,1 t > w:0\nop out -,1 u v w\n",
            list[i].congestion);
        moirai_problem *p = tiny_problem(text);
        for (size_t j = 0; j < 2; j++) {
            char *good = changed(proof, "[R, 0, 1]", list[i].good[j]),
                 *bad = changed(proof, "[R, 0, 1]", list[i].bad[j]);
            assert_int_equal(accepts(p, good).proven_ns, 32);
            rejects(p, bad, "prices do not exclude a length of 29 ns");
            char *one = changed(good, "\"length_ns\": 29, \"step_ns\": 1, \"buckets\": [0, 30]",
                                "\"length_ns\": 31, \"step_ns\": 1, \"buckets\": [0, 32]");
            rejects(p, one, "prices do not exclude a length of 31 ns");
            free(good);
            free(bad);
            free(one);
        }
        moirai_problem_free(p);
    }
}

/* Two chains u -> v, u on A and v on B alone, and back: 10 + 3 + 10 + 3. Within 35 both u are done by 19, and there is
 * no room for two times 10: the price lies on A in the first bucket alone. 36 can be done. */
static const char chains[] = "flow edge\n"
                             "congestion none\n"
                             "device A 100\n"
                             "device B 100\n"
                             "op in 1,- > s:0\n"
                             "op u 10,- s > a:3\n"
                             "op v -,10 a > b:3\n"
                             "op w 10,- s > c:3\n"
                             "op x -,10 c > d:3\n"
                             "op out 1,- b d\n";
static const char chains_proof[] =
    "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", \"operators\": 6, \"cuts\": [0, 5],"
    " \"block_class\": [0, 1, 2], \"classes\": [{}, {\"component_kind\": [0, 0], \"trees\": [[0, 0, 1]], \"pairs\": ["
    "{\"entry\": 0, \"exit\": 0, \"lower_ns\": 36, \"leaves\": ["
    "{\"length_ns\": 35, \"step_ns\": 1, \"buckets\": [0, 19, 36], \"prices\": [0, 0, 1]}]}]}, {}],"
    " \"lower_bound_ns\": 38, \"certified_bound_ns\": 38}";

static void test_prove_by_hand_trees_and_buckets(void **state)
{
    (void)state;
    static const change list[] = {
        {"[[0, 0, 1]]", "[[]]", "a tree has too few or too many edges"},
        {"[[0, 0, 1]]", "[[0, 0, 0]]", "a tree's edge closes a ring or leaves its component"},
        {"[[0, 0, 1]]", "[[0, 0, 2]]", "a tree's edge closes a ring or leaves its component"},
        {"[[0, 0, 1]]", "[[1, 0, 0]]", "a tree's edge is not in the problem"},
        {"[[0, 0, 1]]", "[[0, 1, 1]]", "a tree's edge is not in the problem"},
        {"[0, 19, 36]", "[0, 20, 36]", "prices do not exclude a length of 35 ns"}, /* 20 in 20 */
        {"[0, 19, 36]", "[0, 18, 36]", "prices do not exclude a length of 35 ns"}, /* from 9 on: twice 9 in 18 */
        {"\"prices\": [0, 0, 1]", "\"prices\": [0, 1, 1]", "prices do not exclude a length of 35 ns"},
        {"\"prices\": [0, 0, 1]", "\"prices\": [1, 1, 1]", "prices do not exclude a length of 35 ns"},
    };
    moirai_problem *p = tiny_problem(chains);
    assert_int_equal(accepts(p, chains_proof).proven_ns, 38);
    JUDGE(p, chains_proof, list);
    moirai_problem_free(p);
}

/* Two operators in a row, 10 on A and 30 on B each; A has room for one. At price 2 per byte of A (10 bytes each) both
 * cost 30 everywhere, less what A's memory is worth: 60 - 20. One on each takes 40, and is the best. */
static const char tight[] = "device A 10\n"
                            "device B 100\n"
                            "op a 10,30 mem=10 > s:0\n"
                            "op b 10,30 s mem=10\n";
static const char tight_proof[] =
    "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", \"operators\": 2, \"cuts\": [0, 1],"
    " \"block_class\": [0, 1, 2], \"classes\": [{}, {}, {}],"
    " \"memory\": {\"unit\": 1, \"byte_prices\": [2, 0], \"pairs\": []},"
    " \"lower_bound_ns\": 40, \"certified_bound_ns\": 40}";

static void test_prove_by_hand_prices_on_bytes(void **state)
{
    (void)state;
    static const change list[] = {
        {"[2, 0]", "[1, 0]", "40 ns are claimed, 30 proven"}, /* 20 + 20 - 10 */
        {"[2, 0]", "[3, 0]", "40 ns are claimed, 30 proven"}, /* 30 + 30 - 30 */
        {"[2, 0]", "[0, 2]", "40 ns are claimed, 20 proven"}, /* below the plain path: that counts */
        {"[2, 0]", "[2]", "byte_prices has 1 numbers, not 2"},
        {"[2, 0]", "[-2, 0]", "byte_prices"},
        {"\"unit\": 1", "\"unit\": 0", "memory: unit is 0, out of range"},
        {"\"unit\": 1, \"byte_prices\": [2, 0]", "\"unit\": 10, \"byte_prices\": [20, 0]", NULL},
        {"\"unit\": 1, \"byte_prices\": [2, 0]", "\"unit\": 10, \"byte_prices\": [19, 0]",
         "40 ns are claimed, 39 proven"},
        {"\"pairs\": []", "\"pairs\": [{}]", "memory: pairs 0: class is missing"},
        {"\"pairs\": []", "\"pairs\": [{\"class\": 0, \"entry\": 1, \"exit\": 0, \"leaves\": []}]",
         "a pair of a class that was not described"},
    };
    moirai_problem *p = tiny_problem(tight);
    moirai_proof proof = accepts(p, tight_proof);
    assert_int_equal(proof.proven_ns, 40);
    JUDGE(p, tight_proof, list);
    moirai_problem_free(p);
}

/* The first problem where A has no memory and both operators need 10 bytes: at price 2 per byte each pays 20 on A. In
 * the case L <= 25, with a price of 2 on B from 3 to 22, each pays 20 on B, too; and L less what B is worth until L is
 * -16 at least, at L = 22. So 24, and in the other case 26: with the cuts 26 in all, where the path alone says 12. */
static void test_prove_by_hand_lengths_under_prices_on_bytes(void **state)
{
    (void)state;
    static const char text[] = "flow edge\ncongestion none\ndevice A 0\ndevice B 100\nop in 1,- > s:3\n"
                               "op x 10,10 s > t:3 mem=10\nop y 10,10 s > u:3 mem=10\nop out 1,- t u\n";
    static const char proof[] = "{\"format\": \"moirai-certificate\", \"version\": 1, \"problem\": \"tiny\", "
                                "\"operators\": 4, \"cuts\": [0, 3],"
                                " \"block_class\": [0, 1, 2], \"classes\": [{}, {\"component_kind\": [0, 0], "
                                "\"trees\": [[]], \"pairs\": []}, {}],"
                                " \"memory\": {\"unit\": 1, \"byte_prices\": [2, 0], \"pairs\": [{\"class\": 1, "
                                "\"entry\": 0, \"exit\": 0, \"leaves\": ["
                                "{\"counts\": [-2, 0, 0, 0, 25], \"length_ns\": 25, \"step_ns\": 1, \"buckets\": [0, "
                                "3, 22, 26], \"prices\": [1, 1, 2]},\n"
                                "{\"counts\": [-2, 0, 0, 26, 9223372036854775807]}]}]},"
                                " \"lower_bound_ns\": 28, \"certified_bound_ns\": 26}";
    static const change list[] = {
        {"\"certified_bound_ns\": 26", "\"certified_bound_ns\": 27", "27 ns are claimed, 26 proven"},
        {"\"length_ns\": 25, \"step_ns\": 1, \"buckets\": [0, 3, 22, 26]",
         "\"length_ns\": 24, \"step_ns\": 1, \"buckets\": [0, 3, 22, 25]",
         "memory: class 1 between devices 0 and 0: prices end before the lengths that they are for"},
        {"[1, 1, 2]", "[1, 1, 1]", "26 ns are claimed, 25 proven"}, /* 20 + 3 + 2 */
        {"[1, 1, 2]", "[0, 1, 2]", "ns are claimed"},
        {"0, 26, 9223372036854775807", "0, 27, 9223372036854775807", "the leaves leave cases out"},
        {"\"component_kind\": [0, 0], \"trees\": [[]], \"pairs\": []", "", "a pair of a class that was not described"},
    };
    moirai_problem *p = tiny_problem(text);
    moirai_proof found = accepts(p, proof);
    assert_int_equal(found.proven_ns, 26);
    assert_int_equal(found.leaves, 2);
    assert_int_equal(found.pairs, 1);
    JUDGE(p, proof, list);
    moirai_problem_free(p);
}

/* Without any help the verifier adds up longest paths; empty blocks send all tensors through one port. */
static void test_prove_by_hand_paths_need_no_help(void **state)
{
    (void)state;
    static const char proof[] =
        "{\"format\": \"moirai-certificate\", \"version\": 1, \"operators\": 2, \"cuts\": [0, 1],"
        " \"block_class\": [0, 1, 2], \"classes\": [{}, {}, {}], \"lower_bound_ns\": 99, \"certified_bound_ns\": 0}";
    static const struct {
        const char *text;
        int64_t proven_ns;
    } list[] = {
        {"device A 9\ndevice B 9\nop a 5,- > s:7 t:8\nop b -,6 s t\n", 5 + 7 + 8 + 6},
        {"congestion channel\ndevice A 9\ndevice B 9\nop a 5,- > s:7 t:8\nop b -,6 s t\n", 5 + 7 + 8 + 6},
        {"congestion none\ndevice A 9\ndevice B 9\nop a 5,- > s:7 t:8\nop b -,6 s t\n", 5 + 8 + 6},
        {"device A 9\ndevice B 9\nop a 5,4 > s:7\nop b 9,6 s\n", 4 + 6},
        {"device A 9\ndevice B 9\nlink 500000000 3\nop a 5,- > s:7\nop b 30,6 s\n", 5 + 3 + 14 + 6},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        moirai_problem *p = tiny_problem(list[i].text);
        assert_int_equal(accepts(p, proof).proven_ns, list[i].proven_ns);
        moirai_problem_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_by_hand_accepts_two_operators),
        cmocka_unit_test(test_prove_by_hand_rejects_changed_claims),
        cmocka_unit_test(test_prove_by_hand_rejects_changed_structure),
        cmocka_unit_test(test_prove_by_hand_rejects_changed_leaves),
        cmocka_unit_test(test_prove_by_hand_steps_round_down),
        cmocka_unit_test(test_prove_by_hand_compares_components),
        cmocka_unit_test(test_prove_by_hand_floating_work_is_left_out),
        cmocka_unit_test(test_prove_by_hand_counts_and_receivers),
        cmocka_unit_test(test_prove_by_hand_a_leaf_without_case_stands_for_all),
        cmocka_unit_test(test_prove_by_hand_arrivals),
        cmocka_unit_test(test_prove_by_hand_resources_of_transfers),
        cmocka_unit_test(test_prove_by_hand_trees_and_buckets),
        cmocka_unit_test(test_prove_by_hand_prices_on_bytes),
        cmocka_unit_test(test_prove_by_hand_lengths_under_prices_on_bytes),
        cmocka_unit_test(test_prove_by_hand_paths_need_no_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
