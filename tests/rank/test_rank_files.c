/* Files of a run: what it reads of a model's folder, what it writes, and that nothing stays behind. */
#include "support/check.h"
#include "support/command.h"
#include "support/onnx_maker.h"

#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#define RUN "timeout 600 $M run plan.json m.onnx --warmup 0 --runs 2 "

static void put_file(const char *path, const void *data, size_t length)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

static void put_model(wire *graph)
{
    wire model = {0};
    make_model(&model, graph);
    put_file("m.onnx", model.data, model.length);
    wire_free(&model);
}

static void make_plan(void)
{
    assert_runs("$M plan m.onnx --cluster '2x v100, 100Gbps 5us' --rules none --placer random --seed 2 -q -o plan.json "
                "--force");
}

static void external_constant(wire *graph, const char *output, const char *location, const char *offset)
{
    wire tensor = {0}, attrs = {0};
    make_external_tensor(&tensor, output, MAKE_FLOAT, "4", location, offset, "16");
    make_attr_tensor(&attrs, "value", &tensor);
    make_node(graph, "Constant", "", output, &attrs);
}

/* ---- tensors in files ---- */

/* y = (x + initializer) * constant + (branch: initializer + constant) */
static void honest_model(void)
{
    wire graph = {0}, yes = {0}, no = {0}, attrs = {0}, tensor = {0};
    float numbers[16];
    for (int i = 0; i < 16; i++)
        numbers[i] = (float)(i + 1);
    put_file("weights.bin", numbers, sizeof numbers);
    make_input(&graph, "x", MAKE_FLOAT, "4");
    make_external(&graph, "w", MAKE_FLOAT, "4", "0", "16");
    external_constant(&graph, "c", "weights.bin", "16");
    make_node(&graph, "Add", "x,w", "a", NULL);
    make_node(&graph, "Mul", "a,c", "b", NULL);
    wire reduce = {0};
    make_attr_int(&reduce, "keepdims", 0);
    make_node(&graph, "ReduceMax", "b", "most", &reduce);
    wire cast = {0};
    make_attr_int(&cast, "to", 9);
    make_node(&graph, "Cast", "most", "condition", &cast);
    make_external_tensor(&tensor, "inner", MAKE_FLOAT, "4", "weights.bin", "32", "16");
    wire_message(&yes, 5, &tensor);
    external_constant(&yes, "deep", "weights.bin", "48");
    make_node(&yes, "Add", "inner,deep", "t", NULL);
    make_output(&yes, "t", MAKE_FLOAT, "4");
    wire_text(&yes, 2, "yes");
    make_node(&no, "Neg", "b", "e", NULL);
    make_output(&no, "e", MAKE_FLOAT, "4");
    wire_text(&no, 2, "no");
    make_attr_graph(&attrs, "then_branch", &yes);
    make_attr_graph(&attrs, "else_branch", &no);
    make_node(&graph, "If", "condition", "d", &attrs);
    make_node(&graph, "Add", "b,d", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "4");
    make_output(&graph, "c", MAKE_FLOAT, "4");
    put_model(&graph);
}

static void read_output(const char *path, float out[4])
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, -16, SEEK_END), 0);
    assert_int_equal(fread(out, 4, 4, f), 4);
    fclose(f);
}

static void test_run_tensors_in_files_wherever_they_are(void **state)
{
    float c[4];
    (void)state;
    honest_model();
    make_plan();
    assert_runs(RUN "--output out --json");
    read_output("out/c.npy", c);
    for (int i = 0; i < 4; i++)
        assert_true(c[i] == (float)(5 + i));
    assert_runs(RUN "--verify --json");
    assert_true(yyjson_get_bool(yyjson_obj_get(shell_json(), "verified")));
}

