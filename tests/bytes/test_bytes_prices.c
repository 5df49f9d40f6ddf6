/* Prices on memory: the Lagrangian bound, its master and its plans, on problems whose best prices are known. */
#include <math.h>

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

static int64_t bound_of(fixture *f, int32_t rounds)
{
    int64_t lower;
    bytes_bound_task job = {.upper_ns = 60, .rounds = rounds, .buckets = 8, .solves = 20, .threads = 1};
    assert_ok(bytes_bound(&lower, f->m, &job));
    return lower;
}

/* ---- the bound ---- */

/* Two operators of 10 bytes, 10 ns on A and 30 on B; A has room for one. At 2 ns per byte both cost 30 anywhere, less
 * 20 for A: 40, and that is the best plan. Any other price proves less: 20 for nothing, 30 at 1 or 3 ns. */
static void test_bytes_bound_of_a_chain_is_the_optimum(void **state)
{
    (void)state;
    fixture f;
    open_prices(&f, TINY_TIGHT);
    assert_int_equal(pair_chain_path(f.c, PAIR_CHAIN_LOWER, NULL), 20);
    assert_int_equal(bound_of(&f, 12), 40);
    assert_true(fabs(f.m->search.best_dual_ns[0] - 20) < 0.01); /* of A's ten bytes */
    assert_true(f.m->search.best_dual_ns[1] == 0);
    assert_int_equal(bound_of(&f, 0), 40); /* what was found stays */
    close_prices(&f);
}

/* Pairs that were not opened in time have no block: they cost nothing, and nothing more can be found out about them. */
static void test_bytes_bound_with_pairs_that_are_not_open(void **state)
{
    (void)state;
    fixture f;
    f.p = tiny_problem(TINY_TIGHT);
    assert_ok(pair_chain_new(&f.c, f.p));
    assert_ok(bytes_prices_new(&f.m, f.c));
    int64_t bound = bound_of(&f, 12);
    assert_true(bound >= 0 && bound <= 40);
    close_prices(&f);
}

static void test_bytes_bound_at_given_prices(void **state)
{
    (void)state;
    static const struct {
        int64_t per_byte_ns, bound_ns;
    } list[] = {{0, 20}, {1, 30}, {2, 40}, {3, 30}, {4, 20}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        fixture f;
        open_prices(&f, TINY_TIGHT);
        double dual_ns[2] = {(double)list[i].per_byte_ns * 10, 0};
        bytes_set_duals(f.m, dual_ns);
        assert_int_equal(f.m->now.price[0], list[i].per_byte_ns * DECOMPOSE_MOST_UNITS);
        assert_int_equal(f.m->now.price[1], 0);
        int64_t path = bytes_bound_path(f.m, 1);
        assert_int_equal(path, (list[i].bound_ns + 10 * list[i].per_byte_ns) * DECOMPOSE_MOST_UNITS);
        int64_t value[64] = {0}; /* nothing happens between the cuts */
        assert_int_equal(bytes_proven_ns(f.m, value), list[i].bound_ns);
        close_prices(&f);
    }
}

/* Memory that is enough has no price. */
static void test_bytes_bound_where_memory_does_not_bind(void **state)
{
    (void)state;
    fixture f;
    open_prices(&f, "device A 20\ndevice B 100\nop a 10,30 mem=10 > s:0\nop b 10,30 s mem=10\n");
    assert_int_equal(bound_of(&f, 12), 20);
    close_prices(&f);
}

/* Four operators that need 40 bytes in all, on devices of 10, 20 and 10 that take 10, 20 and 40 ns: one, two and one is
 * the best, 10 + 20 + 20 + 40; the LP agrees, since it is whole. */
static void test_bytes_bound_on_three_devices(void **state)
{
    (void)state;
    fixture f;
    open_prices(&f, "device A 10\ndevice B 20\ndevice C 10\nop a 10,20,40 mem=10 > s:0\nop b 10,20,40 s mem=10 > t:0\n"
                    "op c 10,20,40 t mem=10 > u:0\nop d 10,20,40 u mem=10\n");
    int64_t bound = bound_of(&f, 40);
    assert_true(bound >= 89 && bound <= 90);
    close_prices(&f);
}

/* A block of two between cuts on A, 10 bytes each, and A has room for neither: both on B, 26 between the cuts, 28 in
 * all. */
static void test_bytes_bound_of_a_block(void **state)
{
    (void)state;
    fixture f;
    char text[512];
    snprintf(text, sizeof text, "%s", TINY_TWO);
    memcpy(strstr(text, "device A 100"), "device A 000", 12);
    open_prices(&f, text);
    assert_int_equal(pair_chain_path(f.c, PAIR_CHAIN_LOWER, NULL), 12);
    int64_t bound = bound_of(&f, 20);
    assert_true(bound >= 26 && bound <= 28);
    bytes_bound_task job = {.upper_ns = 60, .rounds = 1, .buckets = 8, .solves = 20, .threads = 1};
    assert_ok(bytes_settle(f.m, &job)); /* the proof can be shown again */
    int64_t value[64];
    for (int32_t i = 0; i < f.c->s->n_classes * 4; i++)
        value[i] = pair_chain_get(f.c, i)->open ? bytes_priced_at(f.m, i)->value : 0;
    assert_true(bytes_proven_ns(f.m, value) >= bound);
    assert_ptr_equal(bytes_prices_per_byte(f.m), f.m->now.price);
    close_prices(&f);
}

/* ---- the master ---- */

