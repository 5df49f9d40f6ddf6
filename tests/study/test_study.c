/* Cases, the paper's figures, running, and the journal. */
#include "support/check.h"
#include "support/command.h"
#include "support/tiny.h"

#include <unistd.h>

#include <moirai/study.h>
#include <moirai/zoo.h>

#include "study/study.h"

static moirai_study *make(const char *networks, const char *placers, const char *parts, double limit_s)
{
    moirai_study_options o;
    moirai_study *s;
    moirai_study_options_init(&o);
    o.networks = networks;
    o.placers = placers;
    o.parts = parts;
    o.time_limit_s = limit_s;
    assert_ok(moirai_study_new(&s, &o));
    return s;
}

/* Row i, run in this process. */
static void run(moirai_study *s, int32_t i, const moirai_interrupt *interrupt)
{
    moirai_study_setting *setting;
    assert_ok(moirai_study_setting_new(&setting, &s->row[i].of));
    moirai_study_run(&s->row[i], setting, s, interrupt);
    moirai_study_setting_free(setting);
}

/* ---- the paper ---- */

static void test_study_paper_counts_are_the_zoos(void **state)
{
    (void)state;
    assert_int_equal(moirai_paper_network_count(), 11);
    for (int i = 0; i < moirai_paper_network_count(); i++) {
        const moirai_paper_network *n = moirai_paper_network_at(i);
        assert_non_null(moirai_zoo_find(n->name));
        assert_int_equal(moirai_zoo_find(n->name)->n_ops, n->n_ops);
        assert_ptr_equal(moirai_paper_network_find(n->name), n);
        for (int p = 0; p < 4; p++) /* coarsening never took longer there */
            assert_true(n->generation_s[1][p] > 0 && n->generation_s[1][p] <= n->generation_s[0][p]);
    }
    assert_null(moirai_paper_network_at(11));
    assert_null(moirai_paper_network_find("gpt3-tiny"));
}

static void test_study_paper_speedups_by_scenario(void **state)
{
    (void)state;
    assert_true(moirai_paper_speedup("inter-server", false, "placeto") == 2.98);
    assert_true(moirai_paper_speedup("intra-server", true, "getf") == 1.34);
    assert_true(moirai_paper_speedup("inter-server", true, "m-sct") == 1.90);
    assert_true(moirai_paper_speedup("inter-server", true, "heft") == 0);
    assert_true(moirai_paper_speedup("elsewhere", false, "placeto") == 0);
    assert_true(study_paper_generation_s("gpt3-13B", false, "moirai") == 990);
    assert_true(study_paper_generation_s("gpt3-13B", true, "hrl") == 18000);
    assert_true(study_paper_generation_s("gpt3-13B", true, "heft") == 0);
}

/* ---- cases ---- */

static void test_study_cases_are_the_papers_product(void **state)
{
    (void)state;
    moirai_study *s = make(NULL, NULL, "latency", 10);
    assert_int_equal(s->n, 11 * 2 * 2 * 9);
    moirai_study_free(s);
    s = make(NULL, NULL, NULL, 10);
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t j = 0; j < i; j++)
            assert_false(study_same_case(&s->row[i].of, &s->row[j].of));
    moirai_study_free(s);
}

/* The smallest of each family answers the questions; gpt3-13B those about memory. */
static void test_study_questions_take_small_networks(void **state)
{
    (void)state;
    moirai_study *s = make("gpt3-2.7B,gpt3-330M,gpt3-13B,swin-6.6B", NULL, "ablation,map", 10);
    bool ablated[3] = {0};
    for (int32_t i = 0; i < s->n; i++) {
        const moirai_study_case *c = &s->row[i].of;
        int which = !strcmp(c->network, "gpt3-330M") ? 0 : !strcmp(c->network, "swin-6.6B") ? 1 : 2;
        if (which == 2)
            assert_string_equal(c->network, "gpt3-13B");
        assert_true(which < 2 || c->part == MOIRAI_STUDY_ABLATION);
        ablated[which] = ablated[which] || c->part == MOIRAI_STUDY_ABLATION;
        assert_true(c->time_limit_s == 10);
    }
    assert_true(ablated[0] && ablated[1] && ablated[2]);
    moirai_study_free(s);
}

