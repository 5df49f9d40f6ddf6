/* The search over the whole graph: its quick simulation, and what it makes of plans. */
#include <moirai/moirai.h>

#include "place/moirai/whole/whole_anneal.h"
#include "place/moirai/whole/whole_sim.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "util/util.h"

static int32_t draw(util_rng *rng, int32_t n)
{
    return (int32_t)util_rng_below(rng, (uint32_t)n);
}

/* A random change of device, order, or both. */
static void change(place_whole *w, util_rng *rng)
{
    int32_t op = draw(rng, w->n), what = draw(rng, 4), by = 1 + draw(rng, 12);
    place_whole_begin(w);
    if (what == 0 || what == 3)
        place_whole_move(w, op, draw(rng, w->K));
    if (what == 1 || what == 3)
        place_whole_shift(w, op, UTIL_MAX(w->position[op] - by, 0));
    if (what == 2)
        place_whole_shift(w, op, UTIL_MIN(w->position[op] + by, w->n - 1));
}

static void assert_same_state(const place_whole *a, const place_whole *b)
{
    size_t n = (size_t)a->n;
    assert_int_equal(a->makespan_ns, b->makespan_ns);
    assert_memory_equal(a->finish_ns, b->finish_ns, n * sizeof *a->finish_ns);
    assert_memory_equal(a->bytes, b->bytes, (size_t)a->K * sizeof *a->bytes);
    assert_memory_equal(a->mark_ns, b->mark_ns, (size_t)a->n_marks * (size_t)a->n_lines * sizeof *a->mark_ns);
}

static void assert_precedence(const place_whole *w)
{
    for (int32_t i = 0; i < w->n; i++) {
        assert_int_equal(w->order[w->position[i]], i);
        for (int32_t j = w->in.off[i]; j < w->in.off[i + 1]; j++)
            assert_true(w->position[w->in.producer[j]] < w->position[i]);
    }
}

/* Trials, accepted and rejected at random limits: the state is always what a simulation from nothing would give, and
 * its tasks replay to at most its makespan. */
static void follow(const moirai_problem *p, uint64_t seed)
{
    place_whole *w, *fresh;
    moirai_sim *sim;
    moirai_plan *plan;
    moirai_place_options o;
    moirai_place_options_init(&o);
    if (moirai_place(&plan, p, "heft", &o))
        return; /* does not fit */
    util_rng rng;
    util_rng_seed(&rng, seed);
    moirai_task *task = malloc(sizeof *task * (size_t)(p->n_ops + p->n_edges + 1));
    assert_ok(place_whole_new(&w, p, NULL));
    assert_ok(place_whole_new(&fresh, p, NULL));
    assert_ok(moirai_sim_new(&sim, p));
    place_whole_set(w, plan->op_device, p->topo);
    for (int i = 0; i < 200; i++) {
        change(w, &rng);
        int64_t limit = w->makespan_ns + (draw(&rng, 2) ? w->makespan_ns / (1 + draw(&rng, 20)) : 0);
        int64_t length = place_whole_try(w, limit);
        assert_true(length == INT64_MAX || length <= limit);
        length == INT64_MAX ? place_whole_reject(w) : place_whole_accept(w);
        place_whole_set(fresh, w->device, w->order);
        assert_same_state(w, fresh);
        assert_precedence(w);
        if (i % 20 == 0) {
            int64_t replayed = moirai_sim_replay(sim, w->device, task, place_whole_tasks(w, task));
            assert_int_equal(replayed, w->makespan_ns);
        }
    }
    place_whole_free(w);
    place_whole_free(fresh);
    moirai_sim_free(sim);
    moirai_plan_free(plan);
    free(task);
}

static void test_trials_leave_the_state_that_a_simulation_from_nothing_gives(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TEST_SHARE(120); seed++) {
        random_spec spec = random_spec_draw(seed, 40);
        if (seed % 4 == 0)
            spec.congestion = MOIRAI_CONGESTION_DEVICE;
        moirai_problem *p = random_problem(&spec);
        if (p)
            follow(p, seed);
        moirai_problem_free(p);
    }
}

