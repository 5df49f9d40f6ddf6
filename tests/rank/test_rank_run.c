/* moirai run as a user types it: plans carried out by ranks on this machine, verified against the whole model; and what
 * happens when something breaks. Times are never judged, only that nothing hangs: the shell's `timeout` would say so.
 */
#include "support/check.h"
#include "support/command.h"
#include "support/onnx_maker.h"
#include "support/scale.h"

#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include <moirai/moirai.h>

#include "util/util.h"

/* Four devices that differ: providers, threads, cores. */
static const char *const cluster_text =
    "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"here\", \"devices\": ["
    "{\"name\": \"A\", \"type\": \"v100\", \"memory\": \"8GB\", \"threads\": 1, \"cores\": \"0\"},"
    "{\"name\": \"B\", \"type\": \"v100\", \"memory\": \"8GB\", \"threads\": 2},"
    "{\"name\": \"C\", \"type\": \"p100\", \"memory\": \"8GB\", \"ep\": \"xnnpack\"},"
    "{\"name\": \"D\", \"type\": \"t4\", \"memory\": \"8GB\", \"ep\": \"cpu\"}],"
    "\"links\": [{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"100Gbps\", \"both\": true},"
    "{\"from\": \"B\", \"to\": \"C\", \"bandwidth\": \"100Gbps\", \"both\": true},"
    "{\"from\": \"C\", \"to\": \"D\", \"bandwidth\": \"100Gbps\", \"both\": true},"
    "{\"from\": \"D\", \"to\": \"A\", \"bandwidth\": \"100Gbps\", \"both\": true}]}";

static int enter(void **state)
{
    int rc = enter_folder(state);
    if (!rc)
        write_text("c.json", cluster_text);
    return rc;
}

static int64_t number(const char *key)
{
    return yyjson_get_sint(yyjson_obj_get(shell_json(), key));
}

#define RUN "timeout 600 $M run plan.json m.onnx --cluster c.json --warmup 1 --runs 2 --json "

static bool plan(const char *options)
{
    int code = shell("$M plan m.onnx --cluster c.json %s -o plan.json --force --json", options);
    if (code && code != 5) /* a limit is no failure */
        fail_msg("plan %s: %s", options, shell_err);
    return code == 0;
}

static void run_verified(const char *what)
{
    int code = shell(RUN "--verify");
    if (code)
        fail_msg("%s: exit code %d: %s", what, code, shell_err);
    assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "verified")));
    assert_true(number("median_ns") > 0);
}

/* ---- plans are carried out ---- */

static void test_run_without_a_cluster_says_what_it_runs_on(void **state)
{
    (void)state;
    assert_runs("$M zoo inception-tiny --onnx m.onnx --force");
    assert_runs("$M plan m.onnx --cluster '2x v100, 100Gbps 5us' --placer heft -q -o gpu.json");
    assert_runs("$M run gpu.json m.onnx --warmup 0 --runs 1");
    assert_contains(shell_err, "note: no --cluster: every device is one CPU thread of this machine");
    assert_contains(shell_err, "is not comparable");
}

/* Every placer's plan runs, on one network; for others, those that scatter in ways of their own will do. ONNX Runtime starts
 * slowly under AddressSanitizer: where all have run in another build, two placers, one for the largest network. */
static bool is_tried(const char *placer, const char *network)
{
    bool engine = !strcmp(placer, "moirai"), lists = !strcmp(placer, "m-etf");
    if (TEST_AGAIN(true, TEST_SHARE(4) < 4))
        return engine || (lists && strcmp(network, "gpt3-mini"));
    return engine || lists || !strcmp(placer, "random") || !strcmp(network, "inception-tiny");
}

/* Where and when the plan at hand computes and sends, as text. */
static char *schedule_text(void)
{
    yyjson_doc *doc = yyjson_read_file("plan.json", 0, NULL, NULL);
    assert_non_null(doc);
    char *ops = yyjson_val_write(yyjson_obj_get(yyjson_doc_get_root(doc), "ops"), 0, NULL);
    char *sent = yyjson_val_write(yyjson_obj_get(yyjson_doc_get_root(doc), "transfers"), 0, NULL), *text = NULL;
    assert_true(ops && sent && asprintf(&text, "%s %s", ops, sent) > 0);
    free(ops);
    free(sent);
    yyjson_doc_free(doc);
    return text;
}

