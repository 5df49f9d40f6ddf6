/* What ran an experiment: its times mean nothing without that. */
#include "study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

int32_t study_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

/* The first "model name" of /proc/cpuinfo; arm64 kernels have none. */
static bool cpu_name(char *text, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(text, size, "%s", colon + 1 + strspn(colon + 1, " "));
        found = text[0] != '\0';
    }
    if (f)
        fclose(f);
    return found;
}

void study_machine(char *text, size_t size)
{
    struct utsname name;
    char cpu[64];
    if (!cpu_name(cpu, sizeof cpu))
        snprintf(cpu, sizeof cpu, "%s", uname(&name) ? "unknown processor" : name.machine);
    snprintf(text, size, "%s, %d cores", cpu, study_cores());
}

void study_date(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(text, size, "%Y-%m-%d %H:%M", &utc))
        snprintf(text, size, "unknown");
}

double study_load(void)
{
    double one;
    return getloadavg(&one, 1) == 1 ? one : 0;
}
