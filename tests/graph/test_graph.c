/* Graphs: building by names, the reader and the writer, what is said of bad files. */
#include <moirai/zoo.h>

#include "support/check.h"

#include <moirai/graph.h>

#include "util/util.h"

static moirai_graph *diamond(void)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    assert_ok(moirai_graph_builder_new(&b, "diamond"));
    /* Out of order on purpose: d is described before what it reads. */
    int32_t d = moirai_graph_builder_op(b, "d", "Add");
    moirai_graph_builder_input(b, d, "tc");
    moirai_graph_builder_input(b, d, "tb");
    moirai_graph_builder_input(b, d, "tb");
    moirai_graph_builder_input(b, d, "bias");
    int32_t a = moirai_graph_builder_op(b, "a", "MatMul"), x = moirai_graph_builder_op(b, "b", "Relu"),
            c = moirai_graph_builder_op(b, "c", "Relu");
    moirai_graph_builder_output(b, d, "td", 40);
    moirai_graph_builder_input(b, c, "ta");
    moirai_graph_builder_input(b, x, "ta");
    moirai_graph_builder_output(b, x, "tb", 20);
    moirai_graph_builder_output(b, c, "tc", 30);
    moirai_graph_builder_output(b, a, "ta", 10);
    moirai_graph_builder_time(b, c, "v100", 7);
    moirai_graph_builder_time(b, d, "t4", 9);
    moirai_graph_builder_cost(b, a, 100, 5, 12345678901, 60);
    moirai_graph_builder_member(b, a, "a0");
    moirai_graph_builder_member(b, a, "a1");
    moirai_graph_builder_element_bytes(b, 2);
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

static void test_graph_builder_joins_tensors_by_name(void **state)
{
    (void)state;
    moirai_graph *g = diamond();
    assert_int_equal(g->n_ops, 4);
    assert_int_equal(g->n_tensors, 5);
    assert_string_equal(g->tensor_name[0], "td"); /* produced ones first, by operator */
    assert_string_equal(g->tensor_name[4], "bias");
    assert_int_equal(g->tensor_producer[4], MOIRAI_NONE);
    int32_t ta = g->op_out[g->op_out_off[1]];
    assert_int_equal(g->tensor_reader_off[ta + 1] - g->tensor_reader_off[ta], 2);
    assert_int_equal(g->tensor_reader[g->tensor_reader_off[ta]], 2);
    assert_int_equal(g->tensor_reader[g->tensor_reader_off[ta] + 1], 3);
    assert_int_equal(g->op_in_off[1] - g->op_in_off[0], 4); /* repeats kept */
    int32_t tb = g->op_out[g->op_out_off[2]];
    assert_int_equal(g->tensor_reader_off[tb + 1] - g->tensor_reader_off[tb], 1); /* readers distinct */
    assert_int_equal(g->op_flops[1], 12345678901);
    assert_int_equal(g->op_flops[0], MOIRAI_UNKNOWN);
    assert_int_equal(moirai_graph_find(g, "c"), 3);
    assert_int_equal(moirai_graph_find(g, "nobody"), MOIRAI_NONE);
    moirai_graph_free(g);
}

static void test_graph_topological_order_takes_the_least_ready(void **state)
{
    (void)state;
    moirai_graph *g = diamond();
    int32_t expected[4] = {1, 2, 3, 0};
    assert_memory_equal(g->topo, expected, sizeof expected);
    for (int32_t i = 0; i < 4; i++)
        assert_int_equal(g->topo_rank[g->topo[i]], i);
    moirai_graph_free(g);
}

static void test_graph_round_trip_keeps_everything(void **state)
{
    (void)state;
    moirai_graph *g = diamond(), *again;
    char *path = temporary_path("graph.json");
    assert_ok(moirai_graph_write(g, path));
    assert_ok(moirai_graph_read(&again, path));
    assert_graphs_equal(g, again);
    remove(path);
    moirai_graph_free(g);
    moirai_graph_free(again);
}