/* Whether another placer has made the same schedule: what ranks do does not depend on who made it. */
static bool has_run(char *tried[], int *n_tried)
{
    char *text = schedule_text();
    for (int i = 0; i < *n_tried; i++)
        if (!strcmp(text, tried[i])) {
            free(text);
            return true;
        }
    tried[(*n_tried)++] = text;
    return false;
}

static void check_placers(const char *network)
{
    char *tried[64];
    int n_tried = 0;
    assert_true((size_t)moirai_placer_count() <= sizeof tried / sizeof *tried);
    assert_runs("$M zoo %s --onnx m.onnx --force", network);
    for (int i = 0; i < moirai_placer_count(); i++) {
        const moirai_placer *p = moirai_placer_at(i);
        char options[128];
        const char *why;
        if (!is_tried(p->name, network) || (p->available && !p->available(&why)))
            continue;
        snprintf(options, sizeof options, "--placer %s --time-limit 0.3 --effort 0.1", p->name);
        if (plan(options) && !has_run(tried, &n_tried))
            run_verified(p->name);
    }
    print_message("%s: %d plans run\n", network, n_tried);
    while (n_tried)
        free(tried[--n_tried]);
}

static void test_run_plans_of_a_transformer(void **state)
{
    (void)state;
    check_placers("gpt3-tiny");
}

/* Hundreds of operators, eight heads side by side. */
static void test_run_plans_of_a_wider_transformer(void **state)
{
    (void)state;
    check_placers("gpt3-mini");
}

static void test_run_every_placer_on_a_cnn(void **state)
{
    (void)state;
    check_placers("inception-tiny");
}

static void test_run_hundreds_of_operators(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-mini --onnx m.onnx");
    assert_true(plan("--placer m-etf --rules none"));
    run_verified("m-etf");
    assert_true(number("n_transfers") > 20);
    assert_int_equal(number("used_devices"), 4);
}

static void test_run_half_precision(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny --dtype fp16 --onnx m.onnx");
    assert_true(plan("--placer m-etf"));
    run_verified("fp16");
}

/* Messages in many chunks: what happens beyond 2 GiB, with less. */
static void test_run_messages_of_many_chunks(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny --onnx m.onnx");
    assert_true(plan("--placer random"));
    assert_runs("MOIRAI_CHUNK_BYTES=1000 MOIRAI_TRANSPORT=host " RUN "--verify");
}

static int64_t n_shared(void)
{
    yyjson_doc *doc = yyjson_read_file("plan.measured.json", 0, NULL, NULL);
    assert_non_null(doc);
    int64_t n = yyjson_get_sint(yyjson_obj_get(yyjson_doc_get_root(doc), "shared"));
    yyjson_doc_free(doc);
    return n;
}

/* What processors of this machine send each other lies in memory of both, and comes out right after many runs; by messages
 * where that is wanted. */
static void test_run_processors_of_one_host_share_memory(void **state)
{
    (void)state;
    assert_runs("$M zoo t5-tiny --onnx m.onnx");
    assert_true(plan("--placer random"));
    assert_runs("timeout 600 $M run plan.json m.onnx --cluster c.json --warmup 0 --runs 20 --json --verify");
    assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "verified")));
    assert_true(number("n_transfers") > 0);
    assert_int_equal(n_shared(), number("n_transfers"));
    assert_runs("MOIRAI_TRANSPORT=host " RUN "--verify");
    assert_int_equal(n_shared(), 0);
}

static void write_model(wire *graph)
{
    wire model = {0};
    make_model(&model, graph);
    FILE *f = fopen("m.onnx", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(model.data, 1, model.length, f), model.length);
    assert_int_equal(fclose(f), 0);
    wire_free(&model);
}

/* Tensors of other types between devices; shapes computed and folded; an If that captures outer tensors; an output that
 * is an input, and one that is a constant; an optional input left out. */
