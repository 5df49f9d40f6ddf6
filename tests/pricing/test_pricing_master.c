/* The master: LPs small enough to solve on paper, what they choose, and what their prices prove. */
#include <math.h>

#include "pricing/master.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"

enum { STEPS = 64 };

typedef struct fixture {
    tiny_block t;
    pricing_pricer *w;
    pricing_master *m;
    pricing_sending how;
} fixture;

static void open_master(fixture *f, const char *text)
{
    *f = (fixture){.t = tiny_block_open(text, 1)};
    decompose_block_pin(f->t.b, 0, 0);
    assert_ok(pricing_pricer_new(&f->w, f->t.b, 602));
    assert_ok(pricing_master_new(&f->m, f->t.b, STEPS));
}

static void close_master(fixture *f)
{
    pricing_master_free(f->m);
    pricing_pricer_free(f->w);
    tiny_block_close(&f->t);
}

static pricing_master_task task_of(fixture *f, pricing_form form, int64_t length)
{
    return (pricing_master_task){.pricer = f->w,
                                 .at = {.how = &f->how},
                                 .form = form,
                                 .length_ns = length,
                                 .buckets = 1,
                                 .max_rounds = 60,
                                 .converge = true};
}

/* What prices prove is recomputed here from the pricing alone. */
static bool prices_exclude(fixture *f, const pricing_master_task *task, const pricing_master_result *r)
{
    const moirai_problem *q = &f->t.b->problem;
    const pricing_grid *grid = pricing_master_grid(f->m);
    const int64_t *branch_price = r->price + schedule_resources(q) * grid->n_buckets;
    pricing_pricer_set(f->w, &task->at, grid);
    int64_t cost = pricing_pricer_cost(f->w, &(pricing_prices){.resource = r->price}, NULL, NULL);
    return cost >= PRICING_NONE ||
           cost > pricing_capacity(q, grid, r->price) + pricing_branch_term(&task->at, branch_price);
}

/* At T = 16 an operator uses 10 of A or 10 of B. The best fractional solution has one on each: 10 of 16 on both, theta
 * = 0.625, and A and B are worth the same. */
static void test_pricing_master_of_two_operators(void **state)
{
    (void)state;
    fixture f;
    pricing_master_result r;
    open_master(&f, TINY_TWO);
    pricing_master_task task = task_of(&f, PRICING_LENGTH_FORM, 16);
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_false(r.proven);
    assert_true(fabs(r.theta - 0.625) < 1e-6);
    assert_true(fabs(r.proven_part - 0.625) < 0.002);
    assert_true(r.price[0] > 0 && llabs(r.price[0] - r.price[1]) < r.price[0] / 1000);
    assert_true(fabs(pricing_master_number(f.m, 0, 0, 0) - 1) < 1e-6);
    assert_true(fabs(pricing_master_number(f.m, 0, 0, 1) - 1) < 1e-6);
    int32_t n;
    double times = 0;
    pricing_chosen_column *column = pricing_master_solution(f.m, &n);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(column[i].kind, 0);
        assert_true(column[i].device[0] == 0 ||
                    column[i].start[0] >= 2); /* on B after the tensor has come, in whole steps */
        times += column[i].times;
    }
    assert_true(fabs(times - 2) < 1e-6);
    free(column);
    close_master(&f);
}

static void test_pricing_master_proves_a_length(void **state)
{
    (void)state;
    fixture f;
    pricing_master_result r;
    open_master(&f, TINY_TWO);
    for (int64_t length = 8; length <= 18; length++) { /* one master for all, up and down */
        int64_t at = length % 2 ? length : 26 - length;
        pricing_master_task task = task_of(&f, PRICING_LENGTH_FORM, at);
        assert_ok(pricing_master_solve(&r, f.m, &task));
        assert_int_equal(r.proven, at < 16);
        if (r.proven && at >= 10)
            assert_true(prices_exclude(&f, &task, &r));
    }
    close_master(&f);
}

/* Buckets: both u are done by T - 16 or it can't be; without buckets the prices can't tell early from late. */
static void test_pricing_master_needs_buckets(void **state)
{
    (void)state;
    static const char text[] =
        "flow edge\ncongestion none\ndevice A 9\ndevice B 9\nop in 1,- > s:0\nop u 10,- s > a:3\nop v -,10 a > b:3\n"
        "op w 10,- s > c:3\nop x -,10 c > d:3\nop out 1,- b d\n";
    fixture f;
    pricing_master_result r;
    open_master(&f, text);
    pricing_master_task task = task_of(&f, PRICING_LENGTH_FORM, 30);
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_false(r.proven); /* 20 of 30 on both */
    task.buckets = 32;
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_true(r.proven);
    assert_true(prices_exclude(&f, &task, &r));
    task.length_ns = 36; /* can be done */
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_false(r.proven);
    close_master(&f);
}

