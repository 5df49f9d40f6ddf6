/* Certificates are accepted when they are right and rejected when they are not; no bound is above an optimum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bound/certificate.h"
#include "pair/pair_refine.h"
#include "support/false_bound.h"
#include "support/random_layers.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/proving.h"

static void hunt(uint64_t first, int n, int max_ops)
{
    false_bound_counts counts = {0};
    for (int i = 0; i < n; i++) {
        uint64_t seed = first + (uint64_t)i;
        random_spec spec = random_spec_draw(seed, max_ops);
        moirai_problem *p = seed % 2 ? random_layers(seed, max_ops) : random_problem(&spec);
        char why[256];
        if (p && !false_bound_check(p, seed, &counts, why))
            fail_msg("seed %llu: %s", (unsigned long long)seed, why);
        moirai_problem_free(p);
    }
    assert_true(counts.certificates > n / 2);
    assert_true(counts.optimal > n / 2);
    assert_true(counts.tampered > counts.certificates);
}

static void test_prove_no_bound_is_false(void **state)
{
    (void)state;
    hunt(1, TEST_SHARE(40), 7);
}

/* Six devices: a case that was proven is divided by receivers at a later level, and its parts prove less than it did. */
static void test_prove_divided_cases_lose_no_proof(void **state)
{
    (void)state;
    const uint64_t seed = UINT64_C(1794985901559);
    false_bound_counts counts = {.pair_every = 4};
    char why[256];
    moirai_problem *p = random_layers_on(seed, 8, 6);
    assert_non_null(p);
    if (!false_bound_check(p, seed, &counts, why))
        fail_msg("%s", why);
    moirai_problem_free(p);
}

/* Two devices, one tensor to four equal readers: the prices have to do the work. */
static const char heads[] =
    "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"heads\",\"flow\":\"tensor\",\"congestion\":\"port\","
    "\"memory\":\"static\","
    "\"devices\":[{\"name\":\"A\",\"memory_bytes\":100},{\"name\":\"B\",\"memory_bytes\":100}],\"channels\":["
    "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":"
    "1000000000}],"
    "\"ops\":["
    "{\"name\":\"in\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,10],\"inputs\":[],\"outputs\":[{\"name\":\"t\","
    "\"bytes\":20}]},"
    "{\"name\":\"h0\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"t\"],\"outputs\":[{"
    "\"name\":\"u0\",\"bytes\":5}]},"
    "{\"name\":\"h1\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"t\"],\"outputs\":[{"
    "\"name\":\"u1\",\"bytes\":5}]},"
    "{\"name\":\"h2\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"t\"],\"outputs\":[{"
    "\"name\":\"u2\",\"bytes\":5}]},"
    "{\"name\":\"h3\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"t\"],\"outputs\":[{"
    "\"name\":\"u3\",\"bytes\":5}]},"
    "{\"name\":\"mid\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,10],\"inputs\":[\"u0\",\"u1\",\"u2\",\"u3\"],"
    "\"outputs\":[{\"name\":\"v\",\"bytes\":20}]},"
    "{\"name\":\"g0\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"v\"],\"outputs\":[{"
    "\"name\":\"w0\",\"bytes\":5}]},"
    "{\"name\":\"g1\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"v\"],\"outputs\":[{"
    "\"name\":\"w1\",\"bytes\":5}]},"
    "{\"name\":\"g2\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"v\"],\"outputs\":[{"
    "\"name\":\"w2\",\"bytes\":5}]},"
    "{\"name\":\"g3\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[100,110],\"inputs\":[\"v\"],\"outputs\":[{"
    "\"name\":\"w3\",\"bytes\":5}]},"
    "{\"name\":\"out\",\"type\":\"T\",\"memory_bytes\":0,\"time_ns\":[10,10],\"inputs\":[\"w0\",\"w1\",\"w2\",\"w3\"],"
    "\"outputs\":[]}]}";

