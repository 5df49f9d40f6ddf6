/* Colour refinement: the 96 projections of a layer's heads are one to a linear programme.
 *
 * A partition of operators is equitable if all members of a class have the same times and the same number of edges from
 * and to every class. A linear programme whose rows are built from times and edges alone then has an optimal solution
 * that is constant on classes: replace every variable of any solution by the mean over its class, and all rows still
 * hold (Grohe, Kersting, Mladenov, Selman 2014). So one variable per class is enough, at the same optimum. Transformers
 * shrink by the number of their heads.
 *
 * Classes are refined by sweeps along the topological order, forwards and backwards: a colour is a hash of the
 * operator's own colour and of the colours of its producers (readers), added up so that their order does not matter. A
 * sweep carries a difference through the whole depth of the graph, where rounds of plain refinement carry it one edge
 * far. It ends when a pair of sweeps splits nothing. A collision of two 64-bit hashes would merge classes wrongly:
 * whoever proves something from the solution has to prove it for the operators themselves (getf_prove.c does). */
#include "place/list/getf/colours.h"

#include <stdlib.h>
#include <string.h>

#include "util/util.h"

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t first_colour(const moirai_problem *p, int32_t op, bool plain)
{
    uint64_t h = mix(p->op_devices[op]);
    for (uint64_t open = p->op_devices[op]; open != 0; open &= open - 1)
        h = mix(h ^ (uint64_t)moirai_op_ns(p, op, __builtin_ctzll(open)));
    return plain || p->op_group[op] != MOIRAI_NONE ? mix((uint64_t)op ^ 0x5bd1e995u << 8) : h;
}

static void sweep_forwards(const moirai_problem *p, uint64_t *colour)
{
    for (int32_t r = 0; r < p->n_ops; r++) {
        int32_t i = p->topo[r];
        uint64_t sum = 0;
        for (int32_t j = p->op_in_off[i]; j < p->op_in_off[i + 1]; j++)
            sum += mix(colour[p->tensor_producer[p->op_in[j]]]);
        colour[i] = mix(colour[i] ^ mix(sum + 1));
    }
}

static void sweep_backwards(const moirai_problem *p, uint64_t *colour)
{
    for (int32_t r = p->n_ops - 1; r >= 0; r--) {
        int32_t i = p->topo[r];
        uint64_t sum = 0;
        for (int32_t j = p->op_out_off[i]; j < p->op_out_off[i + 1]; j++)
            for (int32_t e = p->tensor_edge_off[p->op_out[j]]; e < p->tensor_edge_off[p->op_out[j] + 1]; e++)
                sum += mix(colour[p->edge_reader[e]]);
        colour[i] = mix(colour[i] ^ mix(sum + 2));
    }
}

static int by_colour(const void *left, const void *right, void *data)
{
    const uint64_t *colour = data;
    uint64_t a = colour[*(const int32_t *)left], b = colour[*(const int32_t *)right];
    return a != b ? a < b ? -1 : 1 : 0;
}

/* Operators sorted by colour; returns how many colours there are. */
static int32_t sort_ops(const moirai_problem *p, uint64_t *colour, int32_t *order)
{
    int32_t n = p->n_ops > 0;
    for (int32_t i = 0; i < p->n_ops; i++)
        order[i] = i;
    qsort_r(order, (size_t)p->n_ops, sizeof *order, by_colour, colour);
    for (int32_t j = 1; j < p->n_ops; j++)
        n += colour[order[j]] != colour[order[j - 1]];
    return n;
}

/* Numbers in order of first appearance, so that they do not depend on hashes. */
static void number(place_colours *c, const moirai_problem *p, const uint64_t *colour, const int32_t *order,
                   int32_t *class_of)
{
    for (int32_t j = 0, class = -1; j < p->n_ops; j++) {
        class += j == 0 || colour[order[j]] != colour[order[j - 1]];
        class_of[order[j]] = class;
        c->size[class] = MOIRAI_NONE; /* for now: its number */
    }
    for (int32_t r = 0; r < p->n_ops; r++) {
        int32_t i = p->topo[r], class = class_of[i];
        if (c->size[class] == MOIRAI_NONE) {
            c->op[c->n] = i;
            c->size[class] = c->n++;
        }
        c->of[i] = c->size[class];
    }
    memset(c->size, 0, (size_t)c->n * sizeof *c->size);
    for (int32_t i = 0; i < p->n_ops; i++)
        c->size[c->of[i]]++;
}

int place_colours_find(place_colours *out, const moirai_problem *p, bool plain)
{
    size_t V = (size_t)p->n_ops;
    *out = (place_colours){.of = util_alloc(V, sizeof *out->of),
                           .op = util_alloc(V, sizeof *out->op),
                           .size = util_alloc(V, sizeof *out->size)};
    uint64_t *colour = util_alloc(V, sizeof *colour);
    int32_t *order = util_alloc(V, sizeof *order), *class_of = util_alloc(V, sizeof *class_of);
    bool ready = out->of && out->op && out->size && colour && order && class_of;
    for (int32_t i = 0; ready && i < p->n_ops; i++)
        colour[i] = first_colour(p, i, plain);
    for (int32_t n = -1, now = ready ? 0 : n; now > n;) {
        n = now;
        sweep_forwards(p, colour);
        sweep_backwards(p, colour);
        now = sort_ops(p, colour, order);
    }
    if (ready)
        number(out, p, colour, order, class_of);
    free(colour);
    free(order);
    free(class_of);
    if (!ready)
        place_colours_clear(out);
    return ready ? 0 : MOIRAI_EFAIL;
}

void place_colours_clear(place_colours *c)
{
    free(c->of);
    free(c->op);
    free(c->size);
    *c = (place_colours){0};
}