static void mixed_model(void)
{
    wire graph = {0}, yes = {0}, no = {0}, attrs = {0}, cast = {0}, split = {0};
    int64_t three = 3, numbers[] = {0, 2, 1};
    make_input(&graph, "x", MAKE_FLOAT, "4x6");
    make_input(&graph, "n", MAKE_INT64, "3");
    make_ints(&graph, "rows", 3, numbers, 0);
    make_ints(&graph, "three", 1, &three, 0);
    make_node(&graph, "Relu", "x", "a", NULL);
    make_node(&graph, "Greater", "a,x", "mask", NULL); /* bool */
    make_node(&graph, "Add", "n,three", "m", NULL);    /* int64 */
    make_attr_int(&cast, "to", MAKE_FLOAT);
    make_node(&graph, "Cast", "m", "mf", &cast);
    make_node(&graph, "Where", "mask,a,x", "w", NULL);
    make_node(&graph, "Gather", "w,rows", "g", NULL); /* 3x6 */
    make_node(&graph, "Shape", "g", "gs", NULL);
    make_node(&graph, "Abs", "g", "h", NULL);
    make_node(&graph, "Reshape", "h,gs", "r", NULL);
    make_node(&graph, "ReduceSum", "mf", "total", NULL); /* axes left out */
    make_node(&graph, "Sqrt", "r", "q", NULL);
    make_node(&graph, "ReduceMax", "m", "top", NULL);
    make_node(&graph, "Greater", "top,three", "cond", NULL);
    make_node(&yes, "Add", "q,total", "t1", NULL);
    make_output(&yes, "t1", MAKE_FLOAT, NULL);
    make_node(&no, "Sub", "q,total", "t2", NULL);
    make_output(&no, "t2", MAKE_FLOAT, NULL);
    make_node(&graph, "Squeeze", "cond", "c0", NULL);
    wire_text(&yes, 2, "yes"); /* names, which ONNX Runtime insists on */
    wire_text(&no, 2, "no");
    make_attr_graph(&attrs, "then_branch", &yes);
    make_attr_graph(&attrs, "else_branch", &no);
    make_node(&graph, "If", "c0", "y", &attrs);
    make_attr_int(&split, "axis", 1);
    make_node(&graph, "Concat", "y,q", "z", &split);
    make_node(&graph, "Shape", "z", "zs", NULL);
    make_output(&graph, "z", MAKE_FLOAT, NULL);
    make_output(&graph, "mask", 9, NULL);
    make_output(&graph, "m", MAKE_INT64, NULL);
    make_output(&graph, "zs", MAKE_INT64, NULL);
    write_model(&graph);
}

static void test_run_types_subgraphs_and_constants(void **state)
{
    (void)state;
    mixed_model();
    for (int seed = 1; seed <= TEST_AGAIN(1, 3); seed++) {
        char options[64];
        snprintf(options, sizeof options, "--placer random --rules none --seed %d", seed);
        assert_true(plan(options));
        run_verified(options);
        assert_true(number("n_transfers") > 0);
    }
}

/* An If with an LSTM in the branch that is not taken, which makes no sense with the shapes at hand: the whole model
 * runs, since its shapes are not known beforehand, and so must its parts. */
static void test_run_a_branch_that_is_never_taken(void **state)
{
    (void)state;
    wire graph = {0}, taken = {0}, never = {0}, attrs = {0}, lstm = {0};
    int64_t rate = 16000, hidden = 2;
    make_input(&graph, "x", MAKE_FLOAT, NULL); /* a tensor of any rank */
    make_input(&graph, "sr", MAKE_INT64, "");
    make_ints(&graph, "rate", 1, &rate, 1);
    make_node(&graph, "Equal", "sr,rate", "high", NULL);
    make_node(&graph, "Relu", "x", "positive", NULL);
    wire_text(&never, 2, "never");
    wire_text(&taken, 2, "taken");
    make_weights(&never, "W", "1x8x4");
    make_weights(&never, "R", "1x8x2");
    make_attr_int(&lstm, "hidden_size", hidden);
    make_node(&never, "LSTM", "positive,W,R", "rows", &lstm);
    make_output(&never, "rows", MAKE_FLOAT, NULL);
    make_node(&taken, "Neg", "positive", "negative", NULL);
    make_output(&taken, "negative", MAKE_FLOAT, NULL);
    make_attr_graph(&attrs, "then_branch", &never);
    make_attr_graph(&attrs, "else_branch", &taken);
    make_node(&graph, "If", "high", "y", &attrs);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    write_model(&graph);
    for (int seed = 1; seed <= TEST_AGAIN(1, 4); seed++) {
        char options[96];
        snprintf(options, sizeof options, "--shape x:3x4 --placer random --rules none --seed %d", seed);
        assert_true(plan(options));
        assert_runs(RUN "--verify");
    }
}

