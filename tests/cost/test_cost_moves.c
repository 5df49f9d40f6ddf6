/* What kernels that move and sum take, by what the graph around them tells: parts that are interleaved, elements that look
 * for their origin, rows, sides of images. Times in TensorRT, as measured on P4, T4 and V100. */
#include "support/check.h"

#include <moirai/cost.h>
#include "cost/cost.h"
#include "util/util.h"

#define MB 1000000

typedef struct net {
    moirai_graph_builder *b;
    moirai_graph *g;
    moirai_cluster *cluster;
    moirai_cost_context *x;
} net;

static void begin(net *t)
{
    memset(t, 0, sizeof *t);
    assert_ok(moirai_graph_builder_new(&t->b, "moves"));
}

/* An operator `name` that reads tensors by name (NULL: none more) and writes one of its own name. */
static void op(net *t, const char *name, const char *type, int64_t bytes, const char *in, const char *in2)
{
    int32_t o = moirai_graph_builder_op(t->b, name, type);
    if (in)
        assert_ok(moirai_graph_builder_input(t->b, o, in));
    if (in2)
        assert_ok(moirai_graph_builder_input(t->b, o, in2));
    assert_ok(moirai_graph_builder_output(t->b, o, name, bytes));
}

/* The same with weights and flops. */
static void product(net *t, const char *name, const char *type, int64_t bytes, const char *in, int64_t weights,
                    int64_t flops, int64_t in_bytes)
{
    int32_t o = moirai_graph_builder_op(t->b, name, type);
    assert_ok(moirai_graph_builder_input(t->b, o, in));
    assert_ok(moirai_graph_builder_output(t->b, o, name, bytes));
    assert_ok(moirai_graph_builder_cost(t->b, o, weights, 0, flops, bytes + in_bytes + weights));
}

static void finish(net *t)
{
    assert_ok(moirai_graph_builder_finish(&t->g, t->b));
    assert_ok(moirai_cluster_synthetic(&t->cluster, "1x t4"));
    assert_ok(cost_context_new(&t->x, t->g, t->cluster));
}

static cost_shape *shape(const net *t, const char *name)
{
    return &t->x->shape[moirai_graph_find(t->g, name)];
}

static void end(net *t)
{
    cost_context_free(t->x);
    moirai_cluster_free(t->cluster);
    moirai_graph_free(t->g);
}

static double kernel_ns(const cost_shape *s, const char *type, bool tensorrt)
{
    const double *c = cost_fitted_shipped.c[s->k];
    cost_head h = cost_head_measured(c, tensorrt);
    return cost_fitted_ns(c, s, moirai_device_type_find(type), &h) - h.start_ns;
}

/* Two parts of 9 MB that are summed up next took 612, 360 and 115 us; joined one after the other, 250, 155 and 55. */
static void test_cost_moves_stack_that_is_summed(void **state)
{
    (void)state;
    net t;
    begin(&t);
    op(&t, "a", "Relu", 9 * MB, NULL, NULL);
    op(&t, "b", "Relu", 9 * MB, NULL, NULL);
    op(&t, "stack", "Concat", 18 * MB, "a", "b");
    op(&t, "sum", "ReduceSum", 9 * MB, "stack", NULL);
    op(&t, "joined", "Concat", 18 * MB, "a", "b");
    op(&t, "relu", "Relu", 18 * MB, "joined", NULL);
    finish(&t);
    assert_true(shape(&t, "stack")->interleaved && !shape(&t, "joined")->interleaved);
    static const char *const types[] = {"p4", "t4", "v100"};
    static const double measured_us[] = {612, 360, 115};
    for (int i = 0; i < 3; i++) {
        double ns = kernel_ns(shape(&t, "stack"), types[i], true);
        assert_true(ns > 0.75e3 * measured_us[i] && ns < 1.25e3 * measured_us[i]);
        assert_true(kernel_ns(shape(&t, "joined"), types[i], true) < 0.6 * ns);
        assert_true(kernel_ns(shape(&t, "stack"), types[i], false) == kernel_ns(shape(&t, "joined"), types[i], false));
    }
    end(&t);
}

/* A join whose other part is a constant has two parts; a lookup reads what it returns; who doubles an image's sides reads
 * a quarter of the result, and takes its elements' time on a V100 (132 MB padded: 368 us, 10 more than streamed). */
