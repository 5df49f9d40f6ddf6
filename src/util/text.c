/* Numbers for people: units that keep three or four digits before the eye. */
#include "util/text.h"

#include <math.h>
#include <stdio.h>

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
