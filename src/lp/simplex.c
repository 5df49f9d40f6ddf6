/* The primal simplex for the masters of the price search.
 *
 * A search of 20 s solves some 20,000 masters of about 100 rows and 125 columns, one after the other, each with a few
 * columns more than the last. A solver for large sparse programmes takes 0.3 ms for such a one before its first
 * iteration (it copies, scales, factorises) and 20 us for each; that was 40 % of all processor time. At this size the
 * textbook is faster: the inverse of the basis is kept as a whole, it stays from one solve to the next, and an iteration
 * is a few passes over 100 x 100 numbers that lie side by side.
 *
 * Every row has a logical variable, a x + s = 0 with -upper <= s <= -lower, so that the first basis is the identity. A
 * basis that breaks limits is led back by the sum of what is broken (phase 1), at costs that are found anew in each
 * iteration. From there on dual values and reduced costs follow the row of the inverse that changes, which the weights
 * need in any case. The inverse is made again from its columns after so many exchanges, and where the solution is not
 * one. The entering column is chosen by Devex weights (Forrest and Goldfarb 1992, "Steepest-edge simplex algorithms for
 * linear programming"), the leaving one by Harris' two passes: of all that block within a tolerance, the largest pivot.
 *
 * Most rows of a master have the limit 0, so that ties are everywhere. Each limit is moved out by a little of its own,
 * about 1e-7, which breaks them. Prices that come of it are as valid as any (docs/theory.md, Theorem 26). */
#include "lp/simplex.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lp/simplex_state.h"
#include "util/util.h"

#define NUDGE 1e-7 /* of limits, against ties */
#define RESIDUAL 1e-6
#define RENEW 150 /* exchanges after which the inverse is made again */
#define MOST_REPAIRS 3
#define MOST_ITERATIONS 20 /* times rows and columns */
#define STOP_EVERY 64      /* iterations between two questions to the stop */

void pricing_simplex_free(pricing_simplex *s)
{
    if (!s)
        return;
    util_release(&s->memory);
    free(s->columns.cost);
    free(s->columns.off);
    free(s->columns.row);
    free(s->columns.value);
    free(s->each.place);
    free(s->each.weight);
    free(s->each.reduced);
    free(s->each.part);
    free(s);
}

/* ---- building ---- */

static int allocate(pricing_simplex *s)
{
    size_t m = (size_t)s->m, stride = (size_t)s->basis.stride;
    util_memory *a = &s->memory;
    UTIL_TAKE(a, s->limit.lower, m);
    UTIL_TAKE(a, s->limit.upper, m);
    UTIL_TAKE(a, s->limit.at_upper, m);
    UTIL_TAKE(a, s->basis.inverse, m * stride);
    UTIL_TAKE(a, s->basis.head, m);
    UTIL_TAKE(a, s->basis.basic, stride);
    UTIL_TAKE(a, s->basis.low, m);
    UTIL_TAKE(a, s->basis.high, m);
    UTIL_TAKE(a, s->phase_cost, m);
    UTIL_TAKE(a, s->dual, stride);
    UTIL_TAKE(a, s->column, stride);
    UTIL_TAKE(a, s->pivot_row, stride);
    UTIL_TAKE(a, s->costly, m);
    return util_taken_all(a);
}

/* Room for `n` columns with `entries` entries in all. */
static int make_room(pricing_simplex *s, size_t n, size_t entries)
{
    size_t all = (size_t)s->m + n;
    int rc = util_grow(&s->columns.cost, &s->columns.cost_capacity, n, sizeof *s->columns.cost);
    rc = rc ? rc : util_grow(&s->columns.off, &s->columns.off_capacity, n + 1, sizeof *s->columns.off);
    rc = rc ? rc : util_grow(&s->columns.row, &s->columns.row_capacity, entries, sizeof *s->columns.row);
    rc = rc ? rc : util_grow(&s->columns.value, &s->columns.value_capacity, entries, sizeof *s->columns.value);
    rc = rc ? rc : util_grow(&s->each.place, &s->each.place_capacity, all, sizeof *s->each.place);
    rc = rc ? rc : util_grow(&s->each.weight, &s->each.weight_capacity, all, sizeof *s->each.weight);
    rc = rc ? rc : util_grow(&s->each.reduced, &s->each.reduced_capacity, all, sizeof *s->each.reduced);
    return rc ? rc : util_grow(&s->each.part, &s->each.part_capacity, all, sizeof *s->each.part);
}

/* A little more room in every row, each another one. */
static double nudge(int32_t row)
{
    uint32_t mixed = ((uint32_t)row + 1) * UINT32_C(2654435761);
    return NUDGE * (0.5 + (double)(mixed >> 8) / (double)(1 << 24));
}

