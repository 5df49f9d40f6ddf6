/* The simulator against the checker, the exhaustive search and itself. */
#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/shapes.h"
#include "support/verify.h"
#include "schedule/paths.h"
#include "schedule/sim.h"
#include "util/util.h"

#include <moirai/schedule.h>

static moirai_problem *make(const random_spec *spec)
{
    moirai_problem *p = random_problem(spec);
    if (p == NULL)
        fail_msg("%s: %s", random_spec_text(spec), moirai_error_message());
    return p;
}

/* Memory is not the simulator's business: let everything fit. */
static void unlimited(moirai_problem *p)
{
    for (int32_t k = 0; k < p->n_devices; k++)
        p->device_memory_bytes[k] = (int64_t)1 << 60;
}

static void random_devices(int32_t *device, const moirai_problem *p, util_rng *rng)
{
    int32_t *of_group = calloc((size_t)p->n_groups + 1, sizeof *of_group);
    for (int32_t g = 0; g < p->n_groups; g++)
        of_group[g] = MOIRAI_NONE;
    for (int32_t i = 0; i < p->n_ops; i++) {
        int32_t g = p->op_group[i], k;
        do
            k = (int32_t)util_rng_below(rng, (uint32_t)p->n_devices);
        while (!(p->op_devices[i] >> k & 1));
        if (g != MOIRAI_NONE && of_group[g] != MOIRAI_NONE)
            k = of_group[g];
        if (g != MOIRAI_NONE)
            of_group[g] = k;
        device[i] = k;
    }
    free(of_group);
}

static void check_plan(const random_spec *spec, const moirai_problem *p, const moirai_plan *plan)
{
    if (moirai_plan_check(p, plan, NULL, NULL) != 0)
        fail_msg("%s: %s", random_spec_text(spec), moirai_error_message());
}

/* Dispatch, with given and with its own priorities; then replay of the order that it made. */
static void dispatch_and_replay(const random_spec *spec, verify_batch *batch)
{
    moirai_problem *p = make(spec);
    moirai_sim *sim;
    util_rng rng;
    unlimited(p);
    assert_ok(moirai_sim_new(&sim, p));
    util_rng_seed(&rng, spec->seed);
    int32_t *device = calloc((size_t)p->n_ops, sizeof *device);
    int64_t *priority = calloc((size_t)p->n_ops, sizeof *priority);
    for (int round = 0; round < 4; round++) {
        random_devices(device, p, &rng);
        for (int32_t i = 0; i < p->n_ops; i++)
            priority[i] = util_rng_below(&rng, 5);
        int64_t first = moirai_sim_dispatch(sim, device, round % 2 ? priority : NULL);
        assert_true(first >= 0);
        moirai_plan *plan, *again;
        assert_ok(moirai_sim_plan(&plan, sim));
        assert_int_equal(plan->makespan_ns, first);
        check_plan(spec, p, plan);
        const moirai_task *order;
        int64_t n = moirai_sim_order(sim, &order);
        int64_t second = moirai_sim_replay(sim, device, order, n);
        assert_true(second >= 0 && second <= first);
        assert_ok(moirai_sim_plan(&again, sim));
        check_plan(spec, p, again);
        if (spec->seed % 16 == 0 && round < 2)
            verify_add(batch, p, round ? plan : again, true);
        n = moirai_sim_order(sim, &order);
        assert_int_equal(moirai_sim_replay(sim, device, order, n), second);
        moirai_plan_free(plan);
        moirai_plan_free(again);
    }
    free(device);
    free(priority);
    moirai_sim_free(sim);
    moirai_problem_free(p);
}

static void test_sim_schedules_pass_the_check(void **state)
{
    (void)state;
    verify_batch batch;
    verify_begin(&batch);
    for (uint64_t seed = 1; seed <= 240; seed++) {
        random_spec spec = random_spec_draw(seed, seed % 10 ? 30 : 200);
        dispatch_and_replay(&spec, &batch);
    }
    assert_int_equal(verify_run(&batch), 0);
}

