/* The simplex of the masters beside HiGHS: programmes in the shape of masters (devices x buckets with the limit 0, one
 * kind of component, one column that widens all), each solved again after every four new columns.
 *
 * usage: bench_simplex [ROWS ...]     default: 48 96 192. Prints microseconds of processor time a solve, and the ratio. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <moirai/moirai.h>

#include "lp/lp.h"
#include "lp/simplex.h"
#include "util/util.h"

#define COLUMNS 160
#define BETWEEN 4 /* columns from one solve to the next */
#define MOST_ROWS PRICING_SIMPLEX_ROWS

static const util_stop never;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct entries {
    int32_t n, row[MOST_ROWS];
    double value[MOST_ROWS];
} entries;

/* theta first; then schedules, each of which uses about a fifth of the cells. */
static void draw(entries *c, int32_t rows, int32_t j, util_rng *rng)
{
    c->n = 0;
    for (int32_t r = 0; r < rows - 1; r++)
        if (j == 0 || util_rng_below(rng, 5) == 0) {
            c->row[c->n] = r;
            c->value[c->n++] = j == 0 ? -1 : 0.05 + util_rng_real(rng);
        }
    if (j > 0) {
        c->row[c->n] = rows - 1;
        c->value[c->n++] = 1;
    }
}

/* Seconds for all solves of one programme by either solver; the last value in *best. */
static double run(int32_t rows, uint64_t seed, bool own, double *best)
{
    double lower[MOST_ROWS], upper[MOST_ROWS], begun = seconds();
    for (int32_t r = 0; r < rows; r++) {
        lower[r] = r < rows - 1 ? -HUGE_VAL : 16;
        upper[r] = r < rows - 1 ? 0 : 16;
    }
    pricing_simplex *s = NULL;
    pricing_lp *lp = NULL;
    util_rng rng;
    util_rng_seed(&rng, seed);
    int rc = own ? pricing_simplex_new(&s, rows, lower, upper) : pricing_lp_new(&lp, rows, lower, upper);
    for (int32_t j = 0; j < COLUMNS && !rc; j++) {
        entries c;
        draw(&c, rows, j, &rng);
        rc = own ? pricing_simplex_add_column(s, j == 0, c.n, c.row, c.value)
                 : pricing_lp_add_column(lp, j == 0, c.n, c.row, c.value);
        if (rc || j < 8 || j % BETWEEN)
            continue;
        rc = own ? pricing_simplex_solve(s, &never, best, NULL, NULL) : pricing_lp_solve(lp, &never, best, NULL, NULL);
    }
    if (rc)
        fprintf(stderr, "bench_simplex: %s\n", moirai_error_message());
    pricing_simplex_free(s);
    pricing_lp_free(lp);
    return rc ? NAN : seconds() - begun;
}

static void compare(int32_t rows)
{
    double own_s = 0, highs_s = 0, own = 0, highs = 0, apart = 0;
    const int rounds = 20;
    for (int i = 0; i < rounds; i++) {
        own_s += run(rows, (uint64_t)i, true, &own);
        highs_s += run(rows, (uint64_t)i, false, &highs);
        apart = fmax(apart, fabs(own - highs) / highs);
    }
    double solves = rounds * ((COLUMNS - 8) / BETWEEN);
    printf("| %d | %.0f | %.0f | %.1f | %.1e |\n", rows, 1e6 * own_s / solves, 1e6 * highs_s / solves, highs_s / own_s,
           apart);
}

int main(int argc, char **argv)
{
    static const int32_t usual[] = {48, 96, 192};
    if (!pricing_lp_available()) {
        fprintf(stderr, "bench_simplex: this build has no HiGHS to compare with\n");
        return 1;
    }
    printf("| rows | simplex us | HiGHS us | ratio | values differ by |\n|---:|---:|---:|---:|---:|\n");
    for (int i = 1; i < argc; i++)
        if (atoi(argv[i]) > 1 && atoi(argv[i]) <= MOST_ROWS)
            compare(atoi(argv[i]));
    for (int i = 0; argc < 2 && i < 3; i++)
        compare(usual[i]);
    return 0;
}