/* ---- inputs and outputs ---- */

/* B becomes one segment, because that is quicker, and so its four tensors for D wait for C's second. C's first goes to
 * D, behind those four by the plan: if D looked at the first few only, all would wait for each other. */
static void circle_model(void)
{
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "96x512");
    make_weights(&graph, "w", "512x512");
    make_node(&graph, "Tanh", "x", "z", NULL);
    make_node(&graph, "Relu", "z", "b1", NULL);
    make_node(&graph, "Neg", "b1", "b2", NULL);
    make_node(&graph, "Abs", "b2", "b3", NULL);
    make_node(&graph, "Sigmoid", "b3", "b4", NULL);
    make_node(&graph, "Gemm", "b4,w", "b5", NULL);
    make_node(&graph, "Gemm", "b5,w", "b6", NULL);
    make_node(&graph, "Gemm", "b6,w", "b7", NULL);
    make_node(&graph, "MatMul", "x,w", "c0", NULL);
    make_node(&graph, "MatMul", "c0,w", "c1", NULL);
    make_node(&graph, "MatMul", "c1,w", "c2", NULL);
    make_node(&graph, "Add", "b7,c2", "b8", NULL);
    make_node(&graph, "Sum", "b1,b2,b3,b4,c1,b8", "d", NULL);
    make_output(&graph, "d", MAKE_FLOAT, "96x512");
    write_model(&graph);
}

static void test_run_nobody_waits_for_a_tensor_that_is_further_on_in_the_plan(void **state)
{
    (void)state;
    circle_model();
    write_text("c.json", "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"three\", \"devices\": ["
                         "{\"name\": \"B\", \"type\": \"v100\", \"memory\": \"8GB\", \"threads\": 1},"
                         "{\"name\": \"C\", \"type\": \"v100\", \"memory\": \"8GB\", \"threads\": 1},"
                         "{\"name\": \"D\", \"type\": \"v100\", \"memory\": \"8GB\", \"threads\": 1}],"
                         "\"links\": [{\"from\": \"B\", \"to\": \"C\", \"bandwidth\": \"1000Gbps\", \"both\": true},"
                         "{\"from\": \"B\", \"to\": \"D\", \"bandwidth\": \"1000Gbps\", \"both\": true},"
                         "{\"from\": \"C\", \"to\": \"D\", \"bandwidth\": \"1000Gbps\", \"both\": true}]}");
    assert_true(plan(
        "--placer heft --rules none --segment-us 0 --pin 'MatMul*=C' --pin 'Sum*=D' --pin 'Tanh*=D' --pin 'Relu*=B' "
        "--pin 'Neg*=B' --pin 'Abs*=B' --pin 'Sigmoid*=B' --pin 'Gemm*=B' --pin 'Add*=B'"));
    assert_runs(RUN "--verify --stall 20 --segment-us 100");
    assert_int_equal(number("n_segments"), 4);
    assert_int_equal(number("n_transfers"), 8);
}

/* Ranks of this machine are started without a remote shell. */
static void test_run_needs_no_ssh(void **state)
{
    (void)state;
    circle_model();
    write_text("c.json", "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"two\", \"devices\": ["
                         "{\"name\": \"B\", \"type\": \"v100\", \"memory\": \"8GB\", \"threads\": 1},"
                         "{\"name\": \"C\", \"type\": \"v100\", \"memory\": \"8GB\", \"threads\": 1}],"
                         "\"links\": [{\"from\": \"B\", \"to\": \"C\", \"bandwidth\": \"1000Gbps\", \"both\": true}]}");
    assert_true(plan("--placer heft --rules none --pin 'MatMul*=C' --pin 'Relu*=B'"));
    assert_runs("mkdir bin && PATH=$PWD/bin $M run plan.json m.onnx --cluster c.json --warmup 1 --runs 2 --json");
    assert_true(number("n_transfers") > 0);
}

