/* The placer `moirai` from inside: plans composed of block plans, what the engine keeps, floating work beside a spine.
 */
#include "place/moirai/engine.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/scale.h"
#include "support/tiny.h"
#include "support/tiny_block.h"
#include "util/util.h"

/* ---- composition ---- */

/* Two layers of three, one class: its one plan serves both, and the whole is as long as the chain says. */
static void test_place_compose_puts_block_plans_in_a_row(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(
        "device A 9\ndevice B 9\nop a 10,- > s:20\nop b 100,110 s > t:0\nop c 100,110 s > u:0\nop d 100,110 s > v:0\n"
        "op e 10,- t u v > w:20\nop f 100,110 w > x:0\nop g 100,110 w > y:0\nop h 100,110 w > z:0\nop i 10,- x y z\n");
    pair_chain *c;
    moirai_sim *sim;
    assert_ok(pair_chain_new(&c, p));
    assert_ok(pair_chain_open_all(c, 1, &(util_stop){0}));
    assert_ok(moirai_sim_new(&sim, p));
    int32_t cut_device[3], op_device[16];
    int64_t length = pair_chain_path(c, PAIR_CHAIN_UPPER, cut_device);
    moirai_task *order = calloc((size_t)place_compose_capacity(p), sizeof *order);
    int64_t n = place_compose(c, cut_device, NULL, op_device, order);
    assert_true(n >= p->n_ops && n <= place_compose_capacity(p));
    assert_int_equal(moirai_sim_replay(sim, op_device, order, n), length);
    assert_int_equal(length, 430);
    /* One block with a plan of its own: everything on A. */
    int32_t layer = c->s->block_class[1];
    const pair_state *x = pair_chain_at(c, layer, 0, 0);
    pair_plan on_a = {0};
    int32_t device[8] = {0};
    moirai_task local[8];
    for (int32_t i = 0; i < x->block.problem.n_ops; i++)
        local[i] = i;
    assert_ok(pair_plan_set(&on_a, x->block.problem.n_ops, device, local, x->block.problem.n_ops));
    on_a.length_ns = 300;
    const pair_plan *own[4] = {NULL, &on_a, NULL, NULL};
    for (int i = 0; i < 4; i++)
        own[i] = own[i] ? own[i] : &pair_chain_at(c, c->s->block_class[i], 0, 0)->plan;
    n = place_compose(c, cut_device, own, op_device, order);
    assert_int_equal(moirai_sim_replay(sim, op_device, order, n), 430 + 100);
    assert_true(op_device[tiny_op(p, "b")] == 0 && op_device[tiny_op(p, "c")] == 0 && op_device[tiny_op(p, "d")] == 0);
    pair_plan_free(&on_a);
    free(order);
    moirai_sim_free(sim);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* B, C and D are equal: the plan between B and C serves D and C, with devices and transfers exchanged. */
static void test_place_compose_exchanges_equal_devices(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("device A 9\ndevice B 9\ndevice C 9\ndevice D 9\nop a 9,8,8,8 > s:2\nop b 9,8,8,8 s > "
                     "t:3\nop c 9,8,8,8 s > u:3\nop d 9,8,8,8 t u > w:7\nop e 9,8,8,8 w\n");
    static const int32_t path[2][3] = {{1, 2, 1}, {3, 2, 3}};
    pair_chain *c;
    moirai_sim *sim;
    assert_ok(pair_chain_new(&c, p));
    pair_chain_join_equals(c);
    assert_ok(pair_chain_open_all(c, 1, &(util_stop){0}));
    assert_ok(moirai_sim_new(&sim, p));
    assert_int_equal(c->s->n_cuts, 3);
    moirai_task *order = calloc((size_t)place_compose_capacity(p), sizeof *order);
    int64_t length[2];
    for (int i = 0; i < 2; i++) {
        int32_t op_device[8];
        int64_t n = place_compose(c, path[i], NULL, op_device, order);
        length[i] = moirai_sim_replay(sim, op_device, order, n);
        assert_true(op_device[tiny_op(p, "a")] == path[i][0] && op_device[tiny_op(p, "d")] == path[i][1]);
        assert_int_not_equal(op_device[tiny_op(p, "b")], i ? 1 : 3); /* nothing strays to the third */
    }
    assert_true(length[0] > 0);
    assert_int_equal(length[0], length[1]);
    free(order);
    moirai_sim_free(sim);
    pair_chain_free(c);
    moirai_problem_free(p);
}

/* ---- plans from chains of intervals ---- */

/* Plans of intervals, composed, with what floats beside the chain: correct, no longer than what was there, and now and then
 * shorter. */
static void test_place_engine_makes_plans_of_chains_of_intervals(void **state)
{
    (void)state;
    int32_t shorter = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(50); seed++) {
        random_spec spec = random_spec_draw(seed * 7, 24);
        moirai_problem *p = random_problem(&spec);
        moirai_place_options o;
        moirai_plan *start;
        moirai_place_options_init(&o);
        o.gap = 0;
        o.budget.threads = 1;
        o.budget.effort = 0.01;
        if (!p || moirai_place(&start, p, "m-topo", &o)) {
            moirai_problem_free(p);
            continue;
        }
        int64_t before = start->makespan_ns;
        engine *x = engine_new(p, &o);
        assert_non_null(x);
        assert_ok(incumbent_offer(&x->in, start, 'T'));
        assert_ok(engine_take_turn(x, &(engine_turn){.step = &step_intervals, .share = 1, .rounds = 3, .size = 4}));
        assert_ok(engine_take_turn(x, &(engine_turn){.step = &step_interval_plans, .share = 1}));
        assert_true(x->in.best->makespan_ns <= before && x->in.best->makespan_ns >= x->in.lower_ns);
        assert_int_equal(moirai_plan_check(p, x->in.best, NULL, NULL), 0);
        shorter += x->in.best->makespan_ns < before;
        engine_free(x);
        moirai_problem_free(p);
    }
    assert_true(shorter > TEST_SHARE(5));
}

