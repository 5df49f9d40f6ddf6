/* Certificates by prices on loads: worked out on paper; what the relaxation proves is proven again by both verifiers; and no other
 * numbers prove more than the optimum. */
#include <moirai/moirai.h>

#include <stdarg.h>
#include <unistd.h>

#include "support/check.h"
#include "support/false_bound.h"
#include "support/false_bound_loads.h"
#include "support/false_certificate.h"
#include "support/proving.h"
#include "support/random_layers.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "util/util.h"

#define PROBLEMS TEST_SHARE(200)

/* ---- by hand ---- */

/* a: 10 and 30, b: 30 and 10 ns: each where it is quick. */
#define TWO "device x 9\ndevice y 9\nop a 10,30 > t:0\nop b 30,10 > u:0\n"

static int64_t proves(const char *problem, const char *loads)
{
    char text[4096];
    moirai_problem *p = tiny_problem(problem);
    snprintf(text, sizeof text, "\"loads\": %s", loads);
    int64_t ns = false_certificate_proves(p, false_certificate_whole("\"shared\": null", text));
    moirai_problem_free(p);
    return ns;
}

static void rejected(const char *problem, const char *loads, const char *says)
{
    char text[4096];
    moirai_problem *p = tiny_problem(problem);
    snprintf(text, sizeof text, "\"loads\": %s", loads);
    false_certificate_rejected(p, false_certificate_whole("\"shared\": null", text), says);
    moirai_problem_free(p);
}

/* Four branches of 10 ns on either device, whose results (10 ns to send) a sum of 1 ns reads. */
#define JOIN \
    "device x 99\ndevice y 99\nop a 10,10 > a:10\nop b 10,10 > b:10\nop c 10,10 > c:10\nop d 10,10 > d:10\n" \
    "op sum 1,1 a b c d > s:0\n"

/* Prices of x, y and their ports. With the sum on x, prices (2, 1, 0, 0, 1, 0) charge 20 for a branch on x, and for one on y 10 and 10 at the
 * receive port of x: 80 for all four, 2 for the sum. Behind a branch on y come 10 and 1 ns, before and behind a transfer as many: with these
 * 80 + 2 + 11 + 11 = 104, by the 4 that a nanosecond of all costs 26. */
#define ON_X "{\"prices\": [2,1,0,0,1,0], \"unit\": 10, \"from\": [0,0,1, 1,0,1, 2,0,1, 3,0,1], \"to\": []}"
#define ON_Y "{\"prices\": [1,2,0,0,0,1], \"unit\": 5, \"from\": [0,2,0, 1,2,0, 2,2,0, 3,2,0], \"to\": []}"
#define FLAT "{\"prices\": [1,1,0,0,0,0]}"

static void test_prove_loads_by_hand(void **state)
{
    (void)state;
    assert_int_equal(proves(TWO, "{\"prices\": [1,1,0,0,0,0]}"), 10);
    assert_int_equal(proves(TWO, "{\"prices\": [1,0,0,0,0,0]}"), 10); /* all on y: the longest path is left */
    assert_int_equal(proves(TWO, "{}"), 10);
    assert_int_equal(proves(JOIN, FLAT), 21);
    assert_int_equal(proves(JOIN, ON_X), 13); /* without the case the sum may be on y as well: (40 + 1 + 11) / 4 */
    assert_int_equal(proves(JOIN, "{\"op\": 4, \"cases\": [" ON_X ", " ON_Y "]}"), 26);
    assert_int_equal(proves(JOIN, "{\"op\": 4, \"cases\": [" ON_X ", {}]}"),
                     11); /* the longest path is all that is said */
}

/* Four operators of 10 ns, then one of 50 that reads them all: the four have 50 behind them, and two devices take 20 for them. */
#define FUNNEL \
    "device x 99\ndevice y 99\nop a 10,10 > a:0\nop b 10,10 > b:0\nop c 10,10 > c:0\nop d 10,10 > d:0\n" \
    "op last 50,50 a b c d > s:0\n"
#define LONG "device x 9\ndevice y 9\nop a 100,- > t:0\n"

