/* One pair: what is known at once, how cases split and close, the annealing's optimum, prices on bytes. */
#include "pair/anneal.h"
#include "pair/case.h"
#include "pair/improve.h"
#include "pair/pair_refine.h"
#include "pair/case.h"
#include "support/check.h"
#include "support/tiny.h"
#include "support/tiny_block.h"

static void refine(tiny_pair *f, int32_t level, bool prices_only)
{
    pair_refine_task job = {
        .level = level, .need_ns = INT64_MAX, .prices_only = prices_only, .improve = true, .effort = 1, .seed = 1};
    assert_ok(pair_refine(f->x, &job));
    assert_int_equal(f->x->level, level);
}

/* ---- opening ---- */

static void test_pair_open_knows_path_and_first_plan(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_TWO);
    assert_int_equal(f.x->path_ns, 10);
    assert_int_equal(f.x->lower_ns, 10);
    assert_int_equal(f.x->plan.length_ns, 16); /* shared out: one on each */
    assert_int_equal(pair_certified_ns(f.x), 10);
    assert_int_equal(f.x->sending.n, 1); /* flow edge: nothing is shared */
    assert_false(f.x->sending.how[0].fixed);
    assert_int_equal(f.x->cases.n, 0); /* until prices are asked for */
    assert_int_equal(f.x->block.problem.op_devices[f.x->block.entry], 1);
    const pair_state *x = f.x;
    assert_ok(pair_open(f.c, f.class_, 0, 0)); /* twice is once */
    assert_ptr_equal(f.c->pair[pair_chain_index(f.c, f.class_, 0, 0)], x);
    tiny_pair_close(&f);
}

/* Who receives the shared tensor: with one port in every order, otherwise every set. */
static void test_pair_open_lists_the_sendings(void **state)
{
    (void)state;
    static const struct {
        const char *congestion;
        int32_t n;
    } list[] = {{"port", 5}, {"channel", 4}, {"none", 4}};
    for (size_t i = 0; i < 3; i++) {
        tiny_pair f;
        char text[256];
        snprintf(text, sizeof text,
                 "congestion %s\ndevice A 9\ndevice B 9\ndevice C 9\nop in 1,-,- > s:20\nop x 5,5,5 s > t:0\nop y "
                 "5,5,5 s > u:0\n"
                 "op out 1,-,- t u\n",
                 list[i].congestion);
        tiny_pair_open(&f, text);
        assert_int_equal(f.x->sending.n, list[i].n);
        assert_ok(pair_cases_begin(&f.x->cases));
        assert_int_equal(f.x->cases.n, list[i].n);
        assert_int_equal(f.x->sending.how[0].n_receivers, 0);
        int32_t both = 0;
        for (int32_t j = 0; j < list[i].n; j++) {
            assert_true(f.x->sending.how[j].fixed);
            assert_int_equal(f.x->cases.list[j].sending, j);
            both += f.x->sending.how[j].n_receivers == 2;
        }
        assert_int_equal(both, i == 0 ? 2 : 1);
        tiny_pair_close(&f);
    }
}

/* ---- cases ---- */

static void test_pair_cases_branch_leaves_nothing_out(void **state)
{
    (void)state;
    tiny_block t = tiny_block_open(TINY_THREE, 1);
    pricing_branch *below = NULL, *above, *last,
                   number = {.on = PRICING_NUMBER, .kind = 0, .op = 0, .device = 1, .least = 1, .most = 2};
    assert_ok(pair_case_branch(&below, &above, 0, t.b, number));
    assert_true(below->least == 0 && below->most == 1 && above->least == 2 && above->most == 3);
    assert_true(below->on == PRICING_NUMBER && above->device == 1);
    free(above);
    pricing_branch arrival = {.on = PRICING_ARRIVAL, .device = 1, .least = 25, .most = 26};
    assert_ok(pair_case_branch(&below, &last, 1, t.b, arrival));
    assert_true(below[1].least == 0 && below[1].most == 25 && last[1].least == 26 && last[1].most == INT64_MAX);
    assert_true(below[0].most == 1 && last[0].most == 1); /* both keep what was asked before */
    free(below);
    free(last);
    tiny_block_close(&t);
}

/* The first level excludes 15 by prices on A: the pair closes at 16, and the plan is found. */
static void test_pair_cases_close_by_prices(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_TWO);
    refine(&f, 1, true);
    assert_int_equal(f.x->plan.length_ns, 16);
    assert_int_equal(f.x->lower_ns, 16);
    assert_int_equal(f.x->leaves_ns, 16);
    assert_int_equal(pair_certified_ns(f.x), 16);
    assert_int_equal(pair_certified_otherwise_ns(f.x), 10);
    assert_false(f.x->exhausted);
    tiny_pair_close(&f);
}

