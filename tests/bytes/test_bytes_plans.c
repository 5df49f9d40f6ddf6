/* Plans of a pair at prices on bytes: what they cost, which is picked, and paths through the chain at prices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/bytes_state.h"
#include "pair/pair_refine.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"

typedef struct fixture {
    moirai_problem *p;
    pair_chain *c;
    bytes_prices *m;
} fixture;

static void open_prices(fixture *f, const char *text)
{
    f->p = tiny_problem(text);
    assert_ok(pair_chain_new(&f->c, f->p));
    assert_ok(pair_chain_open_all(f->c, 1, &(util_stop){0}));
    assert_ok(bytes_prices_new(&f->m, f->c));
}

static void close_prices(fixture *f)
{
    bytes_prices_free(f->m);
    pair_chain_free(f->c);
    moirai_problem_free(f->p);
}

/* The block between the cuts, both on A. Its own plan: one on each device, 16 long, ten bytes each. */
static void test_bytes_block_plans_cost_length_and_bytes(void **state)
{
    (void)state;
    fixture f;
    int64_t length, price[2] = {0, 0};
    int8_t pick = 9;
    open_prices(&f, TINY_TWO);
    int64_t pair = pair_chain_index(f.c, f.c->s->block_class[1], 0, 0);
    const int64_t *bytes = bytes_block_plan_at(f.m, pair, -1, &length);
    assert_int_equal(length, 16);
    assert_true(bytes[0] == 10 && bytes[1] == 10);
    assert_int_equal(bytes_block_plan_cost(f.m, pair, price, &pick), pricing_units(DECOMPOSE_MOST_UNITS, 16));
    assert_int_equal(pick, -1); /* the pair's own */
    price[0] = 3 * DECOMPOSE_MOST_UNITS;
    assert_int_equal(bytes_block_plan_cost(f.m, pair, price, &pick), pricing_units(DECOMPOSE_MOST_UNITS, 16 + 30));
    close_prices(&f);
}

/* At 3 ns per byte of A everything on B is cheaper: 26 against 46; the search finds it and it is kept once. */
static void test_bytes_block_plans_are_searched_at_prices(void **state)
{
    (void)state;
    fixture f;
    int64_t length;
    int8_t pick;
    double dual_ns[2] = {300, 0};
    open_prices(&f, TINY_TWO);
    int64_t pair = pair_chain_index(f.c, f.c->s->block_class[1], 0, 0);
    bytes_set_duals(f.m, dual_ns); /* 100 bytes on A: 3 ns each */
    assert_int_equal(f.m->now.price[0], 3 * DECOMPOSE_MOST_UNITS);
    bytes_plan_task job = {.evaluations = 600, .upper_ns = 30, .rounds = 4, .searches = 2, .seed = 1, .threads = 1};
    assert_ok(bytes_block_plan_add(f.m, (int32_t)pair, &job));
    assert_int_equal(bytes_block_plan_cost(f.m, pair, f.m->now.price, &pick), pricing_units(DECOMPOSE_MOST_UNITS, 26));
    assert_true(pick >= 0);
    const int64_t *bytes = bytes_block_plan_at(f.m, pair, pick, &length);
    assert_true(length == 26 && bytes[0] == 0 && bytes[1] == 20);
    int32_t before = f.m->pair[pair].n_plans;
    assert_ok(bytes_block_plan_add(f.m, (int32_t)pair, &job));
    assert_int_equal(f.m->pair[pair].n_plans, before); /* the same again is not kept */
    close_prices(&f);
}

/* Between cuts on these devices. */
static int64_t way_between(bytes_prices *m, int32_t first, int32_t last, int32_t entry, int32_t exit)
{
    m->at.device[first - 1] = entry;
    m->at.device[last] = exit;
    return bytes_cheapest_path(m, first, last);
}