static void write_npy(const char *path, const char *type, const char *shape, const void *data, size_t bytes)
{
    char header[118];
    FILE *f = fopen(path, "wb");
    memset(header, ' ', sizeof header);
    int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    header[n] = ' ';
    header[117] = '\n';
    assert_int_equal(fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f), 10);
    assert_int_equal(fwrite(header, 1, 118, f), 118);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

static void small_model(void)
{
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "4");
    make_node(&graph, "Relu", "x", "a", NULL);
    make_node(&graph, "Neg", "a", "b", NULL);
    make_node(&graph, "Add", "a,b", "zero", NULL);
    make_node(&graph, "Sub", "x,zero", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "4");
    write_model(&graph);
}

static void test_run_given_inputs_reach_the_outputs(void **state)
{
    float x[] = {1, -2, 3.5f, 0}, y[4];
    (void)state;
    small_model();
    assert_true(plan("--placer random --rules none --seed 3"));
    write_npy("x.npy", "<f4", "4,", x, sizeof x);
    assert_runs(RUN "--input x:x.npy -o out --verify");
    FILE *f = fopen("out/y.npy", "rb");
    assert_non_null(f);
    fseek(f, -(long)sizeof y, SEEK_END);
    assert_int_equal(fread(y, 1, sizeof y, f), sizeof y);
    fclose(f);
    assert_memory_equal(x, y, sizeof x);
    assert_fails(3, "the plan is for float32 4", "timeout 600 $M run plan.json m.onnx --quiet --input x:short.npy%s",
                 (write_npy("short.npy", "<f4", "3,", x, 12), ""));
    assert_fails(3, "No such file", "timeout 600 $M run plan.json m.onnx --quiet --input x:nothing.npy");
    assert_fails(2, "no such input", "timeout 600 $M run plan.json m.onnx --quiet --input other:x.npy");
}

static void write_pb(const char *path, const char *name, const float *data, size_t n)
{
    wire t = {0};
    make_tensor(&t, name, MAKE_FLOAT, "4");
    wire_bytes(&t, 9, data, n * sizeof *data);
    FILE *f = fopen(path, "wb");
    assert_int_equal(fwrite(t.data, 1, t.length, f), t.length);
    fclose(f);
    wire_free(&t);
}

static void test_run_data_sets_are_run_and_verified(void **state)
{
    float x[] = {1, -2, 3.5f, 0}, wrong[] = {1, -2, 3, 0};
    (void)state;
    small_model();
    assert_true(plan("--placer random --rules none --seed 3"));
    assert_int_equal(mkdir("test_data_set_0", 0777), 0);
    write_pb("test_data_set_0/input_0.pb", "x", x, 4);
    write_pb("test_data_set_0/output_0.pb", "y", x, 4);
    assert_runs(RUN "--input test_data_set_0 --verify");
    write_pb("test_data_set_0/output_0.pb", "y", wrong, 4);
    assert_fails(6, "output 'y' differs from the data set's: 1 of 4",
                 "timeout 600 $M run plan.json m.onnx --quiet --input test_data_set_0 --verify --runs 1 --warmup 0");
    assert_runs(RUN "--input test_data_set_0 --verify --atol 1");
}

/* ---- what is measured ---- */

