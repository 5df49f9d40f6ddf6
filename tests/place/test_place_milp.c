/* The mixed-integer program: its rows, its answers, its text, its refusals. */
#include "support/check.h"
#include "support/random_problem.h"
#include "place/milp/milp.h"

#include <moirai/moirai.h>

#define NEEDS_SOLVER \
    do { \
        const char *why_; \
        if (!moirai_placer_find("milp")->available(&why_)) \
            skip(); \
    } while (0)

/* Two devices, a fork of two operators; memory in bytes per device. */
static moirai_problem *fork_problem(int memory, const char *flow)
{
    char text[2000];
    int n = snprintf(
        text, sizeof text,
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"fork\",\"flow\":\"%s\",\"congestion\":\"port\","
        "\"memory\":\"static\",\"devices\":[{\"name\":\"A\",\"memory_bytes\":%d},{\"name\":\"B\",\"memory_bytes\":%d}],"
        "\"channels\":[{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000,\"latency_ns\":0},"
        "{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":1000000000,\"latency_ns\":0}],\"ops\":["
        "{\"name\":\"in put\",\"type\":\"a\",\"memory_bytes\":2,\"time_ns\":[10,20],\"inputs\":[],"
        "\"outputs\":[{\"name\":\"t\",\"bytes\":10}]},"
        "{\"name\":\"left\",\"type\":\"a\",\"memory_bytes\":4,\"time_ns\":[40,60],\"inputs\":[\"t\"],\"outputs\":[]},"
        "{\"name\":\"right\",\"type\":\"a\",\"memory_bytes\":4,\"time_ns\":[40,60],\"inputs\":[\"t\"],\"outputs\":[]}]"
        "}",
        flow, memory, memory);
    moirai_problem *p;
    assert_ok(moirai_problem_parse(&p, text, (size_t)n, "fork"));
    return p;
}

static moirai_plan *solve(const moirai_problem *p, const char *formulation)
{
    moirai_plan *plan;
    moirai_place_options o;
    moirai_setting setting = {"formulation", formulation};
    moirai_place_options_init(&o);
    o.gap = 0;
    o.setting = &setting;
    o.n_settings = 1;
    assert_ok(moirai_place(&plan, p, "milp", &o));
    return plan;
}

static bool has_row(const milp_program *g, const char *name)
{
    for (int64_t r = 0; r < g->m.n_rows; r++)
        if (strcmp(milp_row_name(&g->m, r), name) == 0)
            return true;
    return false;
}

static void test_milp_rows_carry_equation_numbers(void **state)
{
    (void)state;
    moirai_problem *p = fork_problem(10, "edge");
    milp_program *g;
    assert_ok(milp_program_new(&g, p, MOIRAI_FORMULATION_PAPER, -1, 1000, NULL));
    const char *rows[] = {"c4a_0.in.put_1.left",
                          "c4a_0.in.put_q0.t.left",
                          "c4a_q0.t.left_1.left",
                          "c4b_1.left",
                          "c4c_1.left",
                          "c4e_1.left_2.right_0.A_1",
                          "c4e_1.left_2.right_1.B_2",
                          "c4f1_q0.t.left_0.A",
                          "c4f4_q1.t.right",
                          "c4f5_q0.t.left_0.A_1.B",
                          "c4f6_q0.t.left",
                          "c4g_q0.t.left_q1.t.right_0.A_1"};
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++)
        if (!has_row(g, rows[n]))
            fail_msg("no row %s", rows[n]);
    milp_program_free(g);
    moirai_problem_free(p);
}

static void test_milp_names_are_unique_and_safe(void **state)
{
    (void)state;
    random_spec spec = {
        .seed = 5, .shape = SHAPE_DENSE, .n_ops = 6, .n_devices = 3, .flow = MOIRAI_FLOW_TENSOR, .scale = 10};
    moirai_problem *p = random_problem(&spec);
    assert_non_null(p);
    for (int f = 0; f < 2; f++) {
        milp_program *g;
        assert_ok(milp_program_new(&g, p, (moirai_formulation)f, -1, 100000, NULL));
        util_names *seen = util_names_new(1000);
        for (int64_t n = 0; n < g->m.n_rows + g->m.n_cols; n++) {
            const char *name =
                n < g->m.n_rows ? milp_row_name(&g->m, n) : milp_col_name(&g->m, (int32_t)(n - g->m.n_rows));
            assert_int_equal(util_names_put(seen, name, (int32_t)n), n);
            assert_true(strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._") ==
                        strlen(name));
            assert_null(strchr("0123456789.eE", name[0]));
        }
        util_names_free(seen);
        milp_program_free(g);
    }
    moirai_problem_free(p);
}

