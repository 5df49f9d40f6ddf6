/* Tensors in files go with the parts that read them, wherever they are; a split that fails leaves nothing. */
#include "support/check.h"
#include "support/folder.h"
#include "support/onnx_maker.h"
#include "support/tensor_places.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <moirai/moirai.h>
#include "onnx/onnx_tensors.h"

static int count_files(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return n;
}

/* All on one device, but for Neg_1. */
static void make_plan(void)
{
    moirai_graph *g;
    moirai_cluster *c;
    moirai_problem *p;
    moirai_plan *plan;
    moirai_problem_options po = {0};
    moirai_place_options o;
    assert_ok(moirai_onnx_read(&g, in_folder("m.onnx"), NULL, NULL));
    assert_ok(moirai_cluster_synthetic(&c, "2x v100, 100Gbps 5us"));
    assert_ok(moirai_problem_new(&p, g, c, &po));
    moirai_place_options_init(&o);
    assert_ok(moirai_place(&plan, p, "single", &o));
    assert_ok(moirai_plan_write(plan, p, in_folder("plan.json")));
    moirai_plan_free(plan);
    moirai_problem_free(p);
    moirai_cluster_free(c);
    moirai_graph_free(g);
}

typedef struct look {
    const onnx_model *model;
    int n;
} look;

/* The tensor of the part names the device's file, and there are its numbers. */
static int look_at(void *data, Onnx__TensorProto *tensor, const Onnx__NodeProto *node)
{
    look *x = data;
    onnx_data d;
    char part[100], numbers[16];
    (void)node;
    if (!tensor->name || strcmp(tensor->name, "wanted"))
        return 0;
    assert_ok(onnx_tensor_data(&d, x->model, tensor));
    assert_int_equal(d.kind, ONNX_DATA_EXTERNAL);
    assert_non_null(strstr(d.location, ".data"));
    assert_int_equal(d.external_length, 16);
    snprintf(part, sizeof part, "parts/%s", d.location);
    FILE *f = fopen(in_folder(part), "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)d.external_offset, SEEK_SET), 0);
    assert_int_equal(fread(numbers, 1, sizeof numbers, f), sizeof numbers);
    fclose(f);
    assert_memory_equal(numbers, "fedcba9876543210", 16);
    x->n++;
    return 0;
}

static int look_at_parts(void)
{
    look x = {0};
    DIR *d = opendir(in_folder("parts"));
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char name[300];
        onnx_model *m;
        if (!strstr(e->d_name, ".onnx"))
            continue;
        snprintf(name, sizeof name, "parts/%s", e->d_name);
        assert_ok(onnx_model_open(&m, in_folder(name)));
        x.model = m;
        assert_int_equal(onnx_tensors_each(m->proto, look_at, &x), 0);
        onnx_model_free(m);
    }
    closedir(d);
    return x.n;
}

/* Those that a run reads; what no output needs, and training information, is in no part. */
static bool is_read(const char *place)
{
    static const char *const read[] = {"constant",      "attribute", "branch",          "branch-constant",
                                       "nested-branch", "function",  "function-default"};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        if (!strcmp(place, read[i]))
            return true;
    return false;
}

static void put_model(int place)
{
    wire tensor = {0}, model = {0};
    make_external_tensor(&tensor, "wanted", MAKE_FLOAT, "2x2", "w.bin", "16", "16");
    make_model_with(&model, &tensor, place);
    put_file(in_folder("m.onnx"), model.data, model.length);
    wire_free(&model);
}

static void test_split_external_tensors_go_with_their_parts(void **state)
{
    (void)state;
    put_file(in_folder("w.bin"), "0123456789abcdeffedcba9876543210", 32);
    for (int place = 0; place < tensor_place_count(); place++) {
        char line[200];
        put_model(place);
        make_plan();
        assert_ok(moirai_split(in_folder("plan.json"), in_folder("m.onnx"), in_folder("parts"), NULL, NULL));
        int n = look_at_parts();
        if (n != is_read(tensor_place_name(place)))
            fail_msg("%s: %d tensors in the parts", tensor_place_name(place), n);
        snprintf(line, sizeof line, "grep -rl w.bin '%s'", in_folder("parts"));
        assert_int_not_equal(system(line), 0);
        snprintf(line, sizeof line, "rm -r '%s'", in_folder("parts"));
        assert_int_equal(system(line), 0);
    }
}