static void test_run_timeline_follows_the_plan(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny --onnx m.onnx");
    assert_true(plan("--placer m-etf"));
    assert_runs(RUN "--compare");
    assert_true(yyjson_arr_size(yyjson_obj_get(shell_json(), "segments")) == (size_t)number("n_segments"));
    yyjson_doc *doc = yyjson_read_file("plan.measured.json", 0, NULL, NULL);
    assert_non_null(doc);
    yyjson_val *root = yyjson_doc_get_root(doc), *d, *s;
    assert_string_equal(yyjson_get_str(yyjson_obj_get(root, "format")), "moirai-timeline");
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(root, "latency_ns")), 2);
    int64_t latest = 0, shown = yyjson_get_sint(yyjson_obj_get(root, "median_ns"));
    size_t i, j, n, m, n_ops = 0;
    yyjson_arr_foreach(yyjson_obj_get(root, "devices"), i, n, d) {
        int64_t last = 0;
        yyjson_arr_foreach(yyjson_obj_get(d, "segments"), j, m, s) { /* one after the other */
            int64_t start = yyjson_get_sint(yyjson_obj_get(s, "start_ns"));
            int64_t finish = yyjson_get_sint(yyjson_obj_get(s, "finish_ns"));
            assert_true(start >= last && finish > start);
            last = finish;
            n_ops += yyjson_arr_size(yyjson_obj_get(s, "ops"));
        }
        latest = last > latest ? last : latest;
    }
    assert_int_equal(latest, shown);
    assert_true(n_ops > 40);
    yyjson_doc_free(doc);
}

static char *content(const char *path)
{
    char *text;
    size_t length;
    assert_ok(util_file_read(&text, &length, path));
    return text;
}

static yyjson_val *best(const char *key)
{
    return yyjson_obj_get(yyjson_obj_get(shell_json(), "best"), key);
}

/* Whichever is faster: the file then holds that plan, byte for byte. */
static void test_run_best_holds_the_plan_that_measured_faster(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny --onnx m.onnx");
    assert_true(plan("--placer single"));
    char *one = content("plan.json");
    assert_runs(RUN "--best best.json");
    assert_true(yyjson_get_bool(best("replaced")));
    assert_runs(RUN "--best best.json"); /* the same plan: nothing to measure */
    assert_true(yyjson_is_false(best("replaced")) && !best("plan_ns"));
    assert_true(plan("--placer random"));
    char *other = content("plan.json");
    assert_string_not_equal(one, other);
    assert_runs(RUN "--best best.json");
    int64_t new_ns = yyjson_get_sint(best("plan_ns")), old_ns = yyjson_get_sint(best("best_ns"));
    bool replaced = yyjson_get_bool(best("replaced"));
    assert_true(new_ns > 0 && old_ns > 0);
    assert_true(replaced ? new_ns < old_ns : (double)new_ns >= 0.98 * (double)old_ns);
    char *now = content("best.json");
    assert_string_equal(now, replaced ? other : one);
    assert_int_equal(shell("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 " RUN "--best best.json"), 2);
    assert_contains(shell_err, "without mpirun");
    free(one);
    free(other);
    free(now);
}

static void test_run_under_a_given_mpirun(void **state)
{
    (void)state;
    bool open_mpi = !strcmp(MOIRAI_MPI_FLAVOUR, "OPEN_MPI");
    const char *options = open_mpi ? geteuid() ? "--oversubscribe" : "--oversubscribe --allow-run-as-root" : "";
    small_model();
    assert_true(plan("--placer random --rules none --seed 3"));
    int64_t used = 0;
    assert_runs(RUN);
    used = number("used_devices");
    for (int64_t n = used - 1; n <= used + 1; n++) {
        int code = shell("timeout 600 " MOIRAI_MPIEXEC " %s -n %d $M run plan.json m.onnx --runs 2 --verify --json",
                         options, (int)n);
        if (n == 0)
            continue;
        if (n >= used) {
            assert_int_equal(code, 0);
            assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "verified")));
        } else {
            assert_int_not_equal(code, 0);
            assert_int_not_equal(code, 124);
            assert_contains(shell_err, "mpirun started");
        }
    }
}

/* ---- when something breaks ---- */