/* The cases that say something of lengths of 199: all of them prove 200, and they leave nothing out. */
static void test_pair_cases_split_where_the_solution_is_not_whole(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_THREE);
    refine(&f, 1, true);
    assert_int_equal(f.x->plan.length_ns, 200);
    assert_int_equal(f.x->lower_ns, 200);
    int32_t nobody = 0, numbers = 0;
    for (int32_t i = 0; i < f.x->cases.n; i++) {
        const pair_case *c = &f.x->cases.list[i];
        const pricing_sending *how = &f.x->sending.how[c->sending];
        assert_true(c->value > pricing_units(f.x->block.unit, 199));
        if (c->least_ns > 199 || c->most_ns < 199)
            continue;
        assert_non_null(c->prices.price);
        assert_true(c->prices.grid.length_ns >= 199);
        nobody += how->n_receivers == 0;
        for (int32_t j = 0; j < c->n_branches; j++)
            numbers += c->branch[j].on == PRICING_NUMBER;
    }
    assert_true(nobody == 1 && numbers >= 2); /* at most one on B, or two and more */
    tiny_pair_close(&f);
}

/* What is not needed is not proven: 150 is enough. */
static void test_pair_cases_stop_at_what_is_needed(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_THREE);
    pair_refine_task job = {.level = 1, .need_ns = 150, .prices_only = true, .effort = 1, .seed = 1};
    assert_ok(pair_refine(f.x, &job));
    assert_true(f.x->lower_ns >= 150 && f.x->lower_ns <= 200);
    assert_true(f.x->cases.n <= 6);
    tiny_pair_close(&f);
}

/* A level closes a small pair by prices, which a certificate carries. */
static void test_pair_refine_is_certified(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_THREE);
    pair_refine_task job = {.level = 1, .need_ns = INT64_MAX, .improve = true, .effort = 1, .seed = 1};
    assert_ok(pair_refine(f.x, &job));
    assert_int_equal(f.x->lower_ns, 200);
    assert_false(f.x->exhausted);
    assert_int_equal(pair_certified_ns(f.x), 200);
    tiny_pair_close(&f);
}

static void test_pair_case_solution_is_near_its_value(void **state)
{
    (void)state;
    tiny_pair f;
    double weight[6], sum = 0, times = 0;
    pricing_chosen_column *column;
    int32_t n;
    tiny_pair_open(&f, TINY_THREE);
    refine(&f, 1, true);
    const pair_case *c = NULL;
    for (int32_t i = 0; i < f.x->cases.n; i++)
        if (f.x->cases.list[i].sending == 1 && f.x->cases.list[i].most_ns == 200)
            c = &f.x->cases.list[i];
    assert_non_null(c);
    const int64_t nothing[2] = {0, 0};
    pair_cases_task job = {.byte_price = nothing, .buckets = 4};
    assert_ok(pair_case_solution(&column, &n, weight, &f.x->cases, 0, c, &job));
    for (int i = 0; i < 6; i++) {
        assert_true(weight[i] >= 0);
        sum += weight[i];
    }
    assert_true(sum > 0.999 && sum < 1.001);
    for (int32_t i = 0; i < n; i++)
        times += column[i].times;
    assert_true(times > 2.999 && times < 3.001); /* three components of one kind */
    free(column);
    tiny_pair_close(&f);
}

/* Cases that were closed because more was not needed are open again when it is: 150 first, then all of 200. */
static void test_pair_cases_go_on_from_where_they_were(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_THREE);
    pair_refine_task job = {.level = 1, .need_ns = 150, .prices_only = true, .effort = 1, .seed = 1};
    assert_ok(pair_refine(f.x, &job));
    int64_t first = f.x->lower_ns;
    int32_t n = f.x->cases.n;
    job.need_ns = INT64_MAX;
    assert_ok(pair_refine(f.x, &job));
    assert_int_equal(f.x->lower_ns, 200);
    assert_int_equal(f.x->leaves_ns, 200);
    assert_true(first <= 200 && f.x->cases.n >= n);
    job.level = 2; /* other buckets: what was proven stays */
    assert_ok(pair_refine(f.x, &job));
    assert_int_equal(f.x->lower_ns, 200);
    tiny_pair_close(&f);
}

/* Loads that prove more than the leaves are no proof of theirs. */
static void test_pair_leaves_claim_their_own_alone(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_THREE);
    f.x->path_ns = f.x->lower_ns = 199; /* as if others had proven it */
    pair_refine_task job = {.level = 1, .need_ns = 150, .prices_only = true, .effort = 1, .seed = 1};
    assert_ok(pair_refine(f.x, &job));
    assert_int_equal(f.x->leaves_ns, 0);
    assert_int_equal(pair_certified_ns(f.x), 199);
    tiny_pair_close(&f);
}

