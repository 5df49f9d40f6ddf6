/* The pool of all devices: a bound where neither paths nor loads say enough, and a proof that can be judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <moirai/moirai.h>

#include "bound/certificate.h"
#include "bound/intervals/window_proof.h"
#include "pair/pair_refine.h"
#include "pair/pool_cut.h"
#include "support/check.h"
#include "support/false_bound.h"
#include "support/tiny.h"
#include "support/tiny_block.h"
#include "support/proving.h"
#include "util/util.h"

/* One operator, four side by side, one that joins them, 10 ns each, two equal devices, links that take no time. Paths
 * say 30, the load says 30; but the four share 2 devices between the others: 40. */
#define DIAMOND \
    "device x 9\ndevice y 9\nop a 10,10 > s:0\nop b 10,10 s > t:0\nop c 10,10 s > u:0\nop d 10,10 s > v:0\n" \
    "op e 10,10 s > w:0\nop f 10,10 t u v w > x:0\n"

static void test_work_between_two_operators_is_counted_where_paths_and_loads_miss_it(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(DIAMOND);
    assert_int_equal(moirai_bound_critical_path(p), 30);
    assert_int_equal(moirai_bound_load(p), 30);
    pair_pool_task job = {.proven_ns = 30, .upper_ns = 60, .rounds = 6, .cuts = 60, .nodes = 400, .threads = 1};
    int64_t lower = 0;
    assert_ok(pair_pool(&lower, p, &job, NULL));
    assert_int_equal(lower, 40);
    moirai_problem_free(p);
}

/* ---- certificates ---- */

/* The pool within windows from no intervals: within longest paths. */
static char *certificate_of(pair_chain *c, size_t *length)
{
    pair_pool_task pool = {.upper_ns = 60, .rounds = 6, .cuts = 60, .nodes = 400, .threads = 1};
    bound_window_task job = {.pool = &pool, .threads = 1};
    bound_window_proof proof;
    assert_ok(bound_window_prove(&proof, c->p, &(bound_interval_list){0}, &job));
    assert_int_equal(proof.lower_ns, 40);
    char *json = bound_certificate_text(&(bound_certificate){.c = c, .windows = &proof, .lower_bound_ns = 40}, length);
    assert_non_null(json);
    bound_window_proof_clear(&proof);
    return json;
}

/* The certificate with the number behind the first `key` of the pool changed. */
static char *change(const char *json, const char *key, int64_t to)
{
    const char *at = strstr(strstr(json, "\"pool\""), key);
    assert_non_null(at);
    at += strlen(key);
    while (*at != '-' && (*at < '0' || *at > '9'))
        at++;
    char *changed = malloc(strlen(json) + 32);
    assert_non_null(changed);
    sprintf(changed, "%.*s%lld%s", (int)(at - json), json, (long long)to, at + strspn(at, "-0123456789"));
    return changed;
}

static void test_the_proof_is_accepted_and_proves_the_bound(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(DIAMOND);
    pair_chain *c = tiny_chain(p);
    size_t length;
    char *json = certificate_of(c, &length);
    moirai_proof proof;
    assert_ok(proving_text(&proof, p, json, length, "certificate"));
    assert_int_equal(proof.proven_ns, 40);
    free(json);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* The certificate with `more` as the first of the flows. */
static char *add_flow(const char *json, const char *more)
{
    static const char key[] = "\"flows\":";
    const char *at = strstr(json, key);
    assert_non_null(at);
    at = strchr(at, '[') + 1;
    char *changed = malloc(strlen(json) + strlen(more) + 2);
    assert_non_null(changed);
    sprintf(changed, "%.*s%s%s%s", (int)(at - json), json, more, *at == ']' ? "" : ",", at);
    return changed;
}

static void test_flows_that_do_not_exist_or_hide_the_proof_are_rejected(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(DIAMOND);
    pair_chain *c = tiny_chain(p);
    size_t length;
    char *json = certificate_of(c, &length);
    /* no such edge; step 0; negative; not three; so much that the operators' own costs no longer count */
    static const char *const bad[] = {"1000,1,1", "0,0,1", "0,1,-1", "0,1", "0,1,4000000000000000000"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *changed = add_flow(json, bad[i]);
        moirai_proof proof;
        if (proving_text(&proof, p, changed, strlen(changed), "changed") == 0)
            fail_msg("accepted: %s", bad[i]);
        free(changed);
    }
    free(json);
    pair_chain_free(c);
    moirai_problem_free(p);
}

static void test_tampered_pools_are_rejected(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(DIAMOND);
    pair_chain *c = tiny_chain(p);
    size_t length;
    char *json = certificate_of(c, &length);
    struct {
        const char *key;
        int64_t to;
    } bad[] = {
        {"\"length_ns\"", 40},     {"\"length_ns\"", 0}, {"\"length_ns\"", -1}, {"\"length_ns\"", 29},
        {"\"step_ns\"", 0},        {"\"bucket_ns\"", 0}, {"\"bucket_ns\"", 7},  {"\"weights\"", -1},
        {"\"prices\"", INT64_MAX}, {"\"prices\"", -1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *changed = change(json, bad[i].key, bad[i].to);
        moirai_proof proof;
        if (proving_text(&proof, p, changed, strlen(changed), "changed") == 0)
            fail_msg("accepted: %s %lld", bad[i].key, (long long)bad[i].to);
        free(changed);
    }
    free(json);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* ---- the cut ---- */

/* All subsets that hold the source and not the sink. */
static int64_t least_cut(int32_t n, int32_t m, const int32_t *from, const int32_t *to, const int64_t *room)
{
    int64_t best = INT64_MAX;
    for (uint32_t set = 0; set < 1u << n; set++) {
        int64_t sum = 0;
        if (!(set & 1u << PAIR_CUT_SOURCE) || set & 1u << PAIR_CUT_SINK)
            continue;
        for (int32_t i = 0; i < m; i++)
            sum += set >> from[i] & 1 && !(set >> to[i] & 1) ? room[i] : 0;
        best = UTIL_MIN(best, sum);
    }
    return best;
}

static void test_the_flow_is_the_least_of_all_cuts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        util_rng rng;
        int32_t n, m, from[40], to[40];
        int64_t room[40], flow = 0;
        pair_cut x;
        util_rng_seed(&rng, seed);
        n = 2 + (int32_t)util_rng_below(&rng, 8);
        m = (int32_t)util_rng_below(&rng, 40);
        for (int32_t i = 0; i < m; i++) {
            from[i] = (int32_t)util_rng_below(&rng, (uint32_t)n);
            to[i] = (int32_t)util_rng_below(&rng, (uint32_t)n);
            room[i] = util_rng_below(&rng, 20);
        }
        assert_ok(pair_cut_new(&x, n, m, from, to));
        for (int32_t i = 0; i < m; i++)
            x.left[2 * i] = room[i];
        pair_cut_fill(&flow, &x, INT64_MAX, &(util_stop){0});
        assert_int_equal(flow, least_cut(n, m, from, to, room));
        assert_true(x.level[PAIR_CUT_SOURCE] < 0);
        pair_cut_free(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_between_two_operators_is_counted_where_paths_and_loads_miss_it),
        cmocka_unit_test(test_the_proof_is_accepted_and_proves_the_bound),
        cmocka_unit_test(test_tampered_pools_are_rejected),
        cmocka_unit_test(test_flows_that_do_not_exist_or_hide_the_proof_are_rejected),
        cmocka_unit_test(test_the_flow_is_the_least_of_all_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
