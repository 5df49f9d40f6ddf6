/* Means, medians, worst: of gaps by anything. */
#ifndef MOIRAI_WIDE_SUMMARY_H
#define MOIRAI_WIDE_SUMMARY_H

#include <stddef.h>

typedef struct wide_summary {
    size_t n;
    double mean, median, high, worst; /* high: 95 of 100 are no larger */
} wide_summary;

/* Sorts `number`. All 0 where there is none. */
wide_summary wide_summarize(double *number, size_t n);

#endif