/* ---- the whole as one block ---- */

/* Never more than the optimum, more than loads and longest paths now and then, and all of it can be certified. */
static void test_place_engine_bounds_the_whole_as_one_block(void **state)
{
    (void)state;
    int32_t raised = 0;
    for (uint64_t seed = 1; seed <= TEST_SHARE(40); seed++) {
        random_spec spec = random_spec_draw(seed * 11, 9);
        moirai_problem *p = random_problem(&spec);
        moirai_place_options o;
        moirai_plan *optimal;
        moirai_place_options_init(&o);
        o.gap = 0;
        o.budget.threads = 1;
        o.budget.effort = 0.1;
        if (!p || moirai_place(&optimal, p, "exact", &o)) {
            moirai_problem_free(p);
            continue;
        }
        int64_t least = optimal->makespan_ns, known = UTIL_MAX(moirai_bound_critical_path(p), moirai_bound_load(p));
        bool sure = moirai_plan_is_optimal(optimal);
        pair_chain *whole = NULL;
        assert_ok(engine_whole_block(&whole, p));
        pair_state *x = whole->pair[0];
        assert_ok(pair_raise_loads(x, (util_stop){0}));
        assert_true(!sure || x->lower_ns <= least);
        assert_true(pair_certified_ns(x) == x->lower_ns);
        raised += x->lower_ns > known;
        pair_chain_free(whole);
        moirai_plan_free(optimal);
        moirai_problem_free(p);
    }
    assert_true(raised > TEST_SHARE(5));
}

/* ---- the engine ---- */

