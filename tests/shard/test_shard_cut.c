/* Cutting: which strips are found, what the cut model has, which bytes slices are, and what is refused. */
#include "support/check.h"
#include "support/folder.h"
#include "support/onnx_maker.h"

#include <sys/stat.h>
#include <unistd.h>

#include <moirai/moirai.h>
#include "onnx/onnx_model.h"

static void put_model(const char *path, wire *graph)
{
    wire model = {0};
    make_model(&model, graph);
    put_file(path, model.data, model.length);
    wire_free(&model);
}

/* A tensor with the numbers 0, 1, 2, ... */
static void numbered(wire *graph, const char *name, const char *shape, int n)
{
    wire t = {0};
    float number[256];
    for (int i = 0; i < n; i++)
        number[i] = (float)i;
    make_tensor(&t, name, MAKE_FLOAT, shape);
    wire_bytes(&t, 9, number, (size_t)n * sizeof *number);
    wire_message(graph, 5, &t);
}

/* y = Relu(x U) D, with U of 4x6 and D of 6x4 */
static void block_model(const char *path, const char *also_output)
{
    wire graph = {0};
    make_input(&graph, "x", MAKE_FLOAT, "3x4");
    numbered(&graph, "U", "4x6", 24);
    numbered(&graph, "D", "6x4", 24);
    make_node(&graph, "MatMul", "x,U", "u", NULL);
    make_node(&graph, "Relu", "u", "r", NULL);
    make_node(&graph, "MatMul", "r,D", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "3x4");
    if (also_output)
        make_output(&graph, also_output, MAKE_FLOAT, NULL);
    put_model(path, &graph);
}

static moirai_shards *open_model(void)
{
    moirai_shards *s = NULL;
    assert_ok(moirai_shards_open(&s, in_folder("m.onnx"), NULL));
    return s;
}

static const Onnx__TensorProto *tensor_named(const onnx_model *m, const char *name)
{
    for (size_t i = 0; i < m->proto->graph->n_initializer; i++)
        if (!strcmp(m->proto->graph->initializer[i]->name, name))
            return m->proto->graph->initializer[i];
    fail_msg("no initializer '%s'", name);
    return NULL;
}

static void assert_numbers(const onnx_model *m, const char *name, const float *expected, size_t n)
{
    const Onnx__TensorProto *t = tensor_named(m, name);
    assert_int_equal(t->raw_data.len, n * sizeof *expected);
    assert_memory_equal(t->raw_data.data, expected, n * sizeof *expected);
}

static void test_shard_a_block_is_columns_then_rows(void **state)
{
    (void)state;
    block_model(in_folder("m.onnx"), NULL);
    moirai_shards *s = open_model();
    assert_int_equal(moirai_shards_count(s), 1 + 1);
    moirai_shard_strip x = moirai_shards_strip(s, 0);
    assert_string_equal(x.kind, "mlp");
    assert_int_equal(x.units, 6);
    assert_int_equal(x.n_ops, 3);
    assert_int_equal(x.n_sums, 1);
    assert_int_equal(x.n_joins, 0);
    assert_int_equal(x.weight_bytes, 2 * 24 * 4);
    assert_string_equal(moirai_shards_strip(s, 1).kind, "batch");
    assert_true(moirai_shards_strip(s, 1).alternative);
    moirai_shards_free(s);
}

