/* Splitting: which segments, what is in the sub-models, and which plans are refused. */
#include "support/check.h"
#include "support/folder.h"
#include "support/onnx_maker.h"

#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include <moirai/moirai.h>
#include "onnx/onnx_model.h"

static void put_model(const char *path, wire *graph)
{
    wire model = {0};
    make_model(&model, graph);
    put_file(path, model.data, model.length);
    wire_free(&model);
}

static yyjson_doc *read_manifest(void)
{
    yyjson_doc *doc = yyjson_read_file(in_folder("parts/manifest.json"), 0, NULL, NULL);
    assert_non_null(doc);
    return doc;
}

static int segments_of(yyjson_doc *doc, size_t device)
{
    yyjson_val *d = yyjson_arr_get(yyjson_obj_get(yyjson_doc_get_root(doc), "devices"), device);
    return (int)yyjson_arr_size(yyjson_obj_get(d, "segments"));
}

/* x -> a -> b -> c -> d -> y, each of 40 bytes */
static void chain_model(const char *path)
{
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "10");
    make_node(&graph, "Relu", "x", "a", NULL);
    make_node(&graph, "Abs", "a", "b", NULL);
    make_node(&graph, "Neg", "b", "c", NULL);
    make_node(&graph, "Exp", "c", "d", NULL);
    make_node(&graph, "Add", "a,d", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "10");
    put_model(path, &graph);
}

static int split_with(const char *plan, const moirai_split_options *options, moirai_split_report *report)
{
    put_file(in_folder("plan.json"), plan, strlen(plan));
    return moirai_split(in_folder("plan.json"), in_folder("m.onnx"), in_folder("parts"), options, report);
}

static int split_string(const char *plan, moirai_split_report *report)
{
    return split_with(plan, NULL, report);
}

#define OP(name, device, start, finish) \
    "{\"name\": \"" name "\", \"device\": \"" device "\", \"start_ns\": " #start ", \"finish_ns\": " #finish "}"
#define MOVE(tensor, from, to, start, finish, bytes) \
    "{\"tensor\": \"" tensor "\", \"from\": \"" from "\", \"to\": \"" to "\", \"start_ns\": " #start \
    ", \"finish_ns\": " #finish ", \"bytes\": " #bytes "}"
#define PLAN(ops, moves) \
    "{\"format\": \"moirai-plan\", \"version\": 1, \"makespan_ns\": 100, \"ops\": [" ops "], \"transfers\": [" moves \
    "], \"devices\": [{\"name\": \"A\"}, {\"name\": \"B\"}]}"

/* A: a, c, d, y; B: b. a must leave at once, and c must wait for b. */
static void test_split_segments_end_where_they_must(void **state)
{
    moirai_split_report r;
    (void)state;
    chain_model(in_folder("m.onnx"));
    assert_ok(split_string(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_1", "B", 15, 20) "," OP(
                                    "Neg_2", "A", 25, 30) "," OP("Exp_3", "A", 30, 40) "," OP("Add_4", "A", 40, 50),
                                MOVE("a", "A", "B", 10, 15, 40) "," MOVE("b", "B", "A", 20, 25, 40)),
                           &r));
    yyjson_doc *doc = read_manifest();
    assert_int_equal(segments_of(doc, 0), 2); /* [a] [c d y] */
    assert_int_equal(segments_of(doc, 1), 1);
    assert_int_equal(r.n_segments, 3);
    assert_int_equal(r.n_transfers, 2);
    assert_int_equal(r.n_nodes, 5);
    yyjson_doc_free(doc);
}

/* The same with time to spare: a result that leaves late, and a transfer that has come before, cut nothing. */
static void test_split_merges_what_the_schedule_lets_wait(void **state)
{
    moirai_split_report r;
    (void)state;
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "10");
    make_node(&graph, "Relu", "x", "a", NULL);
    make_node(&graph, "Abs", "x", "b", NULL);
    make_node(&graph, "Neg", "x", "c", NULL);
    make_node(&graph, "Add", "a,c", "d", NULL); /* on B */
    make_output(&graph, "d", MAKE_FLOAT, "10");
    make_output(&graph, "b", MAKE_FLOAT, "10");
    put_model(in_folder("m.onnx"), &graph);
    assert_ok(split_string(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_1", "A", 10, 20) "," OP(
                                    "Neg_2", "B", 30, 40) "," OP("Add_3", "B", 40, 50),
                                MOVE("a", "A", "B", 20, 30, 40)),
                           &r));
    assert_int_equal(r.n_segments, 2);
    assert_ok(split_string(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_1", "A", 10, 20) "," OP(
                                    "Neg_2", "B", 29, 39) "," OP("Add_3", "B", 40, 50),
                                MOVE("a", "A", "B", 19, 30, 40)),
                           &r));
    assert_int_equal(r.n_segments, 4); /* both a little earlier: both cut */
}