static moirai_plan *annealed(const moirai_problem *p, int threads, uint64_t seed)
{
    moirai_place_options o;
    moirai_plan *plan;
    moirai_place_options_init(&o);
    if (moirai_place(&plan, p, "m-etf", &o))
        return NULL;
    int64_t before = plan->makespan_ns;
    place_whole_task job = {.evaluations = 1500, .seed = seed, .threads = threads};
    assert_ok(place_whole_anneal(&plan, p, &job));
    assert_true(plan->makespan_ns <= before);
    assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), 0);
    return plan;
}

/* No state is set up then: the second chain's end is unknown, and the plan stays. */
static void test_a_round_without_time_leaves_the_plan_as_it_is(void **state)
{
    (void)state;
    moirai_problem *p = NULL;
    moirai_place_options o;
    moirai_plan *plan = NULL, *before;
    moirai_place_options_init(&o);
    for (uint64_t seed = 1; !plan; seed++) { /* the first that fits its memory */
        random_spec spec = random_spec_draw(seed, 40);
        moirai_problem_free(p);
        p = random_problem(&spec);
        if (p && moirai_place(&plan, p, "heft", &o))
            plan = NULL;
    }
    assert_ok(moirai_plan_copy(&before, plan));
    int64_t second_ns = 0;
    place_whole_task job = {
        .evaluations = 1500, .seed = 1, .threads = 2, .second_ns = &second_ns, .stop.deadline = util_seconds() - 1};
    assert_ok(place_whole_anneal(&plan, p, &job));
    assert_int_equal(second_ns, INT64_MAX);
    assert_int_equal(plan->makespan_ns, before->makespan_ns);
    assert_memory_equal(plan->op_device, before->op_device, sizeof *plan->op_device * (size_t)p->n_ops);
    moirai_plan_free(before);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_annealed_plans_are_correct_and_no_longer_in_every_mode(void **state)
{
    (void)state;
    int shorter = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(60); seed++) {
        random_spec spec = random_spec_draw(seed * 31, 40);
        moirai_problem *p = random_problem(&spec);
        moirai_plan *plan = p ? annealed(p, 1, seed) : NULL, *etf = NULL;
        moirai_place_options o;
        moirai_place_options_init(&o);
        if (plan && !moirai_place(&etf, p, "m-etf", &o))
            shorter += plan->makespan_ns < etf->makespan_ns;
        moirai_plan_free(etf);
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
    assert_true(shorter > TEST_SHARE(20));
}

static void test_annealing_does_not_depend_on_the_threads(void **state)
{
    (void)state;
    moirai_problem *p = zoo_problem("inception-tiny", "inter-server", MOIRAI_FLOW_TENSOR);
    moirai_plan *one = annealed(p, 1, 3), *three = annealed(p, 3, 3);
    assert_schedules_equal(one, three);
    moirai_plan_free(one);
    moirai_plan_free(three);
    moirai_problem_free(p);
}

/* Cools at no temperature to speak of: only what is no worse is taken. */
static void descend(place_mover *m)
{
    util_stop stop = {0};
    place_mover_cool(m, 1e-6, 1e-6, 3000, &stop);
}

/* 5 and 3 here, 4 and 2 there: every operator that moves alone makes it longer. */
static void test_exchanges_leave_packings_that_no_single_move_leaves(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("device A 9\ndevice B 9\nop a 500,500 > s:0\nop b 300,300 > t:0\nop c 400,400 > u:0\n"
                     "op d 200,200 > v:0\n");
    int32_t device[] = {0, 0, 1, 1};
    for (int exchanges = 0; exchanges < 2; exchanges++) {
        place_mover m = {0};
        assert_ok(place_mover_open(&m, p, NULL));
        m.exchanges = exchanges;
        util_rng_seed(&m.rng, 5);
        place_mover_begin(&m, device, p->topo);
        assert_int_equal(m.best_ns, 800);
        descend(&m);
        assert_int_equal(m.w->makespan_ns, exchanges ? 700 : 800);
        place_mover_clear(&m);
    }
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trials_leave_the_state_that_a_simulation_from_nothing_gives),
        cmocka_unit_test(test_a_round_without_time_leaves_the_plan_as_it_is),
        cmocka_unit_test(test_annealed_plans_are_correct_and_no_longer_in_every_mode),
        cmocka_unit_test(test_annealing_does_not_depend_on_the_threads),
        cmocka_unit_test(test_exchanges_leave_packings_that_no_single_move_leaves),
    };
    return cmocka_run_group_tests_name("whole", tests, NULL, NULL);
}
