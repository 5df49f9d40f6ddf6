/* An operator that was cut before planning is explained as what it is: a piece. */
#include "support/check.h"

#include <moirai/moirai.h>
#include "report/report.h"

static const char *const name[] = {"l/q (1 of 3, 2 of 12 heads)", "l/q (2 of 3, 4 of 12 heads)",
                                   "l/q (3 of 3, 6 of 12 heads)", "l/q2 (1 of 3, 2 of 12 heads)", "l/q (sum)"};

/* Pieces of 10, 20 and 30 us on both devices, a stranger of 40, and one that reads all. */
static moirai_problem *pieces_problem(void)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    moirai_cluster *c;
    moirai_problem *p;
    assert_ok(moirai_graph_builder_new(&b, "pieces"));
    for (int i = 0; i < 5; i++) {
        char out[8] = {(char)('a' + i), 0}, in[8] = {0};
        int32_t op = moirai_graph_builder_op(b, name[i], "MatMul");
        for (int k = 0; k < 4 && i == 4; k++) {
            in[0] = (char)('a' + k);
            moirai_graph_builder_input(b, op, in);
        }
        moirai_graph_builder_output(b, op, out, 4);
        moirai_graph_builder_time(b, op, "v100", 10000 * (i + 1));
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    assert_ok(moirai_cluster_open(&c, "2x v100, 600Gbps 1us"));
    assert_ok(moirai_problem_new(&p, g, c, &(moirai_problem_options){0}));
    moirai_cluster_free(c);
    moirai_graph_free(g);
    return p;
}

static void test_report_a_piece_says_of_what_and_where_the_others_are(void **state)
{
    (void)state;
    moirai_problem *p = pieces_problem();
    moirai_place_options o;
    moirai_plan *plan;
    moirai_analysis *a;
    moirai_elsewhere where[MOIRAI_MAX_DEVICES];
    char text[1500], expected[200];
    moirai_place_options_init(&o);
    assert_ok(moirai_place(&plan, p, "single", &o));
    assert_ok(moirai_analysis_new(&a, p, plan, NULL));
    int32_t op = 1;
    assert_string_equal(p->op_name[op], name[1]);
    assert_ok(moirai_explain_op(where, a, op));
    moirai_explain_op_text(text, sizeof text, a, op, where);
    const char *device = p->device_name[plan->op_device[0]];
    snprintf(
        expected, sizeof expected,
        "It is piece 2 of 3 of 'l/q', 4 of 12 heads; piece 1 runs on %s; piece 3 runs on %s; all of them here would "
        "take 60.000 us. ",
        device, device);
    if (!strstr(text, expected))
        fail_msg("\"%s\" does not say \"%s\"", text, expected);
    assert_ok(moirai_explain_op(where, a, 4));
    moirai_explain_op_text(text, sizeof text, a, 4, where);
    assert_null(strstr(text, "It is piece"));
    moirai_analysis_free(a);
    moirai_plan_free(plan);
    moirai_problem_free(p);
}

static void test_report_names_that_only_look_like_pieces_are_none(void **state)
{
    (void)state;
    static const char *const none[] = {"a (1 of 3)", "a (4 of 3, 1 of 2 heads)", "a (0 of 3, 1 of 2 heads)",
                                       "a (1 of 1, 1 of 2 heads)", "(1 of 3, 2 of 3 heads)"};
    moirai_problem *p = pieces_problem();
    report_piece x;
    const char *was = p->op_name[0];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        p->op_name[0] = none[i];
        assert_false(report_piece_of(&x, p, 0));
    }
    p->op_name[0] = "a (b) (2 of 4, 3 of 48 head groups)";
    assert_true(report_piece_of(&x, p, 0));
    assert_int_equal(x.number, 2);
    assert_int_equal(x.base_length, 5);
    assert_string_equal(x.unit, "head groups");
    p->op_name[0] = was;
    moirai_problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_a_piece_says_of_what_and_where_the_others_are),
        cmocka_unit_test(test_report_names_that_only_look_like_pieces_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
