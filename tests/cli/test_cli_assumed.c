/* What a verdict rests on stands beside it: sizes that were assumed, operators without a cost. */
#include <yyjson.h>

#include "support/check.h"
#include "support/command.h"
#include "support/onnx_maker.h"

static void write_wire(const char *path, wire *graph)
{
    wire model = {0};
    make_model(&model, graph);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model.data, 1, model.length, f), model.length);
    assert_int_equal(fclose(f), 0);
    wire_free(&model);
}

/* Two convolutions side by side, as large as the image. */
static void two_branches(wire *graph, const char *shape, const char *domain)
{
    make_input(graph, "image", MAKE_FLOAT, shape);
    make_external(graph, "w", MAKE_FLOAT, "64x3x7x7", NULL, NULL);
    make_node(graph, "Conv", "image,w", "a", NULL);
    make_node(graph, "Conv", "image,w", "b", NULL);
    make_node_in(graph, domain, "Add", "a,b", "y", NULL);
    make_output(graph, "y", MAKE_FLOAT, NULL);
}

static void test_cli_assumed_sizes_stand_beside_the_verdict(void **state)
{
    (void)state;
    wire graph = {0};
    two_branches(&graph, "batchx3xheightxwidth", "");
    write_wire("open.onnx", &graph);
    assert_runs("$M plan open.onnx -c inter-server --effort 0.01 -o plan.json --problem-out p.json --report r.html");
    assert_contains(shell_out, "assumed      batch=1, height=224, width=224; ");
    assert_contains(shell_err, "batch=1, height=224, width=224; --dim NAME=N changes one");
    char *plan = read_text("plan.json"), *page = read_text("r.html");
    assert_contains(plan, "\"assumed\":");
    assert_contains(plan, "height=224");
    assert_contains(page, "sizes that the model leaves open were assumed: batch=1, height=224, width=224");
    free(plan);
    free(page);
    assert_runs("$M explain plan.json --problem p.json"); /* and wherever the plan goes */
    assert_contains(shell_out, "assumed: batch=1, height=224, width=224");
    assert_runs("$M plan open.onnx -c inter-server --effort 0.01 --dim batch=2 --dim height=64 --dim width=64 --json");
    assert_null(yyjson_obj_get(shell_json(), "assumed"));
    assert_fails(2, "open are batch, height, width", "$M inspect open.onnx --dim '?=48'");
}

static void test_cli_assumed_no_speed_up_without_costs(void **state)
{
    (void)state;
    wire graph = {0};
    two_branches(&graph, "1x3x224x224", "my.company");
    write_wire("foreign.onnx", &graph);
    assert_runs("$M plan foreign.onnx -c inter-server --effort 0.01 --report r.html");
    assert_contains(shell_out, "what is gained is not known");
    assert_contains(shell_out, "uncosted     1 Add; nobody knows what these operators take, so no speed-up is claimed");
    assert_null(strstr(shell_out, "times as fast"));
    char *page = read_text("r.html");
    assert_contains(page, "no speed-up is claimed: nobody knows what 1 Add take");
    free(page);
    assert_runs("$M plan foreign.onnx -c inter-server --effort 0.01 --json");
    assert_true(yyjson_is_null(yyjson_obj_get(shell_json(), "speed_up")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_assumed_sizes_stand_beside_the_verdict, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cli_assumed_no_speed_up_without_costs, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
