/* Timelines as the run wrote them: what is read, what is refused, and what refining takes from them. */
#include "refine/refine.h"
#include "support/check.h"

#define HEAD "{\"format\": \"moirai-timeline\", \"version\": 1, "
#define SEGMENT "{\"start_ns\": 5, \"finish_ns\": 15, \"median_ns\": 10, \"ops\": [\"a\", \"b\"]}"
static const char good[] =
    HEAD "\"median_ns\": 70, \"planned_ns\": 60, \"devices\": [{\"name\": \"A\", \"segments\": [" SEGMENT "]},"
         " {\"name\": \"B\", \"segments\": [{\"median_ns\": 20, \"ops\": [\"c\"]}]}],"
         " \"transfers\": [{\"tensor\": \"t\", \"from\": \"A\", \"to\": \"B\", \"bytes\": 8, \"planned_start_ns\": 9,"
         " \"start_ns\": 15, \"finish_ns\": 40, \"median_ns\": 25}],"
         " \"rate\": {\"devices\": [{\"name\": \"B\", \"planned_ns\": 30, \"busy_ns\": 33}]}}";

static void test_refine_timeline_is_read(void **state)
{
    (void)state;
    refine_timeline t = {0};
    assert_ok(refine_timeline_parse(&t, good, strlen(good), "t.json"));
    assert_int_equal(t.latency_ns, 70);
    assert_int_equal(t.planned_ns, 60);
    assert_int_equal(t.n_devices, 2);
    assert_string_equal(t.device[1], "B");
    assert_int_equal(t.n_segments, 2);
    assert_true(t.segment[0].start_ns == 5 && t.segment[0].finish_ns == 15 && t.segment[0].median_ns == 10);
    assert_int_equal(t.segment[0].n_ops, 2);
    assert_int_equal(t.segment[1].device, 1);
    assert_string_equal(t.op[t.segment[1].first_op], "c");
    assert_int_equal(t.n_transfers, 1);
    assert_true(t.transfer[0].from == 0 && t.transfer[0].to == 1 && t.transfer[0].bytes == 8 &&
                t.transfer[0].median_ns == 25);
    assert_true(t.busy_ns[0] == 0 && t.busy_ns[1] == 33 && t.load_ns[1] == 30);
    refine_timeline_free(&t);
}

static void test_refine_timeline_refuses_nonsense(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } list[] = {
        {"moirai-timeline", "moirai-plan", "format is"},
        {"\"median_ns\": 10", "\"median_ns\": -10", "device 'A': median_ns is -10"},
        {"\"median_ns\": 10", "\"median_ns\": 2000000000000000000", "median_ns is 2000000000000000000"},
        {"\"median_ns\": 10, ", "", "key 'median_ns' is missing"},
        {"[\"a\", \"b\"]", "[\"a\", 7]", "ops is 7, expected a string"},
        {"\"to\": \"B\"", "\"to\": \"C\"", "to is 'C': no such device"},
        {"\"to\": \"B\"", "\"to\": \"A\"", "from 'A' to itself"},
        {"\"bytes\": 8", "\"bytes\": -8", "bytes is -8"},
        {"\"devices\"", "\"things\"", "key 'devices' is missing"},
        {"\"busy_ns\": 33", "\"busy_ns\": -33", "busy_ns is -33"},
        {", \"busy_ns\": 33", "", "key 'busy_ns' is missing"},
        {"[{\"name\": \"B\", \"planned_ns\"", "[{\"name\": \"C\", \"planned_ns\"", "name is 'C': no such device"},
        {"\"rate\": {", "\"rate\": 7, \"other\": {", "expected an object"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        refine_timeline t = {0};
        const char *at = strstr(good, list[i].from);
        char text[2048];
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, list[i].to, at + strlen(list[i].from));
        assert_int_equal(refine_timeline_parse(&t, text, strlen(text), "t.json"), MOIRAI_EINPUT);
        if (!strstr(moirai_error_message(), list[i].says))
            fail_msg("it says '%s', not '%s'", moirai_error_message(), list[i].says);
    }
}

static void test_refine_median(void **state)
{
    (void)state;
    double odd[] = {5, 1, 9}, even[] = {4, 1, 3, 2}, one[] = {7};
    assert_true(refine_median(odd, 3) == 5);
    double middle = refine_median(even, 4);
    assert_true(middle >= 2 && middle <= 3);
    assert_true(refine_median(one, 1) == 7);
    assert_true(refine_median(one, 0) == 0);
}

/* Operators of one type with the same times everywhere are one class, whatever their names. */
static void test_refine_classes_of_equal_operators(void **state)
{
    (void)state;
    static const char json[] =
        "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"g\", \"ops\": ["
        "{\"name\": \"a\", \"type\": \"MatMul\", \"inputs\": [], \"outputs\": [], \"time_ns\": {\"A\": 5, \"B\": 7}},"
        "{\"name\": \"b\", \"type\": \"MatMul\", \"inputs\": [], \"outputs\": [], \"time_ns\": {\"A\": 5, \"B\": 7}},"
        "{\"name\": \"c\", \"type\": \"MatMul\", \"inputs\": [], \"outputs\": [], \"time_ns\": {\"A\": 5, \"B\": 8}},"
        "{\"name\": \"d\", \"type\": \"Add\", \"inputs\": [], \"outputs\": [], \"time_ns\": {\"A\": 5, \"B\": 7}}]}";
    refiner r = {0};
    assert_ok(moirai_graph_parse(&r.g, json, strlen(json), "g"));
    r.class_of = calloc(4, sizeof *r.class_of);
    assert_ok(refine_classes(&r));
    assert_int_equal(r.n_classes, 3);
    assert_int_equal(r.class_of[0], r.class_of[1]);
    assert_true(r.class_of[2] != r.class_of[0] && r.class_of[3] != r.class_of[0] && r.class_of[2] != r.class_of[3]);
    free(r.class_of);
    moirai_graph_free(r.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refine_timeline_is_read),
        cmocka_unit_test(test_refine_timeline_refuses_nonsense),
        cmocka_unit_test(test_refine_median),
        cmocka_unit_test(test_refine_classes_of_equal_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
