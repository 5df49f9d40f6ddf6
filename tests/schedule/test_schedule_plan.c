/* Plans: files, and a checker that misses nothing. Valid plans are spoilt in many ways; each must be rejected, with the
 * right words, and the independent checker must agree where it is there. */
#include "schedule/plan.h"
#include "schedule/plan_order.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/shapes.h"
#include "support/verify.h"
#include "util/util.h"

#include <moirai/placer.h>
#include <unistd.h>

static moirai_problem *make(const random_spec *spec)
{
    moirai_problem *p = random_problem(spec);
    if (p == NULL)
        fail_msg("%s: %s", random_spec_text(spec), moirai_error_message());
    return p;
}

static moirai_plan *make_plan(const moirai_problem *p, uint64_t seed)
{
    moirai_place_options o;
    moirai_plan *plan;
    moirai_place_options_init(&o);
    o.budget.seed = seed;
    return moirai_place(&plan, p, "random", &o) == 0 ? plan : NULL;
}

static void assert_plans_equal(const moirai_plan *a, const moirai_plan *b)
{
    assert_string_equal(a->problem, b->problem);
    assert_string_equal(a->placer, b->placer);
    assert_true(a->seed == b->seed && a->makespan_ns == b->makespan_ns && a->lower_bound_ns == b->lower_bound_ns);
    assert_true(a->generation_ns == b->generation_ns && a->n_ops == b->n_ops && a->n_transfers == b->n_transfers);
    for (int32_t i = 0; i < a->n_ops; i++)
        assert_true(a->op_device[i] == b->op_device[i] && a->op_start_ns[i] == b->op_start_ns[i] &&
                    a->op_finish_ns[i] == b->op_finish_ns[i]);
    for (int32_t j = 0; j < a->n_transfers; j++) {
        const moirai_transfer *x = &a->transfer[j], *y = &b->transfer[j];
        assert_true(x->tensor == y->tensor && x->reader == y->reader && x->from == y->from && x->to == y->to &&
                    x->start_ns == y->start_ns && x->finish_ns == y->finish_ns);
    }
    for (int32_t k = 0; k < a->n_devices; k++)
        assert_true(a->device_busy_ns[k] == b->device_busy_ns[k] &&
                    a->device_peak_bytes[k] == b->device_peak_bytes[k] &&
                    a->device_memory_bytes[k] == b->device_memory_bytes[k]);
}

static void assert_same_text(const char *a, const char *b)
{
    assert_true(!a == !b);
    if (a)
        assert_string_equal(a, b);
}

/* Names and gains are in a file, times are not. */
static void assert_origins_equal(const moirai_plan_origin *a, const moirai_plan_origin *b, bool times)
{
    assert_same_text(a->plan_by, b->plan_by);
    assert_same_text(a->bound_by, b->bound_by);
    assert_true(a->starts_ns == b->starts_ns && a->rival_ns == b->rival_ns);
    assert_true(a->tries == b->tries && a->stale == b->stale);
    assert_int_equal(a->n_steps, b->n_steps);
    for (int32_t i = 0; i < a->n_steps; i++) {
        assert_string_equal(a->step[i].name, b->step[i].name);
        assert_true(a->step[i].calls == b->step[i].calls && a->step[i].plan_gain_ns == b->step[i].plan_gain_ns &&
                    a->step[i].bound_gain_ns == b->step[i].bound_gain_ns);
        assert_true(times ? a->step[i].cpu_ns == b->step[i].cpu_ns : b->step[i].cpu_ns == MOIRAI_UNKNOWN);
    }
}

