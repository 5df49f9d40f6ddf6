/* Keeping a rank on its cores, and with it every thread that it starts later. */
#include "rank/ort.h"

#include <moirai/error.h>

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static int read_core(long *out, const char **at)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return -1;
    errno = 0;
    *out = strtol(*at, &end, 10);
    *at = end;
    return errno || *out >= CPU_SETSIZE ? -1 : 0;
}

static int parse_cores(cpu_set_t *set, const char *text)
{
    CPU_ZERO(set);
    for (const char *at = text;; at++) {
        long first, last;
        if (read_core(&first, &at))
            return -1;
        last = first;
        if (*at == '-') {
            at++;
            if (read_core(&last, &at))
                return -1;
        }
        for (long i = first; i <= last; i++)
            CPU_SET((int)i, set);
        if (!*at)
            return last >= first ? 0 : -1;
        if (*at != ',')
            return -1;
    }
}

int rank_ort_pin(const char *cores)
{
    cpu_set_t set;
    if (parse_cores(&set, cores))
        return moirai_error(MOIRAI_EUSAGE, "cores \"%s\": expected numbers and ranges, as 0-3,6", cores);
    if (sched_setaffinity(0, sizeof set, &set))
        return moirai_error(MOIRAI_EUSAGE, "cores \"%s\": this machine does not give them: %s", cores, strerror(errno));
    return 0;
}