static void refused(const char *networks, const char *testbeds, const char *placers, const char *parts,
                    const char *word)
{
    moirai_study_options o;
    moirai_study *s;
    moirai_study_options_init(&o);
    o.networks = networks;
    o.testbeds = testbeds;
    o.placers = placers;
    o.parts = parts;
    assert_int_equal(moirai_study_new(&s, &o), MOIRAI_EUSAGE);
    assert_null(s);
    assert_contains(moirai_error_message(), word);
}

static void test_study_refuses_what_it_does_not_know(void **state)
{
    (void)state;
    refused("gpt3-330M,gtp", NULL, NULL, NULL, "'gtp'");
    refused(NULL, "outer-space", NULL, NULL, "'outer-space'");
    refused(NULL, NULL, "heft,hefty", NULL, "'hefty'");
    refused(NULL, NULL, NULL, "latency,everything", "'everything'");
    refused("gpt3-330M,,swin-1.8B", NULL, NULL, NULL, "separated by commas");
    refused("", NULL, NULL, NULL, "no networks");
}

/* ---- leaving a part of the model out ---- */

/* A sends x and y to B and C. Ports: one after the other, 10 ns each; without congestion both at once. */
static const char fan[] = "flow edge\ndevice A 100\ndevice B 100\ndevice C 100\n"
                          "op a 5,-,- > x:10 y:10\nop b -,5,- x > p:0\nop c -,-,5 y > q:0\n";

static void test_study_without_congestion_is_judged_with_it(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(fan), *q;
    moirai_plan *believed, *real;
    assert_ok(study_ablated(&q, p, MOIRAI_STUDY_NO_CONGESTION));
    believed = tiny_place(q, "heft");
    assert_int_equal(believed->makespan_ns, 20);
    assert_ok(study_carried_out(&real, p, believed));
    assert_int_equal(real->makespan_ns, 30);
    assert_ok(moirai_plan_check(p, real, NULL, NULL));
    moirai_plan_free(real);
    moirai_plan_free(believed);
    moirai_problem_free(q);
    moirai_problem_free(p);
}

static void test_study_without_communication_is_judged_with_it(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem(fan), *q;
    moirai_plan *believed, *real;
    assert_ok(study_ablated(&q, p, MOIRAI_STUDY_NO_COMMUNICATION));
    believed = tiny_place(q, "heft"); /* checked by the library's checker, too */
    assert_int_equal(believed->makespan_ns, 10);
    assert_ok(study_carried_out(&real, p, believed));
    assert_int_equal(real->makespan_ns, 30);
    moirai_plan_free(real);
    moirai_plan_free(believed);
    moirai_problem_free(q);
    moirai_problem_free(p);
}

static void test_study_without_memory_every_device_holds_everything(void **state)
{
    (void)state;
    moirai_problem *p = tiny_problem("device A 6\ndevice B 6\nop a 5,9 > x:1 mem=5\nop b 5,9 x > y:0 mem=5\n"), *q;
    assert_ok(study_ablated(&q, p, MOIRAI_STUDY_NO_MEMORY));
    assert_int_equal(q->device_memory_bytes[0], 10);
    assert_int_equal(p->device_memory_bytes[0], 6); /* the problem itself stays */
    moirai_plan *plan = tiny_place(q, "heft");
    assert_string_equal(tiny_devices(q, plan), "AA");
    moirai_plan_free(plan);
    moirai_problem_free(q);
    moirai_problem_free(p);
}

/* ---- running ---- */