static void test_place_engine_keeps_the_best(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(TINY_THREE);
    moirai_place_options o;
    moirai_place_options_init(&o);
    engine *x = engine_new(p, &o);
    assert_non_null(x);
    assert_true(incumbent_gap(&x->in) == 1); /* nothing is known */
    assert_ok(incumbent_offer(&x->in, tiny_place(p, "single"), 'S'));
    assert_int_equal(x->in.best->makespan_ns, 320);
    assert_ok(incumbent_offer(&x->in, tiny_place(p, "exact"), 'E'));
    assert_int_equal(x->in.best->makespan_ns, 220);
    assert_ok(incumbent_offer(&x->in, tiny_place(p, "single"), 'S')); /* no better: passed over */
    assert_int_equal(x->in.best->makespan_ns, 220);
    assert_true(x->in.tries == 3 && x->in.stale == 1);
    incumbent_take_bound(&x->in, 110);
    assert_true(incumbent_gap(&x->in) == 0.5);
    incumbent_take_bound(&x->in, 50);
    incumbent_take_bound(&x->in, INT64_MAX);
    assert_int_equal(x->in.lower_ns, 110);
    incumbent_take_bound(&x->in, 220);
    assert_true(incumbent_gap(&x->in) == 0);
    engine_free(x);
    moirai_problem_free(p);
}

static void test_place_engine_closes_blocks(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(TINY_THREE);
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.threads = 1;
    o.gap = 0;
    engine *x = engine_new(p, &o);
    assert_ok(engine_blocks(x));
    assert_ok(incumbent_offer(&x->in, tiny_place(p, "single"), 'S'));
    assert_ok(blocks_improve(x->blocks));
    assert_int_equal(x->in.best->makespan_ns, 220);
    assert_int_equal(x->in.lower_ns, 220);
    engine_free(x);
    moirai_problem_free(p);
}

