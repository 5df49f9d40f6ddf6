/* Numbers for people, used as util_human_ns(x).s, and text from files that is shown to people. */
#ifndef MOIRAI_UTIL_TEXT_H
#define MOIRAI_UTIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
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

/* ---- text from files ---- */
/* Length of the valid UTF-8 sequence at `s`, 0 if there is none. A NUL ends strings, so no read passes it. */
size_t util_utf8_length(const unsigned char *s);
/* The character of a valid sequence of that length. */
uint32_t util_utf8_code(const unsigned char *s, size_t length);
/* Does it steer a terminal, or turn the direction of a line, and so show something else than there is? Control characters
 * (U+0000 to U+001F, U+007F to U+009F) and bidirectional controls. */
bool util_steers(uint32_t code);
/* In place: such characters, and bytes that are no UTF-8, become '?'. */
void util_clean(char *text);
/* Would a spreadsheet take this cell for a formula? Then an apostrophe before it keeps it a text. */
bool util_is_formula(const char *cell);

#endif
