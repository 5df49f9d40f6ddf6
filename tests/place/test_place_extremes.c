/* Problems at the edges of what the formats allow: no bound fails or is false, the default placer finds the optimum of
 * small ones, and its certificate is accepted. */
#include <moirai/moirai.h>
#include <unistd.h>

#include "support/proving.h"
#include "support/brute_force.h"
#include "support/check.h"
#include "support/tiny.h"

#define FAR "72057594037927936" /* 2^56 ns: two years */

static void check_bounds(const moirai_problem *p, int64_t optimum)
{
    moirai_budget budget;
    moirai_budget_init(&budget);
    budget.effort = 0.1;
    budget.threads = 1;
    for (int i = 0; i < moirai_bound_count(); i++) {
        int64_t lower;
        assert_ok(moirai_bound_at(i)->find(&lower, p, &budget));
        if (lower > optimum || lower < MOIRAI_UNKNOWN)
            fail_msg("bound %s %lld, optimum %lld", moirai_bound_at(i)->name, (long long)lower, (long long)optimum);
    }
}

static void check_plan(const moirai_problem *p, int64_t optimum)
{
    moirai_place_options o;
    moirai_plan *plan;
    moirai_proof proof;
    char *path = temporary_path("extreme.json");
    moirai_place_options_init(&o);
    o.budget.effort = 0.1;
    o.budget.threads = 1;
    o.gap = 0;
    o.certificate_path = path;
    assert_ok(moirai_place(&plan, p, "moirai", &o));
    assert_ok(moirai_plan_check(p, plan, NULL, NULL));
    assert_int_equal(plan->makespan_ns, optimum);
    assert_true(plan->lower_bound_ns <= optimum);
    assert_ok(proving_file(&proof, p, path));
    assert_int_equal(proof.certified_ns, plan->certified_bound_ns);
    assert_true(proof.proven_ns <= optimum);
    moirai_plan_free(plan);
    unlink(path);
}

static void check(const char *text)
{
    moirai_problem *p = tiny_problem(text);
    int64_t optimum = brute_force(p, 1000000, NULL);
    assert_true(optimum >= 0);
    check_bounds(p, optimum);
    check_plan(p, optimum);
    moirai_problem_free(p);
}

/* No solver of linear programmes takes numbers so far apart: what needs one does without. */
static void test_place_extremes_times_far_apart(void **state)
{
    (void)state;
    check("flow edge\ndevice A 99\ndevice B 99\nop a 3," FAR "\nop b 3,2 > t:68719\nop c 4,3\nop d " FAR ",3 t\n");
    check("flow edge\ncongestion channel\ndevice A 99\ndevice B 99\ndevice C 99\nop a 0,0," FAR " > t:47\n"
          "op b 3,2," FAR " t > u:40 v:59\nop c 1," FAR ",- t > w:35\nop d " FAR "," FAR ",1 t > x:32\n"
          "op e " FAR ",3," FAR " u v w x\n");
    check("device A 99\ndevice B 99\nop a " FAR "," FAR " > t:5\nop b " FAR "," FAR " t > u:5\nop c 1,1 t > v:5\n"
          "op d " FAR ",1 u v\n");
}

/* Prices on bytes, in units of which one makes a nanosecond. */
static void test_place_extremes_memory_binds_for_years(void **state)
{
    (void)state;
    check("device A 10\ndevice B 100\nop a " FAR ",216172782113783808 mem=10 > s:0\nop b " FAR
          ",216172782113783808 s mem=10\n");
    check("device A 20\ndevice B 100\nop a " FAR ",216172782113783808 mem=10 > s:0\nop b " FAR
          ",216172782113783808 s mem=10 > t:0\nop c " FAR ",216172782113783808 s mem=10 > u:0\nop d 1,1 t u\n");
}

static void test_place_extremes_nothing_takes_time(void **state)
{
    (void)state;
    check("device A 0\ndevice B 0\nop a 0,0 > t:0\nop b 0,0 t > u:0\nop c 0,0 t > v:0\nop d 0,0 u v\n");
    check("flow edge\ndevice A 9\ndevice B 9\nop a 0,- > t:0\nop b -,0 t > u:5\nop c 0,- t > v:0\nop d 0,0 u v\n");
}

/* All on one device takes no time, and a transfer thirteen days: what a plan may cost has no end. */
static void test_place_extremes_links_alone_take_time(void **state)
{
    (void)state;
    check("flow edge\nmemory peak\nlink 1000000000 1125899906842624\ndevice A 10000\ndevice B 10000\n"
          "op a 0,0 > t:6 u:2\nop b -,0 > v:28 w:2\nop c 0,0 t v > x:9 y:36\nop d 0,0 t u v > z:29 r:53\n"
          "op e 0,0 t z > p:17 q:25\n");
}

static void test_place_extremes_one_device(void **state)
{
    (void)state;
    check("device A 9\nop a 7\n");
    check("memory peak\ndevice A 30\nop a 7 > t:10\nop b 3 t mem=5 > u:10\nop c 2 t > v:5\nop d 1 u v\n");
}

/* All devices are equal, but only one has room; links as slow as they can be. */
static void test_place_extremes_one_device_fits(void **state)
{
    (void)state;
    check("link 1 1000000000000\ndevice A 0\ndevice B 40\ndevice C 0\nop a 5,5,5 mem=10 > t:1\n"
          "op b 5,5,5 t mem=10 > u:1\nop c 5,5,5 t mem=10 > v:1\nop d 5,5,5 u v mem=10\n");
    check("memory peak\nlink 1 1000000000000\ndevice A 0\ndevice B 43\ndevice C 0\nop a 5,5,5 mem=10 > t:1\n"
          "op b 5,5,5 t mem=10 > u:1\nop c 5,5,5 t mem=10 > v:1\nop d 5,5,5 u v mem=10\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_extremes_times_far_apart),
        cmocka_unit_test(test_place_extremes_memory_binds_for_years),
        cmocka_unit_test(test_place_extremes_nothing_takes_time),
        cmocka_unit_test(test_place_extremes_links_alone_take_time),
        cmocka_unit_test(test_place_extremes_one_device),
        cmocka_unit_test(test_place_extremes_one_device_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