static void test_place_engine_within_memory(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(TINY_TIGHT);
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.budget.threads = 1;
    o.gap = 0;
    moirai_plan *plan;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    assert_int_equal(plan->makespan_ns, 40);
    assert_int_equal(plan->lower_bound_ns, 40);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

typedef struct story {
    int n;
    int64_t best_ns, bound_ns;
    bool worse;
} story;

static void listen(void *data, const moirai_progress *news)
{
    story *s = data;
    s->n++;
    if (news->makespan_ns >= 0) {
        s->worse |= s->best_ns > 0 && news->makespan_ns > s->best_ns;
        s->best_ns = news->makespan_ns;
    }
    if (news->lower_bound_ns >= 0) {
        s->worse |= news->lower_bound_ns < s->bound_ns;
        s->bound_ns = news->lower_bound_ns;
    }
}

static void test_place_engine_tells_better_and_better(void **state)
{
    (void)state;
    moirai_problem *p = zoo_problem("gpt3-tiny", "inter-server", MOIRAI_FLOW_TENSOR);
    moirai_place_options o;
    moirai_plan *plan;
    story s = {0};
    moirai_place_options_init(&o);
    o.budget.effort = 0.05;
    o.budget.progress = listen;
    o.budget.progress_data = &s;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    assert_true(s.n > 1);
    assert_false(s.worse);
    assert_int_equal(s.best_ns, plan->makespan_ns);
    assert_true(s.bound_ns <= plan->lower_bound_ns);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* Interrupted before it begins, it still has a plan. */
static void test_place_engine_interrupted_keeps_a_plan(void **state)
{
    (void)state;
    moirai_problem *p = zoo_problem("gpt3-tiny", "inter-server", MOIRAI_FLOW_TENSOR);
    moirai_interrupt now = {0};
    moirai_place_options o;
    moirai_plan *plan;
    moirai_interrupt_raise(&now);
    moirai_place_options_init(&o);
    o.budget.interrupt = &now;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* ---- floating work ---- */

/* The spine a, b, c on A takes 30; x floats between a and c. On A it would make the whole longer, on B it fits beside.
 */
static void test_place_floats_go_where_there_is_time(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(
        "device A 99\ndevice B 99\nop a 10,- > s:1\nop b 10,- s > t:1\nop c 10,- t u > v:1\nop x 5,5 s > u:1\n");
    bool floating[4] = {false};
    decompose_spine *s;
    moirai_plan *spine_plan, *whole;
    floating[tiny_op(p, "x")] = true;
    assert_ok(decompose_spine_from(&s, p, floating));
    spine_plan = tiny_place(s->problem, "single");
    assert_int_equal(spine_plan->makespan_ns, 30);
    assert_ok(place_floats_insert(&whole, s, spine_plan, &(util_stop){0}));
    assert_non_null(whole);
    assert_ok(moirai_plan_check(p, whole, NULL, NULL));
    assert_int_equal(whole->makespan_ns, 30);
    assert_int_equal(whole->op_device[tiny_op(p, "x")], 1);
    moirai_plan_free(whole);
    moirai_plan_free(spine_plan);
    decompose_spine_free(s);
    moirai_problem_free(p);
}

/* No device has room for what floats: no plan. */
static void test_place_floats_need_room(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 10\nop a 10 > s:1 mem=6\nop c 10 s u mem=4\nop x 5 > u:1 mem=3\n");
    bool floating[3] = {false};
    decompose_spine *s;
    moirai_plan *spine_plan, *whole = NULL;
    floating[tiny_op(p, "x")] = true;
    assert_ok(decompose_spine_from(&s, p, floating));
    spine_plan = tiny_place(s->problem, "single");
    assert_ok(place_floats_insert(&whole, s, spine_plan, &(util_stop){0}));
    assert_null(whole);
    moirai_plan_free(spine_plan);
    decompose_spine_free(s);
    moirai_problem_free(p);
}

/* Two in a row that are fastest on B, where they fit; the bound's path has both on A, which has room for one. That counts
 * where its plans are about as fast. */
static void test_place_engine_sees_that_the_bounds_path_does_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool binds;
    } list[] = {
        {"device A 10\ndevice B 100\nop a 1010,1000 mem=10 > s:0\nop b 1010,1000 s mem=10\n", true},
        {"device A 10\ndevice B 100\nop a 1100,1000 mem=10 > s:0\nop b 1100,1000 s mem=10\n", false},
        {"device A 20\ndevice B 100\nop a 1010,1000 mem=10 > s:0\nop b 1010,1000 s mem=10\n", false},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        moirai_problem *p = tiny_problem(list[i].text);
        moirai_place_options o;
        moirai_place_options_init(&o);
        engine *x = engine_new(p, &o);
        assert_non_null(x);
        assert_ok(engine_blocks(x));
        assert_ok(blocks_open_pairs(x->blocks));
        assert_int_equal(x->blocks->c->s->n_cuts, 2);
        x->blocks->cut_device[0] = x->blocks->cut_device[1] = 0;
        assert_ok(blocks_compose(x->blocks));
        assert_int_equal(x->in.best->makespan_ns, 2000);
        assert_int_equal(x->in.memory_binds, list[i].binds);
        engine_free(x);
        moirai_problem_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_compose_puts_block_plans_in_a_row),
        cmocka_unit_test(test_place_engine_makes_plans_of_chains_of_intervals),
        cmocka_unit_test(test_place_compose_exchanges_equal_devices),
        cmocka_unit_test(test_place_engine_bounds_the_whole_as_one_block),
        cmocka_unit_test(test_place_engine_keeps_the_best),
        cmocka_unit_test(test_place_engine_closes_blocks),
        cmocka_unit_test(test_place_engine_within_memory),
        cmocka_unit_test(test_place_engine_sees_that_the_bounds_path_does_not_fit),
        cmocka_unit_test(test_place_engine_tells_better_and_better),
        cmocka_unit_test(test_place_engine_interrupted_keeps_a_plan),
        cmocka_unit_test(test_place_floats_go_where_there_is_time),
        cmocka_unit_test(test_place_floats_need_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
