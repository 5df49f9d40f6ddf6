/* What this machine is, as far as more than one room asks. */
#include "util/util.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int32_t util_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

int util_own_cores(void)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    return sched_getaffinity(0, sizeof own, &own) ? 1 : UTIL_MAX(1, CPU_COUNT(&own));
}

bool util_cpuinfo(char *out, size_t size, const char *key)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)))
            continue;
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
        out[strcspn(out, "\n")] = '\0';
        found = out[0] != '\0';
    }
    if (f)
        fclose(f);
    return found;
}
