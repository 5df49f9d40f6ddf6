/* The zoo: what the paper's Table III states, and shapes that fit together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include <moirai/zoo.h>

/* Table III of the paper: operators and parameters. */
static const struct {
    const char *name;
    int32_t n_ops;
    double parameters;
} paper[] = {
    {"swin-1.8B", 6496, 1.8e9},        {"swin-6.6B", 14352, 6.6e9},       {"swin-13B", 22120, 13e9},
    {"gpt3-330M", 4872, 330e6},        {"gpt3-1.3B", 9480, 1.3e9},        {"gpt3-2.7B", 12640, 2.7e9},
    {"gpt3-13B", 19640, 13e9},         {"alphafold2-87M", 5136, 87e6},    {"alphafold2-930M", 12992, 930e6},
    {"alphafold2-2.4B", 37920, 2.4e9}, {"alphafold2-3.2B", 50560, 3.2e9},
};
enum { PAPER = sizeof paper / sizeof *paper };

static moirai_graph *graph(const char *name, int element_bytes)
{
    moirai_graph *g = NULL;

    if (moirai_zoo_graph(&g, name, element_bytes))
        fail_msg("%s: %s", name, moirai_error_message());
    return g;
}

static int32_t op(const moirai_graph *g, const char *name)
{
    int32_t i = moirai_graph_find(g, name);

    if (i == MOIRAI_NONE)
        fail_msg("%s: no operator %s", g->name, name);
    return i;
}

static double parameters(const moirai_graph *g)
{
    double bytes = 0;

    for (int32_t i = 0; i < g->n_ops; i++)
        bytes += (double)g->op_weight_bytes[i];
    return bytes / g->element_bytes;
}

static bool is_network_input(const char *name)
{
    static const char *const known[] = {"input", "mask", "pair_bias", "decoder_input", "decoder_mask"};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i]))
            return true;
    return !strncmp(name, "shift_mask", strlen("shift_mask"));
}

/* One operator writes the result; all other tensors have a producer and a reader, or are inputs by name. */
static void check_tensors(const moirai_graph *g)
{
    int unread = 0;

    for (int32_t t = 0; t < g->n_tensors; t++) {
        if (g->tensor_producer[t] == MOIRAI_NONE && !is_network_input(g->tensor_name[t]))
            fail_msg("%s: nobody produces %s", g->name, g->tensor_name[t]);
        if (g->tensor_producer[t] != MOIRAI_NONE && g->tensor_bytes[t] <= 0)
            fail_msg("%s: %s is empty", g->name, g->tensor_name[t]);
        unread += g->tensor_reader_off[t] == g->tensor_reader_off[t + 1];
    }
    assert_int_equal(unread, 1);
}

/* Traffic is at least what the graph's own tensors and the weights amount to, counted without repeats;
 * reading part of a tensor (padding cut off) is why the inputs may count less, never the outputs. */
static void check_costs(const moirai_graph *g)
{
    for (int32_t i = 0; i < g->n_ops; i++) {
        int64_t out = g->op_weight_bytes[i];

        for (int32_t e = g->op_out_off[i]; e < g->op_out_off[i + 1]; e++)
            out += g->tensor_bytes[g->op_out[e]];
        assert_true(g->op_in_off[i + 1] > g->op_in_off[i]);
        assert_true(g->op_flops[i] >= 0);
        if (g->op_traffic_bytes[i] < out)
            fail_msg("%s: %s: traffic %lld below %lld written", g->name, g->op_name[i],
                     (long long)g->op_traffic_bytes[i], (long long)out);
    }
}

static void check_whole(const moirai_graph *g)
{
    for (int32_t i = 0; i < g->n_ops; i++) /* the builder proved it; the order must agree */
        for (int32_t k = g->op_in_off[i]; k < g->op_in_off[i + 1]; k++)
            if (g->tensor_producer[g->op_in[k]] != MOIRAI_NONE)
                assert_true(g->topo_rank[g->tensor_producer[g->op_in[k]]] < g->topo_rank[i]);
    check_tensors(g);
    check_costs(g);
}

