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

#include "lp/machines.h"
#include "util/util.h"

#define NUDGE 1e-7    /* of limits, against ties */
#define FEASIBLE 1e-9 /* limits are kept to this */
#define OPTIMAL 1e-7  /* of the largest cost: what a reduced cost is worth */
#define LEAST_PIVOT 1e-7
#define BLOCKS_BEHIND 1e-9 /* Harris: how far a limit may be overstepped in the first pass */
#define RESIDUAL 1e-6
#define RENEW 150 /* exchanges after which the inverse is made again */
#define MOST_REPAIRS 3
#define MOST_ITERATIONS 20 /* times rows and columns */
#define STOP_EVERY 64      /* iterations between two questions to the stop */
#define PIECE 8            /* numbers that a loop over a line takes at a time */
#define ENTRIES 4          /* and one over a column's entries */
#define SURELY (1 + 1e-9)  /* times this: larger, however the quotient is rounded */

/* Variables: logical ones by row, then the columns. */
struct pricing_simplex {
    int32_t m, n;
    int32_t stride;        /* of the inverse's rows */
    double *lower, *upper; /* of the logical variables, nudged */
    bool *at_upper;        /* a logical variable outside of the basis: at which of its limits */
    double *inverse;    /* of the basis: a line for each row of the programme, in it a number for each place. Where the
                            * row's logical variable is in the basis, the line is 1 at its place and 0 elsewhere: exactly
                            * so, since the exchange takes it from itself */
    int32_t *head;      /* which variable is in the basis, by place */
    double *basic;      /* its value */
    double *low, *high; /* and its limits */
    double *phase_cost, *dual, *column, *pivot_row;
    int32_t *costly;   /* places where the phase's cost is not 0; then those that may leave */
    bool first;        /* phase 1: some of the basis break their limits */
    int32_t exchanges; /* since the inverse was made */
    double most_cost;
    /* Columns, and what is kept for every variable. */
    double *cost;
    size_t *off; /* multiples of ENTRIES: each column is filled up with entries of 0 */
    int32_t *row;
    double *value;
    int32_t *place; /* in the basis, -1: none */
    double *weight, *reduced, *part;
    size_t cost_capacity, off_capacity, row_capacity, value_capacity, place_capacity, weight_capacity, reduced_capacity,
        part_capacity;
};

void pricing_simplex_free(pricing_simplex *s)
{
    if (!s)
        return;
    free(s->lower);
    free(s->upper);
    free(s->at_upper);
    free(s->inverse);
    free(s->head);
    free(s->basic);
    free(s->low);
    free(s->high);
    free(s->phase_cost);
    free(s->dual);
    free(s->column);
    free(s->pivot_row);
    free(s->costly);
    free(s->cost);
    free(s->off);
    free(s->row);
    free(s->value);
    free(s->place);
    free(s->weight);
    free(s->reduced);
    free(s->part);
    free(s);
}

/* ---- limits and values ---- */

static double lower_of(const pricing_simplex *s, int32_t v)
{
    return v < s->m ? s->lower[v] : 0;
}

static double upper_of(const pricing_simplex *s, int32_t v)
{
    return v < s->m ? s->upper[v] : HUGE_VAL;
}

/* Of a variable outside of the basis. */
static double resting_value(const pricing_simplex *s, int32_t v)
{
    if (v >= s->m)
        return 0;
    double at = s->at_upper[v] ? s->upper[v] : s->lower[v];
    return isinf(at) ? 0 : at;
}

/* A variable comes to this place of the basis. */
static void sit(pricing_simplex *s, int32_t place, int32_t v)
{
    s->head[place] = v;
    s->place[v] = place;
    s->low[place] = lower_of(s, v);
    s->high[place] = upper_of(s, v);
}

/* ---- building ---- */

