/* What annealing begins with: stages by the cost of intervals against all cuts, and clusters along dear tensors. */
#include <stdio.h>
#include <string.h>

#include <moirai/moirai.h>

#include "rate/clusters.h"
#include "rate/cuts.h"
#include "rate/loads.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "util/util.h"

static int64_t largest_load(const relax_view *v, const int32_t *device)
{
    rate_balance b;
    int64_t most = 0;
    assert_ok(rate_balance_open(&b, v, device));
    for (int32_t r = 0; r < v->n_resources; r++)
        most = UTIL_MAX(most, b.load_ns[r]);
    bool over = b.n_over > 0;
    rate_balance_close(&b);
    return over ? INT64_MAX : most;
}

/* The least largest load over all orders of devices and all cuts. */
static int64_t best_cuts(const relax_view *v, int32_t *device, int32_t from, uint64_t used)
{
    int64_t best = from == v->n ? largest_load(v, device) : INT64_MAX;
    for (int32_t k = 0; k < v->K && from < v->n; k++)
        for (int32_t end = from + 1; end <= v->n && !(used >> k & 1); end++) {
            int32_t op = v->p->topo[end - 1];
            if (!(v->p->op_devices[op] >> k & 1))
                break;
            for (int32_t i = from; i < end; i++)
                device[v->p->topo[i]] = k;
            best = UTIL_MIN(best, best_cuts(v, device, end, used | UINT64_C(1) << k));
        }
    return best;
}

/* Cuts of the problem's order, against all there are; the number of problems that have any. */
static int compare_cuts(moirai_problem *p, uint64_t seed)
{
    relax_view v;
    place_units *units;
    int32_t device[16], other[16];
    bool found;
    assert_ok(relax_view_open(&v, p, 100));
    assert_ok(place_units_new(&units, p));
    rate_cuts_task task = {.v = &v, .units = units, .order = p->topo};
    assert_ok(rate_cuts(device, &found, &task));
    int64_t best = p->n_ops ? best_cuts(&v, other, 0, 0) : INT64_MAX,
            load = found ? largest_load(&v, device) : INT64_MAX;
    if (load != best && p->n_weights == 0)
        fail_msg("seed %llu: cuts of %lld, the best %lld", (unsigned long long)seed, (long long)load, (long long)best);
    place_units_free(units);
    relax_view_close(&v);
    return found;
}

static void test_rate_cuts_are_the_best_without_transfers(void **state)
{
    (void)state;
    int n = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(400); seed++) {
        random_spec spec = random_spec_draw(seed, 7);
        spec.groups = false;
        spec.congestion = MOIRAI_CONGESTION_NONE;
        moirai_problem *p = random_problem(&spec);
        n += p ? compare_cuts(p, seed) : 0;
        moirai_problem_free(p);
    }
    assert_true(n > TEST_SHARE(250));
}

/* Equal links, and every tensor leaves for one stage: what intervals cost is exact. */
static void test_rate_cuts_of_chains_are_the_best_with_transfers(void **state)
{
    (void)state;
    static const char *const modes[] = {"device", "port"};
    for (uint64_t seed = 1; seed <= TEST_SHARE(400); seed++) {
        char text[1024];
        util_rng rng;
        util_rng_seed(&rng, seed);
        int at = snprintf(text, sizeof text, "congestion %s\ndevice x 20\ndevice y 20\n%s", modes[seed % 2],
                          seed % 3 ? "" : "device z 25\n");
        for (int i = 0; i < 6; i++) {
            uint32_t ns = 1 + util_rng_below(&rng, 30), slow = seed % 5 ? ns : 2 * ns;
            at += snprintf(text + at, sizeof text - (size_t)at, "op o%d %u,%u%s mem=%u", i, ns, slow,
                           seed % 3 ? "" : ",9", util_rng_below(&rng, 7));
            if (i > 0)
                at += snprintf(text + at, sizeof text - (size_t)at, " t%d", i - 1);
            at += snprintf(text + at, sizeof text - (size_t)at, " > t%d:%u\n", i, util_rng_below(&rng, 40));
        }
        moirai_problem *p = tiny_problem(text);
        compare_cuts(p, seed);
        moirai_problem_free(p);
    }
}

/* A group is one unit, wherever its operators lie: b with the first of it, and c costs both ways. */
static void test_rate_cuts_have_groups_that_lie_apart(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion device\ndevice x 9\ndevice y 9\nop a 10,10 group=g > t:1\n"
                                     "op b 10,10 t > u:2\nop c 10,10 group=g u > w:0\n");
    relax_view v;
    place_units *units;
    int32_t device[3];
    bool found;
    assert_ok(relax_view_open(&v, p, 100));
    assert_ok(place_units_new(&units, p));
    rate_cuts_task task = {.v = &v, .units = units, .order = p->topo};
    assert_ok(rate_cuts(device, &found, &task));
    assert_true(found && device[0] == device[2] && device[1] != device[0]);
    assert_int_equal(largest_load(&v, device), 23);
    place_units_free(units);
    relax_view_close(&v);
    moirai_problem_free(p);
}

/* m comes after b's second half, and belongs to a's, with which it shares a tensor of 9: beside b, stages take 20 + 1 + 9 and 26 + 1 + 9. Behind a it crosses
 * with 3 instead, and they take 22 + 4 and 24 + 4. */