static void test_zoo_counts_and_parameters_are_the_papers(void **state)
{
    (void)state;
    for (int n = 0; n < PAPER; n++) {
        moirai_graph *g = graph(paper[n].name, 2);
        double ratio = parameters(g) / paper[n].parameters;

        assert_int_equal(g->n_ops, paper[n].n_ops);
        assert_int_equal(moirai_zoo_find(paper[n].name)->n_ops, paper[n].n_ops);
        if (ratio < 0.9 || ratio > 1.1)
            fail_msg("%s: %.4g parameters, the paper has %.4g", g->name, parameters(g), paper[n].parameters);
        check_whole(g);
        moirai_graph_free(g);
    }
}

static void test_zoo_small_networks_are_whole(void **state)
{
    (void)state;
    for (int n = 0; n < moirai_zoo_count(); n++) {
        const moirai_zoo_entry *e = moirai_zoo_at(n);
        moirai_graph *g;

        if (e->paper_parameters)
            continue;
        g = graph(e->name, 4);
        assert_int_equal(g->n_ops, e->n_ops);
        assert_int_equal(g->element_bytes, 4);
        assert_string_equal(g->name, e->name);
        check_whole(g);
        moirai_graph_free(g);
    }
}

static void assert_op(const moirai_graph *g, const char *name, const char *type, int64_t out, int64_t weight,
                      int64_t flops, int64_t traffic)
{
    int32_t i = op(g, name);

    assert_string_equal(g->op_type[i], type);
    assert_int_equal(g->tensor_bytes[g->op_out[g->op_out_off[i + 1] - 1]], out);
    assert_int_equal(g->op_weight_bytes[i], weight);
    assert_int_equal(g->op_flops[i], flops);
    assert_int_equal(g->op_traffic_bytes[i], traffic);
}

/* GPT-3 330M in fp32: 2,048 tokens, hidden 1,024, heads of 64. */
static void test_zoo_gpt3_known_operators(void **state)
{
    const int64_t t = 2048, h = 1024, d = 64;
    moirai_graph *g = graph("gpt3-330M", 4);

    (void)state;
    assert_op(g, "L0/h3/q", "MatMul", 4 * t * d, 4 * h * d, 2 * t * h * d, 4 * (t * d + t * h + h * d));
    assert_op(g, "L7/h15/qk", "MatMul", 4 * t * t, 0, 2 * t * t * d, 4 * (t * t + 2 * t * d));
    assert_op(g, "L7/h15/mask", "Add", 4 * t * t, 0, t * t, 4 * 3 * t * t);
    assert_op(g, "L23/fc1", "MatMul", 4 * t * 4 * h, 4 * 4 * h * h, 2 * t * h * 4 * h, 4 * (5 * t * h + 4 * h * h));
    assert_op(g, "L23/res2", "Add", 4 * t * h, 0, t * h, 4 * 3 * t * h);
    moirai_graph_free(g);
}

static void test_zoo_layers_are_wired(void **state)
{
    moirai_graph *g = graph("gpt3-tiny", 4);
    int32_t concat = op(g, "L1/concat"), res1 = op(g, "L1/res1"), res2 = op(g, "L1/res2");

    (void)state;
    assert_int_equal(g->op_in_off[concat + 1] - g->op_in_off[concat], 4);
    assert_string_equal(g->tensor_name[g->op_in[g->op_in_off[concat] + 3]], "L1/h3/av");
    assert_string_equal(g->tensor_name[g->op_in[g->op_in_off[res1]]], "L1/proj_bias");
    assert_string_equal(g->tensor_name[g->op_in[g->op_in_off[res1] + 1]], "L0/res2");
    assert_string_equal(g->tensor_name[g->op_in[g->op_in_off[res2]]], "L1/fc2");
    assert_string_equal(g->tensor_name[g->op_in[g->op_in_off[res2] + 1]], "L1/res1");
    assert_int_equal(g->tensor_producer[g->op_in[g->op_in_off[op(g, "L0/res1")] + 1]], MOIRAI_NONE);
    moirai_graph_free(g);
}

