/* Files: large ones without a second copy, broken ones without a crash, and back to disk. */
#include "support/check.h"
#include "support/onnx_maker.h"
#include "support/scale.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <moirai/onnx.h>

#include "onnx/onnx_model.h"
#include "util/util.h"

#define GB 1000000000ull

/* A model with one inline weight of `bytes` bytes, which is a hole in the file: it takes no disk. */
static void make_large_file(const char *path, uint64_t bytes)
{
    wire tensor = {0}, graph_tail = {0}, model_head = {0}, graph_head = {0};
    char shape[64];
    snprintf(shape, sizeof shape, "%llux1000", (unsigned long long)(bytes / 4000));
    make_tensor(&tensor, "w", MAKE_FLOAT, shape);
    wire_head(&tensor, 9, bytes);
    make_input(&graph_tail, "x", MAKE_FLOAT, "1x1000");
    make_node(&graph_tail, "Gather", "w,x", "y", NULL);
    make_output(&graph_tail, "y", MAKE_FLOAT, NULL);
    wire_head(&graph_head, 5, tensor.length + bytes);
    wire_number(&model_head, 1, 8);
    wire_head(&model_head, 7, graph_head.length + tensor.length + bytes + graph_tail.length);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(fd >= 0);
    wire *parts[] = {&model_head, &graph_head, &tensor};
    off_t at = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pwrite(fd, parts[i]->data, parts[i]->length, at), (ssize_t)parts[i]->length);
        at += (off_t)parts[i]->length;
        wire_free(parts[i]);
    }
    at += (off_t)bytes;
    assert_int_equal(pwrite(fd, graph_tail.data, graph_tail.length, at), (ssize_t)graph_tail.length);
    wire_free(&graph_tail);
    close(fd);
}