static moirai_graph *random_graph(util_rng *r, int32_t n)
{
    moirai_graph_builder *b;
    moirai_graph *g;
    char name[64];
    assert_ok(moirai_graph_builder_new(&b, "random \"quoted\" \\ \n name"));
    for (int32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "op\t%d \xc3\xa9", i);
        moirai_graph_builder_op(b, name, i % 3 ? "Relu" : "");
    }
    for (int32_t calls = 0; calls < 6 * n; calls++) {
        int32_t op = (int32_t)util_rng_below(r, (uint32_t)n);
        snprintf(name, sizeof name, "w%u", util_rng_below(r, 9));
        int32_t from = op ? (int32_t)util_rng_below(r, (uint32_t)op) : 0;
        if (op && calls % 2)
            snprintf(name, sizeof name, "t%d", from);
        moirai_graph_builder_input(b, op, name);
        if (calls % 5 == 0)
            moirai_graph_builder_member(b, op, name);
    }
    for (int32_t op = n - 1; op >= 0; op--) {
        snprintf(name, sizeof name, "t%d", op);
        moirai_graph_builder_output(b, op, name, (int64_t)(util_rng_next(r) >> 1));
        snprintf(name, sizeof name, "dev%u", util_rng_below(r, 5));
        moirai_graph_builder_time(b, op, name, (int64_t)(util_rng_next(r) >> 1));
        if (op % 2)
            moirai_graph_builder_cost(b, op, INT64_MAX, op, INT64_MAX - op, 0);
    }
    assert_ok(moirai_graph_builder_finish(&g, b));
    return g;
}

static void test_graph_round_trip_of_random_graphs(void **state)
{
    (void)state;
    util_rng r;
    util_rng_seed(&r, 7);
    char *path = temporary_path("random.json");
    for (int round = 0; round < 30; round++) {
        moirai_graph *g = random_graph(&r, 1 + (int32_t)util_rng_below(&r, 60)), *again;
        assert_ok(moirai_graph_write(g, path));
        assert_ok(moirai_graph_read(&again, path));
        assert_graphs_equal(g, again);
        moirai_graph_free(g);
        moirai_graph_free(again);
    }
    remove(path);
}

/* ---- bad files: the exact line ---- */

#define HEAD "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"g\", \"ops\": ["
#define OP(name, in, out) "{\"name\": \"" name "\", \"type\": \"X\", \"inputs\": [" in "], \"outputs\": [" out "]}"
#define TENSOR(name) "{\"name\": \"" name "\", \"bytes\": 1}"

static void bad(const char *json, const char *expected)
{
    moirai_graph *g = (moirai_graph *)1;
    assert_int_equal(moirai_graph_parse(&g, json, strlen(json), "g.json"), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(), expected);
    assert_null(g);
}

static void test_graph_reader_rejects_truncated_json(void **state)
{
    (void)state;
    bad("", "g.json: is empty");
    bad("{\"format\": \"moirai-graph\",\n \"version\": 1,",
        "g.json: line 2, column 15: bad JSON: unexpected end of data");
    bad("[1, 2]", "g.json: the file is an array, expected an object");
}

static void test_graph_reader_rejects_another_format(void **state)
{
    (void)state;
    bad("{\"version\": 1}", "g.json: key 'format' is missing");
    bad("{\"format\": \"moirai-plan\", \"version\": 1}",
        "g.json: format is \"moirai-plan\", expected \"moirai-graph\"");
    bad("{\"format\": \"moirai-graph\", \"version\": 2}", "g.json: moirai-graph version 2, only version 1 is known");
    bad("{\"format\": \"moirai-graph\", \"version\": 1}", "g.json: key 'ops' is missing");
    bad("{\"format\": \"moirai-graph\", \"version\": 1, \"ops\": [], \"dtype\": \"int8\"}",
        "g.json: dtype is \"int8\", expected \"fp32\", \"fp16\", \"bf16\" or \"fp64\"");
    bad("{\"format\": \"moirai-graph\", \"version\": 1, \"ops\": [], \"ops\": []}", "g.json: key 'ops' is there twice");
}

static void test_graph_reader_rejects_repeated_names(void **state)
{
    (void)state;
    bad(HEAD OP("a", "", "") "," OP("a", "", "") "]}", "g.json: two operators are named 'a'");
    bad(HEAD OP("a", "", TENSOR("t")) "," OP("b", "", TENSOR("t")) "]}",
        "g.json: tensor 't' is written by 'a' and by 'b'");
    bad(HEAD OP("a", "", TENSOR("t") "," TENSOR("t")) "]}", "g.json: tensor 't' is written twice by 'a'");
    bad(HEAD OP("", "", "") "]}", "g.json: op 0: name is empty");
    bad(HEAD OP("a", "\"\"", "") "]}", "g.json: operator 'a' has a tensor with an empty name");
    bad(HEAD OP("a\\u0000b", "", "") "]}", "g.json: op 0: name is \"a\" followed by a NUL character");
}