static void test_study_runs_a_case_and_checks_its_plan(void **state)
{
    (void)state;
    moirai_study *s = make("gpt3-tiny", "heft", "latency", 1);
    assert_int_equal(s->n, 4);
    for (int32_t i = 0; i < s->n; i++) {
        const moirai_study_row *r = &s->row[i];
        run(s, i, NULL);
        assert_true(r->done && r->result == 0);
        assert_int_equal(r->n_ops_original, 118);
        assert_true(r->of.coarsened ? r->n_ops < 118 : r->n_ops == 118);
        assert_int_equal(r->element_bytes, 4);
        assert_true(r->lower_bound_ns > 0 && r->lower_bound_ns <= r->makespan_ns);
        assert_true(r->single_ns >= r->lower_bound_ns && r->planned_ns == r->makespan_ns);
        /* Every operator a kernel of its own takes longer than fused ones. */
        assert_true(r->of.coarsened ? r->unfused_ns > r->makespan_ns : r->unfused_ns == MOIRAI_UNKNOWN);
        assert_true(r->launch_ns > 0 && r->launch_ns <= r->makespan_ns);
    }
    moirai_study_free(s);
}

static void test_study_a_row_without_a_plan_says_why(void **state)
{
    (void)state;
    moirai_study *s = make("swin-6.6B", "single", "latency", 1);
    run(s, 0, NULL);
    assert_true(s->row[0].done);
    assert_int_equal(s->row[0].result, MOIRAI_EINFEASIBLE);
    assert_contains(s->row[0].message, "no single device will do");
    assert_int_equal(s->row[0].single_ns, MOIRAI_UNKNOWN);
    assert_false(study_has_plan(&s->row[0]));
    moirai_study_free(s);
}

static void test_study_an_interrupted_row_is_not_done(void **state)
{
    (void)state;
    moirai_interrupt interrupt = {0};
    moirai_study *s = make("gpt3-tiny", "moirai", "latency", 30);
    moirai_interrupt_raise(&interrupt);
    run(s, 0, &interrupt);
    assert_false(s->row[0].done);
    moirai_study_free(s);
}

static void test_study_settings_are_shared_by_placers_alone(void **state)
{
    (void)state;
    moirai_study *s = make("gpt3-tiny", "heft,single", "latency", 1);
    moirai_study_setting *setting;
    assert_false(moirai_study_setting_fits(NULL, &s->row[0].of));
    assert_ok(moirai_study_setting_new(&setting, &s->row[0].of));
    assert_true(moirai_study_setting_fits(setting, &s->row[1].of));  /* the other placer */
    assert_false(moirai_study_setting_fits(setting, &s->row[2].of)); /* coarsened */
    assert_false(moirai_study_setting_fits(setting, &s->row[4].of)); /* the other testbed */
    moirai_study_setting_free(setting);
    moirai_study_free(s);
}

/* ---- the journal ---- */

static void test_study_journal_keeps_every_field(void **state)
{
    (void)state;
    int32_t taken;
    moirai_study *s = make("gpt3-tiny", "heft", "latency", 1), *again = make("gpt3-tiny", "heft", "latency", 1);
    run(s, 2, NULL);
    s->row[2].process_bytes = 12345678;
    snprintf(s->row[2].message, sizeof s->row[2].message, "a \"message\",\nwith everything");
    assert_ok(moirai_study_journal_read(s, "nowhere", &taken));
    assert_int_equal(taken, 0);
    assert_ok(moirai_study_journal_add(&s->row[2], "journal"));
    assert_ok(moirai_study_journal_read(again, "journal", &taken));
    assert_int_equal(taken, 1);
    assert_true(study_same_case(&again->row[2].of, &s->row[2].of));
    assert_int_equal(again->row[2].makespan_ns, s->row[2].makespan_ns);
    assert_int_equal(again->row[2].unfused_ns, s->row[2].unfused_ns);
    assert_int_equal(again->row[2].process_bytes, 12345678);
    assert_string_equal(again->row[2].message, s->row[2].message);
    assert_string_equal(again->row[2].machine, s->row[2].machine);
    assert_false(again->row[0].done);
    moirai_study_free(again);
    moirai_study_free(s);
}

