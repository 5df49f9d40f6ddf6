/* This machine and others. Names of machines go to mpiexec and from there to ssh, where one that begins with '-' would be an option, and a comma
 * or a space would make two of one. */
#include "util/util.h"

#include <ctype.h>
#include <sched.h>
#include <string.h>

bool util_is_host(const char *text)
{
    if (!*text || *text == '-' || strlen(text) > 255)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("._-:@[]%", *text))
            return false;
    return true;
}

int util_own_cores(void)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    return sched_getaffinity(0, sizeof own, &own) ? 1 : UTIL_MAX(1, CPU_COUNT(&own));
}