/* Six heads on three devices: cases enough for all solvers. */
#define SIX_HEADS \
    "device A 99\ndevice B 99\ndevice C 99\nop in 1,-,- > s:40\n" \
    "op a 50,70,90 s > u1:3\nop b 50,70,90 s > u2:3\nop c 50,70,90 s > u3:3\n" \
    "op d 50,70,90 s > u4:3\nop e 50,70,90 s > u5:3\nop f 50,70,90 s > u6:3\n" \
    "op out 1,-,- u1 u2 u3 u4 u5 u6\n"

static void test_pair_cases_are_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    tiny_pair f[2];
    for (int i = 0; i < 2; i++) {
        tiny_pair_open(&f[i], SIX_HEADS);
        for (int32_t level = 1; level <= 3; level++) {
            pair_refine_task job = {.level = level,
                                    .need_ns = INT64_MAX,
                                    .prices_only = true,
                                    .effort = 0.3,
                                    .seed = 1,
                                    .threads = i ? 4 : 1};
            assert_ok(pair_refine(f[i].x, &job));
        }
    }
    const pair_state *x = f[0].x, *y = f[1].x;
    assert_true(x->cases.n > 2 * PAIR_SOLVERS);
    assert_int_equal(x->cases.n, y->cases.n);
    assert_int_equal(x->lower_ns, y->lower_ns);
    for (int32_t i = 0; i < x->cases.n; i++) {
        assert_int_equal(x->cases.list[i].value, y->cases.list[i].value);
        assert_int_equal(x->cases.list[i].n_branches, y->cases.list[i].n_branches);
    }
    tiny_pair_close(&f[0]);
    tiny_pair_close(&f[1]);
}

/* ---- annealing ---- */

/* Ten operators of 1 .. 10 ns on two equal devices, nothing to send: 55 in all, so 28 is the best that can be. */
static void test_pair_anneal_finds_a_known_optimum(void **state)
{
    (void)state;
    char text[1024];
    int n = sprintf(text, "flow edge\ncongestion none\ndevice A 99\ndevice B 99\nop in 1,1 > s:0\n");
    for (int i = 1; i <= 10; i++)
        n += sprintf(text + n, "op x%d %d,%d s > t%d:0\n", i, i, i, i);
    sprintf(text + n, "op out 1,1 t1 t2 t3 t4 t5 t6 t7 t8 t9 t10\n");
    tiny_block t = tiny_block_open(text, 1);
    moirai_sim *sim;
    pair_plan plan = {0}, again = {0};
    decompose_block_pin(t.b, 0, 0);
    assert_ok(moirai_sim_new(&sim, &t.b->problem));
    pair_anneal_task job = {.evaluations = 3000, .seed = 7};
    assert_ok(pair_anneal(&plan, t.b, &job));
    assert_int_equal(plan.length_ns, 28);
    assert_int_equal(plan.cost, pricing_units(DECOMPOSE_MOST_UNITS, 28));
    assert_int_equal(moirai_sim_replay(sim, plan.device, plan.order, plan.n_order), 28); /* the plan is what it says */
    assert_ok(pair_anneal(&again, t.b, &job));
    assert_memory_equal(plan.device, again.device, sizeof *plan.device * (size_t)t.b->problem.n_ops); /* by its seed */
    pair_plan_free(&plan);
    pair_plan_free(&again);
    moirai_sim_free(sim);
    tiny_block_close(&t);
}

/* Bytes of A at 100 ns: everything goes to B, however long it takes there. */
/* On one device no order matters, so every shift of a component is taken, and distances double again and again. */
static void test_pair_anneal_keeps_priorities_in_range(void **state)
{
    (void)state;
    char text[4096];
    int n = sprintf(text, "flow edge\ncongestion none\ndevice A 99\nop in 1 > s:0\n");
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 10; j++)
            n += sprintf(text + n, j ? "op x%d 1 t%d > t%d:0\n" : "op x%d 1 s%.0d > t%d:0\n", 10 * i + j,
                         j ? 10 * i + j - 1 : 0, 10 * i + j);
    sprintf(text + n, "op out 1 t9 t19 t29 t39\n");
    tiny_block t = tiny_block_open(text, 1);
    pair_plan plan = {0};
    decompose_block_pin(t.b, 0, 0);
    pair_anneal_task job = {.evaluations = 20000, .seed = 7};
    assert_ok(pair_anneal(&plan, t.b, &job)); /* an overflow ends it where that is looked for */
    assert_int_equal(plan.length_ns, 40);
    pair_plan_free(&plan);
    tiny_block_close(&t);
}

