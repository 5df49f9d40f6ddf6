/* One pair: what is known at once, how cases split and close, the annealing's optimum, prices on bytes. */
#include "pair/anneal.h"
#include "pair/cases.h"
#include "pair/improve.h"
#include "pair/pair_refine.h"
#include "pair/priced/priced.h"
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
    assert_int_equal(f.x->n_cases, 1);
    assert_int_equal(f.x->block.problem.op_devices[f.x->block.entry], 1);
    assert_ok(pair_open(f.c, f.class_, 0, 0)); /* twice is once */
    assert_int_equal(f.x->n_cases, 1);
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
        assert_int_equal(f.x->n_cases, list[i].n);
        assert_int_equal(f.x->sending.how[0].n_receivers, 0);
        int32_t both = 0;
        for (int32_t j = 0; j < list[i].n; j++) {
            assert_true(f.x->sending.how[j].fixed);
            assert_int_equal(f.x->cases[j].sending, j);
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
    assert_ok(pair_cases_branch(&below, &above, 0, t.b, number));
    assert_true(below->least == 0 && below->most == 1 && above->least == 2 && above->most == 3);
    assert_true(below->on == PRICING_NUMBER && above->device == 1);
    free(above);
    pricing_branch arrival = {.on = PRICING_ARRIVAL, .device = 1, .least = 25, .most = 26};
    assert_ok(pair_cases_branch(&below, &last, 1, t.b, arrival));
    assert_true(below[1].least == 0 && below[1].most == 25 && last[1].least == 26 && last[1].most == INT64_MAX);
    assert_true(below[0].most == 1 && last[0].most == 1); /* both keep what was asked before */
    free(below);
    free(last);
    tiny_block_close(&t);
}

/* Without prices in buckets the first level excludes 15 by one price on A: the pair closes at 16, and the plan is
 * found. */
static void test_pair_cases_close_by_one_price(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_TWO);
    refine(&f, 1, true);
    assert_int_equal(f.x->plan.length_ns, 16);
    assert_int_equal(f.x->lower_ns, 16);
    assert_int_equal(pair_certified_ns(f.x), 16);
    assert_false(f.x->exhausted);
    assert_int_equal(f.x->n_cases, 1);
    assert_non_null(f.x->cases[0].proof.price);
    assert_int_equal(f.x->cases[0].proof.grid.length_ns, 15);
    tiny_pair_close(&f);
}

/* Nobody receives the tensor, or B does; the LP of that case has one and a part on B, so it is split into at most one
 * and two or more. Then all three exclude 199. */
static void test_pair_cases_split_where_the_solution_is_not_whole(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_THREE);
    refine(&f, 1, true);
    assert_int_equal(f.x->plan.length_ns, 200);
    assert_int_equal(f.x->lower_ns, 200);
    assert_int_equal(f.x->n_cases, 3);
    int32_t nobody = 0, below = 0, above = 0;
    for (int32_t i = 0; i < 3; i++) {
        const pair_case *c = &f.x->cases[i];
        const pricing_sending *how = &f.x->sending.how[c->sending];
        assert_int_equal(c->proven_ns, 200);
        if (how->n_receivers == 0) {
            nobody++;
            assert_int_equal(c->n_branches, 0);
            continue;
        }
        assert_int_equal(how->receiver[0], 1);
        assert_int_equal(c->n_branches, 1);
        assert_true(c->branch[0].on == PRICING_NUMBER && c->branch[0].kind == 0 && c->branch[0].op == 0);
        if (c->branch[0].device == 1) { /* or the other way round, on A: 0 .. 1 and 2 .. 3 as well */
            below += c->branch[0].least == 0 && c->branch[0].most == 1;
            above += c->branch[0].least == 2 && c->branch[0].most == 3;
        } else {
            below += c->branch[0].least == 2 && c->branch[0].most == 3;
            above += c->branch[0].least == 0 && c->branch[0].most == 1;
        }
    }
    assert_true(nobody == 1 && below == 1 && above == 1);
    tiny_pair_close(&f);
}

