/* What was wrong or misleading once: plans that forgot, bounds of other problems, names that fusion swallowed, files
 * under other names, and what an enemy may write into them. */
#include "support/check.h"
#include "support/command.h"
#include "support/onnx_maker.h"

#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

static const char two[] = "{\"format\":\"moirai-cluster\",\"version\":1,\"name\":\"two\",\"devices\":[{\"name\":\"A\","
                          "\"type\":\"v100\",\"memory\":\"16GB\"},"
                          "{\"name\":\"B\",\"type\":\"p100\",\"memory\":\"16GB\"}],\"links\":[{\"from\":\"A\",\"to\":"
                          "\"B\",\"bandwidth\":\"100Gbps\",\"latency\":"
                          "\"5us\",\"both\":true}]}";

static int64_t number(const char *key)
{
    yyjson_val *value = yyjson_obj_get(shell_json(), key);
    if (!yyjson_is_int(value))
        fail_msg("no number '%s' in %s", key, shell_out);
    return yyjson_get_sint(value);
}

/* ---- plans and problems ---- */

/* A start that needs more memory than the device has is mended, not handed on. */
static void test_cli_promises_start_that_does_not_fit(void **state)
{
    (void)state;
    static const char problem[] =
        "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"p\",\"flow\":\"tensor\",\"congestion\":\"port\","
        "\"memory\":\"static\","
        "\"devices\":[{\"name\":\"A\",\"memory_bytes\":10},{\"name\":\"B\",\"memory_bytes\":10}],\"channels\":["
        "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000000000},{\"from\":\"B\",\"to\":\"A\",\"bytes_per_"
        "second\":1000000000}],"
        "\"ops\":[{\"name\":\"a\",\"memory_bytes\":8,\"time_ns\":[10,10],\"inputs\":[],\"outputs\":[{\"name\":\"t\","
        "\"bytes\":1}]},"
        "{\"name\":\"b\",\"memory_bytes\":8,\"time_ns\":[10,10],\"inputs\":[\"t\"],\"outputs\":[]}]}";
    write_text("problem.json", problem);
    write_text("big.json", "{\"format\":\"moirai-plan\",\"version\":1,\"problem\":\"p\",\"makespan_ns\":20,\"ops\":["
                           "{\"name\":\"a\",\"device\":\"A\",\"start_ns\":0,\"finish_ns\":10},"
                           "{\"name\":\"b\",\"device\":\"A\",\"start_ns\":10,\"finish_ns\":20}],\"transfers\":[]}");
    assert_runs("$M place problem.json --start big.json -o plan.json");
    assert_runs("$M check problem.json plan.json");
    assert_runs("$M place problem.json --placer exact --start big.json -o plan.json --force");
    assert_runs("$M check problem.json plan.json");
}

static void test_cli_promises_expand_keeps_the_pins(void **state)
{
    (void)state;
    write_text("two.json", two);
    assert_runs("$M plan gpt3-tiny -c two.json --effort 0.01 --pin 'L0/h0/q=B' --expand --problem-out p.json -o "
                "plan.json --json");
    assert_true(number("makespan_ns") > 0);
    assert_true(number("lower_bound_ns") > 0 && number("lower_bound_ns") <= number("makespan_ns"));
    /* One screen, one pair of numbers: the speed-up is that of the plan shown. */
    double speed_up = yyjson_get_real(yyjson_obj_get(shell_json(), "speed_up"));
    double said = (double)number("single_makespan_ns") / (double)number("makespan_ns");
    assert_true(speed_up > 0.999 * said && speed_up < 1.001 * said);
    assert_runs("$M check p.json plan.json");
    /* The pin is in the problem: A can't run it, and the plan has it on B. */
    char *text = read_text("p.json"), *op = strstr(text, "\"name\": \"L0/h0/q\",");
    assert_non_null(op);
    char *times = strstr(op, "\"time_ns\": [null, ");
    assert_true(times && times < strchr(op, '\n'));
    free(text);
}