static void test_plan_keeps_its_origin(void **state)
{
    (void)state;
    random_spec spec = random_spec_draw(3, 12), other_spec = random_spec_draw(3, 12);
    spec.tight = other_spec.tight = false;
    moirai_problem *p = make(&spec), *other = make(&other_spec);
    moirai_plan *plan = make_plan(p, 1), *read, *copy;
    const char *path = temporary_path("plan.json");
    assert_non_null(plan);
    assert_null(plan->origin.plan_by); /* a placer without steps */
    assert_true(!strcmp(plan->origin.bound_by, "load") || !strcmp(plan->origin.bound_by, "critical-path"));
    assert_ok(schedule_origin_plan_by(&plan->origin, "whole"));
    assert_ok(schedule_origin_bound_by(&plan->origin, "intervals"));
    plan->origin.starts_ns = 9, plan->origin.rival_ns = 8, plan->origin.tries = 7, plan->origin.stale = 6;
    moirai_search_step step[] = {{.calls = 1, .cpu_ns = 5, .plan_gain_ns = 7},
                                 {.calls = 3, .cpu_ns = 6, .bound_gain_ns = INT64_MAX}};
    assert_ok(schedule_origin_add_step(&plan->origin, "whole", &step[0]));
    assert_ok(schedule_origin_add_step(&plan->origin, "intervals", &step[1]));
    assert_ok(moirai_plan_copy(&copy, plan));
    assert_origins_equal(&plan->origin, &copy->origin, true);
    moirai_plan_free(copy);
    assert_ok(moirai_plan_write(plan, p, path));
    assert_ok(moirai_plan_read(&read, p, path));
    assert_origins_equal(&plan->origin, &read->origin, false);
    moirai_plan_free(read);
    other->device_memory_bytes[0]++; /* what was proven of another problem is nobody's here */
    assert_ok(moirai_plan_read(&read, other, path));
    assert_true(!read->origin.bound_by && !read->origin.n_steps && !read->origin.tries);
    moirai_plan_free(read);
    unlink(path);
    moirai_plan_free(plan);
    moirai_problem_free(p);
    moirai_problem_free(other);
}

/* A plan of 1,000 with a bound of 800: what a search has seen says which of them to doubt. */
static void test_plan_tells_the_weak_side(void **state)
{
    (void)state;
    const struct {
        int64_t lower_ns, rival_ns;
        int32_t tries, stale;
        const char *side, *words;
    } row[] = {
        {800, 1004, 50, 9, "bound", "likely the bound: the second of several annealing runs ended 0.4 % above it"},
        {800, 1110, 50, 9, "plan", "likely the plan"},
        {800, 1150, 50, 9, "open", "not known"}, /* no better than a list scheduler */
        {800, 1110, 50, 0, "plan", "the last 0 of 50 plans were no shorter"},
        {800, 1070, 50, 9, "open", "not known"},
        {800, 1004, 50, 0, "open", "not known"}, /* it was still getting shorter */
        {800, 0, 50, 9, "open", "no annealing was long enough to tell"},
        {800, 1004, 0, 0, NULL, ""},  /* nobody has searched */
        {950, 1004, 50, 9, NULL, ""}, /* the gap is small */
        {MOIRAI_UNKNOWN, 1004, 50, 9, NULL, ""},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        moirai_plan plan = {.makespan_ns = 1000, .lower_bound_ns = row[i].lower_ns};
        plan.origin = (moirai_plan_origin){
            .starts_ns = 1123, .rival_ns = row[i].rival_ns, .tries = row[i].tries, .stale = row[i].stale};
        char text[256] = "?", two[2];
        assert_same_text(moirai_plan_weak_side(&plan), row[i].side);
        moirai_plan_weak_text(&plan, text, sizeof text);
        assert_true(row[i].side ? strstr(text, row[i].words) != NULL : !*text);
        assert_true(!row[i].side || strstr(text, "the best list scheduler's plan is 12.3 % longer"));
        moirai_plan_weak_text(&plan, two, sizeof two);
        assert_true(strlen(two) < sizeof two);
    }
}

