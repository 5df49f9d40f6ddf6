/* The mean of the middle half: a quarter of the numbers is left out at each end, with fractions of numbers where n is no
 * multiple of four. */
#include "util/sort.h"
#include "util/util.h"

#include <stdlib.h>

double util_midmean(double *number, size_t n)
{
    double sum = 0, all = 0, edge = (double)n / 4;
    if (!n)
        return 0;
    qsort(number, n, sizeof *number, util_by_real);
    for (size_t i = 0; i < n; i++) {
        double from = UTIL_MAX((double)i, edge), to = UTIL_MIN((double)i + 1, (double)n - edge);
        sum += UTIL_MAX(to - from, 0) * number[i];
        all += UTIL_MAX(to - from, 0);
    }
    return sum / all;
}
