/* The bound of the period: never above the best that all assignments, mixtures of them and their streams reach. */
#include <moirai/moirai.h>

#include "rate/candidate.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "util/util.h"

#define MOST_ASSIGNMENTS 4096
#define STREAMS 8 /* assignments of a tiny problem that are simulated, too */

static int64_t bound(const moirai_problem *p, int32_t in_flight, int64_t latency_ns)
{
    moirai_budget budget;
    moirai_budget_init(&budget);
    budget.threads = 1;
    int64_t lower = -1;
    assert_ok(moirai_rate_bound(&lower, p, in_flight, latency_ns, &budget));
    return lower;
}

/* a and b of 30 ns run anywhere: 30 per request on two devices, if each has one of them, and 60 ns of latency. */
static void test_rate_bound_by_hand(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 30,30 > t:0\nop b 30,30 t > u:0\n");
    assert_int_equal(bound(p, 8, 60), 30);
    assert_int_equal(bound(p, 1, 60), 60);
    assert_int_equal(bound(p, 2, 60), 30);
    assert_int_equal(bound(p, 7, 0), 30);
    moirai_problem_free(p);
}

/* Sending takes 100 ns: two devices of which y is three times as slow share requests, not operators. 1 / (1/60 + 1/180). */
static void test_rate_bound_is_of_mixtures_too(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 30,90 > t:100\nop b 30,90 t > u:0\n");
    assert_int_equal(bound(p, 8, 0), 45);
    moirai_problem_free(p);
}

/* ---- all assignments ---- */

typedef struct hunt {
    int64_t problems, streams, mixtures, raised;
} hunt;

static bool allowed(const moirai_problem *p, const int32_t *device)
{
    int64_t need[MOIRAI_MAX_DEVICES] = {0};
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (!(p->op_devices[i] >> device[i] & 1))
            return false;
        for (int32_t j = 0; j < i && p->op_group[i] != MOIRAI_NONE; j++)
            if (p->op_group[j] == p->op_group[i] && device[j] != device[i])
                return false;
        need[device[i]] += p->op_memory_bytes[i];
    }
    moirai_problem_add_weights(p, device, need);
    for (int32_t k = 0; k < p->n_devices; k++)
        if (need[k] > p->device_memory_bytes[k])
            return false;
    return true;
}

/* Loads, counted here anew. */
static void add_loads(double *load, const moirai_problem *p, const int32_t *device, double share)
{
    int32_t K = p->n_devices;
    for (int32_t i = 0; i < p->n_ops; i++)
        load[device[i]] += share * (double)moirai_op_ns(p, i, device[i]);
    for (int32_t e = 0; e < p->n_edges && p->congestion != MOIRAI_CONGESTION_NONE; e++) {
        int32_t t = p->edge_tensor[e], k = device[p->tensor_producer[t]], l = device[p->edge_reader[e]];
        bool again = k == l;
        for (int32_t f = p->tensor_edge_off[t]; f < e && p->flow == MOIRAI_FLOW_TENSOR; f++)
            again |= device[p->edge_reader[f]] == l;
        double ns = again ? 0 : share * (double)moirai_transfer_ns(p, t, k, l);
        bool held = p->congestion == MOIRAI_CONGESTION_DEVICE, port = p->congestion == MOIRAI_CONGESTION_PORT;
        load[held ? k : port ? K + k : K + k * K + l] += ns;
        if (held || port)
            load[held ? l : 2 * K + l] += ns;
    }
}

static double largest(const double *load, const moirai_problem *p)
{
    double most = 0;
    for (int32_t r = 0; r < p->n_devices * (p->n_devices + 3); r++)
        most = UTIL_MAX(most, load[r]);
    return most;
}

/* With n requests in flight, in the long run. */
static int64_t period(const moirai_problem *p, const int32_t *device, int32_t n)
{
    relax_view v;
    rate_candidate *c;
    assert_ok(relax_view_open(&v, p, 100));
    assert_ok(rate_candidate_of(&c, p, "test", device));
    rate_judge_task task = {.v = &v, .in_flight = n, .latency_limit_ns = INT64_MAX, .most_tasks = 20000};
    assert_ok(rate_judge_as_is(c, &task));
    int64_t found = c->outcome.period_ns;
    rate_candidate_free(c);
    relax_view_close(&v);
    return found;
}

static void fail_below(uint64_t seed, const char *what, double found, int64_t lower)
{
    fail_msg("seed %llu: %s of %.3f ns, proven %lld", (unsigned long long)seed, what, found, (long long)lower);
}

/* Each assignment, its mixture with the one before it, and the stream of some. */
static void check_all(const moirai_problem *p, uint64_t seed, int64_t n_all, hunt *h)
{
    int32_t device[16], before[16], K = p->n_devices, N = 1 + (int32_t)(seed % 5);
    int64_t lower = bound(p, 1024, 0), least_period = INT64_MAX;
    bool any = false;
    for (int64_t a = 0, step = n_all / STREAMS + 1; a < n_all; a++) {
        double load[16 * 19] = {0};
        int64_t rest = a;
        for (int32_t i = 0; i < p->n_ops; i++, rest /= K)
            device[i] = (int32_t)(rest % K);
        if (!allowed(p, device))
            continue;
        add_loads(load, p, device, 1);
        if (largest(load, p) < (double)lower - 1e-6)
            fail_below(seed, "a load", largest(load, p), lower);
        if (any) {
            double share = (double)(1 + a % 7) / 8, mixed[16 * 19] = {0};
            add_loads(mixed, p, device, share);
            add_loads(mixed, p, before, 1 - share);
            if (largest(mixed, p) <= (double)lower - 1)
                fail_below(seed, "a mixture", largest(mixed, p), lower);
            h->mixtures++;
        }
        if (a % step == 0) {
            least_period = UTIL_MIN(least_period, period(p, device, N));
            h->streams++;
        }
        memcpy(before, device, sizeof before);
        any = true;
    }
    if (least_period < bound(p, N, moirai_bound_critical_path(p)))
        fail_below(seed, "a period", (double)least_period, bound(p, N, moirai_bound_critical_path(p)));
    h->problems += any;
    h->raised += lower > moirai_bound_load(p);
}

static void test_rate_bound_is_never_above_the_best(void **state)
{
    (void)state;
    hunt h = {0};
    for (uint64_t seed = 1; seed <= TEST_SHARE(10000); seed++) {
        random_spec spec = random_spec_draw(seed, 6);
        if (seed % 4 == 0)
            spec.congestion = MOIRAI_CONGESTION_DEVICE;
        moirai_problem *p = random_problem(&spec);
        int64_t n_all = 1;
        for (int32_t i = 0; p && i < p->n_ops; i++)
            n_all *= p->n_devices;
        if (p && n_all <= MOST_ASSIGNMENTS)
            check_all(p, seed, n_all, &h);
        moirai_problem_free(p);
    }
    print_message("%lld problems, %lld mixtures, %lld streams; transfers and bytes raise %lld bounds\n",
                  (long long)h.problems, (long long)h.mixtures, (long long)h.streams, (long long)h.raised);
    assert_true(h.problems > TEST_SHARE(7000)); /* the hunt has seen something */
    assert_true(h.streams > TEST_SHARE(20000));
    assert_true(h.raised > TEST_SHARE(500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_bound_by_hand),
        cmocka_unit_test(test_rate_bound_is_of_mixtures_too),
        cmocka_unit_test(test_rate_bound_is_never_above_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