static void test_cost_moves_bytes_that_are_moved(void **state)
{
    (void)state;
    net t;
    begin(&t);
    op(&t, "a", "Relu", 4 * MB, NULL, NULL);
    op(&t, "join", "Concat", 8 * MB, "a", NULL);
    op(&t, "index", "Relu", MB / 10, NULL, NULL);
    op(&t, "gather", "Gather", 2 * MB, "index", NULL);
    op(&t, "resize", "Resize", 16 * MB, "a", NULL);
    op(&t, "same", "Resize", 4 * MB, "a", NULL);
    op(&t, "wide", "Relu", 130 * MB, NULL, NULL);
    op(&t, "pad", "Pad", 132 * MB, "wide", NULL);
    op(&t, "cast", "Cast", 132 * MB, "wide", NULL);
    finish(&t);
    assert_true(shape(&t, "join")->parts == 2);
    assert_true(shape(&t, "gather")->bytes == 4 * MB);
    assert_true(shape(&t, "resize")->bytes == 20 * MB && shape(&t, "same")->bytes == 5 * MB);
    assert_true(shape(&t, "pad")->bytes == 262 * MB && shape(&t, "pad")->stretched && !shape(&t, "cast")->stretched);
    assert_true(kernel_ns(shape(&t, "pad"), "v100", true) > 1.1 * kernel_ns(shape(&t, "cast"), "v100", true));
    assert_true(kernel_ns(shape(&t, "pad"), "p4", true) < 1.01 * kernel_ns(shape(&t, "cast"), "p4", true));
    end(&t);
}

/* Weights that a product of 17 columns deep averages by are rows of 17; a softmax of them took 341, 281 and 157 us. */
static void test_cost_moves_rows_of_a_softmax(void **state)
{
    (void)state;
    net t;
    begin(&t);
    op(&t, "a", "Relu", 6963200, NULL, NULL);
    op(&t, "softmax", "Softmax", 6963200, "a", NULL);
    product(&t, "average", "MatMul", 409600, "softmax", 68, 2 * 1740800, 6963200);
    finish(&t);
    const cost_shape *s = shape(&t, "softmax");
    assert_true(s->row == 17 && s->rows == 102400);
    static const char *const types[] = {"p4", "t4", "v100"};
    static const double measured_us[] = {341, 281, 157};
    for (int i = 0; i < 3; i++) {
        double ns = kernel_ns(s, types[i], true);
        assert_true(ns > 0.7e3 * measured_us[i] && ns < 1.4e3 * measured_us[i]);
    }
    assert_true(kernel_ns(s, "v100", false) < 0.3 * kernel_ns(s, "v100", true));
    end(&t);

    /* Pixels by 313 kinds; pixels by as many centres as they were copied for and compared with. */
    begin(&t);
    op(&t, "a", "Relu", 4 * 4096 * 256, NULL, NULL);
    product(&t, "kinds", "Conv", 4 * 4096 * 313, "a", 4 * 256 * 313, 2LL * 4096 * 256 * 313, 4 * 4096 * 256);
    op(&t, "turn", "Transpose", 4 * 4096 * 313, "kinds", NULL);
    op(&t, "by kind", "Softmax", 4 * 4096 * 313, "turn", NULL);
    op(&t, "copies", "Expand", 32 * 4 * 4096 * 256, "a", NULL);
    op(&t, "squares", "Pow", 32 * 4 * 4096 * 256, "copies", NULL);
    op(&t, "distance", "ReduceSum", 32 * 4 * 4096, "squares", NULL);
    op(&t, "by centre", "Softmax", 32 * 4 * 4096, "distance", NULL);
    finish(&t);
    assert_true(shape(&t, "by kind")->row == 313 && shape(&t, "by kind")->rows == 4096);
    assert_true(shape(&t, "by centre")->row == 32 && shape(&t, "by centre")->rows == 4096);
    end(&t);
}

/* Means of 14,336 rows of 192 took 178, 124 and 40 us, sums of 2.3 million pairs 205, 116 and 104. */
static void test_cost_moves_rows_that_are_summed(void **state)
{
    (void)state;
    static const char *const types[] = {"p4", "t4", "v100"};
    static const double rows_us[] = {178, 124, 40}, pairs_us[] = {205, 116, 104};
    cost_shape rows = {.k = COST_CLASS_REDUCE, .bytes = 11067392, .out_bytes = 57344, .rows = 14336, .row = 192};
    cost_shape pairs = {.k = COST_CLASS_REDUCE, .bytes = 27033600, .out_bytes = 9011200, .rows = 2252800, .row = 2};
    cost_shape mean = pairs, neighbours = pairs;
    mean.rows = 2, mean.row = 2252800;
    neighbours.row = 1;
    for (int i = 0; i < 3; i++) {
        double ns = kernel_ns(&rows, types[i], true);
        assert_true(ns > 0.65e3 * rows_us[i] && ns < 1.35e3 * rows_us[i]);
        ns = kernel_ns(&pairs, types[i], true);
        assert_true(ns > 0.65e3 * pairs_us[i] && ns < 1.35e3 * pairs_us[i]);
        assert_true(kernel_ns(&neighbours, types[i], true) > 1.4 * kernel_ns(&mean, types[i], true));
    }
    /* Pooled images of 7 x 7 lie in the cache: 11, 7 and 7 us. Rows of 80, a thread each, gain nothing from it: 17 us on a
     * P4 and 12 on a T4. */
    cost_shape pooled = {.k = COST_CLASS_REDUCE, .bytes = 1638400, .out_bytes = 32768, .rows = 8192, .row = 49};
    cost_shape apart = pooled;
    apart.strided = true;
    assert_true(kernel_ns(&pooled, "p4", true) < 13e3 && kernel_ns(&pooled, "t4", true) < 9e3);
    assert_true(kernel_ns(&apart, "t4", true) > 1.5 * kernel_ns(&pooled, "t4", true));
    neighbours.row = 20;
    pairs.row = 20;
    neighbours.interleaved = true; /* the place of the largest: transposed before */
    assert_true(kernel_ns(&neighbours, "t4", true) > 1.5 * kernel_ns(&pairs, "t4", true));
    assert_true(kernel_ns(&neighbours, "t4", false) == kernel_ns(&pairs, "t4", false));
}