static void test_run_a_rank_that_dies_ends_all(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny --onnx m.onnx");
    assert_true(plan("--placer m-etf"));
    /* mpiexec's own line holds the same words, but not at its beginning. */
    int code = shell("timeout 600 $M run plan.json m.onnx --quiet --runs 1000000 --work w & pid=$!\n"
                     "for i in $(seq 1200); do\n"
                     "    [ $(pgrep -fc \"^[^ ]*moirai-rank run $PWD/w/job.json\") -ge 3 ] && break; sleep 0.1; done\n"
                     /* By then all have said that they have started, on a busy machine too; which one is chosen at the
                      * last moment: launchers start helpers that bear the name for a while. */
                     "for i in $(seq 600); do\n"
                     "    [ $(ps -o cputimes= -p $(pgrep -d, -f \"^[^ ]*moirai-rank run $PWD/w/job.json\") |\n"
                     "        awk '{s += $1} END {print s + 0}') -ge 4 ] && break; sleep 0.1; done\n"
                     "kill -9 $(pgrep -f \"^[^ ]*moirai-rank run $PWD/w/job.json\" | tail -1)\n"
                     "killed=$(date +%%s); wait $pid; code=$?\n"
                     "[ $(($(date +%%s) - killed)) -le 60 ] || exit 98\n"
                     /* Every rank ends soon: give the others a while, on a busy machine too. */
                     "for i in $(seq 300); do pgrep -f \"moirai-rank run $PWD/w/job.json\" >/dev/null || exit $code\n"
                     "    sleep 0.2; done; exit 99");
    assert_int_equal(code, 1);
    assert_contains(shell_err, "died: signal 9");
}

static void test_run_a_sub_model_that_fails_to_load(void **state)
{
    wire graph = {0};
    (void)state;
    make_input(&graph, "x", MAKE_FLOAT, "4");
    make_node(&graph, "Relu", "x", "a", NULL);
    make_node_in(&graph, "nobody.knows", "Nonsense", "x", "b", NULL);
    make_node(&graph, "Add", "a,b", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "4");
    write_model(&graph);
    assert_true(plan("--placer random --rules none"));
    assert_fails(1, "Nonsense", "timeout 600 $M run plan.json m.onnx --quiet");
}

static void test_run_refuses_before_anything_starts(void **state)
{
    (void)state;
    small_model();
    assert_true(plan("--placer single --rules none"));
    assert_runs("mv m.onnx small.onnx && $M zoo gpt3-tiny --onnx m.onnx");
    assert_fails(3, "does not belong to this model", "timeout 600 $M run plan.json m.onnx --quiet");
    assert_fails(3, "is not in cluster", "timeout 600 $M run plan.json small.onnx --cluster inter-server --quiet%s",
                 (shell("sed -i 's/\"[A-D]\"/\"X\"/g' plan.json"), ""));
    assert_fails(3, "nothing.onnx", "timeout 600 $M run plan.json nothing.onnx --quiet");
}

static void test_run_a_full_disk_is_said_once(void **state)
{
    (void)state;
    assert_runs("$M zoo gpt3-tiny --onnx m.onnx");
    assert_true(plan("--placer m-etf"));
    assert_fails(1, "can't write", "trap '' XFSZ; ulimit -f 1; timeout 600 $M run plan.json m.onnx --quiet");
    /* Rank 0 can't write an output: every rank ends, and the message is one. */
    assert_runs("mkdir -p w/outputs/output_0.npy");
    assert_fails(1, "output_0.npy: can't write", "timeout 600 $M run plan.json m.onnx --quiet --work w");
}

static void test_run_a_host_that_does_not_answer(void **state)
{
    (void)state;
    small_model();
    assert_true(plan("--placer random --rules none --seed 3"));
    write_text("agent", "#!/bin/sh\nexec sleep 50\n");
    assert_int_equal(chmod("agent", 0755), 0);
    assert_fails(
        1, "no answer within 1 s from device",
        "OMPI_MCA_plm_rsh_agent=$PWD/agent HYDRA_LAUNCHER_EXEC=$PWD/agent timeout 600 $M run plan.json m.onnx --quiet "
        "--hosts 192.0.2.1 --work w --start-limit 1");
    assert_contains(shell_err, "without a password");
    assert_fails(1, "",
                 "timeout 600 $M run plan.json m.onnx --quiet --hosts no-such-host.invalid --work w --start-limit 3");
}