static void test_graph_reader_names_the_cycle(void **state)
{
    (void)state;
    bad(HEAD OP("a", "\"ta\"", TENSOR("ta")) "]}", "g.json: cycle of 1 operator: a -> a");
    bad(HEAD OP("x", "\"tc\"", TENSOR("tx")) "," OP("c", "\"tb\"", TENSOR("tc")) "," OP(
            "b", "\"ta\"", TENSOR("tb")) "," OP("a", "\"tc\"", TENSOR("ta")) "]}",
        "g.json: cycle of 3 operators: c -> a -> b -> c");
}

static void test_graph_long_cycle_is_shortened(void **state)
{
    (void)state;
    moirai_graph_builder *b;
    moirai_graph *g;
    char name[16];
    assert_ok(moirai_graph_builder_new(&b, "ring"));
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        moirai_graph_builder_op(b, name, "X");
        moirai_graph_builder_output(b, i, name, 1);
        snprintf(name, sizeof name, "n%d", (i + 999) % 1000);
        moirai_graph_builder_input(b, i, name);
    }
    assert_int_equal(moirai_graph_builder_finish(&g, b), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(),
                        "cycle of 1000 operators: n0 -> n1 -> n2 -> n3 -> ... (994 more) -> n998 -> n999 -> n0");
}

static void test_graph_reader_rejects_bad_numbers(void **state)
{
    (void)state;
#define WITH(pair) HEAD "{\"name\": \"a\", \"inputs\": [], \"outputs\": [], " pair "}]}"
    bad(WITH("\"weight_bytes\": -5"), "g.json: op 'a': weight_bytes is -5, must be at least 0");
    bad(WITH("\"flops\": 9223372036854775808"), "g.json: op 'a': flops is 9223372036854775808, beyond 64 bits");
    bad(WITH("\"flops\": 123456789012345678901234567890"),
        "g.json: op 'a': flops is 123456789012345678901234567890, beyond 64 bits");
    bad(WITH("\"flops\": -9223372036854775809"), "g.json: op 'a': flops is -9223372036854775809, beyond 64 bits");
    bad(WITH("\"flops\": 1.5"), "g.json: op 'a': flops is 1.5, expected a whole number");
    bad(WITH("\"flops\": 1e999"), "g.json: op 'a': flops is 1e999, expected a whole number");
    bad(WITH("\"flops\": \"many\""), "g.json: op 'a': flops is \"many\", expected a whole number");
    bad(WITH("\"time_ns\": [1]"), "g.json: op 'a': time_ns is not an object of device names or types");
    bad(WITH("\"time_ns\": {\"t4\": -1}"), "g.json: op 'a': time_ns is -1, must be at least 0");
    bad(WITH("\"time_ns\": {\"t4\": 1, \"t4\": 2}"), "g.json: in 'a': key 't4' is there twice");
    bad(WITH("\"members\": [1]"), "g.json: op 'a': an item of members is 1, expected a string");
    bad(HEAD OP("a", "", "{\"name\": \"t\", \"bytes\": -1}") "]}",
        "g.json: output 't': bytes is -1, must be at least 0");
    bad(HEAD OP("a", "", "{\"name\": \"t\"}") "]}", "g.json: output 't': key 'bytes' is missing");
    bad(HEAD OP("a", "", "\"t\"") "]}", "g.json: op 'a': output 0 is not an object with name and bytes");
    bad(HEAD OP("a", "7", "") "]}", "g.json: op 'a': an item of inputs is 7, expected a string");
    bad(HEAD "{\"name\": \"a\", \"outputs\": []}]}", "g.json: op 'a': key 'inputs' is missing");
    bad(HEAD "{\"name\": \"a\", \"inputs\": {}}]}", "g.json: op 'a': inputs is an object, expected an array");
    bad(HEAD "3]}", "g.json: op 0: is 3, expected an object");
}

