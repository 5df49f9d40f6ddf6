/* The plain bounds: true on random problems (test_sim, test_placers), and as good as they should be on these. */
#include "support/check.h"
#include "support/random_problem.h"

#include <moirai/bound.h>
#include <moirai/placer.h>

/* Operators without edges, with the given times on two devices. */
static moirai_problem *loose_ops(const char *times)
{
    char text[8192];
    moirai_problem *p;
    size_t length = (size_t)snprintf(
        text, sizeof text,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"b\",\"flow\":\"tensor\",\"congestion\":\"port\","
        "\"memory\":\"static\",\"devices\":[{\"name\":\"A\",\"memory_bytes\":9},{\"name\":\"B\",\"memory_bytes\":9}],"
        "\"channels\":[{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1,\"latency_ns\":0},"
        "{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":1,\"latency_ns\":0}],\"ops\":[");
    int n = 0;
    for (const char *at = times; *at != '\0'; at += strcspn(at, ";"), at += *at == ';')
        length += (size_t)snprintf(
            text + length, sizeof text - length,
            "%s{\"name\":\"o%d\",\"type\":\"X\",\"memory_bytes\":0,\"time_ns\":[%.*s],\"inputs\":[],\"outputs\":[]}",
            n ? "," : "", n, (int)strcspn(at, ";"), at),
            n++;
    length += (size_t)snprintf(text + length, sizeof text - length, "]}");
    assert_ok(moirai_problem_parse(&p, text, length, "b"));
    return p;
}

static void expect(const char *times, int64_t path, int64_t least, int64_t most)
{
    moirai_problem *p = loose_ops(times);
    assert_int_equal(moirai_bound_critical_path(p), path);
    int64_t load = moirai_bound_load(p);
    if (load < least || load > most)
        fail_msg("%s: load bound %lld, not within %lld .. %lld", times, (long long)load, (long long)least,
                 (long long)most);
    moirai_problem_free(p);
}

static void test_bound_load_shares_work(void **state)
{
    (void)state;
    expect("10,10;10,10;10,10;10,10", 10, 20, 20);
    expect("10,10;10,10;10,10", 10, 15, 15); /* fractions may split an operator */
    expect("30,60;30,60;30,60", 30, 59, 60); /* 2:1 speeds: 60 on A, 30 of A's work on B */
    expect("7,null;5,null", 7, 12, 12);      /* pinned: all on one device */
}

/* Each device is ten times better at half of the operators: adding up speeds would claim too much. */
static void test_bound_load_respects_specialists(void **state)
{
    (void)state;
    expect("10,100;100,10", 10, 10, 10);
    expect("10,100;10,100;100,10;100,10", 10, 20, 20);
}

static void test_bound_of_nothing_is_zero(void **state)
{
    (void)state;
    expect("0,0;0,0", 0, 0, 0);
}

/* A chain on one device: both bounds are tight and every plan of `single` is optimal. */
static void test_bound_makes_a_chain_optimal(void **state)
{
    (void)state;
    random_spec spec = {.seed = 11, .shape = SHAPE_CHAIN, .n_ops = 30, .n_devices = 2, .scale = 1000};
    moirai_problem *p = random_problem(&spec);
    moirai_plan *plan;
    assert_non_null(p);
    for (int32_t i = 0; i < p->n_ops; i++)
        p->op_time_ns[2 * i + 1] = p->op_time_ns[2 * i] + 1;
    assert_ok(moirai_place(&plan, p, "single", NULL));
    assert_true(moirai_plan_is_optimal(plan));
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* A chain of 24 operators of 1 GB each on three devices that hold 8, 10 and 12 of them. */
static moirai_problem *full_chain(int64_t scale)
{
    static char text[16384];
    static const int room[] = {8, 10, 12};
    moirai_problem *p;
    size_t n = (size_t)snprintf(
        text, sizeof text,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"b\",\"flow\":\"tensor\",\"congestion\":"
        "\"port\",\"memory\":\"static\",\"devices\":[");
    for (int k = 0; k < 3; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s{\"name\":\"%c\",\"memory_bytes\":%d000000000}",
                              k ? "," : "", 'A' + k, room[k]);
    n += (size_t)snprintf(text + n, sizeof text - n, "],\"channels\":[");
    for (int a = 0; a < 9; a++)
        if (a / 3 != a % 3)
            n += (size_t)snprintf(
                text + n, sizeof text - n,
                "%s{\"from\":\"%c\",\"to\":\"%c\",\"bytes_per_second\":1000000000,\"latency_ns\":%lld}",
                a > 1 ? "," : "", 'A' + a / 3, 'A' + a % 3, (long long)(1000 * scale));
    n += (size_t)snprintf(text + n, sizeof text - n, "],\"ops\":[");
    for (int i = 0; i < 24; i++) {
        char in[16] = "";
        if (i)
            snprintf(in, sizeof in, "\"t%d\"", i - 1);
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            "%s{\"name\":\"o%d\",\"memory_bytes\":1000000000,\"time_ns\":[%lld,%lld,%lld],\"inputs\":[%s],"
            "\"outputs\":[{\"name\":\"t%d\",\"bytes\":1000}]}",
            i ? "," : "", i, (long long)(1000000 * scale), (long long)(2000000 * scale), (long long)(5000000 * scale),
            in, i);
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "]}");
    assert_ok(moirai_problem_parse(&p, text, n, "b"));
    return p;
}

/* Prices on bytes know no longest time: an hour is bounded as well as a millisecond. */
static void test_bound_on_bytes_is_as_good_at_any_scale(void **state)
{
    (void)state;
    const moirai_bound *b = moirai_bound_find("bytes");
    moirai_budget o;
    double first = 0;
    assert_non_null(b);
    moirai_budget_init(&o);
    o.effort = 0.1;
    for (int64_t scale = 1; scale <= 100000000; scale *= 100) {
        moirai_problem *p = full_chain(scale);
        int64_t lower = 0;
        assert_ok(b->find(&lower, p, &o));
        double share = (double)lower / (double)scale;
        first = first > 0 ? first : share;
        if (first > 40e6 && (share < 0.99 * first || share > 58e6 * 1.001))
            fail_msg("scale %lld: %.0f, at scale 1 %.0f", (long long)scale, share, first);
        moirai_problem_free(p);
    }
    if (first <= 40e6)
        skip(); /* built without HiGHS */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound_load_shares_work),
        cmocka_unit_test(test_bound_load_respects_specialists),
        cmocka_unit_test(test_bound_of_nothing_is_zero),
        cmocka_unit_test(test_bound_on_bytes_is_as_good_at_any_scale),
        cmocka_unit_test(test_bound_makes_a_chain_optimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