/* Three operators, one tensor, T = 199. Whole numbers close it: nobody, at most one, or two and more on B. Without them
 * the LP has one and a part there. */
static void test_pricing_master_branches_close_cases(void **state)
{
    (void)state;
    fixture f;
    pricing_master_result r;
    open_master(&f, TINY_THREE);
    f.how = (pricing_sending){.fixed = true};
    pricing_master_task task = task_of(&f, PRICING_LENGTH_FORM, 199);
    task.buckets = 4;
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_true(r.proven); /* nobody receives it: 300 on A */
    f.how = (pricing_sending){.fixed = true, .n_receivers = 1, .receiver = {1}};
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_false(r.proven);
    double on_b = pricing_master_number(f.m, 0, 0, 1);
    assert_true(on_b > 1.01 && on_b < 1.99);
    assert_int_equal(pricing_master_arrival(f.m, 0), 20);
    pricing_branch branch = {.on = PRICING_NUMBER, .kind = 0, .op = 0, .device = 1, .least = 0, .most = 1};
    task.at.n_branches = 1;
    task.at.branch = &branch;
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_true(r.proven && prices_exclude(&f, &task, &r));
    branch.least = 2;
    branch.most = 3;
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_true(r.proven && prices_exclude(&f, &task, &r));
    assert_true(r.price[6 * 4] < 0); /* that of the branch, behind 4 buckets of 2 devices and 4 ports */
    task.length_ns = 200;            /* one on B: that is the plan */
    branch.least = 0;
    branch.most = 1;
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_false(r.proven);
    close_master(&f);
}

/* ---- prices on bytes ---- */

/* Ten bytes each at 2 ns per byte of A: both go to B, which then works 20: length 20 and no bytes to pay for. Lengths
 * are mixed from the ends 10 and 25: a third and two thirds. */
static void test_pricing_master_in_the_priced_form(void **state)
{
    (void)state;
    fixture f;
    pricing_master_result r;
    double spread;
    int64_t per_byte[2] = {2 * DECOMPOSE_MOST_UNITS, 0};
    open_master(&f, TINY_TWO);
    pricing_master_task task = task_of(&f, PRICING_PRICED_FORM, 25);
    task.least_ns = 10;
    task.memory_price = per_byte;
    assert_ok(pricing_master_solve(&r, f.m, &task));
    double value = (double)r.value / (double)DECOMPOSE_MOST_UNITS;
    assert_true(value <= 20 + 1e-9 && value > 20 * (1 - 6e-4));
    assert_true(fabs(pricing_master_length(f.m, &spread) - 20) < 0.05);
    assert_true(fabs(spread - 20.0 / 3) < 0.1);
    /* The same prices at the same price on bytes are worth the same; with free bytes both could be on A: less. */
    assert_int_equal(pricing_master_reprice(f.m, &task, pricing_master_grid(f.m), r.price), r.value);
    int64_t nothing[2] = {0, 0};
    task.memory_price = nothing;
    assert_true(pricing_master_reprice(f.m, &task, pricing_master_grid(f.m), r.price) < r.value);
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_true(fabs((double)r.value / (double)DECOMPOSE_MOST_UNITS - 10) < 0.01); /* one on each, 10 long */
    close_master(&f);
}

static void test_pricing_master_finds_that_nothing_fits(void **state)
{
    (void)state;
    fixture f;
    pricing_master_result r;
    open_master(&f, TINY_TWO);
    pricing_master_task task = task_of(&f, PRICING_PRICED_FORM, 9);
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_int_equal(r.value, PRICING_NONE);
    task = task_of(&f, PRICING_LENGTH_FORM, 9);
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_true(r.proven);
    close_master(&f);
}