/* Fusion swallows names: what a model's own operator is called still pins it. */
static void test_cli_promises_pins_by_swallowed_names(void **state)
{
    (void)state;
    write_text("two.json", two);
    assert_runs("$M coarsen gpt3-tiny --rules onnxruntime -q -o coarse.json");
    char *text = read_text("coarse.json");
    char *member = strstr(text, "\"members\": [\""), name[128] = "";
    assert_non_null(member);
    assert_int_equal(sscanf(member, "\"members\": [\"%127[^\"]", name), 1);
    free(text);
    /* The first member never gives the fused operator its name: the last one does. */
    assert_runs("$M plan gpt3-tiny -c two.json --placer heft --pin '%s=B' -q -o plan.json", name);
    assert_runs("$M problem coarse.json -c two.json --pin '%s=B' -q", name);
    assert_fails(3, "no operator", "$M plan gpt3-tiny -c two.json --placer heft -q --pin 'nobody=B'");
}

/* A bound belongs to the problem that it was proven of. */
static void test_cli_promises_simulate_drops_foreign_bounds(void **state)
{
    (void)state;
    assert_runs(
        "$M problem gpt3-tiny -c '2x v100, 100Gbps 5us' -q -o slow.json && "
        "$M problem gpt3-tiny -c '2x a100, 600Gbps 1us' -q -o fast.json && sed -i 's/gpt3-tiny-[^\"]*/same/' *.json");
    assert_runs("$M place slow.json --effort 0.01 -q -o plan.json");
    assert_runs("$M simulate fast.json plan.json --dispatch --json");
    assert_true(number("lower_bound_ns") <= number("makespan_ns"));
    assert_contains(shell_err, "made for another problem");
    assert_runs("$M place slow.json --effort 0.01 --json -q");
    int64_t bound = number("lower_bound_ns");
    assert_runs("$M simulate slow.json plan.json --json");
    assert_int_equal(number("lower_bound_ns"), bound);
    assert_null(strstr(shell_err, "another problem"));
}

static void test_cli_promises_no_memory_is_explained(void **state)
{
    (void)state;
    assert_runs(
        "$M problem gpt3-tiny -c '2x v100 16GB, 100Gbps 5us' -q -o p.json && sed -i 's/16000000000/100000/g' p.json");
    assert_fails(4, "the operators need", "$M place p.json --placer heft");
    assert_fails(4, "the operators need", "$M place p.json");
    assert_contains(shell_err, ", all devices together have 200 kB: ");
    /* Where only a search can know, it says what came nearest. */
    write_text("q.json",
               "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"q\",\"flow\":\"tensor\",\"congestion\":"
               "\"port\",\"memory\":\"static\","
               "\"devices\":[{\"name\":\"A\",\"memory_bytes\":10},{\"name\":\"B\",\"memory_bytes\":10}],\"channels\":["
               "{\"from\":\"A\",\"to\":\"B\",\"bytes_per_second\":1000},{\"from\":\"B\",\"to\":\"A\",\"bytes_per_"
               "second\":1000}],"
               "\"ops\":[{\"name\":\"a\",\"memory_bytes\":6,\"time_ns\":[1,1],\"inputs\":[],\"outputs\":[]},"
               "{\"name\":\"b\",\"memory_bytes\":6,\"time_ns\":[1,1],\"inputs\":[],\"outputs\":[]},"
               "{\"name\":\"c\",\"memory_bytes\":6,\"time_ns\":[1,1],\"inputs\":[],\"outputs\":[]}]}");
    assert_fails(4, "every placement was tried; the nearest try: ", "$M place q.json");
}

/* ---- models ---- */

static void save(wire *graph, const char *path)
{
    wire model = {0};
    make_model(&model, graph);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model.data, 1, model.length, f), model.length);
    fclose(f);
    wire_free(&model);
}

/* x of shape batch x 4 through two layers. */
static void make_open_model(const char *path)
{
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "batchx4");
    make_weights(&graph, "w", "4x4");
    make_node(&graph, "MatMul", "x,w", "y", NULL);
    make_node(&graph, "Relu", "y", "z", NULL);
    make_output(&graph, "z", MAKE_FLOAT, NULL);
    save(&graph, path);
}

static void test_cli_promises_plans_remember_dimensions(void **state)
{
    (void)state;
    write_text("two.json", two);
    make_open_model("m.onnx");
    assert_runs("$M plan m.onnx -c two.json --dim batch=8 --placer heft --rules none -q -o plan.json");
    assert_runs("$M split plan.json m.onnx -o parts");
    char *text = read_text("parts/manifest.json");
    assert_contains(text, "[8, 4]");
    free(text);
    /* In steps, through graph and problem files. */
    assert_runs("$M inspect m.onnx --shape x:8x4 -q -o g.json && $M problem g.json -c two.json -q -o p.json && "
                "$M place p.json --placer heft -q -o plan2.json && $M split plan2.json m.onnx -o parts2");
    text = read_text("parts2/manifest.json");
    assert_contains(text, "[8, 4]");
    free(text);
    /* What is said anew wins, and then does not belong to the plan where it matters. */
    assert_runs("$M split plan.json m.onnx --dim batch=8 -o parts3");
}