static void test_prove_loads_within_shifts(void **state)
{
    (void)state;
    assert_int_equal(proves(FUNNEL, FLAT), 60); /* 90 / 2 are less than the longest path */
    assert_int_equal(proves(FUNNEL, "{\"prices\": [0,0,0,0,0,0], \"shifts\": [0,50,1,1]}"), 70);
    assert_int_equal(proves(FUNNEL, "{\"prices\": [0,0,0,0,0,0], \"shifts\": [0,40,1,1, 0,50,3,3]}"),
                     69); /* of the last 10 lie in the first shift: (50 / 2 + 40 + 3 * 70) / 4 is 68.75, rounded up */
    assert_int_equal(proves(FUNNEL, "{\"prices\": [0,0,0,0,0,0], \"shifts\": [0,70,1,1]}"),
                     60); /* no more than the path */
    /* It may begin before the shift and end behind it; that the shift lasts 70 is known from the path. */
    assert_int_equal(proves(LONG, "{\"prices\": [0,0,0,0,0,0], \"shifts\": [10,20,1,0]}"), 100);
    rejected(FUNNEL, "{\"prices\": [1,1,0,0,0,0], \"shifts\": [0,50,1]}", "shifts have not two times");
    rejected(FUNNEL, "{\"prices\": [1,1,0,0,0,0], \"shifts\": [0,-1,1,1]}", "out of range");
    rejected(FUNNEL, "{\"prices\": [1,1,0,0,0,0], \"shifts\": [0,50,1,1099511627777]}", "too large");
}

/* Two chains of two operators, one quick device and two slow ones: loads alone are content with three operators on the quick one and a half elsewhere. */
#define CHAINS \
    "device x 99\ndevice y 99\ndevice z 99\nop a 10,30,30 > t:0\nop b 10,30,30 t > u:0\nop c 10,30,30 > v:0\n" \
    "op d 10,30,30 v > w:0\n"

static void test_prove_loads_with_paths(void **state)
{
    (void)state;
    assert_int_equal(proves(CHAINS, "{\"prices\": [3,1,1,0,0,0,0,0,0]}"), 24);
    assert_int_equal(proves(CHAINS, "{\"prices\": [2,0,0,0,0,0,0,0,0], \"paths\": [1,2,0,1, 1,2,2,3]}"), 30);
    assert_int_equal(proves(CHAINS, "{\"prices\": [0,0,0,0,0,0,0,0,0], \"paths\": [5,1,3]}"),
                     20); /* a part of one: the longest path is more */
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1,2,1,0]}",
             "does not read what the one before makes");
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1,2,0,2]}",
             "does not read what the one before makes");
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1,2,0,0]}",
             "does not read what the one before makes");
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1,1,4]}",
             "does not read what the one before makes");
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1,2,0]}", "a path ends early");
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1]}", "a path ends early");
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1,0]}", "a path has no operators");
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1,5,0,1,2,3,0]}", "more than there are");
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1099511627777,1,0]}", "too large");
    rejected(CHAINS, "{\"prices\": [1,1,1,0,0,0,0,0,0], \"paths\": [1,1,-1]}", "out of range");
}

static void test_prove_loads_wrong_ones_are_rejected(void **state)
{
    (void)state;
    rejected(JOIN, "{\"prices\": [1,1,0,0,0]}", "prices of loads has 5 numbers, not 6");
    rejected(JOIN, "{\"prices\": [1,1,0,0,0,-1]}", "out of range");
    rejected(JOIN, "{\"prices\": [1,1,0,0,0,1099511627777]}", "out of range");
    rejected(JOIN, "{\"prices\": [1,1,0,0,0,0], \"byte_prices\": [1]}", "byte_prices of loads has 1 numbers, not 2");
    rejected(JOIN, "{\"prices\": [1,1,0,0,0,0], \"from\": [0,1]}", "messages have not one number per device");
    rejected(JOIN, "{\"prices\": [1,1,0,0,0,0], \"from\": [4,1,1]}", "messages of no edge");
    rejected(JOIN, "{\"prices\": [1,1,0,0,0,0], \"to\": [1,1,1,1,2,2]}", "messages of no edge");
    rejected(JOIN, "{\"prices\": [1,1,0,0,0,0], \"unit\": 4611686018427387904, \"to\": [1,1,2]}", "too large");
    rejected(JOIN, "{\"op\": 4, \"cases\": [" ON_X "]}", "cases of loads are not one per device");
    rejected(JOIN, "{\"op\": 5, \"cases\": [" ON_X ", " ON_Y "]}", "cases of loads are not one per device");
    rejected(JOIN, "{\"cases\": [" ON_X ", " ON_Y "]}", "op is missing");
}