/* What one more segment costs, a short wait may cost, too; but a wait for oneself never ends, whatever it would save.
 */
static void test_split_merges_what_is_dearer_apart(void **state)
{
    static const int64_t price_ns[] = {0, 5, 20, 1000000};
    static const int n_segments[] = {4, 4, 2, 2};
    moirai_split_report r;
    (void)state;
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "10");
    make_node(&graph, "Relu", "x", "a", NULL);
    make_node(&graph, "Abs", "x", "b", NULL);
    make_node(&graph, "Neg", "a", "c", NULL); /* on B, as the last one */
    make_node(&graph, "Add", "b,c", "d", NULL);
    make_output(&graph, "d", MAKE_FLOAT, "10");
    put_model(in_folder("m.onnx"), &graph);
    for (int i = 0; i < 4; i++) {
        moirai_split_options o = {.segment_ns = price_ns[i]};
        assert_ok(split_with(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_1", "A", 10, 20) "," OP(
                                      "Neg_2", "B", 20, 21) "," OP("Add_3", "B", 30, 40),
                                  MOVE("a", "A", "B", 10, 20, 40) "," MOVE("b", "A", "B", 20, 30, 40)),
                             &o, &r));
        assert_int_equal(r.n_segments, n_segments[i]);
    }
    chain_model(in_folder("m.onnx"));
    moirai_split_options dear = {.segment_ns = 1000000};
    assert_ok(split_with(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_1", "B", 15, 20) "," OP("Neg_2", "A", 25, 30) "," OP(
                                  "Exp_3", "A", 30, 40) "," OP("Add_4", "A", 40, 50),
                              MOVE("a", "A", "B", 10, 15, 40) "," MOVE("b", "B", "A", 20, 25, 40)),
                         &dear, &r));
    assert_int_equal(r.n_segments, 3);
}

/* Everything at time 0: the order of times alone would let A wait for B and B for A. */
static void test_split_without_time_never_waits_in_a_circle(void **state)
{
    moirai_split_report r;
    (void)state;
    chain_model(in_folder("m.onnx"));
    assert_ok(split_string(PLAN(OP("Relu_0", "A", 0, 0) "," OP("Abs_1", "B", 0, 0) "," OP("Neg_2", "A", 0, 0) "," OP(
                                    "Exp_3", "B", 0, 0) "," OP("Add_4", "A", 0, 0),
                                MOVE("a", "A", "B", 0, 0, 40) "," MOVE("b", "B", "A", 0, 0, 40) "," MOVE(
                                    "c", "A", "B", 0, 0, 40) "," MOVE("d", "B", "A", 0, 0, 40)),
                           &r));
    assert_int_equal(r.n_segments, 5);
}

static void refuse(const char *plan, const char *part)
{
    moirai_split_report r;
    assert_int_equal(split_string(plan, &r), MOIRAI_EINPUT);
    if (!strstr(moirai_error_message(), part) || !strstr(moirai_error_message(), "plan.json"))
        fail_msg("\"%s\" does not name the plan or does not say \"%s\"", moirai_error_message(), part);
}

static void test_split_refuses_plans_of_other_models(void **state)
{
    (void)state;
    chain_model(in_folder("m.onnx"));
    refuse(PLAN(OP("Relu_0", "A", 0, 10), ""), "does not belong to this model");
    refuse(PLAN(OP("Sin_0", "A", 0, 10), ""), "no operator 'Sin_0'");
#define REST OP("Neg_2", "A", 25, 30) "," OP("Exp_3", "A", 30, 40) "," OP("Add_4", "A", 40, 50)
    refuse(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_1", "B", 15, 20) "," REST, MOVE("a", "A", "B", 10, 15, 40)),
           "'b', which is never sent there");
    refuse(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_1", "B", 15, 20) "," REST,
                MOVE("a", "A", "B", 10, 15, 80) "," MOVE("b", "B", "A", 20, 25, 40)),
           "sends 80 bytes, the model makes 40");
    refuse(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_1", "A", 5, 20) "," REST, ""), "starts before 'Relu_0'");
    refuse(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Relu_0", "A", 5, 20) "," OP("Abs_1", "A", 5, 20) "," OP(
                    "Neg_2", "A", 25, 30) "," OP("Exp_3", "A", 30, 40),
                ""),
           "placed twice");
    refuse("{\"format\": \"moirai-plan\", \"version\": 1}", "ops");
    refuse("nonsense", "plan.json");
}

