/* Numbers for people. Use as util_human_ns(x).s */
#ifndef MOIRAI_UTIL_TEXT_H
#define MOIRAI_UTIL_TEXT_H

#include <stdint.h>

typedef struct util_human {
    char s[80];
} util_human;
util_human util_human_ns(int64_t ns);                 /* "12.345 ms" */
util_human util_human_bytes(int64_t bytes);           /* "1.23 GB" */
util_human util_human_rate(int64_t bytes_per_second); /* "5.53 GB/s" */
util_human util_human_count(int64_t count);           /* "50,560" */
util_human util_human_flops(double flops);            /* "1.23 Tflop" */
util_human util_human_gap(double gap);                /* "1.23 %", "-" if negative */

#endif
