/* Means, medians, worst. */
#include "wide/summary.h"

#include <stdlib.h>

#include "util/sort.h"

wide_summary wide_summarize(double *number, size_t n)
{
    wide_summary s = {.n = n};
    if (n == 0)
        return s;
    qsort(number, n, sizeof *number, util_by_real);
    for (size_t i = 0; i < n; i++)
        s.mean += number[i] / (double)n;
    s.median = (number[(n - 1) / 2] + number[n / 2]) / 2;
    s.high = number[(95 * n + 99) / 100 - 1];
    s.worst = number[n - 1];
    return s;
}