static void identity(pricing_simplex *s)
{
    memset(s->inverse, 0, sizeof *s->inverse * (size_t)s->m * (size_t)s->stride);
    for (int32_t i = 0; i < s->m; i++)
        s->inverse[(size_t)i * (size_t)s->stride + (size_t)i] = 1;
}

static int allocate(pricing_simplex *s)
{
    size_t m = (size_t)s->m, stride = (size_t)s->stride;
    s->lower = util_alloc(m, sizeof(double));
    s->upper = util_alloc(m, sizeof(double));
    s->at_upper = util_alloc(m, sizeof(bool));
    s->inverse = util_alloc(m * stride, sizeof(double));
    s->head = util_alloc(m, sizeof(int32_t));
    s->basic = util_alloc(stride, sizeof(double));
    s->low = util_alloc(m, sizeof(double));
    s->high = util_alloc(m, sizeof(double));
    s->phase_cost = util_alloc(m, sizeof(double));
    s->dual = util_alloc(stride, sizeof(double));
    s->column = util_alloc(stride, sizeof(double));
    s->pivot_row = util_alloc(stride, sizeof(double));
    s->costly = util_alloc(m, sizeof(int32_t));
    bool ok = s->lower && s->upper && s->at_upper && s->inverse && s->head && s->basic && s->low && s->high &&
              s->phase_cost && s->dual && s->column && s->pivot_row && s->costly;
    return ok ? 0 : MOIRAI_EFAIL;
}

/* Room for `n` columns with `entries` entries in all. */
static int make_room(pricing_simplex *s, size_t n, size_t entries)
{
    size_t all = (size_t)s->m + n;
    int rc = util_grow(&s->cost, &s->cost_capacity, n, sizeof *s->cost);
    rc = rc ? rc : util_grow(&s->off, &s->off_capacity, n + 1, sizeof *s->off);
    rc = rc ? rc : util_grow(&s->row, &s->row_capacity, entries, sizeof *s->row);
    rc = rc ? rc : util_grow(&s->value, &s->value_capacity, entries, sizeof *s->value);
    rc = rc ? rc : util_grow(&s->place, &s->place_capacity, all, sizeof *s->place);
    rc = rc ? rc : util_grow(&s->weight, &s->weight_capacity, all, sizeof *s->weight);
    rc = rc ? rc : util_grow(&s->reduced, &s->reduced_capacity, all, sizeof *s->reduced);
    return rc ? rc : util_grow(&s->part, &s->part_capacity, all, sizeof *s->part);
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
    s->stride = (n_rows + PIECE - 1) / PIECE * PIECE;
    if (allocate(s) || make_room(s, 1, 1)) {
        pricing_simplex_free(s);
        return MOIRAI_EFAIL;
    }
    s->off[0] = 0;
    identity(s);
    for (int32_t i = 0; i < n_rows; i++) {
        bool equal = lower[i] == upper[i];
        s->lower[i] = -upper[i] - (equal ? 0 : nudge(i));
        s->upper[i] = -lower[i] + (equal ? 0 : nudge(i));
        sit(s, i, i);
        s->weight[i] = 1;
    }
    *out = s;
    return 0;
}

int pricing_simplex_add_column(pricing_simplex *s, double cost, int32_t n, const int32_t *row, const double *value)
{
    size_t begin = s->off[s->n], end = begin + ((size_t)n + ENTRIES - 1) / ENTRIES * ENTRIES;
    if (make_room(s, (size_t)s->n + 1, end))
        return MOIRAI_EFAIL;
    for (int32_t e = 0; e < n; e++) {
        s->row[begin + (size_t)e] = row[e];
        s->value[begin + (size_t)e] = value[e];
    }
    for (size_t e = begin + (size_t)n; e < end; e++) {
        s->row[e] = 0;
        s->value[e] = 0;
    }
    s->cost[s->n] = cost;
    s->off[s->n + 1] = end;
    s->place[s->m + s->n] = -1;
    s->weight[s->m + s->n] = 1;
    s->most_cost = fmax(s->most_cost, fabs(cost));
    s->n++;
    return 0;
}

