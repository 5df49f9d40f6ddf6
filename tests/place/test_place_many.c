/* More than 64 devices: every plan is one, judged by both checkers; no bound is above a plan, also where the devices
 * beyond 64 are useless, or of use; and certificates hold. */
#include <moirai/bound.h>
#include <moirai/placer.h>
#include <moirai/prove.h>

#include "place/moirai/engine.h"
#include "problem/device_part.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/verify.h"
#include "util/json.h"
#include "util/util.h"

static moirai_place_options quick(void)
{
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.effort = 0.005;
    return o;
}

static moirai_problem *random_many(uint64_t seed)
{
    static const int devices[] = {65, 66, 70, 96, 128, 129, 150};
    random_spec spec = random_spec_draw(seed, 10);
    spec.n_devices = devices[seed % 7];
    spec.n_ops = spec.n_ops < 3 ? 3 : spec.n_ops;
    spec.tight = false;
    spec.tables = false;
    return random_problem(&spec);
}

/* ---- plans ---- */

static void test_place_many_plans_are_valid_and_above_the_bound(void **state)
{
    (void)state;
    moirai_place_options o = quick();
    verify_batch batch;
    verify_begin(&batch);
    for (uint64_t seed = 1; seed <= TEST_SHARE(7); seed++) {
        moirai_problem *p = random_many(seed);
        assert_non_null(p);
        int64_t bound = 0, best = INT64_MAX;
        for (int i = 0; i < moirai_placer_count(); i++) {
            const moirai_placer *placer = moirai_placer_at(i);
            moirai_plan *plan = NULL;
            int rc = placer->few_devices ? MOIRAI_ELIMIT : moirai_place(&plan, p, placer->name, &o);
            if (rc)
                continue;
            assert_ok(moirai_plan_check(p, plan, NULL, NULL));
            bound = UTIL_MAX(bound, plan->lower_bound_ns);
            best = UTIL_MIN(best, plan->makespan_ns);
            if (!strcmp(placer->name, "moirai") || !strcmp(placer->name, "heft"))
                verify_add(&batch, p, plan, true);
            moirai_plan_free(plan);
        }
        assert_true(best < INT64_MAX);
        for (int i = 0; i < moirai_bound_count(); i++) {
            int64_t ns;
            assert_ok(moirai_bound_at(i)->find(&ns, p, &o.budget));
            bound = UTIL_MAX(bound, ns);
        }
        assert_true(bound <= best);
        moirai_problem_free(p);
    }
    assert_int_equal(verify_run(&batch), 0);
}

/* Written and read again it is the same problem. */
static void test_place_many_problems_are_written_and_read(void **state)
{
    (void)state;
    moirai_problem *p = random_many(6), *again;
    char *text;
    size_t length;
    assert_ok(moirai_problem_text(&text, &length, p));
    assert_ok(moirai_problem_parse(&again, text, length, "again"));
    assert_problems_equal(p, again);
    assert_true(moirai_problem_digest(p) == moirai_problem_digest(again));
    free(text);
    moirai_problem_free(p);
    moirai_problem_free(again);
}

static void test_place_many_what_takes_few_says_so(void **state)
{
    (void)state;
    moirai_problem *p = random_many(1);
    moirai_plan *plan = NULL;
    assert_int_equal(moirai_place(&plan, p, "exact", NULL), MOIRAI_EUSAGE);
    assert_non_null(strstr(moirai_error_message(), "takes up to 64 devices"));
    moirai_problem_free(p);
}

/* ---- bounds ---- */

/* Every device of the problem `copies` times, copies talking fast to each other, and `useless` ones that can run nothing. */
static moirai_problem *with_more(const moirai_problem *p, int32_t copies, int32_t useless)
{
    static char name[MOIRAI_MAX_DEVICES][8];
    moirai_problem part, *out;
    int32_t K = p->n_devices, n = K * copies, all = n + useless, device[MOIRAI_MAX_DEVICES] = {0};
    char *text;
    size_t length;
    for (int32_t k = 0; k < all; k++)
        device[k] = k % K;
    assert_ok(problem_part(&part, p, device, all));
    for (int32_t k = 0; k < all; k++) {
        snprintf(name[k], sizeof name[k], "d%d", k);
        part.device_name[k] = name[k];
        part.device_memory_bytes[k] = k < n ? part.device_memory_bytes[k] : 0;
        for (int32_t i = 0; k >= n && i < p->n_ops; i++)
            part.op_time_ns[(int64_t)i * all + k] = MOIRAI_NEVER;
        for (int32_t l = 0; l < all; l++)
            if (l != k && l % K == k % K)
                part.bytes_per_second[k * all + l] = INT64_C(1) << 40;
    }
    assert_ok(moirai_problem_text(&text, &length, &part));
    assert_ok(moirai_problem_parse(&out, text, length, "more"));
    free(text);
    problem_part_clear(&part);
    return out;
}

