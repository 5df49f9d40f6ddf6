/* Graphs of any size in a few shapes, on four kinds of devices. */
#include "support/shapes.h"

#include <moirai/moirai.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES 40 /* distinct sizes of tensors */

const char *const shape_name[SHAPES] = {"chain", "fork-join", "layered", "transformer", "one-block"};

static uint64_t state = 1;

static uint32_t draw(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static void add_op(moirai_graph_builder *b, int32_t i, int n_inputs, const int32_t *input)
{
    char name[32], tensor[32];
    snprintf(name, sizeof name, "op%d", i);
    int32_t op = moirai_graph_builder_op(b, name, "MatMul");
    for (int j = 0; j < n_inputs; j++) {
        snprintf(tensor, sizeof tensor, "t%d", input[j]);
        moirai_graph_builder_input(b, op, tensor);
    }
    snprintf(tensor, sizeof tensor, "t%d", i);
    int64_t size = 4096 * (1 + (int64_t)draw(SIZES));
    moirai_graph_builder_output(b, op, tensor, size);
    moirai_graph_builder_cost(b, op, 1000, 0, 20000000 * (1 + (int64_t)draw(8)), 4 * size);
}

/* A transformer whose layers take a mask of their own from the first operator, by two more: these float beside all layers
 * before, so that nothing is a cut. Norm, mask, its scale, 8 heads of three in a row whose second reads the mask, join,
 * two more. */
static int inputs_of_masked(int32_t i, int32_t *input)
{
    int32_t at = (i - 1) % 30, base = i - at, head = (at - 3) % 3;
    if (at == 0 || at >= 28) {
        input[0] = i - 1;
        return 1;
    }
    if (at <= 2) {
        input[0] = at == 1 ? 0 : base + 1;
        return 1;
    }
    if (at == 27) {
        for (int32_t h = 0; h < 8; h++)
            input[h] = base + 5 + 3 * h;
        return 8;
    }
    input[0] = head == 0 ? base : i - 1;
    input[1] = base + 2;
    return head == 1 ? 2 : 1;
}

/* The inputs of operator i of n in a graph of this shape. */
static int inputs_of(const char *shape, int32_t i, int32_t n, int32_t *input)
{
    if (i == 0)
        return 0;
    if (!strcmp(shape, "chain")) {
        input[0] = i - 1;
        return 1;
    }
    if (!strcmp(shape, "fork-join")) { /* stages of one fork, eight branches, one join */
        int32_t at = i % 10, base = i - at;
        if (at == 0 || at == 9 || i == n - 1) {
            int count = 0;
            for (int32_t j = at == 0 ? i - 1 : base + 1; j < i; j++)
                input[count++] = j;
            return count;
        }
        input[0] = base;
        return 1;
    }
    if (!strcmp(shape, "layered")) { /* width 20, two inputs from the layer before */
        int32_t layer = i / 20, first = layer > 0 ? (layer - 1) * 20 : 0, width = layer > 0 ? 20 : i;
        input[0] = first + (int32_t)draw((uint32_t)width);
        input[1] = first + (int32_t)draw((uint32_t)width);
        return input[0] == input[1] ? 1 : 2;
    }
    if (!strcmp(shape, "transformer")) { /* norm, 8 heads of three in a row, join, two more */
        int32_t at = i % 28, base = i - at;
        input[0] = at == 0 || at >= 26 ? i - 1 : (at - 1) % 3 == 0 && at < 25 ? base : i - 1;
        if (at != 25)
            return 1;
        for (int32_t h = 0; h < 8; h++)
            input[h] = base + 3 + 3 * h;
        return 8;
    }
    if (!strcmp(shape, "masked"))
        return inputs_of_masked(i, input);
    input[0] = (int32_t)draw((uint32_t)i); /* one block: anything may read anything before it */
    input[1] = (int32_t)draw((uint32_t)i);
    return input[0] == input[1] ? 1 : 2;
}

/* Towers side by side that nothing joins, each a transformer with the numbers of the first. */
static void add_towers(moirai_graph_builder *b, int32_t n, int32_t towers)
{
    int32_t height = n / towers, input[16] = {0};
    for (int32_t i = 0; i < height * towers; i++) {
        if (i % height == 0)
            state = 12345;
        int count = inputs_of("transformer", i % height, height, input);
        for (int j = 0; j < count; j++)
            input[j] += i / height * height;
        add_op(b, i, count, input);
    }
}

/* One beside the other; the last reads all others, or a first one is read by them. */
static bool add_beside(moirai_graph_builder *b, const char *shape, int32_t n)
{
    bool joined = !strcmp(shape, "into-one"), forked = !strcmp(shape, "wide");
    int32_t *input = !joined && !forked && strcmp(shape, "side") ? NULL : malloc(sizeof *input * (size_t)(n + 1));
    if (!input)
        return false;
    for (int32_t i = 0; i < n; i++)
        input[i] = i;
    for (int32_t i = 0; i < n; i++)
        add_op(b, i, i == n - 1 && (joined || forked) ? i : forked && i > 0, input);
    free(input);
    return true;
}

static void add_shape(moirai_graph_builder *b, const char *shape, int32_t n)
{
    int32_t input[16] = {0};
    if (add_beside(b, shape, n))
        return;
    if (!strcmp(shape, "two-towers") || !strcmp(shape, "ten-towers")) {
        add_towers(b, n, shape[1] == 'w' ? 2 : 10);
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        int count = inputs_of(shape, i, n, input);
        add_op(b, i, count, input);
    }
}

int shape_problem(moirai_problem **out, const char *shape, int32_t n, int devices)
{
    static const char *const types[] = {"v100", "p100", "t4", "p4"};
    char text[200] = "";
    moirai_graph_builder *b;
    moirai_graph *g = NULL;
    moirai_cluster *c = NULL;
    int rc = moirai_graph_builder_new(&b, shape);
    state = 12345;
    if (rc == 0)
        add_shape(b, shape, n);
    if (rc == 0)
        rc = moirai_graph_builder_finish(&g, b);
    for (int i = 0; i < 4; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%dx %s, ", devices / 4, types[i]);
    strcat(text, "100Gbps 5us");
    if (rc == 0)
        rc = moirai_cluster_open(&c, text);
    moirai_problem_options o = {.cost_model = "roofline",
                                .flow = !strcmp(shape, "masked") ? MOIRAI_FLOW_EDGE : MOIRAI_FLOW_TENSOR};
    if (rc == 0)
        rc = moirai_problem_new(out, g, c, &o);
    moirai_graph_free(g);
    moirai_cluster_free(c);
    return rc;
}