/* A name is a name to its last dot. */
static void test_run_hosts_keep_their_domain(void **state)
{
    (void)state;
    small_model();
    assert_true(plan("--placer random --rules none --seed 3"));
    write_text("agent", "#!/bin/sh\necho \"$@\" >>asked\nexit 1\n");
    assert_int_equal(chmod("agent", 0755), 0);
    shell("OMPI_MCA_plm_rsh_agent=$PWD/agent PRTE_MCA_plm_ssh_agent=$PWD/agent HYDRA_LAUNCHER_EXEC=$PWD/agent timeout "
          "600 "
          "$M run plan.json m.onnx --quiet --hosts far.example.invalid --work w --start-limit 5");
    char *asked = read_text("asked");
    if (!asked)
        skip_because("this MPI looks the name up before it asks");
    assert_contains(asked, "far.example.invalid");
    free(asked);
}

/* A GPU by its type, but nothing says how to reach it. */
static void test_run_a_gpu_without_ep_is_told(void **state)
{
    (void)state;
    small_model();
    write_text(
        "c.json",
        "{\"format\":\"moirai-cluster\",\"version\":1,\"name\":\"c\",\"devices\":[{\"name\":\"A\",\"type\":\"v100\"},"
        "{\"name\":\"B\",\"type\":\"cpu\"}],\"links\":[{\"from\":\"A\",\"to\":\"B\",\"bandwidth\":\"1Gbps\",\"both\":"
        "true}]}");
    assert_runs("$M plan m.onnx -c c.json --placer single --rules none -q -o p.json --pin '*=A'");
    assert_runs("timeout 600 $M run p.json m.onnx -c c.json --runs 2 --warmup 1 --json");
    assert_contains(shell_err, "device 'A' is a v100, but the cluster gives it no \"ep\": it runs on the CPU");
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(shell_json(), "cpu_stand_ins")), 1);
}

/* SIGTERM ends the ranks, too, and takes the sub-models away. */
static void test_run_signals_leave_nothing_behind(void **state)
{
    (void)state;
    static const char *const name[] = {"TERM", "HUP", "INT"};
    small_model();
    assert_true(plan("--placer random --rules none --seed 3"));
    for (int i = 0; i < TEST_AGAIN(1, 3); i++) {
        /* The temporary folder shows that it is under way; a job of a million runs would not end by itself. */
        shell("mkdir -p tmp; TMPDIR=$PWD/tmp setsid $M run plan.json m.onnx --quiet --runs 1000000 2>said & p=$!; "
              "for i in $(seq 300); do ls tmp/*/parts/manifest.json >/dev/null 2>&1 && break; sleep 0.1; done; "
              "sleep 1; kill -%s $p; wait $p",
              name[i]);
        assert_runs("! ls tmp/moirai-run-* 2>/dev/null");
        char *said = read_text("said");
        assert_contains(said, "interrupted");
        free(said);
        assert_runs("! pgrep -f \"moirai-rank run $PWD/tmp\"");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_run_hosts_keep_their_domain),
        TEST(test_run_a_gpu_without_ep_is_told),
        TEST(test_run_without_a_cluster_says_what_it_runs_on),
        TEST(test_run_signals_leave_nothing_behind),
        TEST(test_run_plans_of_a_transformer),
        TEST(test_run_messages_of_many_chunks),
        TEST(test_run_processors_of_one_host_share_memory),
        TEST(test_run_types_subgraphs_and_constants),
        TEST(test_run_a_branch_that_is_never_taken),
        TEST(test_run_data_sets_are_run_and_verified),
        TEST(test_run_timeline_follows_the_plan),
        TEST(test_run_under_a_given_mpirun),
        TEST(test_run_a_rank_that_dies_ends_all),
        TEST(test_run_a_sub_model_that_fails_to_load),
        TEST(test_run_refuses_before_anything_starts),
        TEST(test_run_a_full_disk_is_said_once),
        TEST(test_run_best_holds_the_plan_that_measured_faster),
        TEST(test_run_plans_of_a_wider_transformer),
        TEST(test_run_every_placer_on_a_cnn),
        TEST(test_run_hundreds_of_operators),
        TEST(test_run_half_precision),
        TEST(test_run_nobody_waits_for_a_tensor_that_is_further_on_in_the_plan),
        TEST(test_run_needs_no_ssh),
        TEST(test_run_given_inputs_reach_the_outputs),
        TEST(test_run_a_host_that_does_not_answer),
    };
    return RUN_CASES_AGAIN(16, tests);
}