typedef struct fixture {
    moirai_problem *p;
    char *json;
    int64_t bound_ns;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    pair_chain *c;
    size_t length;
    if (moirai_problem_parse(&f.p, heads, strlen(heads), "heads") || pair_chain_new(&c, f.p))
        return -1;
    bound_certify_task job = {
        .goal_ns = INT64_MAX, .levels = PAIR_LEVELS, .nodes = 20000, .effort = 1, .threads = 1, .seed = 1};
    if (bound_certify(c, &job))
        return -1;
    f.bound_ns = pair_chain_path(c, PAIR_CHAIN_CERTIFIED, NULL);
    f.json = bound_certificate_text(&(bound_certificate){.c = c, .lower_bound_ns = f.bound_ns}, &length);
    pair_chain_free(c);
    *state = &f;
    return f.json ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    moirai_problem_free(f->p);
    free(f->json);
    return 0;
}

static int prove(const fixture *f, const char *json, moirai_proof *proof)
{
    return proving_text(proof, f->p, json, strlen(json), "c.json");
}

/* 10 + 20 + 2 * 110 + 10 is the block's best: a sends, b works for two; both blocks alike. */
static void test_prove_accepts_what_prices_prove(void **state)
{
    const fixture *f = *state;
    moirai_proof proof;
    assert_int_equal(prove(f, f->json, &proof), MOIRAI_OK);
    assert_int_equal(proof.proven_ns, f->bound_ns);
    assert_int_equal(proof.certified_ns, f->bound_ns);
    assert_int_equal(proof.cuts, 3);
    assert_true(proof.leaves > 0);
    assert_true(proof.proven_ns > 10 + 100 + 10 + 100 + 10); /* more than the longest path */
}

/* The text with the first `old` after `after` replaced. */
static char *replaced(const char *json, const char *after, const char *old, const char *new)
{
    const char *at = strstr(json, after);
    at = at ? strstr(at, old) : NULL;
    assert_non_null(at);
    char *copy = malloc(strlen(json) + strlen(new) + 1);
    sprintf(copy, "%.*s%s%s", (int)(at - json), json, new, at + strlen(old));
    return copy;
}

static void rejects(const fixture *f, char *json)
{
    moirai_proof proof;
    assert_int_equal(prove(f, json, &proof), MOIRAI_EVERIFY);
    assert_int_equal(strncmp(moirai_error_message(), "c.json: ", 8), 0);
    free(json);
}

static void test_prove_rejects_a_raised_bound(void **state)
{
    const fixture *f = *state;
    char old[64], new[64];
    snprintf(old, sizeof old, "%lld", (long long)f->bound_ns);
    snprintf(new, sizeof new, "%lld", (long long)f->bound_ns + 1);
    rejects(f, replaced(f->json, "\"certified_bound_ns\"", old, new));
    char *both = replaced(f->json, "\"lower_bound_ns\"", old, new);
    rejects(f, replaced(both, "\"certified_bound_ns\"", old, new));
    free(both);
}

/* Lists cut out: all of the text from the bracket after `key` to its end becomes `[]`. */
static char *emptied(const char *json, const char *key)
{
    const char *at = strstr(json, key), *open = strchr(at, '['), *close = strchr(open, ']');
    char *copy = malloc(strlen(json) + 1);
    sprintf(copy, "%.*s[%s", (int)(open - json), json, close);
    return copy;
}

static void test_prove_rejects_changed_prices(void **state)
{
    const fixture *f = *state;
    rejects(f, emptied(f->json, "\"prices\""));
    rejects(f, replaced(f->json, "\"prices\"", "[", "[0,0,-1,"));
    rejects(f, replaced(f->json, "\"prices\"", "[", "[99,0,1,"));
    rejects(f, replaced(f->json, "\"prices\"", "[0, 0, ", "[0, 0, 99999"));
    rejects(f, replaced(f->json, "\"prices\"", "[0, 0, ", "[0, 0, 5, 0, 0, "));
    rejects(f, replaced(f->json, "\"prices\"", "[", "[5,"));
}

static void test_prove_rejects_a_larger_length(void **state)
{
    const fixture *f = *state;
    const char *at = strstr(f->json, "\"length_ns\"");
    assert_non_null(at);
    rejects(f, replaced(f->json, "\"length_ns\"", ": ", ": 1"));
}