/* Operators in random topological order, each transfer anywhere between its producer and its reader or left out. */
static int64_t random_order(moirai_task *order, const moirai_problem *p, util_rng *rng)
{
    int32_t *missing = calloc((size_t)p->n_ops, sizeof *missing), *ready = calloc((size_t)p->n_ops, sizeof *ready);
    moirai_task *pool = calloc((size_t)p->n_edges + 1, sizeof *pool);
    int32_t n_ready = 0, n_pool = 0;
    int64_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        if ((missing[i] = p->op_in_off[i + 1] - p->op_in_off[i]) == 0)
            ready[n_ready++] = i;
    while (n_ready > 0) {
        if (n_pool > 0 && util_rng_below(rng, 2)) {
            int32_t at = (int32_t)util_rng_below(rng, (uint32_t)n_pool);
            order[n++] = pool[at];
            pool[at] = pool[--n_pool];
            continue;
        }
        int32_t at = (int32_t)util_rng_below(rng, (uint32_t)n_ready), op = ready[at];
        ready[at] = ready[--n_ready];
        order[n++] = op;
        for (int32_t j = p->op_out_off[op]; j < p->op_out_off[op + 1]; j++)
            for (int32_t t = p->op_out[j], e = p->tensor_edge_off[t]; e < p->tensor_edge_off[t + 1]; e++) {
                int32_t to = (int32_t)util_rng_below(rng, (uint32_t)p->n_devices);
                pool[n_pool++] =
                    p->flow == MOIRAI_FLOW_EDGE ? p->n_ops + e : p->n_ops + (moirai_task)t * p->n_devices + to;
                if (--missing[p->edge_reader[e]] == 0)
                    ready[n_ready++] = p->edge_reader[e];
            }
    }
    free(missing);
    free(ready);
    free(pool);
    return n;
}

static void test_sim_replay_takes_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        random_spec spec = random_spec_draw(seed, 40);
        moirai_problem *p = make(&spec);
        moirai_sim *sim;
        util_rng rng;
        moirai_plan *plan, *tight;
        unlimited(p);
        util_rng_seed(&rng, seed);
        assert_ok(moirai_sim_new(&sim, p));
        int32_t *device = calloc((size_t)p->n_ops, sizeof *device);
        moirai_task *order = calloc((size_t)(p->n_ops + p->n_edges), sizeof *order);
        random_devices(device, p, &rng);
        int64_t n = random_order(order, p, &rng);
        int64_t makespan = moirai_sim_replay(sim, device, order, n);
        assert_true(makespan >= 0);
        assert_ok(moirai_sim_plan(&plan, sim));
        check_plan(&spec, p, plan);
        assert_ok(moirai_plan_tighten(&tight, p, plan));
        check_plan(&spec, p, tight);
        assert_true(tight->makespan_ns <= makespan);
        order[0] = order[n - 1]; /* something twice, something missing */
        if (n > 1)
            assert_int_equal(moirai_sim_replay(sim, device, order, n), -1);
        moirai_plan_free(plan);
        moirai_plan_free(tight);
        free(device);
        free(order);
        moirai_sim_free(sim);
        moirai_problem_free(p);
    }
}

static void test_sim_refuses_what_is_not_allowed(void **state)
{
    (void)state;
    random_spec spec = {
        .seed = 7, .shape = SHAPE_CHAIN, .n_ops = 8, .n_devices = 3, .nulls = true, .groups = true, .scale = 1};
    moirai_problem *p = make(&spec);
    moirai_sim *sim;
    assert_ok(moirai_sim_new(&sim, p));
    int32_t device[8];
    moirai_task order[8];
    moirai_plan *plan;
    assert_int_equal(moirai_sim_plan(&plan, sim), MOIRAI_EUSAGE);
    for (int32_t i = 0; i < 8; i++) {
        device[i] = __builtin_ctzll(p->op_devices[i]);
        order[i] = p->topo[i];
    }
    int64_t fine = moirai_sim_replay(sim, device, order, 8);
    assert_true(fine > 0);
    for (int32_t i = 0; i < 8; i++) {
        for (int32_t k = -1; k <= 3; k++) {
            int32_t kept = device[i];
            bool allowed = k >= 0 && k < 3 && p->op_devices[i] >> k & 1;
            for (int32_t j = 0; j < 8; j++)
                allowed = allowed &&
                          (j == i || p->op_group[i] == MOIRAI_NONE || p->op_group[j] != p->op_group[i] || k == kept);
            device[i] = k;
            assert_int_equal(moirai_sim_dispatch(sim, device, NULL) >= 0, allowed);
            assert_int_equal(moirai_sim_replay(sim, device, order, 8) >= 0, allowed);
            device[i] = kept;
        }
    }
    assert_int_equal(moirai_sim_replay(sim, device, order, 7), -1);
    moirai_task kept = order[0];
    order[0] = order[1], order[1] = kept;
    assert_int_equal(moirai_sim_replay(sim, device, order, 8), -1);
    order[0] = 1000000;
    assert_int_equal(moirai_sim_replay(sim, device, order, 8), -1);
    order[0] = -1;
    assert_int_equal(moirai_sim_replay(sim, device, order, 8), -1);
    order[0] = kept, order[1] = p->topo[1];
    assert_int_equal(moirai_sim_replay(sim, device, order, 8), fine);
    moirai_sim_free(sim);
    moirai_problem_free(p);
}