static void test_milp_count_is_what_is_built(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        random_spec spec = random_spec_draw(seed, 12);
        moirai_problem *p = random_problem(&spec);
        assert_non_null(p);
        for (int f = 0; f < 2; f++) {
            moirai_milp_size size;
            milp_program *g;
            assert_ok(moirai_milp_measure(&size, p, (moirai_formulation)f, NULL));
            assert_ok(milp_program_new(&g, p, (moirai_formulation)f, -1, size.rows, NULL));
            assert_int_equal(size.rows, g->m.n_rows);
            assert_int_equal(size.columns, g->m.n_cols);
            milp_program_free(g);
        }
        moirai_problem_free(p);
    }
}

static void test_milp_formulations_agree(void **state)
{
    (void)state;
    NEEDS_SOLVER;
    moirai_problem *p = fork_problem(10, "tensor");
    moirai_plan *tight = solve(p, "tight"), *paper = solve(p, "paper");
    assert_int_equal(tight->makespan_ns, 80);
    assert_int_equal(paper->makespan_ns, 80);
    /* the solver's word, in floating point, which is no proof */
    assert_int_equal(tight->solver_bound_ns, 80);
    assert_int_equal(paper->solver_bound_ns, 80);
    assert_true(tight->lower_bound_ns <= 80 && paper->lower_bound_ns <= 80);
    moirai_plan_free(tight);
    moirai_plan_free(paper);
    moirai_problem_free(p);
}

static void test_milp_tight_is_smaller(void **state)
{
    (void)state;
    moirai_problem *p;
    moirai_plan *start;
    assert_ok(moirai_problem_read(&p, data_path("two-branches.problem.json")));
    assert_ok(moirai_place(&start, p, "heft", NULL));
    moirai_milp_size tight, paper;
    assert_ok(moirai_milp_measure(&tight, p, MOIRAI_FORMULATION_TIGHT, start));
    assert_ok(moirai_milp_measure(&paper, p, MOIRAI_FORMULATION_PAPER, start));
    assert_true(tight.rows < paper.rows && tight.binaries < paper.binaries);
    moirai_plan_free(start);
    moirai_problem_free(p);
}