/* Traffic is what is read and written, each once: inputs, outputs and weights. Of operators that read nothing from
 * outside, all of which is known. */
static void test_zoo_traffic_is_what_is_read_and_written(void **state)
{
    static const char *const networks[] = {"gpt3-tiny", "t5-tiny", "inception-tiny"};
    (void)state;
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++) {
        moirai_graph *g = graph(networks[k], 4);
        int checked = 0;
        for (int32_t i = 0; i < g->n_ops; i++) {
            int64_t bytes = g->op_weight_bytes[i];
            bool known = true;
            for (int32_t j = g->op_in_off[i]; j < g->op_in_off[i + 1]; j++) {
                known = known && g->tensor_producer[g->op_in[j]] != MOIRAI_NONE;
                bytes += g->tensor_bytes[g->op_in[j]];
            }
            for (int32_t j = g->op_out_off[i]; j < g->op_out_off[i + 1]; j++)
                bytes += g->tensor_bytes[g->op_out[j]];
            if (!known || strcmp(g->op_type[i], "Add") == 0) /* the causal mask is no tensor of the graph */
                continue;
            if (g->op_traffic_bytes[i] != bytes)
                fail_msg("%s: %s: %lld, not %lld", networks[k], g->op_name[i], (long long)g->op_traffic_bytes[i],
                         (long long)bytes);
            checked++;
        }
        assert_true(checked > g->n_ops / 3);
        moirai_graph_free(g);
    }
}

/* 275x275 tokens in 40x40 windows of 7x7; merged to 138x138, then 69x69, then 35x35. */
static void test_zoo_swin_stages(void **state)
{
    moirai_graph *g = graph("swin-1.8B", 2);
    int32_t merge = op(g, "L2/ln1");

    (void)state;
    assert_op(g, "L0/ln2", "LayerNormalization", 2 * 275 * 275 * 512, 2 * 2 * 512, 8 * 275 * 275 * 512LL,
              2 * (2 * 275 * 275 * 512 + 2 * 512));
    assert_int_equal(g->tensor_bytes[g->op_out[g->op_out_off[op(g, "L0/h0/qk")]]], 2 * 1600LL * 49 * 49);
    assert_string_equal(g->op_type[merge], "MatMul");
    assert_int_equal(g->op_out_off[merge + 1] - g->op_out_off[merge], 2);
    assert_int_equal(g->op_weight_bytes[merge], 2 * (2048 * 1024 + 2 * 1024));
    assert_int_equal(g->tensor_bytes[g->op_out[g->op_out_off[op(g, "L2/res1")]]], 2 * 138 * 138 * 1024);
    assert_int_equal(g->tensor_bytes[g->op_out[g->op_out_off[op(g, "L29/res1")]]], 2 * 69 * 69 * 2048);
    assert_int_equal(g->tensor_bytes[g->op_out[g->op_out_off[op(g, "L31/res2")]]], 2 * 35 * 35 * 4096);
    moirai_graph_free(g);
}

static void test_zoo_dtype_scales_bytes_not_flops(void **state)
{
    moirai_graph *wide = graph("inception-tiny", 4), *narrow = graph("inception-tiny", 2);

    (void)state;
    for (int32_t i = 0; i < wide->n_ops; i++) {
        assert_int_equal(wide->op_traffic_bytes[i], 2 * narrow->op_traffic_bytes[i]);
        assert_int_equal(wide->op_weight_bytes[i], 2 * narrow->op_weight_bytes[i]);
        assert_int_equal(wide->op_flops[i], narrow->op_flops[i]);
    }
    moirai_graph_free(wide);
    moirai_graph_free(narrow);
}

