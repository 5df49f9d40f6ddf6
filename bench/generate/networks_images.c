/* Networks of images that are not a row of blocks: several resolutions at once, cells, pyramids, U-Nets. After the
 * published ones (HRNet: Wang and others, 2019; NASNet and PNASNet: Zoph and others, Liu and others, 2018; FPN: Lin and others,
 * 2017; BiFPN: Tan and others, 2020; U-Net: Ronneberger and others, 2015; U-Net++: Zhou and others, 2018); widths, depths
 * and wiring vary. */
#include "generate/network.h"

#include <stdio.h>

enum { MOST_BRANCHES = 5, MOST_LEVELS = 7, MOST_SUMS = 5 };

static generate_value image(generate_net *n, int from, int to)
{
    int64_t side = 32 * (int64_t)generate_net_draw(n, from, to);
    return generate_input(n, "image", 3, side * side);
}

/* Branch j as branch i sees it: brought to its resolution and width. */
static generate_value exchanged(generate_net *n, generate_value x, int from, int to, int64_t width, int64_t points)
{
    if (from > to)
        return generate_resize(n, generate_conv(n, x, width, 1, 1, false), points);
    for (int step = from; step < to; step++)
        x = generate_conv(n, x, step + 1 < to ? x.channels : width, 3, 2, step + 1 < to);
    return x;
}

static void multi_resolution_module(generate_net *n, generate_value *x, int branches, int blocks)
{
    generate_value out[MOST_BRANCHES];
    for (int b = 0; b < branches; b++)
        for (int i = 0; i < blocks; i++)
            x[b] = generate_residual(n, x[b], x[b].channels, 1, false);
    for (int to = 0; to < branches; to++) {
        generate_value part[MOST_BRANCHES];
        for (int from = 0; from < branches; from++)
            part[from] = exchanged(n, x[from], from, to, x[to].channels, x[to].points);
        out[to] = generate_each(n, "Relu", generate_sum(n, part, branches), NULL);
    }
    for (int b = 0; b < branches; b++)
        x[b] = out[b];
}

void generate_multi_resolution(generate_net *n)
{
    int branches = n->size ? generate_net_draw(n, 4, 3 + n->size) : 3;
    int blocks = generate_net_draw(n, 2, 2 + 2 * n->size);
    int64_t width = 6 * (int64_t)generate_net_draw(n, 3, 8);
    generate_value x[MOST_BRANCHES], first = image(n, 7, 12 + 4 * n->size);
    first = generate_conv(n, generate_conv(n, first, 64, 3, 2, true), 64, 3, 2, true);
    for (int i = 0; i < 2; i++)
        first = generate_residual(n, first, 256, 1, true);
    x[0] = generate_conv(n, first, width, 3, 1, true);
    for (int stage = 1; stage < branches; stage++) {
        x[stage] = generate_conv(n, stage == 1 ? first : x[stage - 1], width << stage, 3, 2, true);
        int modules = generate_net_draw(n, 1, stage == 1 ? 1 : 1 + 2 * n->size);
        for (int m = 0; m < modules; m++)
            multi_resolution_module(n, x, stage + 1, blocks);
    }
    for (int b = 1; b < branches; b++)
        x[b] = generate_resize(n, x[b], x[0].points);
    generate_value all = generate_concat(n, x, branches);
    generate_conv(n, generate_conv(n, all, all.channels / 2, 1, 1, true), 19, 1, 1, false);
}

/* What a cell of a searched network does between two of its values. */
typedef struct cell_step {
    int from[2], what[2];
} cell_step;

static generate_value cell_operator(generate_net *n, generate_value x, int what, int64_t channels, int stride)
{
    if (what == 0)
        return stride == 1 && x.channels == channels ? x : generate_conv(n, x, channels, 1, stride, false);
    if (what == 1)
        return generate_pool(n, x.channels == channels ? x : generate_conv(n, x, channels, 1, 1, false), 3, stride);
    int kernel = 2 * what - 1; /* 3, 5, 7 */
    return generate_separable(n, generate_separable(n, x, channels, kernel, stride), channels, kernel, 1);
}

/* Reads the last two cells, which are brought to one width and resolution first. */
static generate_value cell(generate_net *n, const cell_step *step, int sums, const generate_value last[2],
                           int64_t channels, int stride)
{
    generate_value value[2 + MOST_SUMS], out[MOST_SUMS];
    int n_out = 0;
    bool read[2 + MOST_SUMS] = {0};
    value[0] = generate_conv(n, last[0], channels, 1, last[0].points > last[1].points ? 2 : 1, false);
    value[1] = generate_conv(n, last[1], channels, 1, 1, false);
    for (int s = 0; s < sums; s++) {
        generate_value half[2];
        for (int side = 0; side < 2; side++) {
            int from = step[s].from[side];
            read[from] = true;
            half[side] = cell_operator(n, value[from], step[s].what[side], channels, from < 2 ? stride : 1);
        }
        value[2 + s] = generate_each(n, "Add", half[0], &half[1]);
    }
    for (int s = 0; s < sums; s++)
        if (!read[2 + s])
            out[n_out++] = value[2 + s];
    return generate_concat(n, out, n_out);
}