/* ---- lines of numbers ---- */

/* out += by * a, n a multiple of PIECE. */
static inline void add_line(double *restrict out, const double *restrict a, double by, int32_t n)
{
    for (int32_t i = 0; i < n; i += PIECE)
        for (int32_t j = 0; j < PIECE; j++)
            out[i + j] += by * a[i + j];
}

/* out = the sum over `count` lines of an inverse, each times its value; NULL for `line` names the first ones. Of a line
 * whose logical variable has a place in the basis that place is all there is. */
PRICING_FOR_EACH_MACHINE
static void sum_lines(double *out, const double *inverse, int32_t stride, int32_t count, const int32_t *line,
                      const double *value, const int32_t *place)
{
    memset(out, 0, sizeof *out * (size_t)stride);
    for (int32_t e = 0; e < count; e++) {
        int32_t r = line ? line[e] : e;
        if (place[r] >= 0)
            out[place[r]] += value[e];
        else if (value[e] != 0)
            add_line(out, inverse + (size_t)r * (size_t)stride, value[e], stride);
    }
}

/* Two lines give up their parts of the place that a new column takes. */
static inline void exchange_two(double *restrict first, double *restrict second, const double *restrict column,
                                int32_t stride, int32_t place)
{
    double part1 = first[place] / column[place], part2 = second[place] / column[place];
    for (int32_t i = 0; i < stride; i += PIECE)
        for (int32_t j = 0; j < PIECE; j++) {
            double c = column[i + j];
            first[i + j] += -part1 * c;
            second[i + j] += -part2 * c;
        }
    first[place] = part1;
    second[place] = part2;
}

/* Every line gives up its part of the place that a new column takes; `parts` are those parts. Two lines at a time read
 * the column once. */
PRICING_FOR_EACH_MACHINE
static void exchange_lines(double *inverse, int32_t stride, int32_t count, const double *parts, const double *column,
                           int32_t place)
{
    double *waits = NULL;
    for (int32_t r = 0; r < count; r++) {
        double *line = inverse + (size_t)r * (size_t)stride;
        if (parts[r] == 0)
            continue;
        if (waits)
            exchange_two(waits, line, column, stride, place);
        waits = waits ? NULL : line;
    }
    if (waits) {
        double part = waits[place] / column[place];
        add_line(waits, column, -part, stride);
        waits[place] = part;
    }
}

/* part = the inner products of a line over the rows with the columns of all variables; 0 for those in the basis. */
static void find_parts(pricing_simplex *s, const double *line)
{
    const int32_t *row = s->row;
    const double *value = s->value;
    memcpy(s->part, line, sizeof *line * (size_t)s->m);
    for (int32_t x = 0; x < s->n; x++) {
        double sum = 0;
        for (size_t e = s->off[x]; e < s->off[x + 1] && s->place[s->m + x] < 0; e += ENTRIES)
            for (size_t i = e; i < e + ENTRIES; i++)
                sum += line[row[i]] * value[i];
        s->part[s->m + x] = sum;
    }
    for (int32_t i = 0; i < s->m; i++)
        s->part[s->head[i]] = 0;
}

/* ---- the basis ---- */

/* The column of a variable in terms of the basis. */
static void transform(pricing_simplex *s, int32_t v)
{
    static const double whole[] = {1};
    size_t begin = v < s->m ? 0 : s->off[v - s->m], end = v < s->m ? 1 : s->off[v - s->m + 1];
    const int32_t *row = v < s->m ? &v : s->row + begin;
    const double *value = v < s->m ? whole : s->value + begin;
    sum_lines(s->column, s->inverse, s->stride, (int32_t)(end - begin), row, value, s->place);
}