/* The numbers of this model's output are the bytes of a file of somebody else. */
static void test_run_reads_no_file_of_others(void **state)
{
    (void)state;
    char here[1000], path[1100];
    put_file("secret", "0123456789abcdef", 16);
    assert_non_null(getcwd(here, sizeof here));
    snprintf(path, sizeof path, "%s/secret", here);
    assert_int_equal(mkdir("inside", 0700), 0);
    assert_int_equal(chdir("inside"), 0);
    const char *const location[] = {path, "../secret", "link"};
    assert_int_equal(symlink(path, "link"), 0);
    for (int i = 0; i < 3; i++) {
        wire graph = {0};
        make_input(&graph, "x", MAKE_FLOAT, "4");
        external_constant(&graph, "c", "mine", "0");
        make_node(&graph, "Relu", "x", "y", NULL);
        make_output(&graph, "y", MAKE_FLOAT, "4");
        make_output(&graph, "c", MAKE_FLOAT, "4");
        put_model(&graph);
        make_plan(); /* made for a model that was all right */
        wire again = {0};
        make_input(&again, "x", MAKE_FLOAT, "4");
        external_constant(&again, "c", location[i], "0");
        make_node(&again, "Relu", "x", "y", NULL);
        make_output(&again, "y", MAKE_FLOAT, "4");
        make_output(&again, "c", MAKE_FLOAT, "4");
        put_model(&again);
        assert_fails(3, "m.onnx: tensor 'c' of node 'c' (Constant): external data", RUN "--output out --quiet");
        assert_false(file_exists("out"));
        assert_fails(3, "external data", "$M split plan.json m.onnx -o parts --quiet");
        assert_false(file_exists("parts"));
    }
    assert_int_equal(chdir(".."), 0);
}

/* ---- what a run writes ---- */

/* x, 2x, 3x ... under names that are hard to tell apart as files. */
static const char *const names[] = {"a/b", "a_b", "a:b", "a_b.2", "../up", "a b", ".", "caf\xc3\xa9"};
enum { N_NAMES = sizeof names / sizeof *names };

static void many_outputs(void)
{
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "4");
    for (int i = 0; i < N_NAMES; i++) {
        float number = (float)(i + 1);
        char constant[8], inputs[16];
        wire t = {0};
        snprintf(constant, sizeof constant, "k%d", i);
        snprintf(inputs, sizeof inputs, "x,k%d", i);
        make_tensor(&t, constant, MAKE_FLOAT, "");
        wire_bytes(&t, 9, &number, sizeof number);
        wire_message(&graph, 5, &t);
        make_node(&graph, "Mul", inputs, names[i], NULL);
        make_output(&graph, names[i], MAKE_FLOAT, "4");
    }
    put_model(&graph);
    make_plan();
}

static void test_run_outputs_have_files_of_their_own(void **state)
{
    float ones[4] = {1, 1, 1, 1}, got[4];
    wire t = {0};
    (void)state;
    make_tensor(&t, "x", MAKE_FLOAT, "4");
    wire_bytes(&t, 9, ones, sizeof ones);
    put_file("x.pb", t.data, t.length);
    wire_free(&t);
    many_outputs();
    assert_runs(RUN "--input x:x.pb --output out --json");
    yyjson_val *told = yyjson_obj_get(shell_json(), "outputs"), *o;
    assert_int_equal(yyjson_arr_size(told), N_NAMES);
    yyjson_doc *doc = yyjson_read_file("out/outputs.json", 0, NULL, NULL);
    yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(doc), "outputs");
    assert_int_equal(yyjson_arr_size(list), N_NAMES);
    size_t i, n;
    yyjson_arr_foreach(list, i, n, o) {
        char path[300];
        assert_string_equal(yyjson_get_str(yyjson_obj_get(o, "name")), names[i]);
        assert_null(strchr(yyjson_get_str(yyjson_obj_get(o, "file")), '/'));
        assert_true(yyjson_equals(o, yyjson_arr_get(told, i)));
        snprintf(path, sizeof path, "out/%s", yyjson_get_str(yyjson_obj_get(o, "file")));
        read_output(path, got);
        assert_true(got[0] == (float)(i + 1));
    }
    yyjson_doc_free(doc);
    assert_runs("test $(ls -A out | wc -l) = %d", N_NAMES + 1);
    assert_true(file_exists("out/a_b.npy") && file_exists("out/a_b.3.npy"));
}

