/* Numbers with units, exactly: digits are a whole number of 10^-d, units a fraction of whole numbers, the product is
 * taken in 128 bits and rounded down. "44.26Gbps" is 5,532,500,000 bytes per second, not a double near it. */
#include <moirai/cluster.h>

#include "util/util.h"

#include <ctype.h>
#include <string.h>

typedef struct unit {
    const char *name;
    int64_t times, over; /* value * times / over */
} unit;

#define KILO 1000
#define MEGA 1000000
#define GIGA 1000000000
#define TERA 1000000000000
#define KIBI 1024
#define MEBI 1048576
#define GIBI 1073741824
#define TEBI 1099511627776

static const unit byte_units[] = {
    {"B", 1, 1},      {"kB", KILO, 1},  {"KB", KILO, 1},  {"MB", MEGA, 1},  {"GB", GIGA, 1}, {"TB", TERA, 1},
    {"KiB", KIBI, 1}, {"MiB", MEBI, 1}, {"GiB", GIBI, 1}, {"TiB", TEBI, 1}, {NULL, 0, 0},
};

static const unit rate_units[] = {
    {"bps", 1, 8},      {"kbps", KILO, 8},   {"Kbps", KILO, 8},   {"Mbps", MEGA, 8},   {"Gbps", GIGA, 8},
    {"Tbps", TERA, 8},  {"b/s", 1, 8},       {"kb/s", KILO, 8},   {"Mb/s", MEGA, 8},   {"Gb/s", GIGA, 8},
    {"Tb/s", TERA, 8},  {"Mbit/s", MEGA, 8}, {"Gbit/s", GIGA, 8}, {"Tbit/s", TERA, 8}, {"B/s", 1, 1},
    {"kB/s", KILO, 1},  {"KB/s", KILO, 1},   {"MB/s", MEGA, 1},   {"GB/s", GIGA, 1},   {"TB/s", TERA, 1},
    {"KiB/s", KIBI, 1}, {"MiB/s", MEBI, 1},  {"GiB/s", GIBI, 1},  {"TiB/s", TEBI, 1},  {NULL, 0, 0},
};

static const unit time_units[] = {
    {"ns", 1, 1},    {"us", KILO, 1}, {"\xc2\xb5s", KILO, 1}, {"\xce\xbcs", KILO, 1},
    {"ms", MEGA, 1}, {"s", GIGA, 1},  {NULL, 0, 0},
};

/* Reads "44.26" as 4426 over 100 and returns what follows; NULL where there is no number or too long a one. */
static const char *read_decimal(uint64_t *digits, uint64_t *over, const char *text)
{
    int n_digits = 0, significant = 0;
    bool fraction = false;
    *digits = 0;
    *over = 1;
    for (; isdigit((unsigned char)*text) || (*text == '.' && !fraction); text++) {
        if (*text == '.') {
            fraction = true;
            continue;
        }
        n_digits++;
        if (significant || *text != '0')
            significant++;
        *digits = *digits * 10 + (uint64_t)(*text - '0');
        if (fraction)
            *over *= 10;
        if (significant > 19 || *over > (uint64_t)1000000000000000000)
            return NULL;
    }
    return n_digits ? text : NULL;
}

static int parse(int64_t *out, const char *text, const unit *units, const char *examples)
{
    uint64_t digits, over;
    const char *at = text;
    while (isspace((unsigned char)*at))
        at++;
    if (*at == '-')
        return moirai_error(MOIRAI_EINPUT, "\"%.60s\": must not be negative", text);
    if (!isdigit((unsigned char)*at) && *at != '.')
        return moirai_error(MOIRAI_EINPUT, "\"%.60s\": expected a number with a unit (%s)", text, examples);
    at = read_decimal(&digits, &over, at);
    if (!at)
        return moirai_error(MOIRAI_EINPUT, "\"%.60s\": a number of at most 19 digits is expected", text);
    while (isspace((unsigned char)*at))
        at++;
    if (!*at)
        return moirai_error(MOIRAI_EINPUT, "\"%.60s\": the unit is missing (%s)", text, examples);
    const unit *u = units;
    while (u->name && strcmp(u->name, at))
        u++;
    if (!u->name)
        return moirai_error(MOIRAI_EINPUT, "\"%.60s\": unknown unit", text);
    unsigned __int128 value =
        (unsigned __int128)digits * (uint64_t)u->times / ((unsigned __int128)over * (uint64_t)u->over);
    if (value > INT64_MAX)
        return moirai_error(MOIRAI_EINPUT, "\"%.60s\": beyond 64 bits", text);
    *out = (int64_t)value;
    return 0;
}

int moirai_parse_bytes(int64_t *out, const char *text)
{
    return parse(out, text, byte_units, "11GB, 16GiB");
}

int moirai_parse_rate(int64_t *out, const char *text)
{
    return parse(out, text, rate_units, "44.26Gbps, 5.5GB/s");
}

int moirai_parse_duration(int64_t *out, const char *text)
{
    return parse(out, text, time_units, "10us");
}