/* The inverse's part of a place, over the rows of the programme. */
static void find_pivot_row(pricing_simplex *s, int32_t place)
{
    for (int32_t r = 0; r < s->m; r++)
        s->pivot_row[r] =
            s->place[r] < 0 ? s->inverse[(size_t)r * (size_t)s->stride + (size_t)place] : s->place[r] == place;
}

/* The transformed column takes a place in the basis, whose pivot row is known: the inverse follows. */
static void exchange(pricing_simplex *s, int32_t place)
{
    exchange_lines(s->inverse, s->stride, s->m, s->pivot_row, s->column, place);
    s->exchanges++;
}

static void find_values(pricing_simplex *s)
{
    double *rest = s->pivot_row;
    for (int32_t i = 0; i < s->m; i++)
        rest[i] = s->place[i] < 0 ? -resting_value(s, i) : 0;
    sum_lines(s->basic, s->inverse, s->stride, s->m, NULL, rest, s->place);
}

/* The row of the largest pivot among those that wait for a column; -1: none that is large enough. */
static int32_t waiting_row(const pricing_simplex *s, const bool *waits)
{
    int32_t best = -1;
    for (int32_t i = 0; i < s->m; i++)
        if (waits[i] && (best < 0 || fabs(s->column[i]) > fabs(s->column[best])))
            best = i;
    return best >= 0 && fabs(s->column[best]) > LEAST_PIVOT ? best : -1;
}

/* The inverse from its columns, one after the other: logical variables of the basis take their own rows, columns those of
 * the others. A column that depends on the others by now leaves the basis. */
static int renew(pricing_simplex *s)
{
    int32_t *kept = util_alloc((size_t)s->m, sizeof *kept), n = 0;
    bool *waits = util_alloc((size_t)s->m, sizeof *waits);
    for (int32_t i = 0; kept && waits && i < s->m; i++) {
        waits[i] = s->place[i] < 0;
        if (s->head[i] >= s->m)
            kept[n++] = s->head[i];
    }
    int rc = kept && waits ? 0 : MOIRAI_EFAIL;
    if (!rc)
        identity(s);
    for (int32_t i = 0; !rc && i < s->m; i++)
        sit(s, i, i);
    for (int32_t i = 0; !rc && i < n; i++) {
        transform(s, kept[i]);
        int32_t row = waiting_row(s, waits);
        s->place[kept[i]] = -1;
        if (row < 0)
            continue;
        find_pivot_row(s, row);
        exchange(s, row);
        waits[row] = false;
        s->place[row] = -1;
        sit(s, row, kept[i]);
    }
    free(kept);
    free(waits);
    s->exchanges = 0;
    if (!rc)
        find_values(s);
    return rc;
}

/* ---- an iteration ---- */

/* How far the variable in the basis breaks its limits: below 0 from beneath, above 0 from above. */
static double broken(const pricing_simplex *s, int32_t place)
{
    double x = s->basic[place];
    if (x < s->low[place] - FEASIBLE)
        return x - s->low[place];
    return x > s->high[place] + FEASIBLE ? x - s->high[place] : 0;
}

/* Costs of the phase at hand, and the dual values and reduced costs that follow. */
static void price_anew(pricing_simplex *s)
{
    s->first = false;
    for (int32_t i = 0; i < s->m; i++) {
        double out = broken(s, i);
        s->phase_cost[i] = out < 0 ? -1 : out > 0;
        s->first |= out != 0;
    }
    for (int32_t i = 0; i < s->m && !s->first; i++)
        s->phase_cost[i] = s->head[i] < s->m ? 0 : s->cost[s->head[i] - s->m];
    int32_t n = 0;
    for (int32_t i = 0; i < s->m; i++)
        if (s->phase_cost[i] != 0)
            s->costly[n++] = i;
    for (int32_t r = 0; r < s->m; r++) {
        const double *line = s->inverse + (size_t)r * (size_t)s->stride;
        double sum = s->place[r] < 0 ? 0 : s->phase_cost[s->place[r]];
        for (int32_t i = 0; i < n && s->place[r] < 0; i++)
            sum += s->phase_cost[s->costly[i]] * line[s->costly[i]];
        s->dual[r] = sum;
    }
    find_parts(s, s->dual);
    for (int32_t v = 0; v < s->m + s->n; v++)
        s->reduced[v] = s->place[v] >= 0 ? 0 : (s->first || v < s->m ? 0 : s->cost[v - s->m]) - s->part[v];
}

