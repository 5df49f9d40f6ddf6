/* Graphs that look like grids: wavefronts, stencils over time, ladders, and cells in a row. */
#include "generate/dag.h"

enum { MOST_WIDTH = 512 };

/* A rectangle about `stretch` times as long as it is wide. */
static int32_t width_of(int32_t n, int32_t stretch)
{
    int32_t w = 2;
    while (w < MOST_WIDTH && (w + 1) * (w + 1) * stretch <= n)
        w++;
    return w;
}

/* Dynamic programming over a rectangle: a cell reads those above and to the left, in half of the problems the one
 * between, too. */
void generate_wavefront(generate_dag *d, int32_t n)
{
    int32_t w = width_of(n, generate_between(d, 1, 4)), above[MOST_WIDTH] = {0};
    bool corner = generate_draw(d, 2);
    for (int32_t y = 0; y < UTIL_MAX(2, n / w); y++) {
        int32_t left = MOIRAI_NONE, slanted = MOIRAI_NONE;
        for (int32_t x = 0; x < w; x++) {
            int32_t op = generate_add(d, (x / 4 + y / 4) % GENERATE_KINDS, 1000);
            if (y)
                generate_edge(d, above[x], op);
            if (x)
                generate_edge(d, left, op);
            if (corner && x && y)
                generate_edge(d, slanted, op);
            slanted = above[x];
            left = above[x] = op;
        }
    }
}

/* Points on a line (in half of the problems on a ring) over time: each reads itself and its neighbours a step ago. */
void generate_stencil(generate_dag *d, int32_t n)
{
    int32_t w = width_of(n, generate_between(d, 1, 4)), before[MOST_WIDTH] = {0}, now[MOST_WIDTH];
    bool ring = w > 2 && generate_draw(d, 2);
    for (int32_t step = 0; step < UTIL_MAX(2, n / w); step++) {
        for (int32_t x = 0; x < w; x++) {
            now[x] = generate_any(d);
            for (int32_t o = -1; o <= 1 && step; o++)
                if (ring || (x + o >= 0 && x + o < w))
                    generate_edge(d, before[(x + o + w) % w], now[x]);
        }
        for (int32_t x = 0; x < w; x++)
            before[x] = now[x];
    }
}

/* Two to four rails in parallel; every few operators a rung from one to the next. */
void generate_ladders(generate_dag *d, int32_t n)
{
    int32_t rails = generate_between(d, 2, 4), apart = generate_between(d, 1, 6), last[4];
    for (int32_t i = 0; i < UTIL_MAX(1, n / rails); i++)
        for (int32_t r = 0; r < rails; r++) {
            int32_t op = generate_add(d, r, 1000);
            if (i)
                generate_edge(d, last[r], op);
            if (r && i % apart == 0)
                generate_edge(d, last[r - 1], op);
            last[r] = op;
        }
}

/* A cell reads the two before it: four to six sums of two operators each, of which any may read any sum before it in
 * the cell, then all together. All cells of a network are alike. */
void generate_cells(generate_dag *d, int32_t n)
{
    int32_t sums = generate_between(d, 4, 6), from[6][2], kind[6][2], older = generate_any(d), last = generate_any(d);
    generate_edge(d, older, last);
    for (int32_t s = 0; s < sums; s++)
        for (int32_t side = 0; side < 2; side++) {
            from[s][side] = generate_draw(d, 2 + s);
            kind[s][side] = generate_draw(d, GENERATE_KINDS);
        }
    while ((int32_t)d->n_ops + 3 * sums + 1 <= UTIL_MAX(n, 3 * sums + 3) && !d->result) {
        int32_t value[8] = {older, last};
        for (int32_t s = 0; s < sums; s++) {
            int32_t half[2];
            for (int32_t side = 0; side < 2; side++) {
                half[side] = generate_add(d, kind[s][side], 1000);
                generate_edge(d, value[from[s][side]], half[side]);
            }
            value[2 + s] = generate_add(d, 3, 200);
            generate_edge(d, half[0], value[2 + s]);
            generate_edge(d, half[1], value[2 + s]);
        }
        older = last;
        last = generate_add(d, 0, 300);
        for (int32_t s = 0; s < sums; s++)
            generate_edge(d, value[2 + s], last);
    }
}