static long peak_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void test_onnx_inline_weights_are_not_copied(void **state)
{
    (void)state;
    const char *path = temporary_path("large.onnx");
    for (uint64_t gigabytes = 1; gigabytes <= 5; gigabytes += 4) { /* also past what protobuf can address */
        make_large_file(path, gigabytes * GB);
        long before = peak_kilobytes();
        clock_t begin = clock();
        moirai_graph *g;
        moirai_onnx_report r;
        assert_ok(moirai_onnx_read(&g, path, NULL, &r));
        print_message("%d GB inline: %.2f ms of CPU, peak memory grew by %ld kB\n", (int)gigabytes,
                      (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC, peak_kilobytes() - before);
        assert_true(peak_kilobytes() - before < 32000);
        assert_int_equal(r.weight_bytes, (int64_t)(gigabytes * GB));
        assert_int_equal(g->op_weight_bytes[0], (int64_t)(gigabytes * GB));
        moirai_graph_free(g);
    }
    unlink(path);
}

static void test_onnx_external_weights_need_no_file(void **state)
{
    (void)state;
    wire graph = {0}, model = {0};
    char name[16], from[16] = "x", to[16];
    moirai_graph *g;
    moirai_onnx_report r;
    make_input(&graph, "x", MAKE_FLOAT, "1x16384");
    for (int i = 0; i < 12; i++) { /* 12 GB in all */
        snprintf(name, sizeof name, "w%d", i);
        snprintf(to, sizeof to, "t%d", i);
        make_external(&graph, name, MAKE_FLOAT, "16384x16384", "0", "1073741824");
        char inputs[40];
        snprintf(inputs, sizeof inputs, "%s,%s", from, name);
        make_node(&graph, "MatMul", inputs, to, NULL);
        memcpy(from, to, sizeof from);
    }
    make_output(&graph, from, MAKE_FLOAT, NULL);
    make_model(&model, &graph);
    assert_ok(moirai_onnx_parse(&g, model.data, model.length, "model", NULL, &r));
    assert_int_equal(r.weight_bytes, 12ll << 30);
    assert_int_equal(r.parameter_count, 12ll << 28);
    moirai_graph_free(g);
    wire_free(&model);
}

/* A bit of everything, small. */
static void make_mixture(wire *model)
{
    wire graph = {0}, yes = {0}, no = {0}, attrs = {0}, t = {0};
    int64_t shape[] = {0, -1};
    make_input(&graph, "x", MAKE_FLOAT, "Nx3x32x32");
    make_input(&graph, "c", 9, "");
    make_weights(&graph, "w", "8x3x7x7"); /* long enough to be cut */
    make_ints(&graph, "shape", 2, shape, 0);
    make_tensor(&t, "bias", MAKE_FLOAT, "400");
    float values[400];
    for (int i = 0; i < 400; i++)
        values[i] = (float)i;
    wire_bytes(&t, 4, values, sizeof values); /* float_data, packed */
    wire_message(&graph, 5, &t);
    make_node(&graph, "Conv", "x,w", "a", NULL);
    make_node(&graph, "Reshape", "a,shape", "b", NULL);
    make_node(&yes, "Relu", "b", "t", NULL);
    make_output(&yes, "t", MAKE_FLOAT, NULL);
    make_node(&no, "Tanh", "b", "e", NULL);
    make_weights(&no, "inner", "20x20");
    make_output(&no, "e", MAKE_FLOAT, NULL);
    make_attr_graph(&attrs, "then_branch", &yes);
    make_attr_graph(&attrs, "else_branch", &no);
    make_node(&graph, "If", "c", "d", &attrs);
    make_node(&graph, "Mul", "bias,bias", "squared", NULL);
    make_node(&graph, "Gather", "d,c", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    make_output(&graph, "squared", MAKE_FLOAT, NULL);
    make_model(model, &graph);
}

static void test_onnx_written_models_hold_the_weights_again(void **state)
{
    (void)state;
    wire model = {0};
    onnx_model *first, *second;
    moirai_graph *a, *b;
    const char *path = temporary_path("written.onnx");
    make_mixture(&model);
    assert_ok(onnx_model_parse(&first, model.data, model.length));
    assert_int_equal(first->slim.n_cuts, 3);
    assert_ok(onnx_model_write(first, first->proto, path));
    assert_ok(onnx_model_open(&second, path));
    for (size_t i = 0; i < first->proto->graph->n_initializer; i++) {
        onnx_data x, y;
        assert_ok(onnx_tensor_data(&x, first, first->proto->graph->initializer[i]));
        assert_ok(onnx_tensor_data(&y, second, second->proto->graph->initializer[i]));
        assert_int_equal(x.kind, y.kind);
        assert_int_equal(x.length, y.length);
        assert_memory_equal(x.bytes, y.bytes, x.length);
    }
    assert_ok(moirai_onnx_parse(&a, model.data, model.length, "same", NULL, NULL));
    assert_ok(moirai_onnx_parse(&b, second->file, second->length, "same", NULL, NULL));
    assert_graphs_equal(a, b);
    moirai_graph_free(a);
    moirai_graph_free(b);
    onnx_model_free(first);
    onnx_model_free(second);
    unlink(path);
    wire_free(&model);
}

/* Parses a copy of exactly `length` bytes, so that a sanitizer sees every byte too far. */
static int parse_copy(const uint8_t *data, size_t length)
{
    uint8_t *copy = malloc(length + 1);
    moirai_graph *g = NULL;
    assert_non_null(copy);
    memmove(copy, data, length);
    uint8_t *exact = realloc(copy, length ? length : 1);
    assert_non_null(exact);
    int rc = moirai_onnx_parse(&g, exact, length, "broken", NULL, NULL);
    assert_true(rc == 0 ? g != NULL : g == NULL && rc < 0 && *moirai_error_message());
    moirai_graph_free(g);
    free(exact);
    return rc;
}

static void test_onnx_truncated_files_are_refused_at_every_length(void **state)
{
    (void)state;
    wire model = {0};
    int refused = 0;
    make_mixture(&model);
    assert_int_equal(parse_copy(model.data, model.length), 0);
    for (size_t n = 0; n < model.length; n++)
        refused += parse_copy(model.data, n) != 0;
    assert_true(refused > (int)model.length * 9 / 10); /* the graph is one message: few cuts leave it whole */
    wire_free(&model);
}

static void test_onnx_damaged_files_never_crash(void **state)
{
    (void)state;
    wire model = {0};
    util_rng rng;
    util_rng_seed(&rng, 7);
    make_mixture(&model);
    uint8_t *copy = malloc(model.length);
    assert_non_null(copy);
    for (int round = 0; round < TEST_SHARE(20000); round++) {
        memcpy(copy, model.data, model.length);
        for (uint32_t k = 1 + util_rng_below(&rng, 4); k; k--)
            copy[util_rng_below(&rng, (uint32_t)model.length)] = (uint8_t)util_rng_next(&rng);
        parse_copy(copy, model.length);
    }
    for (int round = 0; round < TEST_SHARE(2000); round++) {
        size_t n = util_rng_below(&rng, 200);
        for (size_t i = 0; i < n; i++)
            copy[i] = (uint8_t)util_rng_next(&rng);
        parse_copy(copy, n);
    }
    free(copy);
    wire_free(&model);
}

static void test_onnx_nesting_is_bounded(void **state)
{
    (void)state;
    wire graph = {0}, model = {0};
    for (int i = 0; i < 2000; i++) {
        wire outer = {0}, attrs = {0};
        make_attr_graph(&attrs, "then_branch", &graph);
        make_node(&outer, "If", "", "", &attrs);
        graph = outer;
    }
    make_model(&model, &graph);
    assert_int_equal(parse_copy(model.data, model.length), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "nested"));
    wire_free(&model);
}

static void test_onnx_missing_empty_and_foreign_files(void **state)
{
    (void)state;
    const char *path = temporary_path("odd.onnx");
    moirai_graph *g;
    assert_int_equal(moirai_onnx_read(&g, "/nonexistent/model.onnx", NULL, NULL), MOIRAI_EINPUT);
    assert_int_equal(moirai_onnx_read(&g, "/", NULL, NULL), MOIRAI_EINPUT);
    assert_ok(util_file_write(path, "", 0));
    assert_int_equal(moirai_onnx_read(&g, path, NULL, NULL), MOIRAI_EINPUT);
    const char *json = "{\"format\": \"moirai-graph\", \"version\": 1, \"ops\": []}";
    assert_ok(util_file_write(path, json, strlen(json)));
    assert_int_equal(moirai_onnx_read(&g, path, NULL, NULL), MOIRAI_EINPUT);
    assert_non_null(strstr(moirai_error_message(), "not a valid ONNX file"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx_inline_weights_are_not_copied),
        cmocka_unit_test(test_onnx_external_weights_need_no_file),
        cmocka_unit_test(test_onnx_written_models_hold_the_weights_again),
        cmocka_unit_test(test_onnx_truncated_files_are_refused_at_every_length),
        cmocka_unit_test(test_onnx_damaged_files_never_crash),
        cmocka_unit_test(test_onnx_nesting_is_bounded),
        cmocka_unit_test(test_onnx_missing_empty_and_foreign_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
