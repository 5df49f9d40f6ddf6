/* States that annealing leaves, and what crossing makes of them. */
#include <moirai/moirai.h>

#include <stdio.h>
#include <string.h>

#include "place/moirai/whole/whole_cross.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/tiny.h"
#include "util/util.h"

#define STAGE 16 /* operators of a stage, all side by side; one joins them */
#define STAGES 3
#define TEXT 16384

/* Three stages of equal operators on two equal devices, each with a joint behind it; moving costs nothing. */
static moirai_problem *stages(void)
{
    static char text[TEXT];
    size_t at = (size_t)snprintf(text, TEXT, "device A 99\ndevice B 99\n");
    for (int s = 0; s < STAGES; s++) {
        for (int i = 0; i < STAGE; i++) {
            at += (size_t)snprintf(text + at, TEXT - at, "op s%d_%d 100,100", s, i);
            if (s > 0)
                at += (size_t)snprintf(text + at, TEXT - at, " j%d", s - 1);
            at += (size_t)snprintf(text + at, TEXT - at, " > t%d_%d:0\n", s, i);
        }
        at += (size_t)snprintf(text + at, TEXT - at, "op join%d 1,1", s);
        for (int i = 0; i < STAGE; i++)
            at += (size_t)snprintf(text + at, TEXT - at, " t%d_%d", s, i);
        at += (size_t)snprintf(text + at, TEXT - at, " > j%d:0\n", s);
    }
    return tiny_problem(text);
}

/* One stage shared out between the devices, all others on one. */
static void share_out(int32_t *device, int stage)
{
    for (int i = 0; i < STAGES * (STAGE + 1); i++)
        device[i] = i / (STAGE + 1) == stage && i % (STAGE + 1) < STAGE / 2;
}

static moirai_plan *on_one_device(const moirai_problem *p)
{
    moirai_plan *plan = tiny_place(p, "single");
    assert_int_equal(plan->makespan_ns, STAGES * (100 * STAGE + 1));
    return plan;
}

static void test_crossing_puts_the_good_stages_of_all_states_together(void **state)
{
    (void)state;
    moirai_problem *p = stages();
    moirai_plan *plan = on_one_device(p);
    place_states s = {0};
    place_whole *w;
    int32_t device[STAGES * (STAGE + 1)];
    assert_ok(place_whole_new(&w, p));
    for (int stage = 0; stage < STAGES; stage++) {
        share_out(device, stage);
        assert_int_equal(place_whole_set(w, device, p->topo), STAGES * (100 * STAGE + 1) - 50 * STAGE);
        assert_ok(place_states_add(&s, w));
    }
    assert_ok(place_states_cross(&plan, &s, p, &(place_whole_task){.evaluations = 20000, .threads = 2}));
    assert_int_equal(plan->makespan_ns, STAGES * (50 * STAGE + 1));
    assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), 0);
    place_states_clear(&s);
    place_whole_free(w);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_of_too_many_states_the_longest_goes_and_equal_ones_are_kept_once(void **state)
{
    (void)state;
    moirai_problem *p = stages();
    place_states s = {0};
    place_whole *w;
    int32_t device[STAGES * (STAGE + 1)] = {0};
    assert_ok(place_whole_new(&w, p));
    int64_t longest = place_whole_set(w, device, p->topo);
    for (int i = 0; i < 2; i++)
        assert_ok(place_states_add(&s, w));
    assert_int_equal(s.n, 1);
    for (int i = 0; i < PLACE_STATES_MOST; i++) { /* the bits of i + 1 say which operators of a stage go elsewhere */
        for (int bit = 0; bit < STAGE; bit++)
            device[bit] = (i + 1) >> bit & 1;
        assert_true(place_whole_set(w, device, p->topo) < longest);
        assert_ok(place_states_add(&s, w));
    }
    assert_int_equal(s.n, PLACE_STATES_MOST);
    for (int i = 0; i < s.n; i++)
        assert_true(s.state[i].makespan_ns < longest);
    place_states_clear(&s);
    place_whole_free(w);
    moirai_problem_free(p);
}

/* Chains from a plan, then crossed: *annealed is what the chains had reached. NULL: there is no plan. */
static moirai_plan *crossed(const moirai_problem *p, int64_t *annealed, int threads, uint64_t seed)
{
    moirai_place_options o;
    moirai_plan *plan;
    place_states s = {0};
    moirai_place_options_init(&o);
    if (moirai_place(&plan, p, "m-etf", &o))
        return NULL;
    place_whole_task job = {.evaluations = 300, .states = &s, .seed = seed, .threads = threads};
    for (int i = 0; i < 2; i++, job.seed += 100)
        assert_ok(place_whole_anneal(&plan, p, &job));
    *annealed = plan->makespan_ns;
    job.evaluations = 20000;
    assert_ok(place_states_cross(&plan, &s, p, &job));
    assert_true(plan->makespan_ns <= *annealed);
    assert_int_equal(moirai_plan_check(p, plan, NULL, NULL), 0);
    place_states_clear(&s);
    return plan;
}

static void test_crossed_plans_are_correct_and_no_longer_in_every_mode(void **state)
{
    (void)state;
    int shorter = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_spec spec = random_spec_draw(seed * 31, 60);
        moirai_problem *p = random_problem(&spec);
        int64_t annealed = 0;
        moirai_plan *plan = p ? crossed(p, &annealed, 1, seed) : NULL;
        shorter += plan && plan->makespan_ns < annealed;
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
    assert_true(shorter > 5);
}

static void test_crossing_does_not_depend_on_the_threads(void **state)
{
    (void)state;
    moirai_problem *p = zoo_problem("inception-tiny", "inter-server", MOIRAI_FLOW_TENSOR);
    int64_t annealed;
    moirai_plan *one = crossed(p, &annealed, 1, 3), *three = crossed(p, &annealed, 3, 3);
    assert_schedules_equal(one, three);
    moirai_plan_free(one);
    moirai_plan_free(three);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crossing_puts_the_good_stages_of_all_states_together),
        cmocka_unit_test(test_of_too_many_states_the_longest_goes_and_equal_ones_are_kept_once),
        cmocka_unit_test(test_crossed_plans_are_correct_and_no_longer_in_every_mode),
        cmocka_unit_test(test_crossing_does_not_depend_on_the_threads),
    };
    return cmocka_run_group_tests_name("cross", tests, NULL, NULL);
}