static void test_rate_cuts_seat_operators_alone_behind_groups(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion device\ndevice x 9\ndevice y 9\nop a 10,10 group=g > t:1\n"
                                     "op b 12,12 group=h t > u:1\nop bb 12,12 group=h u > w:3\n"
                                     "op m 2,2 w > s:9\nop aa 10,10 group=g s > r:0\n");
    relax_view v;
    place_units *units;
    int32_t device[5];
    bool found;
    assert_ok(relax_view_open(&v, p, 100));
    assert_ok(place_units_new(&units, p));
    rate_cuts_task task = {.v = &v, .units = units, .order = p->topo};
    assert_ok(rate_cuts(device, &found, &task));
    assert_true(found);
    assert_int_equal(largest_load(&v, device), 36);
    task.seats = true;
    assert_ok(rate_cuts(device, &found, &task));
    assert_true(found && device[0] == device[4] && device[3] == device[0] && device[1] != device[0]);
    assert_int_equal(largest_load(&v, device), 28);
    place_units_free(units);
    relax_view_close(&v);
    moirai_problem_free(p);
}

/* Each operator is in one cluster, groups undivided, all of it where it may be, and devices that fit. */
static void check_clusters(const moirai_problem *p, const relax_view *v, const place_units *c, const int32_t *device)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->n; i++)
        for (int32_t o = c->off[i]; o < c->off[i + 1]; o++, n++) {
            int32_t op = c->op[o];
            assert_int_equal(c->of_op[op], i);
            assert_int_equal(device[op], device[c->op[c->off[i]]]);
            assert_true(p->op_devices[op] >> device[op] & 1);
            assert_true((c->devices[i] & ~p->op_devices[op]) == 0);
        }
    assert_int_equal(n, p->n_ops);
    for (int32_t i = 0; i < p->n_ops; i++)
        for (int32_t j = 0; j < i; j++)
            assert_true(p->op_group[i] == MOIRAI_NONE || p->op_group[i] != p->op_group[j] ||
                        c->of_op[i] == c->of_op[j]);
    assert_true(largest_load(v, device) < INT64_MAX);
}

static void test_rate_clusters_are_units(void **state)
{
    (void)state;
    int n = 0, joined = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(400); seed++) {
        random_spec spec = random_spec_draw(seed, 12);
        moirai_problem *p = random_problem(&spec);
        relax_view v;
        place_units *units, *c;
        int32_t device[16] = {0};
        if (!p || p->n_ops == 0) {
            moirai_problem_free(p);
            continue;
        }
        assert_ok(relax_view_open(&v, p, 100));
        assert_ok(place_units_new(&units, p));
        for (int32_t i = 0; i < p->n_ops; i++)
            device[i] = __builtin_ctzll(units->devices[units->of_op[i]]);
        rate_cluster_task task = {
            .v = &v, .units = units, .wanted = 2, .most_ns = 1e18, .as_they_are = seed % 2, .seed = seed};
        assert_ok(rate_cluster(&c, device, &task));
        if (c) {
            check_clusters(p, &v, c, device);
            joined += c->n < units->n;
            n++;
        }
        place_units_free(c);
        place_units_free(units);
        relax_view_close(&v);
        moirai_problem_free(p);
    }
    assert_true(n > TEST_SHARE(200) && joined > TEST_SHARE(100));
}

/* The dear tensor joins b and c, unless they are apart and are to stay so, or together take too long. */
static void test_rate_clusters_follow_dear_tensors(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 10,10 > t:1\nop b 10,10 t > u:99\n"
                                     "op c 10,10 u > w:1\nop d 10,10 w > z:0\n");
    relax_view v;
    place_units *units, *c;
    assert_ok(relax_view_open(&v, p, 100));
    assert_ok(place_units_new(&units, p));
    for (uint64_t seed = 0; seed < 20; seed++) {
        int32_t device[] = {0, 0, 1, 1};
        rate_cluster_task task = {.v = &v, .units = units, .wanted = 3, .most_ns = 20, .seed = seed};
        assert_ok(rate_cluster(&c, device, &task));
        assert_int_equal(c->n, 3);
        assert_true(c->of_op[1] == c->of_op[2] && device[1] == 0 && device[2] == 0);
        place_units_free(c);
        device[2] = 1;
        task.as_they_are = true;
        assert_ok(rate_cluster(&c, device, &task));
        assert_true(c->of_op[1] != c->of_op[2] && device[2] == 1);
        place_units_free(c);
        task.as_they_are = false;
        task.most_ns = 19;
        assert_ok(rate_cluster(&c, device, &task));
        assert_int_equal(c->n, 4);
        place_units_free(c);
    }
    place_units_free(units);
    relax_view_close(&v);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_cuts_are_the_best_without_transfers),
        cmocka_unit_test(test_rate_cuts_of_chains_are_the_best_with_transfers),
        cmocka_unit_test(test_rate_cuts_have_groups_that_lie_apart),
        cmocka_unit_test(test_rate_cuts_seat_operators_alone_behind_groups),
        cmocka_unit_test(test_rate_clusters_are_units),
        cmocka_unit_test(test_rate_clusters_follow_dear_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