static void test_plan_survives_file_and_copy(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(30); seed++) {
        random_spec spec = random_spec_draw(seed, 25);
        spec.tight = false;
        moirai_problem *p = make(&spec);
        moirai_plan *plan = make_plan(p, seed == 7 ? UINT64_MAX : seed), *read, *copy;
        const char *path = temporary_path("plan.json");
        assert_non_null(plan);
        if (seed % 5 == 0)
            plan->lower_bound_ns = MOIRAI_UNKNOWN;
        assert_ok(moirai_plan_write(plan, p, path));
        assert_ok(moirai_plan_read(&read, p, path));
        assert_plans_equal(plan, read);
        assert_ok(moirai_plan_copy(&copy, read));
        assert_plans_equal(plan, copy);
        unlink(path);
        moirai_plan_free(plan);
        moirai_plan_free(read);
        moirai_plan_free(copy);
        moirai_problem_free(p);
    }
}

/* After an interrupt nobody waits for a figure that no rule needs; where it does, it is there. */
static void test_plan_tightened_in_a_hurry_leaves_peaks_unknown(void **state)
{
    (void)state;
    moirai_interrupt hurry = {0};
    moirai_interrupt_raise(&hurry);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        random_spec spec = random_spec_draw(seed, 25);
        spec.tight = false;
        spec.memory = seed % 2 ? MOIRAI_MEMORY_STATIC : MOIRAI_MEMORY_PEAK;
        moirai_problem *p = make(&spec);
        moirai_plan *plan = make_plan(p, seed), *hurried, *calm;
        assert_non_null(plan);
        assert_ok(schedule_plan_tighten(&hurried, p, plan, &hurry));
        assert_ok(moirai_plan_tighten(&calm, p, plan));
        assert_ok(moirai_plan_check(p, hurried, NULL, NULL));
        for (int32_t k = 0; k < p->n_devices; k++) {
            assert_true(calm->device_peak_bytes[k] != MOIRAI_UNKNOWN);
            assert_true((hurried->device_peak_bytes[k] == MOIRAI_UNKNOWN) == (seed % 2 == 1));
            hurried->device_peak_bytes[k] = calm->device_peak_bytes[k];
        }
        assert_plans_equal(hurried, calm);
        calm->device_peak_bytes[0]++; /* what is said is looked at */
        assert_int_equal(moirai_plan_check(p, calm, NULL, NULL), MOIRAI_EFAIL);
        moirai_plan_free(plan);
        moirai_plan_free(hurried);
        moirai_plan_free(calm);
        moirai_problem_free(p);
    }
}

static void test_plan_gap(void **state)
{
    (void)state;
    moirai_plan plan = {.makespan_ns = 200, .lower_bound_ns = 150};
    assert_true(moirai_plan_gap(&plan) == 0.25 && !moirai_plan_is_optimal(&plan));
    plan.lower_bound_ns = 200;
    assert_true(moirai_plan_gap(&plan) == 0 && moirai_plan_is_optimal(&plan));
    plan.lower_bound_ns = MOIRAI_UNKNOWN;
    assert_true(moirai_plan_gap(&plan) == -1 && !moirai_plan_is_optimal(&plan));
    plan.makespan_ns = plan.lower_bound_ns = 0;
    assert_true(moirai_plan_gap(&plan) == 0);
    moirai_plan_free(NULL);
}

/* ---- spoiling ---- */

typedef enum spoil {
    NO_DEVICE,
    OTHER_DEVICE,
    LONGER,
    SHORTER,
    EARLIER,
    BEFORE_ZERO,
    LATER,
    OVERLAP,
    DROP_TRANSFER,
    DOUBLE_TRANSFER,
    MISDIRECT,
    TRANSFER_EARLIER,
    TRANSFER_LONGER,
    TRANSFER_HOME,
    MAKESPAN,
    BOUND,
    LESS_MEMORY,
    N_SPOILS
} spoil;

static void shift_op(moirai_plan *x, int32_t op, int64_t by_ns)
{
    x->op_start_ns[op] += by_ns;
    x->op_finish_ns[op] += by_ns;
}

