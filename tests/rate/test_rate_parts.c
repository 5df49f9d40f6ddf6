/* Stages against all cuts, loads that follow every move, annealing that keeps what it began with or better. */
#include <moirai/moirai.h>

#include "rate/anneal.h"
#include "rate/candidate.h"
#include "rate/loads.h"
#include "rate/stages.h"
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

/* The least largest load over all orders of devices and all cuts, without groups. */
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

static void test_rate_stages_are_the_best_without_transfers(void **state)
{
    (void)state;
    int n = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(400); seed++) {
        random_spec spec = random_spec_draw(seed, 7);
        spec.groups = false;
        spec.congestion = MOIRAI_CONGESTION_NONE;
        moirai_problem *p = random_problem(&spec);
        if (!p)
            continue;
        relax_view v;
        int32_t device[16], other[16];
        int64_t load;
        assert_ok(relax_view_open(&v, p, 100));
        rate_stages_task task = {.v = &v, .order = p->topo, .devices = UINT64_MAX >> (64 - v.K)};
        assert_ok(rate_stages(device, &load, &task));
        int64_t best = best_cuts(&v, other, 0, 0);
        if (load < 0) {
            assert_true(best == INT64_MAX);
        } else if ((double)load > (double)best * 1.0002 + 1 || load < best || load != largest_load(&v, device)) {
            fail_msg("seed %llu: stages of %lld, the best %lld", (unsigned long long)seed, (long long)load,
                     (long long)best);
        }
        n += load >= 0;
        relax_view_close(&v);
        moirai_problem_free(p);
    }
    assert_true(n > TEST_SHARE(250));
}

/* a and d must share a device: d goes back to the stage of a, beside b and c on the other one. */
static void test_rate_stages_have_groups_that_lie_apart(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 10,10 group=g > t:0\nop b 10,10 t > u:0\n"
                                     "op c 10,10 u > v:0\nop d 10,10 group=g v > w:0\n");
    relax_view v;
    int32_t device[4];
    int64_t load;
    assert_ok(relax_view_open(&v, p, 100));
    rate_stages_task task = {.v = &v, .order = p->topo, .devices = 3};
    assert_ok(rate_stages(device, &load, &task));
    assert_int_equal(load, 20);
    assert_int_equal(load, largest_load(&v, device));
    assert_int_equal(device[0], device[3]);
    assert_int_equal(device[1], device[2]);
    relax_view_close(&v);
    moirai_problem_free(p);
}

/* Moves at random: the loads are those of a new count. */
static void test_rate_loads_follow_moves(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(300); seed++) {
        random_spec spec = random_spec_draw(seed, 12);
        moirai_problem *p = random_problem(&spec);
        if (!p || p->n_ops == 0) {
            moirai_problem_free(p);
            continue;
        }
        relax_view v;
        rate_balance b, again;
        util_rng rng;
        int32_t device[16] = {0};
        for (int32_t i = 0; i < p->n_ops; i++)
            device[i] = __builtin_ctzll(p->op_devices[i]);
        assert_ok(relax_view_open(&v, p, 100));
        assert_ok(rate_balance_open(&b, &v, device));
        util_rng_seed(&rng, seed);
        for (int32_t z = 0; z < 40; z++) {
            int32_t op = (int32_t)util_rng_below(&rng, (uint32_t)p->n_ops),
                    k = (int32_t)util_rng_below(&rng, (uint32_t)v.K);
            if (p->op_devices[op] >> k & 1)
                rate_balance_move(&b, op, device[op] = k);
        }
        assert_ok(rate_balance_open(&again, &v, device));
        assert_memory_equal(b.load_ns, again.load_ns, sizeof *b.load_ns * (size_t)v.n_resources);
        assert_memory_equal(b.bytes, again.bytes, sizeof *b.bytes * (size_t)v.K);
        assert_int_equal(b.sent_ns, again.sent_ns);
        assert_int_equal(b.n_over, again.n_over);
        rate_balance_close(&b);
        rate_balance_close(&again);
        relax_view_close(&v);
        moirai_problem_free(p);
    }
}

/* Six operators of 10 ns on two devices begin on one: annealing shares them out, and leaves a device alone that it may not use. */
static void test_rate_anneal_balances(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("device x 9\ndevice y 9\ndevice z 9\nop a 10,10,10 > a:0\nop b 10,10,10 > b:0\n"
                     "op c 10,10,10 > c:0\nop d 10,10,10 > d:0\nop e 10,10,10 > e:0\nop f 10,10,10 > f:0\n");
    relax_view v;
    place_units *units;
    int32_t device[6] = {0};
    int64_t load;
    assert_ok(relax_view_open(&v, p, 100));
    assert_ok(place_units_new(&units, p));
    rate_anneal_task task = {.v = &v, .units = units, .devices = 3, .steps = 2000, .seed = 1};
    assert_ok(rate_anneal(device, &load, &task));
    assert_int_equal(load, 30);
    for (int32_t i = 0; i < 6; i++)
        assert_true(device[i] < 2);
    task.devices = 7;
    assert_ok(rate_anneal(device, &load, &task));
    assert_int_equal(load, 20);
    place_units_free(units);
    relax_view_close(&v);
    moirai_problem_free(p);
}

/* y is twice as fast as x; where a nanosecond of it counts for far more than one of x, it is not worth that. */
static void test_rate_anneal_weighs_resources(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("congestion none\ndevice x 9\ndevice y 9\nop a 20,10 > a:0\n");
    relax_view v;
    place_units *units;
    int32_t device[1] = {0};
    int64_t load;
    double weight[2] = {1, 1e40}; /* of powers of 32: 18 times the load */
    assert_ok(relax_view_open(&v, p, 100));
    assert_int_equal(v.n_resources, 2);
    assert_ok(place_units_new(&units, p));
    rate_anneal_task task = {.v = &v, .units = units, .devices = 3, .weight = weight, .steps = 500, .seed = 1};
    assert_ok(rate_anneal(device, &load, &task));
    assert_int_equal(load, 20);
    task.weight = NULL;
    assert_ok(rate_anneal(device, &load, &task));
    assert_int_equal(load, 10);
    place_units_free(units);
    relax_view_close(&v);
    moirai_problem_free(p);
}

/* One of a hundred requests is y's, where it takes 5,000 ns: 50 ns for each. A stream that is too short to see one has a mean far below that. */
static void test_rate_of_a_mixture_is_not_below_the_load_of_its_shares(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 10,5000 > t:0\n");
    relax_view v;
    rate_candidate *c;
    assert_ok(relax_view_open(&v, p, 100));
    assert_ok(rate_candidate_new(&c, p, "mixture", 2));
    c->device[0][0] = 0;
    c->device[1][0] = 1;
    c->share[0] = 99;
    c->share[1] = 1;
    rate_judge_task task = {.v = &v, .in_flight = 2, .latency_limit_ns = INT64_MAX, .most_tasks = 20};
    assert_ok(rate_judge(c, &task));
    assert_false(c->outcome.steady);
    assert_int_equal(c->load_ns, 50);
    assert_true(c->outcome.period_ns >= 50);
    rate_candidate_free(c);
    relax_view_close(&v);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_stages_are_the_best_without_transfers),
        cmocka_unit_test(test_rate_stages_have_groups_that_lie_apart),
        cmocka_unit_test(test_rate_loads_follow_moves),
        cmocka_unit_test(test_rate_anneal_balances),
        cmocka_unit_test(test_rate_anneal_weighs_resources),
        cmocka_unit_test(test_rate_of_a_mixture_is_not_below_the_load_of_its_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
