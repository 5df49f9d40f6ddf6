/* Coarse plans as plans of the original operators. */
#include <moirai/coarsen.h>
#include <moirai/placer.h>
#include <moirai/zoo.h>
#include "support/check.h"

typedef struct setting {
    moirai_graph *graph, *coarse_graph;
    moirai_cluster *cluster;
    moirai_problem *fine, *coarse;
    moirai_plan *plan; /* of the coarse problem */
} setting;

static void setting_make(setting *s, const char *network, const char *rules, const moirai_problem_options *options,
                         const char *placer)
{
    moirai_place_options place;
    moirai_rules *r;

    moirai_place_options_init(&place);
    assert_ok(moirai_rules_open(&r, rules));
    assert_ok(moirai_zoo_graph(&s->graph, network, 4));
    assert_ok(moirai_coarsen(&s->coarse_graph, s->graph, r, NULL));
    assert_ok(moirai_cluster_open(&s->cluster, "inter-server"));
    assert_ok(moirai_problem_new(&s->fine, s->graph, s->cluster, options));
    assert_ok(moirai_problem_new(&s->coarse, s->coarse_graph, s->cluster, options));
    assert_ok(moirai_place(&s->plan, s->coarse, placer, &place));
    moirai_rules_free(r);
}

static void setting_free(setting *s)
{
    moirai_plan_free(s->plan);
    moirai_problem_free(s->fine);
    moirai_problem_free(s->coarse);
    moirai_cluster_free(s->cluster);
    moirai_graph_free(s->coarse_graph);
    moirai_graph_free(s->graph);
}

static void check_members(const setting *s, const moirai_plan *plan)
{
    for (int32_t i = 0; i < s->coarse->n_ops; i++) {
        int32_t op = moirai_graph_find(s->coarse_graph, s->coarse->op_name[i]);
        int32_t previous = MOIRAI_NONE;

        for (int32_t e = s->coarse_graph->op_member_off[op]; e < s->coarse_graph->op_member_off[op + 1]; e++) {
            int32_t member = moirai_problem_find_op(s->fine, s->coarse_graph->op_member[e]);

            assert_int_equal(plan->op_device[member], s->plan->op_device[i]);
            if (previous != MOIRAI_NONE)
                assert_true(plan->op_start_ns[member] >= plan->op_finish_ns[previous]);
            previous = member;
        }
        if (previous == MOIRAI_NONE)
            assert_int_equal(plan->op_device[moirai_problem_find_op(s->fine, s->coarse->op_name[i])],
                             s->plan->op_device[i]);
    }
}

static void test_plan_expand_is_a_plan_in_every_mode(void **state)
{
    static const char *const networks[] = {"gpt3-tiny", "t5-tiny", "inception-tiny"};
    static const char *const placers[] = {"heft", "random"};

    (void)state;
    for (int c = 0; c < 36; c++) {
        moirai_problem_options options = {.flow = c % 2, .congestion = c / 2 % 3, .memory = c / 6 % 2};
        moirai_plan *plan = NULL;
        setting s;

        setting_make(&s, networks[c / 12], "onnxruntime", &options, placers[c % 2]);
        assert_ok(moirai_plan_expand(&plan, s.fine, s.coarse, s.coarse_graph, s.plan));
        assert_ok(moirai_plan_check(s.fine, plan, NULL, NULL));
        check_members(&s, plan);
        assert_string_equal(plan->placer, s.plan->placer);
        assert_string_equal(plan->problem, s.fine->name);
        assert_int_equal(plan->lower_bound_ns, MOIRAI_UNKNOWN);
        moirai_plan_free(plan);
        setting_free(&s);
    }
}

/* Without fusion the problem is the same, and so is the plan, or better. */
static void test_plan_expand_of_nothing_fused_is_no_later(void **state)
{
    static const char *const placers[] = {"heft", "random", "m-topo"};

    (void)state;
    for (int c = 0; c < 12; c++) {
        moirai_problem_options options = {.flow = c % 2, .congestion = c / 2 % 2};
        moirai_plan *plan = NULL;
        setting s;

        setting_make(&s, "t5-tiny", "none", &options, placers[c / 4]);
        assert_ok(moirai_plan_expand(&plan, s.fine, s.coarse, s.coarse_graph, s.plan));
        assert_ok(moirai_plan_check(s.fine, plan, NULL, NULL));
        assert_true(plan->makespan_ns <= s.plan->makespan_ns);
        assert_memory_equal(plan->op_device, s.plan->op_device, (size_t)plan->n_ops * sizeof *plan->op_device);
        moirai_plan_free(plan);
        setting_free(&s);
    }
}

static void test_plan_expand_refuses_what_does_not_fit(void **state)
{
    moirai_problem_options options = {0};
    moirai_plan *plan = (void *)1;
    moirai_wish wish = {.kind = MOIRAI_PIN, .pattern = "L1/fc1_bias"};
    setting s, other;
    int32_t device;

    (void)state;
    setting_make(&s, "gpt3-tiny", "onnxruntime", &options, "heft");
    setting_make(&other, "gpt3-mini", "onnxruntime", &options, "heft");
    assert_int_equal(moirai_plan_expand(&plan, other.fine, s.coarse, s.coarse_graph, s.plan), MOIRAI_EINPUT);
    assert_null(plan);
    assert_int_equal(moirai_plan_expand(&plan, s.fine, s.coarse, other.coarse_graph, other.plan), MOIRAI_EINPUT);
    assert_int_equal(moirai_plan_expand(&plan, s.fine, s.coarse, s.graph, s.plan), MOIRAI_EINPUT);
    /* A member that may not run where its fused operator was placed. */
    device = s.plan->op_device[moirai_problem_find_op(s.coarse, "L1/act")];
    wish.devices = s.fine->device_name[(device + 1) % s.fine->n_devices];
    assert_ok(moirai_problem_wish(s.fine, &wish, 1));
    assert_int_equal(moirai_plan_expand(&plan, s.fine, s.coarse, s.coarse_graph, s.plan), MOIRAI_EINFEASIBLE);
    assert_null(plan);
    setting_free(&s);
    setting_free(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_expand_is_a_plan_in_every_mode),
        cmocka_unit_test(test_plan_expand_of_nothing_fused_is_no_later),
        cmocka_unit_test(test_plan_expand_refuses_what_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
