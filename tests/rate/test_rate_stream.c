/* The simulator of many requests: worked out on paper, and against a second one that shares nothing with it. */
#include <moirai/moirai.h>

#include "rate/stream/stream.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/slow_stream.h"
#include "support/tiny.h"
#include "util/util.h"

static rate_outcome stream(const moirai_problem *p, const int32_t *device, int32_t in_flight)
{
    rate_route *route;
    rate_outcome out;
    assert_ok(rate_route_of(&route, p, device));
    rate_stream_task task = {.n_copies = 1, .in_flight = in_flight, .most_tasks = 100000, .share = {1}};
    task.route[0] = route;
    assert_ok(rate_stream(&out, p, &task));
    rate_route_free(route);
    return out;
}

/* a (10 ns) on x sends 4 bytes (4 ns) to b (7 ns) on y. One at a time: 21. Two in flight: the second waits for a, 10, and x is never idle: 10 ns. */
static void test_rate_two_stages(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 10,10 > t:4\nop b 7,7 t > u:0\n");
    int32_t device[] = {0, 1};
    rate_outcome one = stream(p, device, 1), two = stream(p, device, 2), three = stream(p, device, 3);
    assert_int_equal(one.period_ns, 21);
    assert_true(one.steady);
    /* the third enters when the first finishes, at 21; x is idle from 20 to 21: two requests in 21 ns */
    assert_int_equal(two.period_ns, 11);
    assert_int_equal(two.span_ns * 2, 21 * two.requests);
    assert_int_equal(three.period_ns, 10);
    assert_int_equal(three.latency_ns, 30);
    assert_int_equal(three.tensor_bytes[0], 8); /* the next is computed while one is sent */
    assert_int_equal(three.tensor_bytes[1],
                     8); /* the next arrives, for 4 ns, while one is read for 7, that began before */
    moirai_problem_free(p);
}

/* a and c on x, b on y between them: 3, 4 and 3 ns, so that c of a request is ready 4 ns after its a. Three in flight. The oldest first: x has a1 a2, at 7 c1, at 10 (1 has left, 4 has entered) c2, and so on.
 * At a pace of 2, c, which begins at 7 of 10, is due 1.4 requests later: with a4 it waits until a3 has gone. Both fill x, 6 ns a request. */
static void test_rate_paced_by_hand(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 3,3 > t:0\nop b 4,4 t > u:0\nop c 3,3 u > v:0\n");
    int32_t device[] = {0, 1, 0};
    rate_route *route;
    rate_outcome out;
    assert_ok(rate_route_of(&route, p, device));
    assert_int_equal(route->op[0].place, 0);
    assert_int_equal(route->op[1].place, 3 * RATE_WHOLE / 10);
    assert_int_equal(route->op[2].place, 7 * RATE_WHOLE / 10);
    for (int32_t pace = 0; pace <= 2; pace += 2) {
        rate_stream_task task = {.n_copies = 1, .in_flight = 3, .pace = pace, .most_tasks = 100000, .share = {1}};
        task.route[0] = route;
        assert_ok(rate_stream(&out, p, &task));
        assert_true(out.steady);
        assert_int_equal(out.period_ns, 6);
    }
    rate_route_free(route);
    moirai_problem_free(p);
}

/* No operator, and operators that take no time. */
static void test_rate_of_nothing(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device x 9\ndevice y 9\nop a 0,0 > t:0\nop b 0,0 t > u:0\n");
    int32_t device[] = {0, 1};
    rate_outcome out = stream(p, device, 3);
    assert_int_equal(out.period_ns, 0);
    moirai_problem_free(p);
}

/* ---- against the second simulator ---- */

#define REQUESTS 60

typedef struct setting {
    int32_t device[SLOW_COPIES][16], rank[SLOW_COPIES][16], place[SLOW_COPIES][16];
    rate_route *route[SLOW_COPIES];
    int n_copies, in_flight;
} setting;

/* Devices at random; a group goes where its first operator is. */
static void draw_devices(int32_t *device, const moirai_problem *p, util_rng *rng)
{
    for (int32_t i = 0; i < p->n_ops; i++) {
        do
            device[i] = (int32_t)util_rng_below(rng, (uint32_t)p->n_devices);
        while (!(p->op_devices[i] >> device[i] & 1));
        for (int32_t j = 0; j < i; j++)
            if (p->op_group[i] != MOIRAI_NONE && p->op_group[j] == p->op_group[i])
                device[i] = device[j];
    }
}