static void test_graph_reader_takes_the_limits_of_int64(void **state)
{
    (void)state;
    const char *json = WITH("\"flops\": 9223372036854775807, \"unknown\": {\"key\": [1.5]}");
    moirai_graph *g;
    assert_ok(moirai_graph_parse(&g, json, strlen(json), "g.json"));
    assert_true(g->op_flops[0] == INT64_MAX);
    assert_string_equal(g->op_type[0], "");
    assert_int_equal(g->element_bytes, 4);
    moirai_graph_free(g);
}

static void test_graph_reader_names_a_missing_file(void **state)
{
    (void)state;
    moirai_graph *g;
    assert_int_equal(moirai_graph_read(&g, "no/such/file.json"), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(), "no/such/file.json: can't open: No such file or directory");
}

static void test_graph_builder_error_sticks(void **state)
{
    (void)state;
    moirai_graph_builder *b;
    moirai_graph *g;
    assert_ok(moirai_graph_builder_new(&b, "g"));
    assert_int_equal(moirai_graph_builder_op(b, "a", "X"), 0);
    assert_int_equal(moirai_graph_builder_op(b, "a", "X"), MOIRAI_EINPUT);
    assert_int_equal(moirai_graph_builder_input(b, 5, "t"), MOIRAI_EINPUT);
    assert_int_equal(moirai_graph_builder_finish(&g, b), MOIRAI_EINPUT);
    assert_string_equal(moirai_error_message(), "two operators are named 'a'");
}

/* A network with the times of four devices, one of them measured in part. */
static void test_graph_round_trip_of_a_measured_network(void **state)
{
    (void)state;
    static const char *const device[] = {"t4", "v100", "A", "gpu of my own"};
    char *path = temporary_path("measured.json");
    moirai_graph *g, *again;
    assert_ok(moirai_zoo_graph(&g, "gpt3-330M", 2));
    int64_t *time_ns = calloc((size_t)g->n_ops, sizeof *time_ns);
    assert_non_null(time_ns);
    for (int k = 0; k < 4; k++) {
        for (int32_t i = 0; i < g->n_ops; i++)
            time_ns[i] = k == 3 && i % 7 == 0 ? MOIRAI_UNKNOWN : (k + 1) * 1000 + i;
        assert_ok(moirai_graph_times_set(g, device[k], time_ns));
    }
    assert_int_equal(g->n_ops, 4872);
    assert_int_equal(g->n_time_keys, 4);
    assert_ok(moirai_graph_whole_set(g, "A", 123456));
    assert_ok(moirai_graph_whole_set(g, "nobody's operators", 7)); /* a column more */
    assert_int_equal(moirai_graph_whole_set(g, "A", 0), MOIRAI_EINPUT);
    assert_ok(moirai_graph_write(g, path));
    assert_ok(moirai_graph_read(&again, path));
    remove(path);
    assert_graphs_equal(g, again);
    assert_int_equal(again->time_whole_ns[2], 123456);
    assert_int_equal(again->time_whole_ns[0], MOIRAI_UNKNOWN);
    assert_string_equal(again->time_key[4], "nobody's operators");
    assert_int_equal(again->time_whole_ns[4], 7);
    free(time_ns);
    moirai_graph_free(g);
    moirai_graph_free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_builder_joins_tensors_by_name),
        cmocka_unit_test(test_graph_topological_order_takes_the_least_ready),
        cmocka_unit_test(test_graph_round_trip_keeps_everything),
        cmocka_unit_test(test_graph_round_trip_of_random_graphs),
        cmocka_unit_test(test_graph_reader_rejects_truncated_json),
        cmocka_unit_test(test_graph_reader_rejects_another_format),
        cmocka_unit_test(test_graph_reader_rejects_repeated_names),
        cmocka_unit_test(test_graph_reader_names_the_cycle),
        cmocka_unit_test(test_graph_long_cycle_is_shortened),
        cmocka_unit_test(test_graph_reader_rejects_bad_numbers),
        cmocka_unit_test(test_graph_reader_takes_the_limits_of_int64),
        cmocka_unit_test(test_graph_reader_names_a_missing_file),
        cmocka_unit_test(test_graph_builder_error_sticks),
        cmocka_unit_test(test_graph_round_trip_of_a_measured_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