/* Where the next solve begins is what the caller gives it: prices that prove a length prove it at once. */
static void test_pricing_master_begins_with_given_prices(void **state)
{
    (void)state;
    fixture f, g;
    pricing_master_result r, again;
    open_master(&f, TINY_TWO);
    open_master(&g, TINY_TWO);
    pricing_master_task task = task_of(&f, PRICING_LENGTH_FORM, 15);
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_true(r.proven);
    pricing_master_task other = task_of(&g, PRICING_LENGTH_FORM, 16);
    assert_ok(pricing_master_solve(&again, g.m, &other)); /* it has columns now */
    other = task_of(&g, PRICING_LENGTH_FORM, 15);
    other.max_rounds = 0;
    pricing_duals start = {*pricing_master_grid(f.m), (int64_t *)r.price, 0};
    other.start = &start;
    assert_ok(pricing_master_solve(&again, g.m, &other));
    assert_true(again.proven);
    assert_int_equal(again.rounds, 0);
    close_master(&f);
    close_master(&g);
}

static void test_pricing_units_saturate(void **state)
{
    (void)state;
    assert_int_equal(pricing_units(DECOMPOSE_MOST_UNITS, 0), 0);
    assert_int_equal(pricing_units(DECOMPOSE_MOST_UNITS, 3), 3 * DECOMPOSE_MOST_UNITS);
    assert_true(pricing_units(DECOMPOSE_MOST_UNITS, INT64_MAX) == INT64_MAX / 16);
}

/* Six operators of 10 that A cannot run, on three equal devices: one of them stands for all, with the time of three. At T
 * = 40 half of it is used; less than 20 is excluded, 20 is not, and equal devices have equal prices. */
static void test_pricing_master_of_equal_devices(void **state)
{
    (void)state;
    fixture f;
    pricing_master_result r;
    open_master(
        &f, "device A 99\ndevice B 99\ndevice C 99\ndevice D 99\nop in 1,-,-,- > s:0\nop a -,10,10,10 s > t:0\nop b "
            "-,10,10,10 s > u:0\nop c -,10,10,10 s > v:0\nop d -,10,10,10 s > w:0\nop e -,10,10,10 s > x:0\nop f "
            "-,10,10,10 s > y:0\nop out 1,-,-,- t u v w x y\n");
    pricing_master_task task = task_of(&f, PRICING_LENGTH_FORM, 40);
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_true(fabs(r.theta - 0.5) < 1e-3); /* with or without HiGHS */
    assert_true(pricing_pricer_copies(f.w, 1) == 3 && pricing_pricer_copies(f.w, 2) == 0);
    assert_int_equal(pricing_pricer_stand_in(f.w, 3), 1);
    assert_true(r.price[1] == r.price[2] && r.price[1] == r.price[3]);
    task.length_ns = 19;
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_true(r.proven && prices_exclude(&f, &task, &r));
    task.length_ns = 20;
    assert_ok(pricing_master_solve(&r, f.m, &task));
    assert_false(r.proven);
    close_master(&f);
}

/* Prices that differ on equal devices: the cheapest of them counts, whoever stands in. */
static void test_pricing_of_equal_devices_with_other_prices(void **state)
{
    (void)state;
    fixture f;
    open_master(&f, "device A 99\ndevice B 99\ndevice C 99\nop in 1,-,- > s:0\nop a -,10,10 s > t:0\nop b -,10,10 s > "
                    "u:0\nop out 1,-,- t u\n");
    pricing_grid grid;
    pricing_grid_init(&grid, 20, 1, 1);
    int64_t price[9] = {7, 5, 2};
    pricing_prices x = {.resource = price};
    pricing_pricer_set(f.w, &(pricing_case){.how = &f.how}, &grid);
    assert_int_equal(pricing_pricer_cost(f.w, &x, NULL, NULL), 2 * 10 * 2);
    price[1] = price[2] = 5;
    assert_int_equal(pricing_pricer_cost(f.w, &x, NULL, NULL), 2 * 10 * 5);
    close_master(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pricing_master_of_two_operators),
        cmocka_unit_test(test_pricing_master_of_equal_devices),
        cmocka_unit_test(test_pricing_of_equal_devices_with_other_prices),
        cmocka_unit_test(test_pricing_master_proves_a_length),
        cmocka_unit_test(test_pricing_master_needs_buckets),
        cmocka_unit_test(test_pricing_master_branches_close_cases),
        cmocka_unit_test(test_pricing_master_in_the_priced_form),
        cmocka_unit_test(test_pricing_master_finds_that_nothing_fits),
        cmocka_unit_test(test_pricing_master_begins_with_given_prices),
        cmocka_unit_test(test_pricing_units_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
