/* A small convolutional network with branches: two inception modules' worth of parallel work, and
 * a residual block, so that all three rules of the paper's fusion table occur. Images are CHW, one at a time. */
#include "util/util.h"
#include "zoo/zoo_net.h"

enum { IMAGE_SIDE = 64, CLASSES = 10 };

/* A feature map: the tensor's name, its channels and side. */
typedef struct map {
    char name[ZOO_NAME];
    int64_t channels, side;
} map;

static int64_t map_elements(const map *m)
{
    return m->channels * m->side * m->side;
}

/* A pointwise operator on `x` that leaves its result there; `skip` may be NULL. */
static void pointwise(zoo_net *z, const char *type, const char *name, map *x, const char *skip, int64_t weight)
{
    int64_t n = map_elements(x);

    zoo_op_add(z, type, name, x->name, skip,
               (zoo_cost){.out = n, .in = skip ? 2 * n : n, .weight = weight, .flops = weight ? 2 * n : n});
    zoo_name_format(x->name, sizeof x->name, "%s", name);
}

/* Attributes of what slides a square over the map. */
static void window(zoo_net *z, int64_t kernel, int64_t stride, int64_t pad)
{
    zoo_op_attribute(z, "kernel_shape", 2, (const int64_t[2]){kernel, kernel});
    zoo_op_attribute(z, "strides", 2, (const int64_t[2]){stride, stride});
    zoo_op_attribute(z, "pads", 4, (const int64_t[4]){pad, pad, pad, pad});
}

/* Convolution (same padding) and batch norm, without the activation. */
static void conv_bn(zoo_net *z, const char *base, map *x, int64_t channels, int64_t kernel, int64_t stride)
{
    char name[ZOO_NAME];
    int64_t in = map_elements(x), weight = channels * x->channels * kernel * kernel;
    int64_t side = (x->side + stride - 1) / stride, out = channels * side * side;
    const int64_t shape[4] = {channels, x->channels, kernel, kernel};

    zoo_name_format(name, sizeof name, "%s/conv", base);
    zoo_op_add(z, "Conv", name, x->name, NULL,
               (zoo_cost){.out = out, .in = in, .weight = weight, .flops = 2 * weight * side * side});
    zoo_op_weight(z, zoo_weight_product(4, shape, x->channels * kernel * kernel));
    window(z, kernel, stride, kernel / 2);
    zoo_name_format(x->name, sizeof x->name, "%s", name);
    x->channels = channels;
    x->side = side;
    zoo_name_format(name, sizeof name, "%s/bn", base);
    pointwise(z, "BatchNormalization", name, x, NULL, 4 * channels);
    for (int i = 0; i < 4; i++) /* scale, bias, mean, variance */
        zoo_op_weight(z, (zoo_weight){1, {channels}, i % 3 ? 0 : 1, 0.1});
}

static void conv_bn_relu(zoo_net *z, const char *base, map *x, int64_t channels, int64_t kernel, int64_t stride)
{
    char name[ZOO_NAME];

    conv_bn(z, base, x, channels, kernel, stride);
    zoo_name_format(name, sizeof name, "%s/relu", base);
    pointwise(z, "Relu", name, x, NULL, 0);
}

static void pool(zoo_net *z, const char *type, const char *name, map *x, int64_t side, int64_t kernel)
{
    int64_t out = x->channels * side * side;

    zoo_op_add(z, type, name, x->name, NULL,
               (zoo_cost){.out = out, .in = map_elements(x), .flops = out * kernel * kernel});
    if (side > 1)
        window(z, kernel, x->side / side, side == x->side ? kernel / 2 : 0);
    zoo_name_format(x->name, sizeof x->name, "%s", name);
    x->side = side;
}

/* Four branches (1x1; 1x1 3x3; 1x1 3x3 3x3; pool 1x1), concatenated. */
static void module_add(zoo_net *z, int number, map *x, int64_t channels)
{
    static const int depth[4] = {1, 2, 3, 1};
    char base[ZOO_NAME];
    map branch[4];

    for (int b = 0; b < 4; b++) {
        branch[b] = *x;
        if (b == 3) {
            zoo_name_format(base, sizeof base, "M%d/b3/pool", number);
            pool(z, "AveragePool", base, &branch[b], x->side, 3);
        }
        for (int i = 0; i < depth[b]; i++) {
            zoo_name_format(base, sizeof base, "M%d/b%d/c%d", number, b, i);
            conv_bn_relu(z, base, &branch[b], channels, i ? 3 : 1, 1);
        }
    }
    x->channels = 4 * channels;
    zoo_name_format(x->name, sizeof x->name, "M%d/concat", number);
    zoo_op_begin(z, "Concat", x->name);
    for (int b = 0; b < 4; b++)
        zoo_op_read(z, branch[b].name);
    zoo_op_end(z, x->name, (zoo_cost){.out = map_elements(x), .in = map_elements(x)});
    zoo_op_attribute(z, "axis", 0, (const int64_t[1]){1});
}

int zoo_inception(zoo_net *z, int modules, int channels)
{
    map x = {.name = "input", .channels = 3, .side = IMAGE_SIDE}, skip;
    int64_t features;

    zoo_net_input(z, "input", 4, (const int64_t[4]){1, x.channels, x.side, x.side});
    conv_bn_relu(z, "stem0", &x, channels, 3, 2);
    conv_bn_relu(z, "stem1", &x, channels, 3, 1);
    pool(z, "MaxPool", "stem/pool", &x, x.side / 2, 2);
    for (int i = 0; i < modules; i++)
        module_add(z, i, &x, channels);
    skip = x;
    conv_bn_relu(z, "res0", &x, channels, 3, 1);
    conv_bn(z, "res1", &x, skip.channels, 3, 1);
    pointwise(z, "Add", "res1/add", &x, skip.name, 0);
    pointwise(z, "Relu", "res1/relu", &x, NULL, 0);
    pool(z, "GlobalAveragePool", "pool", &x, 1, x.side);
    features = map_elements(&x);
    zoo_op_add(z, "Flatten", "flatten", x.name, NULL, (zoo_cost){.out = features, .in = features});
    zoo_op_add(
        z, "Gemm", "fc", "flatten", NULL,
        (zoo_cost){
            .out = CLASSES, .in = features, .weight = (features + 1) * CLASSES, .flops = 2 * features * CLASSES});
    zoo_op_weight(z, zoo_weight_product(2, (const int64_t[2]){features, CLASSES}, features));
    zoo_op_weight(z, (zoo_weight){1, {CLASSES}, 0, 0.1});
    return z->result;
}
