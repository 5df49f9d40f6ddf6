/* An iteration of the simplex: who enters the basis, who leaves it, and what follows. */
#include <math.h>

#include "lp/simplex_state.h"
#include "util/util.h"

#define OPTIMAL 1e-7       /* of the largest cost: what a reduced cost is worth */
#define BLOCKS_BEHIND 1e-9 /* Harris: how far a limit may be overstepped in the first pass */
#define SURELY (1 + 1e-9)  /* times this: larger, however the quotient is rounded */

/* How far the variable in the basis breaks its limits: below 0 from beneath, above 0 from above. */
static double broken(const pricing_simplex *s, int32_t place)
{
    double x = s->basis.basic[place];
    if (x < s->basis.low[place] - SIMPLEX_FEASIBLE)
        return x - s->basis.low[place];
    return x > s->basis.high[place] + SIMPLEX_FEASIBLE ? x - s->basis.high[place] : 0;
}

void simplex_price_anew(pricing_simplex *s)
{
    s->first = false;
    for (int32_t i = 0; i < s->m; i++) {
        double out = broken(s, i);
        s->phase_cost[i] = out < 0 ? -1 : out > 0;
        s->first |= out != 0;
    }
    for (int32_t i = 0; i < s->m && !s->first; i++)
        s->phase_cost[i] = s->basis.head[i] < s->m ? 0 : s->columns.cost[s->basis.head[i] - s->m];
    int32_t n = 0;
    for (int32_t i = 0; i < s->m; i++)
        if (s->phase_cost[i] != 0)
            s->costly[n++] = i;
    for (int32_t r = 0; r < s->m; r++) {
        const double *line = s->basis.inverse + (size_t)r * (size_t)s->basis.stride;
        double sum = s->each.place[r] < 0 ? 0 : s->phase_cost[s->each.place[r]];
        for (int32_t i = 0; i < n && s->each.place[r] < 0; i++)
            sum += s->phase_cost[s->costly[i]] * line[s->costly[i]];
        s->dual[r] = sum;
    }
    simplex_find_parts(s, s->dual);
    for (int32_t v = 0; v < s->m + s->n; v++)
        s->each.reduced[v] =
            s->each.place[v] >= 0 ? 0 : (s->first || v < s->m ? 0 : s->columns.cost[v - s->m]) - s->each.part[v];
}

/* Whether a step of the variable would gain: it rises where its reduced cost is below 0, and falls above. */
static bool gains(const pricing_simplex *s, int32_t v)
{
    double d = s->each.reduced[v];
    if (s->each.place[v] >= 0)
        return false;
    if (v >= s->m)
        return d < 0;
    if (s->limit.lower[v] == s->limit.upper[v])
        return false;
    return (isinf(s->limit.lower[v]) && isinf(s->limit.upper[v])) || s->limit.at_upper[v] == (d > 0);
}

/* By Devex weights; -1: none. Few are better than all before them, and only these are looked at in full: quotients and
 * branches that nobody can foresee are slow. */
static int32_t choose_entering(const pricing_simplex *s)
{
    double most = 0, least = OPTIMAL * (s->first ? 1 : fmax(s->columns.most_cost, 1e-300));
    int32_t best = -1;
    for (int32_t v = 0; v < s->m + s->n; v++) {
        double d = s->each.reduced[v], gain = v < s->m ? fabs(d) : -d;
        if (!((gain > least) & (d * d * SURELY > most * s->each.weight[v])) || !gains(s, v))
            continue;
        double worth = d * d / s->each.weight[v];
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
    double x = s->basis.basic[place], low = s->basis.low[place], high = s->basis.high[place];
    if (s->first && x < low - SIMPLEX_FEASIBLE)
        return rate > 0 ? low - x : HUGE_VAL;
    if (s->first && x > high + SIMPLEX_FEASIBLE)
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
        if (!((size >= SIMPLEX_LEAST_PIVOT) & (far < HUGE_VAL) & (far <= most * size * SURELY)))
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
    double pivot = s->column[place], weight = s->each.weight[entering], by = s->each.reduced[entering] / pivot;
    double least = pivot * pivot, most = weight * SURELY;
    simplex_find_parts(s, s->pivot_row);
    for (int32_t v = 0; v < s->m + s->n; v++)
        s->each.reduced[v] -= by * s->each.part[v];
    for (int32_t v = 0; v < s->m + s->n; v++) {
        double part = s->each.part[v];
        if (part * part * most < s->each.weight[v] * least)
            continue; /* most of them: no division */
        double at_least = part / pivot * (part / pivot) * weight;
        s->each.weight[v] = UTIL_MAX(s->each.weight[v], at_least);
    }
    simplex_add_line(s->dual, s->pivot_row, by, s->basis.stride);
    s->each.weight[s->basis.head[place]] = fmax(weight / (pivot * pivot), 1);
    s->each.reduced[s->basis.head[place]] = -by;
    s->each.reduced[entering] = 0;
}

/* The variable at `place` leaves to the limit that it has met. */
static void leave(pricing_simplex *s, int32_t place)
{
    int32_t v = s->basis.head[place];
    s->each.place[v] = -1;
    if (v < s->m)
        s->limit.at_upper[v] =
            fabs(s->limit.upper[v] - s->basis.basic[place]) < fabs(s->basis.basic[place] - s->limit.lower[v]);
}

simplex_result simplex_step(pricing_simplex *s)
{
    double length = 0;
    if (s->first)
        simplex_price_anew(s);
    int32_t entering = choose_entering(s);
    if (entering < 0)
        return s->first ? SIMPLEX_STUCK : SIMPLEX_OPTIMAL;
    double direction = s->each.reduced[entering] < 0 ? 1 : -1, begin = simplex_resting_value(s, entering);
    double across = simplex_upper_of(s, entering) - simplex_lower_of(s, entering); /* to its own other limit */
    simplex_transform(s, entering);
    int32_t place = choose_leaving(s, direction, &length);
    bool flips = place < 0 || across <= length;
    if (flips && isinf(across))
        return SIMPLEX_STUCK; /* nothing holds it */
    length = flips ? across : length;
    simplex_add_line(s->basis.basic, s->column, -direction * length, s->basis.stride);
    if (flips) {
        s->limit.at_upper[entering] = !s->limit.at_upper[entering];
        return SIMPLEX_TAKEN;
    }
    simplex_find_pivot_row(s, place);
    follow(s, entering, place);
    leave(s, place);
    simplex_exchange(s, place);
    simplex_sit(s, place, entering);
    s->basis.basic[place] = begin + direction * length;
    return SIMPLEX_TAKEN;
}