static void test_study_journal_takes_rows_of_this_study_only(void **state)
{
    (void)state;
    int32_t taken;
    moirai_study *s = make("gpt3-tiny", "heft", "latency", 1), *slower = make("gpt3-tiny", "heft", "latency", 2);
    run(s, 0, NULL);
    assert_ok(moirai_study_journal_add(&s->row[0], "journal"));
    assert_ok(moirai_study_journal_read(slower, "journal", &taken)); /* another limit */
    assert_int_equal(taken, 0);
    moirai_study_free(slower);
    assert_ok(moirai_study_journal_read(s, "journal", &taken));
    assert_int_equal(taken, 1);
    s->row[0].done = false;
    s->costs++; /* another cost model */
    assert_ok(moirai_study_journal_read(s, "journal", &taken));
    assert_int_equal(taken, 0);
    s->costs--;
    snprintf(s->row[0].version, sizeof s->row[0].version, "0.0.0");
    remove("journal");
    assert_ok(moirai_study_journal_add(&s->row[0], "journal"));
    s->row[0].done = false;
    assert_ok(moirai_study_journal_read(s, "journal", &taken)); /* another version */
    assert_int_equal(taken, 0);
    moirai_study_free(s);
}

static void test_study_journal_survives_a_crash(void **state)
{
    (void)state;
    int32_t taken;
    moirai_study *s = make("gpt3-tiny", "heft", "latency", 1), *again = make("gpt3-tiny", "heft", "latency", 1);
    run(s, 0, NULL);
    run(s, 1, NULL);
    assert_ok(moirai_study_journal_add(&s->row[0], "journal"));
    char *text = read_text("journal");
    assert_int_equal(truncate("journal", (off_t)strlen(text) / 2), 0); /* the line at work, cut off */
    free(text);
    assert_ok(moirai_study_journal_add(&s->row[1], "journal"));
    assert_ok(moirai_study_journal_read(again, "journal", &taken));
    assert_int_equal(taken, 1);
    assert_true(again->row[1].done && !again->row[0].done);
    moirai_study_free(again);
    moirai_study_free(s);
}

static void test_study_journal_names_the_line_that_is_wrong(void **state)
{
    (void)state;
    int32_t taken;
    moirai_study *s = make("gpt3-tiny", "heft", "latency", 1);
    write_text("journal", "\n{\"part\": \"latency\"}\n");
    assert_int_equal(moirai_study_journal_read(s, "journal", &taken), MOIRAI_EINPUT);
    assert_contains(moirai_error_message(), "journal: line 2");
    assert_contains(moirai_error_message(), "coarsened");
    write_text("journal", "{\"part\": \"everything\"}\n");
    assert_int_equal(moirai_study_journal_read(s, "journal", &taken), MOIRAI_EINPUT);
    assert_contains(moirai_error_message(), "everything");
    moirai_study_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_study_paper_counts_are_the_zoos),
        cmocka_unit_test(test_study_paper_speedups_by_scenario),
        cmocka_unit_test(test_study_cases_are_the_papers_product),
        cmocka_unit_test(test_study_questions_take_small_networks),
        cmocka_unit_test(test_study_refuses_what_it_does_not_know),
        cmocka_unit_test(test_study_without_congestion_is_judged_with_it),
        cmocka_unit_test(test_study_without_communication_is_judged_with_it),
        cmocka_unit_test(test_study_without_memory_every_device_holds_everything),
        cmocka_unit_test(test_study_runs_a_case_and_checks_its_plan),
        cmocka_unit_test(test_study_a_row_without_a_plan_says_why),
        cmocka_unit_test(test_study_an_interrupted_row_is_not_done),
        cmocka_unit_test(test_study_settings_are_shared_by_placers_alone),
        cmocka_unit_test_setup_teardown(test_study_journal_keeps_every_field, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_study_journal_takes_rows_of_this_study_only, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_study_journal_survives_a_crash, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_study_journal_names_the_line_that_is_wrong, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
