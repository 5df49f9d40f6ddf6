/* Files that tensors name: found wherever the tensor is, and refused unless they are the model's own. */
#include "support/check.h"
#include "support/folder.h"
#include "support/onnx_maker.h"
#include "support/tensor_places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <moirai/onnx.h>

#include "onnx/onnx_network.h"
#include "onnx/onnx_piece.h"
#include "onnx/onnx_tensors.h"

static int make_folders(void **state)
{
    return make_folder(state) || mkdir(in_folder("inside"), 0700);
}

/* ---- every place ---- */

typedef struct found {
    int n, n_external;
    char node[64];
} found;

static int count(void *data, Onnx__TensorProto *tensor, const Onnx__NodeProto *node)
{
    found *f = data;
    f->n++;
    if (tensor->name && !strcmp(tensor->name, "wanted")) {
        f->n_external++;
        snprintf(f->node, sizeof f->node, "%s", node ? node->op_type : "");
    }
    return 0;
}

static void test_onnx_external_walk_meets_every_tensor(void **state)
{
    (void)state;
    for (int place = 0; place < tensor_place_count(); place++) {
        wire tensor = {0}, model = {0};
        onnx_model *m;
        found f = {0};
        make_external_tensor(&tensor, "wanted", MAKE_FLOAT, "2x2", "w.bin", "0", "16");
        make_model_with(&model, &tensor, place);
        assert_ok(onnx_model_parse(&m, model.data, model.length));
        assert_int_equal(onnx_tensors_each(m->proto, count, &f), 0);
        if (f.n_external != 1)
            fail_msg("%s: the tensor was met %d times", tensor_place_name(place), f.n_external);
        onnx_model_free(m);
        wire_free(&model);
    }
}

/* ---- hostile locations ---- */

static int import(int place, const char *location, const char *offset, const char *length)
{
    wire tensor = {0}, model = {0};
    moirai_graph *g;
    make_external_tensor(&tensor, "wanted", MAKE_FLOAT, "2x2", location, offset, length);
    make_model_with(&model, &tensor, place);
    put_file(in_folder("inside/m.onnx"), model.data, model.length);
    wire_free(&model);
    int rc = moirai_onnx_read(&g, in_folder("inside/m.onnx"), NULL, NULL);
    moirai_graph_free(g);
    return rc;
}

static void assert_refused(int place, const char *location, const char *offset, const char *length, const char *part)
{
    int rc = import(place, location, offset, length);
    const char *said = moirai_error_message();
    if (rc != MOIRAI_EINPUT || !strstr(said, part) || !strstr(said, "m.onnx: tensor 'wanted'") ||
        (location && *location && !strstr(said, location)))
        fail_msg("%s in '%s': %d, %s", tensor_place_name(place), location, rc, said);
}

static void test_onnx_external_data_stay_in_the_folder(void **state)
{
    (void)state;
    put_file(in_folder("secret"), "0123456789abcdef", 16);
    put_file(in_folder("inside/w.bin"), "0123456789abcdef", 16);
    assert_int_equal(symlink("../secret", in_folder("inside/link")), 0);
    assert_int_equal(symlink("/etc/hostname", in_folder("inside/far")), 0);
    assert_int_equal(symlink("..", in_folder("inside/up")), 0);
    assert_int_equal(symlink("loop", in_folder("inside/loop")), 0);
    assert_int_equal(symlink("w.bin", in_folder("inside/fine")), 0);
    assert_int_equal(mkfifo(in_folder("inside/pipe"), 0600), 0);
    assert_int_equal(symlink("/dev/zero", in_folder("inside/zero")), 0);
    for (int place = 0; place < tensor_place_count(); place++) {
        assert_refused(place, "/etc/hostname", "0", "16", "from the root");
        assert_refused(place, "../secret", "0", "16", "below the model's folder");
        assert_refused(place, "a/../../secret", "0", "16", "below the model's folder");
        assert_refused(place, "..", "0", "16", "below the model's folder");
        assert_refused(place, "link", "0", "16", "not below the model's folder");
        assert_refused(place, "far", "0", "16", "not below the model's folder");
        assert_refused(place, "up/secret", "0", "16", "not below the model's folder");
        assert_refused(place, "loop", "0", "16", "Too many levels");
        assert_refused(place, "pipe", "0", "16", "not a plain file");
        assert_refused(place, "zero", "0", "16", "not below the model's folder");
        assert_refused(place, ".", "0", "16", "not below the model's folder");
        assert_refused(place, "", "0", "16", "empty");
        assert_refused(place, "w.bin", "1", "16", "16 bytes from 1 on, the file has 16");
        assert_refused(place, "w.bin", "0", "17", "17 bytes from 0 on, the file has 16");
        assert_refused(place, "w.bin", "9223372036854775807", "16", "overflow");
        assert_refused(place, "w.bin", "9223372036854775800", NULL, "16 bytes from");
        assert_int_equal(import(place, "w.bin", "-1", "16"), MOIRAI_EINPUT);
        assert_int_equal(import(place, "w.bin", "99999999999999999999", "16"), MOIRAI_EINPUT);
        assert_int_equal(import(place, "w.bin", "0", "15"), MOIRAI_EINPUT);
        assert_int_equal(import(place, NULL, "0", "16"), MOIRAI_EINPUT);
        assert_ok(import(place, "w.bin", "0", "16"));
        assert_ok(import(place, "w.bin", NULL, NULL));
        assert_ok(import(place, "fine", "0", "16"));
        assert_ok(import(place, "./w.bin", "0", "16"));
        assert_ok(import(place, "not..there", "0", "16")); /* a graph needs no weights */
    }
}

