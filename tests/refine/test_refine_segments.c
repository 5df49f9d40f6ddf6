/* Segments drawn by hand: when runs end, in which order messages leave, what is merged and what would wait in a circle;
 * and random ones, where a merge never ends later than what it began with and is what it says. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include <moirai/segments.h>

/* A computes 10, sends, computes 10 and 30 more; B needs the first and sends back what A's last one reads. */
static const int32_t two_off[] = {0, 3, 4}, two_wait_off[] = {0, 0, 0, 1, 2}, two_wait[] = {1, 0},
                     two_send_off[] = {0, 1, 1, 1, 2}, two_send[] = {0, 1}, two_source[] = {0, 1},
                     two_target[] = {1, 0};
static const int64_t two_work[] = {10, 10, 30, 20}, fives[] = {5, 5}, nothing[] = {0, 0, 0};

static moirai_segments two_devices(const int64_t *meeting_ns)
{
    return (moirai_segments){.n_devices = 2,
                             .n_messages = 2,
                             .device_off = two_off,
                             .work_ns = two_work,
                             .meeting_ns = meeting_ns,
                             .wait_off = two_wait_off,
                             .wait = two_wait,
                             .send_off = two_send_off,
                             .send = two_send,
                             .took_ns = fives,
                             .source = two_source,
                             .target = two_target};
}

static int64_t played(const moirai_segments *s, const bool *begins)
{
    int64_t end_ns = 0;
    assert_ok(moirai_segments_play(&end_ns, s, begins));
    return end_ns;
}

static void test_segments_are_played_through_with_their_meetings(void **state)
{
    (void)state;
    int64_t twenty[] = {20, 20};
    moirai_segments s = two_devices(nothing);
    assert_int_equal(played(&s, NULL), 10 + 5 + 20 + 5 + 30);
    s = two_devices(twenty); /* A is not ready when the answer is there: 10 + 20 + 10 + 20 */
    assert_int_equal(played(&s, NULL), 60 + 30);
    bool first_two[] = {true, false, true, true};
    assert_int_equal(played(&s, first_two), 20 + 5 + 20 + 5 + 30);
    bool all[] = {true, false, false, true};
    assert_int_equal(played(&s, all), -1); /* it would wait for the answer to what it has not sent */
}

static void test_segments_by_ports_send_one_after_the_other_in_order(void **state)
{
    (void)state;
    const int32_t off[] = {0, 2, 3, 4}, wait_off[] = {0, 0, 0, 1, 2}, wait[] = {0, 1}, send_off[] = {0, 1, 2, 2, 2},
                  send[] = {1, 0}, source[] = {0, 0}, target[] = {1, 2};
    const int64_t work[] = {10, 10, 1, 1};
    moirai_segments s = {.n_devices = 3, .n_messages = 2, .device_off = off, .work_ns = work, .meeting_ns = nothing};
    s.wait_off = wait_off, s.wait = wait, s.send_off = send_off, s.send = send;
    s.took_ns = fives, s.source = source, s.target = target;
    assert_int_equal(played(&s, NULL), 26);
    s.ordered = true; /* the first waits for the second, which was numbered before it */
    assert_int_equal(played(&s, NULL), 20 + 5 + 1);
    s.ports = true;
    assert_int_equal(played(&s, NULL), 20 + 5 + 5 + 1);
}

static void test_segments_are_merged_where_a_meeting_costs_more_than_a_delay(void **state)
{
    (void)state;
    bool begins[4];
    int64_t end_ns, twenty[] = {20, 20};
    moirai_segments s = two_devices(nothing);
    assert_ok(moirai_segments_merge(begins, &end_ns, &s));
    assert_true(begins[0] && begins[1] && begins[2] && begins[3] && end_ns == 70);
    s = two_devices(twenty);
    assert_ok(moirai_segments_merge(begins, &end_ns, &s));
    assert_true(begins[0] && !begins[1] && begins[2] && begins[3] && end_ns == 80);
}

/* Of two that exchange results only one can be merged: else each would wait for the other. */
static void test_segments_are_not_merged_into_circles(void **state)
{
    (void)state;
    const int32_t off[] = {0, 2, 4}, wait_off[] = {0, 0, 1, 1, 2}, wait[] = {1, 0}, send_off[] = {0, 1, 1, 2, 2},
                  send[] = {0, 1}, source[] = {0, 1}, target[] = {1, 0};
    const int64_t work[] = {10, 10, 10, 10}, ones[] = {1, 1}, long_ones[] = {1000, 1000};
    moirai_segments s = {.n_devices = 2, .n_messages = 2, .device_off = off, .work_ns = work, .meeting_ns = long_ones};
    s.wait_off = wait_off, s.wait = wait, s.send_off = send_off, s.send = send;
    s.took_ns = ones, s.source = source, s.target = target;
    bool begins[4];
    int64_t end_ns;
    assert_ok(moirai_segments_merge(begins, &end_ns, &s));
    assert_true(begins[0] && !begins[1] && begins[2] && begins[3] && end_ns == 10 + 1000 + 10);
}

