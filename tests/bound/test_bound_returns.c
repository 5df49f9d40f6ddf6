/* Cases of the static programme at its far end: results that return one after the other, devices of single operators,
 * and windows that leave nothing. No bound of a random fork is above its optimum, and the verifier agrees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/moirai.h>

#include "bound/certificate.h"
#include "exact/exact.h"
#include "pair/pair_refine.h"
#include "lp/lp.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"
#include "support/proving.h"
#include "util/util.h"

#ifndef FORKS
#define FORKS 120
#endif

/* The pair of the block between the first cut and the next, on devices a and z. */
static pair_state *open_block(pair_chain **c, const moirai_problem *p, int32_t a, int32_t z)
{
    assert_ok(pair_chain_new(c, p));
    int32_t class_ = (*c)->s->block_class[1];
    assert_ok(pair_open(*c, class_, a, z));
    return (*c)->pair[pair_chain_index(*c, class_, a, z)];
}

/* y and z each have three operators of 100, whose results take 40 to x. Each device alone could be done at 340, and so
 * could the port; but both have their last result at 300 at the soonest, and one of the two waits for the other. */
#define TWO_RETURN \
    "device x 9\ndevice y 9\ndevice z 9\nop in 0,-,- > s:0\n" \
    "op a -,100,- s > t1:40\nop b -,100,- s > t2:40\nop c -,100,- s > t3:40\n" \
    "op d -,-,100 s > t4:40\nop e -,-,100 s > t5:40\nop f -,-,100 s > t6:40\nop out 0,-,- t1 t2 t3 t4 t5 t6\n"

static char *prove_two_returns(moirai_problem *p, pair_chain **c, size_t *length)
{
    pair_state *x = open_block(c, p, 0, 0);
    x->plan.length_ns = 600; /* so that there is something to prove */
    assert_ok(pair_raise_static(x, (util_stop){0}));
    assert_int_equal(pair_static_ns(x), 340);
    assert_ok(pair_raise_cases(x, INT64_MAX, 40, (util_stop){0}));
    assert_int_equal(pair_static_ns(x), 380);
    char *json = bound_certificate_text(&(bound_certificate){.c = *c, .lower_bound_ns = 380}, length);
    assert_non_null(json);
    return json;
}

static void test_results_return_one_after_the_other(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    moirai_problem *p = tiny_problem(TWO_RETURN);
    pair_chain *c;
    size_t length;
    char *json = prove_two_returns(p, &c, &length);
    moirai_proof proof;
    assert_ok(proving_text(&proof, p, json, length, "certificate"));
    assert_int_equal(proof.proven_ns, 380);
    free(json);
    pair_chain_free(c);
    moirai_problem_free(p);
}

static void test_tampered_returns_are_rejected(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    static const char *const bad[][2] = {
        {"\"returns\": [1, 2]", "\"returns\": [1]"},
        {"\"returns\": [1, 2]", "\"returns\": [1, 0]"},
        {"\"returns\": [1, 2]", "\"returns\": [1, 1]"},
        {"\"returns\": [2]", "\"returns\": [1]"},
        {"\"return_ns\": 40", "\"return_ns\": 0"},
        {"\"return_ns\": 40", "\"return_ns\": 41"},
        {"\"nobody\":", "\"no_body\":"},
        {"\"next\":", "\"then\":"},
    };
    moirai_problem *p = tiny_problem(TWO_RETURN);
    pair_chain *c;
    size_t length;
    char *json = prove_two_returns(p, &c, &length);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *at = strstr(json, bad[i][0]);
        if (!at)
            fail_msg("no %s in %s", bad[i][0], json);
        char *changed = malloc(length + 64);
        assert_non_null(changed);
        sprintf(changed, "%.*s%s%s", (int)(at - json), json, bad[i][1], at + strlen(bad[i][0]));
        moirai_proof proof;
        if (proving_text(&proof, p, changed, strlen(changed), "changed") == 0)
            fail_msg("accepted: %s for %s", bad[i][1], bad[i][0]);
        free(changed);
    }
    free(json);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* ---- random forks ---- */

static int draw(util_rng *rng, int n)
{
    return (int)util_rng_below(rng, (uint32_t)n);
}

/* Branches of one or two operators between an entry and an exit on two of three devices, some joined on the way by
 * operators that read two of them: like experts and their sum. Operators of a few kinds, so that there are groups. */
