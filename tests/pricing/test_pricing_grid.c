/* Grids, what prices on them are worth, and the LP behind the master: all by hand. */
#include <math.h>

#include "lp/simplex.h"
#include "pricing/pricer.h"
#include "support/check.h"
#include "support/tiny_block.h"
#include "util/util.h"

static void test_pricing_resources_by_congestion(void **state)
{
    (void)state;
    moirai_problem q = {.n_devices = 3, .congestion = MOIRAI_CONGESTION_PORT};
    assert_int_equal(schedule_resources(&q), 9);
    q.congestion = MOIRAI_CONGESTION_CHANNEL;
    assert_int_equal(schedule_resources(&q), 12);
    q.congestion = MOIRAI_CONGESTION_NONE;
    assert_int_equal(schedule_resources(&q), 3);
}

/* T = 15 in steps of 1: steps 0 .. 15, the last of them without length. */
static void test_pricing_grid_of_one_bucket(void **state)
{
    (void)state;
    pricing_grid g;
    pricing_grid_init(&g, 15, 1, 1);
    assert_int_equal(g.n_steps, 16);
    assert_int_equal(g.n_buckets, 1);
    assert_int_equal(g.bucket_step[0], 0);
    assert_int_equal(g.bucket_step[1], 16);
    assert_int_equal(pricing_bucket_ns(&g, 0), 15);
    pricing_grid_init(&g, 15, 4, 2); /* steps at 0, 4, 8, 12 */
    assert_int_equal(g.n_steps, 4);
    assert_int_equal(g.bucket_step[1], 2);
    assert_int_equal(pricing_bucket_ns(&g, 0), 8);
    assert_int_equal(pricing_bucket_ns(&g, 1), 7);
    pricing_grid_init(&g, 2, 1, 64); /* no more buckets than steps */
    assert_int_equal(g.n_buckets, 3);
}

/* Buckets ascend and cover [0, T] without a gap, for every size; twelve and more are finer at both ends. */
static void test_pricing_grid_buckets_cover_the_length(void **state)
{
    (void)state;
    for (int64_t length = 0; length < 300; length += 7)
        for (int64_t step = 1; step < 20; step += 3)
            for (int32_t buckets = 1; buckets <= 64; buckets += 9) {
                pricing_grid g;
                int64_t sum = 0;
                pricing_grid_init(&g, length, step, buckets);
                assert_int_equal(g.bucket_step[0], 0);
                assert_int_equal(g.bucket_step[g.n_buckets], g.n_steps);
                for (int32_t i = 0; i < g.n_buckets; i++) {
                    assert_true(g.bucket_step[i] < g.bucket_step[i + 1]);
                    assert_true(pricing_bucket_ns(&g, i) >= 0);
                    sum += pricing_bucket_ns(&g, i);
                }
                assert_int_equal(sum, length);
            }
    pricing_grid g;
    pricing_grid_init(&g, 1200, 1, 12);
    assert_true(pricing_bucket_ns(&g, 0) < pricing_bucket_ns(&g, 6));
    assert_true(pricing_bucket_ns(&g, 11) < pricing_bucket_ns(&g, 6));
}

static void test_pricing_grid_snaps_the_nearest_boundary(void **state)
{
    (void)state;
    pricing_grid g;
    uint64_t kept = 0;
    pricing_grid_init(&g, 39, 1, 4); /* 0 10 20 30 40 */
    pricing_grid_snap(&g, &kept, 13);
    assert_int_equal(g.bucket_step[1], 13);
    pricing_grid_snap(&g, &kept, 18);
    assert_int_equal(g.bucket_step[2], 18);
    pricing_grid_snap(&g, &kept, 18); /* there already */
    assert_int_equal(g.bucket_step[1], 13);
    assert_int_equal(g.bucket_step[2], 18);
    pricing_grid_snap(&g, &kept, 0); /* an end stays an end */
    pricing_grid_snap(&g, &kept, 40);
    pricing_grid_snap(&g, &kept, -1);
    assert_int_equal(g.bucket_step[0], 0);
    assert_int_equal(g.bucket_step[1], 13);
    assert_int_equal(g.bucket_step[4], 40);
}

/* Boundaries that were put somewhere stay: the next one comes from further away, past them, until all are used. */
static void test_pricing_grid_keeps_what_was_snapped(void **state)
{
    (void)state;
    pricing_grid g;
    uint64_t kept = 0;
    pricing_grid_init(&g, 39, 1, 4); /* 0 10 20 30 40 */
    pricing_grid_snap(&g, &kept, 12);
    pricing_grid_snap(&g, &kept, 14); /* 20 goes there */
    assert_int_equal(g.bucket_step[1], 12);
    assert_int_equal(g.bucket_step[2], 14);
    pricing_grid_snap(&g, &kept, 5); /* 30, past both */
    assert_int_equal(g.bucket_step[1], 5);
    assert_int_equal(g.bucket_step[2], 12);
    assert_int_equal(g.bucket_step[3], 14);
    assert_int_equal(kept, 14); /* boundaries 1, 2, 3 */
    pricing_grid_snap(&g, &kept, 33);
    assert_int_equal(g.bucket_step[3], 14);
}

/* K = 2 devices, no congestion, T = 25: nothing at first, 2 on B from 3 to 22, nothing behind. */
static void fill(pricing_grid *g, int64_t price[6])
{
    pricing_grid_init(g, 25, 1, 3);
    g->bucket_step[1] = 3;
    g->bucket_step[2] = 22;
    memset(price, 0, 6 * sizeof *price);
    price[3 + 1] = 2;
}

