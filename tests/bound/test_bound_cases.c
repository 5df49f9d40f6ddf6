/* The static programme by cases: whole numbers of operators on devices, receivers one after the other, and a proof that
 * can be judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/moirai.h>

#include "bound/certificate.h"
#include "pair/pair_refine.h"
#include "lp/lp.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"
#include "support/proving.h"

/* Three operators of 10 ns side by side on two equal devices: the linear programme puts 1.5 of them on each and says
 * 15; no plan is shorter than 20. */
#define THREE "device x 9\ndevice y 9\nop a 10,10 > t:0\nop b 10,10 > u:0\nop c 10,10 > v:0\n"

static void test_numbers_of_operators_are_whole(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(THREE);
    pair_static_task job = {.proven_ns = 10, .upper_ns = 30, .rounds = PAIR_STATIC_ROUNDS};
    int64_t plain = 0, lower = 0;
    assert_ok(pair_static_lp(&plain, p, &job, 0));
    assert_ok(pair_static_lp(&lower, p, &job, 9));
    assert_int_equal(plain, pricing_lp_available() ? 15 : 10);
    assert_int_equal(lower, pricing_lp_available() ? 20 : 10);
    moirai_problem_free(p);
}

static char *certificate_of(pair_chain *c, size_t *length)
{
    assert_ok(pair_raise_cases(c->pair[0], 30, 9, (util_stop){0}));
    assert_int_equal(pair_certified_ns(c->pair[0]), 20);
    char *json = bound_certificate_text(&(bound_certificate){.c = c, .lower_bound_ns = 20}, length);
    assert_non_null(json);
    return json;
}

/* `json` with the first `old` behind the key "static" replaced. */
static char *replace(const char *json, const char *old, const char *new_text)
{
    const char *at = strstr(strstr(json, "\"static\""), old);
    if (!at)
        fail_msg("no %s in %s", old, json);
    char *changed = malloc(strlen(json) + strlen(new_text) + 1);
    assert_non_null(changed);
    sprintf(changed, "%.*s%s%s", (int)(at - json), json, new_text, at + strlen(old));
    return changed;
}

/* Every certificate in which bad[i][1] stands for the first bad[i][0]. */
static void assert_rejected(const moirai_problem *p, const char *json, const char *const (*bad)[2], size_t n)
{
    moirai_proof proof;
    for (size_t i = 0; i < n; i++) {
        char *changed = replace(json, bad[i][0], bad[i][1]);
        if (proving_text(&proof, p, changed, strlen(changed), "changed") == 0)
            fail_msg("accepted: %s for %s", bad[i][1], bad[i][0]);
        free(changed);
    }
}

