/* Pieces of irregular networks, on the zoo's operators. Private to the generator.
 *
 * A value is what passes between operators: an image of so many channels and points, or as many rows of that width.
 * Operators get numbers for names; the first failure sticks. */
#ifndef MOIRAI_GENERATE_NETWORK_H
#define MOIRAI_GENERATE_NETWORK_H

#include <moirai/problem.h>

#include "util/util.h"
#include "zoo/zoo_net.h"

typedef struct generate_net {
    zoo_net z;
    util_rng rng;
    int32_t size; /* 0 small, 1 medium, 2 large */
    int32_t n_ops;
    int64_t memory_bytes, least_memory_bytes; /* of all devices together, and of the smallest */
} generate_net;

typedef struct generate_value {
    char name[32];
    int64_t channels, points;
} generate_value;

/* from..to, both included. */
int32_t generate_net_draw(generate_net *n, int32_t from, int32_t to);

generate_value generate_input(generate_net *n, const char *name, int64_t channels, int64_t points);
/* Convolution (same padding), batch norm and, if asked, an activation. */
generate_value generate_conv(generate_net *n, generate_value x, int64_t channels, int kernel, int stride, bool act);
/* Activation, convolution per channel, convolution of points, batch norm. */
generate_value generate_separable(generate_net *n, generate_value x, int64_t channels, int kernel, int stride);
generate_value generate_pool(generate_net *n, generate_value x, int kernel, int stride);
generate_value generate_global_pool(generate_net *n, generate_value x);
generate_value generate_resize(generate_net *n, generate_value x, int64_t points);
/* An operator on each element of one value, or of two (`y` NULL: one). */
generate_value generate_each(generate_net *n, const char *type, generate_value x, const generate_value *y);
/* So many of the rows of x, chosen or summed up (`y` as above). */
generate_value generate_rows(generate_net *n, const char *type, generate_value x, const generate_value *y,
                             int64_t points);
generate_value generate_concat(generate_net *n, const generate_value *x, int count);
/* The sum of all, two at a time. */
generate_value generate_sum(generate_net *n, const generate_value *x, int count);
/* Rows times a matrix of weights, and the bias. */
generate_value generate_linear(generate_net *n, generate_value x, int64_t width);
/* Rows of x times those of y: one number per head and pair of rows; and those times the rows of y again. */
generate_value generate_product(generate_net *n, generate_value x, generate_value y, int64_t channels, int64_t points,
                                int64_t flops);
/* Rows of a table of `rows` lines: a network's embedding of so many indices. */
generate_value generate_lookup(generate_net *n, const char *input, int64_t rows, int64_t width, int64_t indices);
/* Residual blocks of convolutions: two of 3, or 1, 3 and 1 with a quarter of the channels. */
generate_value generate_residual(generate_net *n, generate_value x, int64_t channels, int stride, bool narrow);
/* Attention of x on `memory` (x itself where NULL), with its residual; and the two products behind it. */
generate_value generate_attention(generate_net *n, generate_value x, const generate_value *memory, int64_t heads);
generate_value generate_feed_forward(generate_net *n, generate_value x, int64_t width);

/* The networks. */
typedef void generate_network_fn(generate_net *n);
generate_network_fn generate_multi_resolution, generate_searched_cells, generate_pyramid, generate_unet;
generate_network_fn generate_towers, generate_experts, generate_recommender, generate_ensemble;

/* What the parts of a network's name ask for. */
typedef struct generate_network_setting {
    const char *name;    /* all of it */
    const char *cluster; /* a testbed's name, or NULL: n_devices drawn ones */
    int32_t size, n_devices;
    bool fitted, coarse;
    uint64_t seed;
} generate_network_setting;

/* The network on that cluster as a problem. */
int generate_network_problem(moirai_problem **out, generate_network_fn *network, const generate_network_setting *s);

#endif