/* Whether a step of the variable would gain: it rises where its reduced cost is below 0, and falls above. */
static bool gains(const pricing_simplex *s, int32_t v)
{
    double d = s->reduced[v];
    if (s->place[v] >= 0)
        return false;
    if (v >= s->m)
        return d < 0;
    if (s->lower[v] == s->upper[v])
        return false;
    return (isinf(s->lower[v]) && isinf(s->upper[v])) || s->at_upper[v] == (d > 0);
}

/* By Devex weights; -1: none. Few are better than all before them, and only these are looked at in full: quotients and
 * branches that nobody can foresee are slow. */
static int32_t choose_entering(const pricing_simplex *s)
{
    double most = 0, least = OPTIMAL * (s->first ? 1 : fmax(s->most_cost, 1e-300));
    int32_t best = -1;
    for (int32_t v = 0; v < s->m + s->n; v++) {
        double d = s->reduced[v], gain = v < s->m ? fabs(d) : -d;
        if (!((gain > least) & (d * d * SURELY > most * s->weight[v])) || !gains(s, v))
            continue;
        double worth = d * d / s->weight[v];
        if (worth > most) {
            most = worth;
            best = v;
        }
    }
    return best;
}

/* How far the variable at `place` is from the limit that it moves to at this rate. One that breaks a limit stops where
 * it is kept again. */
static inline double distance(const pricing_simplex *s, int32_t place, double rate)
{
    double x = s->basic[place], low = s->low[place], high = s->high[place];
    if (s->first && x < low - FEASIBLE)
        return rate > 0 ? low - x : HUGE_VAL;
    if (s->first && x > high + FEASIBLE)
        return rate < 0 ? x - high : HUGE_VAL;
    double up = high - x, down = x - low;
    return rate > 0 ? up : down;
}

/* Harris: of all that block before anything is overstepped by more than a little, the largest pivot. -1: nothing
 * blocks. As above, quotients are for the few that may be it. */
static int32_t choose_leaving(pricing_simplex *s, double direction, double *step)
{
    double most = HUGE_VAL, *room = s->phase_cost; /* not in use by now */
    int32_t best = -1, n = 0, *blocking = s->costly;
    for (int32_t i = 0; i < s->m; i++) {
        double rate = -direction * s->column[i], size = fabs(rate), far = distance(s, i, rate);
        if (!((size >= LEAST_PIVOT) & (far < HUGE_VAL) & (far <= most * size * SURELY)))
            continue;
        double within = UTIL_MAX(far + BLOCKS_BEHIND, 0) / size;
        room[i] = UTIL_MAX(far, 0) / size;
        most = UTIL_MIN(most, within);
        blocking[n++] = i;
    }
    for (int32_t j = 0; j < n; j++) {
        int32_t i = blocking[j];
        if (room[i] <= most && (best < 0 || fabs(s->column[i]) > fabs(s->column[best])))
            best = i;
    }
    *step = best < 0 ? 0 : room[best];
    return best;
}