static void test_run_outputs_replace_nothing_unasked(void **state)
{
    (void)state;
    many_outputs();
    assert_int_equal(mkdir("out", 0700), 0);
    write_text("out/a_b.2.npy", "mine");
    assert_fails(1, "out/a_b.2.npy: exists already: --force replaces it", RUN "--output out --quiet");
    assert_runs("test \"$(ls -A out)\" = a_b.2.npy && test \"$(cat out/a_b.2.npy)\" = mine");
    assert_runs("rm out/*; echo mine > out/outputs.json");
    assert_fails(1, "out/outputs.json: exists already", RUN "--output out --quiet");
    write_text("out/other", "kept");
    assert_runs(RUN "--output out --quiet --force");
    assert_runs("test $(ls -A out | wc -l) = %d && test \"$(cat out/other)\" = kept", N_NAMES + 2);
    /* What can't be written to the end is not begun. */
    assert_runs("chmod -R u+w out && rm -r out && mkdir -p out/a_b.npy");
    assert_fails(1, "out/a_b.npy: is a folder", RUN "--output out --quiet --force");
    assert_runs("test \"$(ls -A out)\" = a_b.npy");
}

/* ---- what it asks of the machine, and what it leaves there ---- */

static void test_run_has_no_more_threads_than_cores(void **state)
{
    (void)state;
    many_outputs();
    write_text("c.json", "{\"format\": \"moirai-cluster\", \"version\": 1, \"name\": \"here\", \"devices\": ["
                         "{\"name\": \"A\", \"type\": \"v100\", \"threads\": 100000},"
                         "{\"name\": \"B\", \"type\": \"v100\", \"threads\": 1}],"
                         "\"links\": [{\"from\": \"A\", \"to\": \"B\", \"bandwidth\": \"1Gbps\", \"both\": true}]}");
    assert_runs("$M plan m.onnx --cluster c.json --rules none --placer random --seed 2 -q -o plan.json --force");
    assert_runs(RUN "--cluster c.json --json");
    assert_contains(shell_err, "note: device 'A' is given 100000 threads, but this machine has ");
    assert_null(strstr(shell_err, "device 'B' is given"));
    assert_int_equal(yyjson_arr_size(yyjson_obj_get(shell_json(), "fewer_threads")), 1);
}

/* `timeout` sends its signal to the command and to its group: twice in a moment. */
static void test_run_interrupted_by_timeout_leaves_nothing(void **state)
{
    static const char *const name[] = {"INT", "TERM"};
    static const char *const after[] = {"0.05", "0.2", "0.5", "1", "2"};
    (void)state;
    many_outputs();
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 5; k++) {
            int code = shell("mkdir -p tmp; TMPDIR=$PWD/tmp timeout --preserve-status -k 200 -s %s %s "
                             "$M run plan.json m.onnx --quiet --runs 1000000",
                             name[i], after[k]);
            if (code != 1 && code != 128 + 2 && code != 128 + 15) /* a signal before main has its way */
                fail_msg("%s after %s s: exit code %d: %s", name[i], after[k], code, shell_err);
            if (shell("test -z \"$(ls tmp | grep moirai)\""))
                fail_msg("%s after %s s: a folder stays: %s", name[i], after[k], shell_err);
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_run_tensors_in_files_wherever_they_are), TEST(test_run_reads_no_file_of_others),
        TEST(test_run_outputs_have_files_of_their_own),    TEST(test_run_outputs_replace_nothing_unasked),
        TEST(test_run_has_no_more_threads_than_cores),     TEST(test_run_interrupted_by_timeout_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