/* Two devices read one Constant: both get its numbers, and the model's own message is as it was for the second. */
static void test_split_external_tensors_are_in_every_part_that_needs_them(void **state)
{
    wire graph = {0}, model = {0}, tensor = {0}, attrs = {0};
    static const char plan[] =
        "{\"format\": \"moirai-plan\", \"version\": 1, \"makespan_ns\": 30, \"ops\": ["
        "{\"name\": \"Add_1\", \"device\": \"A\", \"start_ns\": 0, \"finish_ns\": 10},"
        "{\"name\": \"Mul_2\", \"device\": \"B\", \"start_ns\": 20, \"finish_ns\": 30}], \"transfers\": ["
        "{\"tensor\": \"a\", \"from\": \"A\", \"to\": \"B\", \"start_ns\": 10, \"finish_ns\": 20, \"bytes\": 16}]}";
    (void)state;
    put_file(in_folder("w.bin"), "0123456789abcdeffedcba9876543210", 32);
    make_external_tensor(&tensor, "wanted", MAKE_FLOAT, "2x2", "w.bin", "16", "16");
    make_attr_tensor(&attrs, "value", &tensor);
    make_input(&graph, "x", MAKE_FLOAT, "2x2");
    make_node(&graph, "Constant", "", "c", &attrs);
    make_node(&graph, "Add", "x,c", "a", NULL);
    make_node(&graph, "Mul", "a,c", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "2x2");
    make_model(&model, &graph);
    put_file(in_folder("m.onnx"), model.data, model.length);
    put_file(in_folder("plan.json"), plan, strlen(plan));
    wire_free(&model);
    assert_ok(moirai_split(in_folder("plan.json"), in_folder("m.onnx"), in_folder("parts"), NULL, NULL));
    assert_int_equal(look_at_parts(), 2);
    assert_int_equal(count_files(in_folder("parts")), 5); /* two models, two files of weights, the manifest */
}

/* Weights that are not there are found missing halfway. */
static void test_split_that_fails_leaves_nothing(void **state)
{
    wire graph = {0}, model = {0};
    (void)state;
    put_file(in_folder("weights.bin"), "0123456789abcdef", 16);
    make_input(&graph, "x", MAKE_FLOAT, "2x2");
    make_external(&graph, "w", MAKE_FLOAT, "2x2", "0", "16");
    wire gone = {0};
    make_external_tensor(&gone, "gone", MAKE_FLOAT, "2x2", "gone.bin", NULL, NULL);
    wire_message(&graph, 5, &gone);
    make_node(&graph, "Add", "x,w", "a", NULL);
    make_node(&graph, "Add", "a,gone", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "2x2");
    make_model(&model, &graph);
    put_file(in_folder("m.onnx"), model.data, model.length);
    wire_free(&model);
    make_plan();
    for (int there = 0; there < 2; there++) {
        if (there) {
            assert_int_equal(mkdir(in_folder("parts"), 0700), 0);
            put_file(in_folder("parts/manifest.json"), "old", 3);
        }
        assert_int_equal(moirai_split(in_folder("plan.json"), in_folder("m.onnx"), in_folder("parts"), NULL, NULL),
                         MOIRAI_EINPUT);
        assert_non_null(strstr(moirai_error_message(), "m.onnx: tensor 'gone': external data in 'gone.bin': no such"));
        if (there)
            assert_int_equal(count_files(in_folder("parts")), 1);
        else
            assert_int_not_equal(access(in_folder("parts"), F_OK), 0);
    }
}

/* A link in the folder with the name of a part is replaced, not followed. */
static void test_split_follows_no_link_in_the_folder(void **state)
{
    char kept[8] = "";
    (void)state;
    put_file(in_folder("w.bin"), "0123456789abcdeffedcba9876543210", 32);
    put_file(in_folder("victim"), "victim", 6);
    put_model(1);
    make_plan();
    assert_ok(moirai_split(in_folder("plan.json"), in_folder("m.onnx"), in_folder("parts"), NULL, NULL));
    DIR *d = opendir(in_folder("parts"));
    for (struct dirent *e; (e = readdir(d));) {
        char name[300];
        snprintf(name, sizeof name, "parts/%s", e->d_name);
        if (*e->d_name != '.') {
            assert_int_equal(unlink(in_folder(name)), 0);
            assert_int_equal(symlink("../victim", in_folder(name)), 0);
        }
    }
    closedir(d);
    assert_ok(moirai_split(in_folder("plan.json"), in_folder("m.onnx"), in_folder("parts"), NULL, NULL));
    FILE *f = fopen(in_folder("victim"), "rb");
    assert_int_equal(fread(kept, 1, sizeof kept, f), 6);
    fclose(f);
    assert_memory_equal(kept, "victim", 6);
    assert_int_equal(look_at_parts(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_split_external_tensors_go_with_their_parts, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_external_tensors_are_in_every_part_that_needs_them, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_split_that_fails_leaves_nothing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_split_follows_no_link_in_the_folder, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