static void test_cli_promises_shapes_must_fit_the_model(void **state)
{
    (void)state;
    make_open_model("m.onnx");
    assert_runs("$M inspect m.onnx --shape x:8x4 -q");
    assert_fails(2, "3 dimensions, the model declares 2", "$M inspect m.onnx --shape x:8x4x1");
    assert_fails(2, "dimension 2 is 5, the model fixes it at 4", "$M inspect m.onnx --shape x:8x5");
}

static void test_cli_promises_inspect_shows_inputs(void **state)
{
    (void)state;
    make_open_model("m.onnx");
    assert_runs("$M inspect m.onnx --dim batch=3");
    assert_contains(shell_out, "x: float batch=3x4");
    assert_runs("$M inspect m.onnx --json");
    yyjson_val *in = yyjson_arr_get(yyjson_obj_get(yyjson_obj_get(shell_json(), "onnx"), "inputs"), 0);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(in, "shape")), "batch=1x4");
}

static void test_cli_promises_onnx_under_another_name(void **state)
{
    (void)state;
    make_open_model("model");
    assert_runs("$M inspect model");
    assert_contains(shell_out, "operators      2");
}

static void test_cli_promises_unknown_sizes_are_named(void **state)
{
    (void)state;
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "2x4");
    make_node_in(&graph, "my.domain", "Mystery", "x", "riddle", NULL);
    make_node(&graph, "Relu", "riddle", "z", NULL);
    make_output(&graph, "z", MAKE_FLOAT, NULL);
    save(&graph, "m.onnx");
    assert_runs("$M inspect m.onnx");
    assert_contains(shell_err, "of unknown size ('riddle'");
}

/* Twelve layers with the weights of one, as ALBERT has them: 12 x (0.6 + 2.4) MB counted once. */
static void test_cli_promises_shared_weights_count_once(void **state)
{
    (void)state;
    wire graph = {0};
    char in[32], mid[32], out[32], line[96];
    write_text("two.json", two);
    make_input(&graph, "t0", MAKE_FLOAT, "8x384");
    make_weights(&graph, "attention", "384x384");
    make_weights(&graph, "up", "384x1536");
    make_weights(&graph, "down", "1536x384");
    for (int i = 0; i < 12; i++) {
        snprintf(in, sizeof in, "t%d", i);
        snprintf(mid, sizeof mid, "u%d", i);
        snprintf(out, sizeof out, "t%d", i + 1);
        /* As exporters do it: every other layer reads the weight under another name. */
        snprintf(line, sizeof line, "attention%d", i);
        make_node(&graph, "Identity", "attention", line, NULL);
        snprintf(line, sizeof line, "%s,attention%d", in, i);
        make_node(&graph, "MatMul", line, mid, NULL);
        snprintf(line, sizeof line, "%s,up", mid);
        snprintf(mid, sizeof mid, "v%d", i);
        make_node(&graph, "MatMul", line, mid, NULL);
        snprintf(line, sizeof line, "%s,down", mid);
        make_node(&graph, "MatMul", line, out, NULL);
    }
    make_output(&graph, "t12", MAKE_FLOAT, NULL);
    save(&graph, "albert.onnx");
    int64_t once = 4 * (384 * 384 + 2 * 384 * 1536);
    assert_runs("$M inspect albert.onnx --json");
    assert_int_equal(number("weight_bytes"), once);
    assert_runs(
        "$M plan albert.onnx -c two.json --rules none --placer single -q --problem-out p.json -o plan.json --json");
    assert_runs("$M check p.json plan.json");
    assert_runs("$M simulate p.json plan.json --json");
    yyjson_val *devices = yyjson_obj_get(shell_json(), "devices");
    int64_t held = yyjson_get_sint(yyjson_obj_get(yyjson_arr_get(devices, 0), "memory_bytes")) +
                   yyjson_get_sint(yyjson_obj_get(yyjson_arr_get(devices, 1), "memory_bytes"));
    assert_int_equal(held, once);
    /* And after fusion, which the rules may or may not do. */
    assert_runs("$M plan albert.onnx -c two.json --placer single -q --problem-out p2.json -o plan2.json --json");
    assert_runs("$M check p2.json plan2.json");
}