static int64_t optimum_of(const moirai_problem *p)
{
    moirai_plan *plan = NULL;
    assert_ok(moirai_place(&plan, p, "exact", NULL));
    int64_t ns = plan->makespan_ns;
    assert_true(plan->lower_bound_ns == ns);
    moirai_plan_free(plan);
    return ns;
}

/* Devices that can run nothing change nothing; copies of all devices can only help. */
static void test_place_many_bounds_hold_for_all_devices(void **state)
{
    (void)state;
    moirai_place_options o = quick();
    for (uint64_t seed = 100; seed < 100 + TEST_SHARE(4); seed++) {
        random_spec spec = random_spec_draw(seed, 6);
        spec.tight = spec.tables = spec.nulls = spec.groups = spec.shuffled = false;
        spec.congestion = seed % 2 ? MOIRAI_CONGESTION_PORT : MOIRAI_CONGESTION_CHANNEL;
        spec.n_devices = 2 + (int)(seed % 2);
        moirai_problem *small = random_problem(&spec), *idle = with_more(small, 1, 70), *more = with_more(small, 40, 0);
        int64_t optimum = optimum_of(small);
        moirai_plan *a = NULL, *b = NULL;
        assert_ok(moirai_place(&a, idle, "moirai", &o));
        assert_ok(moirai_place(&b, more, "moirai", &o));
        assert_true(a->lower_bound_ns <= optimum && optimum <= a->makespan_ns);
        assert_true(b->lower_bound_ns <= optimum && b->lower_bound_ns <= b->makespan_ns);
        moirai_plan_free(a);
        moirai_plan_free(b);
        moirai_problem_free(small);
        moirai_problem_free(idle);
        moirai_problem_free(more);
    }
}

/* 200 operators of 10 ns side by side on 100 equal devices take 20 ns, on any 64 of them 40: the bound is of all. */
static char *side_by_side_json(int32_t n_devices, int32_t n_ops, size_t *length)
{
    util_writer w;
    char a[16], b[16];
    util_writer_begin(&w, "moirai-problem");
    util_writer_pair_string(&w, "flow", "tensor");
    util_writer_pair_string(&w, "congestion", "port");
    util_writer_pair_string(&w, "memory", "static");
    util_writer_pair_open(&w, "devices", '[');
    for (int32_t k = 0; k < n_devices; k++) {
        snprintf(a, sizeof a, "d%d", k);
        util_writer_open(&w, '{');
        util_writer_pair_string(&w, "name", a);
        util_writer_pair_int(&w, "memory_bytes", 1000);
        util_writer_close(&w, '}');
    }
    util_writer_close(&w, ']');
    util_writer_pair_open(&w, "channels", '[');
    for (int32_t i = 0; i < n_devices * n_devices; i++) {
        if (i / n_devices == i % n_devices)
            continue;
        snprintf(a, sizeof a, "d%d", i / n_devices);
        snprintf(b, sizeof b, "d%d", i % n_devices);
        util_writer_open(&w, '{');
        util_writer_pair_string(&w, "from", a);
        util_writer_pair_string(&w, "to", b);
        util_writer_pair_int(&w, "bytes_per_second", 1000000000);
        util_writer_close(&w, '}');
    }
    util_writer_close(&w, ']');
    util_writer_pair_open(&w, "ops", '[');
    for (int32_t i = 0; i < n_ops; i++) {
        snprintf(a, sizeof a, "o%d", i);
        util_writer_open(&w, '{');
        util_writer_pair_string(&w, "name", a);
        util_writer_pair_string(&w, "type", "x");
        util_writer_pair_int(&w, "memory_bytes", 1);
        util_writer_pair_open(&w, "time_ns", '[');
        for (int32_t k = 0; k < n_devices; k++)
            util_writer_int(&w, 10);
        util_writer_close(&w, ']');
        util_writer_pair_open(&w, "inputs", '[');
        util_writer_close(&w, ']');
        util_writer_pair_open(&w, "outputs", '[');
        util_writer_close(&w, ']');
        util_writer_close(&w, '}');
    }
    util_writer_close(&w, ']');
    util_writer_close(&w, '}');
    return util_writer_take(&w, length);
}

static moirai_problem *side_by_side(int32_t n_devices, int32_t n_ops)
{
    moirai_problem *p = NULL;
    size_t length;
    char *text = side_by_side_json(n_devices, n_ops, &length);
    assert_non_null(text);
    assert_ok(moirai_problem_parse(&p, text, length, "side by side"));
    free(text);
    return p;
}

