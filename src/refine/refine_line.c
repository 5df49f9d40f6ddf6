/* Theil and Sen's line: the slope is the median of the slopes between two points, here weighed by how far their x are
 * apart; the intercept is the median of what that slope leaves. Up to 29 % of the points may be anything. More than
 * MOST_POINTS points are thinned out evenly, the largest x stays. O(points^2). */
#include "refine/refine.h"

#include <stdlib.h>

#include "util/util.h"

enum { MOST_POINTS = 500 };

typedef struct slope_of_two {
    double value, weight;
} slope_of_two;

static int by_slope(const void *a, const void *b)
{
    const slope_of_two *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

static int by_x(const void *a, const void *b)
{
    const refine_point *x = a, *y = b;
    return (x->x < y->x) - (x->x > y->x);
}

static double weighted_median(slope_of_two *list, size_t n)
{
    double all = 0, sum = 0;
    qsort(list, n, sizeof *list, by_slope);
    for (size_t i = 0; i < n; i++)
        all += list[i].weight;
    for (size_t i = 0; i < n; i++)
        if ((sum += list[i].weight) >= all / 2)
            return list[i].value;
    return 0;
}

int refine_line(double *slope, double *intercept, refine_point *p, size_t n)
{
    size_t used = 0, n_slopes = 0, step = n / MOST_POINTS + 1;
    double left[MOST_POINTS + 1];
    qsort(p, n, sizeof *p, by_x);
    for (size_t i = 0; i < n; i += step)
        p[used++] = p[i];
    slope_of_two *list = util_alloc(used ? used * (used - 1) / 2 : 0, sizeof *list);
    if (!list)
        return MOIRAI_EFAIL;
    for (size_t i = 0; i < used; i++)
        for (size_t k = 0; k < i; k++)
            if (p[k].x != p[i].x)
                list[n_slopes++] = (slope_of_two){(p[k].y - p[i].y) / (p[k].x - p[i].x), p[k].x - p[i].x};
    *slope = weighted_median(list, n_slopes);
    for (size_t i = 0; i < used; i++)
        left[i] = p[i].y - *slope * p[i].x;
    *intercept = refine_median(left, used);
    free(list);
    return 0;
}