void generate_searched_cells(generate_net *n)
{
    cell_step step[2][MOST_SUMS]; /* of plain cells and of those that halve the resolution */
    int sums = generate_net_draw(n, 4, MOST_SUMS), repeats = generate_net_draw(n, 1 + n->size, 2 + 2 * n->size);
    int64_t channels = 11 * (int64_t)generate_net_draw(n, 2, 6 + 2 * n->size);
    for (int kind = 0; kind < 2; kind++)
        for (int s = 0; s < sums; s++)
            for (int side = 0; side < 2; side++) {
                step[kind][s].from[side] = generate_net_draw(n, 0, 1 + s);
                step[kind][s].what[side] = generate_net_draw(n, side ? 0 : 1, 4);
            }
    generate_value x = image(n, 7, 10), last[2];
    last[0] = generate_conv(n, x, 32, 3, 2, true);
    last[1] = generate_conv(n, last[0], channels, 3, 2, true);
    for (int stage = 0; stage < 3; stage++)
        for (int i = 0; i <= repeats; i++) {
            int kind = i == repeats;
            if (kind && stage == 2)
                break;
            generate_value next = cell(n, step[kind], sums, last, channels << (stage + kind), kind ? 2 : 1);
            last[0] = last[1];
            last[1] = next;
        }
    generate_linear(n, generate_global_pool(n, generate_each(n, "Relu", last[1], NULL)), 1000);
}

/* A resolution of the pyramid made of those beside it. */
static generate_value fused(generate_net *n, generate_value x, const generate_value *other, const generate_value *third)
{
    generate_value part[3] = {x};
    int count = 1;
    part[count++] = other->points < x.points ? generate_resize(n, *other, x.points) : generate_pool(n, *other, 3, 2);
    if (third)
        part[count++] = *third;
    return generate_separable(n, generate_sum(n, part, count), x.channels, 3, 1);
}

static void pyramid_layer(generate_net *n, generate_value *x, int levels, bool both_ways)
{
    generate_value down[MOST_LEVELS];
    down[levels - 1] = x[levels - 1];
    for (int l = levels - 2; l >= 0; l--)
        down[l] = fused(n, x[l], &down[l + 1], NULL);
    for (int l = 1; l < levels && both_ways; l++)
        down[l] = fused(n, x[l], &down[l - 1], l + 1 < levels ? &down[l] : NULL);
    for (int l = 0; l < levels; l++)
        x[l] = down[l];
}

void generate_pyramid(generate_net *n)
{
    bool both_ways = generate_net_draw(n, 0, 1), narrow = n->size > 0;
    int levels = generate_net_draw(n, 4, 6), depth = generate_net_draw(n, 1 + n->size, 2 + 2 * n->size);
    int layers = both_ways ? generate_net_draw(n, 2, 3 + 2 * n->size) : 1, heads = generate_net_draw(n, 2, 4);
    int64_t width = 32 * (int64_t)generate_net_draw(n, 2, 8);
    generate_value x = image(n, 10, 20), level[MOST_LEVELS];
    x = generate_pool(n, generate_conv(n, x, 64, 7, 2, true), 3, 2);
    for (int l = 0; l < levels; l++) {
        int blocks = l < 3 ? depth : 1;
        for (int i = 0; i < blocks; i++)
            x = generate_residual(n, x, (narrow ? 256 : 64) << UTIL_MIN(l, 3), i == 0 && l ? 2 : 1, narrow);
        level[l] = generate_conv(n, x, width, 1, 1, false);
    }
    for (int i = 0; i < layers; i++)
        pyramid_layer(n, level, levels, both_ways);
    for (int l = 0; l < levels; l++)
        for (int task = 0; task < 2; task++) {
            generate_value y = level[l];
            for (int i = 0; i < heads; i++)
                y = generate_conv(n, y, width, 3, 1, true);
            generate_conv(n, y, task ? 36 : 720, 3, 1, false);
        }
}

/* Column 0 goes down, every later column up: with one column per level that is U-Net, with all of them U-Net++. */
void generate_unet(generate_net *n)
{
    bool nested = n->size == 2 || generate_net_draw(n, 0, 1);
    int levels = generate_net_draw(n, 4 + n->size / 2, 5 + n->size / 2), convs = generate_net_draw(n, 2, 2 + n->size);
    int64_t width = 8 * (int64_t)generate_net_draw(n, 3, 8);
    generate_value node[MOST_LEVELS][MOST_LEVELS], x = image(n, 4, 8 + 4 * n->size);
    for (int l = 0; l < levels; l++) {
        x = l ? generate_pool(n, x, 2, 2) : x;
        for (int i = 0; i < convs; i++)
            x = generate_conv(n, x, width << l, 3, 1, true);
        node[l][0] = x;
    }
    for (int column = 1; column < levels; column++)
        for (int l = levels - 1 - column; l >= (nested ? 0 : levels - 1 - column); l--) {
            generate_value part[MOST_LEVELS + 1];
            int count = 0;
            for (int c = 0; c < (nested ? column : 1); c++)
                part[count++] = node[l][c];
            part[count++] = generate_resize(n, node[l + 1][column - 1], node[l][0].points);
            x = generate_concat(n, part, count);
            for (int i = 0; i < convs; i++)
                x = generate_conv(n, x, width << l, 3, 1, true);
            node[l][column] = x;
        }
    generate_conv(n, node[0][levels - 1], 2, 1, 1, false);
}