/* ---- what is in them ---- */

static onnx_model *open_part(const char *name)
{
    onnx_model *m;
    char path[200];
    snprintf(path, sizeof path, "%s/parts/%s", folder, name);
    assert_ok(onnx_model_open(&m, path));
    return m;
}

static void test_split_nodes_say_where_the_plan_runs_them(void **state)
{
    (void)state;
    chain_model(in_folder("m.onnx"));
    assert_ok(split_string(PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_1", "B", 15, 20) "," REST,
                                MOVE("a", "A", "B", 10, 15, 40) "," MOVE("b", "B", "A", 20, 25, 40)),
                           NULL));
    onnx_model *m = open_part("1-B-0.onnx");
    assert_int_equal(m->proto->graph->n_node, 1);
    const Onnx__NodeProto *n = m->proto->graph->node[0];
    assert_int_equal(n->n_metadata_props, 5);
    assert_string_equal(n->metadata_props[0]->key, "moirai.device");
    assert_string_equal(n->metadata_props[0]->value, "B");
    assert_string_equal(n->metadata_props[3]->value, "15");
    assert_int_equal(m->proto->graph->n_input, 1);
    assert_string_equal(m->proto->graph->input[0]->name, "a");
    assert_int_equal(m->proto->graph->input[0]->type->tensor_type->elem_type, MAKE_FLOAT);
    assert_int_equal(m->proto->graph->input[0]->type->tensor_type->shape->dim[0]->dim_value, 10);
    onnx_model_free(m);
}

/* Weights in an external file: u on A, v on B, s (shared) on both; A reads s in two segments but holds it once. */
static void test_split_external_weights_go_where_they_are_used(void **state)
{
    moirai_split_report r;
    char data[400];
    struct stat info;
    (void)state;
    wire graph = {0};
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)i;
    put_file(in_folder("weights.bin"), data, sizeof data);
    make_input(&graph, "x", MAKE_FLOAT, "10");
    make_external(&graph, "u", MAKE_FLOAT, "10", "0", "40");
    make_external(&graph, "v", MAKE_FLOAT, "10", "40", "40");
    make_external(&graph, "s", MAKE_FLOAT, "10", "80", "40");
    make_node(&graph, "Mul", "x,u", "a", NULL);
    make_node(&graph, "Add", "a,s", "a2", NULL);
    make_node(&graph, "Mul", "a2,v", "b", NULL);
    make_node(&graph, "Add", "b,s", "b2", NULL);
    make_node(&graph, "Add", "b2,s", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "10");
    put_model(in_folder("m.onnx"), &graph);
    assert_ok(split_string(PLAN(OP("Mul_0", "A", 0, 10) "," OP("Add_1", "A", 10, 20) "," OP(
                                    "Mul_2", "B", 30, 40) "," OP("Add_3", "B", 40, 50) "," OP("Add_4", "A", 60, 70),
                                MOVE("a2", "A", "B", 20, 30, 40) "," MOVE("b2", "B", "A", 50, 60, 40)),
                           &r));
    assert_int_equal(r.n_segments, 3);
    assert_int_equal(stat(in_folder("parts/0-A.data"), &info), 0);
    assert_int_equal(info.st_size, 4096 + 40); /* u, and s on the next page, once */
    onnx_model *m = open_part("1-B-0.onnx");
    assert_int_equal(m->proto->graph->n_initializer, 2);
    onnx_model_free(m);
    m = open_part("0-A-1.onnx");
    assert_int_equal(m->proto->graph->n_initializer, 1);
    onnx_data d;
    assert_ok(onnx_tensor_data(&d, m, m->proto->graph->initializer[0]));
    assert_string_equal(d.location, "0-A.data");
    assert_int_equal(d.external_offset, 4096);
    onnx_model_free(m);
    char copy[4136];
    FILE *f = fopen(in_folder("parts/0-A.data"), "rb");
    assert_int_equal(fread(copy, 1, sizeof copy, f), sizeof copy);
    fclose(f);
    assert_memory_equal(copy, data, 40);
    assert_memory_equal(copy + 4096, data + 80, 40);
}