/* In memory there is no folder to look at, but names can be judged. */
static void test_onnx_external_names_are_judged_in_memory_too(void **state)
{
    (void)state;
    for (int place = 0; place < tensor_place_count(); place++) {
        wire tensor = {0}, model = {0};
        moirai_graph *g;
        make_external_tensor(&tensor, "wanted", MAKE_FLOAT, "2x2", "/etc/hostname", NULL, NULL);
        make_model_with(&model, &tensor, place);
        assert_int_equal(moirai_onnx_parse(&g, model.data, model.length, "memory", NULL, NULL), MOIRAI_EINPUT);
        assert_non_null(strstr(moirai_error_message(), "memory: tensor 'wanted'"));
        wire_free(&model);
    }
}

/* Caches of downloads: the model and its data are links into one folder of blobs. */
static void test_onnx_external_links_beside_a_linked_model(void **state)
{
    (void)state;
    wire tensor = {0}, model = {0};
    moirai_graph *g;
    make_external_tensor(&tensor, "wanted", MAKE_FLOAT, "2x2", "w.bin", NULL, NULL);
    make_model_with(&model, &tensor, 0);
    assert_int_equal(mkdir(in_folder("blobs"), 0700), 0);
    put_file(in_folder("blobs/1"), model.data, model.length);
    put_file(in_folder("blobs/2"), "0123456789abcdef", 16);
    wire_free(&model);
    assert_int_equal(symlink("../blobs/1", in_folder("inside/m.onnx")), 0);
    assert_int_equal(symlink("../blobs/2", in_folder("inside/w.bin")), 0);
    assert_ok(moirai_onnx_read(&g, in_folder("inside/m.onnx"), NULL, NULL));
    moirai_graph_free(g);
}

/* A piece runs far from the model's folder: a branch that names a file is no piece. */
static void test_onnx_external_data_are_in_no_piece(void **state)
{
    (void)state;
    for (int place = 0; place < tensor_place_count(); place++) {
        wire tensor = {0}, model = {0};
        onnx_network *net;
        uint8_t *data;
        size_t length;
        make_external_tensor(&tensor, "wanted", MAKE_FLOAT, "2x2", "w.bin", "0", "16");
        make_model_with(&model, &tensor, place);
        assert_ok(onnx_network_parse(&net, model.data, model.length, "memory", NULL));
        for (int32_t op = 0; op < net->graph->n_ops; op++) {
            if (!onnx_piece_make(&data, &length, net, &op, 1) && memmem(data, length, "w.bin", 5))
                fail_msg("%s: the piece of '%s' names the file", tensor_place_name(place), net->graph->op_name[op]);
            free(data);
        }
        onnx_network_free(net);
        wire_free(&model);
    }
}

/* ---- what else a file may hold ---- */

static int read_named(const char *name, uint32_t extra_field)
{
    wire graph = {0}, model = {0}, node = {0};
    moirai_graph *g;
    make_input(&graph, "x", MAKE_FLOAT, "2x2");
    wire_text(&node, 1, "x");
    wire_text(&node, 2, "y");
    wire_text(&node, 3, name);
    wire_text(&node, 4, "Relu");
    if (extra_field)
        wire_text(&node, extra_field, "/etc/hostname");
    wire_message(&graph, 1, &node);
    make_output(&graph, "y", MAKE_FLOAT, "2x2");
    make_model(&model, &graph);
    put_file(in_folder("inside/m.onnx"), model.data, model.length);
    wire_free(&model);
    int rc = moirai_onnx_read(&g, in_folder("inside/m.onnx"), NULL, NULL);
    moirai_graph_free(g);
    return rc;
}

static void test_onnx_names_are_utf8(void **state)
{
    static const char *const bad[] = {"\xff", "caf\xe9", "a\xc3", "\xed\xa0\x80", "\xf8\x88\x80\x80\x80", "\x80"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_named(bad[i], 0), MOIRAI_EINPUT);
        assert_non_null(strstr(moirai_error_message(), "NodeProto.name"));
        assert_non_null(strstr(moirai_error_message(), "is not UTF-8"));
    }
    assert_ok(read_named("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 0));
    assert_ok(read_named("", 0));
}

static void test_onnx_unknown_fields_go_no_further(void **state)
{
    onnx_model *m;
    (void)state;
    assert_ok(read_named("n", 9999));
    assert_ok(onnx_model_open(&m, in_folder("inside/m.onnx")));
    assert_ok(onnx_model_write(m, m->proto, in_folder("inside/again.onnx")));
    onnx_model_free(m);
    char line[300];
    snprintf(line, sizeof line, "grep -q hostname %s && ! grep -q hostname %s", in_folder("inside/m.onnx"),
             in_folder("inside/again.onnx"));
    assert_int_equal(system(line), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx_external_walk_meets_every_tensor),
        cmocka_unit_test_setup_teardown(test_onnx_external_data_stay_in_the_folder, make_folders, remove_folder),
        cmocka_unit_test(test_onnx_external_names_are_judged_in_memory_too),
        cmocka_unit_test_setup_teardown(test_onnx_external_links_beside_a_linked_model, make_folders, remove_folder),
        cmocka_unit_test(test_onnx_external_data_are_in_no_piece),
        cmocka_unit_test_setup_teardown(test_onnx_names_are_utf8, make_folders, remove_folder),
        cmocka_unit_test_setup_teardown(test_onnx_unknown_fields_go_no_further, make_folders, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