static void test_segments_out_of_range_are_refused(void **state)
{
    (void)state;
    int64_t end_ns;
    const int32_t far[] = {1, 2}, twice[] = {0, 0}, falling[] = {0, 3, 2};
    const int64_t negative[] = {-1, 0};
    moirai_segments s = two_devices(nothing);
    s.wait = far;
    assert_int_equal(moirai_segments_play(&end_ns, &s, NULL), MOIRAI_EUSAGE);
    s = two_devices(nothing);
    s.send = twice;
    assert_int_equal(moirai_segments_play(&end_ns, &s, NULL), MOIRAI_EUSAGE);
    s = two_devices(nothing);
    s.device_off = falling;
    assert_int_equal(moirai_segments_play(&end_ns, &s, NULL), MOIRAI_EUSAGE);
    s = two_devices(negative);
    assert_int_equal(moirai_segments_play(&end_ns, &s, NULL), MOIRAI_EUSAGE);
}

/* ---- random ones ---- */

enum { DEVICES = 3, EACH = 12, SEGMENTS = DEVICES * EACH, MESSAGES = 40 };

static int32_t below(uint32_t *seed, int32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int32_t)((*seed >> 8) % (uint32_t)n);
}

typedef struct random_run {
    int32_t off[DEVICES + 1], wait_off[SEGMENTS + 1], send_off[SEGMENTS + 1], wait[MESSAGES], send[MESSAGES];
    int32_t source[MESSAGES], target[MESSAGES], from[MESSAGES], to[MESSAGES];
    int64_t work[SEGMENTS], meeting[DEVICES], took[MESSAGES];
} random_run;

/* Messages go from a segment to a later one of another device, so that nothing waits in a circle at first. */
static moirai_segments random_segments(random_run *r, uint32_t seed)
{
    int32_t n_wait = 0, n_send = 0;
    for (int32_t m = 0; m < MESSAGES; m++) {
        r->source[m] = below(&seed, DEVICES);
        r->target[m] = (r->source[m] + 1 + below(&seed, DEVICES - 1)) % DEVICES;
        int32_t at = m * (EACH - 1) / MESSAGES;
        r->from[m] = r->source[m] * EACH + at;
        r->to[m] = r->target[m] * EACH + at + 1 + below(&seed, EACH - 1 - at);
        r->took[m] = 1 + below(&seed, 30);
    }
    for (int32_t i = 0; i < SEGMENTS; i++) {
        r->work[i] = below(&seed, 50);
        r->wait_off[i] = n_wait, r->send_off[i] = n_send;
        for (int32_t m = 0; m < MESSAGES; m++) {
            if (r->to[m] == i)
                r->wait[n_wait++] = m;
            if (r->from[m] == i)
                r->send[n_send++] = m;
        }
    }
    r->wait_off[SEGMENTS] = n_wait, r->send_off[SEGMENTS] = n_send;
    for (int32_t k = 0; k <= DEVICES; k++)
        r->off[k] = k * EACH;
    for (int32_t k = 0; k < DEVICES; k++)
        r->meeting[k] = below(&seed, 40);
    moirai_segments s = {.n_devices = DEVICES, .n_messages = MESSAGES, .device_off = r->off, .work_ns = r->work};
    s.meeting_ns = r->meeting, s.wait_off = r->wait_off, s.wait = r->wait, s.send_off = r->send_off, s.send = r->send;
    s.took_ns = r->took, s.source = r->source, s.target = r->target;
    return s;
}

static void test_segments_merged_end_no_later_and_as_they_say(void **state)
{
    (void)state;
    int better = 0;
    for (uint32_t seed = 0; seed < 300; seed++) {
        random_run r;
        bool begins[SEGMENTS];
        int64_t end_ns;
        moirai_segments s = random_segments(&r, seed);
        s.ports = seed % 3 == 1;
        s.ordered = seed % 3 == 2;
        int64_t before_ns = played(&s, NULL);
        assert_ok(moirai_segments_merge(begins, &end_ns, &s));
        assert_true(end_ns <= before_ns);
        assert_int_equal(end_ns, played(&s, begins));
        better += end_ns < before_ns;
    }
    assert_true(better > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments_are_played_through_with_their_meetings),
        cmocka_unit_test(test_segments_by_ports_send_one_after_the_other_in_order),
        cmocka_unit_test(test_segments_are_merged_where_a_meeting_costs_more_than_a_delay),
        cmocka_unit_test(test_segments_are_not_merged_into_circles),
        cmocka_unit_test(test_segments_out_of_range_are_refused),
        cmocka_unit_test(test_segments_merged_end_no_later_and_as_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