/* The shape of a tensor of A, computed for a Reshape on B: numbers, no transfer. A guessed shape can't be. */
static void test_split_folded_shapes_become_numbers(void **state)
{
    moirai_split_report r;
    (void)state;
    for (int guessed = 0; guessed < 2; guessed++) {
        wire graph = {0};
        make_input(&graph, "x", MAKE_FLOAT, "2x5");
        make_node(&graph, guessed ? "NoSuchOperator" : "Relu", "x", "a", NULL);
        make_node(&graph, "Shape", "a", "s", NULL);
        make_node(&graph, "Abs", "x", "b", NULL);
        make_node(&graph, "Reshape", "b,s", "y", NULL);
        make_output(&graph, "y", MAKE_FLOAT, "2x5");
        make_output(&graph, "a", MAKE_FLOAT, NULL);
        put_model(in_folder("m.onnx"), &graph);
        const char *plan =
            guessed
                ? PLAN(OP("NoSuchOperator_0", "A", 0, 10) "," OP("Abs_2", "B", 0, 5) "," OP("Reshape_3", "B", 5, 9), "")
                : PLAN(OP("Relu_0", "A", 0, 10) "," OP("Abs_2", "B", 0, 5) "," OP("Reshape_3", "B", 5, 9), "");
        int rc = split_string(plan, &r);
        if (guessed) {
            assert_int_equal(rc, MOIRAI_EINPUT);
            assert_non_null(strstr(moirai_error_message(), "known only when the network runs"));
            break;
        }
        assert_ok(rc);
        onnx_model *m = open_part("1-B-0.onnx");
        assert_int_equal(m->proto->graph->n_node, 2);
        assert_int_equal(m->proto->graph->n_initializer, 1);
        assert_int_equal(m->proto->graph->initializer[0]->n_int64_data, 2);
        assert_int_equal(m->proto->graph->initializer[0]->int64_data[1], 5);
        onnx_model_free(m);
    }
}

/* ---- every placer, every size ---- */

static int count_nodes(const moirai_cluster *c, const char *network, const char *placer, const char *rules_name)
{
    moirai_graph *g, *coarse;
    moirai_rules *rules;
    moirai_problem *p;
    moirai_plan *plan;
    moirai_problem_options po = {0};
    moirai_place_options o;
    moirai_split_report r;
    char name[64];
    snprintf(name, sizeof name, "%s.onnx", network);
    if (access(in_folder(name), F_OK))
        assert_ok(moirai_onnx_write_zoo(network, 4, 1, in_folder(name)));
    assert_ok(moirai_onnx_read(&g, in_folder(name), NULL, NULL));
    assert_ok(moirai_rules_open(&rules, rules_name));
    assert_ok(moirai_coarsen(&coarse, g, rules, NULL));
    assert_ok(moirai_problem_new(&p, coarse, c, &po));
    moirai_place_options_init(&o);
    assert_ok(moirai_place(&plan, p, placer, &o));
    assert_ok(moirai_plan_write(plan, p, in_folder("plan.json")));
    assert_ok(moirai_split(in_folder("plan.json"), in_folder(name), in_folder("parts"), NULL, &r));
    assert_true(r.n_segments >= r.n_used && r.n_segments <= p->n_ops);
    assert_int_equal(r.n_transfers, plan->n_transfers);
    int n_ops = g->n_ops;
    assert_int_equal(r.n_nodes, n_ops); /* each node once: nothing is folded in these networks */
    moirai_plan_free(plan);
    moirai_problem_free(p);
    moirai_graph_free(coarse);
    moirai_rules_free(rules);
    moirai_graph_free(g);
    return r.n_segments;
}

static void test_split_finds_out_the_rules(void **state)
{
    static const char *const networks[] = {"gpt3-tiny", "inception-tiny", "t5-tiny"};
    static const char *const rules[] = {"none", "onnxruntime", "eigen"};
    moirai_cluster *c;
    (void)state;
    assert_ok(moirai_cluster_synthetic(&c, "2x v100, 2x p100 16GB, 100Gbps 5us"));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            count_nodes(c, networks[i], "m-etf", rules[k]);
            assert_int_equal(count_nodes(c, networks[i], "single", rules[k]), 1);
        }
    moirai_cluster_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_split_segments_end_where_they_must, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_merges_what_the_schedule_lets_wait, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_merges_what_is_dearer_apart, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_without_time_never_waits_in_a_circle, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_refuses_plans_of_other_models, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_nodes_say_where_the_plan_runs_them, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_external_weights_go_where_they_are_used, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_folded_shapes_become_numbers, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_finds_out_the_rules, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