/* Two operators of 3 bytes that are quick on x, which holds one of them. */
static void test_prove_loads_bytes_have_prices(void **state)
{
    (void)state;
    const char *both = "device x %d\ndevice y 9\nop a 10,50 mem=3 > t:0\nop b 10,50 mem=3 > u:0\n";
    char wide[256], tight[256];
    snprintf(wide, sizeof wide, both, 9);
    snprintf(tight, sizeof tight, both, 4);
    assert_int_equal(proves(wide, "{\"prices\": [5,1,0,0,0,0]}"), 17); /* 100 / 6 */
    /* On either device an operator costs 150; of the 300 x's capacity has 200, and 100 / 3 are left. */
    assert_int_equal(proves(tight, "{\"prices\": [0,3,0,0,0,0], \"byte_prices\": [50,0]}"), 34);
    assert_int_equal(proves(wide, "{\"prices\": [0,3,0,0,0,0], \"byte_prices\": [50,0]}"), 10);
}

/* Two devices that are equal but for their memory: x has no room for a and b. Between cuts on x both are sent to y and back, which takes 26 ns at
 * least by these numbers; between cuts on y, where they are, nothing is sent, and 20 ns are enough. */
static void test_prove_loads_bytes_are_not_shared_among_equals(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 1\ndevice y 9\nop in -,0 mem=0 > i:5\nop a 10,10 mem=3 i > t:5\n"
                                     "op b 10,10 mem=3 i > u:5\nop out -,0 mem=0 t u > o:0\n");
    const char *body = false_certificate_between(p, 0, 0, "\"shared\": null",
                                                 "\"loads\": {\"prices\": [0,100,0,0,0,0], \"byte_prices\": [400,0]}");
    assert_int_equal(false_certificate_proves(p, body), 10);
    moirai_problem_free(p);
}

/* A class without kinds and trees has no leaves. */
static void test_prove_loads_need_no_kinds_but_leaves_do(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(JOIN);
    false_certificate_rejected(p,
                               false_certificate_whole("\"shared\": null",
                                                       "\"leaves\": [{\"length_ns\": 1, \"step_ns\": 1, "
                                                       "\"buckets\": [0, 2], \"prices\": []}]"),
                               "without component_kind");
    moirai_problem_free(p);
}

typedef struct writing {
    char *text;
    size_t n, size;
} writing;

static void add(writing *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    w->n += (size_t)vsnprintf(w->text + w->n, w->size - w->n, format, list);
    va_end(list);
    assert_true(w->n < w->size);
}

/* The same number n times, after what comes before. */
static void add_list(writing *w, const char *before, int n, int64_t number)
{
    add(w, "%s[", before);
    for (int i = 0; i < n; i++)
        add(w, "%s%lld", i ? "," : "", (long long)number);
    add(w, "]");
}

/* Two operators, one after the other, of 2^59 ns on each of 64 devices, all transfers 2^52 ns. */
static moirai_problem *enormous(void)
{
    static char text[1 << 20];
    writing w = {text, 0, sizeof text};
    moirai_problem *p;
    add(&w, "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"enormous\",\"flow\":\"tensor\",\"congestion\":"
            "\"port\",\"memory\":\"static\",\"devices\":[");
    for (int k = 0; k < 64; k++)
        add(&w, "%s{\"name\":\"d%d\",\"memory_bytes\":%lld}", k ? "," : "", k, 1ll << 62);
    add(&w, "],\"channels\":[");
    for (int k = 0; k < 64 * 64; k++)
        if (k / 64 != k % 64)
            add(&w, "%s{\"from\":\"d%d\",\"to\":\"d%d\",\"bytes_per_second\":1}", k > 1 ? "," : "", k / 64, k % 64);
    add(&w, "],\"ops\":[");
    for (int i = 0; i < 2; i++) {
        add(&w, "%s{\"name\":\"o%d\",\"type\":\"T\",\"memory_bytes\":%lld,", i ? "," : "", i, 1ll << 59);
        add_list(&w, "\"time_ns\":", 64, 1ll << 59);
        add(&w, ",\"inputs\":[%s],\"outputs\":[{\"name\":\"t%d\",\"bytes\":1,\"transfer_ns\":[", i ? "\"t0\"" : "", i);
        for (int k = 0; k < 64; k++) {
            add(&w, "%s[", k ? "," : "");
            for (int l = 0; l < 64; l++)
                add(&w, "%s%lld", l ? "," : "", k == l ? 0ll : 1ll << 52);
            add(&w, "]");
        }
        add(&w, "]}]}");
    }
    add(&w, "]}");
    assert_ok(moirai_problem_parse(&p, text, w.n, "enormous"));
    return p;
}