static void test_pair_anneal_pays_for_bytes(void **state)
{
    (void)state;
    tiny_block t = tiny_block_open(TINY_TWO, 1);
    pair_plan plan = {0};
    int64_t per_byte[2] = {100 * DECOMPOSE_MOST_UNITS, 0};
    decompose_block_pin(t.b, 0, 0);
    pair_anneal_task job = {.evaluations = 500, .seed = 7, .memory_price = per_byte};
    assert_ok(pair_anneal(&plan, t.b, &job));
    assert_int_equal(plan.length_ns, 26);
    assert_int_equal(plan.cost, pricing_units(DECOMPOSE_MOST_UNITS, 26));
    assert_true(plan.device[1] == 1 && plan.device[2] == 1);
    pair_plan_free(&plan);
    tiny_block_close(&t);
}

/* ---- prices on bytes ---- */

static void test_pair_cheapest_bytes(void **state)
{
    (void)state;
    tiny_block t = tiny_block_open("device A 9\ndevice B 9\nop in 1,1 > s:1\nop x 1,1 s > t:1 mem=10\nop y 1,- s > u:1 "
                                   "mem=3\nop out 1,1 t u mem=99\n",
                                   1);
    int64_t per_byte[2] = {5, 2};
    double use[2] = {0};
    assert_int_equal(pair_cheapest_bytes(t.b, per_byte, use),
                     10 * 2 + 3 * 5); /* y can't go to B; cuts count elsewhere */
    assert_true(use[0] == 3 && use[1] == 10);
    tiny_block_close(&t);
}

/* At 2 ns per byte of A: both on A cost 20 + 40, one on each 16 + 20, both on B 26. So 26 is the least, and the cases
 * come near. */
static void test_pair_cases_bound_comes_near_the_optimum(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_TWO);
    refine(&f, 1, true);
    int64_t per_byte[2] = {2 * DECOMPOSE_MOST_UNITS, 0};
    pair_cases v = {.pair = f.x};
    pair_cases_task job = {.byte_price = per_byte,
                           .stamp = 1,
                           .buckets = 16,
                           .solves = 60,
                           .ceiling = pricing_units(DECOMPOSE_MOST_UNITS, 26),
                           .threads = 1};
    pair_cases_update(&v, &job);
    assert_int_equal(v.value, pricing_units(DECOMPOSE_MOST_UNITS, 16)); /* the length alone, bytes on B */
    assert_ok(pair_cases_refine(&v, &job));
    assert_true(v.value <= pricing_units(DECOMPOSE_MOST_UNITS, 26));
    assert_true(v.value >= pricing_units(DECOMPOSE_MOST_UNITS, 24));
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < v.n; i++) {
        int64_t value = pair_case_value(&v, &v.list[i], per_byte);
        least = value < least ? value : least;
    }
    assert_int_equal(least, v.value);
    /* Other prices, no search: what was found still holds. Free bytes: the length alone is left, 16. */
    int64_t nothing[2] = {0, 0};
    pair_cases_task cheap = {.byte_price = nothing, .stamp = 2, .buckets = 16, .solves = 0, .threads = 1};
    pair_cases_update(&v, &cheap);
    assert_int_equal(v.value, pricing_units(DECOMPOSE_MOST_UNITS, 16));
    pair_cases_free(&v);
    tiny_pair_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_open_knows_path_and_first_plan),
        cmocka_unit_test(test_pair_open_lists_the_sendings),
        cmocka_unit_test(test_pair_cases_branch_leaves_nothing_out),
        cmocka_unit_test(test_pair_cases_close_by_prices),
        cmocka_unit_test(test_pair_cases_split_where_the_solution_is_not_whole),
        cmocka_unit_test(test_pair_cases_stop_at_what_is_needed),
        cmocka_unit_test(test_pair_refine_is_certified),
        cmocka_unit_test(test_pair_case_solution_is_near_its_value),
        cmocka_unit_test(test_pair_leaves_claim_their_own_alone),
        cmocka_unit_test(test_pair_cases_go_on_from_where_they_were),
        cmocka_unit_test(test_pair_cases_are_the_same_on_any_number_of_threads),
        cmocka_unit_test(test_pair_anneal_finds_a_known_optimum),
        cmocka_unit_test(test_pair_anneal_keeps_priorities_in_range),
        cmocka_unit_test(test_pair_anneal_pays_for_bytes),
        cmocka_unit_test(test_pair_cheapest_bytes),
        cmocka_unit_test(test_pair_cases_bound_comes_near_the_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