static moirai_problem *random_fork(util_rng *rng, int32_t *a, int32_t *z)
{
    static const char *const flow[] = {"tensor", "tensor", "edge"};
    char text[4096], time[3][32], last[64] = "";
    int n = snprintf(text, sizeof text, "flow %s\ncongestion port\ndevice A 9\ndevice B 9\ndevice C 9\n",
                     flow[draw(rng, 3)]);
    int branches = 2 + draw(rng, 3), bytes = 1 + draw(rng, 60);
    *a = draw(rng, 3);
    *z = draw(rng, 3);
    for (int i = 0; i < 3; i++)
        snprintf(time[i], sizeof time[i], "%d,%d,%d", 1 + draw(rng, 90), 1 + draw(rng, 90), 1 + draw(rng, 90));
    n += snprintf(text + n, sizeof text - (size_t)n, "op in %s > s:%d\n",
                  *a == 0   ? "0,-,-"
                  : *a == 1 ? "-,0,-"
                            : "-,-,0",
                  draw(rng, 60));
    for (int i = 0; i < branches; i++) {
        bool two = draw(rng, 3) == 0;
        char middle[16];
        snprintf(middle, sizeof middle, "u%d", i);
        if (two)
            n += snprintf(text + n, sizeof text - (size_t)n, "op p%d %s s > u%d:%d\n", i, time[0], i, draw(rng, 80));
        n += snprintf(text + n, sizeof text - (size_t)n, "op q%d %s %s > t%d:%d\n", i, time[1], two ? middle : "s", i,
                      draw(rng, 4) ? bytes : draw(rng, 9));
        if (i > 0 && draw(rng, 2)) {
            n += snprintf(text + n, sizeof text - (size_t)n, "op r%d %s %s t%d > v%d:%d\n", i, time[2], last, i, i,
                          bytes);
            snprintf(last, sizeof last, "v%d", i);
        } else {
            size_t m = strlen(last);
            snprintf(last + m, sizeof last - m, "%st%d", m ? " " : "", i);
        }
    }
    snprintf(text + n, sizeof text - (size_t)n, "op out %s %s\n",
             *z == 0   ? "0,-,-"
             : *z == 1 ? "-,0,-"
                       : "-,-,0",
             last);
    return tiny_problem(text);
}

typedef struct seen {
    int divided[PAIR_BY_RETURN + 1], tight;
} seen;

static void check_fork(uint64_t seed, seen *counts)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    int32_t a, z;
    moirai_problem *p = random_fork(&rng, &a, &z);
    pair_chain *c;
    pair_state *x = open_block(&c, p, a, z);
    bool whole = x->block.n_interior + 2 == p->n_ops; /* no cuts but the two ends */
    exact_options o;
    exact_result found;
    exact_options_init(&o);
    assert_ok(exact_solve(&x->block.problem, &o, &found));
    assert_true(found.complete && found.found);
    x->plan.length_ns = 2 * found.makespan_ns + 2;
    for (int i = 0; i < 1 + (int)(seed % 3); i++)
        assert_ok(pair_raise_cases(x, INT64_MAX, 1 + draw(&rng, 60), (util_stop){0}));
    if (x->lower_ns > found.makespan_ns)
        fail_msg("seed %llu: bound %lld, optimum %lld", (unsigned long long)seed, (long long)x->lower_ns,
                 (long long)found.makespan_ns);
    const pair_static_tree *tree = pair_static_proven(x->by_static.programme);
    for (int32_t i = 0; tree && i < tree->n_cases; i++)
        counts->divided[tree->cases[i].division]++;
    counts->tight += x->lower_ns == found.makespan_ns;
    size_t length;
    moirai_proof proof = {0};
    int64_t claim = pair_certified_ns(x);
    char *json = bound_certificate_text(&(bound_certificate){.c = c, .lower_bound_ns = whole ? claim : 0}, &length);
    if (proving_text(&proof, p, json, length, "certificate") && whole)
        fail_msg("seed %llu: proven %lld of %lld: %s", (unsigned long long)seed, (long long)proof.proven_ns,
                 (long long)claim, moirai_error_message());
    free(json);
    exact_result_clear(&found);
    pair_chain_free(c);
    moirai_problem_free(p);
}

static void test_no_bound_of_a_fork_is_above_its_optimum(void **state)
{
    (void)state;
    if (!pricing_lp_available())
        skip();
    seen counts = {{0}, 0};
    for (uint64_t seed = 1; seed <= FORKS; seed++)
        check_fork(seed, &counts);
    for (int i = PAIR_BY_NUMBER; i <= PAIR_BY_RETURN; i++)
        assert_true(counts.divided[i] > 0);
    assert_true(counts.tight > FORKS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_return_one_after_the_other),
        cmocka_unit_test(test_tampered_returns_are_rejected),
        cmocka_unit_test(test_no_bound_of_a_fork_is_above_its_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
