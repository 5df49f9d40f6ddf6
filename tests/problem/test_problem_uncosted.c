/* Operators of which nobody knows what they cost are named, unless they are measured or too small to matter. */
#include "support/check.h"

#include <moirai/moirai.h>
#include <unistd.h>

#define GRAPH(ops) \
    "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"g\", \"origin\": \"onnx\", \"ops\": [" ops "]}"
#define OP(name, type, in, bytes, more) \
    "{\"name\": \"" name "\", \"type\": \"" type "\", \"inputs\": [\"" in "\"], \"outputs\": [{\"name\": \"t" name \
    "\", \"bytes\": " bytes "}]" more "}"
#define KNOWN ", \"flops\": 1000, \"traffic_bytes\": 100000"

static moirai_problem *problem_of(const char *json)
{
    moirai_graph *g;
    moirai_cluster *c;
    moirai_problem *p;
    assert_ok(moirai_graph_parse(&g, json, strlen(json), "g.json"));
    assert_ok(moirai_cluster_open(&c, "inter-server"));
    assert_ok(moirai_problem_new(&p, g, c, &(moirai_problem_options){0}));
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return p;
}

static void assert_uncosted(const char *json, const char *names)
{
    moirai_problem *p = problem_of(json);
    char text[200] = "";
    for (int32_t i = 0; i < p->n_uncosted; i++)
        strcat(strcat(text, i ? ", " : ""), p->uncosted[i]);
    assert_string_equal(text, names);
    moirai_problem_free(p);
}

static void test_problem_uncosted_are_named_by_type(void **state)
{
    (void)state;
    assert_uncosted(GRAPH(OP("a", "Frobnicate", "x", "100", "") "," OP("b", "Frobnicate", "ta", "100", "") "," OP(
                        "c", "Twist", "tb", "100", "") "," OP("d", "Relu", "tc", "100", KNOWN)),
                    "2 Frobnicate, 1 Twist");
    assert_uncosted(GRAPH(OP("a", "Relu", "x", "100", KNOWN)), "");
    /* arithmetic is known, but not how it is launched: once for an If of thirty operators? */
    assert_uncosted(GRAPH(OP("a", "If", "x", "100", KNOWN)), "1 If");
}

static void test_problem_uncosted_are_not_if_measured(void **state)
{
    (void)state;
    assert_uncosted(GRAPH(OP("a", "Loop", "x", "100", ", \"time_ns\": {\"t4\": 5000}")), "");
}

/* 200 bytes beside 100,000 don't matter, unless they are read as often as data want. */
static void test_problem_uncosted_that_are_small_are_left_out(void **state)
{
    (void)state;
    assert_uncosted(
        GRAPH(OP("a", "Relu", "x", "100", KNOWN) "," OP("b", "Twist", "ta", "100", ", \"traffic_bytes\": 200")), "");
    assert_uncosted(GRAPH(OP("a", "Relu", "x", "100", KNOWN) "," OP("b", "Loop", "ta", "100", "")), "1 Loop");
}

static void test_problem_what_was_said_is_in_its_file(void **state)
{
    (void)state;
    static const char json[] =
        "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"g\", \"origin\": \"onnx\", \"onnx\": {\"assumed\": "
        "[\"batch=1\", \"image:2=224\"]}, \"ops\": [" OP("a", "Loop", "x", "100", "") "]}";
    moirai_problem *p = problem_of(json), *again;
    char path[] = "/tmp/moirai_uncosted_XXXXXX";
    close(mkstemp(path));
    assert_ok(moirai_problem_write(p, path));
    assert_ok(moirai_problem_read(&again, path));
    unlink(path);
    assert_int_equal(again->n_assumed, 2);
    assert_string_equal(again->assumed[1], "image:2=224");
    assert_int_equal(again->n_uncosted, 1);
    assert_string_equal(again->uncosted[0], "1 Loop");
    moirai_problem_free(p);
    moirai_problem_free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problem_uncosted_are_named_by_type),
        cmocka_unit_test(test_problem_uncosted_are_not_if_measured),
        cmocka_unit_test(test_problem_uncosted_that_are_small_are_left_out),
        cmocka_unit_test(test_problem_what_was_said_is_in_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