static bool is_read(const moirai_problem *p, int32_t op)
{
    for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++)
        if (p->tensor_edge_off[p->op_out[j]] < p->tensor_edge_off[p->op_out[j] + 1])
            return true;
    return false;
}

/* Another operator of the same device at the same time. */
static bool overlap(const moirai_problem *p, moirai_plan *x, int32_t i)
{
    for (int32_t o = 0; o < p->n_ops; o++) {
        if (o == i || x->op_device[o] != x->op_device[i] || x->op_finish_ns[o] == x->op_start_ns[o] ||
            x->op_finish_ns[i] == x->op_start_ns[i])
            continue;
        shift_op(x, o, x->op_start_ns[i] - x->op_start_ns[o]);
        return true;
    }
    return false;
}

static bool spoil_op(const moirai_problem *p, moirai_plan *x, spoil how, int32_t i)
{
    int32_t K = p->n_devices, d = x->op_device[i];
    switch (how) {
    case NO_DEVICE: x->op_device[i] = MOIRAI_NONE; return true;
    case OTHER_DEVICE:
        x->op_device[i] = (d + 1) % K;
        return moirai_op_ns(p, i, (d + 1) % K) != x->op_finish_ns[i] - x->op_start_ns[i];
    case LONGER: x->op_finish_ns[i]++; return true;
    case SHORTER: x->op_finish_ns[i]--; return true;
    case EARLIER: /* before an input is there */
        if (p->op_in_off[i] == p->op_in_off[i + 1] || x->op_start_ns[i] == 0)
            return false;
        shift_op(x, i, x->op_finish_ns[p->tensor_producer[p->op_in[p->op_in_off[i]]]] - x->op_start_ns[i] - 1);
        return true;
    case BEFORE_ZERO: shift_op(x, i, -x->op_start_ns[i] - 1); return true;
    case LATER: /* past all its readers */ shift_op(x, i, x->makespan_ns + 1); return is_read(p, i);
    default: return overlap(p, x, i);
    }
}

static bool spoil_transfer(const moirai_problem *p, moirai_plan *x, spoil how, int32_t j)
{
    moirai_transfer *t = &x->transfer[j];
    int64_t by;
    switch (how) {
    case DROP_TRANSFER: x->transfer[j] = x->transfer[--x->n_transfers]; return true;
    case DOUBLE_TRANSFER:
        if (x->n_transfers < 2)
            return false;
        x->transfer[j] = x->transfer[(j + 1) % x->n_transfers];
        return true;
    case MISDIRECT: t->from = (t->from + 1) % p->n_devices; return true;
    case TRANSFER_EARLIER:
        by = t->start_ns - x->op_finish_ns[p->tensor_producer[t->tensor]] + 1;
        t->start_ns -= by, t->finish_ns -= by;
        return true;
    case TRANSFER_LONGER: t->finish_ns++; return true;
    default: t->to = t->from; return true;
    }
}

/* False: this plan offers no way to spoil it so. */
static bool spoil_plan(moirai_problem *p, moirai_plan *x, spoil how, util_rng *rng)
{
    int32_t i = (int32_t)util_rng_below(rng, (uint32_t)p->n_ops), d = x->op_device[i];
    if (how <= OVERLAP)
        return spoil_op(p, x, how, i);
    if (how <= TRANSFER_HOME)
        return x->n_transfers > 0 && spoil_transfer(p, x, how, (int32_t)util_rng_below(rng, (uint32_t)x->n_transfers));
    if (how == MAKESPAN)
        x->makespan_ns++;
    if (how == BOUND)
        x->lower_bound_ns = x->makespan_ns + 1;
    if (how == LESS_MEMORY) {
        int64_t need = p->memory == MOIRAI_MEMORY_PEAK ? x->device_peak_bytes[d] : x->device_memory_bytes[d];
        p->device_memory_bytes[d] = need - 1;
        return need > 0;
    }
    return true;
}

