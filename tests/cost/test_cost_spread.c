/* How sure times are: what was measured is, what was predicted has its class's error, and times as they might be come
 * from the seed alone. */
#include "support/check.h"

#include <math.h>
#include <moirai/cost.h>
#include <moirai/zoo.h>
#include "cost/spread.h"

/* Additions on two V100s and a T4; the first one was measured on the V100. */
#define N_OPS 40
static moirai_graph *additions(void)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    assert_ok(moirai_graph_builder_new(&b, "additions"));
    for (int i = 0; i < N_OPS; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%d", i);
        assert_int_equal(moirai_graph_builder_op(b, name, "Add"), i);
        assert_ok(moirai_graph_builder_output(b, i, name, 1 << 24));
    }
    assert_ok(moirai_graph_builder_time(b, 0, "v100", 12345));
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

static void test_cost_spread_measured_times_are_sure(void **state)
{
    (void)state;
    moirai_graph *g = additions();
    moirai_cluster *c;
    double spread[3 * N_OPS];
    int64_t time_ns[3 * N_OPS], once[3 * N_OPS], again[3 * N_OPS], other[3 * N_OPS];
    assert_ok(moirai_cluster_synthetic(&c, "2x v100, 1x l4, 100Gbps"));
    assert_ok(moirai_cost_times(time_ns, g, c, "fitted", NULL));
    assert_ok(moirai_cost_spread(spread, g, c));
    assert_true(spread[0] == 1 && spread[1] == 1 && spread[2] > 1.05);
    assert_true(spread[3] > 1.02 && spread[5] >= spread[3]); /* times of a V100 were seen, of an L4 none */
    memcpy(once, time_ns, sizeof once);
    memcpy(again, time_ns, sizeof again);
    memcpy(other, time_ns, sizeof other);
    assert_ok(moirai_cost_perturb(once, g, c, 1));
    assert_ok(moirai_cost_perturb(again, g, c, 1));
    assert_ok(moirai_cost_perturb(other, g, c, 2));
    assert_memory_equal(once, again, sizeof once);
    assert_memory_not_equal(once, other, sizeof once);
    assert_int_equal(once[0], time_ns[0]);
    for (int i = 0; i < N_OPS; i++)
        assert_int_equal(once[3 * i], once[3 * i + 1]); /* two of one type are wrong alike */
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

/* Two processors of one type are wrong alike as far as they have as many threads: how an operator fares with eight says
 * little of how it fares with two. */
static void test_cost_spread_threads_are_wrong_apart(void **state)
{
    (void)state;
    static const char json[] =
        "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": ["
        "{\"name\": \"a\", \"type\": \"cpu\", \"memory\": \"1GB\", \"threads\": 2},"
        "{\"name\": \"b\", \"type\": \"cpu\", \"memory\": \"1GB\", \"threads\": 2},"
        "{\"name\": \"c\", \"type\": \"cpu\", \"memory\": \"1GB\", \"threads\": 8}], \"links\": ["
        "{\"from\": \"a\", \"to\": \"b\", \"bandwidth\": \"1Gbps\", \"both\": true},"
        "{\"from\": \"b\", \"to\": \"c\", \"bandwidth\": \"1Gbps\", \"both\": true}]}";
    moirai_graph *g = additions();
    moirai_cluster *c;
    int64_t time_ns[3 * N_OPS], sure_ns[3 * N_OPS];
    int apart = 0;
    assert_ok(moirai_cluster_parse(&c, json, strlen(json), "c.json"));
    assert_ok(moirai_cost_times(time_ns, g, c, "fitted", NULL));
    memcpy(sure_ns, time_ns, sizeof sure_ns);
    assert_ok(moirai_cost_perturb(time_ns, g, c, 1));
    for (int i = 0; i < N_OPS; i++) {
        double two = (double)time_ns[3 * i] / (double)sure_ns[3 * i];
        double eight = (double)time_ns[3 * i + 2] / (double)sure_ns[3 * i + 2];
        assert_int_equal(time_ns[3 * i], time_ns[3 * i + 1]);
        apart += fabs(two - eight) > 0.01;
    }
    assert_true(apart > N_OPS / 2);
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

/* Over many seeds, 80 % of a pair's times lie in its interval. */
static void test_cost_spread_intervals_hold_what_they_say(void **state)
{
    (void)state;
    moirai_graph *g = additions();
    moirai_cluster *c;
    double spread[3 * N_OPS];
    int in = 0, n = 0;
    assert_ok(moirai_cluster_synthetic(&c, "2x v100, 1x l4, 100Gbps"));
    assert_ok(moirai_cost_spread(spread, g, c));
    for (uint64_t seed = 0; seed < 1000; seed++) {
        int64_t time_ns[3 * N_OPS];
        for (int i = 0; i < 3 * N_OPS; i++)
            time_ns[i] = 1000000;
        assert_ok(moirai_cost_perturb(time_ns, g, c, seed));
        double ratio = (double)time_ns[3 * 7 + 2] / 1e6;
        in += ratio <= spread[3 * 7 + 2] && ratio >= 1 / spread[3 * 7 + 2];
        n++;
    }
    assert_in_range(in, n * 76 / 100, n * 84 / 100);
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

static void test_cost_spread_has_a_figure_for_every_class(void **state)
{
    (void)state;
    for (int k = 0; k < COST_CLASS_COUNT; k++)
        for (int seen = 0; seen < 2; seen++) {
            cost_spread s = cost_spread_of((cost_class)k, seen);
            assert_true(s.bias > 0 && s.bias < 1 && s.noise > 0 && s.noise < 1);
        }
    assert_true(cost_spread_seen("v100") && !cost_spread_seen("h100"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_spread_measured_times_are_sure),
        cmocka_unit_test(test_cost_spread_threads_are_wrong_apart),
        cmocka_unit_test(test_cost_spread_intervals_hold_what_they_say),
        cmocka_unit_test(test_cost_spread_has_a_figure_for_every_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
