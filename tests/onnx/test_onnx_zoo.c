/* The zoo as ONNX models: read back, they are the zoo's graphs. */
#include <sys/stat.h>
#include <unistd.h>

#include <moirai/onnx.h>
#include <moirai/zoo.h>
#include "support/check.h"

/* Tensors of other operators that `op` reads, in order; the count. */
static int produced_inputs(const moirai_graph *g, int32_t op, const char **name, int most)
{
    int n = 0;

    for (int32_t e = g->op_in_off[op]; e < g->op_in_off[op + 1]; e++)
        if (g->tensor_producer[g->op_in[e]] != MOIRAI_NONE) {
            assert_true(n < most);
            name[n++] = g->tensor_name[g->op_in[e]];
        }
    return n;
}

static void check_op(const moirai_graph *zoo, int32_t i, const moirai_graph *read)
{
    const char *a[64], *b[64];
    int32_t k = moirai_graph_find(read, zoo->op_name[i]);
    int n = produced_inputs(zoo, i, a, 64);
    int64_t extra;

    if (k == MOIRAI_NONE)
        fail_msg("%s: no operator %s", zoo->name, zoo->op_name[i]);
    assert_string_equal(zoo->op_type[i], read->op_type[k]);
    assert_int_equal(n, produced_inputs(read, k, b, 64));
    for (int j = 0; j < n; j++)
        assert_string_equal(a[j], b[j]);
    assert_string_equal(zoo->tensor_name[zoo->op_out[zoo->op_out_off[i]]],
                        read->tensor_name[read->op_out[read->op_out_off[k]]]);
    assert_int_equal(zoo->tensor_bytes[zoo->op_out[zoo->op_out_off[i]]],
                     read->tensor_bytes[read->op_out[read->op_out_off[k]]]);
    /* The factor of "scale" is one number more than the zoo counts. */
    extra = read->op_weight_bytes[k] - zoo->op_weight_bytes[i];
    assert_true(extra == 0 || (extra == zoo->element_bytes && !strcmp(zoo->op_type[i], "Mul")));
    if (!strcmp(zoo->op_type[i], "MatMul") || !strcmp(zoo->op_type[i], "Conv"))
        assert_int_equal(zoo->op_flops[i], read->op_flops[k]);
}

static void check_round_trip(const char *name, int element_bytes)
{
    const char *path = temporary_path("zoo.onnx");
    moirai_graph *zoo, *read;
    moirai_onnx_report report;

    assert_ok(moirai_onnx_write_zoo(name, element_bytes, 1, path));
    assert_ok(moirai_onnx_read(&read, path, NULL, &report));
    assert_ok(moirai_zoo_graph(&zoo, name, element_bytes));
    assert_int_equal(read->n_ops, zoo->n_ops);
    assert_int_equal(report.n_unknown_ops, 0);
    assert_int_equal(report.n_unknown_sizes, 0);
    for (int32_t i = 0; i < zoo->n_ops; i++)
        check_op(zoo, i, read);
    moirai_graph_free(zoo);
    moirai_graph_free(read);
    unlink(path);
}

static void test_onnx_zoo_models_are_the_graphs(void **state)
{
    (void)state;
    check_round_trip("gpt3-tiny", 4);
    check_round_trip("gpt3-tiny", 2);
    check_round_trip("gpt3-mini", 4);
    check_round_trip("t5-tiny", 4);
    check_round_trip("inception-tiny", 4);
    check_round_trip("googlenet", 4);
    check_round_trip("resnet18", 4);
}

static char *file_bytes(const char *path, long *length)
{
    FILE *f = fopen(path, "rb");
    char *bytes;

    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *length = ftell(f);
    rewind(f);
    bytes = malloc((size_t)*length);
    assert_int_equal(fread(bytes, 1, (size_t)*length, f), *length);
    fclose(f);
    return bytes;
}

static void test_onnx_zoo_weights_come_from_the_seed(void **state)
{
    const char *path[3] = {temporary_path("a.onnx"), temporary_path("b.onnx"), temporary_path("c.onnx")};
    long length[3];
    char *bytes[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_ok(moirai_onnx_write_zoo("gpt3-tiny", 4, i < 2 ? 7 : 8, path[i]));
        bytes[i] = file_bytes(path[i], &length[i]);
        unlink(path[i]);
    }
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(bytes[0], bytes[1], (size_t)length[0]);
    assert_true(length[0] != length[2] || memcmp(bytes[0], bytes[2], (size_t)length[0]));
    for (int i = 0; i < 3; i++)
        free(bytes[i]);
}

static void test_onnx_zoo_refusals(void **state)
{
    const char *path = temporary_path("no.onnx");

    (void)state;
    assert_int_equal(moirai_onnx_write_zoo("swin-1.8B", 4, 1, path), MOIRAI_EUSAGE);
    assert_int_equal(moirai_onnx_write_zoo("gpt5", 4, 1, path), MOIRAI_EUSAGE);
    assert_int_equal(moirai_onnx_write_zoo("gpt3-tiny", 4, 1, "-"), MOIRAI_EUSAGE);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(moirai_onnx_write_zoo("gpt3-tiny", 4, 1, "/no/such/folder/x.onnx"), MOIRAI_EFAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx_zoo_models_are_the_graphs),
        cmocka_unit_test(test_onnx_zoo_weights_come_from_the_seed),
        cmocka_unit_test(test_onnx_zoo_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
