/* Graphs at random: layers, sparse ones, series-parallel ones, trees. */
#include "generate/dag.h"

/* Layers of widths around the square root of n; an operator reads one to three of the layer before, and one in ten
 * reads an older one as well. */
void generate_layered(generate_dag *d, int32_t n)
{
    int32_t mean = 2, first = 0, before = 0;
    while (mean * mean < n)
        mean++;
    mean = mean * generate_between(d, 500, 2000) / 1000;
    mean = UTIL_MAX(2, mean);
    while ((int32_t)d->n_ops < n && !d->result) {
        int32_t begin = (int32_t)d->n_ops, width = generate_between(d, UTIL_MAX(1, mean / 2), mean + mean / 2);
        width = UTIL_MIN(width, n - begin);
        for (int32_t i = 0; i < width; i++) {
            int32_t op = generate_any(d), reads = before ? generate_between(d, 1, 3) : 0;
            for (int32_t r = 0; r < reads; r++)
                generate_edge(d, first + generate_draw(d, before), op);
            if (first > 0 && generate_draw(d, 10) == 0)
                generate_edge(d, generate_draw(d, first), op);
        }
        first = begin;
        before = width;
    }
}

/* An operator reads up to three of all that came before; half of the problems keep to the latest hundred. */
void generate_sparse(generate_dag *d, int32_t n)
{
    int32_t reach = generate_draw(d, 2) ? n : 100;
    for (int32_t i = 0; i < n && !d->result; i++) {
        int32_t op = generate_any(d), reads = i ? generate_draw(d, 4) : 0, near = UTIL_MIN(i, reach);
        for (int32_t r = 0; r < reads; r++)
            generate_edge(d, i - 1 - generate_draw(d, near), op);
    }
}

/* A part of about n operators between its first operator, which exists, and its last, which it returns. Parts are cut in
 * two, one after the other, or in two to five side by side. */
static int32_t add_part(generate_dag *d, int32_t first, int32_t n)
{
    int32_t last;
    if (n <= 3) {
        for (last = first; n > 0; n--) {
            int32_t op = generate_any(d);
            generate_edge(d, last, op);
            last = op;
        }
        return last;
    }
    if (generate_draw(d, 3) == 0) {
        int32_t left = generate_between(d, n / 4, n - n / 4);
        return add_part(d, add_part(d, first, left), n - left);
    }
    int32_t branches = generate_between(d, 2, 5), end[5];
    for (int32_t b = 0; b < branches; b++) {
        int32_t rest = n - 1, own = b + 1 < branches ? generate_between(d, 1, UTIL_MAX(1, 2 * rest / branches)) : rest;
        own = UTIL_MAX(1, UTIL_MIN(own, rest));
        end[b] = add_part(d, first, own);
        n -= own;
        if (n <= 1)
            branches = b + 1;
    }
    last = generate_any(d);
    for (int32_t b = 0; b < branches; b++)
        generate_edge(d, end[b], last);
    return last;
}

void generate_series_parallel(generate_dag *d, int32_t n)
{
    add_part(d, generate_any(d), n - 1);
}

/* The parent of node i: of a full tree, or, in half of the problems, any of the nodes before it that is not much
 * older, which makes some branches long and thin and others bushy. */
static void add_tree(generate_dag *d, int32_t n, bool out)
{
    int32_t arity = generate_between(d, 2, 6);
    bool full = generate_draw(d, 2);
    for (int32_t i = 0; i < n && !d->result; i++) {
        int32_t op = generate_any(d);
        int32_t parent = full ? (i - 1) / arity : i / 2 + generate_draw(d, UTIL_MAX(1, i - i / 2));
        if (i)
            generate_edge(d, out ? parent : op, out ? op : parent);
    }
}

void generate_out_tree(generate_dag *d, int32_t n)
{
    add_tree(d, n, true);
}

void generate_in_tree(generate_dag *d, int32_t n)
{
    add_tree(d, n, false);
}