/* Two paths: 20 ns with 20 bytes on A, 60 ns with none; A has 10. Half of each fits: 40 ns, and A's memory is worth 20.
 */
static void test_bytes_master_by_hand(void **state)
{
    (void)state;
    fixture f;
    bytes_master x = {0};
    double dual_ns[2];
    open_prices(&f, TINY_TIGHT);
    assert_ok(bytes_master_add(&x, f.m, (bytes_path){.time_ns = 20, .use = {20, 0}}, f.m->at.device, NULL));
    assert_ok(bytes_master_add(&x, f.m, (bytes_path){.time_ns = 60, .use = {0, 20}}, f.m->at.device, NULL));
    assert_ok(bytes_master_solve(f.m, &x, 1, 1000, dual_ns));
    assert_true(fabs(dual_ns[0] - 20) < 1e-6 && fabs(dual_ns[1]) < 1e-6); /* limits are moved by some 1e-7 */
    assert_true(fabs(x.path[0].part - 0.5) < 1e-6 && fabs(x.path[1].part - 0.5) < 1e-6);
    assert_ok(bytes_master_solve(f.m, &x, 0.5, 1000, dual_ns)); /* half the room */
    assert_true(fabs(x.path[0].part - 0.25) < 1e-6);
    bytes_master_free(&x);
    close_prices(&f);
}

/* ---- plans ---- */

static void test_bytes_plan_puts_one_on_each(void **state)
{
    (void)state;
    fixture f;
    int64_t length;
    const int32_t *device;
    const pair_plan *const *plan;
    open_prices(&f, TINY_TIGHT);
    bytes_plan_task job = {.evaluations = 100, .upper_ns = 60, .rounds = 12, .searches = 4, .seed = 1, .threads = 1};
    assert_ok(bytes_plan_find(&length, &device, &plan, f.m, &job));
    assert_int_equal(length, 40);
    assert_int_equal(device[0] + device[1], 1);
    close_prices(&f);
}

/* Six of 10 bytes and 10 or 30 ns; A holds two of them: 2 * 10 + 4 * 30. Nothing fits where the devices are too small.
 */
static void test_bytes_plan_fills_the_fast_device(void **state)
{
    (void)state;
    static const struct {
        const char *b;
        int64_t length_ns;
    } list[] = {{"100", 140}, {"40", 140}, {"30", INT64_MAX}};
    for (size_t i = 0; i < 3; i++) {
        fixture f;
        char text[512];
        int64_t length;
        const int32_t *device;
        const pair_plan *const *plan;
        int n = snprintf(text, sizeof text, "device A 25\ndevice B %s\nop o0 10,30 mem=10 > t0:0\n", list[i].b);
        for (int j = 1; j < 6; j++)
            n += snprintf(text + n, sizeof text - (size_t)n, "op o%d 10,30 t%d mem=10 > t%d:0\n", j, j - 1, j);
        open_prices(&f, text);
        bytes_plan_task job = {
            .evaluations = 100, .upper_ns = 180, .rounds = 20, .searches = 4, .seed = 1, .threads = 1};
        assert_ok(bytes_plan_find(&length, &device, &plan, f.m, &job));
        assert_true(length == list[i].length_ns);
        int32_t on_a = 0;
        for (int j = 0; j < 6 && length != INT64_MAX; j++)
            on_a += device[j] == 0;
        assert_int_equal(on_a, length == INT64_MAX ? 0 : 2);
        close_prices(&f);
    }
}

/* What a pair is worth at other prices can be asked without going there, and paths of the bound's master are measured
 * again by it: each promises what its pairs are worth at its own prices. */
static void test_bytes_values_at_other_prices(void **state)
{
    (void)state;
    fixture f;
    double use[MOIRAI_MAX_DEVICES], dual_ns[2] = {150, 20};
    int64_t price[2];
    open_prices(&f, TINY_TWO);
    bound_of(&f, 4);
    int64_t pair = pair_chain_index(f.c, f.c->s->block_class[1], 0, 0), stamp = f.m->now.stamp;
    pair_priced *v = &f.m->pair[pair].priced;
    int64_t value = v->value;
    assert_true(v->n_cases > 0);
    assert_int_equal(pair_priced_value_at(v, v->byte_price, use), value);
    for (int32_t k = 0; k < 2; k++) /* of 100 bytes */
        price[k] = (int64_t)(dual_ns[k] / 100 * DECOMPOSE_MOST_UNITS);
    int64_t there = pair_priced_value_at(v, price, use);
    assert_true(v->value == value && f.m->now.stamp == stamp && there > value); /* bytes cost more */
    assert_true(fabs(use[0] + use[1] - 20) < 1e-6 || use[0] + use[1] == 0); /* of an LP solution, if there was one */
    bytes_set_duals(f.m, dual_ns);
    bytes_bound_path(f.m, 1);
    assert_int_equal(v->value, there);
    close_prices(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_bound_of_a_chain_is_the_optimum),
        cmocka_unit_test(test_bytes_bound_with_pairs_that_are_not_open),
        cmocka_unit_test(test_bytes_bound_at_given_prices),
        cmocka_unit_test(test_bytes_bound_where_memory_does_not_bind),
        cmocka_unit_test(test_bytes_bound_on_three_devices),
        cmocka_unit_test(test_bytes_bound_of_a_block),
        cmocka_unit_test(test_bytes_values_at_other_prices),
        cmocka_unit_test(test_bytes_master_by_hand),
        cmocka_unit_test(test_bytes_plan_puts_one_on_each),
        cmocka_unit_test(test_bytes_plan_fills_the_fast_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
