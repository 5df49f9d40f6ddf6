/* What every registered placer promises, on random problems and against the exhaustive search. */
#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/verify.h"
#include "util/util.h"

#include <moirai/placer.h>

static moirai_problem *make(const random_spec *spec)
{
    moirai_problem *p = random_problem(spec);
    if (p == NULL)
        fail_msg("%s: %s", random_spec_text(spec), moirai_error_message());
    return p;
}

/* Options under which a searching placer stays quick. The effort ends it, never a clock: a plan would depend on the
 * machine. */
static moirai_place_options quick(uint64_t seed)
{
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.seed = seed;
    o.budget.threads = 1;
    o.budget.effort = 0.02;
    o.budget.time_limit_s = 0;
    return o;
}

static bool is_available(const moirai_placer *placer)
{
    const char *why;
    return placer->available == NULL || placer->available(&why);
}

/* Baselines of which a plan is promised wherever static memory allows one: all but those that stick to one device, or
 * to one contiguous piece per device. */
static bool always_finds(const moirai_placer *placer)
{
    return strcmp(placer->name, "single") != 0 && strcmp(placer->name, "chain") != 0;
}

static void assert_same_plan(const random_spec *spec, const moirai_placer *placer, const moirai_plan *a,
                             const moirai_plan *b)
{
    bool same = a->makespan_ns == b->makespan_ns && a->n_transfers == b->n_transfers &&
                memcmp(a->op_device, b->op_device, (size_t)a->n_ops * sizeof *a->op_device) == 0 &&
                memcmp(a->op_start_ns, b->op_start_ns, (size_t)a->n_ops * sizeof *a->op_start_ns) == 0;
    if (!same)
        fail_msg("%s: %s: two plans of one seed differ", placer->name, random_spec_text(spec));
}

typedef struct tally {
    int plans, missed, proven_infeasible;
} tally;

static void run_placer(const moirai_placer *placer, const random_spec *spec, const moirai_problem *p, int64_t optimum,
                       verify_batch *batch, tally *count)
{
    moirai_place_options o = quick(spec->seed);
    moirai_plan *plan, *again;
    int rc = moirai_place(&plan, p, placer->name, &o);
    if (rc == MOIRAI_EINFEASIBLE || (rc == MOIRAI_ELIMIT && optimum < 0)) {
        assert_null(plan);
        assert_true(strlen(moirai_error_message()) > strlen(placer->name) + 2);
        count->proven_infeasible += optimum == BRUTE_INFEASIBLE;
        count->missed += optimum >= 0;
        if (optimum >= 0 && p->memory == MOIRAI_MEMORY_STATIC && always_finds(placer))
            fail_msg("%s: %s: missed a plan: %s", placer->name, random_spec_text(spec), moirai_error_message());
        return;
    }
    if (rc != 0)
        fail_msg("%s: %s: %s", placer->name, random_spec_text(spec), moirai_error_message());
    if (optimum == BRUTE_INFEASIBLE)
        fail_msg("%s: %s: a plan of an infeasible problem", placer->name, random_spec_text(spec));
    if (optimum >= 0 && (plan->makespan_ns < optimum || plan->lower_bound_ns > optimum))
        fail_msg("%s: %s: makespan %lld, bound %lld, optimum %lld", placer->name, random_spec_text(spec),
                 (long long)plan->makespan_ns, (long long)plan->lower_bound_ns, (long long)optimum);
    count->plans++;
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    assert_string_equal(plan->placer, placer->name);
    assert_string_equal(plan->problem, p->name);
    assert_int_equal(plan->seed, spec->seed);
    assert_true(plan->generation_ns >= 0 && plan->lower_bound_ns >= 0);
    if (spec->seed % 4 == 0) { /* to place twice is half of the work */
        assert_ok(moirai_place(&again, p, placer->name, &o));
        assert_same_plan(spec, placer, plan, again);
        moirai_plan_free(again);
    }
    if (spec->seed % 8 == 0)
        verify_add(batch, p, plan, true);
    moirai_plan_free(plan);
}

static void test_placers_hold_on_small_problems(void **state)
{
    (void)state;
    verify_batch batch;
    tally count[64] = {0};
    verify_begin(&batch);
    for (uint64_t seed = 1; seed <= TEST_SHARE(100); seed++) {
        random_spec spec = random_spec_draw(seed, 5);
        moirai_problem *p = make(&spec);
        int64_t optimum = brute_force(p, 100000, NULL);
        for (int i = 0; i < moirai_placer_count(); i++)
            if (is_available(moirai_placer_at(i)))
                run_placer(moirai_placer_at(i), &spec, p, optimum, &batch, &count[i]);
        moirai_problem_free(p);
    }
    for (int i = 0; i < moirai_placer_count(); i++)
        print_message("%-8s %d plans, %d missed, %d rightly infeasible\n", moirai_placer_at(i)->name, count[i].plans,
                      count[i].missed, count[i].proven_infeasible);
    assert_int_equal(verify_run(&batch), 0);
}

