/* Links: testbeds as published, and the best path between devices that have none of their own. */
#include "support/cluster_text.h"

#include "util/util.h"

static void test_cluster_testbeds_have_the_papers_figures(void **state)
{
    (void)state;
    moirai_cluster *c;
    assert_ok(moirai_cluster_open(&c, "inter-server"));
    assert_int_equal(c->n_devices, 4);
    assert_int_equal(c->device[1].memory_bytes, 16000000000);
    assert_int_equal(c->bytes_per_second[0 * 4 + 1], 5532500000);
    assert_int_equal(c->bytes_per_second[1 * 4 + 0], 5298750000);
    assert_int_equal(c->bytes_per_second[3 * 4 + 2], 4160000000);
    assert_int_equal(c->bytes_per_second[0], 0);
    moirai_cluster_free(c);
    assert_ok(moirai_cluster_open(&c, "intra-server"));
    assert_int_equal(c->bytes_per_second[0 * 4 + 1], 146255000000);
    assert_int_equal(c->bytes_per_second[3 * 4 + 1], 71885000000);
    moirai_cluster_free(c);
}

static void test_cluster_direct_link_wins_over_wider_path(void **state)
{
    (void)state;
    moirai_cluster *c =
        parse(CLUSTER(DEVICE("A") "," DEVICE("B") "," DEVICE("C"),
                      LINK("A", "B", "100", "1") "," LINK("B", "C", "100", "1") "," LINK("A", "C", "7", "9")));
    assert_int_equal(c->bytes_per_second[0 * 3 + 2], 7);
    assert_int_equal(c->latency_ns[0 * 3 + 2], 9);
    moirai_cluster_free(c);
}

static void test_cluster_path_prefers_width_then_hops_then_latency(void **state)
{
    (void)state;
    /* A-B-E has bottleneck 5; A-C-E 8 with latency 30; A-D-E 8 with latency 20. */
    moirai_cluster *c =
        parse(CLUSTER(DEVICE("A") "," DEVICE("B") "," DEVICE("C") "," DEVICE("D") "," DEVICE("E"),
                      LINK("A", "B", "50", "0") "," LINK("B", "E", "5", "0") "," LINK("A", "C", "8", "10") "," LINK(
                          "C", "E", "9", "20") "," LINK("A", "D", "9", "10") "," LINK("D", "E", "8", "10")));
    assert_int_equal(c->bytes_per_second[0 * 5 + 4], 8);
    assert_int_equal(c->latency_ns[0 * 5 + 4], 20);
    moirai_cluster_free(c);
}

static void test_cluster_path_is_not_fooled_by_a_wide_detour(void **state)
{
    (void)state;
    /* The widest way from A to C is A-B-C; but on the way to D the bottleneck is C-D anyway, and A-X-C, as many hops,
     * has the smaller latency. */
    moirai_cluster *c =
        parse(CLUSTER(DEVICE("A") "," DEVICE("B") "," DEVICE("C") "," DEVICE("D") "," DEVICE("X"),
                      LINK("A", "B", "100", "25") "," LINK("B", "C", "100", "25") "," LINK("C", "D", "5", "0") "," LINK(
                          "A", "X", "6", "1") "," LINK("X", "C", "6", "0")));
    assert_int_equal(c->bytes_per_second[0 * 5 + 2], 100);
    assert_int_equal(c->latency_ns[0 * 5 + 2], 50);
    assert_int_equal(c->bytes_per_second[0 * 5 + 3], 5);
    assert_int_equal(c->latency_ns[0 * 5 + 3], 1);
    moirai_cluster_free(c);
}

/* All simple paths by brute force, against the closure. */
typedef struct best {
    int64_t width, latency;
    int hops;
} best;

static void walk(best *b, const moirai_cluster *c, int32_t at, int32_t goal, uint32_t seen, best path)
{
    if (at == goal) {
        bool better =
            path.width > b->width ||
            (path.width == b->width && (path.hops < b->hops || (path.hops == b->hops && path.latency < b->latency)));
        if (better)
            *b = path;
        return;
    }
    for (int32_t e = 0; e < c->n_links; e++) {
        const moirai_link *l = &c->link[e];
        if (l->from != at || (seen >> l->to & 1))
            continue;
        best next = {UTIL_MIN(path.width, l->bytes_per_second), path.latency + l->latency_ns, path.hops + 1};
        walk(b, c, l->to, goal, seen | 1u << l->to, next);
    }
}

static void test_cluster_closure_equals_brute_force(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 3);
    for (int round = 0; round < 200; round++) {
        char json[8192];
        int n = 2 + (int)util_rng_below(&r, 5), used = 0;
        used += sprintf(json, "{\"format\":\"moirai-cluster\",\"version\":1,\"devices\":[");
        for (int i = 0; i < n; i++)
            used += sprintf(json + used, "%s{\"name\":\"%d\",\"memory\":\"1GB\"}", i ? "," : "", i);
        used += sprintf(json + used, "],\"links\":[");
        for (int a = 0, count = 0; a < n; a++) {
            for (int b = 0; b < n; b++) {
                if (a != b && (b == (a + 1) % n || util_rng_below(&r, 3) == 0))
                    used += sprintf(json + used,
                                    "%s{\"from\":\"%d\",\"to\":\"%d\",\"bytes_per_second\":%u,\"latency_ns\":%u}",
                                    count++ ? "," : "", a, b, 1 + util_rng_below(&r, 4), util_rng_below(&r, 4));
            }
        }
        sprintf(json + used, "]}");
        moirai_cluster *c = parse(json);
        for (int32_t a = 0; a < n; a++) {
            for (int32_t b = 0; b < n; b++) {
                best found = {0, 0, 0}, start = {INT64_MAX, 0, 0};
                if (a == b)
                    continue;
                walk(&found, c, a, b, 1u << a, start);
                for (int32_t e = 0; e < c->n_links; e++)
                    if (c->link[e].from == a && c->link[e].to == b)
                        found = (best){c->link[e].bytes_per_second, c->link[e].latency_ns, 1};
                assert_int_equal(c->bytes_per_second[a * n + b], found.width);
                assert_int_equal(c->latency_ns[a * n + b], found.latency);
            }
        }
        moirai_cluster_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster_testbeds_have_the_papers_figures),
        cmocka_unit_test(test_cluster_direct_link_wins_over_wider_path),
        cmocka_unit_test(test_cluster_path_prefers_width_then_hops_then_latency),
        cmocka_unit_test(test_cluster_path_is_not_fooled_by_a_wide_detour),
        cmocka_unit_test(test_cluster_closure_equals_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