/* No plan of the simulator beats the exhaustive search, whose plans pass the check; replaying the best one gives it
 * back. */
static void test_sim_agrees_with_exhaustive_search(void **state)
{
    (void)state;
    int known = 0, infeasible = 0;
    verify_batch batch;
    verify_begin(&batch);
    for (uint64_t seed = 1000; seed < 1120; seed++) {
        random_spec spec = random_spec_draw(seed, 5);
        moirai_problem *p = make(&spec);
        moirai_plan *best, *tight;
        int64_t optimum = brute_force(p, 100000, &best);
        if (optimum == BRUTE_INFEASIBLE)
            infeasible++;
        if (optimum >= 0) {
            known++;
            check_plan(&spec, p, best);
            verify_add(&batch, p, best, true);
            assert_ok(moirai_plan_tighten(&tight, p, best));
            check_plan(&spec, p, tight);
            assert_int_equal(tight->makespan_ns, optimum);
            assert_true(moirai_bound_critical_path(p) <= optimum);
            assert_true(moirai_bound_load(p) <= optimum);
            moirai_plan_free(tight);
            moirai_plan_free(best);
        }
        moirai_problem_free(p);
    }
    print_message("%d optima, %d infeasible, %d given up\n", known, infeasible, 120 - known - infeasible);
    assert_true(known > 80 && infeasible > 5);
    assert_int_equal(verify_run(&batch), 0);
}

/* The best of many random decisions reaches the optimum of small problems: neither side misses schedules. */
static void test_sim_reaches_the_optimum(void **state)
{
    (void)state;
    for (uint64_t seed = 2000; seed < 2030; seed++) {
        random_spec spec = random_spec_draw(seed, 4);
        moirai_problem *p = make(&spec);
        unlimited(p);
        int64_t optimum = brute_force(p, 1000000, NULL), best = INT64_MAX;
        moirai_sim *sim;
        util_rng rng;
        util_rng_seed(&rng, seed);
        assert_ok(moirai_sim_new(&sim, p));
        int32_t device[8];
        moirai_task order[256];
        for (int round = 0; round < 20000 && best > optimum; round++) {
            random_devices(device, p, &rng);
            int64_t makespan = moirai_sim_replay(sim, device, order, random_order(order, p, &rng));
            assert_true(makespan >= optimum);
            best = UTIL_MIN(best, makespan);
        }
        if (best != optimum)
            fail_msg("%s: %lld, optimum %lld", random_spec_text(&spec), (long long)best, (long long)optimum);
        moirai_sim_free(sim);
        moirai_problem_free(p);
    }
}

/* What a limit allows is simulated as without one, what it does not is refused, whatever the modes. */
static void test_sim_dispatch_within_a_limit_says_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 3000; seed < 3120; seed++) {
        random_spec spec = random_spec_draw(seed, 24);
        moirai_problem *p = make(&spec);
        moirai_sim *sim;
        util_rng rng;
        util_rng_seed(&rng, seed);
        unlimited(p);
        assert_ok(moirai_sim_new(&sim, p));
        int32_t *device = calloc((size_t)p->n_ops, sizeof *device);
        int64_t *priority = calloc((size_t)p->n_ops, sizeof *priority);
        int64_t *tail = calloc((size_t)p->n_ops * (size_t)p->n_devices, sizeof *tail);
        int64_t rest[3 * MOIRAI_MAX_DEVICES];
        schedule_tails(tail, &(schedule_paths){.p = p});
        schedule_rests(rest, p, tail);
        for (int round = 0; round < 12; round++) {
            random_devices(device, p, &rng);
            for (int32_t i = 0; i < p->n_ops; i++)
                priority[i] = util_rng_below(&rng, 5);
            const int64_t *urgent = round % 2 ? priority : NULL;
            int64_t makespan = moirai_sim_dispatch(sim, device, urgent);
            const int64_t *behind = round % 4 < 2 ? rest : NULL;
            schedule_limit just = {makespan, tail, behind}, less = {makespan - 1, tail, behind};
            if (schedule_sim_dispatch_within(sim, device, urgent, &just) != makespan)
                fail_msg("%s: refused at its own makespan", random_spec_text(&spec));
            if (schedule_sim_dispatch_within(sim, device, urgent, &less) != -1)
                fail_msg("%s: taken above the limit", random_spec_text(&spec));
        }
        free(device);
        free(priority);
        free(tail);
        moirai_sim_free(sim);
        moirai_problem_free(p);
    }
}