/* Whether there was something to compare: a steady state that both have reached. */
static bool compare(const moirai_problem *p, const slow_task *slow, const rate_stream_task *task, uint64_t seed)
{
    int64_t finish[REQUESTS], latency[REQUESTS], bytes[MOIRAI_MAX_DEVICES], longest = 0;
    rate_outcome out;
    slow_stream(slow, finish, latency, bytes);
    assert_ok(rate_stream(&out, p, task));
    if (!out.steady || out.period_ns == 0 || out.finished > REQUESTS)
        return false;
    for (int64_t i = REQUESTS - 1 - out.requests; i < REQUESTS - 1; i++)
        longest = UTIL_MAX(longest, latency[i + 1]);
    for (int64_t i = REQUESTS - 1 - out.requests; i + out.requests < REQUESTS; i++)
        if (finish[i + out.requests] - finish[i] != out.span_ns)
            fail_msg("seed %llu: request %lld takes %lld, not %lld", (unsigned long long)seed, (long long)i,
                     (long long)(finish[i + out.requests] - finish[i]), (long long)out.span_ns);
    if (longest != out.latency_ns)
        fail_msg("seed %llu: latency %lld, not %lld", (unsigned long long)seed, (long long)longest,
                 (long long)out.latency_ns);
    for (int32_t k = 0; k < p->n_devices; k++)
        if (bytes[k] != out.tensor_bytes[k])
            fail_msg("seed %llu: device %d holds %lld bytes, not %lld", (unsigned long long)seed, k,
                     (long long)bytes[k], (long long)out.tensor_bytes[k]);
    return true;
}

static bool check_problem(const moirai_problem *p, uint64_t seed)
{
    util_rng rng;
    util_rng_seed(&rng, seed);
    setting s = {.n_copies = 1 + (int)util_rng_below(&rng, 3), .in_flight = 1 + (int)util_rng_below(&rng, 6)};
    bool slots = s.in_flight >= s.n_copies && util_rng_below(&rng, 2);
    int pace = seed % 2 ? 0 : 1 + (int)util_rng_below(&rng, 6);
    slow_task slow = {.p = p, .n_copies = s.n_copies, .in_flight = s.in_flight, .n_requests = REQUESTS};
    slow.pace = pace;
    slow.whole = RATE_WHOLE;
    rate_stream_task task = {.n_copies = s.n_copies, .in_flight = s.in_flight, .pace = pace, .most_tasks = 20000};
    for (int c = 0; c < s.n_copies; c++) {
        draw_devices(s.device[c], p, &rng);
        assert_ok(rate_route_of(&s.route[c], p, s.device[c]));
        for (int32_t i = 0; i < p->n_ops; i++) {
            s.rank[c][i] = s.route[c]->op[i].rank;
            s.place[c][s.rank[c][i]] = s.route[c]->op[i].place;
        }
        slow.device[c] = s.device[c];
        slow.rank[c] = s.rank[c];
        slow.place[c] = s.place[c];
        task.route[c] = s.route[c];
        task.share[c] = slow.share[c] = 1 + (int)util_rng_below(&rng, 3);
        task.slots[c] = slow.slots[c] = !slots ? 0 : c ? 1 : s.in_flight - s.n_copies + 1;
    }
    bool compared = compare(p, &slow, &task, seed);
    for (int c = 0; c < s.n_copies; c++)
        rate_route_free(s.route[c]);
    return compared;
}

static void test_rate_stream_agrees_with_the_slow_one(void **state)
{
    (void)state;
    int n = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(1500); seed++) {
        random_spec spec = random_spec_draw(seed, 7);
        if (seed % 4 == 0)
            spec.congestion = MOIRAI_CONGESTION_DEVICE;
        moirai_problem *p = random_problem(&spec);
        if (p && p->n_ops > 0)
            n += check_problem(p, seed);
        moirai_problem_free(p);
    }
    assert_true(n > TEST_SHARE(900)); /* the hunt has seen something */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_two_stages),
        cmocka_unit_test(test_rate_paced_by_hand),
        cmocka_unit_test(test_rate_of_nothing),
        cmocka_unit_test(test_rate_stream_agrees_with_the_slow_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
