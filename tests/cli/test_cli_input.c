/* Bad input of every kind, as a user meets it: one clear line, the right exit code, no half-written file. */
#include <yyjson.h>

#include "support/check.h"
#include "support/command.h"

/* Writes `text` as input.json, runs the line, expects the code and the words, and no new file. */
static void refuse(const char *text, int code, const char *part, const char *line)
{
    write_text("input.json", text);
    int before = files_here();
    assert_fails(code, part, "%s", line);
    assert_false(file_exists("out.json"));
    assert_int_equal(files_here(), before);
}

#define GRAPH(ops) "{\"format\": \"moirai-graph\", \"version\": 1, \"name\": \"g\", \"ops\": [" ops "]}"
#define OP(name, in, out, more) \
    "{\"name\": \"" name "\", \"type\": \"MatMul\", \"inputs\": [" in "], \"outputs\": [" out "]" more "}"
#define OUT(name, bytes) "{\"name\": \"" name "\", \"bytes\": " bytes "}"

static const char graph_line[] = "$M problem input.json --cluster inter-server -o out.json";

static void test_cli_input_graph_truncated(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny -q -o - | head -c 1000 >input.json");
    assert_fails(3, "input.json", "%s", graph_line);
    refuse("", 3, "input.json", graph_line);
    refuse("{", 3, "input.json", graph_line);
    refuse("[1, 2]", 3, "input.json", graph_line);
    refuse("{\"format\": \"moirai-plan\", \"version\": 1}", 3, "input.json", graph_line);
}

static void test_cli_input_graph_cycle_names_its_operators(void **state)
{
    (void)state;
    refuse(GRAPH(OP("left", "\"b\"", OUT("a", "4"), "") "," OP("right", "\"a\"", OUT("b", "4"), "")), 3, "left",
           graph_line);
    assert_contains(shell_err, "right");
}

static void test_cli_input_graph_duplicate_names(void **state)
{
    (void)state;
    refuse(GRAPH(OP("same", "", OUT("a", "4"), "") "," OP("same", "", OUT("b", "4"), "")), 3, "same", graph_line);
    refuse(GRAPH(OP("x", "", OUT("twice", "4"), "") "," OP("y", "", OUT("twice", "4"), "")), 3, "twice", graph_line);
}

static void test_cli_input_graph_bad_numbers(void **state)
{
    (void)state;
    refuse(GRAPH(OP("x", "", OUT("a", "-4"), "")), 3, "-4", graph_line);
    refuse(GRAPH(OP("x", "", OUT("a", "99999999999999999999999"), "")), 3, "input.json", graph_line);
    refuse(GRAPH(OP("x", "", OUT("a", "9223372036854775808"), "")), 3, "input.json", graph_line);
    refuse(GRAPH(OP("x", "", OUT("a", "4"), ", \"weight_bytes\": -1")), 3, "-1", graph_line);
    refuse(GRAPH(OP("x", "", OUT("a", "4.5"), "")), 3, "input.json", graph_line);
}

#define CLUSTER(devices, links) \
    "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"c\", \"devices\": [" devices "], \"links\": [" links \
    "]}"
#define DEVICE(name, memory) "{\"name\": \"" name "\", \"type\": \"v100\", \"memory\": \"" memory "\"}"

static const char cluster_line[] = "$M problem gpt3-tiny --cluster input.json -o out.json";

static void test_cli_input_cluster_unknown_unit(void **state)
{
    (void)state;
    refuse(CLUSTER(DEVICE("A", "16XB"), ""), 3, "16XB", cluster_line);
    refuse(CLUSTER(DEVICE("A", "16GB") "," DEVICE("B", "16GB"),
                   "{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"10 parsec\", \"both\": true}"),
           3, "parsec", cluster_line);
    refuse(CLUSTER(DEVICE("A", "-16GB"), ""), 3, "-16GB", cluster_line);
    refuse(CLUSTER(DEVICE("A", "99999999999EB"), ""), 3, "99999999999EB", cluster_line);
}

static void test_cli_input_cluster_missing_channel(void **state)
{
    (void)state;
    refuse(CLUSTER(DEVICE("A", "16GB") "," DEVICE("B", "16GB"), ""), 3, "B", cluster_line);
    refuse(CLUSTER(DEVICE("A", "16GB") "," DEVICE("A", "16GB"), ""), 3, "'A'", cluster_line);
    refuse(CLUSTER(DEVICE("A", "16GB"), "{\"from\": \"A\", \"to\": \"Z\", \"bandwidth\": \"1Gbps\"}"), 3, "Z",
           cluster_line);
    refuse(CLUSTER("", ""), 3, "input.json", cluster_line);
}

#define PROBLEM(devices, channels, ops) \
    "{\"format\": \"moirai-problem\", \"version\": 1, \"name\": \"p\", \"flow\": \"tensor\", \"congestion\": " \
    "\"port\", " \
    "\"memory\": \"static\", \"devices\": [" devices "], \"channels\": [" channels "], \"ops\": [" ops "]}"