static void test_shard_slices_have_the_bytes_of_their_units(void **state)
{
    (void)state;
    static const float columns[] = {0, 1, 6, 7, 12, 13, 18, 19},
                       rows[] = {8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
    moirai_shard_report r;
    onnx_model *m;
    block_model(in_folder("m.onnx"), NULL);
    moirai_shards *s = open_model();
    assert_ok(moirai_shards_write(s, "MatMul_0/mlp: 2,4", MOIRAI_SHARD_CHAIN, in_folder("c.onnx"), &r));
    assert_int_equal(r.n_strips, 1);
    assert_int_equal(r.n_pieces, 2);
    assert_int_equal(r.n_nodes, 2 * 3 + 1);
    assert_int_equal(r.cut_bytes, 2 * 24 * 4);
    assert_ok(onnx_model_open(&m, in_folder("c.onnx")));
    assert_int_equal(m->proto->graph->n_initializer, 4); /* nothing is there twice, nor whole */
    assert_numbers(m, "U.1-2of6", columns, 8);
    assert_numbers(m, "D.3-6of6", rows, 16);
    onnx_model_free(m);
    moirai_shards_free(s);
}

static void test_shard_what_others_read_is_put_together(void **state)
{
    (void)state;
    moirai_graph *g;
    block_model(in_folder("m.onnx"), "r");
    moirai_shards *s = open_model();
    assert_int_equal(moirai_shards_strip(s, 0).n_joins, 1);
    assert_ok(moirai_shards_graph(&g, s, "MatMul_0/mlp: 3", MOIRAI_SHARD_STAR, NULL));
    assert_int_equal(g->n_ops, 3 * 3 + 2); /* a Sum, a Concat */
    assert_int_not_equal(moirai_graph_find(g, "Relu_1 (3 joined)"), MOIRAI_NONE);
    assert_int_not_equal(moirai_graph_find(g, "MatMul_2 (sum)"), MOIRAI_NONE);
    assert_int_not_equal(moirai_graph_find(g, "MatMul_0 (2 of 3, 2 of 6 columns)"), MOIRAI_NONE);
    moirai_graph_free(g);
    moirai_shards_free(s);
}

static int32_t sums_of(moirai_shards *s, moirai_shard_sum how, int32_t *n_add)
{
    moirai_graph *g;
    int32_t n = 0;
    *n_add = 0;
    assert_ok(moirai_shards_graph(&g, s, "MatMul_0/mlp: 1,1,1,1,2", how, NULL));
    for (int32_t i = 0; i < g->n_ops; i++) {
        n += !strcmp(g->op_type[i], "Sum");
        *n_add += !strcmp(g->op_type[i], "Add");
    }
    moirai_graph_free(g);
    return n;
}

static void test_shard_sums_are_chains_stars_or_trees(void **state)
{
    (void)state;
    int32_t n_add;
    block_model(in_folder("m.onnx"), NULL);
    moirai_shards *s = open_model();
    assert_int_equal(sums_of(s, MOIRAI_SHARD_STAR, &n_add), 1);
    assert_int_equal(n_add, 0);
    assert_int_equal(sums_of(s, MOIRAI_SHARD_CHAIN, &n_add), 0);
    assert_int_equal(n_add, 4);
    assert_int_equal(sums_of(s, MOIRAI_SHARD_TREE, &n_add), 0);
    assert_int_equal(n_add, 4);
    moirai_shards_free(s);
}

/* The sum of squares over the columns needs all of them. */
static void test_shard_a_norm_over_the_cut_ends_the_strip(void **state)
{
    (void)state;
    wire graph = {0}, attrs = {0};
    make_input(&graph, "x", MAKE_FLOAT, "3x4");
    numbered(&graph, "U", "4x6", 24);
    make_node(&graph, "MatMul", "x,U", "u", NULL);
    make_node(&graph, "Relu", "u", "r", NULL);
    make_attr_int(&attrs, "axis", -1);
    make_node(&graph, "Softmax", "r", "y", &attrs);
    make_output(&graph, "y", MAKE_FLOAT, "3x6");
    put_model(in_folder("m.onnx"), &graph);
    moirai_shards *s = open_model();
    assert_string_equal(moirai_shards_strip(s, 0).kind, "linear");
    assert_int_equal(moirai_shards_strip(s, 0).n_ops, 2);
    assert_int_equal(moirai_shards_strip(s, 0).n_joins, 1);
    moirai_shards_free(s);
}

static void test_shard_what_stays_whole_has_a_reason(void **state)
{
    (void)state;
    wire graph = {0}, attrs = {0};
    make_input(&graph, "x", MAKE_FLOAT, "5x1x16");
    make_weights(&graph, "w", "1x64x16");
    make_weights(&graph, "r", "1x64x16");
    make_attr_int(&attrs, "hidden_size", 16);
    make_node(&graph, "LSTM", "x,w,r", "y", &attrs);
    make_output(&graph, "y", MAKE_FLOAT, NULL);
    put_model(in_folder("m.onnx"), &graph);
    moirai_shards *s = open_model();
    assert_int_equal(moirai_shards_refusal_count(s), 1);
    assert_string_equal(moirai_shards_refusal(s, 0).op, "LSTM_0");
    assert_string_equal(moirai_shards_refusal(s, 0).type, "LSTM");
    assert_non_null(strstr(moirai_shards_refusal(s, 0).why, "no product with weights"));
    moirai_shards_free(s);
}

static void refuse(const moirai_shards *s, const char *cut, const char *message)
{
    assert_int_equal(moirai_shards_write(s, cut, MOIRAI_SHARD_CHAIN, in_folder("bad.onnx"), NULL), MOIRAI_EUSAGE);
    if (!strstr(moirai_error_message(), message) || !strstr(moirai_error_message(), "m.onnx: "))
        fail_msg("\"%s\" does not say \"%s\"", moirai_error_message(), message);
    assert_int_equal(access(in_folder("bad.onnx"), F_OK), -1);
}

static void test_shard_bad_cuts_name_strip_and_values(void **state)
{
    (void)state;
    block_model(in_folder("m.onnx"), NULL);
    moirai_shards *s = open_model();
    refuse(s, "MatMul_0/mlp: 2,5", "strip 'MatMul_0/mlp': the sizes add up to 7 columns, it has 6");
    refuse(s, "MatMul_0/mlp: 7", "strip 'MatMul_0/mlp': 7 pieces, it has 6 columns");
    refuse(s, "mlp: 2", "no strip of that name");
    refuse(s, "MatMul_0/mlp: 300", "strip 'MatMul_0/mlp': 300 pieces, it has 6 columns");
    refuse(s, "MatMul_0/mlp: two", "cut \"MatMul_0/mlp: two\": \"two\" is not a size");
    refuse(s, "MatMul_0/mlp: 3,", "\"\" is not a size");
    refuse(s, "MatMul_0/mlp:", "cut \"MatMul_0/mlp: \": \"\" is not a size");
    refuse(s, "MatMul_0/mlp: 2,2,2; batch: 3", "share operator 'MatMul_0': cut one of them");
    refuse(s, "; # nothing", "the cut is empty");
    moirai_shards_free(s);
}

/* Whatever is typed, there is a model or one line. */
static void test_shard_any_text_is_a_cut_or_an_error(void **state)
{
    (void)state;
    static const char alphabet[] = "MatMul_0/mlp:;,*?[]# 0123456789\nbatch\\-whole";
    uint64_t random = 7;
    block_model(in_folder("m.onnx"), NULL);
    moirai_shards *s = open_model();
    for (int i = 0; i < 3000; i++) {
        char text[64] = "MatMul_0/mlp:";
        moirai_graph *g = NULL;
        size_t n = i % 2 ? strlen(text) : 0, end = n + (size_t)(i % 40);
        for (; n < end; n++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[n] = alphabet[(random >> 33) % (sizeof alphabet - 1)];
        }
        text[n] = 0;
        int rc = moirai_shards_graph(&g, s, text, MOIRAI_SHARD_CHAIN, NULL);
        assert_true(rc == 0 || rc == MOIRAI_EUSAGE);
        assert_true((g != NULL) == (rc == 0));
        moirai_graph_free(g);
    }
    moirai_shards_free(s);
}

/* Heads, runs, groups, slices: one model with what rules look into, for the test below. */
static void rich_model(wire *model)
{
    wire graph = {0}, attrs = {0};
    int64_t heads[] = {0, 0, 2, 3}, back[] = {0, 0, 6}, parts[] = {6, 6, 6}, perm[] = {0, 2, 1, 3};
    make_input(&graph, "x", MAKE_FLOAT, "2x3x4");
    numbered(&graph, "Q", "4x18", 72);
    numbered(&graph, "O", "6x4", 24);
    make_ints(&graph, "heads", 4, heads, 0);
    make_ints(&graph, "back", 3, back, 0);
    make_ints(&graph, "parts", 3, parts, 0);
    make_node(&graph, "MatMul", "x,Q", "qkv", NULL);
    make_attr_int(&attrs, "axis", 2);
    make_node(&graph, "Split", "qkv,parts", "q,k,v", &attrs);
    for (int i = 0; i < 3; i++) {
        const char *name[] = {"q,heads", "k,heads", "v,heads"}, *out[] = {"qh", "kh", "vh"},
                   *turned[] = {"qt", "kt", "vt"};
        wire order = {0};
        make_node(&graph, "Reshape", name[i], out[i], NULL);
        make_attr_ints(&order, "perm", 4, perm);
        make_node(&graph, "Transpose", out[i], turned[i], &order);
    }
    make_node(&graph, "Mul", "qt,kt", "s", NULL);
    make_node(&graph, "Add", "s,vt", "m", NULL);
    wire order = {0};
    make_attr_ints(&order, "perm", 4, perm);
    make_node(&graph, "Transpose", "m", "mt", &order);
    make_node(&graph, "Reshape", "mt,back", "mb", NULL);
    make_node(&graph, "MatMul", "mb,O", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "2x3x4");
    make_model(model, &graph);
}

/* Bytes of a model changed at random: it is refused, or what it means can be cut or not, and nothing breaks. */
static void test_shard_mangled_models_break_nothing(void **state)
{
    (void)state;
    wire model = {0};
    uint64_t random = 11;
    int opened = 0, cut = 0;
    rich_model(&model);
    for (int i = 0; i < 4000; i++) {
        uint8_t was[4];
        size_t at[4];
        moirai_shards *s = NULL;
        moirai_graph *g = NULL;
        for (int k = 0; k < 4; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            at[k] = (size_t)(random >> 33) % model.length;
            was[k] = model.data[at[k]];
            if (k < i % 5)
                model.data[at[k]] = (uint8_t)(random >> 20);
        }
        put_file(in_folder("m.onnx"), model.data, model.length);
        if (!moirai_shards_open(&s, in_folder("m.onnx"), NULL)) {
            opened++;
            cut += !moirai_shards_graph(&g, s, "*: 2", MOIRAI_SHARD_TREE, NULL);
            moirai_graph_free(g);
            g = NULL;
            cut += !moirai_shards_graph(&g, s, "batch: 2", MOIRAI_SHARD_STAR, NULL);
        }
        moirai_graph_free(g);
        moirai_shards_free(s);
        for (int k = 3; k >= 0; k--)
            model.data[at[k]] = was[k];
    }
    wire_free(&model);
    assert_true(opened > 500 && cut > 500);
}

/* Weights in a file beside the model: slices and what stays whole go to the cut model's own. */
static void test_shard_external_weights_go_to_a_file_of_their_own(void **state)
{
    (void)state;
    float number[24 + 24 + 4], read[4];
    wire graph = {0};
    onnx_model *m;
    onnx_data d;
    for (int i = 0; i < 52; i++)
        number[i] = (float)i;
    put_file(in_folder("weights.bin"), number, sizeof number);
    make_input(&graph, "x", MAKE_FLOAT, "3x4");
    static const char *const shape[] = {"4x6", "6x4", "4"}, *const name[] = {"U", "D", "b"};
    static const char *const offset[] = {"0", "96", "192"}, *const length[] = {"96", "96", "16"};
    for (int i = 0; i < 3; i++) {
        wire t = {0};
        make_external_tensor(&t, name[i], MAKE_FLOAT, shape[i], "weights.bin", offset[i], length[i]);
        wire_message(&graph, 5, &t);
    }
    make_node(&graph, "MatMul", "x,U", "u", NULL);
    make_node(&graph, "MatMul", "u,D", "v", NULL);
    make_node(&graph, "Add", "v,b", "y", NULL);
    make_output(&graph, "y", MAKE_FLOAT, "3x4");
    put_model(in_folder("m.onnx"), &graph);
    moirai_shards *s = open_model();
    assert_ok(moirai_shards_write(s, "MatMul_0/mlp: 5,1", MOIRAI_SHARD_CHAIN, in_folder("c.onnx"), NULL));
    moirai_shards_free(s);
    assert_ok(onnx_model_open(&m, in_folder("c.onnx")));
    FILE *f = fopen(in_folder("c.onnx.data"), "rb");
    assert_non_null(f);
    static const float last_column[] = {5, 11, 17, 23}, bias[] = {48, 49, 50, 51};
    for (int i = 0; i < 2; i++) {
        assert_ok(onnx_tensor_data(&d, m, tensor_named(m, i ? "b" : "U.6-6of6")));
        assert_string_equal(d.location, "c.onnx.data");
        assert_int_equal(fseek(f, (long)d.external_offset, SEEK_SET), 0);
        assert_int_equal(fread(read, sizeof *read, 4, f), 4);
        assert_memory_equal(read, i ? bias : last_column, sizeof read);
    }
    fclose(f);
    onnx_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_a_block_is_columns_then_rows),
        cmocka_unit_test(test_shard_slices_have_the_bytes_of_their_units),
        cmocka_unit_test(test_shard_what_others_read_is_put_together),
        cmocka_unit_test(test_shard_sums_are_chains_stars_or_trees),
        cmocka_unit_test(test_shard_a_norm_over_the_cut_ends_the_strip),
        cmocka_unit_test(test_shard_what_stays_whole_has_a_reason),
        cmocka_unit_test(test_shard_bad_cuts_name_strip_and_values),
        cmocka_unit_test(test_shard_any_text_is_a_cut_or_an_error),
        cmocka_unit_test(test_shard_mangled_models_break_nothing),
        cmocka_unit_test(test_shard_external_weights_go_to_a_file_of_their_own),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