/* A classifier of three rows behind a global pool tells that 3,267 pixels are three images of 33 x 33, which are whole
 * patches of 40 x 48; a batch of 12 that they are 16.5 x 16.5. Where nothing tells, they are four. */
static void test_cost_moves_sides_of_images(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) { /* nothing tells, a pool, the batch */
        net t;
        bool pool = how == 1;
        begin(&t);
        if (how == 2)
            assert_ok(moirai_graph_builder_dim(t.b, "batch=12"));
        op(&t, "a", "Relu", 4 * 3267 * 64, NULL, NULL);
        product(&t, "conv", "Conv", 4 * 3267 * 64, "a", 4 * 64 * 576, 2LL * 3267 * 64 * 576, 4 * 3267 * 64);
        op(&t, "pool", pool ? "GlobalAveragePool" : "MaxPool", 4 * 3 * 64, "conv", NULL);
        op(&t, "flat", "Flatten", 4 * 3 * 64, "pool", NULL);
        product(&t, "fc", "Gemm", 4 * 3 * 10, "flat", 4 * 64 * 10, 2 * 3 * 64 * 10, 4 * 3 * 64);
        finish(&t);
        cost_shape s = *shape(&t, "conv");
        assert_true(s.side == (pool ? 33 : how == 2 ? 16.5 : 29));
        s.bytes = s.weight_bytes = s.out_bytes = 4 * 3267 * 512;
        s.n = 512;
        s.depth = 4608;
        double cut = kernel_ns(&s, "v100", true);
        s.side = 32;
        assert_true(!pool || cut > 1.5 * kernel_ns(&s, "v100", true));
        end(&t);
    }
}

static double conv_ns(cost_class k, const char *type, double m, double n, double depth, double groups)
{
    cost_shape s = {.k = k, .b = groups, .m = m, .n = n, .depth = depth};
    s.flops = 2 * groups * m * n * depth;
    s.weight_bytes = 4 * groups * n * depth;
    s.out_bytes = 4 * groups * m * n;
    s.bytes = s.weight_bytes + 2 * s.out_bytes;
    return kernel_ns(&s, type, true);
}

/* Few pixels under many channels wait for one sum after the other: 55 us on a V100, with 80 columns or 256, and 65 on a T4.
 * An output costs as much in groups of 8 as of 16, though that is half the work. */
static void test_cost_moves_convolutions_that_idle(void **state)
{
    (void)state;
    double narrow = conv_ns(COST_CLASS_CONV, "v100", 100, 80, 2304, 1);
    double wide = conv_ns(COST_CLASS_CONV, "v100", 100, 256, 2304, 1);
    assert_true(narrow > 40e3 && wide < 70e3 && wide < 1.1 * narrow);
    static const char *const types[] = {"p4", "t4", "v100"};
    for (int i = 0; i < 3; i++) {
        double eight = conv_ns(COST_CLASS_GROUPED, types[i], 3136, 8, 72, 32);
        double sixteen = conv_ns(COST_CLASS_GROUPED, types[i], 3136, 16, 144, 32);
        assert_true(sixteen > 1.8 * eight && sixteen < 2.3 * eight);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_moves_stack_that_is_summed),
        cmocka_unit_test(test_cost_moves_bytes_that_are_moved),
        cmocka_unit_test(test_cost_moves_rows_of_a_softmax),
        cmocka_unit_test(test_cost_moves_rows_that_are_summed),
        cmocka_unit_test(test_cost_moves_sides_of_images),
        cmocka_unit_test(test_cost_moves_convolutions_that_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