/* Four in a row on A (10 ns) and B (30 ns), ten bytes each: the cheapest path at a price, whole and in windows. */
static void test_bytes_paths_at_prices(void **state)
{
    (void)state;
    static const struct {
        int64_t per_byte_ns, cost_ns;
    } list[] = {{0, 40}, {1, 80}, {2, 120}, {3, 120}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        fixture f;
        open_prices(&f, "device A 20\ndevice B 100\nop a 10,30 mem=10 > s:0\nop b 10,30 s mem=10 > t:0\nop c 10,30 t "
                        "mem=10 > u:0\nop d 10,30 u mem=10\n");
        f.m->now.price[0] = list[i].per_byte_ns * DECOMPOSE_MOST_UNITS;
        for (int64_t k = 0; k < pair_chain_count(f.c); k++)
            f.m->work.pair_cost[k] = 0;
        assert_int_equal(bytes_cheapest_path(f.m, 0, f.c->s->n_blocks - 1), list[i].cost_ns * DECOMPOSE_MOST_UNITS);
        for (int32_t k = 0; k < 4; k++)
            assert_true(list[i].per_byte_ns == 2 || f.m->at.device[k] == (list[i].per_byte_ns > 2));
        /* Between the first cut on A and the third on B, the second in between: the ends are not paid for. */
        assert_int_equal(way_between(f.m, 1, 2, 0, 1),
                         (10 + 10 * list[i].per_byte_ns < 30 ? 10 + 10 * list[i].per_byte_ns : 30) *
                             DECOMPOSE_MOST_UNITS);
        for (int64_t k = 0; k < pair_chain_count(f.c); k++)
            f.m->work.pair_cost[k] = INT64_MAX;
        assert_true(bytes_cheapest_path(f.m, 0, f.c->s->n_blocks - 1) == INT64_MAX); /* no way through */
        close_prices(&f);
    }
}

/* Prices stay within what the pricing can add up, whatever the duals. */
static void test_bytes_duals_are_bounded(void **state)
{
    (void)state;
    fixture f;
    double huge[2] = {1e300, -5};
    open_prices(&f, TINY_TIGHT);
    int64_t stamp = f.m->now.stamp;
    bytes_set_duals(f.m, huge);
    assert_true(f.m->now.price[0] > 0 && (double)f.m->now.price[0] * 10 < 1e18);
    assert_int_equal(f.m->now.price[1], 0);
    assert_true(f.m->now.stamp != stamp); /* other prices: what was solved for the old ones is known as such */
    close_prices(&f);
}

/* A tensor that jumps from a over two blocks to e takes 7 ns; d, which takes 3, lies between the first block and e. Where d
 * reads it as well, it is in the first block's own problem. */
static void test_bytes_edges_over_cuts_are_late_where_devices_change(void **state)
{
    (void)state;
    static const struct {
        const char *also;
        int64_t first_ns, second_ns;
    } list[] = {{"", 4, 7}, {" r", 0, 7}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        fixture f;
        char text[256];
        snprintf(text, sizeof text,
                 "device A 100\ndevice B 100\nop a 1,1 > s:2 r:7\nop b 10,10 s > t:0\nop c 10,10 s > u:0\n"
                 "op d 3,3 t u%s > v:0\nop e 1,1 v r\n",
                 list[i].also);
        open_prices(&f, text);
        const int64_t *first = f.m->jump.ns + 4, *second = f.m->jump.ns + 8;             /* of blocks, not of classes */
        assert_true(first[0] == 0 && first[3] == 0 && second[0] == 0 && second[3] == 0); /* no change of device */
        assert_true(first[1] == list[i].first_ns && first[2] == list[i].first_ns);
        assert_true(second[1] == list[i].second_ns && second[2] == list[i].second_ns);
        close_prices(&f);
    }
}