static void test_pricing_capacity_by_hand(void **state)
{
    (void)state;
    moirai_problem q = {.n_devices = 2, .congestion = MOIRAI_CONGESTION_NONE};
    pricing_grid g;
    int64_t price[6], branch_price[2] = {5, -7};
    pricing_branch branch[2] = {{PRICING_NUMBER, 0, 0, 0, 1, 4}, {PRICING_NUMBER, 0, 0, 1, 2, 9}};
    fill(&g, price);
    assert_int_equal(pricing_capacity(&q, &g, price), 2 * 19);
    pricing_case at = {.n_branches = 2, .branch = branch};
    /* the most of what is paid, the least of what is given */
    assert_int_equal(pricing_branch_term(&at, branch_price), 5 * 4 - 7 * 2);
}

/* L less what B is worth until L: 10 - 14 at L = 10, falling by 1 per ns to 22 - 38, rising again to 25 - 38. */
static void test_pricing_length_term_by_hand(void **state)
{
    (void)state;
    moirai_problem q = {.n_devices = 2, .congestion = MOIRAI_CONGESTION_NONE};
    pricing_grid g;
    int64_t price[6];
    fill(&g, price);
    assert_int_equal(pricing_length_term(&q, &g, price, 1, 10), -16);
    assert_int_equal(pricing_length_term(&q, &g, price, 1, 23), 23 - 38);
    assert_int_equal(pricing_length_term(&q, &g, price, 1, 25), 25 - 38);
    assert_int_equal(pricing_length_term(&q, &g, price, 3, 10),
                     30 - 14); /* time is dearer than B: the shortest is cheapest */
    assert_int_equal(pricing_length_term(&q, &g, price, 1, 0), -16);
}

static void test_pricing_duals_are_copies(void **state)
{
    (void)state;
    moirai_problem q = {.n_devices = 2, .congestion = MOIRAI_CONGESTION_NONE};
    pricing_grid g;
    int64_t price[8] = {0};
    pricing_duals kept = {0};
    fill(&g, price);
    price[6] = 11;
    price[7] = -12;
    assert_ok(pricing_duals_set(&kept, &q, &(pricing_duals){g, price, 2}));
    price[4] = price[7] = 0;
    assert_int_equal(kept.price[4], 2);
    assert_int_equal(kept.price[7], -12);
    assert_int_equal(kept.n_branches, 2);
    assert_int_equal(kept.grid.bucket_step[2], 22);
    assert_ok(pricing_duals_set(&kept, &q, &(pricing_duals){.grid = g}));
    assert_null(kept.price);
}

/* ---- the LP ---- */

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-5) /* limits are moved by some 1e-7 */

/* Least of 2x + 3y with x + y >= 4 and x <= 3: x = 3, y = 1. A unit more of the first row costs 3, of the second
 * saves 1. A new column z of cost 1 in the first row takes over. */
static void test_pricing_lp_has_the_known_duals(void **state)
{
    (void)state;
    pricing_simplex *lp;
    double value, dual[2], x[3];
    assert_ok(pricing_simplex_new(&lp, 2, (double[]){4, -HUGE_VAL}, (double[]){HUGE_VAL, 3}));
    assert_ok(pricing_simplex_add_column(lp, 2, 2, (int32_t[]){0, 1}, (double[]){1, 1}));
    assert_ok(pricing_simplex_add_column(lp, 3, 1, (int32_t[]){0}, (double[]){1}));
    assert_ok(pricing_simplex_solve(lp, &(util_stop){0}, &value, dual, x));
    NEAR(value, 9);
    NEAR(x[0], 3);
    NEAR(x[1], 1);
    NEAR(dual[0], 3);
    NEAR(dual[1], -1);
    assert_ok(pricing_simplex_add_column(lp, 1, 1, (int32_t[]){0}, (double[]){1}));
    assert_ok(pricing_simplex_solve(lp, &(util_stop){0}, &value, dual, x));
    NEAR(value, 4);
    NEAR(x[2], 4);
    NEAR(dual[0], 1);
    NEAR(dual[1], 0);
    assert_ok(pricing_simplex_solve(lp, &(util_stop){0}, &value, NULL, NULL));
    NEAR(value, 4);
    pricing_simplex_free(lp);
}

/* What has no solution, or no end, is a limit, not a failure: prices found before stay valid. */
static void test_pricing_lp_without_a_solution(void **state)
{
    (void)state;
    pricing_simplex *lp;
    double value;
    assert_ok(pricing_simplex_new(&lp, 1, (double[]){5}, (double[]){HUGE_VAL}));
    assert_ok(pricing_simplex_add_column(lp, 1, 1, (int32_t[]){0}, (double[]){-1}));
    assert_int_equal(pricing_simplex_solve(lp, &(util_stop){0}, &value, NULL, NULL), MOIRAI_ELIMIT);
    assert_ok(pricing_simplex_add_column(lp, 7, 1, (int32_t[]){0}, (double[]){1}));
    assert_ok(pricing_simplex_solve(lp, &(util_stop){0}, &value, NULL, NULL)); /* and it recovers */
    NEAR(value, 35);
    pricing_simplex_free(lp);
    pricing_simplex_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pricing_resources_by_congestion),
        cmocka_unit_test(test_pricing_grid_of_one_bucket),
        cmocka_unit_test(test_pricing_grid_buckets_cover_the_length),
        cmocka_unit_test(test_pricing_grid_snaps_the_nearest_boundary),
        cmocka_unit_test(test_pricing_grid_keeps_what_was_snapped),
        cmocka_unit_test(test_pricing_capacity_by_hand),
        cmocka_unit_test(test_pricing_length_term_by_hand),
        cmocka_unit_test(test_pricing_duals_are_copies),
        cmocka_unit_test(test_pricing_lp_has_the_known_duals),
        cmocka_unit_test(test_pricing_lp_without_a_solution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