/* The largest numbers that the format has, of all signs: sums that 64 bits would not hold. */
static void test_prove_loads_largest_numbers(void **state)
{
    (void)state;
    static char text[1 << 18];
    moirai_problem *p = enormous();
    for (int signs = 0; signs < 4; signs++) {
        writing w = {text, 0, sizeof text};
        moirai_proof proof;
        int64_t message = 1ll << 62;
        add(&w, "{\"format\": \"moirai-certificate\", \"version\": 1, \"operators\": 2, \"cuts\": [], \"block_class\": "
                "[0], "
                "\"classes\": [{\"pairs\": [{\"entry\": 0, \"exit\": 0, \"lower_ns\": 0, \"loads\": {");
        add_list(&w, "\"prices\": ", 3 * 64, 1ll << 40);
        if (signs & 1)
            add_list(&w, ", \"byte_prices\": ", 64, 1ll << 50);
        add_list(&w, ", \"from\": ", 65, signs & 1 ? message : -message);
        add_list(&w, ", \"to\": ", 65, signs & 2 ? message : -message);
        add(&w, "}}]}], \"lower_bound_ns\": %lld, \"certified_bound_ns\": %lld}", 1ll << 60, 1ll << 60);
        for (char *at = strchr(text, '\0'); at > text; at--) /* a message begins with its edge, 0 */
            if (!strncmp(at, "from\": [", 8) || !strncmp(at, "to\": [", 6)) {
                char *number = strchr(at, '[') + 1;
                size_t digits = strcspn(number, ",");
                memset(number, ' ', digits);
                *number = '0';
            }
        assert_ok(proving_text(&proof, p, text, w.n, "large"));
        assert_int_equal(proof.proven_ns, 1ll << 60); /* the longest path: these numbers prove less */
    }
    moirai_problem_free(p);
}

/* ---- the rate ---- */

static int prove_rate(moirai_proof *proof, const moirai_problem *p, const char *body, int64_t claim)
{
    char text[8192];
    int n =
        snprintf(text, sizeof text,
                 "{\"format\": \"moirai-certificate\", \"version\": 1, \"objective\": \"rate\", \"operators\": %d, %s, "
                 "\"lower_bound_ns\": %lld, \"certified_bound_ns\": %lld}",
                 p->n_ops, body, (long long)claim, (long long)claim);
    return proving_text(proof, p, text, (size_t)n, "rate");
}

#define CHAIN_OF_ONE "\"cuts\": [], \"block_class\": [0], \"classes\": [{}]"

static void test_prove_loads_of_a_period(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(JOIN);
    moirai_proof proof;
    /* 41 by two devices is 20.5: a mean, so that 20 are proven and 21 are not. */
    assert_ok(prove_rate(&proof, p, "\"loads\": " FLAT, 20));
    assert_int_equal(proof.proven_ns, 20);
    assert_true(proof.of_rate);
    assert_int_equal(prove_rate(&proof, p, "\"loads\": " FLAT, 21), MOIRAI_EVERIFY);
    /* Mixtures of plans are in no one case, and have no heads and tails. */
    assert_int_equal(prove_rate(&proof, p, "\"loads\": {\"op\": 4, \"cases\": [" ON_X ", " ON_Y "]}", 0),
                     MOIRAI_EVERIFY);
    assert_ok(prove_rate(&proof, p, "\"loads\": {}", 0));
    assert_int_equal(proof.proven_ns, 0);
    /* With at most two requests under way, each of 11 ns or more: one every 5 ns. */
    assert_ok(prove_rate(&proof, p, "\"in_flight\": 2, " CHAIN_OF_ONE, 5));
    assert_int_equal(proof.proven_ns, 5);
    assert_int_equal(proof.in_flight, 2);
    assert_ok(prove_rate(&proof, p, "\"in_flight\": 2, " CHAIN_OF_ONE ", \"loads\": " FLAT, 20));
    assert_int_equal(proof.proven_ns, 20);
    assert_int_equal(proof.in_flight, 0); /* loads hold for any number */
    assert_int_equal(prove_rate(&proof, p, "\"in_flight\": 0, " CHAIN_OF_ONE, 0), MOIRAI_EVERIFY);
    assert_int_equal(prove_rate(&proof, p, "\"in_flight\": 2", 0), MOIRAI_EVERIFY);
    assert_int_equal(prove_rate(&proof, p, CHAIN_OF_ONE, 0), MOIRAI_EVERIFY); /* one request says nothing of many */
    moirai_problem_free(p);
}