/* Operators that run either before or after operator `cut`, and never beside it. */
static int32_t comparable(const moirai_graph *g, int32_t cut, bool *mark)
{
    int32_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        memset(mark, 0, (size_t)g->n_ops);
        mark[cut] = true;
        for (int32_t r = 0; r < g->n_ops; r++) {
            int32_t i = g->topo[pass ? g->n_ops - 1 - r : r];
            const int32_t *off = pass ? g->op_out_off : g->op_in_off, *list = pass ? g->op_out : g->op_in;

            for (int32_t e = off[i]; e < off[i + 1] && !mark[i]; e++) {
                int32_t t = list[e], p = g->tensor_producer[t];

                if (!pass)
                    mark[i] = p != MOIRAI_NONE && mark[p];
                for (int32_t k = g->tensor_reader_off[t]; pass && k < g->tensor_reader_off[t + 1]; k++)
                    mark[i] = mark[i] || mark[g->tensor_reader[k]];
            }
            n += mark[i];
        }
    }
    return n - 1;
}

/* No operator but those at the very end separates the encoder-decoder network in two. */
/* Twice the samples: twice the tensors and arithmetic, the same weights; masks are read once. */
static void test_zoo_batch_scales_activations_not_weights(void **state)
{
    static const char *const names[] = {"gpt3-tiny", "alphafold2-87M", "swin-1.8B"};
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        moirai_graph *one, *two;
        assert_int_equal(0, moirai_zoo_graph_batch(&one, names[n], 4, 1));
        assert_int_equal(0, moirai_zoo_graph_batch(&two, names[n], 4, 2));
        assert_int_equal(one->n_ops, two->n_ops);
        for (int32_t t = 0; t < one->n_tensors; t++)
            assert_int_equal(two->tensor_bytes[t], 2 * one->tensor_bytes[t]);
        for (int32_t i = 0; i < one->n_ops; i++) {
            assert_int_equal(two->op_flops[i], 2 * one->op_flops[i]);
            assert_int_equal(two->op_weight_bytes[i], one->op_weight_bytes[i]);
            assert_true(two->op_traffic_bytes[i] <= 2 * one->op_traffic_bytes[i]);
            assert_true(two->op_traffic_bytes[i] > one->op_traffic_bytes[i]);
        }
        moirai_graph_free(one);
        moirai_graph_free(two);
    }
}

static void test_zoo_t5_has_no_early_cut(void **state)
{
    moirai_graph *g = graph("t5-tiny", 4);
    bool mark[512];

    (void)state;
    assert_true(g->n_ops < 512);
    for (int32_t i = 0; i < g->n_ops; i++)
        if (strncmp(g->op_name[i], "dec1/", 5))
            assert_true(comparable(g, i, mark) < g->n_ops);
    moirai_graph_free(g);
}

static void test_zoo_refuses_what_it_does_not_have(void **state)
{
    moirai_graph *g = (void *)1;

    (void)state;
    assert_int_equal(moirai_zoo_graph(&g, "gpt5", 4), MOIRAI_EUSAGE);
    assert_null(g);
    assert_non_null(strstr(moirai_error_message(), "gpt5"));
    assert_int_equal(moirai_zoo_graph(&g, "gpt3-tiny", 3), MOIRAI_EUSAGE);
    assert_null(moirai_zoo_at(-1));
    assert_null(moirai_zoo_at(moirai_zoo_count()));
    assert_null(moirai_zoo_find(NULL));
    assert_int_equal(moirai_zoo_graph_batch(&g, "gpt3-tiny", 4, 0), MOIRAI_EUSAGE);
    assert_int_equal(moirai_zoo_graph_batch(&g, "gpt3-tiny", 4, 1025), MOIRAI_EUSAGE);
    assert_int_equal(moirai_zoo_graph_batch(&g, "t5-tiny", 4, 2), MOIRAI_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zoo_counts_and_parameters_are_the_papers),
        cmocka_unit_test(test_zoo_small_networks_are_whole),
        cmocka_unit_test(test_zoo_gpt3_known_operators),
        cmocka_unit_test(test_zoo_layers_are_wired),
        cmocka_unit_test(test_zoo_traffic_is_what_is_read_and_written),
        cmocka_unit_test(test_zoo_swin_stages),
        cmocka_unit_test(test_zoo_dtype_scales_bytes_not_flops),
        cmocka_unit_test(test_zoo_batch_scales_activations_not_weights),
        cmocka_unit_test(test_zoo_t5_has_no_early_cut),
        cmocka_unit_test(test_zoo_refuses_what_it_does_not_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
