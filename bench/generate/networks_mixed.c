/* Networks with work side by side: towers that meet at the end, mixtures of experts, recommenders, ensembles. After CLIP
 * (Radford and others, 2021), Switch Transformers (Fedus and others, 2022) and DLRM (Naumov and others, 2019); widths,
 * depths and numbers of parts vary. */
#include "generate/network.h"

#include <stdio.h>

enum { MOST_TABLES = 800, MOST_EXPERTS = 32, MOST_MEMBERS = 8 };

/* A transformer over so many rows, summed up in one row. */
static generate_value tower(generate_net *n, const char *input, int layers, int64_t heads, int64_t rows)
{
    generate_value x = generate_linear(n, generate_input(n, input, 768, rows), 64 * heads);
    for (int i = 0; i < layers; i++)
        x = generate_feed_forward(n, generate_attention(n, x, NULL, heads), 4 * x.channels);
    return generate_global_pool(n, x);
}

void generate_towers(generate_net *n)
{
    static const char *const input[3] = {"picture", "text", "sound"};
    int count = generate_net_draw(n, 2, 3);
    generate_value end[3];
    for (int t = 0; t < count; t++) {
        int layers = generate_net_draw(n, 4 + 4 * n->size, 8 + 8 * n->size), heads = generate_net_draw(n, 6, 16);
        int64_t rows = generate_net_draw(n, 50, t ? 128 : 256);
        end[t] = generate_linear(n, tower(n, input[t], layers, heads, rows), 512);
    }
    for (int t = 1; t < count; t++)
        generate_each(n, "Softmax", generate_product(n, end[t - 1], end[t], 1, 1, 1024), NULL);
}

/* Each expert gets some of the rows, one in four of them up to four times as many as others. */
static generate_value mixture(generate_net *n, generate_value x, int experts, int64_t width)
{
    generate_value part[MOST_EXPERTS + 1], gate = generate_each(n, "Softmax", generate_linear(n, x, experts), NULL);
    for (int e = 0; e < experts; e++) {
        int64_t rows = x.points * generate_net_draw(n, 1, generate_net_draw(n, 0, 3) ? 2 : 4) / experts;
        generate_value y = generate_rows(n, "Gather", x, &gate, UTIL_MAX(1, rows));
        y = generate_each(n, "Gelu", generate_linear(n, y, width), NULL);
        part[e] = generate_linear(n, y, x.channels);
    }
    part[experts] = x;
    return generate_sum(n, part, experts + 1);
}

void generate_experts(generate_net *n)
{
    int layers = generate_net_draw(n, 4 + 2 * n->size, 6 + 4 * n->size), experts = 4 << generate_net_draw(n, 0, 3);
    int every = generate_net_draw(n, 1, 2);
    int64_t heads = generate_net_draw(n, 6, 16), rows = 128 << generate_net_draw(n, 0, 3);
    generate_value x = generate_lookup(n, "tokens", 32000, 64 * heads, rows);
    for (int i = 0; i < layers; i++) {
        x = generate_attention(n, x, NULL, heads);
        x = i % every ? generate_feed_forward(n, x, 4 * x.channels) : mixture(n, x, experts, 4 * x.channels);
    }
    generate_linear(n, x, 32000);
}

static generate_value dense(generate_net *n, generate_value x, int layers, int64_t width)
{
    for (int i = 0; i < layers; i++)
        x = generate_each(n, "Relu", generate_linear(n, x, width), NULL);
    return x;
}

/* Lines of each table: very different lengths, one in ten much longer, which fill 10 to 60 % of the cluster's memory. */
static void draw_tables(generate_net *n, int64_t *rows, int tables, int64_t width)
{
    int64_t sum = 0, share = n->memory_bytes / 100 * generate_net_draw(n, 10, 60) / (4 * width);
    int64_t most = n->least_memory_bytes / 4 / (4 * width);
    for (int t = 0; t < tables; t++) {
        rows[t] = 1 << generate_net_draw(n, 0, 12);
        if (generate_net_draw(n, 0, 9) == 0)
            rows[t] *= 16;
        sum += rows[t];
    }
    for (int t = 0; t < tables; t++)
        rows[t] = UTIL_MIN(most, UTIL_MAX(10, share / sum * rows[t]));
}

/* Each table is looked up once or many times per sample, and summed. Features meet in pairs, or first in groups that
 * have layers of their own. */
void generate_recommender(generate_net *n)
{
    static const int tables_of[3][2] = {{30, 80}, {100, 300}, {400, MOST_TABLES}};
    static generate_value feature[MOST_TABLES + 1];
    int64_t rows[MOST_TABLES];
    int tables = generate_net_draw(n, tables_of[n->size][0], tables_of[n->size][1]);
    int group = generate_net_draw(n, 0, 1) ? generate_net_draw(n, 8, 24) : 0, count = 0;
    int64_t width = 16 << generate_net_draw(n, 0, 3), batch = 64 << generate_net_draw(n, 0, 4);
    draw_tables(n, rows, tables, width);
    for (int t = 0; t < tables; t++) {
        char input[32];
        snprintf(input, sizeof input, "index%d", t);
        int64_t times = 1 << generate_net_draw(n, 0, 4);
        feature[t] = generate_lookup(n, input, rows[t], width, batch * times);
        if (times > 1)
            feature[t] = generate_rows(n, "ReduceSum", feature[t], NULL, batch);
    }
    for (int t = 0; t < tables && group; t += group)
        feature[count++] = dense(n, generate_concat(n, feature + t, UTIL_MIN(group, tables - t)), 2, 8 * width);
    count = group ? count : tables;
    feature[count++] = dense(n, generate_input(n, "numbers", 256, batch), 3, width);
    generate_value all = generate_concat(n, feature, count);
    int64_t pairs = (int64_t)count * (count - 1) / 2;
    generate_value met = generate_product(n, all, all, UTIL_MIN(pairs, 20000), batch, 2 * pairs * width * batch);
    generate_linear(n, dense(n, met, 3, 1024), 1);
}

/* Members of different depths and widths on one picture, and their mean. */
void generate_ensemble(generate_net *n)
{
    int members = generate_net_draw(n, 3, MOST_MEMBERS);
    int64_t side = 32 * (int64_t)generate_net_draw(n, 4, 8);
    generate_value picture = generate_input(n, "image", 3, side * side), vote[MOST_MEMBERS];
    for (int m = 0; m < members; m++) {
        int depth = generate_net_draw(n, 1 + n->size, 2 + 2 * n->size);
        int64_t width = 16 * (int64_t)generate_net_draw(n, 2, 6);
        bool narrow = generate_net_draw(n, 0, 1);
        generate_value x = generate_pool(n, generate_conv(n, picture, width, 7, 2, true), 3, 2);
        for (int stage = 0; stage < 4; stage++)
            for (int i = 0; i < depth; i++)
                x = generate_residual(n, x, (narrow ? 4 : 1) * width << stage, i == 0 && stage ? 2 : 1, narrow);
        vote[m] = generate_each(n, "Softmax", generate_linear(n, generate_global_pool(n, x), 1000), NULL);
    }
    generate_each(n, "Softmax", generate_sum(n, vote, members), NULL);
}
