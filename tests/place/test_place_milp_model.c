/* The mixed-integer program from inside: the augmented graph, the abstract model, its maps to plans and back, memory.
 */
#include "place/milp/milp.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/tiny.h"

#define FORK "flow edge\ndevice A 10\ndevice B 10\nop in 10,20 > t:10\nop left 40,60 t > u:0\nop right 40,60 t > v:0\n"

/* ---- the augmented graph ---- */

static void test_place_milp_dag_counts_in_a_grid(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(FORK);
    milp_dag *d;
    assert_int_equal(milp_grid_ns(p), 10);
    assert_ok(milp_dag_new(&d, p, -1, false));
    assert_int_equal(d->grid_ns, 10);
    assert_int_equal(d->n_flows, 2); /* flow edge: one per reader */
    assert_int_equal(milp_op_units(d, tiny_op(p, "left"), 1), 6);
    assert_int_equal(milp_flow_units(d, 0, 0, 1), 1);
    assert_true(milp_op_before(d, tiny_op(p, "in"), tiny_op(p, "left")));
    assert_false(milp_op_before(d, tiny_op(p, "left"), tiny_op(p, "right")));
    milp_dag_free(d);
    moirai_problem_free(p);
    p = tiny_problem("device A 9\ndevice B 9\nop a 12,18 > s:8\nop b 6,30 s\n");
    assert_int_equal(milp_grid_ns(p), 2);
    moirai_problem_free(p);
}

/* With flow tensor a flow is a tensor and a device. */
static void test_place_milp_dag_flows(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("device A 9\ndevice B 9\ndevice C 9\nop a 1,1,1 > s:1\nop b 1,1,1 s\nop c 1,1,1 s\n");
    milp_dag *d;
    assert_ok(milp_dag_new(&d, p, -1, false));
    assert_int_equal(d->n_flows, 3);
    for (int32_t q = 0; q < 3; q++) {
        assert_int_equal(d->flow[q].reader, MOIRAI_NONE);
        assert_int_equal(d->flow[q].to, q);
        assert_int_equal(d->flow[q].producer, 0);
    }
    milp_dag_free(d);
    moirai_problem_free(p);
}

/* Within 20 ns b can't be on A: a ends at 5 and b takes 30 there. */
static void test_place_milp_dag_windows(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 9\ndevice B 9\nop a 5,- > s:7\nop b 30,6 s\n");
    milp_dag *d;
    assert_ok(milp_dag_new(&d, p, 20, true));
    int32_t a = tiny_op(p, "a"), b = tiny_op(p, "b");
    assert_false(milp_allowed(d, a, 1));
    assert_false(milp_allowed(d, b, 0));
    assert_true(milp_allowed(d, b, 1));
    assert_int_equal(d->head[b * 2 + 1], 12);
    assert_int_equal(d->tail[a * 2 + 0], 13);
    assert_int_equal(d->first_start[b], 12);
    assert_int_equal(d->last_start[b], 14);
    milp_dag_free(d);
    assert_int_equal(milp_dag_new(&d, p, 17, true), MOIRAI_EINFEASIBLE); /* 18 is the least */
    moirai_problem_free(p);
}

static void test_place_milp_dag_symmetry(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("flow edge\ndevice A 10\ndevice B 10\ndevice C 10\nop in 10,10,9 > t:10\nop left "
                                     "40,40,9 t > u:0\nop right 40,40,9 t > v:0\n");
    milp_dag *d;
    assert_ok(milp_dag_new(&d, p, -1, false));
    milp_symmetry(d);
    assert_int_equal(d->device_class[0], 0);
    assert_int_equal(d->device_class[1], 0); /* interchangeable with A */
    assert_int_equal(d->device_class[2], 2);
    assert_int_equal(d->twin[tiny_op(p, "left")], tiny_op(p, "right"));
    assert_int_equal(d->twin[tiny_op(p, "in")], MOIRAI_NONE);
    milp_dag_free(d);
    moirai_problem_free(p);
}

/* ---- the abstract model ---- */

