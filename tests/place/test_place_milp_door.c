/* The door to other solvers: text out, answers in. cbc and glpsol are used where they are installed. */
#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"
#include "support/tiny.h"

#include <moirai/moirai.h>

static moirai_problem *pair_problem(void)
{
    static const char text[] =
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"pair\",\"flow\":\"edge\",\"congestion\":\"port\","
        "\"memory\":\"static\","
        "\"devices\":[{\"name\":\"A\",\"memory_bytes\":4},{\"name\":\"B\",\"memory_bytes\":4}],"
        "\"channels\":[{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000,\"latency_ns\":0},"
        "{\"from\":\"B\",\"to\":\"A\",\"bytes_per_second\":1000000000,\"latency_ns\":0}],\"ops\":["
        "{\"name\":\"a\",\"type\":\"X\",\"memory_bytes\":3,\"time_ns\":[20,30],\"inputs\":[],\"outputs\":[{\"name\":"
        "\"t\",\"bytes\":10}]},"
        "{\"name\":\"b\",\"type\":\"X\",\"memory_bytes\":3,\"time_ns\":[50,40],\"inputs\":[\"t\"],\"outputs\":[]}]}";
    moirai_problem *p;
    assert_ok(moirai_problem_parse(&p, text, sizeof text - 1, "pair"));
    return p;
}

static int import_text(moirai_plan **plan, const moirai_problem *p, const char *text, bool trust,
                       moirai_milp_claim *claim)
{
    char *path = temporary_path("answer.sol");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    int result = moirai_milp_import(plan, p, path, trust, claim);
    remove(path);
    return result;
}

static const char *const dialects[][3] = {
    {"highs", "Optimal",
     "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 7\n# Columns 5\nT 7\nx_0.a_0.A "
     "1\nx_0.a_1.B 0\n"
     "x_1.b_0.A 0\nx_1.b_1.B 1\nS_0.a 0\nS_1.b 3\nS_q0.t.b 2\n# Rows 1\nc4c_0.a 1\n\n# Dual solution values\nNone\n"},
    {"cbc", "Optimal - objective value 7.00000000",
     "Optimal - objective value 7.00000000\n      0 T      7      0\n      1 x_0.a_0.A      1      0\n      4 "
     "x_1.b_1.B  1  0\n"
     "      7 S_1.b      3     0\n      9 S_q0.t.b   2   0\n"},
    {"gurobi", "",
     "# Solution for model obj\n# Objective value = 7\nT 7\nx_0.a_0.A 1\nx_0.a_1.B 0\nx_1.b_1.B 1\nS_1.b 3\nS_q0.t.b "
     "2\n"},
    {"scip", "optimal solution found",
     "solution status: optimal solution found\nobjective value:                                    7\n"
     "T                                                   7 \t(obj:1)\nx_0.a_0.A                     1 \t(obj:0)\n"
     "x_1.b_1.B      1 \t(obj:0)\nS_1.b    3 \t(obj:0)\nS_q0.t.b  2 \t(obj:0)\n"},
    {"glpk", "INTEGER OPTIMAL",
     "Problem:\nRows:       9\nColumns:    8 (4 integer, 4 binary)\nNon-zeros:  9\nStatus:     INTEGER "
     "OPTIMAL\nObjective:  obj = 7 (MINimum)\n\n"
     "   No. Column name       Activity     Lower bound   Upper bound\n------ ------------\n"
     "     1 T                             7             5             9\n     2 x_0.a_0.A    *              1         "
     "    0             1\n"
     "     3 x_1.b_1.B    *              1             0             1\n     4 S_1.b                         3         "
     "    0             9\n"},
};

static void test_milp_import_takes_every_dialect(void **state)
{
    (void)state;
    moirai_problem *p = pair_problem();
    for (size_t n = 0; n < sizeof dialects / sizeof *dialects; n++) {
        moirai_plan *plan;
        moirai_milp_claim claim;
        assert_ok(import_text(&plan, p, dialects[n][2], false, &claim));
        assert_string_equal(claim.solver, dialects[n][0]);
        assert_string_equal(claim.status, dialects[n][1]);
        assert_int_equal(claim.optimal, strcmp(dialects[n][0], "gurobi") != 0);
        assert_int_equal(claim.objective_ns, 70);
        assert_int_equal(plan->makespan_ns, 70);
        assert_int_equal(plan->op_device[0], 0);
        assert_int_equal(plan->op_device[1], 1);
        assert_ok(moirai_plan_check(p, plan, NULL, NULL));
        moirai_plan_free(plan);
    }
    moirai_problem_free(p);
}

