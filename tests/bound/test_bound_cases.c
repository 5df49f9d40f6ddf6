/* The static programme by cases: whole numbers of operators on devices, and a proof that can be judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/moirai.h>

#include "bound/certificate.h"
#include "pair/pair_refine.h"
#include "pricing/lp.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"

/* Three operators of 10 ns side by side on two equal devices: the linear programme puts 1.5 of them on each and says
 * 15; no plan is shorter than 20. */
#define THREE "device x 9\ndevice y 9\nop a 10,10 > t:0\nop b 10,10 > u:0\nop c 10,10 > v:0\n"

static void test_numbers_of_operators_are_whole(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(THREE);
    pair_static_task job = {.proven_ns = 10, .upper_ns = 30, .rounds = PAIR_STATIC_ROUNDS};
    int64_t plain = 0, lower = 0;
    assert_ok(pair_static_lp(&plain, p, &job, NULL, NULL));
    assert_ok(pair_static_by_cases(&lower, p, &job, 9, NULL, NULL));
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
    assert_ok(moirai_prove_text(&proof, p, json, length, "certificate"));
    assert_int_equal(proof.proven_ns, 20);
    static const char *const bad[][2] = {
        {"\"most\":", "\"mist\":"},         {"\"low\":", "\"lower\":"},       {"\"high\":", "\"higher\":"},
        {"\"groups\":", "\"group_list\":"}, {"\"group\": 0", "\"group\": 1"}, {"\"device\": 0", "\"device\": 7"},
        {"[0, 1, 2]", "[0, 1, 1]"},         {"[0, 1, 2]", "[0, 1]"},          {"[0, 1, 2]", "[0, 1, 3]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *changed = replace(json, bad[i][0], bad[i][1]);
        if (moirai_prove_text(&proof, p, changed, strlen(changed), "changed") == 0)
            fail_msg("accepted: %s for %s", bad[i][1], bad[i][0]);
        free(changed);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_operators_are_whole),
        cmocka_unit_test(test_the_proof_is_accepted_and_tampered_ones_are_not),
        cmocka_unit_test(test_one_more_than_the_optimum_is_not_proven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