static bool change_some(int32_t *device, int64_t *priority, const moirai_problem *p, util_rng *rng)
{
    int32_t *other = calloc((size_t)p->n_ops, sizeof *other);
    bool all = util_rng_below(rng, 5) == 0;
    random_devices(other, p, rng);
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (all || (p->op_group[i] == MOIRAI_NONE && util_rng_below(rng, 6) == 0))
            device[i] = other[i];
        if (all || util_rng_below(rng, 8) == 0)
            priority[i] = (int64_t)util_rng_below(rng, 9) - 4;
    }
    free(other);
    return util_rng_below(rng, 4) > 0;
}

static void same_simulation(const random_spec *spec, const moirai_problem *p, moirai_sim *a, moirai_sim *b)
{
    const moirai_task *left, *right;
    int64_t n = moirai_sim_order(a, &left), m = moirai_sim_order(b, &right);
    if (n != m || memcmp(left, right, (size_t)n * sizeof *left) != 0)
        fail_msg("%s: another order", random_spec_text(spec));
    for (int64_t j = 0; j < n; j++) {
        int64_t task = left[j];
        if (task < p->n_ops
                ? a->start_ns[task] != b->start_ns[task]
                : a->arrival_ns[schedule_sim_sent(a, task).room] != b->arrival_ns[schedule_sim_sent(b, task).room])
            fail_msg("%s: task %lld at another time", random_spec_text(spec), (long long)task);
    }
}

/* The simulator keeps loads and the order of urgency from one dispatch to the next: the same as one that starts anew,
 * after refusals, ends at a limit and replays, too. */
static void test_sim_dispatch_forgets_what_was_before(void **state)
{
    (void)state;
    for (uint64_t seed = 5000; seed < 5120; seed++) {
        random_spec spec = random_spec_draw(seed, 40);
        moirai_problem *p = make(&spec);
        moirai_sim *kept, *fresh;
        util_rng rng;
        util_rng_seed(&rng, seed);
        assert_ok(moirai_sim_new(&kept, p));
        int32_t *device = calloc((size_t)p->n_ops, sizeof *device);
        int64_t *priority = calloc((size_t)p->n_ops, sizeof *priority);
        int64_t *tail = calloc((size_t)p->n_ops * (size_t)p->n_devices, sizeof *tail);
        schedule_tails(tail, &(schedule_paths){.p = p});
        random_devices(device, p, &rng);
        for (int round = 0; round < 24; round++) {
            const int64_t *urgent = change_some(device, priority, p, &rng) ? priority : NULL;
            assert_ok(moirai_sim_new(&fresh, p));
            int64_t makespan = moirai_sim_dispatch(fresh, device, urgent);
            assert_true(makespan >= 0);
            schedule_limit less = {makespan * 3 / 4, tail, NULL};
            if (round % 3 == 0)
                schedule_sim_dispatch_within(kept, device, urgent, &less);
            if (round % 5 == 0) {
                int32_t last = device[p->n_ops - 1];
                device[p->n_ops - 1] = p->n_devices;
                assert_int_equal(moirai_sim_dispatch(kept, device, urgent), -1);
                device[p->n_ops - 1] = last;
            }
            assert_int_equal(moirai_sim_dispatch(kept, device, urgent), makespan);
            same_simulation(&spec, p, kept, fresh);
            const moirai_task *order;
            int64_t n = moirai_sim_order(kept, &order);
            if (round % 2)
                assert_int_equal(moirai_sim_replay(kept, device, order, n), makespan);
            moirai_sim_free(fresh);
        }
        free(device);
        free(priority);
        free(tail);
        moirai_sim_free(kept);
        moirai_problem_free(p);
    }
}