static void test_milp_import_proves_nothing_by_hearsay(void **state)
{
    (void)state;
    moirai_problem *p = pair_problem();
    moirai_plan *plan;
    moirai_milp_claim claim;
    const char *slow = "Optimal - objective value 5.0\n 1 x_0.a_0.A 1 0\n 2 x_1.b_1.B 1 0\n";
    assert_ok(import_text(&plan, p, slow, true, &claim)); /* claims 50 ns, takes 70 */
    assert_int_equal(plan->makespan_ns, 70);
    assert_false(moirai_plan_is_optimal(plan));
    moirai_plan_free(plan);
    assert_ok(import_text(&plan, p, dialects[1][2], false, &claim));
    assert_false(moirai_plan_is_optimal(plan));
    moirai_plan_free(plan);
    assert_ok(import_text(&plan, p, dialects[1][2], true, &claim));
    assert_false(moirai_plan_is_optimal(plan)); /* trusted, not proven */
    assert_int_equal(plan->solver_bound_ns, plan->makespan_ns);
    assert_string_equal(moirai_plan_verdict(plan), "feasible (optimal by its solver's word)");
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_milp_import_refuses_nonsense(void **state)
{
    (void)state;
    moirai_problem *p = pair_problem();
    const struct {
        const char *text;
        int result;
    } cases[] = {
        {"", MOIRAI_EINPUT},
        {"hello\n", MOIRAI_EINPUT},
        {"x_0.a_0.A 1\n", MOIRAI_EINPUT},
        {"x_0.a_9.Z 1\nx_1.b_0.A 1\n", MOIRAI_EINPUT},
        {"x_99999999999999.a_0.A 1\n", MOIRAI_EINPUT},
        {"x_0.a_0.A one\n", MOIRAI_EINPUT},
        {"x_0.a_0.A\n", MOIRAI_EINPUT},
        {"x_0.a_0.A nan\n", MOIRAI_EINPUT},
        {"S_q77.t.b 1\n", MOIRAI_EINPUT},
        {"S_ 1\n", MOIRAI_EINPUT},
        {"x__ 1\n", MOIRAI_EINPUT},
        {"Infeasible - objective value 0\n", MOIRAI_EINPUT},
        {"x_0.a_0.A 1\nx_1.b_0.A 1\n", MOIRAI_EINFEASIBLE}, /* 6 bytes on a device of 4 */
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        moirai_plan *plan;
        if (import_text(&plan, p, cases[n].text, true, NULL) != cases[n].result)
            fail_msg("case %d is taken: %s", (int)n, moirai_error_message());
        assert_null(plan);
        assert_non_null(strstr(moirai_error_message(), "answer.sol"));
    }
    moirai_problem_free(p);
}

/* ---- real solvers ---- */

static bool installed(const char *command)
{
    char line[200];
    snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", command);
    return system(line) == 0;
}

static moirai_plan *best_plan(const moirai_problem *p)
{
    moirai_plan *plan;
    moirai_place_options o;
    moirai_place_options_init(&o);
    o.gap = 0;
    const char *why;
    assert_ok(moirai_place(&plan, p, moirai_placer_find("milp")->available(&why) ? "milp" : "exact", &o));
    assert_true(moirai_plan_is_optimal(plan) || plan->solver_bound_ns == plan->makespan_ns);
    return plan;
}

/* Export, let `format`'s command solve, import with trust: the same optimum. */
static void round_trip(const moirai_problem *p, int64_t optimum, moirai_formulation f, const char *to,
                       const char *command)
{
    char *model = temporary_path(strcmp(to, "lp") == 0 ? "door.lp" : "door.mps"), *answer = temporary_path("door.sol"),
         line[1000];
    moirai_plan *plan;
    moirai_milp_claim claim;
    assert_ok(moirai_milp_export(p, f, to, NULL, 100000, model, NULL, NULL));
    remove(answer);
    snprintf(line, sizeof line, command, model, answer);
    assert_int_equal(system(line), 0);
    assert_ok(moirai_milp_import(&plan, p, answer, true, &claim));
    assert_true(claim.optimal);
    assert_int_equal(plan->makespan_ns, optimum);
    assert_int_equal(plan->solver_bound_ns, optimum);
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    moirai_plan_free(plan);
    remove(model);
    remove(answer);
}

static void solver_trips(const char *lp, const char *mps)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        random_spec spec = random_spec_draw(seed, 4);
        spec.n_ops = 4;
        spec.n_devices = 2;
        spec.memory = MOIRAI_MEMORY_STATIC;
        spec.tight = false;
        moirai_problem *p = random_problem(&spec);
        assert_non_null(p);
        moirai_plan *best = best_plan(p);
        round_trip(p, best->makespan_ns, MOIRAI_FORMULATION_TIGHT, "lp", lp);
        round_trip(p, best->makespan_ns, MOIRAI_FORMULATION_PAPER, "lp", lp);
        round_trip(p, best->makespan_ns, MOIRAI_FORMULATION_TIGHT, "mps", mps);
        moirai_plan_free(best);
        moirai_problem_free(p);
    }
}

static void test_milp_door_cbc(void **state)
{
    (void)state;
    if (!installed("cbc"))
        skip_because("cbc is not here");
    solver_trips("cbc %s solve solu %s >/dev/null 2>&1", "cbc %s solve solu %s >/dev/null 2>&1");
}

static void test_milp_door_glpsol(void **state)
{
    (void)state;
    if (!installed("glpsol"))
        skip_because("glpsol is not here");
    solver_trips("glpsol --lp %s -o %s >/dev/null 2>&1", "glpsol --freemps %s -o %s >/dev/null 2>&1");
}

/* Memory binds: A holds three of the seven. */
static void test_milp_door_cbc_proves_an_optimum(void **state)
{
    (void)state;
    if (!installed("cbc"))
        skip_because("cbc is not here");
    moirai_problem *p =
        tiny_problem("flow edge\ndevice A 9\ndevice B 14\nop stem 4,6 > s:3 mem=3\nop l1 5,9 s > a:4 mem=3\n"
                     "op l2 3,5 a > b:2 mem=3\nop r1 6,5 s > c:5 mem=3\nop r2 4,7 c b > d:1 mem=3\n"
                     "op join 5,4 b d > e:2 mem=3\nop out 2,3 e mem=3\n");
    int64_t best = brute_force(p, 10000000, NULL);
    assert_true(best > 0);
    round_trip(p, best, MOIRAI_FORMULATION_TIGHT, "lp", "cbc %s solve solu %s >/dev/null 2>&1");
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_milp_import_takes_every_dialect),
        cmocka_unit_test(test_milp_import_proves_nothing_by_hearsay),
        cmocka_unit_test(test_milp_import_refuses_nonsense),
        cmocka_unit_test(test_milp_door_cbc),
        cmocka_unit_test(test_milp_door_glpsol),
        cmocka_unit_test(test_milp_door_cbc_proves_an_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