static void test_place_many_more_than_512_are_refused(void **state)
{
    (void)state;
    moirai_problem *p = side_by_side(512, 1);
    size_t length;
    char *text = side_by_side_json(513, 1, &length);
    moirai_problem_free(p);
    assert_int_equal(moirai_problem_parse(&p, text, length, "p"), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(), "p: 513 devices, must be 1 to 512");
    free(text);
}

static void test_place_many_all_devices_are_used(void **state)
{
    (void)state;
    moirai_problem *p = side_by_side(100, 200);
    moirai_place_options o = quick();
    engine_part part;
    moirai_plan *plan = NULL;
    assert_ok(engine_choose_part(&part, p));
    assert_int_equal(part.n, 0);
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    assert_int_equal(plan->makespan_ns, 20);
    assert_int_equal(plan->lower_bound_ns, 20);
    moirai_plan_free(plan);
    moirai_problem_free(p);
    p = side_by_side(100, 7); /* of equal devices no more than there are operators can matter */
    assert_ok(engine_choose_part(&part, p));
    assert_int_equal(part.n, 7);
    moirai_problem_free(p);
}

/* ---- certificates ---- */

static void test_place_many_certificates_hold(void **state)
{
    (void)state;
    moirai_place_options o = quick();
    char *path = temporary_path("many-certificate.json");
    o.certificate_path = path;
    for (uint64_t seed = 1; seed <= TEST_SHARE(5); seed++) {
        moirai_problem *p = random_many(seed);
        moirai_plan *plan = NULL;
        if (p->congestion == MOIRAI_CONGESTION_DEVICE) {
            moirai_problem_free(p);
            continue;
        }
        assert_ok(moirai_place(&plan, p, "moirai", &o));
        assert_true(plan->certified_bound_ns >= moirai_bound_critical_path(p));
        assert_true(plan->certified_bound_ns <= plan->makespan_ns);
        assert_false(plan->uncertified & (MOIRAI_UNCERTIFIED_REJECTED | MOIRAI_UNCERTIFIED_LIMIT));
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
    remove(path);
}

static int prove(const moirai_problem *p, const char *certificate)
{
    moirai_proof proof;
    char *text;
    size_t length;
    assert_ok(moirai_problem_text(&text, &length, p));
    moirai_prove_file problem = {.label = "problem", .text = text, .length = length},
                      file = {.label = "certificate", .text = certificate, .length = strlen(certificate)};
    int rc = moirai_prove_text(&proof, &problem, &file, NULL);
    free(text);
    return rc;
}

/* 200 operators of 10 ns on 100 devices: 20 ns are proven by equal prices, 21 are not; other forms are refused. */
static void test_place_many_claims_are_judged(void **state)
{
    (void)state;
    moirai_problem *p = side_by_side(100, 200);
    char prices[4096] = "", text[8192];
    for (int32_t k = 0; k < 300; k++)
        strcat(prices, k == 0 ? "1" : k < 100 ? ",1" : ",0");
    for (int32_t claim = 20; claim <= 21; claim++) {
        snprintf(
            text, sizeof text,
            "{\"format\":\"moirai-certificate\",\"version\":1,\"problem\":\"p\",\"operators\":200,"
            "\"lower_bound_ns\":21,\"certified_bound_ns\":%d,\"cuts\":[],\"block_class\":[0],\"classes\":[{\"pairs\":"
            "[{\"entry\":0,\"exit\":0,\"lower_ns\":0,\"loads\":{\"prices\":[%s]}}]}]}",
            claim, prices);
        assert_int_equal(prove(p, text), claim == 20 ? 0 : MOIRAI_EVERIFY);
    }
    snprintf(text, sizeof text,
             "{\"format\":\"moirai-certificate\",\"version\":1,\"problem\":\"p\",\"operators\":200,"
             "\"lower_bound_ns\":21,\"certified_bound_ns\":1,\"cuts\":[0],\"block_class\":[0,0],\"classes\":[{}]}");
    assert_int_equal(prove(p, text), MOIRAI_EVERIFY);
    assert_non_null(strstr(moirai_error_message(), "more than 64 devices"));
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_many_plans_are_valid_and_above_the_bound),
        cmocka_unit_test(test_place_many_problems_are_written_and_read),
        cmocka_unit_test(test_place_many_what_takes_few_says_so),
        cmocka_unit_test(test_place_many_bounds_hold_for_all_devices),
        cmocka_unit_test(test_place_many_all_devices_are_used),
        cmocka_unit_test(test_place_many_certificates_hold),
        cmocka_unit_test(test_place_many_claims_are_judged),
        cmocka_unit_test(test_place_many_more_than_512_are_refused),
    };
    return RUN_CASES_AGAIN(7, tests);
}