static void count_line(void *data, const char *line)
{
    assert_true(strlen(line) > 5);
    ++*(int *)data;
}

static void test_plan_check_rejects_spoilt_plans(void **state)
{
    (void)state;
    int tried[N_SPOILS] = {0};
    verify_batch batch;
    verify_begin(&batch);
    for (uint64_t seed = 1; seed <= TEST_SHARE(60); seed++) {
        random_spec spec = random_spec_draw(seed, 20);
        spec.tight = false;
        for (int how = 0; how < N_SPOILS; how++) {
            moirai_problem *p = make(&spec);
            moirai_plan *plan = make_plan(p, seed);
            util_rng rng;
            util_rng_seed(&rng, seed * 100 + (uint64_t)how);
            assert_non_null(plan);
            int lines = 0;
            if (spoil_plan(p, plan, (spoil)how, &rng)) {
                tried[how]++;
                if (moirai_plan_check(p, plan, count_line, &lines) == 0)
                    fail_msg("%s: spoilt by %d and accepted", random_spec_text(&spec), how);
                assert_true(lines > 0);
                if (seed % 3 == 0)
                    verify_add(&batch, p, plan, false);
            }
            moirai_plan_free(plan);
            moirai_problem_free(p);
        }
    }
    for (int how = 0; how < N_SPOILS; how++)
        assert_true(tried[how] >= TEST_SHARE(15));
    assert_int_equal(verify_run(&batch), 0);
}

/* Two transfers on one port, or on one channel, at one time; and the same that is fine where nothing limits. */
static void test_plan_check_sees_congestion(void **state)
{
    (void)state;
    static const char form[] =
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"c\",\"flow\":\"edge\",\"congestion\":\"%s\","
        "\"memory\":\"static\",\"devices\":[{\"name\":\"A\",\"memory_bytes\":9},{\"name\":\"B\",\"memory_bytes\":9},"
        "{\"name\":\"C\",\"memory_bytes\":9}],\"channels\":["
        "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000,\"latency_ns\":0},"
        "{\"from\":\"A\",\"to\":\"C\",\"bytes_per_second\":1000000000,\"latency_ns\":0},"
        "{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":1000000000,\"latency_ns\":0},"
        "{\"from\":\"B\",\"to\":\"C\",\"bytes_per_second\":1000000000,\"latency_ns\":0},"
        "{\"from\":\"C\",\"to\":\"A\",\"bytes_per_second\":1000000000,\"latency_ns\":0},"
        "{\"from\":\"C\",\"to\":\"B\",\"bytes_per_second\":1000000000,\"latency_ns\":0}],\"ops\":["
        "{\"name\":\"a\",\"type\":\"X\",\"memory_bytes\":1,\"time_ns\":[5,null,null],\"inputs\":[],\"outputs\":[{"
        "\"name\":\"t\",\"bytes\":4}]},"
        "{\"name\":\"b\",\"type\":\"X\",\"memory_bytes\":1,\"time_ns\":[null,5,null],\"inputs\":[\"t\"],\"outputs\":[]}"
        ","
        "{\"name\":\"c\",\"type\":\"X\",\"memory_bytes\":1,\"time_ns\":[null,null,5],\"inputs\":[\"t\"],\"outputs\":[]}"
        "]}";
    static const char *const mode[] = {"port", "channel", "none"};
    for (int m = 0; m < 3; m++) {
        char text[4096];
        moirai_problem *p;
        moirai_plan *plan;
        int length = snprintf(text, sizeof text, form, mode[m]);
        assert_ok(moirai_problem_parse(&p, text, (size_t)length, "c"));
        assert_ok(moirai_place(&plan, p, "heft", NULL));
        assert_int_equal(plan->makespan_ns, m == 0 ? 18 : 14);
        for (int32_t j = 0; j < plan->n_transfers; j++) {
            plan->transfer[j].start_ns = 5;
            plan->transfer[j].finish_ns = 9;
        }
        assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), m == 0 ? MOIRAI_EFAIL : 0);
        if (m == 0)
            assert_non_null(strstr(moirai_error_message(), "send port of A: transfers of t and t overlap"));
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
}