/* Repeated columns add up, constants go to the right, what cancels is dropped. */
static void test_place_milp_model_collects_terms(void **state)
{
    (void)state;
    milp_model m = {0};
    int32_t x = milp_col(&m, MILP_TIME, 0, 100, "x_%d", 1), y = milp_col(&m, MILP_BINARY, 0, 1, "y");
    milp_term(&m, x, 2);
    milp_term(&m, y, 5);
    milp_term(&m, x, 1);
    milp_term(&m, -1, 99); /* no such column: nothing */
    milp_constant(&m, 4);
    milp_row(&m, '<', 10, MILP_TIMES, "row_%s", "one");
    assert_int_equal(m.n_rows, 1);
    assert_int_equal(m.n_cols, 2);
    assert_true(m.row_sense[0] == '<' && m.row_rhs[0] == 6);
    assert_int_equal(m.row_off[1] - m.row_off[0], 2);
    assert_int_equal(m.index[0], x);
    assert_true(m.value[0] == 3 && m.value[1] == 5);
    assert_string_equal(milp_col_name(&m, x), "x_1");
    assert_string_equal(milp_row_name(&m, 0), "row_one");
    milp_term(&m, y, 1);
    milp_row(&m, '=', 1, MILP_COUNT, "two");
    assert_int_equal(m.row_off[2] - m.row_off[1], 1); /* the first row's terms are gone */
    milp_model_free(&m);
}

/* ---- plans in and out ---- */

/* The plan's decisions as columns, read back, are the plan; and every row about decisions alone holds. */
static void test_place_milp_encode_and_answer(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_spec spec = random_spec_draw(seed, 9);
        spec.memory = MOIRAI_MEMORY_STATIC;
        spec.tight = false;
        moirai_problem *p = random_problem(&spec);
        moirai_plan *plan = NULL, *again;
        milp_program *g;
        milp_answer a;
        if (!p || moirai_place(&plan, p, "heft", NULL)) {
            moirai_problem_free(p);
            continue;
        }
        moirai_formulation f = seed % 2 ? MOIRAI_FORMULATION_TIGHT : MOIRAI_FORMULATION_PAPER;
        assert_ok(milp_program_new(&g, p, f, plan->makespan_ns, 1000000, NULL));
        double *value = calloc((size_t)g->m.n_cols, sizeof *value);
        assert_ok(milp_encode(value, g, plan));
        for (int32_t j = 0; j < g->m.n_cols; j++)
            assert_true(value[j] != value[j] || (value[j] >= g->m.col_lo[j] && value[j] <= g->m.col_hi[j]));
        for (int64_t r = 0; r < g->m.n_rows; r++) {
            double sum = 0;
            for (int64_t t = g->m.row_off[r]; t < g->m.row_off[r + 1]; t++)
                sum += g->m.value[t] * value[g->m.index[t]];
            if (sum == sum) { /* all of it is decided */
                bool holds = g->m.row_sense[r] == '<'   ? sum <= g->m.row_rhs[r] + 1e-6
                             : g->m.row_sense[r] == '>' ? sum >= g->m.row_rhs[r] - 1e-6
                                                        : sum > g->m.row_rhs[r] - 1e-6 && sum < g->m.row_rhs[r] + 1e-6;
                if (!holds)
                    fail_msg("%s: row %s does not hold", random_spec_text(&spec), milp_row_name(&g->m, r));
            }
        }
        for (int32_t j = 0; j < g->m.n_cols; j++)
            value[j] = value[j] == value[j] ? value[j] : 0;
        assert_ok(milp_answer_init(&a, p));
        assert_ok(milp_answer_from(&a, g, value));
        assert_ok(milp_answer_plan(&again, p, &a, NULL));
        assert_ok(moirai_plan_check(p, again, NULL, NULL));
        moirai_plan_free(again);
        milp_answer_free(&a);
        free(value);
        milp_program_free(g);
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
}