static void test_the_proof_is_accepted_and_tampered_ones_are_not(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    moirai_problem *p = tiny_problem(THREE);
    pair_chain *c = tiny_chain(p);
    size_t length;
    char *json = certificate_of(c, &length);
    moirai_proof proof;
    assert_ok(proving_text(&proof, p, json, length, "certificate"));
    assert_int_equal(proof.proven_ns, 20);
    static const char *const bad[][2] = {
        {"\"most\":", "\"mist\":"},         {"\"low\":", "\"lower\":"},       {"\"high\":", "\"higher\":"},
        {"\"groups\":", "\"group_list\":"}, {"\"group\": 0", "\"group\": 1"}, {"\"device\": 0", "\"device\": 7"},
        {"[0, 1, 2]", "[0, 1, 1]"},         {"[0, 1, 2]", "[0, 1]"},          {"[0, 1, 2]", "[0, 1, 3]"},
    };
    assert_rejected(p, json, bad, sizeof bad / sizeof *bad);
    free(json);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* A case that is left out would leave plans out: one more must not be proven by a false division. */
static void test_one_more_than_the_optimum_is_not_proven(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    moirai_problem *p = tiny_problem(THREE);
    pair_chain *c = tiny_chain(p);
    pair_state *x = c->pair[0];
    assert_ok(pair_raise_cases(x, 30, 200, (util_stop){0}));
    assert_int_equal(x->lower_ns, 20);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* The entry on x; two operators of 100 ns that only y runs and two that only z does, all of which read its tensor, 100
 * ns on its way. Each device alone could be done at 300; whoever receives second is not before 400. */
static moirai_problem *two_receivers(void)
{
    static const char *const time[] = {"0,null,null",   "null,100,null", "null,100,null",
                                       "null,null,100", "null,null,100", "0,null,null"};
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"receivers\",\"flow\":\"tensor\","
                     "\"congestion\":\"port\",\"memory\":\"static\",\"devices\":[");
    for (int k = 0; k < 3; k++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s{\"name\":\"%c\",\"memory_bytes\":9}", k ? "," : "",
                      'x' + k);
    n += snprintf(text + n, sizeof text - (size_t)n, "],\"channels\":[");
    for (int ab = 0, m = 0; ab < 9; ab++)
        if (ab / 3 != ab % 3)
            n += snprintf(text + n, sizeof text - (size_t)n,
                          "%s{\"from\":\"%c\",\"to\":\"%c\",\"bytes_per_second\":1000000000,\"latency_ns\":0}",
                          m++ ? "," : "", 'x' + ab / 3, 'x' + ab % 3);
    n += snprintf(text + n, sizeof text - (size_t)n, "],\"ops\":[");
    for (int i = 0; i < 6; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "%s{\"name\":\"o%d\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[%s],\"inputs\":[%s],"
                      "\"outputs\":[{\"name\":\"t%d\",\"bytes\":%d}]}",
                      i ? "," : "", i, time[i],
                      i == 0   ? ""
                      : i == 5 ? "\"t1\",\"t2\",\"t3\",\"t4\""
                               : "\"t0\"",
                      i, i ? 0 : 100);
    n += snprintf(text + n, sizeof text - (size_t)n, "]}");
    moirai_problem *p = NULL;
    assert_ok(moirai_problem_parse(&p, text, (size_t)n, "receivers"));
    return p;
}

static void test_receivers_get_a_tensor_one_after_the_other(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    moirai_problem *p = two_receivers();
    pair_chain *c;
    assert_ok(pair_chain_new(&c, p));
    int32_t class_ = c->s->block_class[1];
    assert_ok(pair_open(c, class_, 0, 0));
    pair_state *x = c->pair[pair_chain_index(c, class_, 0, 0)];
    x->plan.length_ns = 500; /* so that there is something to prove */
    assert_ok(pair_raise_static(x, (util_stop){0}));
    assert_int_equal(pair_static_ns(x), 300);
    assert_ok(pair_raise_cases(x, INT64_MAX, 20, (util_stop){0}));
    assert_int_equal(pair_static_ns(x), 400);
    size_t length;
    char *json = bound_certificate_text(&(bound_certificate){.c = c, .lower_bound_ns = 400}, &length);
    moirai_proof proof;
    assert_ok(proving_text(&proof, p, json, length, "certificate"));
    assert_int_equal(proof.proven_ns, 400);
    static const char *const bad[][2] = {
        {"\"receivers\": [1, 2]", "\"receivers\": [1]"},
        {"\"receivers\": [1, 2]", "\"receivers\": [1, 0]"},
        {"\"receivers\": [1, 2]", "\"receivers\": [1, 1]"},
        {"\"receivers\": [2]", "\"receivers\": []"},
        {"\"receivers\": [2]", "\"receivers\": [1]"},
        {"\"nobody\":", "\"no_body\":"},
        {"\"next\":", "\"then\":"},
        {"\"sent\": 0", "\"sent\": 1"},
        {"\"sent\": 0", "\"sent\": -1"},
    };
    assert_rejected(p, json, bad, sizeof bad / sizeof *bad);
    free(json);
    pair_chain_free(c);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_operators_are_whole),
        cmocka_unit_test(test_the_proof_is_accepted_and_tampered_ones_are_not),
        cmocka_unit_test(test_receivers_get_a_tensor_one_after_the_other),
        cmocka_unit_test(test_one_more_than_the_optimum_is_not_proven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