static void test_placers_hold_on_larger_problems(void **state)
{
    (void)state;
    verify_batch batch;
    tally count = {0};
    verify_begin(&batch);
    for (uint64_t seed = 5000; seed < 5000 + TEST_SHARE(28); seed++) {
        random_spec spec = random_spec_draw(seed, 80);
        moirai_problem *p = make(&spec);
        for (int i = 0; i < moirai_placer_count(); i++) {
            const moirai_placer *placer = moirai_placer_at(i);
            bool searches = placer->letters != NULL;
            if (is_available(placer) && (!searches || seed < 5000 + TEST_SHARE(2)))
                run_placer(placer, &spec, p, BRUTE_GAVE_UP, &batch, &count);
        }
        moirai_problem_free(p);
    }
    assert_true(count.plans > 4 * TEST_SHARE(28));
    assert_int_equal(verify_run(&batch), 0);
}

static void test_placers_are_found_by_name(void **state)
{
    (void)state;
    assert_true(moirai_placer_count() >= 5);
    for (int i = 0; i < moirai_placer_count(); i++) {
        const moirai_placer *placer = moirai_placer_at(i);
        assert_ptr_equal(moirai_placer_find(placer->name), placer);
        assert_true(strlen(placer->summary) > 0);
        for (int j = 0; j < placer->n_params; j++) {
            const moirai_param *q = &placer->params[j];
            assert_true(strlen(q->name) > 0 && strlen(q->help) > 0);
            if (q->kind == MOIRAI_PARAM_CHOICE)
                assert_non_null(q->choices);
            else
                assert_true(q->least <= q->value && q->value <= q->most);
        }
    }
    assert_null(moirai_placer_find("nobody"));
    assert_null(moirai_placer_at(-1));
    assert_null(moirai_placer_at(moirai_placer_count()));
}

static void expect_usage(const moirai_problem *p, const char *placer, const moirai_place_options *o, const char *part)
{
    moirai_plan *plan;
    assert_int_equal(moirai_place(&plan, p, placer, o), MOIRAI_EUSAGE);
    assert_null(plan);
    if (strstr(moirai_error_message(), part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", moirai_error_message(), part);
}

static void test_placers_refuse_bad_options(void **state)
{
    (void)state;
    random_spec spec = {.seed = 3, .shape = SHAPE_LAYERED, .n_ops = 6, .n_devices = 2, .scale = 1};
    moirai_problem *p = make(&spec);
    moirai_place_options o = quick(1);
    moirai_setting unknown = {"colour", "red"};
    expect_usage(p, "nobody", &o, "no placer 'nobody'; there are single, heft");
    o.certificate_path = "certificate.json";
    expect_usage(p, "heft", &o, "placer 'heft' writes no certificate");
    o.certificate_path = NULL;
    o.setting = &unknown;
    o.n_settings = 1;
    expect_usage(p, "heft", &o, "no setting 'colour'");
    o.n_settings = 0;
    o.budget.time_limit_s = -1;
    expect_usage(p, "heft", &o, "negative");
    moirai_problem_free(p);
}

static void test_single_says_why_no_device_will_do(void **state)
{
    (void)state;
    static const char text[] =
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"split\",\"flow\":\"tensor\",\"congestion\":\"port\","
        "\"memory\":\"static\",\"devices\":[{\"name\":\"A\",\"memory_bytes\":10},{\"name\":\"B\",\"memory_bytes\":25}],"
        "\"channels\":[{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000,\"latency_ns\":0},"
        "{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":1000,\"latency_ns\":0}],\"ops\":["
        "{\"name\":\"a\",\"type\":\"X\",\"memory_bytes\":9,\"time_ns\":[1,2],\"inputs\":[],\"outputs\":[{\"name\":"
        "\"t\",\"bytes\":1}]},"
        "{\"name\":\"b\",\"type\":\"X\",\"memory_bytes\":8,\"time_ns\":[3,null],\"inputs\":[\"t\"],\"outputs\":[]}]}";
    moirai_problem *p;
    moirai_plan *plan;
    assert_ok(moirai_problem_parse(&p, text, sizeof text - 1, "split"));
    assert_int_equal(moirai_place(&plan, p, "single", NULL), MOIRAI_EINFEASIBLE);
    assert_non_null(strstr(moirai_error_message(), "A: 7 B short of memory"));
    assert_non_null(strstr(moirai_error_message(), "B: cannot run 'b'"));
    assert_ok(moirai_place(&plan, p, "heft", NULL));
    moirai_plan_free(plan);
    p->op_memory_bytes[0] = 26;
    assert_int_equal(moirai_place(&plan, p, "heft", NULL), MOIRAI_EINFEASIBLE);
    assert_non_null(strstr(moirai_error_message(), "1 B short"));
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placers_hold_on_small_problems),
        cmocka_unit_test(test_placers_hold_on_larger_problems),
        cmocka_unit_test(test_placers_are_found_by_name),
        cmocka_unit_test(test_placers_refuse_bad_options),
        cmocka_unit_test(test_single_says_why_no_device_will_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