/* Arcs of an answer hold: `right` waits for `left`, though nothing else asks for it. */
static void test_place_milp_answer_obeys_arcs(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(FORK);
    milp_answer a;
    moirai_plan *plan;
    assert_ok(milp_answer_init(&a, p));
    a.device[0] = a.device[1] = 0;
    a.device[2] = 1;
    assert_ok(milp_answer_plan(&plan, p, &a, NULL));
    assert_int_equal(plan->makespan_ns, 10 + 10 + 60);
    moirai_plan_free(plan);
    assert_ok(milp_answer_arc(&a, 1, 2));
    assert_ok(milp_answer_plan(&plan, p, &a, NULL));
    assert_int_equal(plan->makespan_ns, 50 + 60);
    moirai_plan_free(plan);
    assert_ok(milp_answer_arc(&a, 2, 1));
    assert_int_equal(milp_answer_plan(&plan, p, &a, NULL), MOIRAI_EFAIL); /* a circle */
    milp_answer_free(&a);
    moirai_problem_free(p);
}

/* Floating point may miss a whole number by a hair, and must not claim one that it has not reached. */
static void test_place_milp_safe_bound_rounds_the_right_way(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(FORK);
    milp_program *g;
    assert_ok(milp_program_new(&g, p, MOIRAI_FORMULATION_TIGHT, -1, 100000, NULL));
    assert_int_equal(milp_safe_bound(g, 4.0), 4);
    assert_int_equal(milp_safe_bound(g, 3.9999999999), 4);
    assert_int_equal(milp_safe_bound(g, 3.5), 4);
    assert_true(milp_safe_bound(g, 4.0000000001) == 4);
    assert_int_equal(milp_safe_bound(g, -5), 0);
    milp_program_free(g);
    moirai_problem_free(p);
}

/* ---- memory ---- */

/* Three tensors of 8, 5 and 3 are alive together; 10 bytes are there: the two largest are too many already. */
static void test_place_milp_overflow_names_the_fewest(void **state)
{
    (void)state;
    moirai_problem *p =
        tiny_problem("memory peak\ndevice A 100\nop a 1 > s:8\nop b 1 > t:5\nop c 1 > u:3\nop d 1 s t u\n");
    moirai_plan *plan = tiny_place(p, "single");
    int32_t clique[3], n = 0;
    assert_int_equal(milp_overflow(p, plan, 0, clique, &n), 0);
    p->device_memory_bytes[0] = 10;
    assert_int_equal(milp_overflow(p, plan, 0, clique, &n), 6);
    assert_int_equal(n, 2);
    int64_t bytes = p->tensor_bytes[clique[0]] + p->tensor_bytes[clique[1]];
    assert_int_equal(bytes, 13);
    milp_peak k = {0};
    assert_true(milp_peak_add(&k, 0, clique, n));
    assert_false(milp_peak_add(&k, 0, clique, n)); /* known */
    assert_int_equal(k.n_cliques, 1);
    milp_peak_free(&k);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_place_milp_count_grows_with_the_problem(void **state)
{
    (void)state;
    moirai_problem *small = zoo_problem("gpt3-tiny", "inter-server", MOIRAI_FLOW_TENSOR),
                   *large = zoo_problem("gpt3-mini", "inter-server", MOIRAI_FLOW_TENSOR);
    int64_t a, b, c;
    assert_ok(milp_rows_estimate(&a, small, MOIRAI_FORMULATION_TIGHT));
    assert_ok(milp_rows_estimate(&b, large, MOIRAI_FORMULATION_TIGHT));
    assert_ok(milp_rows_estimate(&c, large, MOIRAI_FORMULATION_PAPER));
    assert_true(a > 0 && b > 4 * a && c > b);
    assert_int_equal(milp_refuse(large, MOIRAI_FORMULATION_PAPER, c, 10), MOIRAI_ELIMIT);
    moirai_problem_free(small);
    moirai_problem_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_milp_dag_counts_in_a_grid),
        cmocka_unit_test(test_place_milp_dag_flows),
        cmocka_unit_test(test_place_milp_dag_windows),
        cmocka_unit_test(test_place_milp_dag_symmetry),
        cmocka_unit_test(test_place_milp_model_collects_terms),
        cmocka_unit_test(test_place_milp_encode_and_answer),
        cmocka_unit_test(test_place_milp_answer_obeys_arcs),
        cmocka_unit_test(test_place_milp_safe_bound_rounds_the_right_way),
        cmocka_unit_test(test_place_milp_overflow_names_the_fewest),
        cmocka_unit_test(test_place_milp_count_grows_with_the_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
