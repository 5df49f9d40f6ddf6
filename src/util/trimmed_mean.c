/* A mean without the ends, with fractions of numbers where these fall between two.
 *
 * Times of a machine that has two speeds come in two heaps. Whatever is left out at the ends is left out of one heap: the
 * mean of the middle half moves twice as far as the mean of all when a number moves from one heap to the other. So only
 * as much is left out as outliers need. */
#include "util/sort.h"
#include "util/util.h"

#include <stdlib.h>

double util_trimmed_mean(double *number, size_t n)
{
    double sum = 0, all = 0, edge = UTIL_MAX((double)n / 10, UTIL_MIN((double)n / 4, 1));
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