int pricing_simplex_new(pricing_simplex **out, int32_t n_rows, const double *lower, const double *upper)
{
    *out = NULL;
    pricing_simplex *s = util_alloc(1, sizeof *s);
    if (!s)
        return MOIRAI_EFAIL;
    s->m = n_rows;
    s->basis.stride = (n_rows + SIMPLEX_PIECE - 1) / SIMPLEX_PIECE * SIMPLEX_PIECE;
    if (allocate(s) || make_room(s, 1, 1)) {
        pricing_simplex_free(s);
        return MOIRAI_EFAIL;
    }
    s->columns.off[0] = 0;
    simplex_identity(s);
    for (int32_t i = 0; i < n_rows; i++) {
        bool equal = lower[i] == upper[i];
        s->limit.lower[i] = -upper[i] - (equal ? 0 : nudge(i));
        s->limit.upper[i] = -lower[i] + (equal ? 0 : nudge(i));
        simplex_sit(s, i, i);
        s->each.weight[i] = 1;
    }
    *out = s;
    return 0;
}

int pricing_simplex_add_column(pricing_simplex *s, double cost, int32_t n, const int32_t *row, const double *value)
{
    size_t begin = s->columns.off[s->n],
           end = begin + ((size_t)n + SIMPLEX_ENTRIES - 1) / SIMPLEX_ENTRIES * SIMPLEX_ENTRIES;
    if (make_room(s, (size_t)s->n + 1, end))
        return MOIRAI_EFAIL;
    for (int32_t e = 0; e < n; e++) {
        s->columns.row[begin + (size_t)e] = row[e];
        s->columns.value[begin + (size_t)e] = value[e];
    }
    for (size_t e = begin + (size_t)n; e < end; e++) {
        s->columns.row[e] = 0;
        s->columns.value[e] = 0;
    }
    s->columns.cost[s->n] = cost;
    s->columns.off[s->n + 1] = end;
    s->each.place[s->m + s->n] = -1;
    s->each.weight[s->m + s->n] = 1;
    s->columns.most_cost = fmax(s->columns.most_cost, fabs(cost));
    s->n++;
    return 0;
}

/* ---- a solve ---- */

/* How far the values are from a solution of the rows. */
static double residual(pricing_simplex *s)
{
    double *sum = s->pivot_row, most = 0;
    memset(sum, 0, sizeof *sum * (size_t)s->basis.stride);
    for (int32_t i = 0; i < s->m; i++)
        sum[i] = s->each.place[i] < 0 ? simplex_resting_value(s, i) : s->basis.basic[s->each.place[i]];
    for (int32_t i = 0; i < s->m; i++) {
        int32_t x = s->basis.head[i] - s->m;
        for (size_t e = x < 0 ? 0 : s->columns.off[x]; x >= 0 && e < s->columns.off[x + 1]; e++)
            sum[s->columns.row[e]] += s->basis.basic[i] * s->columns.value[e];
    }
    for (int32_t i = 0; i < s->m; i++)
        most = fmax(most, isnan(sum[i]) ? HUGE_VAL : fabs(sum[i]));
    return most;
}

static int gives_up(const pricing_simplex *s, const char *why)
{
    return moirai_error(MOIRAI_ELIMIT, "simplex: %d rows, %d columns: %s", s->m, s->n, why);
}

/* To the optimum, as far as the inverse is right by then. */
static int iterate(pricing_simplex *s, const util_stop *stop, int64_t *left)
{
    simplex_price_anew(s);
    for (;; --*left) {
        if (*left <= 0)
            return gives_up(s, "too many iterations");
        if (*left % STOP_EVERY == 0 && util_stopped(stop))
            return gives_up(s, "no time left");
        if (s->basis.exchanges >= RENEW) {
            if (simplex_renew(s))
                return MOIRAI_EFAIL;
            simplex_price_anew(s);
        }
        simplex_result result = simplex_step(s);
        if (result == SIMPLEX_STUCK)
            return gives_up(s, "no solution");
        if (result == SIMPLEX_OPTIMAL)
            return 0;
    }
}

static void report(const pricing_simplex *s, double *objective, double *row_dual, double *primal)
{
    double sum = 0;
    for (int32_t x = 0; x < s->n; x++) {
        int32_t place = s->each.place[s->m + x];
        double value = place < 0 ? 0 : fmax(s->basis.basic[place], 0);
        sum += value * s->columns.cost[x];
        if (primal)
            primal[x] = value;
    }
    if (row_dual)
        memcpy(row_dual, s->dual, sizeof *row_dual * (size_t)s->m);
    *objective = sum;
}

int pricing_simplex_solve(pricing_simplex *s, const util_stop *stop, double *objective, double *row_dual,
                          double *primal)
{
    int64_t left = (int64_t)MOST_ITERATIONS * (s->m + s->n) + 1000;
    simplex_find_values(s);
    for (int32_t repairs = 0;; repairs++) {
        int rc = iterate(s, stop, &left);
        if (rc == MOIRAI_EFAIL)
            return rc;
        if (!rc && residual(s) < RESIDUAL) {
            report(s, objective, row_dual, primal);
            return 0;
        }
        if (repairs >= MOST_REPAIRS || util_stopped(stop))
            return rc ? rc : gives_up(s, "numbers too far apart");
        if (simplex_renew(s))
            return MOIRAI_EFAIL;
    }
}
