/* Numbers for people: units that keep three or four digits before the eye. And text of others, made harmless. */
#include "util/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

util_human util_human_ns(int64_t ns)
{
    util_human t;
    if (ns < 0)
        snprintf(t.s, sizeof t.s, "-");
    else if (ns < 1000)
        snprintf(t.s, sizeof t.s, "%d ns", (int)ns);
    else if (ns < 1000000)
        snprintf(t.s, sizeof t.s, "%.3f us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(t.s, sizeof t.s, "%.3f ms", (double)ns / 1e6);
    else
        snprintf(t.s, sizeof t.s, "%.3f s", (double)ns / 1e9);
    return t;
}

static util_human scaled(double x, const char *unit)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P", "E"};
    util_human t;
    int i = 0;
    while (x >= 999.5 && i < 6) {
        x /= 1000;
        i++;
    }
    int digits = i == 0 ? 0 : x < 10 ? 2 : x < 100 ? 1 : 0;
    snprintf(t.s, sizeof t.s, "%.*f %s%s", digits, x, prefix[i], unit);
    return t;
}

util_human util_human_bytes(int64_t bytes)
{
    return scaled((double)bytes, "B");
}

util_human util_human_rate(int64_t bytes_per_second)
{
    return scaled((double)bytes_per_second, "B/s");
}

util_human util_human_flops(double flops)
{
    return scaled(flops, "flop");
}

util_human util_human_count(int64_t count)
{
    char digits[32];
    util_human t;
    int n = snprintf(digits, sizeof digits, "%lld", (long long)count), used = 0;
    for (int i = 0; i < n; i++) {
        t.s[used++] = digits[i];
        if ((n - 1 - i) % 3 == 0 && i + 1 < n && digits[i] != '-')
            t.s[used++] = ',';
    }
    t.s[used] = '\0';
    return t;
}

util_human util_human_gap(double gap)
{
    util_human t;
    if (gap < 0)
        snprintf(t.s, sizeof t.s, "-");
    else /* never show a gap as smaller than it is */
        snprintf(t.s, sizeof t.s, "%.2f %%", ceil(gap * 1e4 * (1 - 1e-12)) / 100);
    return t;
}

/* ---- text from files ---- */

size_t util_utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xed && s[1] >= 0xa0;
    bool too_large = s[0] == 0xf4 && s[1] >= 0x90;
    return overlong || surrogate || too_large ? 0 : n;
}

uint32_t util_utf8_code(const unsigned char *s, size_t length)
{
    uint32_t code = length > 1 ? s[0] & (0x7fu >> length) : s[0];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (s[i] & 0x3fu);
    return code;
}

bool util_steers(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void util_clean(char *text)
{
    char *to = text;
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = util_utf8_length(s);
        if (!n || util_steers(util_utf8_code(s, n))) {
            *to++ = '?';
        } else {
            memmove(to, s, n);
            to += n;
        }
        s += n ? n : 1;
    }
    *to = '\0';
}

bool util_is_formula(const char *cell)
{
    return *cell && strchr("=+-@\t\r", *cell);
}
