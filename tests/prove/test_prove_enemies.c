/* Certificates written by an enemy: the verifier answers with a value or a refusal, soon, and never with a falsehood.
 */
#include "support/check.h"
#include "support/attack.h"
#include "support/false_bound.h"
#include "support/random_layers.h"
#include "support/scale.h"
#include "support/proving.h"

#include <moirai/moirai.h>

/* The problem of fuzz/fuzz_certificate.c: three heads between two cuts, the optimum is 220. */
#define HEAD(n) \
    "{\"name\":\"h" n \
    "\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"t\"],\"outputs\":[{\"name\":\"u" n \
    "\",\"bytes\":5}]},"
static const char pair_json[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"pair\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\","
    "\"devices\":[{\"name\":\"A\",\"memory_bytes\":100},{\"name\":\"B\",\"memory_bytes\":100}],\"channels\":["
    "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":"
    "1000000000}],"
    "\"ops\":[{\"name\":\"in\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,null],\"inputs\":[],"
    "\"outputs\":[{\"name\":\"t\",\"bytes\":20}]}," HEAD("0") HEAD("1")
        HEAD("2") "{\"name\":\"out\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,null],\"inputs\":[\"u0\",\"u1\","
                  "\"u2\"],\"outputs\":[]}]}";

static const char before[] = "{\"format\":\"moirai-certificate\",\"version\":1,\"problem\":\"pair\",\"operators\":5,"
                             "\"cuts\":[0,4],\"block_class\":[0,1,2],"
                             "\"classes\":[{},{\"component_kind\":[0,0,0],\"trees\":[[]],\"shared\":0,\"pairs\":["
                             "{\"entry\":0,\"exit\":0,\"lower_ns\":0,\"leaves\":[{\"receivers\":[],\"length_ns\":10,"
                             "\"step_ns\":1,\"buckets\":[0,11],\"prices\":[]},";
static const char after[] = "]}]},{}],\"lower_bound_ns\":220,\"certified_bound_ns\":0}";

/* A certificate with these leaves for the case that B receives the tensor. Returns the verifier's answer. */
static int prove_leaves(const char *leaves, moirai_proof *proof)
{
    moirai_problem *p;
    size_t size = strlen(before) + strlen(leaves) + strlen(after) + 1;
    char *json = malloc(size);
    assert_non_null(json);
    int length = snprintf(json, size, "%s%s%s", before, leaves, after);
    assert_ok(moirai_problem_parse(&p, pair_json, strlen(pair_json), "pair"));
    int rc = proving_text(proof, p, json, (size_t)length, "enemy");
    moirai_problem_free(p);
    free(json);
    return rc;
}

static void refused(const char *leaves, const char *part)
{
    moirai_proof proof;
    assert_int_equal(prove_leaves(leaves, &proof), MOIRAI_EVERIFY);
    if (!strstr(moirai_error_message(), part))
        fail_msg("\"%s\" does not say \"%s\"", moirai_error_message(), part);
}

/* An arrival at the end of all numbers: sums with it would overflow. */
static void test_prove_enemy_arrival_at_the_end_of_time(void **state)
{
    (void)state;
    refused("{\"receivers\":[1],\"counts\":[-1,0,1,9223372036854775807,9223372036854775807],\"length_ns\":199,\"step_"
            "ns\":1,"
            "\"buckets\":[0,200],\"prices\":[0,0,5]}",
            "a count is of a kind");
    refused("{\"receivers\":[1],\"counts\":[-2,0,1,0,9223372036854775806],\"length_ns\":199,\"step_ns\":1,\"buckets\":["
            "0,200],"
            "\"prices\":[0,0,5]}",
            "a count is of a kind");
    /* The largest that is allowed is counted on without harm. */
    moirai_proof proof;
    int rc = prove_leaves("{\"receivers\":[1],\"counts\":[-1,0,1,0,2305843009213693951],\"length_ns\":19,\"step_ns\":1,"
                          "\"buckets\":[0,20],\"prices\":[]},{\"receivers\":[1],\"counts\":[-1,0,1,2305843009213693952,"
                          "9223372036854775807],\"length_ns\":2305843009213693951,\"step_ns\":2305843009213693951,"
                          "\"buckets\":[0,1,2],\"prices\":[]}",
                          &proof);
    assert_true(rc == 0 || rc == MOIRAI_EVERIFY);
    assert_true(rc || proof.proven_ns <= 220);
}

/* 300,000 questions one within the other: the verifier's stack is not theirs. */
static void test_prove_enemy_asks_without_end(void **state)
{
    (void)state;
    enum { N = 300000 };
    static const char one[] = "0,0,1,0,3,";
    char *text = malloc(N * strlen(one) + 1000), *at;
    assert_non_null(text);
    at = text + sprintf(text, "{\"receivers\":[1],\"counts\":[");
    for (int i = 0; i < N; i++, at += strlen(one))
        memcpy(at, one, strlen(one));
    strcpy(at - 1, "],\"length_ns\":199,\"step_ns\":1,\"buckets\":[0,200],\"prices\":[]}");
    refused(text, "more than 1024 questions");
    free(text);
}

/* A grid whose tables would fill the machine. */
static void test_prove_enemy_asks_for_a_vast_grid(void **state)
{
    (void)state;
    refused("{\"receivers\":[1],\"length_ns\":1000000000,\"step_ns\":1,\"buckets\":[0,1000000001],\"prices\":[]}",
            "a leaf's length has too many steps");
}

/* What the placer itself writes, attacked. */
static void test_prove_enemy_of_the_placers_certificates(void **state)
{
    (void)state;
    attack_counts counts = {0};
    char *path = temporary_path("enemy.json"), why[256], *json = calloc(1, 1 << 22);
    assert_non_null(json);
    for (uint64_t seed = 1; seed <= (uint64_t)TEST_SHARE(60); seed++) {
        moirai_problem *p = random_layers(seed, 7);
        moirai_place_options o;
        moirai_plan *plan = NULL;
        moirai_place_options_init(&o);
        o.budget.effort = 0.1;
        o.budget.threads = 1;
        o.certificate_path = path;
        int64_t optimum = p ? false_bound_optimum(p) : -1;
        if (optimum >= 0 && !moirai_place(&plan, p, "moirai", &o)) {
            FILE *f = fopen(path, "r");
            size_t length = f ? fread(json, 1, (1 << 22) - 1, f) : 0;
            assert_non_null(f);
            fclose(f);
            json[length] = '\0';
            if (!attack_certificate(p, json, length, "classes", optimum, seed, 60, &counts, NULL, why) ||
                !attack_certificate(p, json, length, "memory", optimum, seed, 30, &counts, NULL, why))
                fail_msg("%s", why);
        }
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
    assert_true(counts.tried > TEST_SHARE(500) && counts.accepted > 0);
    remove(path);
    free(json);
}

/* Prices on bytes, prices on loads and search trees, attacked on problems whose optimum is known. */
static void test_prove_enemy_of_the_part_about_bytes(void **state)
{
    (void)state;
    false_bound_counts counts = {.pair_every = 16};
    for (uint64_t seed = 1; seed <= (uint64_t)TEST_SHARE(60); seed += 2) {
        moirai_problem *p = random_layers(seed, 6);
        char why[256];
        if (p && !false_bound_check(p, seed, &counts, why))
            fail_msg("seed %d: %s", (int)seed, why);
        moirai_problem_free(p);
    }
    /* The attack reaches its target: certificates with such a part exist, and some changes leave them true. */
    assert_true(counts.attacks.tried > TEST_SHARE(300));
    assert_true(counts.attacks.accepted > 0 && counts.attacks.accepted < counts.attacks.tried);
    assert_true(counts.block_loads > 0 || TEST_SHARE(4) < 4); /* few problems, few such proofs */
    assert_true(counts.searches > 0 || TEST_SHARE(4) < 4);
}

/* A certificate of the fuzzer's corpus, attacked in one part thousands of times. */
static void attack_corpus(const char *name, const char *part)
{
    moirai_problem *p;
    char path[4096], why[256], *json;
    attack_counts counts = {0};
    snprintf(path, sizeof path, "%s/fuzz/corpus/certificate/%s", MOIRAI_SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    json = calloc(1, 1 << 16);
    assert_non_null(json);
    size_t length = fread(json, 1, (1 << 16) - 1, f);
    fclose(f);
    moirai_proof proof;
    assert_ok(moirai_problem_parse(&p, pair_json, strlen(pair_json), "pair"));
    assert_ok(proving_text(&proof, p, json, length, name));
    assert_int_equal(proof.proven_ns, 220);
    if (!attack_certificate(p, json, length, part, 220, 7, TEST_SHARE(4000), &counts, NULL, why))
        fail_msg("%s", why);
    assert_true(counts.accepted > 0);
    moirai_problem_free(p);
    free(json);
}

static void test_prove_enemy_of_one_certificate(void **state)
{
    (void)state;
    attack_corpus("pair.json", "classes");
}

static void test_prove_enemy_of_search_trees(void **state)
{
    (void)state;
    attack_corpus("search.json", "classes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_enemy_arrival_at_the_end_of_time),
        cmocka_unit_test(test_prove_enemy_asks_without_end),
        cmocka_unit_test(test_prove_enemy_asks_for_a_vast_grid),
        cmocka_unit_test(test_prove_enemy_of_one_certificate),
        cmocka_unit_test(test_prove_enemy_of_search_trees),
        cmocka_unit_test(test_prove_enemy_of_the_placers_certificates),
        cmocka_unit_test(test_prove_enemy_of_the_part_about_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