/* A transfer beside an operator on its receiver, where that is held; and an operator behind it. */
static void test_plan_check_sees_devices_that_are_held(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("congestion device\ndevice A 9\ndevice B 9\nop a 5,- > t:4\nop b -,5 t\nop c -,3 > u:0\n");
    moirai_plan *plan;
    assert_ok(moirai_place(&plan, p, "heft", NULL));
    assert_int_equal(plan->makespan_ns, 14); /* c beside a */
    plan->op_start_ns[2] = 3;
    plan->op_finish_ns[2] = 6;
    assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), MOIRAI_EFAIL);
    assert_non_null(strstr(moirai_error_message(), "device B: c and transfer of t overlap"));
    p->congestion = MOIRAI_CONGESTION_PORT;
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* ---- malformed files ---- */

static void expect_bad(const moirai_problem *p, const char *text, const char *part)
{
    moirai_plan *plan;
    assert_int_equal(moirai_plan_parse(&plan, p, text, strlen(text), "plan.json"), MOIRAI_EINPUT);
    assert_null(plan);
    if (strstr(moirai_error_message(), part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", moirai_error_message(), part);
}

#define HEAD "{\"format\":\"moirai-plan\",\"version\":1,\"makespan_ns\":5,"

static void test_plan_reader_refuses_nonsense(void **state)
{
    (void)state;
    random_spec spec = {
        .seed = 1, .shape = SHAPE_CHAIN, .n_ops = 2, .n_devices = 2, .scale = 1, .flow = MOIRAI_FLOW_EDGE};
    moirai_problem *p = make(&spec);
    expect_bad(p, "", "plan.json");
    expect_bad(p, "{\"format\":\"moirai-problem\",\"version\":1}", "moirai-plan");
    expect_bad(p, HEAD "\"transfers\":[]}", "ops");
    expect_bad(p, HEAD "\"ops\":[],\"transfers\":{}}", "transfers");
    expect_bad(p, HEAD "\"ops\":[{\"name\":\"nobody\"}],\"transfers\":[]}", "nobody");
    expect_bad(p, HEAD "\"ops\":[{\"name\":\"op0\",\"device\":\"Z\"}],\"transfers\":[]}", "'Z'");
    expect_bad(p,
               HEAD "\"ops\":[{\"name\":\"op0\",\"device\":\"d0\",\"start_ns\":1.5,\"finish_ns\":2}],\"transfers\":[]}",
               "start_ns");
    expect_bad(p,
               HEAD "\"ops\":[{\"name\":\"op0\",\"device\":\"d0\",\"start_ns\":99999999999999999999,\"finish_ns\":2}],"
                    "\"transfers\":[]}",
               "start_ns");
    expect_bad(p,
               HEAD "\"ops\":[{\"name\":\"op0\",\"device\":\"d0\",\"start_ns\":0,\"finish_ns\":2},"
                    "{\"name\":\"op0\",\"device\":\"d0\",\"start_ns\":0,\"finish_ns\":2}],\"transfers\":[]}",
               "twice");
    expect_bad(p, HEAD "\"ops\":[],\"transfers\":[{\"tensor\":\"image\"}]}", "image");
    expect_bad(p, HEAD "\"ops\":[],\"transfers\":[{\"tensor\":\"t0_0\",\"from\":\"d0\",\"to\":\"d1\"}]}", "consumer");
    expect_bad(p, HEAD "\"ops\":[7],\"transfers\":[]}", "op 0");
    expect_bad(p, "{\"format\":\"moirai-plan\",\"version\":1,\"makespan_ns\":-5,\"ops\":[],\"transfers\":[]}",
               "makespan_ns");
    moirai_plan *plan; /* extremes are read, and rejected by the check without overflow */
    static const char far[] = HEAD "\"ops\":[{\"name\":\"op0\",\"device\":\"d0\",\"start_ns\":-9223372036854775808,"
                                   "\"finish_ns\":9223372036854775807}],\"transfers\":[]}";
    assert_ok(moirai_plan_parse(&plan, p, far, sizeof far - 1, "far"));
    assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), MOIRAI_EFAIL);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void expect_fault(const moirai_problem *p, const moirai_plan *plan, const char *word)
{
    assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), MOIRAI_EFAIL);
    if (!strstr(moirai_error_message(), word))
        fail_msg("'%s' says nothing of '%s'", moirai_error_message(), word);
}