/* ---- enemies ---- */

static void test_cli_promises_hosts_are_no_options(void **state)
{
    (void)state;
    write_text("c.json", "{\"format\":\"moirai-cluster\",\"version\":1,\"name\":\"c\",\"devices\":[{\"name\":\"A\","
                         "\"memory\":\"1GB\",\"host\":"
                         "\"-oProxyCommand=touch x\"}],\"links\":[]}");
    assert_fails(3, "not the name of a machine", "$M cluster c.json");
    assert_fails(2, "not the name of a machine", "$M probe --hosts=-oProxyCommand=id,b");
    assert_fails(2, "not the name of a machine", "$M probe --hosts 'a b,c'");
}

static void test_cli_promises_names_do_no_harm(void **state)
{
    (void)state;
    /* A device and an operator whose names hold a line break, a bell and an escape sequence. */
    write_text("p.json",
               "{\"format\":\"moirai-problem\",\"version\":1,\"name\":\"two\\nlines\",\"flow\":\"tensor\","
               "\"congestion\":\"port\",\"memory\":\"static\","
               "\"devices\":[{\"name\":\"A\\u001b[31m\\n\\u0007B\",\"memory_bytes\":10}],\"channels\":[],"
               "\"ops\":[{\"name\":\"a\\nb\",\"memory_bytes\":6,\"time_ns\":[1],\"inputs\":[],\"outputs\":[]}]}");
    assert_runs("$M place p.json --placer heft");
    assert_contains(shell_out, "A?[31m??B");
    assert_contains(shell_out, "two?lines");
    assert_null(strchr(shell_out, '\033'));
    assert_null(strchr(shell_out, '\a'));
    assert_fails(4, "'a b'", "sed 's/\"memory_bytes\":6/\"memory_bytes\":60/' p.json | $M place -");
}

/* A model whose weights are in another file, and a plan for it. */
static void make_external_model(void)
{
    wire graph = {0};
    write_text("two.json", two);
    make_input(&graph, "x", MAKE_FLOAT, "8x4");
    make_external(&graph, "w", MAKE_FLOAT, "4x4", "0", "64");
    make_node(&graph, "MatMul", "x,w", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    save(&graph, "m.onnx");
    assert_runs("$M plan m.onnx -c two.json --placer single --rules none -q -o plan.json");
}

static void test_cli_promises_weights_are_plain_files_below_the_model(void **state)
{
    (void)state;
    make_external_model();
    assert_runs("head -c 64 /dev/zero >weights.bin && $M split plan.json m.onnx -o good");
    assert_runs("rm weights.bin && mkfifo weights.bin");
    assert_fails(3, "plain file", "timeout 20 $M split plan.json m.onnx -o pipe");
    assert_runs("rm weights.bin && ln -s /etc/passwd weights.bin");
    assert_fails(3, "not below the model's folder", "$M split plan.json m.onnx -o link");
    /* A link that stays in the folder is fine, and so is a cache whose files are all links to one place. */
    assert_runs("rm weights.bin && head -c 64 /dev/zero >real.bin && ln -s real.bin weights.bin && "
                "$M split plan.json m.onnx -o inside");
    assert_runs("mkdir blobs cache && cp m.onnx blobs/1 && cp real.bin blobs/2 && ln -s ../blobs/1 cache/m.onnx && "
                "ln -s ../blobs/2 cache/weights.bin && $M split plan.json cache/m.onnx -o cached");
    assert_runs("mkfifo pipe.onnx");
    assert_fails(3, "not a plain file", "timeout 20 $M inspect pipe.onnx");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_cli_promises_##name, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(start_that_does_not_fit),   CASE(expand_keeps_the_pins),
        CASE(pins_by_swallowed_names),   CASE(simulate_drops_foreign_bounds),
        CASE(no_memory_is_explained),    CASE(plans_remember_dimensions),
        CASE(shapes_must_fit_the_model), CASE(inspect_shows_inputs),
        CASE(onnx_under_another_name),   CASE(unknown_sizes_are_named),
        CASE(shared_weights_count_once), CASE(hosts_are_no_options),
        CASE(names_do_no_harm),          CASE(weights_are_plain_files_below_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
