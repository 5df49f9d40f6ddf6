/* Plain DAGs: order and cycles, against brute force. */
#include "support/check.h"

#include "graph/dag.h"
#include "util/util.h"

enum { MOST = 80 };

typedef struct sample {
    int32_t n;
    size_t n_edges;
    int32_t from[MOST * MOST], to[MOST * MOST];
    bool edge[MOST][MOST], path[MOST][MOST];
} sample;

/* Edges go along a random order, so numbers say nothing about the order. */
static void draw(sample *s, util_rng *r)
{
    int32_t order[MOST];
    memset(s, 0, sizeof *s);
    s->n = 1 + (int32_t)util_rng_below(r, MOST);
    for (int32_t i = 0; i < s->n; i++) {
        int32_t j = (int32_t)util_rng_below(r, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    size_t wanted = util_rng_below(r, (uint32_t)(3 * s->n));
    for (size_t e = 0; s->n > 1 && e < wanted; e++) {
        int32_t b = 1 + (int32_t)util_rng_below(r, (uint32_t)s->n - 1), a = (int32_t)util_rng_below(r, (uint32_t)b);
        s->from[s->n_edges] = order[a];
        s->to[s->n_edges++] = order[b];
        s->edge[order[a]][order[b]] = s->path[order[a]][order[b]] = true;
    }
    for (int32_t m = 0; m < s->n; m++)
        for (int32_t a = 0; a < s->n; a++)
            for (int32_t b = 0; b < s->n; b++)
                s->path[a][b] |= s->path[a][m] && s->path[m][b];
}

static void test_dag_order_respects_edges(void **state)
{
    (void)state;
    static sample s;
    util_rng r;
    util_rng_seed(&r, 5);
    for (int round = 0; round < 60; round++) {
        graph_dag d;
        draw(&s, &r);
        assert_ok(graph_dag_init(&d, s.n, s.from, s.to, s.n_edges));
        for (int32_t a = 0; a < s.n; a++) {
            assert_int_equal(d.topo[d.topo_rank[a]], a);
            for (int32_t b = 0; b < s.n; b++)
                assert_true(!s.path[a][b] || d.topo_rank[a] < d.topo_rank[b]);
        }
        graph_dag_free(&d);
    }
}

static void test_dag_order_takes_the_least_ready_first(void **state)
{
    (void)state;
    static sample s;
    util_rng r;
    util_rng_seed(&r, 6);
    for (int round = 0; round < 60; round++) {
        graph_dag d;
        bool done[MOST] = {false};
        draw(&s, &r);
        assert_ok(graph_dag_init(&d, s.n, s.from, s.to, s.n_edges));
        for (int32_t i = 0; i < s.n; i++) {
            int32_t least = -1;
            for (int32_t v = 0; v < s.n && least < 0; v++) {
                bool ready = !done[v];
                for (int32_t u = 0; u < s.n; u++)
                    ready &= !s.edge[u][v] || done[u];
                least = ready ? v : -1;
            }
            assert_int_equal(d.topo[i], least);
            done[least] = true;
        }
        graph_dag_free(&d);
    }
}

static void test_dag_cycle_is_a_cycle(void **state)
{
    (void)state;
    static sample s;
    util_rng r;
    util_rng_seed(&r, 8);
    int found = 0;
    for (int round = 0; round < 100; round++) {
        graph_dag d;
        int32_t cycle[MOST];
        draw(&s, &r);
        if (s.n_edges == 0)
            continue;
        /* Close a path that exists. */
        int32_t a = s.from[0], b = s.to[s.n_edges - 1];
        if (!s.path[a][b] && a != b)
            continue;
        s.from[s.n_edges] = b;
        s.to[s.n_edges++] = a;
        s.edge[b][a] = true;
        assert_int_equal(graph_dag_init(&d, s.n, s.from, s.to, s.n_edges), MOIRAI_EINPUT);
        int32_t n = graph_dag_cycle(&d, cycle);
        assert_true(n >= 1);
        for (int32_t i = 0; i < n; i++) {
            assert_true(s.edge[cycle[i]][cycle[(i + 1) % n]]);
            assert_true(cycle[0] <= cycle[i]);
        }
        graph_dag_free(&d);
        found++;
    }
    assert_true(found > 20);
}

static void test_dag_merges_repeated_edges(void **state)
{
    (void)state;
    /* 0 -> 1 -> 3, 0 -> 2 -> 3, 4 alone; the edge 0 -> 1 is given twice. */
    const int32_t from[] = {2, 0, 0, 1, 0}, to[] = {3, 1, 2, 3, 1}, before[] = {1, 2};
    graph_dag d;
    assert_ok(graph_dag_init(&d, 5, from, to, 5));
    assert_int_equal(d.succ_off[5], 4);
    assert_int_equal(d.pred_off[4] - d.pred_off[3], 2);
    assert_memory_equal(d.pred + d.pred_off[3], before, sizeof before);
    graph_dag_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dag_order_respects_edges),
        cmocka_unit_test(test_dag_order_takes_the_least_ready_first),
        cmocka_unit_test(test_dag_cycle_is_a_cycle),
        cmocka_unit_test(test_dag_merges_repeated_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
