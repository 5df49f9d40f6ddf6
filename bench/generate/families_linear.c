/* Linear algebra by tiles, and the fast Fourier transform. Kinds are the kernels; their works stand in the ratio of their
 * arithmetic. */
#include "generate/dag.h"

enum { MOST_TILES = 64, MOST_COLUMNS = 128, MOST_POINTS = 1024 };

/* The largest number of tiles whose tasks are no more than about n. */
static int32_t tiles_of(int32_t n, int64_t (*tasks)(int64_t), int32_t most)
{
    int32_t t = 2;
    while (t < most && tasks(t + 1) <= n + n / 10)
        t++;
    return t;
}

static int64_t cholesky_tasks(int64_t t)
{
    return t * (t + 1) * (t + 2) / 6;
}

static void reads_if_there(generate_dag *d, int32_t from, int32_t to)
{
    if (from != MOIRAI_NONE)
        generate_edge(d, from, to);
}

/* owner[i][j]: the task that wrote tile (i, j) last. */
void generate_cholesky(generate_dag *d, int32_t n)
{
    static int32_t owner[MOST_TILES][MOST_TILES];
    int32_t T = tiles_of(n, cholesky_tasks, MOST_TILES);
    for (int32_t i = 0; i < T; i++)
        for (int32_t j = 0; j < T; j++)
            owner[i][j] = MOIRAI_NONE;
    for (int32_t k = 0; k < T; k++) {
        int32_t factor = generate_add(d, 0, 400);
        reads_if_there(d, owner[k][k], factor);
        for (int32_t i = k + 1; i < T; i++) {
            int32_t solve = generate_add(d, 1, 1000);
            generate_edge(d, factor, solve);
            reads_if_there(d, owner[i][k], solve);
            owner[i][k] = solve;
        }
        for (int32_t i = k + 1; i < T; i++)
            for (int32_t j = k + 1; j <= i; j++) {
                int32_t update = generate_add(d, i == j ? 2 : 3, i == j ? 1000 : 2000);
                generate_edge(d, owner[i][k], update);
                if (i != j)
                    generate_edge(d, owner[j][k], update);
                reads_if_there(d, owner[i][j], update);
                owner[i][j] = update;
            }
    }
}

static int64_t lu_tasks(int64_t t)
{
    return t * (t + 1) * (2 * t + 1) / 6;
}

void generate_lu(generate_dag *d, int32_t n)
{
    static int32_t owner[MOST_TILES][MOST_TILES];
    int32_t T = tiles_of(n, lu_tasks, MOST_TILES);
    for (int32_t i = 0; i < T; i++)
        for (int32_t j = 0; j < T; j++)
            owner[i][j] = MOIRAI_NONE;
    for (int32_t k = 0; k < T; k++) {
        int32_t factor = generate_add(d, 0, 700);
        reads_if_there(d, owner[k][k], factor);
        for (int32_t i = k + 1; i < T; i++) {
            int32_t column = generate_add(d, 1, 1000), line = generate_add(d, 2, 1000);
            generate_edge(d, factor, column);
            generate_edge(d, factor, line);
            reads_if_there(d, owner[i][k], column);
            reads_if_there(d, owner[k][i], line);
            owner[i][k] = column;
            owner[k][i] = line;
        }
        for (int32_t i = k + 1; i < T; i++)
            for (int32_t j = k + 1; j < T; j++) {
                int32_t update = generate_add(d, 3, 2000);
                generate_edge(d, owner[i][k], update);
                generate_edge(d, owner[k][j], update);
                reads_if_there(d, owner[i][j], update);
                owner[i][j] = update;
            }
    }
}

static int64_t gauss_tasks(int64_t t)
{
    return t * (t + 1) / 2 - 1;
}

/* Elimination by columns: the pivot of column k, then an update of every column behind it, whose work shrinks. */
void generate_gauss(generate_dag *d, int32_t n)
{
    int32_t T = tiles_of(n, gauss_tasks, MOST_COLUMNS), column[MOST_COLUMNS];
    for (int32_t j = 0; j < T; j++)
        column[j] = MOIRAI_NONE;
    for (int32_t k = 0; k + 1 < T; k++) {
        int32_t pivot = generate_add(d, k % 2, 200 + 1000 * (T - k) / T);
        reads_if_there(d, column[k], pivot);
        for (int32_t j = k + 1; j < T; j++) {
            int32_t update = generate_add(d, 2 + j % 2, 200 + 1200 * (T - k) / T);
            generate_edge(d, pivot, update);
            reads_if_there(d, column[j], update);
            column[j] = update;
        }
    }
}

/* The recursive calls as a tree of halves, then the butterflies; without the tree in half of the problems. */
void generate_fft(generate_dag *d, int32_t n)
{
    bool tree = generate_draw(d, 2);
    int32_t points = 4, levels = 2, last[MOST_POINTS];
    while (points < MOST_POINTS && 2 * points * (levels + (tree ? 3 : 2)) <= n + n / 3) {
        points *= 2;
        levels++;
    }
    for (int32_t i = 0; tree && i < 2 * points - 1; i++) {
        int32_t op = generate_add(d, 0, 500);
        if (i)
            generate_edge(d, (i - 1) / 2, op);
    }
    for (int32_t i = 0; i < points; i++)
        last[i] = tree ? points - 1 + i : generate_add(d, 0, 1000);
    for (int32_t span = 1; span < points; span *= 2) {
        int32_t now[MOST_POINTS];
        for (int32_t i = 0; i < points; i++) {
            now[i] = generate_add(d, 1 + (i & span ? 1 : 0) + (span > points / 4 ? 1 : 0), 1000);
            generate_edge(d, last[i], now[i]);
            generate_edge(d, last[i ^ span], now[i]);
        }
        for (int32_t i = 0; i < points; i++)
            last[i] = now[i];
    }
}