/* Two blocks of one class; r leads over the second alone, and only there a change of device is late. */
static void test_bytes_edges_over_cuts_are_those_of_the_block(void **state)
{
    (void)state;
    fixture f;
    open_prices(&f,
                "device A 100\ndevice B 100\nop a 1,1 > s:2\nop b 10,10 s > t:0\nop c 10,10 s > u:0\n"
                "op d 1,1 t u > v:2 r:7\nop e 10,10 v > w:0\nop f 10,10 v > x:0\nop g 1,1 w x > y:0\nop h 1,1 y r\n");
    const int64_t *first = f.m->jump.ns + 4, *second = f.m->jump.ns + 8;
    assert_int_equal(f.c->s->block_class[1], f.c->s->block_class[2]);
    assert_true(first[1] == 0 && first[2] == 0);
    assert_true(second[1] == 6 && second[2] == 6); /* 7 less g, which runs meanwhile */
    for (int64_t k = 0; k < pair_chain_count(f.c); k++)
        f.m->work.pair_cost[k] = 0;
    int64_t without = way_between(f.m, 2, 2, 0, 1);
    f.m->jump.counted = true;
    assert_int_equal(way_between(f.m, 1, 1, 0, 1), without);
    assert_int_equal(way_between(f.m, 2, 2, 0, 1), without + 6 * DECOMPOSE_MOST_UNITS);
    bytes_bound_path(f.m, 1);
    assert_false(f.m->jump.counted); /* bounds do not count them */
    close_prices(&f);
}

/* The same two blocks where there is no room for rows of their own: the mean of 0 and 6. */
static void test_bytes_edges_over_cuts_by_class(void **state)
{
    (void)state;
    fixture f;
    open_prices(&f,
                "device A 100\ndevice B 100\nop a 1,1 > s:2\nop b 10,10 s > t:0\nop c 10,10 s > u:0\n"
                "op d 1,1 t u > v:2 r:7\nop e 10,10 v > w:0\nop f 10,10 v > x:0\nop g 1,1 w x > y:0\nop h 1,1 y r\n");
    assert_ok(bytes_find_jumps(f.m, 0));
    for (int32_t block = 1; block <= 2; block++) {
        assert_int_equal(f.m->jump.row[block], f.c->s->block_class[block]);
        assert_true(bytes_late_ns(f.m, block, 0, 1) == 3 && bytes_late_ns(f.m, block, 1, 0) == 3);
        assert_true(bytes_late_ns(f.m, block, 0, 0) == 0 && bytes_late_ns(f.m, block, 1, 1) == 0);
    }
    close_prices(&f);
}

#define LAYERS 5
#define HEADS 6

/* Layers of heads that read one tensor, of which A can take a half. */
static void write_layers(char *text, size_t size)
{
    int n = snprintf(text, size, "device A %d\ndevice B 9999\nop c0 5,5 > t0:3\n", LAYERS * HEADS * 5);
    for (int32_t i = 0; i < LAYERS; i++) {
        for (int32_t j = 0; j < HEADS; j++)
            n += snprintf(text + n, size - (size_t)n, "op h%d_%d %d,%d t%d mem=10 > r%d_%d:2\n", i, j, 10 + j % 2, 25,
                          i, i, j);
        n += snprintf(text + n, size - (size_t)n, "op c%d 5,5", i + 1);
        for (int32_t j = 0; j < HEADS; j++)
            n += snprintf(text + n, size - (size_t)n, " r%d_%d", i, j);
        n += snprintf(text + n, size - (size_t)n, " > t%d:3\n", i + 1);
    }
}

/* Two rounds of plans and a bound between them. */
static int64_t search(fixture *f, int32_t threads, int32_t *devices)
{
    bytes_plan_task job = {
        .evaluations = 200, .upper_ns = 500, .rounds = 18, .searches = 6, .seed = 3, .threads = threads};
    bytes_bound_task bound = {.upper_ns = 500, .rounds = 1, .buckets = 4, .solves = 4, .threads = threads};
    int64_t length = 0, lower;
    const int32_t *cut_device;
    const pair_plan *const *block_plan;
    for (int32_t i = 0; i < 2; i++) {
        assert_ok(bytes_plan_find(&length, &cut_device, &block_plan, f->m, &job));
        assert_ok(bytes_bound(&lower, f->m, &bound));
        assert_true(lower <= length);
    }
    memcpy(devices, cut_device, sizeof *devices * (size_t)f->c->s->n_cuts);
    return length;
}