/* While devices are taken, within a dispatch, a replay and a replay in windows; what was begun is no matter afterwards. */
static void test_sim_of_many_operators_ends_with_the_time(void **state)
{
    (void)state;
    moirai_problem *p;
    moirai_sim *sim, *fresh;
    moirai_interrupt raised = {0};
    moirai_interrupt_raise(&raised);
    util_stop stop = {.interrupt = &raised};
    assert_ok(shape_problem(&p, "layered", 3 * SCHEDULE_STOP_EVERY, 4));
    int32_t *device = calloc((size_t)p->n_ops, sizeof *device);
    for (int32_t i = 0; i < p->n_ops; i++)
        device[i] = i / 7 % 4;
    assert_ok(moirai_sim_new(&sim, p));
    assert_ok(moirai_sim_new(&fresh, p));
    int64_t makespan = moirai_sim_dispatch(fresh, device, NULL);
    assert_true(makespan > 0 && !fresh->stopped);
    for (int round = 0; round < 2; round++) { /* the second has nothing to move, and ends later */
        schedule_sim_obey(sim, &stop);
        assert_int_equal(moirai_sim_dispatch(sim, device, NULL), -1);
        assert_true(sim->stopped && !sim->complete && sim->n_log < p->n_ops);
        assert_true(round == 0 || sim->n_log > 0);
        schedule_sim_obey(sim, NULL);
        assert_int_equal(moirai_sim_dispatch(sim, device, NULL), makespan);
        assert_false(sim->stopped);
    }
    const moirai_task *order;
    int64_t n = moirai_sim_order(fresh, &order);
    schedule_sim_obey(sim, &stop);
    assert_int_equal(moirai_sim_replay(sim, device, order, n), -1);
    assert_true(sim->stopped && sim->n_log > 0);
    assert_int_equal(schedule_sim_replay_window(sim, device, p->topo, 256), -1);
    assert_true(sim->stopped && sim->n_log > 0);
    schedule_sim_obey(sim, NULL);
    assert_int_equal(moirai_sim_replay(sim, device, order, n), makespan);
    moirai_sim_free(sim);
    moirai_sim_free(fresh);
    moirai_problem_free(p);
    free(device);
}

/* A plan of a few operators costs less than not having it. */
static void test_sim_of_few_operators_never_ends_early(void **state)
{
    (void)state;
    moirai_problem *p;
    moirai_sim *sim;
    moirai_interrupt raised = {0};
    moirai_interrupt_raise(&raised);
    assert_ok(shape_problem(&p, "chain", 1000, 4));
    assert_ok(moirai_sim_new(&sim, p));
    int32_t *device = calloc((size_t)p->n_ops, sizeof *device);
    schedule_sim_obey(sim, &(util_stop){.interrupt = &raised});
    assert_true(moirai_sim_dispatch(sim, device, NULL) > 0);
    moirai_sim_free(sim);
    moirai_problem_free(p);
    free(device);
}

/* What is known of transfers has room by edges: a tensor that goes to all devices or few, to some of them for several readers, and
 * one between others that goes nowhere. */
static void test_sim_finds_arrivals_on_many_devices(void **state)
{
    (void)state;
    moirai_problem *p;
    moirai_sim *sim;
    moirai_plan *plan;
    assert_ok(shape_problem(&p, "wide", 400, 64));
    unlimited(p);
    assert_ok(moirai_sim_new(&sim, p));
    int32_t *device = calloc((size_t)p->n_ops, sizeof *device);
    for (int32_t stride = 1; stride < 64; stride += 9) {
        for (int32_t i = 0; i < p->n_ops; i++)
            device[i] = i * stride % 64;
        int64_t makespan = moirai_sim_dispatch(sim, device, NULL);
        const moirai_task *order;
        assert_ok(moirai_sim_plan(&plan, sim));
        assert_ok(moirai_plan_check(p, plan, NULL, NULL));
        int64_t n = moirai_sim_order(sim, &order);
        assert_int_equal(moirai_sim_replay(sim, device, order, n), makespan);
        for (int32_t j = 0; j < plan->n_transfers; j++) {
            const moirai_transfer *x = &plan->transfer[j];
            moirai_task task = p->n_ops + (moirai_task)x->tensor * p->n_devices + x->to;
            schedule_sent_task sent = schedule_sim_sent(sim, task);
            assert_true(sent.tensor == x->tensor && sent.to == x->to && p->edge_tensor[sent.room] == x->tensor);
            assert_int_equal(schedule_sim_task(sim, sent.room, x->tensor, x->to), task);
            assert_true(sim->arrival_ns[sent.room] <= x->finish_ns);
        }
        moirai_plan_free(plan);
    }
    free(device);
    moirai_sim_free(sim);
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sim_schedules_pass_the_check),
        cmocka_unit_test(test_sim_replay_takes_any_order),
        cmocka_unit_test(test_sim_refuses_what_is_not_allowed),
        cmocka_unit_test(test_sim_agrees_with_exhaustive_search),
        cmocka_unit_test(test_sim_reaches_the_optimum),
        cmocka_unit_test(test_sim_dispatch_within_a_limit_says_the_same),
        cmocka_unit_test(test_sim_dispatch_forgets_what_was_before),
        cmocka_unit_test(test_sim_of_many_operators_ends_with_the_time),
        cmocka_unit_test(test_sim_of_few_operators_never_ends_early),
        cmocka_unit_test(test_sim_finds_arrivals_on_many_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
