/* milp against exhaustive search (and the placer "exact") on random problems, to the nanosecond.
 *
 * The default run takes a few dozen problems; MOIRAI_FULL_TESTS=1 takes 500 of 3 to 9 operators on 2 and 3 devices. */
#include "support/brute_force.h"
#include "support/check.h"
#include "support/random_problem.h"

#include <moirai/moirai.h>

#include "util/util.h"

static bool full(void)
{
    const char *text = getenv("MOIRAI_FULL_TESTS");
    return text && *text && strcmp(text, "0") != 0;
}

/* The least makespan as `placer` proves it; BRUTE_INFEASIBLE where it proves that there is none. */
static int64_t proven(const moirai_problem *p, const char *placer, const char *formulation, const char *warm)
{
    moirai_plan *plan = NULL;
    moirai_place_options o;
    moirai_setting setting[] = {{"formulation", formulation}, {"warm-start", warm}};
    moirai_place_options_init(&o);
    o.gap = 0;
    o.budget.threads = 1;
    o.setting = formulation ? setting : NULL;
    o.n_settings = formulation ? 2 : 0;
    int result = moirai_place(&plan, p, placer, &o);
    if (result == MOIRAI_EINFEASIBLE)
        return BRUTE_INFEASIBLE;
    assert_ok(result);
    int64_t bound = UTIL_MAX(plan->lower_bound_ns, plan->solver_bound_ns);
    if (bound != plan->makespan_ns)
        fail_msg("%s: makespan %lld, bound %lld", placer, (long long)plan->makespan_ns, (long long)bound);
    int64_t makespan = plan->makespan_ns;
    moirai_plan_free(plan);
    return makespan;
}

static random_spec draw(uint64_t seed, int least, int most)
{
    random_spec s = random_spec_draw(seed, most);
    s.n_ops = least + (int)(seed % (uint64_t)(most - least + 1));
    s.n_devices = 2 + (int)(seed / 7 % 2);
    return s;
}

static int compare(uint64_t seed, int least, int most, int64_t nodes, const char *formulation, const char *warm)
{
    random_spec spec = draw(seed, least, most);
    moirai_problem *p = random_problem(&spec);
    assert_non_null(p);
    int64_t truth = brute_force(p, nodes, NULL);
    if (truth != BRUTE_GAVE_UP) {
        int64_t found = proven(p, "milp", formulation, warm);
        if (found != truth)
            fail_msg("milp %s %s: %lld, exhaustive search: %lld: %s", formulation, warm, (long long)found,
                     (long long)truth, random_spec_text(&spec));
        if (moirai_placer_find("exact") && (found = proven(p, "exact", NULL, NULL)) != truth)
            fail_msg("exact: %lld, exhaustive search: %lld: %s", (long long)found, (long long)truth,
                     random_spec_text(&spec));
    }
    moirai_problem_free(p);
    return truth != BRUTE_GAVE_UP;
}

static void test_milp_random_tight(void **state)
{
    (void)state;
    int done = 0, want = full() ? 500 : 40;
    for (uint64_t seed = 1; done < want; seed++)
        done +=
            full() ? compare(seed, 3, 9, 2000000, "tight", "cutoff") : compare(seed, 3, 6, 50000, "tight", "cutoff");
}

static void test_milp_random_paper(void **state)
{
    (void)state;
    int done = 0, want = full() ? 100 : 12;
    for (uint64_t seed = 1001; done < want; seed++)
        done += compare(seed, 3, full() ? 7 : 5, 50000, "paper", "cutoff");
}

static void test_milp_random_warm_starts(void **state)
{
    (void)state;
    int done = 0, want = full() ? 100 : 12;
    for (uint64_t seed = 2001; done < want; seed++)
        done += compare(seed, 3, full() ? 7 : 6, 50000, seed % 3 ? "tight" : "paper", seed % 2 ? "solution" : "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_milp_random_tight),
        cmocka_unit_test(test_milp_random_paper),
        cmocka_unit_test(test_milp_random_warm_starts),
    };
    const char *why;
    const moirai_placer *milp = moirai_placer_find("milp");
    if (!milp->available(&why)) {
        printf("skipped: milp: %s\n", why);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