static void test_bytes_plans_are_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    char text[8192];
    int64_t length[2];
    int32_t devices[2][64] = {{0}};
    write_layers(text, sizeof text);
    for (int32_t i = 0; i < 2; i++) {
        fixture f;
        open_prices(&f, text);
        assert_true(f.c->s->n_cuts <= 64);
        length[i] = search(&f, i ? 3 : 1, devices[i]);
        close_prices(&f);
    }
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(devices[0], devices[1], sizeof devices[0]);
}

#define SACK 40       /* operators in a row */
#define SACK_ROOM 397 /* bytes of A */

/* The least time of a row of operators of which those on A fit into it: a knapsack, by dynamic programming. */
static int64_t sack_ns(const int32_t *a_ns, const int32_t *b_ns, const int32_t *bytes)
{
    int64_t least[SACK_ROOM + 1] = {0};
    for (int32_t i = 0; i < SACK; i++)
        for (int32_t room = SACK_ROOM; room >= 0; room--) {
            int64_t on_b = least[room] + b_ns[i];
            least[room] = room >= bytes[i] ? UTIL_MIN(on_b, least[room - bytes[i]] + a_ns[i]) : on_b;
        }
    return least[SACK_ROOM];
}

/* Rows of operators without transfers: the path fits, and is the best that does but for a hair. */
static void test_bytes_plans_fill_the_memory(void **state)
{
    (void)state;
    util_rng rng;
    util_rng_seed(&rng, 5);
    for (int32_t round = 0; round < 5; round++) {
        char text[64 * SACK];
        int32_t a_ns[SACK], b_ns[SACK], bytes[SACK];
        int n = snprintf(text, sizeof text, "device A %d\ndevice B 9999\n", SACK_ROOM);
        for (int32_t i = 0; i < SACK; i++) {
            a_ns[i] = 100 + (int32_t)util_rng_below(&rng, 100);
            bytes[i] = 10 + (int32_t)util_rng_below(&rng, 30);
            b_ns[i] = a_ns[i] + 10 * bytes[i] + (int32_t)util_rng_below(&rng, 40);
            char in[16] = "";
            if (i > 0)
                snprintf(in, sizeof in, " t%d", i - 1);
            n += snprintf(text + n, sizeof text - (size_t)n, "op o%d %d,%d%s mem=%d > t%d:0\n", i, a_ns[i], b_ns[i], in,
                          bytes[i], i);
        }
        fixture f;
        open_prices(&f, text);
        bytes_plan_task job = {.evaluations = 10, .upper_ns = 1000000, .rounds = 12, .seed = 1, .threads = 1};
        int64_t length;
        const int32_t *cut_device;
        const pair_plan *const *block_plan;
        assert_ok(bytes_plan_find(&length, &cut_device, &block_plan, f.m, &job));
        int64_t best = sack_ns(a_ns, b_ns, bytes);
        assert_in_range(length, best, best + best / 200);
        close_prices(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_block_plans_cost_length_and_bytes),
        cmocka_unit_test(test_bytes_block_plans_are_searched_at_prices),
        cmocka_unit_test(test_bytes_paths_at_prices),
        cmocka_unit_test(test_bytes_duals_are_bounded),
        cmocka_unit_test(test_bytes_edges_over_cuts_are_late_where_devices_change),
        cmocka_unit_test(test_bytes_edges_over_cuts_are_those_of_the_block),
        cmocka_unit_test(test_bytes_edges_over_cuts_by_class),
        cmocka_unit_test(test_bytes_plans_are_the_same_on_any_number_of_threads),
        cmocka_unit_test(test_bytes_plans_fill_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
