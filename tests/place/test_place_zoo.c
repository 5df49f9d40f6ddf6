/* Networks of the zoo x both testbeds x flows x congestions x the plain placers: every plan passes the check.
 * Small and medium networks here; MOIRAI_TEST_ZOO=all takes all (bench/all_zoo.sh does it through the command). */
#include "support/check.h"
#include "support/verify.h"

#include <moirai/moirai.h>

static const char *const testbeds[] = {"inter-server", "intra-server"};
static const char *const plain[] = {"single", "heft",  "sequential", "chain", "m-topo",
                                    "m-etf",  "m-sct", "getf",       "random"};

typedef struct tally {
    int plans, infeasible;
} tally;

static void place_all(const moirai_problem *p, const char *where, verify_batch *batch, tally *count)
{
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        moirai_plan *plan;
        int rc = moirai_place(&plan, p, plain[i], NULL);
        if (rc == MOIRAI_EINFEASIBLE && strcmp(plain[i], "single") == 0) {
            count->infeasible++;
            continue;
        }
        if (rc != 0)
            fail_msg("%s, %s: %s", where, plain[i], moirai_error_message());
        assert_ok(moirai_plan_check(p, plan, NULL, NULL));
        assert_true(plan->lower_bound_ns <= plan->makespan_ns && plan->lower_bound_ns > 0);
        if (count->plans++ % 6 == 0 && p->n_ops <= 1000)
            verify_add(batch, p, plan, true);
        moirai_plan_free(plan);
    }
}

static void place_network(const char *network, const char *testbed, verify_batch *batch, tally *count)
{
    moirai_graph *g;
    moirai_cluster *c;
    assert_ok(moirai_zoo_graph(&g, network, 2));
    assert_ok(moirai_cluster_open(&c, testbed));
    for (int mode = 0; mode < 7; mode++) { /* six with static memory, one with peak */
        moirai_problem_options o = {.flow = mode % 2 ? MOIRAI_FLOW_EDGE : MOIRAI_FLOW_TENSOR,
                                    .congestion = (moirai_congestion)(mode / 2 % 3),
                                    .memory = mode == 6 ? MOIRAI_MEMORY_PEAK : MOIRAI_MEMORY_STATIC};
        moirai_problem *p;
        char where[160];
        snprintf(where, sizeof where, "%s on %s, %s/%s/%s", network, testbed, moirai_flow_name(o.flow),
                 moirai_congestion_name(o.congestion), moirai_memory_name(o.memory));
        assert_ok(moirai_problem_new(&p, g, c, &o));
        place_all(p, where, batch, count);
        moirai_problem_free(p);
    }
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

static void test_place_zoo_plans_pass_the_check(void **state)
{
    (void)state;
    const char *wish = getenv("MOIRAI_TEST_ZOO");
    bool all = wish != NULL && strcmp(wish, "all") == 0;
    verify_batch batch;
    tally count = {0};
    verify_begin(&batch);
    for (int i = 0; i < moirai_zoo_count(); i++)
        for (int j = 0; j < 2; j++)
            if (all || moirai_zoo_at(i)->n_ops <= 1000 || (strcmp(moirai_zoo_at(i)->name, "gpt3-330M") == 0 && j == 0))
                place_network(moirai_zoo_at(i)->name, testbeds[j], &batch, &count);
    print_message("%d plans, %d times no single device would do\n", count.plans, count.infeasible);
    assert_int_equal(verify_run(&batch), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_place_zoo_plans_pass_the_check)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