static void test_milp_two_branches(void **state)
{
    (void)state;
    NEEDS_SOLVER;
    moirai_problem *p;
    assert_ok(moirai_problem_read(&p, data_path("two-branches.problem.json")));
    moirai_plan *plan = solve(p, "tight");
    assert_int_equal(plan->makespan_ns, 36500000);
    assert_int_equal(plan->solver_bound_ns, 36500000);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_milp_infeasible_memory_is_explained(void **state)
{
    (void)state;
    NEEDS_SOLVER;
    moirai_plan *plan;
    moirai_problem *p = fork_problem(5, "edge"); /* 10 bytes in all, but 2 + 4 and 4 + 4 do not pair into 5 + 5 */
    assert_int_equal(moirai_place(&plan, p, "milp", NULL), MOIRAI_EINFEASIBLE);
    assert_non_null(strstr(moirai_error_message(), "device '"));
    assert_non_null(strstr(moirai_error_message(), "1 B short"));
    moirai_problem_free(p);
}

static void test_milp_refuses_large_models(void **state)
{
    (void)state;
    NEEDS_SOLVER;
    moirai_plan *plan;
    moirai_place_options o;
    moirai_setting setting[] = {{"max-rows", "10"}, {"formulation", "paper"}};
    moirai_problem *p = fork_problem(10, "edge");
    moirai_place_options_init(&o);
    o.setting = setting;
    o.n_settings = 2;
    assert_int_equal(moirai_place(&plan, p, "milp", &o), MOIRAI_ELIMIT);
    assert_non_null(strstr(moirai_error_message(), "rows"));
    assert_non_null(strstr(moirai_error_message(), "'moirai'"));
    assert_int_equal(
        moirai_milp_export(p, MOIRAI_FORMULATION_TIGHT, "lp", NULL, 3, temporary_path("big.lp"), NULL, NULL),
        MOIRAI_ELIMIT);
    moirai_problem_free(p);
}

/* 20,000 operators: refused by counting alone. */
static void test_milp_refuses_the_largest_without_building(void **state)
{
    (void)state;
    moirai_milp_size size;
    moirai_problem *p = zoo_problem("gpt3-13B", "inter-server", MOIRAI_FLOW_TENSOR);
    int64_t rows;
    assert_ok(milp_rows_estimate(&rows, p, MOIRAI_FORMULATION_TIGHT));
    assert_true(rows > 100000000);
    assert_int_equal(moirai_milp_export(p, MOIRAI_FORMULATION_TIGHT, "lp", NULL, MOIRAI_MILP_MAX_ROWS,
                                        temporary_path("huge.lp"), &size, NULL),
                     MOIRAI_ELIMIT);
    moirai_problem_free(p);
}

typedef struct witness {
    int calls;
    int64_t bound, makespan;
    bool fell;
} witness;

static void watch(void *data, const moirai_progress *news)
{
    witness *w = data;
    w->calls++;
    w->fell = w->fell || (news->lower_bound_ns != MOIRAI_UNKNOWN && news->lower_bound_ns < w->bound) ||
              (news->makespan_ns != MOIRAI_UNKNOWN && w->makespan > 0 && news->makespan_ns > w->makespan);
    w->bound = news->lower_bound_ns != MOIRAI_UNKNOWN ? news->lower_bound_ns : w->bound;
    w->makespan = news->makespan_ns != MOIRAI_UNKNOWN ? news->makespan_ns : w->makespan;
    assert_true(w->makespan == 0 || w->bound <= w->makespan);
}

static void test_milp_progress_is_monotone_and_interrupt_keeps_the_plan(void **state)
{
    (void)state;
    NEEDS_SOLVER;
    random_spec spec = {
        .seed = 3, .shape = SHAPE_LAYERED, .n_ops = 24, .n_devices = 3, .flow = MOIRAI_FLOW_TENSOR, .scale = 100};
    moirai_problem *p = random_problem(&spec);
    assert_non_null(p);
    witness w = {0};
    moirai_interrupt stop = {0};
    moirai_plan *plan;
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.gap = 0;
    o.budget.time_limit_s = 2;
    o.budget.progress = watch;
    o.budget.progress_data = &w;
    o.budget.interrupt = &stop;
    assert_ok(moirai_place(&plan, p, "milp", &o));
    assert_true(w.calls > 0 && !w.fell);
    moirai_interrupt_raise(&stop);
    o.start = plan;
    moirai_plan *kept;
    assert_ok(moirai_place(&kept, p, "milp", &o));
    assert_true(kept->makespan_ns <= plan->makespan_ns);
    moirai_plan_free(kept);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

/* A plan that is a solution, encoded, must satisfy every row when the continuous columns are filled in from its times.
 */
static void test_milp_start_is_a_solution(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_spec spec = random_spec_draw(seed, 8);
        spec.memory = MOIRAI_MEMORY_STATIC;
        spec.tight = false;
        moirai_problem *p = random_problem(&spec);
        moirai_plan *plan;
        assert_non_null(p);
        assert_ok(moirai_place(&plan, p, "heft", NULL));
        for (int f = 0; f < 2; f++) {
            milp_program *g;
            assert_ok(milp_program_new(&g, p, (moirai_formulation)f, plan->makespan_ns, 100000, NULL));
            double *value = malloc((size_t)g->m.n_cols * sizeof *value);
            assert_ok(milp_encode(value, g, plan));
            for (int64_t r = 0; r < g->m.n_rows; r++) { /* rows over decided columns only */
                double sum = 0;
                for (int64_t z = g->m.row_off[r]; z < g->m.row_off[r + 1]; z++)
                    sum += g->m.value[z] * value[g->m.index[z]];
                if (sum != sum)
                    continue;
                char sense = g->m.row_sense[r];
                if ((sense != '>' && sum > g->m.row_rhs[r]) || (sense != '<' && sum < g->m.row_rhs[r]))
                    fail_msg("seed %d, formulation %d: row %s: %g %c %g", (int)seed, f, milp_row_name(&g->m, r), sum,
                             sense, g->m.row_rhs[r]);
            }
            free(value);
            milp_program_free(g);
        }
        moirai_plan_free(plan);
        moirai_problem_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_milp_rows_carry_equation_numbers),
        cmocka_unit_test(test_milp_names_are_unique_and_safe),
        cmocka_unit_test(test_milp_count_is_what_is_built),
        cmocka_unit_test(test_milp_formulations_agree),
        cmocka_unit_test(test_milp_tight_is_smaller),
        cmocka_unit_test(test_milp_two_branches),
        cmocka_unit_test(test_milp_infeasible_memory_is_explained),
        cmocka_unit_test(test_milp_refuses_large_models),
        cmocka_unit_test(test_milp_refuses_the_largest_without_building),
        cmocka_unit_test(test_milp_progress_is_monotone_and_interrupt_keeps_the_plan),
        cmocka_unit_test(test_milp_start_is_a_solution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