static void test_prove_rejects_a_missing_case(void **state)
{
    const fixture *f = *state;
    const char *at = strstr(f->json, "\"leaves\""), *open = strchr(at, '{'), *close = strchr(open, '}') + 1;
    assert_true(*close == ',');
    char *copy = malloc(strlen(f->json) + 1);
    sprintf(copy, "%.*s%s", (int)(open - f->json), f->json, close + 1);
    rejects(f, copy);
}

static void test_prove_rejects_wrong_cuts_and_classes(void **state)
{
    const fixture *f = *state;
    rejects(f, replaced(f->json, "\"cuts\"", "5", "4"));
    rejects(f, replaced(f->json, "\"cuts\"", "5", "5,5"));
    rejects(f, replaced(f->json, "\"cuts\"", "5", "77"));
    rejects(f, replaced(f->json, "\"block_class\"", "1", "0"));
    rejects(f, emptied(f->json, "\"block_class\""));
    rejects(f, emptied(f->json, "\"component_kind\""));
    rejects(f, replaced(f->json, "\"operators\"", "11", "12"));
}

static void test_prove_rejects_what_is_no_certificate(void **state)
{
    const fixture *f = *state;
    moirai_proof proof;
    assert_int_equal(prove(f, "", &proof), MOIRAI_EINPUT);
    assert_int_equal(prove(f, "{\"format\":\"moirai-plan\",\"version\":1}", &proof), MOIRAI_EINPUT);
    assert_int_equal(prove(f, "{\"format\":\"moirai-certificate\",\"version\":1}", &proof), MOIRAI_EVERIFY);
    /* Cut off anywhere, it is never accepted and never crashes. */
    size_t n = strlen(f->json);
    for (size_t i = 0; i < n; i += 1 + n / 200) {
        char *copy = malloc(i + 1);
        memcpy(copy, f->json, i);
        assert_int_not_equal(proving_text(&proof, f->p, copy, i, "c.json"), MOIRAI_OK);
        free(copy);
    }
}

/* Another problem's certificate: same graph, faster devices. */
static void test_prove_rejects_another_problem(void **state)
{
    const fixture *f = *state;
    char *text = strdup(heads);
    for (char *at = text; (at = strstr(at, "[100,110]")); at++)
        memcpy(at, "[ 90, 99]", 9);
    moirai_problem *p;
    moirai_proof proof;
    assert_int_equal(moirai_problem_parse(&p, text, strlen(text), "faster"), 0);
    assert_int_equal(proving_text(&proof, p, f->json, strlen(f->json), "c.json"), MOIRAI_EVERIFY);
    moirai_problem_free(p);
    free(text);
}

/* The placer writes it, also where the exhaustive search has closed the gap. */
static void test_prove_accepts_the_placers_certificate(void **state)
{
    const fixture *f = *state;
    char path[] = "/tmp/moirai-certificate-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    moirai_place_options o;
    moirai_plan *plan;
    moirai_proof proof;
    moirai_place_options_init(&o);
    o.certificate_path = path;
    assert_int_equal(moirai_place(&plan, f->p, "moirai", &o), 0);
    assert_int_equal(proving_file(&proof, f->p, path), 0);
    assert_int_equal(proof.lower_bound_ns, plan->lower_bound_ns);
    assert_true(proof.proven_ns <= plan->makespan_ns);
    assert_true(proof.proven_ns >= f->bound_ns);
    moirai_plan_free(plan);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prove_no_bound_is_false),
        cmocka_unit_test(test_prove_divided_cases_lose_no_proof),
        cmocka_unit_test(test_prove_accepts_what_prices_prove),
        cmocka_unit_test(test_prove_rejects_a_raised_bound),
        cmocka_unit_test(test_prove_rejects_changed_prices),
        cmocka_unit_test(test_prove_rejects_a_larger_length),
        cmocka_unit_test(test_prove_rejects_a_missing_case),
        cmocka_unit_test(test_prove_rejects_wrong_cuts_and_classes),
        cmocka_unit_test(test_prove_rejects_what_is_no_certificate),
        cmocka_unit_test(test_prove_rejects_another_problem),
        cmocka_unit_test(test_prove_accepts_the_placers_certificate),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
