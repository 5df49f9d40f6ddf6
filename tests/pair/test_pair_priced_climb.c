/* Target by target at prices on bytes: what it proves, that its cases leave nothing out, and that threads do not
 * matter; what stays known when these prices move. */
#include "pair/priced/priced.h"
#include "support/check.h"
#include "support/scale.h"
#include "support/tiny_block.h"
#include "util/util.h"

/* Six heads of two operators read a tensor that takes 60 to each of two other devices; what they hand on takes 9. */
#define HEADS \
    "flow tensor\ncongestion port\ndevice A 99\ndevice B 99\ndevice C 99\nop in 1,-,- > s:60\n" \
    "op a0 20,15,25 s > x0:9 mem=4\nop b0 30,22,35 x0 > y0:3 mem=2\n" \
    "op a1 20,15,25 s > x1:9 mem=4\nop b1 30,22,35 x1 > y1:3 mem=2\n" \
    "op a2 20,15,25 s > x2:9 mem=4\nop b2 30,22,35 x2 > y2:3 mem=2\n" \
    "op a3 20,15,25 s > x3:9 mem=4\nop b3 30,22,35 x3 > y3:3 mem=2\n" \
    "op a4 20,15,25 s > x4:9 mem=4\nop b4 30,22,35 x4 > y4:3 mem=2\n" \
    "op a5 20,15,25 s > x5:9 mem=4\nop b5 30,22,35 x5 > y5:3 mem=2\n" \
    "op out 1,-,- y0 y1 y2 y3 y4 y5\n"
/* All on A: 6 * (20 + 30) ns, and 36 bytes for 2 ns each. */
#define ALL_ON_A 372

typedef struct heads {
    tiny_pair f;
    pair_priced v;
    int64_t per_byte[3];
    pair_priced_task job;
} heads;

static void open_heads(heads *h, int threads)
{
    *h = (heads){.per_byte = {2 * DECOMPOSE_MOST_UNITS, DECOMPOSE_MOST_UNITS, 0}};
    tiny_pair_open(&h->f, HEADS);
    assert_int_equal(h->f.x->sending.n, 5);
    h->v = (pair_priced){.pair = h->f.x};
    h->job = (pair_priced_task){.byte_price = h->per_byte,
                                .buckets = 8,
                                .solves = 7,
                                .ceiling = pricing_units(DECOMPOSE_MOST_UNITS, ALL_ON_A),
                                .threads = threads};
}

static void close_heads(heads *h)
{
    pair_priced_free(&h->v);
    tiny_pair_close(&h->f);
}

/* One more visit: the first two are best first. */
static void visit(heads *h, int32_t solves)
{
    h->job.stamp++;
    h->job.solves = solves;
    assert_ok(pair_priced_refine(&h->v, &h->job));
    assert_true(h->v.solved);
}

/* How many cases allow this sending, these arrivals and this length. */
static int32_t cases_with(const heads *h, int32_t sending, const int64_t *arrival, int64_t length_ns)
{
    int32_t n = 0;
    for (int32_t i = 0; i < h->v.n_cases; i++) {
        const pair_priced_case *c = &h->v.cases[i];
        bool allowed = c->sending == sending && length_ns >= c->least_ns && length_ns <= c->most_ns;
        for (int32_t j = 0; j < c->n_branches && allowed; j++)
            if (c->branch[j].on == PRICING_ARRIVAL) {
                int64_t at = arrival[c->branch[j].device];
                allowed = at >= c->branch[j].least && at <= c->branch[j].most;
            }
        n += allowed;
    }
    return n;
}

static void test_pair_priced_climb_leaves_nothing_out(void **state)
{
    (void)state;
    heads h;
    open_heads(&h, 1);
    visit(&h, 7);
    visit(&h, 1);
    visit(&h, 40);
    int32_t arrivals = 0;
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < h.v.n_cases; i++) {
        const pair_priced_case *c = &h.v.cases[i];
        for (int32_t j = 0; j < c->n_branches; j++)
            arrivals += c->branch[j].on == PRICING_ARRIVAL;
        int64_t value = pair_priced_of_case(&h.v, c, h.per_byte, h.f.x->lower_ns);
        least = value < least ? value : least;
    }
    assert_true(arrivals > 0);       /* else this says nothing */
    assert_true(least >= h.v.value); /* it claims no more than its cases prove */
    for (int32_t s = 0; s < h.f.x->sending.n_first; s++)
        for (int64_t b = 0; b < 400; b += 9)
            for (int64_t c = 0; c < 400; c += 9)
                for (int64_t length = 0; length < 400; length += 9) {
                    int64_t arrival[3] = {0, b, c};
                    if (!cases_with(&h, s, arrival, length))
                        fail_msg("sending %d, arrivals %d and %d, length %d", s, (int)b, (int)c, (int)length);
                }
    close_heads(&h);
}