/* ---- at random ---- */

static void test_prove_loads_what_the_relaxation_proves(void **state)
{
    (void)state;
    false_bound_loads_counts n = {0};
    char *dossier = temporary_path("loads.txt"), command[1024], why[256];
    unlink(dossier);
    setenv("MOIRAI_DOSSIER", dossier, 1);
    for (uint64_t seed = 1; seed <= (uint64_t)PROBLEMS; seed++) {
        random_spec spec = random_spec_draw(seed, 7);
        spec.flow = seed / 2 % 2 ? MOIRAI_FLOW_EDGE : MOIRAI_FLOW_TENSOR;
        spec.congestion = (moirai_congestion)(seed / 2 % 4);
        moirai_problem *p = seed % 2 ? random_layers(seed, seed % 4 == 1 ? 10 : 7) : random_problem(&spec);
        int64_t optimum = p ? false_bound_optimum(p) : -1;
        if (optimum >= 0 && !false_bound_loads(p, optimum, seed, &n, why))
            fail_msg("seed %llu: %s", (unsigned long long)seed, why);
        moirai_problem_free(p);
    }
    unsetenv("MOIRAI_DOSSIER");
    assert_true(n.certificates > PROBLEMS / 2); /* the hunt has seen something */
    assert_true(n.raised > PROBLEMS / 50);
    assert_true(n.rates > PROBLEMS / 20);
    assert_true(n.attacks.accepted > PROBLEMS / 4);
    assert_true(n.rows > 0);
    snprintf(command, sizeof command, "python3 %s/tests/verify/check_certificate.py --dossier %s", MOIRAI_SOURCE_DIR,
             dossier);
    assert_int_equal(system(command), 0); /* the other verifier agrees */
    unlink(dossier);
}

/* ---- written by the placer ---- */

/* Sixty operators of all kinds that one reads: loads and ports are what its bound is made of, and all of it is certified. */
static void test_prove_loads_are_what_a_join_is_certified_by(void **state)
{
    (void)state;
    static char text[1 << 14];
    writing w = {text, 0, sizeof text};
    char *path = temporary_path("join.json"), inputs[1024] = "";
    add(&w, "device x 999\ndevice y 999\ndevice z 999\n");
    for (int i = 0; i < 60; i++) {
        add(&w, "op o%d %d,%d,%d > t%d:%d\n", i, 100 + 37 * i % 91, 100 + 53 * i % 83, 100 + 71 * i % 97, i,
            20 + i % 7);
        snprintf(inputs + strlen(inputs), sizeof inputs - strlen(inputs), " t%d", i);
    }
    add(&w, "op sum 1,1,1%s > s:0\n", inputs);
    moirai_problem *p = tiny_problem(text);
    moirai_place_options o;
    moirai_plan *plan;
    moirai_proof proof;
    moirai_place_options_init(&o);
    o.budget.effort = 0.1;
    o.certificate_path = path;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    assert_ok(proving_file(&proof, p, path));
    assert_int_equal(proof.proven_ns, plan->certified_bound_ns);
    assert_true(plan->certified_bound_ns > UTIL_MAX(moirai_bound_load(p), moirai_bound_critical_path(p)));
    assert_true((double)plan->certified_bound_ns >= 0.999 * (double)plan->lower_bound_ns);
    moirai_plan_free(plan);
    moirai_problem_free(p);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_prove_loads_by_hand),
                                       cmocka_unit_test(test_prove_loads_within_shifts),
                                       cmocka_unit_test(test_prove_loads_with_paths),
                                       cmocka_unit_test(test_prove_loads_wrong_ones_are_rejected),
                                       cmocka_unit_test(test_prove_loads_bytes_have_prices),
                                       cmocka_unit_test(test_prove_loads_bytes_are_not_shared_among_equals),
                                       cmocka_unit_test(test_prove_loads_need_no_kinds_but_leaves_do),
                                       cmocka_unit_test(test_prove_loads_largest_numbers),
                                       cmocka_unit_test(test_prove_loads_of_a_period),
                                       cmocka_unit_test(test_prove_loads_are_what_a_join_is_certified_by),
                                       cmocka_unit_test(test_prove_loads_what_the_relaxation_proves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