#define TWO "{\"name\": \"A\", \"memory_bytes\": 100}, {\"name\": \"B\", \"memory_bytes\": 100}"
#define WAY(from, to) "{\"from\": \"" from "\", \"to\": \"" to "\", \"bytes_per_second\": 1000, \"latency_ns\": 0}"
#define POP(name, memory, times) \
    "{\"name\": \"" name "\", \"type\": \"t\", \"memory_bytes\": " memory ", \"time_ns\": [" times \
    "], \"inputs\": [], " \
    "\"outputs\": [{\"name\": \"" name "\", \"bytes\": 1}]}"

static const char place_line[] = "$M place input.json --placer heft -o out.json";

static void test_cli_input_problem_missing_channel(void **state)
{
    (void)state;
    refuse(PROBLEM(TWO, WAY("A", "B"), POP("x", "1", "1, 1")), 3, "'B'", place_line);
}

static void test_cli_input_problem_that_cannot_fit_is_infeasible(void **state)
{
    (void)state;
    refuse(PROBLEM(TWO, WAY("A", "B") "," WAY("B", "A"), POP("x", "101", "1, 1")), 4, "x", place_line);
    refuse(PROBLEM(TWO, WAY("A", "B") "," WAY("B", "A"),
                   POP("x", "90", "1, 1") "," POP("y", "90", "1, 1") "," POP("z", "90", "1, 1")),
           4, "", place_line);
}

static void test_cli_input_problem_bad_numbers(void **state)
{
    (void)state;
    refuse(PROBLEM(TWO, WAY("A", "B") "," WAY("B", "A"), POP("x", "1", "1")), 3, "input.json", place_line);
    refuse(PROBLEM(TWO, WAY("A", "B") "," WAY("B", "A"), POP("x", "1", "-5, 1")), 3, "-5", place_line);
    refuse(PROBLEM(TWO, WAY("A", "B") "," WAY("B", "A"),
                   POP("x", "1", "1, 9223372036854775807") "," POP("y", "1", "1, 9223372036854775807")),
           3, "input.json", place_line);
}

static void test_cli_input_plan_of_another_problem(void **state)
{
    (void)state;
    assert_runs(
        "$M problem gpt3-tiny --cluster inter-server -q -o a.json && $M place a.json --placer heft -q -o plan.json");
    write_text("b.json", PROBLEM(TWO, WAY("A", "B") "," WAY("B", "A"), POP("x", "1", "1, 1")));
    assert_fails(3, "plan.json", "$M check b.json plan.json");
    assert_fails(3, "plan.json", "$M simulate b.json plan.json");
}