/* Processor time of checking a plan of so many operators into one, each transfer by itself. */
static double check_s(int32_t n)
{
    moirai_problem *p = NULL;
    moirai_plan *plan = NULL;
    assert_ok(shape_problem(&p, "into-one", n, 4));
    p->flow = MOIRAI_FLOW_EDGE;
    moirai_place_options o;
    moirai_place_options_init(&o);
    assert_ok(moirai_place(&plan, p, "m-topo", &o));
    assert_true(plan->n_transfers > n / 2);
    double begun = util_cpu_seconds();
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    double taken = util_cpu_seconds() - begun;
    moirai_plan_free(plan);
    moirai_problem_free(p);
    return taken;
}

/* Sixteen times as many transfers into one operator take sixteen times as long, or some more; they took 256 times as long. */
static void test_plan_check_of_a_join_is_not_quadratic(void **state)
{
    (void)state;
    double few = check_s(25000), many = check_s(400000);
    if (many > 100 * few)
        fail_msg("a check of 25,000 takes %.3f s, of 400,000 %.3f", few, many);
}

/* More transfers than stay in a cache are sorted on another way: each that is spoilt is found there, too. */
static void test_plan_check_of_many_transfers_finds_the_one(void **state)
{
    (void)state;
    moirai_problem *p;
    moirai_plan *plan;
    moirai_place_options o;
    assert_ok(shape_problem(&p, "layered", 60000, 8));
    moirai_place_options_init(&o);
    assert_ok(moirai_place(&plan, p, "random", &o));
    assert_true(plan->n_transfers > 1 << 16);
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    for (int32_t j = 7; j < plan->n_transfers; j += plan->n_transfers / 5) {
        moirai_transfer good = plan->transfer[j];
        plan->transfer[j].finish_ns++;
        expect_fault(p, plan, p->tensor_name[good.tensor]);
        plan->transfer[j] = plan->transfer[j - 1]; /* twice, and one is missing */
        expect_fault(p, plan, "listed twice");
        plan->transfer[j] = good;
        plan->transfer[j].to = good.from;
        expect_fault(p, plan, "needed and missing");
        plan->transfer[j] = good;
    }
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    for (int32_t d = 0; d < p->n_devices; d++) { /* lives of all tensors, counted there and in the simulator */
        plan->device_peak_bytes[d]--;
        expect_fault(p, plan, "peak");
        plan->device_peak_bytes[d]++;
    }
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_survives_file_and_copy),
        cmocka_unit_test(test_plan_keeps_its_origin),
        cmocka_unit_test(test_plan_tells_the_weak_side),
        cmocka_unit_test(test_plan_gap),
        cmocka_unit_test(test_plan_tightened_in_a_hurry_leaves_peaks_unknown),
        cmocka_unit_test(test_plan_check_rejects_spoilt_plans),
        cmocka_unit_test(test_plan_check_sees_congestion),
        cmocka_unit_test(test_plan_check_sees_devices_that_are_held),
        cmocka_unit_test(test_plan_reader_refuses_nonsense),
        cmocka_unit_test(test_plan_check_of_a_join_is_not_quadratic),
        cmocka_unit_test(test_plan_check_of_many_transfers_finds_the_one),
    };
    return RUN_CASES_AGAIN(9, tests);
}
