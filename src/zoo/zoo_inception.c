/* Convolutional networks. Images are CHW, one at a time.
 *
 *  - inception: small, with branches: two inception modules' worth of parallel work, and a residual block, so that all
 *    three rules of the paper's fusion table occur.
 *  - GoogLeNet (Szegedy and others, 2015, Table 1) and ResNet-18 (He and others, 2016, Table 1), 224 x 224 pixels and
 *    1,000 classes, with batch norms and without what only training needs. */
#include "util/util.h"
#include "zoo/zoo_net.h"

enum { IMAGE_SIDE = 64, CLASSES = 10, REAL_SIDE = 224, REAL_CLASSES = 1000 };

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
        window(z, kernel, x->side / side, kernel % 2 ? kernel / 2 : 0);
    zoo_name_format(x->name, sizeof x->name, "%s", name);
    x->side = side;
}

/* The four branches of a module, one after the other in one map. */
static void join(zoo_net *z, int number, map *x, const map branch[4])
{
    x->side = branch[0].side;
    x->channels = 0;
    for (int b = 0; b < 4; b++)
        x->channels += branch[b].channels;
    zoo_name_format(x->name, sizeof x->name, "M%d/concat", number);
    zoo_op_begin(z, "Concat", x->name);
    for (int b = 0; b < 4; b++)
        zoo_op_read(z, branch[b].name);
    zoo_op_end(z, x->name, (zoo_cost){.out = map_elements(x), .in = map_elements(x)});
    zoo_op_attribute(z, "axis", 0, (const int64_t[1]){1});
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
    join(z, number, x, branch);
}

static map image(zoo_net *z, int64_t side)
{
    zoo_net_input(z, "input", 4, (const int64_t[4]){1, 3, side, side});
    return (map){.name = "input", .channels = 3, .side = side};
}

/* The end of all of them: one number per channel, and a product. */
static int classify(zoo_net *z, map *x, int64_t classes)
{
    pool(z, "GlobalAveragePool", "pool", x, 1, x->side);
    int64_t features = map_elements(x);
    zoo_op_add(z, "Flatten", "flatten", x->name, NULL, (zoo_cost){.out = features, .in = features});
    zoo_op_add(
        z, "Gemm", "fc", "flatten", NULL,
        (zoo_cost){
            .out = classes, .in = features, .weight = (features + 1) * classes, .flops = 2 * features * classes});
    zoo_op_weight(z, zoo_weight_product(2, (const int64_t[2]){features, classes}, features));
    zoo_op_weight(z, (zoo_weight){1, {classes}, 0, 0.1});
    return z->result;
}

int zoo_inception(zoo_net *z, int modules, int channels)
{
    map x = image(z, IMAGE_SIDE), skip;

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
    return classify(z, &x, CLASSES);
}

/* ---- GoogLeNet ---- */

/* Channels: 1x1; 1x1 before 3x3; 3x3; 1x1 before 5x5; 5x5; 1x1 after the pool. */
static void googlenet_module(zoo_net *z, int number, map *x, const int channels[6])
{
    static const struct {
        int branch, kernel;
    } part[6] = {{0, 1}, {1, 1}, {1, 3}, {2, 1}, {2, 5}, {3, 1}};
    char base[ZOO_NAME];
    map branch[4] = {*x, *x, *x, *x};

    for (int i = 0; i < 6; i++) {
        int b = part[i].branch;
        if (b == 3) {
            zoo_name_format(base, sizeof base, "M%d/b3/pool", number);
            pool(z, "MaxPool", base, &branch[b], x->side, 3);
        }
        zoo_name_format(base, sizeof base, "M%d/b%d/c%d", number, b, part[i].kernel);
        conv_bn_relu(z, base, &branch[b], channels[i], part[i].kernel, 1);
    }
    join(z, number, x, branch);
}

int zoo_googlenet(zoo_net *z)
{
    static const int module[9][6] = {
        {64, 96, 128, 16, 32, 32},     {128, 128, 192, 32, 96, 64},   {192, 96, 208, 16, 48, 64},
        {160, 112, 224, 24, 64, 64},   {128, 128, 256, 24, 64, 64},   {112, 144, 288, 32, 64, 64},
        {256, 160, 320, 32, 128, 128}, {256, 160, 320, 32, 128, 128}, {384, 192, 384, 48, 128, 128},
    };
    map x = image(z, REAL_SIDE);

    conv_bn_relu(z, "stem0", &x, 64, 7, 2);
    pool(z, "MaxPool", "stem/pool0", &x, x.side / 2, 3);
    conv_bn_relu(z, "stem1", &x, 64, 1, 1);
    conv_bn_relu(z, "stem2", &x, 192, 3, 1);
    pool(z, "MaxPool", "stem/pool1", &x, x.side / 2, 3);
    for (int i = 0; i < 9; i++) {
        if (i == 2 || i == 7)
            pool(z, "MaxPool", i == 2 ? "pool3" : "pool4", &x, x.side / 2, 3);
        googlenet_module(z, i, &x, module[i]);
    }
    return classify(z, &x, REAL_CLASSES);
}

/* ---- ResNet-18 ---- */

static void residual_block(zoo_net *z, int number, map *x, int64_t channels, int64_t stride)
{
    char base[ZOO_NAME];
    map skip = *x;

    if (stride > 1) {
        zoo_name_format(base, sizeof base, "R%d/down", number);
        conv_bn(z, base, &skip, channels, 1, stride);
    }
    zoo_name_format(base, sizeof base, "R%d/c0", number);
    conv_bn_relu(z, base, x, channels, 3, stride);
    zoo_name_format(base, sizeof base, "R%d/c1", number);
    conv_bn(z, base, x, channels, 3, 1);
    zoo_name_format(base, sizeof base, "R%d/add", number);
    pointwise(z, "Add", base, x, skip.name, 0);
    zoo_name_format(base, sizeof base, "R%d/relu", number);
    pointwise(z, "Relu", base, x, NULL, 0);
}

int zoo_resnet18(zoo_net *z)
{
    map x = image(z, REAL_SIDE);

    conv_bn_relu(z, "stem", &x, 64, 7, 2);
    pool(z, "MaxPool", "stem/pool", &x, x.side / 2, 3);
    for (int i = 0; i < 8; i++)
        residual_block(z, i, &x, 64 << i / 2, i && i % 2 == 0 ? 2 : 1);
    return classify(z, &x, REAL_CLASSES);
}