/* Weights and reduced costs of all variables outside of the basis, by the row of the inverse that is about to change. */
static void follow(pricing_simplex *s, int32_t entering, int32_t place)
{
    double pivot = s->column[place], weight = s->weight[entering], by = s->reduced[entering] / pivot;
    double least = pivot * pivot, most = weight * SURELY;
    find_parts(s, s->pivot_row);
    for (int32_t v = 0; v < s->m + s->n; v++)
        s->reduced[v] -= by * s->part[v];
    for (int32_t v = 0; v < s->m + s->n; v++) {
        double part = s->part[v];
        if (part * part * most < s->weight[v] * least)
            continue; /* most of them: no division */
        double at_least = part / pivot * (part / pivot) * weight;
        s->weight[v] = UTIL_MAX(s->weight[v], at_least);
    }
    add_line(s->dual, s->pivot_row, by, s->stride);
    s->weight[s->head[place]] = fmax(weight / (pivot * pivot), 1);
    s->reduced[s->head[place]] = -by;
    s->reduced[entering] = 0;
}

/* The variable at `place` leaves to the limit that it has met. */
static void leave(pricing_simplex *s, int32_t place)
{
    int32_t v = s->head[place];
    s->place[v] = -1;
    if (v < s->m)
        s->at_upper[v] = fabs(s->upper[v] - s->basic[place]) < fabs(s->basic[place] - s->lower[v]);
}

typedef enum step_result { STEP_TAKEN, STEP_OPTIMAL, STEP_STUCK } step_result;

static step_result step(pricing_simplex *s)
{
    double length = 0;
    if (s->first)
        price_anew(s);
    int32_t entering = choose_entering(s);
    if (entering < 0)
        return s->first ? STEP_STUCK : STEP_OPTIMAL;
    double direction = s->reduced[entering] < 0 ? 1 : -1, begin = resting_value(s, entering);
    double across = upper_of(s, entering) - lower_of(s, entering); /* to its own other limit */
    transform(s, entering);
    int32_t place = choose_leaving(s, direction, &length);
    bool flips = place < 0 || across <= length;
    if (flips && isinf(across))
        return STEP_STUCK; /* nothing holds it */
    length = flips ? across : length;
    add_line(s->basic, s->column, -direction * length, s->stride);
    if (flips) {
        s->at_upper[entering] = !s->at_upper[entering];
        return STEP_TAKEN;
    }
    find_pivot_row(s, place);
    follow(s, entering, place);
    leave(s, place);
    exchange(s, place);
    sit(s, place, entering);
    s->basic[place] = begin + direction * length;
    return STEP_TAKEN;
}

/* ---- a solve ---- */

/* How far the values are from a solution of the rows. */
static double residual(pricing_simplex *s)
{
    double *sum = s->pivot_row, most = 0;
    memset(sum, 0, sizeof *sum * (size_t)s->stride);
    for (int32_t i = 0; i < s->m; i++)
        sum[i] = s->place[i] < 0 ? resting_value(s, i) : s->basic[s->place[i]];
    for (int32_t i = 0; i < s->m; i++) {
        int32_t x = s->head[i] - s->m;
        for (size_t e = x < 0 ? 0 : s->off[x]; x >= 0 && e < s->off[x + 1]; e++)
            sum[s->row[e]] += s->basic[i] * s->value[e];
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
    price_anew(s);
    for (;; --*left) {
        if (*left <= 0)
            return gives_up(s, "too many iterations");
        if (*left % STOP_EVERY == 0 && util_stopped(stop))
            return gives_up(s, "no time left");
        if (s->exchanges >= RENEW) {
            if (renew(s))
                return MOIRAI_EFAIL;
            price_anew(s);
        }
        step_result result = step(s);
        if (result == STEP_STUCK)
            return gives_up(s, "no solution");
        if (result == STEP_OPTIMAL)
            return 0;
    }
}

static void report(const pricing_simplex *s, double *objective, double *row_dual, double *primal)
{
    double sum = 0;
    for (int32_t x = 0; x < s->n; x++) {
        int32_t place = s->place[s->m + x];
        double value = place < 0 ? 0 : fmax(s->basic[place], 0);
        sum += value * s->cost[x];
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
    find_values(s);
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
        if (renew(s))
            return MOIRAI_EFAIL;
    }
}
