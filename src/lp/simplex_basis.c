/* The basis of the simplex: its inverse as a whole, and what follows it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lp/machines.h"
#include "lp/simplex_state.h"
#include "util/util.h"

void simplex_identity(pricing_simplex *s)
{
    memset(s->basis.inverse, 0, sizeof *s->basis.inverse * (size_t)s->m * (size_t)s->basis.stride);
    for (int32_t i = 0; i < s->m; i++)
        s->basis.inverse[(size_t)i * (size_t)s->basis.stride + (size_t)i] = 1;
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
            simplex_add_line(out, inverse + (size_t)r * (size_t)stride, value[e], stride);
    }
}

/* Every line gives up its part of the place that a new column takes; `parts` are those parts. */
PRICING_FOR_EACH_MACHINE
static void exchange_lines(double *inverse, int32_t stride, int32_t count, const double *parts, const double *column,
                           int32_t place)
{
    for (int32_t r = 0; r < count; r++) {
        double *line = inverse + (size_t)r * (size_t)stride, part = line[place] / column[place];
        if (parts[r] == 0)
            continue;
        simplex_add_line(line, column, -part, stride);
        line[place] = part;
    }
}

void simplex_find_parts(pricing_simplex *s, const double *line)
{
    const int32_t *row = s->columns.row;
    const double *value = s->columns.value;
    memcpy(s->each.part, line, sizeof *line * (size_t)s->m);
    for (int32_t x = 0; x < s->n; x++) {
        double sum = 0;
        for (size_t e = s->columns.off[x]; e < s->columns.off[x + 1] && s->each.place[s->m + x] < 0;
             e += SIMPLEX_ENTRIES)
            for (size_t i = e; i < e + SIMPLEX_ENTRIES; i++)
                sum += line[row[i]] * value[i];
        s->each.part[s->m + x] = sum;
    }
    for (int32_t i = 0; i < s->m; i++)
        s->each.part[s->basis.head[i]] = 0;
}

/* ---- the basis ---- */

void simplex_transform(pricing_simplex *s, int32_t v)
{
    static const double whole[] = {1};
    size_t begin = v < s->m ? 0 : s->columns.off[v - s->m], end = v < s->m ? 1 : s->columns.off[v - s->m + 1];
    const int32_t *row = v < s->m ? &v : s->columns.row + begin;
    const double *value = v < s->m ? whole : s->columns.value + begin;
    sum_lines(s->column, s->basis.inverse, s->basis.stride, (int32_t)(end - begin), row, value, s->each.place);
}

void simplex_find_pivot_row(pricing_simplex *s, int32_t place)
{
    for (int32_t r = 0; r < s->m; r++)
        s->pivot_row[r] = s->each.place[r] < 0 ? s->basis.inverse[(size_t)r * (size_t)s->basis.stride + (size_t)place]
                                               : s->each.place[r] == place;
}

void simplex_exchange(pricing_simplex *s, int32_t place)
{
    exchange_lines(s->basis.inverse, s->basis.stride, s->m, s->pivot_row, s->column, place);
    s->basis.exchanges++;
}

void simplex_find_values(pricing_simplex *s)
{
    double *rest = s->pivot_row;
    for (int32_t i = 0; i < s->m; i++)
        rest[i] = s->each.place[i] < 0 ? -simplex_resting_value(s, i) : 0;
    sum_lines(s->basis.basic, s->basis.inverse, s->basis.stride, s->m, NULL, rest, s->each.place);
}

/* The row of the largest pivot among those that wait for a column; -1: none that is large enough. */
static int32_t waiting_row(const pricing_simplex *s, const bool *waits)
{
    int32_t best = -1;
    for (int32_t i = 0; i < s->m; i++)
        if (waits[i] && (best < 0 || fabs(s->column[i]) > fabs(s->column[best])))
            best = i;
    return best >= 0 && fabs(s->column[best]) > SIMPLEX_LEAST_PIVOT ? best : -1;
}

int simplex_renew(pricing_simplex *s)
{
    int32_t *kept = util_alloc((size_t)s->m, sizeof *kept), n = 0;
    bool *waits = util_alloc((size_t)s->m, sizeof *waits);
    for (int32_t i = 0; kept && waits && i < s->m; i++) {
        waits[i] = s->each.place[i] < 0;
        if (s->basis.head[i] >= s->m)
            kept[n++] = s->basis.head[i];
    }
    int rc = kept && waits ? 0 : MOIRAI_EFAIL;
    if (!rc)
        simplex_identity(s);
    for (int32_t i = 0; !rc && i < s->m; i++)
        simplex_sit(s, i, i);
    for (int32_t i = 0; !rc && i < n; i++) {
        simplex_transform(s, kept[i]);
        int32_t row = waiting_row(s, waits);
        s->each.place[kept[i]] = -1;
        if (row < 0)
            continue;
        simplex_find_pivot_row(s, row);
        simplex_exchange(s, row);
        waits[row] = false;
        s->each.place[row] = -1;
        simplex_sit(s, row, kept[i]);
    }
    free(kept);
    free(waits);
    s->basis.exchanges = 0;
    if (!rc)
        simplex_find_values(s);
    return rc;
}