/* What is not needed is not proven: 150 is enough, and one price without cases shows it. */
static void test_pair_cases_stop_at_what_is_needed(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_THREE);
    pair_refine_task job = {.level = 1, .need_ns = 150, .prices_only = true, .effort = 1, .seed = 1};
    assert_ok(pair_refine(f.x, &job));
    assert_true(f.x->lower_ns >= 149 && f.x->lower_ns <= 151);
    assert_int_equal(f.x->n_cases, 2);
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

static void test_pair_cases_weights_sum_to_one(void **state)
{
    (void)state;
    tiny_pair f;
    double weight[6], sum = 0;
    tiny_pair_open(&f, TINY_THREE);
    pair_bound_task r = {
        .pair = f.x, .need_ns = INT64_MAX, .buckets = 2, .sent_buckets = 2, .rounds = 20, .solvers = 1};
    assert_ok(pair_bound_solver(&r, 0));
    pricing_master *m = f.x->master[0];
    assert_non_null(m);
    assert_ok(pair_bound_solver(&r, 0));
    assert_ptr_equal(f.x->master[0], m); /* once per pair and solver */
    pricing_master_task task = {.pricer = r.pricer[0],
                                .at = {.how = &f.x->sending.how[1]},
                                .form = PRICING_LENGTH_FORM,
                                .length_ns = 199,
                                .buckets = 1,
                                .max_rounds = 20,
                                .converge = true};
    pricing_master_result found;
    assert_ok(pricing_master_solve(&found, m, &task));
    pair_cases_weights(f.x, m, found.price, weight);
    for (int i = 0; i < 6; i++) {
        assert_true(weight[i] >= 0);
        sum += weight[i];
    }
    assert_true(sum > 0.999 && sum < 1.001);
    pricing_branch split = pair_cases_branch_on(f.x, 1, m, found.price);
    assert_int_equal(split.on, PRICING_NUMBER);
    assert_int_equal(split.least, 1);
    assert_int_equal(split.most, 2);
    pair_bound_clear(&r);
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
    assert_true(f.x->lower_ns < 200);
    assert_int_equal(f.x->sent_buckets, 1);
    int64_t solves = f.x->solves;
    job.need_ns = INT64_MAX;
    assert_ok(pair_refine(f.x, &job));
    assert_int_equal(f.x->lower_ns, 200);
    assert_int_equal(pair_leaves_ns(f.x), 200);
    assert_true(f.x->solves > solves);
    job.level = 2; /* other buckets: anew, and what was proven stays */
    assert_ok(pair_refine(f.x, &job));
    assert_int_equal(f.x->lower_ns, 200);
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
    assert_true(x->n_cases > PAIR_SOLVERS && x->solves > 2 * PAIR_SOLVERS);
    assert_int_equal(x->n_cases, y->n_cases);
    assert_int_equal(x->solves, y->solves);
    assert_int_equal(x->lower_ns, y->lower_ns);
    for (int32_t i = 0; i < x->n_cases; i++) {
        assert_int_equal(x->cases[i].proven_ns, y->cases[i].proven_ns);
        assert_int_equal(x->cases[i].estimate_ns, y->cases[i].estimate_ns);
        assert_int_equal(x->cases[i].n_branches, y->cases[i].n_branches);
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

/* Of five, the three of least value; equal ones in the order in which they came. */
static void test_pair_trials_are_chosen_by_value(void **state)
{
    (void)state;
    static const int64_t value[] = {7, 5, 9, 5, 1};
    pair_trial t[3];
    int32_t n = 0;
    for (int32_t i = 0; i < 5; i++)
        n = pair_trials_add(t, n, 3, i, value[i]);
    assert_true(n == 3 && t[0].index == 4 && t[1].index == 1 && t[2].index == 3);
    assert_int_equal(pair_trials_add(t, n, 3, 5, 5), 3);
    assert_int_equal(t[2].index, 3);
}

static void test_pair_trials_are_sorted_by_cost(void **state)
{
    (void)state;
    int32_t device = 0;
    pair_trial t[4] = {{.index = 0},
                       {.index = 1, .plan = {.cost = 9, .device = &device}},
                       {.index = 2, .plan = {.cost = 4, .device = &device}},
                       {.index = 3, .plan = {.cost = 9, .device = &device}}};
    pair_trials_sort(t, 4);
    assert_true(t[0].index == 2 && t[1].index == 1 && t[2].index == 3 && t[3].index == 0);
}

/* ---- prices on bytes ---- */

static void test_pair_priced_cheapest_bytes(void **state)
{
    (void)state;
    tiny_block t = tiny_block_open("device A 9\ndevice B 9\nop in 1,1 > s:1\nop x 1,1 s > t:1 mem=10\nop y 1,- s > u:1 "
                                   "mem=3\nop out 1,1 t u mem=99\n",
                                   1);
    int64_t per_byte[2] = {5, 2};
    double use[2] = {0};
    assert_int_equal(pair_priced_cheapest_bytes(t.b, per_byte, use),
                     10 * 2 + 3 * 5); /* y can't go to B; cuts count elsewhere */
    assert_true(use[0] == 3 && use[1] == 10);
    tiny_block_close(&t);
}

/* At 2 ns per byte of A: both on A cost 20 + 40, one on each 16 + 20, both on B 26. So 26 is the least, and the cases
 * come near. */
static void test_pair_priced_bound_comes_near_the_optimum(void **state)
{
    (void)state;
    tiny_pair f;
    tiny_pair_open(&f, TINY_TWO);
    refine(&f, 1, true);
    int64_t per_byte[2] = {2 * DECOMPOSE_MOST_UNITS, 0};
    pair_priced v = {.pair = f.x};
    pair_priced_task job = {.byte_price = per_byte,
                            .stamp = 1,
                            .buckets = 16,
                            .solves = 60,
                            .ceiling = pricing_units(DECOMPOSE_MOST_UNITS, 26),
                            .threads = 1};
    pair_priced_update(&v, &job);
    assert_int_equal(v.value, pricing_units(DECOMPOSE_MOST_UNITS, 16)); /* the length alone, bytes on B */
    assert_ok(pair_priced_refine(&v, &job));
    assert_true(v.value <= pricing_units(DECOMPOSE_MOST_UNITS, 26));
    assert_true(v.value >= pricing_units(DECOMPOSE_MOST_UNITS, 24));
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < v.n_cases; i++) {
        int64_t value = pair_priced_of_case(&v, &v.cases[i], per_byte, f.x->lower_ns);
        least = value < least ? value : least;
    }
    assert_int_equal(least, v.value);
    /* Other prices, no search: what was found still holds. Free bytes: the length alone is left, 16. */
    int64_t nothing[2] = {0, 0};
    pair_priced_task cheap = {.byte_price = nothing, .stamp = 2, .buckets = 16, .solves = 0, .threads = 1};
    pair_priced_update(&v, &cheap);
    assert_int_equal(v.value, pricing_units(DECOMPOSE_MOST_UNITS, 16));
    pair_priced_free(&v);
    tiny_pair_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_open_knows_path_and_first_plan),
        cmocka_unit_test(test_pair_open_lists_the_sendings),
        cmocka_unit_test(test_pair_cases_branch_leaves_nothing_out),
        cmocka_unit_test(test_pair_cases_close_by_one_price),
        cmocka_unit_test(test_pair_cases_split_where_the_solution_is_not_whole),
        cmocka_unit_test(test_pair_cases_stop_at_what_is_needed),
        cmocka_unit_test(test_pair_refine_is_certified),
        cmocka_unit_test(test_pair_cases_weights_sum_to_one),
        cmocka_unit_test(test_pair_cases_go_on_from_where_they_were),
        cmocka_unit_test(test_pair_cases_are_the_same_on_any_number_of_threads),
        cmocka_unit_test(test_pair_anneal_finds_a_known_optimum),
        cmocka_unit_test(test_pair_anneal_keeps_priorities_in_range),
        cmocka_unit_test(test_pair_anneal_pays_for_bytes),
        cmocka_unit_test(test_pair_trials_are_sorted_by_cost),
        cmocka_unit_test(test_pair_trials_are_chosen_by_value),
        cmocka_unit_test(test_pair_priced_cheapest_bytes),
        cmocka_unit_test(test_pair_priced_bound_comes_near_the_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