static void test_cli_input_missing_files(void **state)
{
    (void)state;
    assert_fails(3, "nothing.json", "$M place nothing.json");
    assert_fails(3, "nothing.json", "$M check nothing.json nothing.json");
    assert_fails(3, "nothing", "$M problem gpt3-tiny --cluster nothing");
    assert_fails(3, "nothing.onnx", "$M plan nothing.onnx --cluster inter-server");
    assert_fails(2, "plan: --split-operators '*mlp: 2': no such file; a cut as text is for 'moirai shard --cut'",
                 "$M plan gpt3-tiny --cluster inter-server --split-operators '*mlp: 2'");
    assert_fails(2, "plan: --cut-out is for a cut model: --split-operators auto or FILE says how",
                 "$M plan gpt3-tiny --cluster inter-server --cut-out c.onnx");
    assert_int_equal(files_here(), 0);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

/* ---- what the times mean ---- */

static void test_cli_dtype_of_a_file_is_refused_if_it_differs(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny -q --force -o tiny.json");
    assert_fails(2, "--dtype fp16", "$M problem tiny.json --cluster inter-server --dtype fp16");
    assert_runs("$M problem tiny.json --cluster inter-server --dtype fp32");
    assert_runs("$M zoo gpt3-tiny -q --force --dtype bf16 -o half.json");
    assert_fails(2, "--dtype fp32", "$M plan half.json --cluster inter-server --dtype fp32");
    assert_runs("$M problem half.json --cluster inter-server --dtype bf16");
}

static void test_cli_runtime_sets_launches_and_the_verdict_tells(void **state)
{
    (void)state;
    assert_runs("$M problem gpt3-tiny --cluster inter-server --runtime graph --json");
    assert_contains(shell_out, "\"runtime\"");
    assert_contains(shell_out, "1000");
    assert_contains(shell_err, "a launch costs 1.000 us: graph");
    assert_runs("$M plan inception-tiny --cluster inter-server --effort 0.1");
    assert_contains(shell_err, "the cost model's own");
    assert_contains(shell_out, "is launches (");
    assert_runs("$M plan gpt3-330M --cluster inter-server --runtime graph --placer single");
    assert_null(strstr(shell_out, "is launches ("));
    assert_fails(2, "runtime", "$M plan gpt3-tiny --cluster inter-server --runtime tpu");
    if (shell("$M zoo gpt3-tiny -q --onnx m.onnx"))
        return; /* a build without ONNX */
    /* An ONNX file, what is read from it, and what is fused of that: the same launches. */
    assert_runs("$M coarsen m.onnx --rules none -q -o g.json && $M coarsen g.json -q -o f.json");
    static const char *const networks[] = {"m.onnx", "g.json", "f.json"};
    for (int i = 0; i < 3; i++) {
        assert_runs("$M problem %s --cluster inter-server --json", networks[i]);
        assert_string_equal(yyjson_get_str(yyjson_obj_get(shell_json(), "runtime")), "ort");
    }
}

static void test_cli_two_scales_are_warned_of(void **state)
{
    (void)state;
    write_text("c.json",
               "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": [{\"name\": \"A\", \"memory\": \"8GB\"}, "
               "{\"name\": "
               "\"B\", \"memory\": \"8GB\"}], \"links\": [{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"1Gbps\", "
               "\"both\": true}]}");
    assert_runs("$M problem gpt3-tiny --cluster c.json"); /* neither type nor ep: a CPU */
    assert_contains(shell_err, "taken for a generic cpu");
    assert_null(strstr(shell_err, "NOT ON ONE SCALE"));
    write_text("g.json", GRAPH(OP("one", "", OUT("a", "4"), ", \"time_ns\": {\"A\": 5}")));
    write_text("two.json", "{\"format\": \"moirai-cluster\", \"version\": 1, \"devices\": [{\"name\": \"A\", \"type\": "
                           "\"mine\", \"memory\": \"8GB\"}, "
                           "{\"name\": \"B\", \"memory\": \"8GB\"}], \"links\": [{\"from\": \"A\", \"to\": \"B\", "
                           "\"bandwidth\": \"1Gbps\", "
                           "\"both\": true}]}");
    assert_runs("$M problem g.json --cluster two.json");
    assert_contains(shell_err, "NOT ON ONE SCALE");
    assert_fails(3, "did you mean 'h200'?", "$M problem gpt3-tiny --cluster h20");
    assert_runs("$M problem gpt3-tiny --cluster '1x cpu, 1x v100, 1Gbps 5us'");
    assert_null(strstr(shell_err, "roofline"));
    assert_null(strstr(shell_err, "NOT ON ONE SCALE"));
    assert_runs("$M problem gpt3-tiny --cluster '2x v100, 1Gbps 5us'");
    assert_null(strstr(shell_err, "roofline"));
}

static void test_cli_input_of_another_kind_is_named(void **state)
{
    (void)state;
    refuse("hello\n", 3, "input.json: neither ONNX nor JSON", graph_line);
    refuse(GRAPH(""), 3, "the network has no operators", graph_line);
    assert_runs("$M problem gpt3-tiny --cluster inter-server -q -o problem.json");
    assert_fails(3, "'moirai place' takes problems", "$M plan problem.json --cluster inter-server");
    assert_runs("$M zoo gpt3-tiny -q -o graph.json");
    assert_fails(3, "'moirai problem' makes a problem of a graph", "$M place graph.json");
    assert_fails(3, "Is a directory", "$M plan . --cluster inter-server");
    if (shell("$M zoo inception-tiny --onnx m.onnx -q") == 0) { /* builds without ONNX have none */
        assert_fails(3, "m.onnx: no JSON, but it looks like an ONNX model", "$M place m.onnx");
        assert_runs("$M plan m.onnx --cluster inter-server --placer heft --json -q");
        int64_t by_name = yyjson_get_sint(yyjson_obj_get(shell_json(), "makespan_ns"));
        assert_runs("cat m.onnx | $M plan - --cluster inter-server --placer heft --json -q");
        assert_true(by_name > 0 && yyjson_get_sint(yyjson_obj_get(shell_json(), "makespan_ns")) == by_name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_cli_input_graph_truncated),
        IN_FOLDER(test_cli_input_graph_cycle_names_its_operators),
        IN_FOLDER(test_cli_input_graph_duplicate_names),
        IN_FOLDER(test_cli_input_graph_bad_numbers),
        IN_FOLDER(test_cli_input_cluster_unknown_unit),
        IN_FOLDER(test_cli_input_cluster_missing_channel),
        IN_FOLDER(test_cli_input_problem_missing_channel),
        IN_FOLDER(test_cli_input_problem_that_cannot_fit_is_infeasible),
        IN_FOLDER(test_cli_input_problem_bad_numbers),
        IN_FOLDER(test_cli_input_plan_of_another_problem),
        IN_FOLDER(test_cli_input_missing_files),
        IN_FOLDER(test_cli_dtype_of_a_file_is_refused_if_it_differs),
        IN_FOLDER(test_cli_runtime_sets_launches_and_the_verdict_tells),
        IN_FOLDER(test_cli_two_scales_are_warned_of),
        IN_FOLDER(test_cli_input_of_another_kind_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