/* More questions prove more, and no more than a plan costs. */
static void test_pair_priced_climb_proves_more_with_more_questions(void **state)
{
    (void)state;
    heads h;
    open_heads(&h, 1);
    visit(&h, 7);
    visit(&h, 1);
    int64_t first = h.v.value, before = first;
    for (int32_t i = 0; i < 6; i++) {
        visit(&h, 10);
        assert_true(h.v.value >= before);
        before = h.v.value;
    }
    assert_true(before > first + first / 50);
    assert_true(before <= h.job.ceiling);
    close_heads(&h);
}

static void test_pair_priced_climb_is_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    heads h, g;
    open_heads(&h, 1);
    open_heads(&g, 4);
    for (int32_t i = 0; i < 4; i++) {
        visit(&h, 12);
        visit(&g, 12);
    }
    assert_int_equal(h.v.value, g.v.value);
    assert_int_equal(h.v.n_cases, g.v.n_cases);
    for (int32_t i = 0; i < h.v.n_cases; i++) {
        const pair_priced_case *c = &h.v.cases[i], *d = &g.v.cases[i];
        assert_int_equal(c->sending, d->sending);
        assert_int_equal(c->value, d->value);
        assert_int_equal(c->n_branches, d->n_branches);
        if (c->n_branches)
            assert_memory_equal(c->branch, d->branch, sizeof *c->branch * (size_t)c->n_branches);
    }
    close_heads(&h);
    close_heads(&g);
}

/* A pair that nothing raises any more is left alone, until prices on bytes are others. */
static void test_pair_priced_climb_rests_where_it_is_stuck(void **state)
{
    (void)state;
    heads h;
    open_heads(&h, 1);
    h.job.ceiling = pricing_units(DECOMPOSE_MOST_UNITS, 10 * ALL_ON_A); /* no case is worth that */
    for (int32_t i = 0; i < 100 && !h.v.stuck; i++)
        visit(&h, 120);
    assert_true(h.v.stuck);
    int32_t n = h.v.n_cases;
    int64_t value = h.v.value;
    visit(&h, 30);
    assert_int_equal(h.v.n_cases, n);
    assert_int_equal(h.v.value, value);
    h.per_byte[0] += DECOMPOSE_MOST_UNITS;
    h.job.stamp++;
    pair_priced_update(&h.v, &h.job);
    assert_false(h.v.stuck);
    assert_true(h.v.value >= value); /* bytes have become dearer */
    close_heads(&h);
}

/* To other prices on bytes: what is not priced is worth no more than claimed, and the value is the least of all. */
static void test_pair_priced_values_at_other_prices(void **state)
{
    (void)state;
    heads h;
    open_heads(&h, 1);
    visit(&h, 7);
    visit(&h, 7);
    visit(&h, 40);
    util_rng rng;
    util_rng_seed(&rng, 1);
    int32_t passed_by = 0;
    for (int32_t turn = 0; turn < TEST_SHARE(200); turn++) {
        int64_t least = INT64_MAX;
        for (int32_t k = 0; k < 3; k++)
            h.per_byte[k] = (int64_t)util_rng_below(&rng, 3 * (uint32_t)DECOMPOSE_MOST_UNITS);
        h.job.stamp++;
        pair_priced_update(&h.v, &h.job);
        for (int32_t i = 0; i < h.v.n_cases; i++) {
            const pair_priced_case *c = &h.v.cases[i];
            int64_t value = pair_priced_of_case(&h.v, c, h.per_byte, h.f.x->lower_ns);
            assert_true(c->value <= value);
            assert_true(!c->valued || c->value == value);
            passed_by += !c->valued;
            least = value < least ? value : least;
        }
        assert_int_equal(h.v.value, least);
    }
    assert_true(passed_by > TEST_SHARE(200)); /* else this says nothing */
    close_heads(&h);
}

/* What was proven at the prices that one comes back to is still known then, whatever was found elsewhere. */
static void test_pair_priced_keeps_what_it_comes_back_to(void **state)
{
    (void)state;
    heads h;
    open_heads(&h, 1);
    h.job.centre = true;
    for (int32_t i = 0; i < 4; i++)
        visit(&h, 40);
    int64_t value = h.v.value, centre = h.per_byte[0];
    for (int32_t turn = 1; turn <= 4; turn++) {
        h.job.centre = false;
        h.per_byte[0] = turn % 2 ? centre / (turn + 1) : turn * centre;
        visit(&h, 40);
        h.job.centre = true;
        h.per_byte[0] = centre;
        h.job.stamp++;
        pair_priced_update(&h.v, &h.job);
        assert_true(h.v.value >= value);
        for (int32_t i = 0; i < h.v.n_cases; i++)
            assert_true(h.v.cases[i].value <= pair_priced_of_case(&h.v, &h.v.cases[i], h.per_byte, h.f.x->lower_ns));
    }
    close_heads(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_priced_climb_leaves_nothing_out),
        cmocka_unit_test(test_pair_priced_climb_proves_more_with_more_questions),
        cmocka_unit_test(test_pair_priced_climb_is_the_same_on_any_number_of_threads),
        cmocka_unit_test(test_pair_priced_climb_rests_where_it_is_stuck),
        cmocka_unit_test(test_pair_priced_values_at_other_prices),
        cmocka_unit_test(test_pair_priced_keeps_what_it_comes_back_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
