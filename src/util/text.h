/* Numbers for people. Use as moirai_text_ns(x).s */
#ifndef MOIRAI_UTIL_TEXT_H
#define MOIRAI_UTIL_TEXT_H

#include <stdint.h>

typedef struct moirai_text { char s[80]; } moirai_text;
moirai_text moirai_text_ns(int64_t ns);                 /* "12.345 ms" */
moirai_text moirai_text_bytes(int64_t bytes);           /* "1.23 GB" */
moirai_text moirai_text_rate(int64_t bytes_per_second); /* "5.53 GB/s" */
moirai_text moirai_text_count(int64_t count);           /* "50,560" */
moirai_text moirai_text_flops(double flops);            /* "1.23 Tflop" */
moirai_text moirai_text_gap(double gap);                /* "1.23 %", "-" if negative */

#endif
